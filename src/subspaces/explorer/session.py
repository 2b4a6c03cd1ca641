"""What the explorer computes: KTRR with everything kept that a moved slider does not change. No page, no drawing.

At n = 1500 a new kernel costs its matrix (0.15 s on one core), a new λ one Cholesky inverse of the kept matrix (0.15 s:
an eigendecomposition kept once would make that a product of 2n³ operations, which takes longer than the n³ of the
inverse), a new η, number of clusters or cut less than 0.1 s.
"""

from __future__ import annotations

import io
import time
import warnings
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_array

from subspaces.engine.run import Cache, run
from subspaces.estimators.explain import Explanation, explained
from subspaces.estimators.ktrr import KTRR
from subspaces.hierarchy import ClusterTree, cluster_tree
from subspaces.io.writing import write_rows
from subspaces.kernels import KERNELS
from subspaces.metrics import accuracy, normalized_mutual_info
from subspaces.numerics.memory import available_bytes
from subspaces.numerics.types import Array, Data, Labels
from subspaces.plots.gallery import most_typical
from subspaces.plots.layout import cluster_means, plane
from subspaces.plots.matrices import cells_of
from subspaces.selection.criteria import modularity, modularity_ceiling, normalized_cut

EXPLORED_KERNELS = tuple(name for name in KERNELS if name not in ("precomputed", "polynomial"))
N_CELLS = 240
"""Rows and columns of the picture of the graph."""
MOST_LEVELS = 100
"""Levels of the tree that can be shown: as many as there are clusters one can ask for."""


@dataclass(frozen=True)
class Settings:
    """Parameters of KTRR that the explorer moves."""

    n_clusters: int = 8
    kernel: str = "rbf"
    scaling: str | None = None
    reg: float = 1.0
    n_nonzero: int = 5
    partition: str = "kmeans"

    def command(self, source: str, seed: int) -> str:
        """The command that does the same, with as many starts of k-means as KTRR has by default.

        `source` is the file with the options it is read with, quoted for a shell.
        """
        options = [f"-k {self.n_clusters}", f"--kernel {self.kernel}", f"--scaling {self.scaling or 'none'}"]
        options += [f"--reg {self.reg:g}", f"--n-nonzero {self.n_nonzero}", f"--partition {self.partition}"]
        return f"subspaces cluster {source} {' '.join(options)} --seed {seed} -o labels.csv"


