"""Computations of the explorer: KTRR with everything kept that a moved slider does not change. No page, no drawing.

At n = 1500 a new kernel costs its matrix (0.15 s on one core), a new λ one Cholesky inverse of the kept matrix (0.15 s:
an eigendecomposition kept once would make that a product of 2n³ operations, which takes longer than the n³ of the
inverse), a new η, number of clusters or cut less than 0.1 s.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import isqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from subspaces.app.description import describe
from subspaces.app.features.documents import count_words, leading_words
from subspaces.app.files import write_labels
from subspaces.engine.confidence import UNSURE, summarize
from subspaces.engine.run import Cache, reusing
from subspaces.estimators.answers import verdict
from subspaces.estimators.explain import Explanation, explained
from subspaces.estimators.ktrr import KTRR
from subspaces.estimators.local import SC
from subspaces.inspection.plots.gallery import most_typical
from subspaces.inspection.plots.graph import cells_of
from subspaces.inspection.plots.layout import cluster_means, plane
from subspaces.kernels import KERNELS
from subspaces.metrics import accuracy, normalized_mutual_info
from subspaces.selection.auto import Chosen, SubspaceClustering
from subspaces.selection.candidates import NEIGHBORS
from subspaces.selection.criteria import modularity, modularity_ceiling, normalized_cut
from subspaces.spectral.hierarchy import ClusterTree, cluster_tree
from subspaces.utils.memory import available_bytes
from subspaces.utils.progress import phase
from subspaces.utils.spelling import first_line
from subspaces.utils.types import Array, Data, Labels

EXPLORED_KERNELS = tuple(name for name in KERNELS if name not in ("precomputed", "polynomial", "sigmoid"))
CHOICES = (*EXPLORED_KERNELS, NEIGHBORS)
"""Kernels, and the graph of nearest neighbours without one."""
N_CELLS = 240
"""Rows and columns of the picture of the graph."""
N_DOUBTFUL = 3
"""Doubtful samples of a cluster that are shown."""
MOST_LEVELS = 100
"""Levels of the tree that can be shown: as many as there are clusters one can ask for."""
MAX_NAME = 60
"""Letters of a name."""


@dataclass(frozen=True)
class Settings:
    """Parameters that the explorer moves: those of KTRR, or of SC where the kernel is ``"neighbors"``."""

    n_clusters: int = 8
    kernel: str = "rbf"
    scaling: str | None = None
    reg: float = 1.0
    n_nonzero: int = 5
    assign_labels: str = "kmeans"
    affine: bool = False

    @classmethod
    def of(cls, estimator: KTRR | SC) -> Settings:
        """Return the settings of an estimator, as far as the explorer has them."""
        values: dict[str, Any] = {name: getattr(estimator, name) for name in ("n_clusters", "scaling", "assign_labels")}
        if isinstance(estimator, SC):
            return cls(**values, kernel=NEIGHBORS, n_nonzero=estimator.n_neighbors or cls.n_nonzero)
        values |= {name: getattr(estimator, name) for name in ("kernel", "reg", "affine")}
        kept = getattr(estimator, "n_nonzero_", estimator.n_nonzero)  # None keeps all; a rule is a number once fitted
        return cls(**values, n_nonzero=kept if isinstance(kept, int) else cls.n_nonzero)

    def estimator(self, **more: Any) -> KTRR | SC:
        """Return the method with these settings, and more parameters that both have."""
        values = asdict(self)
        if self.kernel == NEIGHBORS:
            shared = {name: values[name] for name in ("n_clusters", "scaling", "assign_labels")}
            return SC(**shared, n_neighbors=self.n_nonzero, bandwidth="local", **more)
        return KTRR(**values, **more)

    def options(self, n_init: int) -> str:
        """Return the options of ``subspaces cluster`` for the same method with these settings."""
        options = [
            f"-k {self.n_clusters}",
            f"--scaling {self.scaling or 'none'}",
            f"--set assign_labels={self.assign_labels}",
        ]
        if self.kernel == NEIGHBORS:
            options += ["--method sc", f"--set n_neighbors={self.n_nonzero}", "--set bandwidth=local"]
        else:
            options += [
                "--method ktrr",
                f"--set kernel={self.kernel}",
                f"--set reg={self.reg}",
                f"--set n_nonzero={self.n_nonzero}",
            ]
            options += ["--set affine=true"] * self.affine
        return f"{' '.join(options)} --set n_init={n_init} "


@dataclass(frozen=True)
class Edits:
    """Names and mergers of clusters by a person; frozen, so that a step back is a step back.

    Attributes
    ----------
    groups : the cluster shown that each cluster of the fit belongs to
    names : of the clusters shown; empty where none was given
    """

    groups: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def none(cls, n_clusters: int) -> Self:
        """Return all clusters as they are."""
        return cls(tuple(range(n_clusters)), ("",) * n_clusters)

    def renamed(self, cluster: int, name: str) -> Self:
        """Give a name to a cluster that is shown; an empty one is its number again.

        Examples
        --------
        >>> Edits.none(2).renamed(1, "cats").names
        ('', 'cats')
        """
        short = " ".join(name.split())[:MAX_NAME]
        return replace(self, names=tuple(short if k == cluster else old for k, old in enumerate(self.names)))

    def merged(self, clusters: Iterable[int]) -> Self:
        """Merge some of the clusters that are shown into the first of them, with the first name that one has.

        Examples
        --------
        >>> Edits.none(4).renamed(3, "cats").merged([1, 3])
        Edits(groups=(0, 1, 2, 1), names=('', 'cats', ''))
        """
        chosen = sorted(set(clusters))
        if len(chosen) < 2:
            return self
        first, others = chosen[0], chosen[1:]
        kept = [k for k in range(len(self.names)) if k not in others]
        target = {k: kept.index(first if k in others else k) for k in range(len(self.names))}
        name = next((self.names[k] for k in chosen if self.names[k]), "")
        names = tuple(name if k == first else self.names[k] for k in kept)
        return replace(self, groups=tuple(target[group] for group in self.groups), names=names)

    def of(self, labels: Labels) -> Labels:
        """Return the labels that are shown from those of the fit."""
        return np.asarray(self.groups, dtype=np.intp)[labels]


class View(NamedTuple):
    """All that is shown of one setting."""

    settings: Settings
    model: Any  # fitted
    labels: Labels
    cells: Array  # the graph ordered by cluster (subspaces.inspection.plots.graph.cells_of)
    sizes: Labels  # samples in each cluster
    points: Array  # coordinates of samples and clusters on the page
    centres: Array
    layout: str  # "pca" or "map"
    members: list[Labels]  # the most typical samples of each cluster
    doubtful: list[Labels]  # those more probably wrong than right, the least sure first, no more than are shown
    words: list[list[str]]  # that set each cluster apart; empty where samples are neither texts nor named counts
    confidence: Array  # probability that each label is right
    verdict: str
    quality: dict[str, float]
    messages: tuple[str, ...]  # warnings of the fit
    embedding: Array
    tree: ClusterTree  # the clusters of the fit, coarser and finer
    level: int | None = None  # of the tree that is shown, None for the labels of the fit
    is_tested: bool = False  # whether the tree has the p-values that it will ever have
    names: tuple[str, ...] = ()  # that clusters were given, empty ones where none was
    groups: tuple[int, ...] = ()  # cluster that is shown of each cluster of the fit or level, where they were edited

    @property
    def has_merged(self) -> bool:
        """Whether clusters were merged by hand."""
        return len(self.groups) > len(self.sizes)

    def name_of(self, cluster: int) -> str:
        """Return the name that a cluster was given, or its number."""
        return (self.names[cluster] if self.names else "") or str(cluster)

    @property
    def n_levels(self) -> int:
        """Levels of the tree that can be shown."""
        return min(MOST_LEVELS, self.tree.n_leaves)


class Session:
    """Samples under exploration, with what was computed for them so far.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : true classes or None
    ids : names of the samples or None
    image_shape : where the samples are images; None: found by :func:`image_shape_of`
    pixels : the images, one row each, where X holds something else that was made of them
    texts : the text of each sample, where X holds vectors made of them
    feature_names : of the columns of X: those of sparse counts are shown as the words of texts are
    lines : line of the file that each sample stands on
    max_points : of more samples a random subset is taken
    seed : of the subset and of k-means
    n_init : starts of k-means: few, for the sake of speed; the exported line says how many
    settings : where to start; None: with the answer of :class:`subspaces.SubspaceClustering` for all samples
    chosen : what its method ``choose`` found for X, where that is known

    Attributes
    ----------
    rows : row numbers of the explored samples in X
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        ids: Any = None,
        image_shape: tuple[int, ...] | None = None,
        pixels: Any = None,
        texts: Any = None,
        feature_names: Any = None,
        lines: Any = None,
        max_points: int = 2000,
        seed: int = 0,
        n_init: int = 5,
        settings: Settings | None = None,
        chosen: Chosen | None = None,
    ) -> None:
        points: Data = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=3)
        n = points.shape[0]
        for name, given in {"y": y, "ids": ids, "pixels": pixels, "texts": texts, "lines": lines}.items():
            if given is not None and len(given) != n:
                raise ValueError(f"{name} must have one entry for each of the {n} points; got {len(given)}.")
        seen = points if pixels is None else np.asarray(pixels)
        image_shape = image_shape_of(seen) if image_shape is None and texts is None else image_shape
        if image_shape is not None and int(np.prod(image_shape)) != seen.shape[1]:
            raise ValueError(f"image_shape={tuple(image_shape)} must hold the {seen.shape[1]} values of a point.")
        self.n_given, self.seed, self.n_init, self.image_shape = n, seed, n_init, image_shape
        self._all, self._settings, self._chosen = points, settings, chosen
        self.rows: Labels = np.arange(n)
        if n > max_points:
            self.rows = np.sort(np.random.default_rng(seed).choice(n, max_points, replace=False))
            points = points[self.rows]
        self.X = points
        self.pixels = None if pixels is None else seen[self.rows]
        self.texts = None if texts is None else [str(texts[row]) for row in self.rows]
        self.first_lines = [first_line(text) for text in self.texts or ()]
        self._counts = _word_counts(self.texts, points, feature_names)
        self.given_ids = None if ids is None else [str(name) for name in ids]
        self.lines = None if lines is None else np.asarray(lines)
        self.y = None if y is None else np.asarray(y)[self.rows]
        named = self.given_ids or (range(n) if lines is None else [f"line {line}" for line in lines])
        self.ids = [str(named[row]) for row in self.rows]
        squares = available_bytes() // 4 // max(points.shape[0] ** 2 * points.dtype.itemsize, 1)
        n_kept = int(np.clip(squares // 2, 1, 6))  # kernel matrices, and as many inverses
        self._cache = Cache(kernel=n_kept, coefficients=n_kept, graph=20, embedding=20, cut=20)

    @cached_property
    def first_settings(self) -> Settings:
        """Settings to start with: those of ``subspaces cluster`` for the same samples."""
        return self.choose() if self._settings is None else self._at_most(self._settings)

    @property
    def most_clusters(self) -> int:
        """Most clusters one can ask for, unless more are found."""
        return max(2, min(100, len(self.rows) // 2))

    def choose(self) -> Settings:
        """Choose settings from all samples: takes some eight fits."""
        if self._chosen is None:
            self._chosen = SubspaceClustering(random_state=self.seed).choose(self._all)
        return self._at_most(Settings.of(self._chosen[0]))

    @property
    def is_sampled(self) -> bool:
        """Whether only a subset of the samples is explored."""
        return len(self.rows) < self.n_given

    @cached_property
    def _answer(self) -> SubspaceClustering:
        """Fit of ``subspaces cluster`` with nothing set."""
        assert self._chosen is not None
        return SubspaceClustering(random_state=self.seed).fit_chosen(self._all, self._chosen)

    def _at_most(self, settings: Settings) -> Settings:
        """Limit the number of clusters to that of the explored samples."""
        return replace(settings, n_clusters=min(settings.n_clusters, len(self.rows)))

    def compute(self, settings: Settings) -> View:
        """Fit with these settings, reusing what they share with earlier ones, and prepare what is shown."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = self._fit(settings)
        Y = model.embedding_  # once: under modularity it is computed when read
        points, centres, layout = plane(Y, model.labels_)
        placed: dict[str, Any] = {"points": points, "centres": centres, "layout": layout, "embedding": Y}
        placed["tree"] = cluster_tree(model.affinity_matrix_, model.labels_)
        messages = tuple(dict.fromkeys(str(warning.message) for warning in caught))
        return View(settings, model, **self._shown(model, model.labels_, Y), **placed, messages=messages)

    def at_level(self, view: View, level: int) -> View:
        """Return the same fit with another level of its tree as labels; samples stay where they are on the map."""
        return self._relabelled(view, view.model.labels_at(level), level=level, names=(), groups=())

    def edited(self, view: View, edits: Edits) -> View:
        """Return a view with clusters named and merged by a person."""
        return self._relabelled(view, edits.of(view.labels), names=edits.names, groups=edits.groups)

    def _relabelled(self, view: View, labels: Labels, **more: Any) -> View:
        """Return the same fit with other labels.

        The name of a cluster stands at that of its samples which is nearest to their mean: the mean itself may lie in
        another cluster.
        """
        far = np.square(view.points - cluster_means(view.points, labels)[labels]).sum(axis=1)
        nearest = np.lexsort((far, labels))[np.r_[0, np.cumsum(np.bincount(labels))[:-1]]]
        shown = self._shown(view.model, labels, view.embedding)
        return view._replace(**shown, centres=view.points[nearest], **more)

    def labelled(self, view: View) -> Any:
        """Return the model with the labels that are shown."""
        return _labelled(view.model, view.labels)

    def _shown(self, model: Any, labels: Labels, Y: Array) -> dict[str, Any]:
        """Compute what is shown of labels, whichever level they are."""
        W, labelled = model.affinity_matrix_, _labelled(model, labels)
        sure = labelled.confidence_
        ceiling = modularity_ceiling(W, labels)
        quality = {"separation": 1 - normalized_cut(W, labels), "components": float(model.n_components_)}
        quality["modularity"] = min(1.0, modularity(W, labels) / ceiling) if ceiling > 0 else 0.0
        if self.y is not None:
            quality |= {"accuracy": accuracy(self.y, labels), "nmi": normalized_mutual_info(self.y, labels)}
        members = most_typical(self.X, labels, Y)
        unsure = np.argsort(sure, kind="stable")[: int((sure < UNSURE).sum())]
        doubtful = [unsure[labels[unsure] == k][:N_DOUBTFUL] for k in range(len(members))]
        words = [] if self._counts is None else leading_words(*self._counts, labels, 8)
        cells = cells_of(W, labels, N_CELLS)
        found = {"labels": labels, "sizes": np.bincount(labels), "words": words}
        found |= {"members": members, "doubtful": doubtful}
        k = len(members)  # of another level or merged by a person, so asked for
        said = model.verdict_ if labelled is model else verdict(k, len(labels), len(unsure), asked=k)
        return {**found, "confidence": sure, "verdict": said, "quality": quality, "cells": cells}

    def tested(self, view: View) -> View:
        """Return the view with the p-values of its tree, as far as the model has them: may take seconds."""
        tree: ClusterTree = view.model.tree_
        is_same = np.array_equal(tree.merges, view.tree.merges)
        return view._replace(tree=tree if is_same else view.tree, is_tested=True)

    def explain(self, view: View, i: int, n: int = 8) -> Explanation:
        """Return the samples that represent sample `i` (its neighbours), with the clusters that are shown."""
        model = view.model
        return explained(i, n, getattr(model, "coefficients_", model.affinity_matrix_), view.labels)

    def python(self, view: View) -> str:
        """Return lines that repeat this view in Python."""
        rows = f"  # of the {len(self.rows)} sampled rows\n" if self.is_sampled else ""
        labels = "model.labels_" if view.level is None else f"model.labels_at({view.level})"
        labels = f"np.take({list(view.groups)}, {labels})" if view.has_merged else labels
        imports = "import numpy as np\n" * view.has_merged + f"from subspaces import {type(view.model).__name__}"
        return f"{imports}\n\n{rows}model = {view.model!r}.fit(X)\nlabels = {labels}"

    def command(self, view: View, source: str) -> str:
        """Return the command that gives these labels; "" where none does: of a subset, a level or merged clusters.

        `source` is the file with the options it is read with, quoted for a shell.
        """
        if self.is_sampled or view.level is not None or view.has_merged:
            return ""
        options = "" if isinstance(view.model, SubspaceClustering) else view.settings.options(self.n_init)
        return f"subspaces cluster {source} {options}--seed {self.seed} -o labels.csv"

    def _fit(self, settings: Settings) -> Any:
        if self._chosen is not None and not self.is_sampled and settings == Settings.of(self._chosen[0]):
            return self._answer
        model = settings.estimator(n_init=self.n_init, random_state=self.seed)
        with reusing(self._cache):
            return model.fit(self.X)

    def labels_file(self, view: View, suffix: str = ".csv") -> io.BytesIO:
        """Write the clusters that are shown as ``subspaces cluster -o`` does; samples outside the subset have none.

        Where a cluster was given a name, a column ``name`` has it.
        """
        columns: dict[str, Any] = dict(summarize(self.labelled(view), self.X).columns())
        if any(view.names):
            columns = {"name": np.array([view.name_of(k) for k in view.labels.tolist()], dtype=object), **columns}
        rows: dict[str, Any] = {"rows": self.rows, "n_rows": self.n_given} if self.is_sampled else {}
        with TemporaryDirectory() as folder:
            file = Path(folder, f"labels{suffix}")
            write_labels(file, view.labels, ids=self.given_ids, lines=self.lines, columns=columns, **rows)
            return io.BytesIO(file.read_bytes())

    def report_file(self, view: View, title: str, command: str = "") -> io.BytesIO:
        """Write the report of what is shown, one page of HTML; `command` repeats it in a shell, where one does."""
        from subspaces.app.report import Content, render

        model = self.labelled(view)
        summary = summarize(model, self.X)
        classes, codes = (None, None) if self.y is None else np.unique(self.y, return_inverse=True)
        notes = [f"made in the explorer of {len(self.rows)} of {self.n_given} points"]
        notes += ["clusters were merged by hand"] * view.has_merged
        known: dict[str, Any] = {"summary": summary, "names": self.ids, "notes": notes, "texts": self.texts}
        content = Content(
            model,
            self.X,
            summary,
            describe(model, source=title, shape=self.X.shape, y=codes, **known),
            ids=self.ids,
            y=codes,
            classes=None if classes is None else [str(name) for name in classes],
            image_shape=self.image_shape,
            pixels=self.pixels,
            texts=self.texts,
            command=command,
            cluster_names=dict(enumerate(view.names)),
        )
        with phase("Writing the report"):
            return io.BytesIO(render(content).encode())


def _labelled(model: Any, labels: Labels) -> Any:
    """Return the model with other labels, where they are others."""
    return model if np.array_equal(labels, model.labels_) else model.with_labels(labels)


def _word_counts(texts: Sequence[str] | None, X: Data, feature_names: Sequence[str] | None) -> tuple[Any, Any] | None:
    """Return counts of words and the words: of the texts, or sparse counts with the names of their columns."""
    if texts is not None:
        try:
            return count_words(texts)
        except ValueError:  # not one word
            return None
    if feature_names is None or not sparse.issparse(X) or not X.nnz or X.data.min() < 0:
        return None
    return X, feature_names


def image_shape_of(X: Data) -> tuple[int, ...] | None:
    """Return height and width (and 3 for colours) if the rows of X look like square images; else None.

    Pixels beside and below each other are alike, more than those half an image apart. Of a spectrum or a time series,
    where likeness fades along the row, what is one "row" below is less like it than what is half a row away. Sparse
    rows are no images.

    Examples
    --------
    >>> from sklearn.datasets import load_digits, load_iris
    >>> image_shape_of(load_digits().data), image_shape_of(load_iris().data)
    ((8, 8), None)
    """
    if sparse.issparse(X) or X.shape[0] < 10 or X.shape[1] > 20_000:
        return None
    m = X.shape[1]
    some: Any = X[np.linspace(0, X.shape[0] - 1, min(X.shape[0], 300)).astype(int)]
    some = np.asarray(some, dtype=np.float64)
    if len(np.unique(some[: min(len(some), 20)])) < 3:
        return None
    for depth in (1, 3):
        side = isqrt(m // depth)
        if depth * side * side == m and side >= 6 and _is_picture(some.reshape(len(some), side, side, depth)):
            return (side, side) if depth == 1 else (side, side, 3)
    return None


def _is_picture(images: Array) -> bool:
    """Compare the correlation of neighbours (at least 0.3) with that of pixels half a side apart (less by 0.1)."""
    far = max(2, images.shape[1] // 2)
    beside = _likeness(images[:, :, :-1], images[:, :, 1:])
    below = _likeness(images[:, :-1], images[:, 1:])
    apart = max(_likeness(images[:, :, :-far], images[:, :, far:]), _likeness(images[:, :-far], images[:, far:]))
    return bool(min(beside, below) > max(0.3, apart + 0.1))


def _likeness(one: Array, other: Array) -> float:
    """Return the mean correlation, over the samples, of pixels with others; constant pixels do not count."""
    one, other = (part - part.mean(axis=0) for part in (one, other))
    scale = np.sqrt(np.square(one).sum(axis=0) * np.square(other).sum(axis=0))
    product = (one * other).sum(axis=0)
    seen = scale > 1e-12 * max(float(scale.max(initial=0)), np.finfo(np.float64).tiny)
    return float((product[seen] / scale[seen]).mean()) if seen.any() else 0.0
