"""What KTRR and TRR share: the closed form, and the route to it that fits the number of points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import StrOptions

from subspaces import partition as cuts
from subspaces.embedding.coarse import coarse_embedding, smooth_labels
from subspaces.estimators.base import POSITIVE, SubspaceClusterer
from subspaces.graphs.affinity import affinity
from subspaces.graphs.truncation import truncate
from subspaces.kernels import DISTANCE_KERNELS, features, gram, n_features_out
from subspaces.numerics import memory
from subspaces.numerics.cells import Cells, build_cells
from subspaces.numerics.types import Array, Data, Labels, Sparse
from subspaces.representation import ridge_search as low_rank
from subspaces.representation import two_scale
from subspaces.representation.coefficients import Coefficients
from subspaces.representation.ridge import ridge, ridge_low_rank
from subspaces.scaling import apply_scaling

SOLVERS = ("auto", "dense", "low_rank", "two_scale")
DENSE_SIZE = 10_000
"""Points up to which ``solver="auto"`` inverts the kernel matrix: above, two-scale is at least ten times faster."""
COARSE_SIZE = 30_000
"""Points from which ``spectral="auto"`` embeds micro-clusters instead of points."""
_MICRO_CLUSTERS = 2000
_POINTS_PER_CLUSTER = 64
_DENSE_SQUARES = 1.1
_SEARCHED = 5  # copies of candidates and values that a search holds, measured
_WORK = 2**23
"""Bytes of a route's blocks, which do not grow with n."""


