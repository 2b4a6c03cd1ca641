"""SMCE, LSA, TSC and SC: graphs from each sample's neighbourhood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions

from subspaces.engine.plan import Context
from subspaces.estimators.base import COUNT, POSITIVE
from subspaces.estimators.graph import GraphClusterer, WithGraph
from subspaces.graphs.affinity import affinity
from subspaces.graphs.local import heat_kernel_graph, lsa
from subspaces.kernels import BANDWIDTHS, RBF
from subspaces.representation.coefficients import Coefficients
from subspaces.representation.neighbors import smce, tsc
from subspaces.utils.choices import Bandwidth, GraphName
from subspaces.utils.types import Array, Sparse


@dataclass(eq=False, repr=False, kw_only=True)
class SMCE(WithGraph, GraphClusterer):
    """Sparse manifold clustering and embedding (SMCE): few neighbours that span the sample affinely.

    Per sample an ℓ1 problem over its nearest neighbours that prefers close ones; for samples on curved manifolds.

    With ``graph="larger"`` the weights of each sample up to 95 % of their sum are kept and the larger of both
    directions counts, as in the authors' program.

    Parameters
    ----------
    reg : float, default=10
        λ, weight of sparsity beside the error.
    n_neighbors : int, default=20
        Candidates per sample.
    tol, max_iter : float, int
        Bound on the residuals of the small problems, and after how many steps to give up.

    Examples
    --------
    >>> from subspaces import SMCE
    >>> SMCE(n_clusters=2, n_neighbors=2).fit_predict([[1, 0], [2, 0], [3, 0], [0, 5], [0, 6], [0, 7]])
    array([0, 0, 0, 1, 1, 1])
    """

    graph: GraphName = "larger"
    reg: float = 10.0
    n_neighbors: int = 20
    tol: float = 1e-6
    max_iter: int = 10_000

    _n_squares = 0
    _is_sparse = True
    _cost = "neighbour search, then n small problems at once"
    _reference = "Elhamifar, Vidal: Sparse manifold clustering and embedding, NIPS 2011"

    def _represent(self, X: Array, context: Context) -> Coefficients:
        n_neighbors = min(self.n_neighbors, X.shape[0] - 1)
        return smce(X, reg=self.reg, n_neighbors=n_neighbors, tol=self.tol, max_iter=self.max_iter)


@dataclass(eq=False, repr=False, kw_only=True)
class LSA(GraphClusterer):
    """Local subspace affinity (LSA): samples whose neighbourhoods span the same subspace.

    A subspace is fitted to each sample's neighbours; the affinity falls with the principal angles between them.

    Parameters
    ----------
    subspace_dim : int, default=4
        Dimension d of the local subspaces.
    n_neighbors : int, default=6
        Neighbours that span them.
    rank : int or None
        Dimension the data is projected to first; None keeps 98 % of its energy.

    Examples
    --------
    >>> from subspaces import LSA
    >>> LSA(n_clusters=2, subspace_dim=1, n_neighbors=2).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    subspace_dim: int = 4
    n_neighbors: int = 6
    rank: int | None = None

    _constraints: ClassVar[dict[str, list[Any]]] = {"subspace_dim": [COUNT], "rank": [COUNT, None]}
    _represents = False
    _cost = "one SVD, n small SVDs and O(n² d² r)"
    _reference = "Yan, Pollefeys: A general framework for motion segmentation, ECCV 2006"

    def _affinity(self, X: Array, exponent: int) -> Array:
        n, m = X.shape
        n_neighbors = min(self.n_neighbors, n - 1)
        subspace_dim = min(self.subspace_dim, m, n_neighbors + 1)
        rank = None if self.rank is None else min(self.rank, n, m)
        return lsa(X, subspace_dim=subspace_dim, n_neighbors=n_neighbors, rank=rank)


@dataclass(eq=False, repr=False, kw_only=True)
class TSC(GraphClusterer):
    """Thresholding-based subspace clustering (TSC): the most correlated samples, nothing solved.

    Each sample is joined to the η others at the smallest angles, with weight exp(−2 angle). Very fast; for subspaces
    that are not too close.

    Parameters
    ----------
    n_nonzero : int, default=10
        η, neighbours per sample.

    Examples
    --------
    >>> from subspaces import TSC
    >>> TSC(n_clusters=2).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    n_nonzero: int = 10

    _constraints: ClassVar[dict[str, list[Any]]] = {"n_nonzero": [COUNT]}
    _represents = False
    _is_quick = True
    _n_squares = 0
    _n_copies = 1.25
    _cost = "one product XXᵀ in blocks, no n × n array"
    _reference = "Heckel, Bölcskei: Robust subspace clustering via thresholding, IEEE Trans. IT 61 (2015)"

    def _affinity(self, X: Array, exponent: int) -> Sparse:
        return affinity(tsc(X, n_neighbors=min(self.n_nonzero, X.shape[0] - 1)).sparse())


@dataclass(eq=False, repr=False, kw_only=True)
class SC(GraphClusterer):
    """Plain spectral clustering (SC) as the paper compares with: a Gaussian of the distances, no representation.

    W_ij = exp(−d²/σ²) between all samples (eq. 2.0, whose σ² is half of this one) or between nearest neighbours.

    Parameters
    ----------
    bandwidth : {"rms", "mean", "median", "local"} or float, default="rms"
        σ, as in :class:`~subspaces.KTRR`; ``"local"`` gives each sample its own, the distance to its last neighbour.
    n_neighbors : int or None
        Join each sample to this many neighbours only; None joins all pairs.

    Examples
    --------
    >>> from subspaces import SC
    >>> SC(n_clusters=2).fit_predict([[0, 0], [0, 1], [1, 0], [9, 9], [9, 8], [8, 9]])
    array([0, 0, 0, 1, 1, 1])
    """

    bandwidth: float | Bandwidth | Literal["local"] = "rms"
    n_neighbors: int | None = None

    _constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [COUNT, None],
        "bandwidth": [StrOptions({*BANDWIDTHS, "local"}), POSITIVE],
    }
    _represents = False
    _is_quick = True
    _cost = "one product XXᵀ and n² exponentials"
    _reference = "Ng, Jordan, Weiss: On spectral clustering, NIPS 2001"

    def _squares(self) -> float:
        return self._n_squares if self.n_neighbors is None else 0

    def _affinity(self, X: Array, exponent: int) -> Array | Sparse:
        n_neighbors = None if self.n_neighbors is None else min(self.n_neighbors, X.shape[0] - 1)
        bandwidth: float | str | None = "local" if self.bandwidth == "local" else None
        if self.bandwidth not in ("rms", "local"):  # that one costs nothing where the distances are computed anyway
            bandwidth = RBF(self.bandwidth).scaled(exponent).fit(X).sigma / np.sqrt(2)
        return heat_kernel_graph(X, bandwidth=bandwidth, n_neighbors=n_neighbors)
