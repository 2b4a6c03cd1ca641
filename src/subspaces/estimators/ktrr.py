"""KTRR, TRR, LSR1 and LSR2: ridge self-representation in a kernel space or in the input space, truncated or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from subspaces.engine.plan import Plan
from subspaces.engine.run import FitResult
from subspaces.estimators.graph import GraphClusterer
from subspaces.estimators.resolve import AUTOMATIC, keep_choice, settle
from subspaces.estimators.ridge import ridge_plan
from subspaces.kernels import KernelLike
from subspaces.utils.types import Data


@dataclass(eq=False, repr=False, kw_only=True)
class ByRidge:
    """Beside :class:`GraphClusterer`, what these methods share: truncation, and the routes to their coefficients."""

    reg: float | str = 0.1
    affine: bool = False
    n_nonzero: int | str | None = 5
    by: str = "magnitude"
    graph: str = "symmetric"
    graph_params: Mapping[str, Any] | None = None
    connect: bool = True
    solver: str = "auto"
    spectral: str = "auto"

    _is_quick: ClassVar[bool] = True
    _constrained: ClassVar[bool] = True
    """Whether no point represents itself."""
    _chooses: ClassVar[bool] = False
    """Whether parameters may be ``"auto"``."""

    def resolve_auto(self: Any, X: Data) -> Any:
        """Itself, or a copy with what was left to be chosen for the points X."""
        if not self._chooses:
            return self
        resolved, self.selection_ = settle(self, X)
        return resolved

    def _plan(self: Any, X: Data) -> Plan:
        routes = {"solver": self.solver, "spectral": self.spectral, "constrained": self._constrained}
        return ridge_plan(self._outline(X), X, reg=self.reg, affine=self.affine, **routes)

    def _keep(self: Any, result: FitResult, X: Data, resolved: Any) -> None:
        super()._keep(result, X, resolved)  # type: ignore[misc]
        if self._chooses:
            keep_choice(self, resolved)


@dataclass(eq=False, repr=False, kw_only=True)
class KTRR(ByRidge, GraphClusterer):
    """Kernel truncated regression representation (KTRR), Algorithm 1 of the paper.

    Each point is written as a ridge combination of all others in a kernel space (closed form), only the strongest
    coefficients are kept, and the resulting graph is cut.

    `n_clusters`, `kernel`, `scaling`, `reg`, `n_nonzero` and `partition` may each be ``"auto"``: then they are chosen
    from the points alone (:func:`subspaces.selection.choose`), at the cost of some eight fits, and ``selection_``
    shows everything that was tried.

    Parameters
    ----------
    n_clusters : int, "auto" or None, default=8
        Number of subspaces L. None lets ``partition="modularity"`` find it.
    kernel : str, callable or Kernel, default="rbf"
        See :mod:`subspaces.kernels`: ``"rbf"`` exp(−d²/σ²), ``"exponential"``, ``"inverse_square"``,
        ``"inverse_distance"`` (bounded forms of the paper's 1/d² and 1/d), ``"quadratic"``, ``"cubic"``,
        ``"polynomial"``, ``"linear"``, ``"cosine"``, ``"correntropy"`` (robust to corrupted features),
        ``"precomputed"``, a callable ``kernel(X, Y)``, or a :class:`~subspaces.kernels.Kernel` object.
    bandwidth : {"rms", "mean", "median"} or float, default="rms"
        σ of the distance kernels: root mean squared distance, mean distance, median distance or a number.
    kernel_params : dict or None
        ``degree``, ``gamma``, ``coef0`` of the polynomial kernel; keywords of a callable.
    scaling : {None, "unit", "max", "standard", "minmax", "log"}, default=None
        Scaling of the input; ``"unit"`` scales each row to length 1, as the authors' program did; ``"log"`` is for
        counts.
    reg : float, default=1.0
        λ divided by the mean diagonal of the kernel matrix.
    affine : bool, default=False
        Subspaces need not contain the origin: the coefficients of a point sum to one, 1ᵀc = 1. Tracks of moving
        objects are such data. A shift of all points then changes nothing, and λ is relative to K about the mean point.
    n_nonzero : int or None, default=5
        η, coefficients kept per point; None keeps all.
    by : {"magnitude", "value"}, default="magnitude"
        What "largest" means.
    graph : {"symmetric", "column", "mass", "row_space", "dscnet"}, default="symmetric"
        ``"column"`` truncates the columns of C as printed; ``"symmetric"`` scales and symmetrises first, as the
        authors' program did; the others are the treatments of SSC, LRR and DSC-Net
        (:func:`subspaces.graphs.rules.build_graph`).
    graph_params : dict or None
        Parameters of the last three graphs.
    solver : {"auto", "dense", "low_rank", "two_scale"}, default="auto"
        ``"dense"``: Cholesky inverse of the n × n kernel matrix. ``"low_rank"``: the same coefficients through an
        explicit feature map, no n × n array; for the linear, cosine, polynomial and correntropy kernels; above 50,000
        points the largest ones are found by a search. ``"two_scale"``: landmarks and small local systems, no n × n
        array, for the kernels of distances (:mod:`subspaces.representation.two_scale`). ``"auto"`` takes
        ``"low_rank"`` when the map has at most half as many features as there are points, else ``"two_scale"`` above
        10,000 points or when the matrix does not fit, else ``"dense"``; ``solver_reason_`` says why.
    spectral : {"auto", "full", "coarse"}, default="auto"
        ``"full"`` embeds the points, ``"coarse"`` about 2000 micro-clusters (:mod:`subspaces.spectral.coarse`);
        ``"auto"`` does the latter from 30,000 points. The modularity cut needs neither.
    partition : {"kmeans", "qr", "discretize", "modularity"}, default="kmeans"
        How the graph is cut: k-means, QR or discretisation of the spectral embedding, or Leiden communities.
    n_init : int, default=20
        Starts of k-means.
    init : {"k-means++", "random"}, default="k-means++"
        Starting rule of k-means; the authors' program used random points and hundreds of starts.
    connect : bool, default=True
        When the graph has more components than clusters, tie the smallest ones to the rest by their strongest
        coefficients (:func:`subspaces.graphs.affinity.join_components`).
    out_of_sample : {"neighbors", "residual", "network"}, default="neighbors"
        Rule of :meth:`predict` for new points (:mod:`subspaces.representation.new_samples`).
    random_state : int, RandomState, Generator or None, default=0
        Seed of k-means, Leiden and the network. 0 gives the same labels every time.
    verbose : bool, default=False
        Show how far a fit is, on standard error: a bar on a terminal, lines in a notebook.

    Attributes
    ----------
    labels_ : array of shape (n,)
    n_clusters_ : number of clusters found
    coefficients_ : sparse (n, n), C (eq. 3.9) truncated, with sign: column i represents point i
    affinity_matrix_ : sparse (n, n)
    embedding_ : array of shape (n, k), spectral embedding with unit rows
    eigenvalues_ : of the normalised Laplacian, ascending
    n_components_ : connected components of the graph before any repair
    kernel_ : the kernel with its bandwidth
    penalty_ : λ used
    selection_ : what was tried for the parameters that are ``"auto"``, and why the winner won; None if none is
    reg_, n_nonzero_, scaling_, partition_ : the values used, given or chosen
    solver_, solver_reason_ : "dense", "low_rank" or "two_scale", and why
    timings_ : seconds of each stage

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

    n_clusters: int | str | None = field(default=8, kw_only=False)  # type: ignore[assignment]
    kernel: KernelLike = "rbf"
    bandwidth: float | str = "rms"
    kernel_params: Mapping[str, Any] | None = None
    reg: float | str = 1.0

    _chooses = True
    _constraints = AUTOMATIC
    cost = "one Cholesky inverse, O(n³); O(n² r) with a feature map of r columns"
    reference = "Zhen, Peng, Wang, Yao: Kernel truncated regression, Inf. Sci. 524 (2020) 59-76"


@dataclass(eq=False, repr=False, kw_only=True)
class TRR(ByRidge, GraphClusterer):
    """Truncated regression representation (TRR): KTRR with the linear kernel, for unions of linear or affine subspaces.

    Parameters
    ----------
    n_clusters, scaling, reg, affine, n_nonzero, by, graph, graph_params, solver, spectral, partition, n_init, init
        As in :class:`KTRR`, ``"auto"`` included.
    connect, out_of_sample, random_state, verbose
        As in :class:`KTRR`. With fewer than half as many features as points no n × n matrix is made.

    References
    ----------
    Peng, Yi, Tang: Robust subspace clustering via thresholding ridge regression, AAAI 2015.

    Examples
    --------
    >>> from subspaces import TRR
    >>> TRR(n_clusters=2, reg=0.01).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    n_clusters: int | str | None = field(default=8, kw_only=False)  # type: ignore[assignment]

    _chooses = True
    _constraints = AUTOMATIC
    cost = "one Cholesky inverse, O(n³); O(n² m) and no n × n array with few features"
    reference = "Peng, Yi, Tang: Robust subspace clustering via thresholding ridge regression, AAAI 2015"


@dataclass(eq=False, repr=False, kw_only=True)
class LSR1(ByRidge, GraphClusterer):
    """Least squares regression with a zero diagonal (LSR1): TRR that keeps every coefficient.

    min ‖X − XZ‖² + λ‖Z‖², diag(Z) = 0, in closed form. Assumes linear subspaces and little noise: every pair of points
    is joined, so weak coefficients between subspaces add up.

    Parameters
    ----------
    reg : float, default=0.1
        λ divided by the mean squared length of a point.
    n_clusters, scaling, affine, n_nonzero, by, graph, graph_params, solver, partition, n_init, init, connect
        As in :class:`~subspaces.KTRR`; ``n_nonzero=None`` and ``graph="column"`` keep all coefficients.
    out_of_sample, random_state, verbose
        As in :class:`~subspaces.KTRR`.

    Examples
    --------
    >>> from subspaces import LSR1
    >>> LSR1(n_clusters=2).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    scaling: str | None = "unit"
    n_nonzero: int | None = None
    graph: str = "column"

    cost = "one inverse, O(n³); O(n² m) with few features"
    reference = (
        "Lu, Min, Zhao, Zhu, Huang, Yan: Robust and efficient subspace segmentation via least squares, ECCV 2012"
    )


@dataclass(eq=False, repr=False, kw_only=True)
class LSR2(ByRidge, GraphClusterer):
    """Least squares regression without the diagonal constraint (LSR2): Z = (XᵀX + λI)⁻¹XᵀX.

    As :class:`LSR1`, but a point may represent itself; its diagonal grows with small λ and then hides the rest.

    Parameters
    ----------
    reg, n_clusters, scaling, affine, n_nonzero, by, graph, graph_params, solver, partition, n_init, init, connect
        As in :class:`LSR1`; affine, Z = I − λV (``subspaces.representation.inverse.affine_inverse``).
    out_of_sample, random_state, verbose
        As in :class:`~subspaces.KTRR`.

    Examples
    --------
    >>> from subspaces import LSR2
    >>> LSR2(n_clusters=2).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    scaling: str | None = "unit"
    n_nonzero: int | None = None
    graph: str = "column"

    _constrained = False
    cost = LSR1.cost
    reference = LSR1.reference
