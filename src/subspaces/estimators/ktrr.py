"""KTRR, TRR, LSR1 and LSR2: ridge self-representation in a kernel space or in the input space, truncated or not."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from sklearn.utils._param_validation import StrOptions

from subspaces.engine.dimension import DIMENSION, spanning_neighbors
from subspaces.engine.plan import Plan
from subspaces.engine.ridge_routes import ridge_plan
from subspaces.engine.run import FitResult
from subspaces.estimators.base import COUNT
from subspaces.estimators.graph import GraphClusterer, WithGraph, WithKernel
from subspaces.kernels import Linear, as_kernel
from subspaces.utils.choices import GraphName, Ranking, Scaling, Solver, Spectral
from subspaces.utils.types import Data


@dataclass(eq=False, repr=False, kw_only=True)
class ByRidge(WithGraph):
    """What the ridge methods share: truncation, and the routes to their coefficients; a mixin.

    Parameters
    ----------
    reg : float, default=0.1
        λ divided by the mean diagonal of the kernel matrix.
    affine : bool, default=False
        Subspaces need not contain the origin: the coefficients of a sample sum to one, 1ᵀc = 1. Tracks of moving
        objects are such data. A shift of all samples then changes nothing, and λ is relative to K about the mean
        sample.
    n_nonzero : int, "dimension" or None, default=5
        η, coefficients kept per sample; None keeps all. ``"dimension"``: as many as span the piece that a sample lies
        on, one more than its dimension, which is estimated from the distances between neighbours.
    by : {"magnitude", "value"}, default="magnitude"
        What "largest" means.
    solver : {"auto", "dense", "low_rank", "two_scale"}, default="auto"
        ``"dense"``: Cholesky inverse of the n × n kernel matrix. ``"low_rank"``: the same coefficients through an
        explicit feature map, no n × n array; for the linear, cosine, polynomial and correntropy kernels; above 50,000
        samples the largest ones are found by a search. ``"two_scale"``: landmarks and small local systems, no n × n
        array, for the kernels of distances (:mod:`subspaces.representation.two_scale`). ``"auto"`` takes
        ``"low_rank"`` when the map has at most half as many features as there are samples, else ``"two_scale"`` where
        the inverse would take 1.5 times as long (from 3,400 samples of 50 features or 7,400 of 1,000 on; sparse ones
        above 10,000) or does not fit, else ``"dense"``; ``solver_reason_`` says why.
    spectral : {"auto", "full", "coarse"}, default="auto"
        ``"full"`` embeds the samples, ``"coarse"`` about 2000 micro-clusters (:mod:`subspaces.spectral.coarse`);
        ``"auto"`` does the latter from 30,000 samples. The modularity cut needs neither.

    Attributes
    ----------
    solver_ : str
        The route to the coefficients: "dense", "low_rank" or "two_scale".
    solver_reason_ : str
        Why this route was taken.
    n_nonzero_ : int or None
        η used.
    """

    reg: float = 0.1
    affine: bool = False
    n_nonzero: int | Literal["dimension"] | None = 5
    by: Ranking = "magnitude"
    solver: Solver = "auto"
    spectral: Spectral = "auto"

    _constraints: ClassVar[dict[str, list[Any]]] = {"n_nonzero": [COUNT, StrOptions({DIMENSION}), None]}
    _is_quick: ClassVar[bool] = True
    _constrained: ClassVar[bool] = True
    """Whether no point represents itself."""

    def _plan(self: Any, X: Data) -> Plan:
        if self.n_nonzero == DIMENSION:
            counted = copy(self)
            kernel = as_kernel(self.kernel, self.bandwidth, self.kernel_params) if hasattr(self, "kernel") else Linear()
            counted.n_nonzero = spanning_neighbors(X, kernel, self.scaling)
            return counted._plan(X)
        routes = {"solver": self.solver, "spectral": self.spectral, "constrained": self._constrained}
        return ridge_plan(self._outline(X), X, reg=self.reg, affine=self.affine, **routes)

    def _keep(self: Any, result: FitResult, X: Data) -> None:
        super()._keep(result, X)  # type: ignore[misc]
        self.n_nonzero_ = result.plan.graph.n_nonzero


@dataclass(eq=False, repr=False, kw_only=True)
class KTRR(ByRidge, WithKernel, GraphClusterer):
    """Kernel truncated regression representation (KTRR), Algorithm 1 of the paper.

    Each sample is written as a ridge combination of all others in a kernel space (closed form), only the strongest
    coefficients are kept, and the resulting graph is cut.

    References
    ----------
    Zhen, Peng, Wang, Yao: Kernel truncated regression representation for robust subspace clustering,
    Information Sciences 524 (2020) 59-76.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces import KTRR
    >>> angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    >>> ring = np.c_[np.cos(angle), np.sin(angle)]
    >>> X = np.vstack([ring, 3 * ring])
    >>> labels = KTRR(n_clusters=2).fit_predict(X)
    >>> len(set(labels[:60])), len(set(labels[60:])), labels[0] != labels[60]
    (1, 1, np.True_)
    """

    reg: float = 1.0

    _cost = "one Cholesky inverse, O(n³); O(n² r) with a feature map of r columns"
    _reference = "Zhen, Peng, Wang, Yao: Kernel truncated regression, Inf. Sci. 524 (2020) 59-76"


@dataclass(eq=False, repr=False, kw_only=True)
class TRR(ByRidge, GraphClusterer):
    """Truncated regression representation (TRR): KTRR with the linear kernel, for unions of linear or affine subspaces.

    With fewer than half as many features as samples no n × n matrix is made.

    References
    ----------
    Peng, Yi, Tang: Robust subspace clustering via thresholding ridge regression, AAAI 2015.

    Examples
    --------
    >>> from subspaces import TRR
    >>> TRR(n_clusters=2, reg=0.01).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    _cost = "one Cholesky inverse, O(n³); O(n² m) and no n × n array with few features"
    _reference = "Peng, Yi, Tang: Robust subspace clustering via thresholding ridge regression, AAAI 2015"


