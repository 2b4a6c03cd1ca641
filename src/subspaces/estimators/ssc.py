"""SSC and KSSC, and the sparse methods users pick today: EnSC and SSC-OMP."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from subspaces.engine.plan import Context
from subspaces.estimators.base import COUNT
from subspaces.estimators.graph import GraphClusterer, WithGraph, WithKernel
from subspaces.representation.coefficients import Coefficients
from subspaces.representation.elastic_net import elastic_net
from subspaces.representation.matching_pursuit import orthogonal_matching_pursuit
from subspaces.representation.ridge import warn_if_indefinite
from subspaces.representation.sparse import ADMM_SQUARES, kssc, ssc, ssc_admm
from subspaces.utils.choices import GraphName, Scaling
from subspaces.utils.types import Array


@dataclass(eq=False, repr=False, kw_only=True)
class SSC(WithGraph, GraphClusterer):
    """Sparse subspace clustering (SSC): each sample by as few others as possible.

    min ‖C‖₁ (+ λ_e‖E‖₁) + ½λ‖X − XC − E‖², diag(C) = 0, and 1ᵀC = 1 for affine subspaces. Solves the stated problem
    (the authors' program does not: it converges elsewhere). Wins where subspaces intersect and noise is small; few
    coefficients may leave a subspace in pieces.

    ``graph="mass"`` is the authors' treatment of C.

    Parameters
    ----------
    error_weight : float, default=20
        λ = error_weight/μ, μ the smallest over samples of the largest |xᵢᵀxⱼ|; below 1 some samples get no coefficient.
    affine : bool, default=False
        Subspaces need not contain the origin.
    outliers : bool, default=False
        Allow sparse large errors E in the data (corrupted features).
    solver : {"exact", "admm"}, default="exact"
        ``"admm"`` are the iterations of the authors' program, which stop before the minimum: with ``tol=2e-4`` for
        their published figures (:func:`subspaces.representation.sparse.ssc_admm`).
    tol, max_iter : float, int
        When the optimality conditions count as met, and after how many rounds to give up.

    Examples
    --------
    >>> from subspaces import SSC
    >>> SSC(n_clusters=2).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    scaling: Scaling | None = "unit"
    graph: GraphName = "mass"
    error_weight: float = 20.0
    affine: bool = False
    outliers: bool = False
    solver: str = "exact"
    tol: float = 1e-4
    max_iter: int = 200

    _constraints: ClassVar[dict[str, list[Any]]] = {"outliers": ["boolean"], "solver": [StrOptions({"exact", "admm"})]}
    _n_squares = 2.25
    _cost = "3 to 20 inverses of K at error_weight 20 to 100; grows with error_weight"
    _reference = "Elhamifar, Vidal: Sparse subspace clustering, TPAMI 35 (2013) 2765-2781"

    def _squares(self) -> float:
        return ADMM_SQUARES if self.solver == "admm" else self._n_squares

    def _represent(self, X: Array, context: Context) -> Coefficients:
        if self.solver == "admm":
            if self.outliers:
                raise ValueError('outliers=True needs solver="exact"; got solver="admm", which has no outliers.')
            return ssc_admm(X, error_weight=self.error_weight, affine=self.affine, tol=self.tol, max_iter=self.max_iter)
        return ssc(
            X,
            error_weight=self.error_weight,
            affine=self.affine,
            outliers=self.outliers,
            tol=self.tol,
            max_iter=self.max_iter,
        )


@dataclass(eq=False, repr=False, kw_only=True)
class KSSC(WithKernel, WithGraph, GraphClusterer):
    """Kernel sparse subspace clustering (KSSC): SSC in a kernel space.

    min ‖C‖₁ + ½λ tr((I − C)ᵀK(I − C)), diag(C) = 0. For curved subspaces; needs the kernel matrix only.

    Parameters
    ----------
    error_weight : float, default=20
        λ = error_weight/μ, μ the smallest over samples of the largest kernel value; below 1 some get no coefficient.
    affine : bool, default=False
        Subspaces need not contain the origin.
    tol, max_iter : float, int
        When the optimality conditions count as met, and after how many rounds to give up.

    Examples
    --------
    >>> from subspaces import KSSC
    >>> KSSC(n_clusters=2, kernel="linear").fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    graph: GraphName = "mass"
    error_weight: float = 20.0
    affine: bool = False
    tol: float = 1e-4
    max_iter: int = 200

    _n_squares = 2.25
    _cost = "3 to 20 inverses of K at error_weight 20 to 100; grows with error_weight"
    _reference = "Patel, Vidal: Kernel sparse subspace clustering, ICIP 2014"

    def _represent(self, K: Array, context: Context) -> Coefficients:
        found = kssc(K, error_weight=self.error_weight, affine=self.affine, tol=self.tol, max_iter=self.max_iter)
        if found.trace is not None and not found.trace.converged:
            warn_if_indefinite(K)
        return found


@dataclass(eq=False, repr=False, kw_only=True)
class EnSC(WithGraph, GraphClusterer):
    """Elastic-net subspace clustering (EnSC): sparse like SSC, connected like LSR.

    Per sample min τ‖c‖₁ + ½(1 − τ)‖c‖² + ½γ‖x − Xᵀc‖², c_i = 0, by an active set over all points at once. The most
    accurate linear method where subspaces intersect.

    ``graph="unit"`` scales the columns of C to length 1, as the authors' program.

    Parameters
    ----------
    error_weight : float, default=50
        Weight of the data term relative to its smallest useful value, as in the authors' program.
    l1_ratio : float in (0, 1], default=0.9
        τ; 1 is SSC.
    tol, max_iter : float, int
        When the optimality conditions count as met, and after how many rounds to give up.

    Examples
    --------
    >>> from subspaces import EnSC
    >>> EnSC(n_clusters=2).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    graph: GraphName = "unit"
    error_weight: float = 50.0
    l1_ratio: float = 0.9
    tol: float = 1e-6
    max_iter: int = 100

    _constraints: ClassVar[dict[str, list[Any]]] = {"l1_ratio": [Interval(Real, 0, 1, closed="right")]}
    _n_squares = 0
    _is_sparse = True
    _n_copies = 2
    _cost = "O(n² m) per round, O(k³) per point of k coefficients: n = 2000 in seconds at tens, minutes at hundreds"
    _reference = "You, Li, Robinson, Vidal: Oracle based active set algorithm, CVPR 2016"

    def _represent(self, X: Array, context: Context) -> Coefficients:
        return elastic_net(
            X, error_weight=self.error_weight, l1_ratio=self.l1_ratio, tol=self.tol, max_iter=self.max_iter
        )


@dataclass(eq=False, repr=False, kw_only=True)
class SSCOMP(WithGraph, GraphClusterer):
    """SSC by orthogonal matching pursuit (SSC-OMP): greedy, fast, for clean data.

    Each sample picks up to η others, one at a time, the one most correlated with what is left of it.

    ``graph="unit"`` scales the columns of C to length 1, as the authors' program.

    Parameters
    ----------
    n_nonzero : int, default=5
        η, largest number of coefficients per sample; the dimension of the subspaces is a good value.
    offset : float, default=0.1
        Size, relative to a typical sample, of a constant feature that is appended: samples on opposite sides of the
        origin are then told apart, and subspaces need not quite contain it. 0 is the authors' program.
    tol : float, default=1e-6
        A sample is done when what is left of it is shorter than this.

    Examples
    --------
    >>> from subspaces import SSCOMP
    >>> SSCOMP(n_clusters=2, n_nonzero=1).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    n_nonzero: int = 5
    graph: GraphName = "unit"
    offset: float = 0.1
    tol: float = 1e-6

    _constraints: ClassVar[dict[str, list[Any]]] = {
        "n_nonzero": [COUNT],
        "offset": [Interval(Real, 0, None, closed="left")],
    }
    _n_squares = 0
    _is_sparse = True
    _n_copies = 2
    _cost = "O(η n² m), no n × n array"
    _reference = "You, Robinson, Vidal: Scalable SSC by orthogonal matching pursuit, CVPR 2016"

    def _represent(self, X: Array, context: Context) -> Coefficients:
        if self.offset:
            length = self.offset * np.sqrt(np.einsum("ij,ij->i", X, X).mean())
            X = np.column_stack([X, np.full(len(X), length, dtype=X.dtype)])
        return orthogonal_matching_pursuit(X, n_nonzero=self.n_nonzero, tol=self.tol)