@dataclass(eq=False, repr=False, kw_only=True)
class RidgeClusterer(SubspaceClusterer):
    """What KTRR and TRR share: the closed form, dense, through a feature map, or in two scales."""

    reg: float = 1.0
    solver: str = "auto"
    spectral: str = "auto"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SubspaceClusterer._parameter_constraints,
        "reg": [POSITIVE],
        "solver": [StrOptions(set(SOLVERS))],
        "spectral": [StrOptions({"auto", "full", "coarse"})],
    }

    # ---------------------------------------------------------------- the legs that depend on the number of points

    def _kernel(self, X: Data) -> Data:
        """Data → kernel matrix, its feature map, or the points themselves, as the solver needs."""
        X = apply_scaling(X, self._scaling)
        self.kernel_ = self._settled_kernel(X)
        self.solver_, self.solver_reason_ = self._chosen_solver(X)
        if self.solver_ == "two_scale":
            self._require_two_scale(X)
            return X
        if self.solver_ == "low_rank":
            self._require_features(X)
            return features(X, self.kernel_)
        self._require_memory(X, _DENSE_SQUARES)
        return gram(X, self.kernel_)

    def _representation(self, K: Data) -> Coefficients:
        if self.solver_ == "two_scale":
            self._cells = build_cells(K, seed=self._seed)
            self._global = two_scale.fit_global_part(K, self.kernel_, self.reg, seed=self._seed)
            return two_scale.two_scale(
                K,
                kernel=self.kernel_,
                reg=self.reg,
                n_candidates=self._n_candidates(),
                cells=self._cells,
                model=self._global,
            )
        if self.solver_ == "low_rank":
            if K.shape[0] > low_rank.EXACT_SIZE and self.n_nonzero is not None and not sparse.issparse(K):
                return low_rank.ridge_search(K, reg=self.reg, n_candidates=self._n_candidates(), seed=self._seed)
            return ridge_low_rank(K, reg=self.reg)
        return ridge(K, reg=self.reg, overwrite=True)

    def _connects(self, n: int) -> bool:
        """Not where micro-clusters are embedded: the graph between them ties the pieces."""
        return self.connect and (self.partition == "modularity" or not self._is_coarse(n))

    def _embed(self, W: Sparse) -> Data:
        self._micro: Array | None = None
        if self.partition == "modularity" or not self._is_coarse(W.shape[0]):
            return super()._embed(W)
        assert self.n_clusters is not None
        X = apply_scaling(self._X, self._scaling)
        cells = build_cells(X, size=max(32, len(X) // _MICRO_CLUSTERS), seed=self._seed)
        groups = cells.labels()
        found = coarse_embedding(W, groups, cells.centroids, self.n_clusters, self._between(cells))
        self._micro, self.eigenvalues_ = found.rows, found.eigenvalues
        self._embedding = found.rows[groups].astype(W.dtype)
        return groups

    def _partition(self, Y: Data) -> Labels:
        if self._micro is None:
            return super()._partition(Y)
        assert self.n_clusters is not None
        labels = cuts.cut_embedding(
            self._micro, self.n_clusters, method=self.partition, n_init=self.n_init, init=self.init, seed=self._seed
        )
        self._micro = None
        return smooth_labels(self.affinity_matrix_, labels[Y], self.n_clusters)

    def _as_given(self, X: Data, prints: Array, order: Labels, place: Labels) -> None:
        super()._as_given(X, prints, order, place)
        if self._is_two_scale():
            self._cells = replace(self._cells, order=order[self._cells.order])

    def _between(self, cells: Cells) -> Sparse:
        """The graph of the same method between the micro-clusters' centroids."""
        K = gram(cells.centroids.astype(np.float64), self.kernel_)
        return affinity(truncate(ridge(K, reg=self.reg, overwrite=True), two_scale.N_CANDIDATES, graph="symmetric"))

    # ---------------------------------------------------------------- the choices

    def _require_features(self, X: Data) -> None:
        """Refuse before allocating a feature map that does not fit; that of a linear kernel is the points.

        Beside the map there are H, as large, its copy in single precision, and r × r arrays.
        """
        n, r = X.shape[0], n_features_out(self.kernel_, X.shape[1], sparse.issparse(X)) or 0
        is_map, is_double = self.kernel_.name not in ("linear", "cosine"), X.dtype == np.float64
        n_copies = is_map + 1 + 0.5 * is_double
        per_point = 0 if n <= low_rank.EXACT_SIZE else _SEARCHED * self._n_candidates() * (X.dtype.itemsize + 4)
        memory.require(
            int(n_copies * n * r * X.dtype.itemsize + n * per_point + 32 * r**2 + _WORK),
            f"the feature map of the {self.kernel_.name} kernel, {n} × {r},",
            'Use solver="dense", fewer features, or fit a sample and let predict label the rest.',
        )

    def _require_two_scale(self, X: Data) -> None:
        """Refuse what is linear in n and still does not fit: points in order of cells, features, candidates."""
        n, m = X.shape
        size = X.dtype.itemsize
        per_point = (m + two_scale._LEADING) * size + 2 * self._n_candidates() * (size + 4)
        memory.require(
            n * per_point + _WORK,
            f"the two-scale graph of {n} points",
            "Let EKTRR cluster a sample and label the rest; float32 input halves it.",
        )

    def _n_candidates(self) -> int:
        return max(two_scale.N_CANDIDATES, 2 * (self._n_kept() or 0))

    def _chosen_solver(self, X: Data) -> tuple[str, str]:
        n, m = X.shape
        r = n_features_out(self.kernel_, m, sparse.issparse(X))
        two_scale_fits = self.kernel_.name in DISTANCE_KERNELS and not sparse.issparse(X)
        if self.solver == "low_rank" and r is None:
            raise ValueError(
                f'solver="low_rank" needs a kernel with an explicit feature map (linear, cosine, polynomial, '
                f"correntropy); got {self.kernel_.name!r}."
            )
        if self.solver == "two_scale" and not two_scale_fits:
            raise ValueError(
                f'solver="two_scale" needs dense points and a kernel of distances {DISTANCE_KERNELS}; got the kernel '
                f"{self.kernel_.name!r} on {'sparse' if sparse.issparse(X) else 'dense'} points."
            )
        if self.solver != "auto":
            return self.solver, "as asked"
        if r is not None and 2 * r <= n:
            return "low_rank", f"the kernel has an exact map of {r} features, fewer than half of {n} points"
        needed, free = int(_DENSE_SQUARES * n * n * X.dtype.itemsize), memory.available_bytes()
        if two_scale_fits and n > DENSE_SIZE:
            return "two_scale", f"{n} points are more than {DENSE_SIZE}, where a dense inverse takes long"
        if two_scale_fits and needed > free:
            return "two_scale", f"a dense inverse needs {needed / 2**30:.3g} GiB and {free / 2**30:.3g} GiB are free"
        return "dense", f"the {n} × {n} kernel matrix fits"

    def _is_coarse(self, n: int) -> bool:
        if self.spectral == "coarse" and (self._X is None or sparse.issparse(self._X)):
            raise ValueError('spectral="coarse" needs dense points, not a precomputed kernel or a sparse array.')
        if self.spectral == "coarse" and n < _POINTS_PER_CLUSTER * (self.n_clusters or 1):
            raise ValueError(
                f'spectral="coarse" needs {_POINTS_PER_CLUSTER} points per cluster or more, for it cuts groups of 32; '
                f'got {n} points and n_clusters={self.n_clusters}. Use spectral="full".'
            )
        if self.spectral != "auto":
            return self.spectral == "coarse"
        return n >= COARSE_SIZE and self._X is not None and not sparse.issparse(self._X)

    # ---------------------------------------------------------------- new points

    def _rows_at_once(self, n: int) -> int:
        return 8192 if self._is_two_scale() else super()._rows_at_once(n)

    def _codes(self, X: Data) -> Sparse:
        if not self._is_two_scale():
            return super()._codes(X)
        train = apply_scaling(self._X, self._scaling)
        candidates, values = two_scale.represent_new(X, train, self._cells, self._global, 2 * self._n_candidates())
        strongest = np.argsort(-np.abs(values), axis=1, kind="stable")[:, : self._n_kept() or 5]
        values = np.take_along_axis(values, strongest, axis=1)
        columns = np.take_along_axis(candidates, strongest, axis=1)
        indptr = np.arange(len(values) + 1) * values.shape[1]
        return sparse.csr_array((values.ravel(), columns.ravel(), indptr), shape=(len(values), len(train)))

    def _is_two_scale(self) -> bool:
        return getattr(self, "solver_", None) == "two_scale"