@dataclass(eq=False, repr=False, kw_only=True)
class LSR1(ByRidge, GraphClusterer):
    """Least squares regression with a zero diagonal (LSR1): TRR that keeps every coefficient.

    min ‖X − XZ‖² + λ‖Z‖², diag(Z) = 0, in closed form. Assumes linear subspaces and little noise: every pair of samples
    is joined, so weak coefficients between subspaces add up.

    ``n_nonzero=None`` and ``graph="column"`` keep all coefficients.

    Parameters
    ----------
    reg : float, default=0.1
        λ divided by the mean squared length of a sample.

    Examples
    --------
    >>> from subspaces import LSR1
    >>> LSR1(n_clusters=2).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    scaling: Scaling | None = "unit"
    n_nonzero: int | Literal["dimension"] | None = None
    graph: GraphName = "column"

    _cost = "one inverse, O(n³); O(n² m) with few features"
    _reference = (
        "Lu, Min, Zhao, Zhu, Huang, Yan: Robust and efficient subspace segmentation via least squares, ECCV 2012"
    )


@dataclass(eq=False, repr=False, kw_only=True)
class LSR2(ByRidge, GraphClusterer):
    """Least squares regression without the diagonal constraint (LSR2): Z = (XᵀX + λI)⁻¹XᵀX.

    As :class:`LSR1`, but a sample may represent itself; its diagonal grows with small λ and then hides the rest.

    With ``affine=True``, Z = I − λV (``subspaces.representation.ridge.affine_inverse``).

    Examples
    --------
    >>> from subspaces import LSR2
    >>> LSR2(n_clusters=2).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    scaling: Scaling | None = "unit"
    n_nonzero: int | Literal["dimension"] | None = None
    graph: GraphName = "column"

    _constrained = False
    _cost = LSR1._cost
    _reference = LSR1._reference
