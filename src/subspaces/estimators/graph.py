"""The methods that cut a graph between all samples: what they share, from the plan to new samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from subspaces.engine import stages
from subspaces.engine.plan import Context, Cut, Plan, Shape, require_dense_points, require_squares
from subspaces.engine.predict import by_training_points
from subspaces.engine.run import FitResult, run
from subspaces.engine.validation import check_count
from subspaces.estimators.answers import MADE_AGAIN, Answers
from subspaces.estimators.base import SubspaceClusterer
from subspaces.estimators.explain import Explanation, explained
from subspaces.graphs.rules import GraphRule
from subspaces.kernels import KernelLike, Linear, as_kernel, is_precomputed
from subspaces.representation.coefficients import Coefficients, PermutedFactors
from subspaces.utils.choices import AssignLabels, Bandwidth, GraphName, Init, OutOfSample
from subspaces.utils.types import Array, Data, Sparse


@dataclass(eq=False, repr=False, kw_only=True)
class WithKernel:
    """Parameters of a method that sees the data through a kernel; a mixin.

    Parameters
    ----------
    kernel : str, callable or Kernel, default="rbf"
        See :mod:`subspaces.kernels`: ``"rbf"`` exp(−d²/σ²), ``"exponential"``, ``"inverse_square"``,
        ``"inverse_distance"`` (bounded forms of the paper's 1/d² and 1/d), ``"quadratic"``, ``"cubic"``,
        ``"polynomial"``, ``"sigmoid"``, ``"linear"``, ``"cosine"``, ``"correntropy"`` (robust to corrupted features),
        ``"precomputed"``, a callable ``kernel(X, Y)``, or a :class:`~subspaces.kernels.Kernel` object.
    bandwidth : {"rms", "mean", "median"} or float, default="rms"
        σ of the distance kernels: root mean squared distance, mean distance, median distance or a number.
    kernel_params : dict or None
        ``gamma`` and ``coef0`` of the polynomial and sigmoid kernel, ``degree`` of the former; keywords of a callable.
    """

    kernel: KernelLike = "rbf"
    bandwidth: float | Bandwidth = "rms"
    kernel_params: Mapping[str, Any] | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class WithGraph:
    """Parameters of a method whose coefficients can become a graph in several ways; a mixin.

    Parameters
    ----------
    graph : {"symmetric", "column", "mass", "row_space", "dscnet"}, default="symmetric"
        ``"column"`` truncates the columns of C as printed; ``"symmetric"`` scales and symmetrises first, as the
        authors' program did; the others are the treatments of SSC, LRR and DSC-Net
        (:func:`subspaces.graphs.rules.build_graph`).
    graph_params : dict or None
        Parameters of the last three graphs.
    connect : bool, default=True
        When the graph has more components than clusters, tie the smallest ones to the rest by their strongest
        coefficients (:func:`subspaces.graphs.affinity.join_components`).
    """

    graph: GraphName = "symmetric"
    graph_params: Mapping[str, Any] | None = None
    connect: bool = True


@dataclass(eq=False, repr=False, kw_only=True)
class GraphClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Answers, SubspaceClusterer):
    """Base of the methods that cut a graph between all samples.

    A subclass gives ``_represent`` (samples or kernel matrix → coefficients), or ``_affinity`` where it represents no
    sample by others, and where it sees the data through a kernel the parameters of ``WithKernel``.

    Parameters
    ----------
    assign_labels : {"kmeans", "cluster_qr", "discretize", "modularity", "agglomerative"}, default="kmeans"
        How the graph is cut: k-means, QR or discretisation of the spectral embedding, Leiden communities, or
        communities merged by the strength of their ties, which keeps small clusters beside large ones.
    n_init : int, default=20
        Starts of k-means.
    init : {"k-means++", "random"}, default="k-means++"
        Starting rule of k-means; the authors' program used random samples and hundreds of starts.
    out_of_sample : {"neighbors", "residual", "network"}, default="neighbors"
        Rule of :meth:`predict` for new samples (:mod:`subspaces.representation.new_samples`).

    Attributes
    ----------
    coefficients_ : sparse array of shape (n, n)
        C (eq. 3.9) truncated, with sign: column i represents sample i.
    affinity_matrix_ : sparse array of shape (n, n)
        The graph that was cut.
    embedding_ : array of shape (n, k)
        Spectral embedding with unit rows.
    eigenvalues_ : array
        Eigenvalues of the normalised Laplacian, ascending; only where there was an embedding.
    n_components_ : int
        Connected components of the graph before any repair.
    isolated_ : array of int
        Samples without any edge.
    kernel_ : Kernel
        The kernel with its bandwidth as a number.
    penalty_ : float or None
        λ as used; None where the method has none.
    condition_ : float or None
        Condition number of the system that was solved.
    residual_ : float or None
        Largest relative residual of its solution.
    trace_ : Trace or None
        Objective and residuals of an iterative solver, step by step.
    n_iter_ : int
        Steps of an iterative solver.
    """

    assign_labels: AssignLabels = "kmeans"
    n_init: int = 20
    init: Init = "k-means++"
    out_of_sample: OutOfSample = "neighbors"

    _accepts_sparse: ClassVar[bool] = True
    _n_squares: ClassVar[float] = 3.25
    """n × n arrays that a fit holds at its peak; 0 for a method that makes none. Measured: ``benchmarks/memory.py``."""
    _n_copies: ClassVar[float] = 0
    """Arrays of the size of X that a method without n × n arrays holds instead."""
    _represents: ClassVar[bool] = True
    """Whether points are represented by others, so that there are coefficients."""
    _kernel_of_points: ClassVar[bool] = True
    """Whether a parameter `kernel` is one of the points (and not of what a network makes of them)."""
    _is_sparse: ClassVar[bool] = False
    """Whether the coefficients are sparse from the start."""

    # ---------------------------------------------------------------- plan, run, keep

    def _validated_new(self, X: Any) -> Data:
        points, train = super()._validated_new(X), self._predictor.X
        if train is None or sparse.issparse(points) == sparse.issparse(train):
            return points
        return sparse.csr_array(points) if sparse.issparse(train) else points.toarray()

    def _fit(self, X: Data) -> None:
        self._keep(run(self._plan(X), X), X)

    def plan(self, X: Data) -> Plan:
        """Return the plan of a fit to X: everything checked and decided, nothing computed.

        Parameters
        ----------
        X : array of shape (n, m), dense or CSR; (n, n) with ``kernel="precomputed"``
        """
        self._validate_params()
        return self._plan(X)

    def _plan(self, X: Data) -> Plan:
        """Plan a fit; refuse what does not fit in memory."""
        plan = self._outline(X)
        if plan.source == "points":
            require_dense_points(plan.shape)
        require_squares(plan, self._squares(), self._n_copies)
        if plan.represent is not None:
            plan.graph.require_memory(plan.shape.n, self._is_sparse)
        return plan

    def _outline(self, X: Data) -> Plan:
        """Return the plan that the parameters ask for, checked."""
        own: Any = self
        name, params = getattr(self, "graph", "column"), dict(getattr(self, "graph_params", None) or {})
        largest = {}  # of each column; a method without η of its own takes it from `graph_params`
        for key in ("n_nonzero", "by"):
            if hasattr(self, key):
                largest[key] = getattr(self, key)
            elif key in params and name in ("column", "symmetric"):
                largest[key] = params.pop(key)
        by_kernel = self._kernel_of_points and hasattr(self, "kernel")
        kernel = as_kernel(own.kernel, own.bandwidth, own.kernel_params) if by_kernel else Linear()
        plan = Plan(
            method=type(self).__name__,
            shape=Shape.of(X),
            n_clusters=self.n_clusters,
            scaling=self.scaling,
            kernel=kernel,
            source="gram" if by_kernel else "points",
            represent=self._represent if self._represents else None,
            affinity=None if self._represents else self._affinity,
            graph=GraphRule(name, **largest, params=params),
            connect=getattr(self, "connect", False),
            cut=Cut(self.assign_labels, self.n_init, self.init),
            seed=self._drawn_seed(),
            settings=self.get_params(deep=False),
        )
        n, m, _ = plan.shape
        if plan.n_clusters is None and plan.cut.method != "modularity":
            raise ValueError(
                f'n_clusters=None needs assign_labels="modularity", which finds it; got {plan.cut.method!r}.'
            )
        check_count(plan.n_clusters, n)
        if plan.scaling is not None and plan.pairwise:
            raise ValueError(
                f'scaling={plan.scaling!r} has no meaning with kernel="precomputed": scale the points first.'
            )
        if plan.pairwise and n != m:
            raise ValueError(f"the precomputed kernel matrix must be square; got shape {(n, m)}.")
        plan.graph.check_number(plan.n_clusters)
        return plan

    def _squares(self) -> float:
        return self._n_squares

    def _represent(self, source: Any, context: Context) -> Coefficients:
        raise NotImplementedError

    def _affinity(self, points: Array, exponent: int) -> Array | Sparse:
        raise NotImplementedError

    def _keep(self, result: FitResult, X: Data) -> None:
        """Set the fitted attributes."""
        graph, embedding = result.graph, result.embedding
        evidence, trace = graph.evidence, graph.evidence.trace
        assert result.labels is not None
        self.labels_ = result.labels
        self.n_clusters_ = result.n_clusters
        self.affinity_matrix_ = graph.W
        self.n_components_, self.isolated_ = graph.n_components, graph.isolated
        self.kernel_ = evidence.kernel
        self.penalty_, self.condition_, self.residual_ = evidence.penalty, evidence.condition, evidence.residual
        self.trace_ = trace
        if trace is not None:
            self.n_iter_ = max(1, trace.n_iter)
        self.timings_ = dict(result.timings)
        if result.plan.solver:
            self.solver_, self.solver_reason_ = result.plan.solver, result.plan.solver_reason
        self._embedding = None if embedding is None else embedding.of_points(graph.W.dtype)
        if embedding is not None and not result.all_equal:
            self.eigenvalues_ = embedding.eigenvalues
        self._coefficients: Sparse | PermutedFactors | None = graph.coefficients
        self._predictor = by_training_points(result, X, self.out_of_sample)
        if not result.all_equal:  # already warned
            self._warn_if_fewer(self.n_clusters_, "too few samples differ, or the graph shows no more")

    # ---------------------------------------------------------------- what was found, beside Answers

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what can be made again."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in MADE_AGAIN}

    @property
    def embedding_(self) -> Array:
        """Spectral embedding Y with unit rows; made when read for cuts of the graph itself."""
        check_is_fitted(self, "labels_")
        return self._once("_embedding_again", self._embedded) if self._embedding is None else self._embedding

    def _embedded(self) -> Array:
        """Return the embedding as it is kept, or made once more."""
        kept = vars(self).get("_embedding_again", self._embedding)
        return stages.embed(self.affinity_matrix_, self.n_clusters_).rows if kept is None else kept

    @property
    def coefficients_(self) -> Sparse:
        """C (eq. 3.9), truncated, with sign: column i represents sample i; sparse (n, n)."""
        found = getattr(self, "_coefficients", None)
        if found is None:
            raise AttributeError(
                f"this {type(self).__name__} has no coefficients_: it is not fitted, represents no point by others, or "
                'keeps none of them (graph="row_space" and "dscnet" without n_nonzero).'
            )
        return self._once("_all_coefficients", found.sparse) if isinstance(found, PermutedFactors) else found

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Cluster the rows of X and return their spectral embedding."""
        return self.fit(X).embedding_

    def transform(self, X: Any) -> Array:
        """Return coordinates in the spectral embedding: a training sample's own, a new sample's from its neighbours.

        A new sample lies at the mean of the training samples that represent it, weighted by the size of their
        truncated coefficients, scaled to unit length like all rows of the embedding.
        """
        points = self._validated_new(X)
        return self._predictor.embed(points, self._embedded())  # which changes no attribute

    def _explains(self) -> bool:
        """Return whether there are coefficients to show, or will be as far as one can say before a fit."""
        return self._represents and (not hasattr(self, "labels_") or self._coefficients is not None)

    @available_if(lambda self: self._explains())
    def explain(self, i: int, n: int = 10) -> Explanation:
        """List the samples that represent sample `i` with their coefficients, strongest first.

        Parameters
        ----------
        i : row number of the sample in the data that was fitted
        n : how many to list at most

        Returns
        -------
        Explanation
            Column i of ``coefficients_``.

        Examples
        --------
        >>> import numpy as np
        >>> from subspaces import TRR
        >>> X = np.array([[1.0, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
        >>> TRR(2, n_nonzero=2, reg=0.01).fit(X).explain(0)
        point 0 (cluster 0) is represented by 2 points; 100 % of the weight lies in its own cluster
           point coefficient   share  cluster
               2      0.2299  60.0 %        0
               1      0.1533  40.0 %        0
        """
        check_is_fitted(self, "labels_")
        return explained(i, n, self.coefficients_, self.labels_)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_precomputed(getattr(self, "kernel", None))
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags
