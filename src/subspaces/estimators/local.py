"""SMCE, LSA, TSC and SC: graphs from each point's neighbourhood."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from subspaces.estimators.base import POSITIVE, SubspaceClusterer
from subspaces.estimators.ssc import ITERATIONS
from subspaces.graphs.local import heat_kernel_graph, lsa
from subspaces.graphs.postprocessing import keep_column_mass
from subspaces.numerics.distances import resolve_bandwidth, warn_if_blind
from subspaces.numerics.types import Array, Data, Sparse
from subspaces.representation.coefficients import Coefficients, from_dense, from_sparse
from subspaces.representation.smce import smce
from subspaces.representation.thresholding import tsc

_COUNT = Interval(Integral, 1, None, closed="left")


@dataclass(eq=False, repr=False, kw_only=True)
class SMCE(SubspaceClusterer):
    """Sparse manifold clustering and embedding (SMCE): few neighbours that span the point affinely.

    Per point an ℓ1 problem over its nearest neighbours that prefers close ones; for points on curved manifolds.

    Parameters
    ----------
    reg : float, default=10
        λ, weight of sparsity.
    n_neighbors : int, default=20
        Candidates per point.
    tol, max_iter
        Bound on the residuals of the small problems, and after how many steps to give up.
    n_clusters, scaling, n_nonzero, by, graph, graph_params, partition, n_init, init, connect
        As in :class:`~subspaces.KTRR`; the weights of each point up to 95 % of their sum are kept and the larger of
        both directions counts, as in the authors' program.
    out_of_sample, random_state
        As in :class:`~subspaces.KTRR`.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces import SMCE
    >>> angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    >>> ring = np.c_[np.cos(angle), np.sin(angle)]
    >>> labels = SMCE(n_clusters=2, n_neighbors=6).fit_predict(np.vstack([ring, 3 * ring]))
    >>> len(set(labels[:60])), len(set(labels[60:]))
    (1, 1)
    """

    graph: str = "column"
    n_nonzero: int | None = None
    reg: float = 10.0
    n_neighbors: int = 20
    tol: float = 1e-6
    max_iter: int = 10_000

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SubspaceClusterer._parameter_constraints,
        **ITERATIONS,
        "reg": [POSITIVE],
        "n_neighbors": [_COUNT],
    }
    _n_squares: ClassVar[float] = 0
    cost: ClassVar[str] = "neighbour search, then n small problems at once"
    reference: ClassVar[str] = "Elhamifar, Vidal: Sparse manifold clustering and embedding, NIPS 2011"

    def _representation(self, X: Array) -> Coefficients:
        n_neighbors = min(self.n_neighbors, X.shape[0] - 1)
        found = smce(X, reg=self.reg, n_neighbors=n_neighbors, tol=self.tol, max_iter=self.max_iter)
        return from_sparse(_half(_larger_of_both(abs(keep_column_mass(found.sparse(), 0.95)))), found.trace)


@dataclass(eq=False, repr=False, kw_only=True)
class LSA(SubspaceClusterer):
    """Local subspace affinity (LSA): points whose neighbourhoods span the same subspace.

    A subspace is fitted to each point's neighbours; the affinity falls with the principal angles between them.

    Parameters
    ----------
    subspace_dim : int, default=4
        Dimension d of the local subspaces.
    n_neighbors : int, default=6
        Neighbours that span them.
    rank : int or None
        Dimension the data is projected to first; None keeps 98 % of its energy.
    n_clusters, scaling, n_nonzero, by, graph, graph_params, partition, n_init, init, connect
        As in :class:`~subspaces.KTRR`; by default the whole affinity is cut.
    out_of_sample, random_state
        As in :class:`~subspaces.KTRR`.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces import LSA
    >>> X = np.kron(np.eye(2), np.random.default_rng(0).normal(size=(20, 3)))
    >>> labels = LSA(n_clusters=2, subspace_dim=3).fit_predict(X)
    >>> len(set(labels[:20])), len(set(labels[20:]))
    (1, 1)
    """

    graph: str = "column"
    n_nonzero: int | None = None
    subspace_dim: int = 4
    n_neighbors: int = 6
    rank: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SubspaceClusterer._parameter_constraints,
        "subspace_dim": [_COUNT],
        "n_neighbors": [_COUNT],
        "rank": [_COUNT, None],
    }
    cost: ClassVar[str] = "one SVD, n small SVDs and O(n² d² r)"
    reference: ClassVar[str] = "Yan, Pollefeys: A general framework for motion segmentation, ECCV 2006"

    def _representation(self, X: Array) -> Coefficients:
        n, m = X.shape
        n_neighbors = min(self.n_neighbors, n - 1)
        subspace_dim = min(self.subspace_dim, m, n_neighbors + 1)
        rank = None if self.rank is None else min(self.rank, n, m)
        return from_dense(lsa(X, subspace_dim=subspace_dim, n_neighbors=n_neighbors, rank=rank) / 2)


@dataclass(eq=False, repr=False, kw_only=True)
class TSC(SubspaceClusterer):
    """Thresholding-based subspace clustering (TSC): the most correlated points, nothing solved.

    Each point is joined to the η others at the smallest angles, with weight exp(−2 angle). Very fast; for subspaces
    that are not too close.

    Parameters
    ----------
    n_nonzero : int, default=10
        η, neighbours per point.
    n_clusters, scaling, by, graph, graph_params, partition, n_init, init, connect
        As in :class:`~subspaces.KTRR`.
    out_of_sample, random_state
        As in :class:`~subspaces.KTRR`.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces import TSC
    >>> X = np.kron(np.eye(2), np.random.default_rng(0).normal(size=(20, 3)))
    >>> labels = TSC(n_clusters=2).fit_predict(X)
    >>> len(set(labels[:20])), len(set(labels[20:]))
    (1, 1)
    """

    graph: str = "column"
    n_nonzero: int | None = 10

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SubspaceClusterer._parameter_constraints,
        "n_nonzero": [_COUNT],
    }
    _n_squares: ClassVar[float] = 0
    _n_copies: ClassVar[float] = 1.25
    cost: ClassVar[str] = "one product XXᵀ in blocks, no n × n array"
    reference: ClassVar[str] = "Heckel, Bölcskei: Robust subspace clustering via thresholding, IEEE Trans. IT 61 (2015)"

    def _representation(self, X: Array) -> Coefficients:
        assert self.n_nonzero is not None
        return tsc(X, n_neighbors=min(self.n_nonzero, X.shape[0] - 1))


@dataclass(eq=False, repr=False, kw_only=True)
class SC(SubspaceClusterer):
    """Plain spectral clustering (SC) as the paper compares with: a Gaussian of the distances, no representation.

    W_ij = exp(−d²/(2σ²)) between all points (eq. 2.0) or between nearest neighbours.

    Parameters
    ----------
    bandwidth : float or None
        σ; None makes 2σ² the mean of the squared distances.
    n_neighbors : int or None
        Join each point to this many neighbours only; None joins all pairs.
    n_clusters, scaling, n_nonzero, by, graph, graph_params, partition, n_init, init, connect
        As in :class:`~subspaces.KTRR`; by default the whole affinity is cut.
    out_of_sample, random_state
        As in :class:`~subspaces.KTRR`.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces import SC
    >>> angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    >>> ring = np.c_[np.cos(angle), np.sin(angle)]
    >>> labels = SC(n_clusters=2, n_neighbors=5).fit_predict(np.vstack([ring, 3 * ring]))
    >>> len(set(labels[:60])), len(set(labels[60:]))
    (1, 1)
    """

    graph: str = "column"
    n_nonzero: int | None = None
    bandwidth: float | None = None
    n_neighbors: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SubspaceClusterer._parameter_constraints,
        "bandwidth": [POSITIVE, None],
        "n_neighbors": [_COUNT, None],
    }
    cost: ClassVar[str] = "one product XXᵀ and n² exponentials"
    reference: ClassVar[str] = "Ng, Jordan, Weiss: On spectral clustering, NIPS 2001"

    def _require_memory(self, X: Data, n_squares: float) -> None:
        super()._require_memory(X, n_squares if self.n_neighbors is None else 0)

    def _representation(self, X: Array) -> Coefficients:
        n_neighbors = None if self.n_neighbors is None else min(self.n_neighbors, X.shape[0] - 1)
        bandwidth = None if self.bandwidth is None else float(np.ldexp(self.bandwidth, -self._scaling.exponent))
        if bandwidth is not None:
            warn_if_blind(X, resolve_bandwidth(X, bandwidth) * np.sqrt(2), 2)
        W = heat_kernel_graph(X, bandwidth=bandwidth, n_neighbors=n_neighbors)
        return from_dense(W / 2) if n_neighbors is None else from_sparse(_half(W))


def _larger_of_both(C: Sparse) -> Sparse:
    return C.maximum(C.T)


def _half(W: Sparse) -> Sparse:
    """The affinity leg adds the transpose: hand it half of a symmetric matrix."""
    half = W.tocsc(copy=True)
    half.data /= 2
    return half