class View(NamedTuple):
    """Everything that is shown of one setting."""

    settings: Settings
    model: Any  # fitted
    labels: Labels
    cells: Array  # the graph ordered by cluster (subspaces.plots.matrices.cells_of)
    sizes: Labels  # points in each cluster
    points: Array  # coordinates of points and clusters on the page
    centres: Array
    layout: str  # "pca" or "map"
    members: list[Labels]  # the most typical points of each cluster
    quality: dict[str, float]
    messages: tuple[str, ...]  # warnings of the fit
    seconds: dict[str, float]  # of each stage, and of the drawings' data
    embedding: Array
    tree: ClusterTree  # the clusters of the fit, coarser and finer
    level: int | None = None  # of the tree that is shown, None for the labels of the fit
    is_tested: bool = False  # whether the tree has the p-values that it will ever have

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
    image_shape : where the points are images
    pixels : the images, one row each, where X holds something else that was made of them
    max_points : of more points a random sample is taken
    seed : of the sample and of k-means
    n_init : starts of k-means: few, for the sake of speed; the exported line says how many

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
        max_points: int = 2000,
        seed: int = 0,
        n_init: int = 5,
    ) -> None:
        points: Data = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=3)
        n = points.shape[0]
        for name, given in (("y", y), ("ids", ids), ("pixels", pixels)):
            if given is not None and len(given) != n:
                raise ValueError(f"{name} must have one entry for each of the {n} points; got {len(given)}.")
        seen = points if pixels is None else np.asarray(pixels)
        if image_shape is not None and int(np.prod(image_shape)) != seen.shape[1]:
            raise ValueError(f"image_shape={tuple(image_shape)} must hold the {seen.shape[1]} values of a point.")
        self.n_given, self.seed, self.n_init, self.image_shape = n, seed, n_init, image_shape
        self.rows: Labels = np.arange(n)
        if n > max_points:
            self.rows = np.sort(np.random.default_rng(seed).choice(n, max_points, replace=False))
            points = points[self.rows]
        self.X = points
        self.pixels = None if pixels is None else seen[self.rows]
        self.y = None if y is None else np.asarray(y)[self.rows]
        self.ids = [str(row) for row in self.rows] if ids is None else [str(ids[row]) for row in self.rows]
        squares = available_bytes() // 4 // max(points.shape[0] ** 2 * points.dtype.itemsize, 1)
        n_kept = int(np.clip(squares // 2, 1, 6))  # kernel matrices, and as many inverses
        self._cache = Cache(kernel=n_kept, coefficients=n_kept, graph=20, embedding=20, cut=20)

    @property
    def first_settings(self) -> Settings:
        """Where to start: KTRR's defaults, as many clusters as classes, else as the graph has communities."""
        if self.y is not None:
            return Settings(n_clusters=min(len(np.unique(self.y)), self.most_clusters))
        found = self._fit(Settings(), n_clusters=None, partition="modularity").n_clusters_
        return Settings(n_clusters=int(np.clip(found, 2, self.most_clusters)))

    @property
    def most_clusters(self) -> int:
        """Most clusters one can ask for."""
        return max(2, min(100, len(self.rows) // 2))

    def choose(self) -> Settings:
        """Parameters chosen from the points alone (:func:`subspaces.selection.choose`): takes some eight fits."""
        auto: dict[str, Any] = dict.fromkeys(("kernel", "reg", "n_nonzero", "scaling", "partition"), "auto")
        chosen = KTRR("auto", random_state=self.seed, **auto).fit(self.X).selection_
        assert chosen is not None
        return Settings(**{name: chosen.parameters[name] for name in asdict(Settings())})

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
        """The same fit with another level of its tree as labels; points stay where they are on the map.

        The name of a cluster stands at that of its points which is nearest to their mean: the mean itself may lie in
        another cluster.
        """
        start = time.perf_counter()
        labels = view.tree.labels_at(level)
        far = np.square(view.points - cluster_means(view.points, labels)[labels]).sum(axis=1)
        nearest = np.lexsort((far, labels))[np.r_[0, np.cumsum(np.bincount(labels))[:-1]]]
        shown = self._shown(view.model, labels, view.embedding)
        seconds = {"prepare": time.perf_counter() - start}
        return view._replace(**shown, centres=view.points[nearest], seconds=seconds, level=level)

    def _shown(self, model: Any, labels: Labels, Y: Array) -> dict[str, Any]:
        """What is shown of labels, whichever level they are."""
        W = model.affinity_matrix_
        ceiling = modularity_ceiling(W, labels)
        quality = {"separation": 1 - normalized_cut(W, labels), "components": float(model.n_components_)}
        quality["modularity"] = min(1.0, modularity(W, labels) / ceiling) if ceiling > 0 else 0.0
        if self.y is not None:
            quality |= {"accuracy": accuracy(self.y, labels), "nmi": normalized_mutual_info(self.y, labels)}
        members = most_typical(self.X, labels, Y)
        cells = cells_of(W, labels, N_CELLS)
        return {"labels": labels, "sizes": np.bincount(labels), "members": members, "quality": quality, "cells": cells}

    def tested(self, view: View) -> View:
        """The view with the p-values of its tree, as far as the model has them: may take seconds."""
        tree: ClusterTree = view.model.tree_
        is_same = np.array_equal(tree.merges, view.tree.merges)
        return view._replace(tree=tree if is_same else view.tree, is_tested=True)

    def explain(self, view: View, i: int, n: int = 8) -> Explanation:
        """The points that represent point `i` of the session, with the clusters that are shown."""
        return explained(i, n, view.model.coefficients_, view.labels)

    def python(self, view: View) -> str:
        """Lines that repeat this view in Python."""
        rows = "" if len(self.rows) == self.n_given else f"  # of the {len(self.rows)} sampled rows\n"
        n_clusters, *others = asdict(view.settings).items()
        given = "".join(f", {name}={value!r}" for name, value in others if value is not None)
        line = f"KTRR({n_clusters[1]}{given}, n_init={self.n_init}, random_state={self.seed}).fit(X)"
        labels = "labels_" if view.level is None else f"labels_at({view.level})"
        return f"from subspaces import KTRR\n\n{rows}model = {line}\nlabels = model.{labels}"

    def labels_table(self, view: View) -> str:
        """The labels as CSV: row in the data, id, cluster."""
        text = io.StringIO()
        rows = zip(self.rows.tolist(), self.ids, view.labels.tolist(), strict=True)
        write_rows(text, [("row", "id", "cluster"), *rows])
        return text.getvalue()

    def _fit(self, settings: Settings, **changed: Any) -> Any:
        parameters = {**asdict(settings), **changed}
        model = KTRR(**parameters, n_init=self.n_init, random_state=self.seed)
        return model.fit_by(self.X, partial(run, cache=self._cache))
