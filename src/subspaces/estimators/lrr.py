"""LRR1, LRR2, LatLRR and KLRR: representations of low rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from sklearn.utils._param_validation import StrOptions

from subspaces.engine.plan import Context
from subspaces.estimators.graph import GraphClusterer, WithGraph, WithKernel
from subspaces.representation.coefficients import Coefficients
from subspaces.representation.latent_low_rank import latent_lrr
from subspaces.representation.low_rank import kernel_lrr, lrr
from subspaces.utils.choices import GraphName, Scaling
from subspaces.utils.types import Array


@dataclass(eq=False, repr=False, kw_only=True)
class LowRank(WithGraph):
    """Share the parameters of LRR1, LRR2 and LatLRR, which ``graph="row_space"`` treats as their authors do. A mixin.

    Parameters
    ----------
    error_weight : float, default=0.1
        λ, weight of the error beside the rank, for samples of unit length (``scaling="unit"``).
    tol : float, default=0.05
        Bound on the primal and dual residuals; at 0.05 the objective is within about 0.5 % of its minimum, at 0.001
        within 0.05 %, in three times the iterations.
    max_iter : int
        Steps after which to give up.
    """

    scaling: Scaling | None = "unit"
    graph: GraphName = "row_space"
    error_weight: float = 0.1
    tol: float = 0.05
    max_iter: int = 1000


@dataclass(eq=False, repr=False, kw_only=True)
class LRR2(LowRank, GraphClusterer):
    """Low-rank representation with column errors (LRR2): whole samples may be corrupted.

    min ‖Z‖_* + λ‖E‖₂,₁, X = XZ + E, solved in the row space of the data (r × n, not n × n).

    Examples
    --------
    >>> from subspaces import LRR2
    >>> LRR2(n_clusters=2).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    error_weight: float = 1.0
    tol: float = 1e-3

    _cost = "one SVD of the data, then tens of steps O(n m r), r the rank of Z; the graph is n × n"
    _reference = "Liu, Lin, Yan, Sun, Yu, Ma: Robust recovery of subspace structures, TPAMI 35 (2013)"

    def _represent(self, X: Array, context: Context) -> Coefficients:
        return lrr(X, reg=self.error_weight, error="l21", tol=self.tol, max_iter=self.max_iter)


@dataclass(eq=False, repr=False, kw_only=True)
class LRR1(LowRank, GraphClusterer):
    """Low-rank representation with sparse errors (LRR1): single features may be corrupted.

    min ‖Z‖_* + λ‖E‖₁, X = XZ + E, solved in the row space of the data.

    Examples
    --------
    >>> from subspaces import LRR1
    >>> LRR1(n_clusters=2, error_weight=1.0).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    _cost = LRR2._cost
    _reference = LRR2._reference

    def _represent(self, X: Array, context: Context) -> Coefficients:
        return lrr(X, reg=self.error_weight, error="l1", tol=self.tol, max_iter=self.max_iter)


@dataclass(eq=False, repr=False, kw_only=True)
class LatLRR(LowRank, GraphClusterer):
    """Latent low-rank representation (LatLRR): rows of the data help where samples are few.

    min ‖Z‖_* + ‖L‖_* + λ‖E‖₁, X = XZ + LX + E; Z makes the graph.

    Examples
    --------
    >>> from subspaces import LatLRR
    >>> LatLRR(n_clusters=2, error_weight=1.0).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    _cost = "as LRR1 with twice the work per step"
    _reference = "Liu, Yan: Latent low-rank representation, ICCV 2011"

    def _represent(self, X: Array, context: Context) -> Coefficients:
        return latent_lrr(X, reg=self.error_weight, tol=self.tol, max_iter=self.max_iter)


@dataclass(eq=False, repr=False, kw_only=True)
class KLRR(WithKernel, WithGraph, GraphClusterer):
    """Kernel low-rank representation (KLRR): LRR in a kernel space.

    min ‖Z‖_* + λ‖φ(X)(I − Z)‖₂,₁ ("l21", iterative) or + ½λ‖φ(X)(I − Z)‖²_F ("fro", closed form).

    Parameters
    ----------
    error_weight : float, default=10.0
        λ.
    error : {"fro", "l21"}, default="fro"
        Which error is measured; ``"l21"`` lets whole samples be wrong.
    tol, max_iter : float, int
        Bound on the residuals, and after how many steps to give up; no meaning for the closed form.

    Examples
    --------
    >>> from subspaces import KLRR
    >>> KLRR(n_clusters=2, kernel="linear").fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    graph: GraphName = "row_space"
    error_weight: float = 10.0
    error: Literal["l21", "fro"] = "fro"
    tol: float = 1e-3
    max_iter: int = 500

    _constraints: ClassVar[dict[str, list[Any]]] = {"error": [StrOptions({"l21", "fro"})]}
    _cost = "one eigendecomposition of K; tens of SVDs of its rank more for the l21 error"
    _reference = "Xiao, Tan, Xu, Dong: Robust kernel low-rank representation, TNNLS 27 (2016)"

    def _represent(self, K: Array, context: Context) -> Coefficients:
        return kernel_lrr(K, reg=self.error_weight, error=self.error, tol=self.tol, max_iter=self.max_iter)
