"""What the explorer computes: KTRR with everything kept that a moved slider does not change. No page, no drawing.

At n = 1500 a new kernel costs its matrix (0.15 s on one core), a new λ one Cholesky inverse of the kept matrix (0.15 s:
an eigendecomposition kept once would make that a product of 2n³ operations, which takes longer than the n³ of the
inverse), a new η, number of clusters or cut less than 0.1 s.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_array

from subspaces.app.explorer.edits import Edits
from subspaces.app.explorer.shapes import image_shape_of
from subspaces.app.explorer.vocabulary import Words
from subspaces.engine.confidence import UNSURE
from subspaces.engine.run import Cache, run
from subspaces.estimators.auto import Chosen, SubspaceClustering
from subspaces.estimators.explain import Explanation, explained
from subspaces.estimators.ktrr import KTRR
from subspaces.estimators.local import SC
from subspaces.inspection.plots.gallery import most_typical
from subspaces.inspection.plots.layout import cluster_means, plane
from subspaces.inspection.plots.matrices import cells_of
from subspaces.kernels import KERNELS
from subspaces.metrics import accuracy, normalized_mutual_info
from subspaces.selection.candidates import NEIGHBORS
from subspaces.selection.criteria import modularity, modularity_ceiling, normalized_cut
from subspaces.selection.result import verdict
from subspaces.spectral.hierarchy import ClusterTree, cluster_tree
from subspaces.utils.memory import available_bytes
from subspaces.utils.spelling import first_line
from subspaces.utils.types import Array, Data, Labels

EXPLORED_KERNELS = tuple(name for name in KERNELS if name not in ("precomputed", "polynomial"))
CHOICES = (*EXPLORED_KERNELS, NEIGHBORS)
"""Kernels, and the graph of nearest neighbours without one."""
N_CELLS = 240
"""Rows and columns of the picture of the graph."""
N_DOUBTFUL = 3
"""Doubtful points of a cluster that are shown."""
MOST_LEVELS = 100
"""Levels of the tree that can be shown: as many as there are clusters one can ask for."""


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
        """Those of an estimator, as far as the explorer has them."""
        values: dict[str, Any] = {name: getattr(estimator, name) for name in ("n_clusters", "scaling", "assign_labels")}
        if isinstance(estimator, SC):
            return cls(**values, kernel=NEIGHBORS, n_nonzero=estimator.n_neighbors or cls.n_nonzero)
        values |= {name: getattr(estimator, name) for name in ("kernel", "reg", "affine")}
        return cls(**values, n_nonzero=int(estimator.n_nonzero or cls.n_nonzero))

    def estimator(self, **more: Any) -> KTRR | SC:
        """The method with these settings, and more parameters that both have."""
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


class View(NamedTuple):
    """Everything that is shown of one setting."""

    settings: Settings
    model: Any  # fitted
    labels: Labels
    cells: Array  # the graph ordered by cluster (subspaces.inspection.plots.matrices.cells_of)
    sizes: Labels  # points in each cluster
    points: Array  # coordinates of points and clusters on the page
    centres: Array
    layout: str  # "pca" or "map"
    members: list[Labels]  # the most typical points of each cluster
    doubtful: list[Labels]  # those more probably wrong than right, the least sure first, no more than are shown
    words: list[list[str]]  # that set each cluster apart; empty where points are neither texts nor named counts
    confidence: Array  # probability that each label is right
    verdict: str
    quality: dict[str, float]
    messages: tuple[str, ...]  # warnings of the fit
    seconds: dict[str, float]  # of each stage, and of the drawings' data
    embedding: Array
    tree: ClusterTree  # the clusters of the fit, coarser and finer
    level: int | None = None  # of the tree that is shown, None for the labels of the fit
    is_tested: bool = False  # whether the tree has the p-values that it will ever have
    names: tuple[str, ...] = ()  # that clusters were given, empty ones where none was
    groups: tuple[int, ...] = ()  # cluster that is shown of each cluster of the fit or level, where they were edited

    @property
    def has_merged(self) -> bool:
        """Whether clusters were joined by hand."""
        return len(self.groups) > len(self.sizes)

    def name_of(self, cluster: int) -> str:
        """The name that a cluster was given, or its number."""
        return (self.names[cluster] if self.names else "") or str(cluster)

    @property
    def n_levels(self) -> int:
        """Levels of the tree that can be shown."""
        return min(MOST_LEVELS, self.tree.n_leaves)


class Session:
    """Points under exploration, with what was computed for them so far.

    Parameters
    ----------
    X : array-like of shape (n, m)
    y : true classes or None
    ids : names of the points or None
    image_shape : where the points are images; None: found by itself (:mod:`subspaces.app.explorer.shapes`)
    pixels : the images, one row each, where X holds something else that was made of them
    texts : the text of each point, where X holds vectors made of them
    feature_names : of the columns of X: those of sparse counts are shown as the words of texts are
    lines : line of the file that each point stands on
    max_points : of more points a random sample is taken
    seed : of the sample and of k-means
    n_init : starts of k-means: few, for the sake of speed; the exported line says how many
    settings : where to start; None: with the answer of :class:`subspaces.SubspaceClustering` for all points
    chosen : what its method ``choose`` found for X, where that is known

    Attributes
    ----------
    rows : row numbers of the explored points in X
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
        self._words = Words.of(self.texts, points, feature_names)
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
        """Where to start: with what ``subspaces cluster`` does to the same points."""
        return self.choose() if self._settings is None else self._at_most(self._settings)

    @property
    def most_clusters(self) -> int:
        """Most clusters one can ask for, unless more are found."""
        return max(2, min(100, len(self.rows) // 2))

    def choose(self) -> Settings:
        """Parameters chosen from the points alone, all of them: takes some eight fits."""
        if self._chosen is None:
            self._chosen = SubspaceClustering(random_state=self.seed).choose(self._all)
        return self._at_most(Settings.of(self._chosen[0]))

    @property
    def is_sampled(self) -> bool:
        """Whether only a part of the points is explored."""
        return len(self.rows) < self.n_given

    @cached_property
    def _answer(self) -> SubspaceClustering:
        """The fit of ``subspaces cluster`` with nothing set."""
        assert self._chosen is not None
        return SubspaceClustering(random_state=self.seed).fit_chosen(self._all, self._chosen)

    def _at_most(self, settings: Settings) -> Settings:
        """No more clusters than points are explored."""
        return replace(settings, n_clusters=min(settings.n_clusters, len(self.rows)))

    def compute(self, settings: Settings) -> View:
        """Fit with these settings, reusing what they share with earlier ones, and prepare what is shown."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = self._fit(settings)
        start = time.perf_counter()
        Y = model.embedding_  # once: under modularity it is computed when read
        points, centres, layout = plane(Y, model.labels_)
        tree = cluster_tree(model.affinity_matrix_, model.labels_)
        shown = self._shown(model, model.labels_, Y)
        seconds = {**model.timings_, "prepare": time.perf_counter() - start}
        messages = tuple(dict.fromkeys(str(warning.message) for warning in caught))
        placed: dict[str, Any] = {"points": points, "centres": centres, "layout": layout}
        return View(settings, model, **shown, **placed, messages=messages, seconds=seconds, embedding=Y, tree=tree)

    def at_level(self, view: View, level: int) -> View:
        """The same fit with another level of its tree as labels; points stay where they are on the map."""
        return self._relabelled(view, view.model.labels_at(level), level=level, names=(), groups=())

    def edited(self, view: View, edits: Edits) -> View:
        """A view as a person wants it: clusters with names, some as one."""
        return self._relabelled(view, edits.of(view.labels), names=edits.names, groups=edits.groups)

    def _relabelled(self, view: View, labels: Labels, **more: Any) -> View:
        """The same fit with other labels.

        The name of a cluster stands at that of its points which is nearest to their mean: the mean itself may lie in
        another cluster.
        """
        start = time.perf_counter()
        far = np.square(view.points - cluster_means(view.points, labels)[labels]).sum(axis=1)
        nearest = np.lexsort((far, labels))[np.r_[0, np.cumsum(np.bincount(labels))[:-1]]]
        shown = self._shown(view.model, labels, view.embedding)
        seconds = {"prepare": time.perf_counter() - start}
        return view._replace(**shown, centres=view.points[nearest], seconds=seconds, **more)

    def labelled(self, view: View) -> Any:
        """The model with the labels that are shown."""
        return _labelled(view.model, view.labels)

    def _shown(self, model: Any, labels: Labels, Y: Array) -> dict[str, Any]:
        """What is shown of labels, whichever level they are."""
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
        words = [] if self._words is None else self._words.by_cluster(labels)
        cells = cells_of(W, labels, N_CELLS)
        found = {"labels": labels, "sizes": np.bincount(labels), "words": words}
        found |= {"members": members, "doubtful": doubtful}
        k = len(members)  # of another level or merged by a person, so asked for
        said = model.verdict_ if labelled is model else verdict(None, k, len(labels), len(unsure), asked=k)
        return {**found, "confidence": sure, "verdict": said, "quality": quality, "cells": cells}

    def tested(self, view: View) -> View:
        """The view with the p-values of its tree, as far as the model has them: may take seconds."""
        tree: ClusterTree = view.model.tree_
        is_same = np.array_equal(tree.merges, view.tree.merges)
        return view._replace(tree=tree if is_same else view.tree, is_tested=True)

    def explain(self, view: View, i: int, n: int = 8) -> Explanation:
        """The points that represent point `i` of the session (its neighbours), with the clusters that are shown."""
        model = view.model
        return explained(i, n, getattr(model, "coefficients_", model.affinity_matrix_), view.labels)

    def python(self, view: View) -> str:
        """Lines that repeat this view in Python."""
        rows = f"  # of the {len(self.rows)} sampled rows\n" if self.is_sampled else ""
        model = view.model
        defaults = type(model)().get_params()
        given = {name: value for name, value in model.get_params().items() if value != defaults[name]}
        n_clusters = [str(given.pop("n_clusters"))] if "n_clusters" in given else []
        arguments = ", ".join(n_clusters + [f"{name}={value!r}" for name, value in given.items()])
        labels = "labels_" if view.level is None else f"labels_at({view.level})"
        found = f"model.{labels}" if not view.has_merged else f"np.take({list(view.groups)}, model.{labels})"
        imports = "import numpy as np\n" * view.has_merged + f"from subspaces import {type(model).__name__}"
        return f"{imports}\n\n{rows}model = {type(model).__name__}({arguments}).fit(X)\nlabels = {found}"

    def command(self, view: View, source: str) -> str:
        """Return the command that gives these labels; "" where none does: of a sample, a level or merged clusters.

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
        return model.fit_by(self.X, partial(run, cache=self._cache))


def _labelled(model: Any, labels: Labels) -> Any:
    """The model with other labels, where they are others."""
    return model if np.array_equal(labels, model.labels_) else model.with_labels(labels)
