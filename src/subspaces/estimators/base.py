"""The journey from data to labels, written once. Estimators hold parameters and say which leg they change."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from subspaces import new_points
from subspaces import partition as cuts
from subspaces.embedding.spectral import spectral_embedding, unit_rows
from subspaces.engine.validation import Versioned, dense_points, one_label_per_copy, validated, warn_of_bad_numbers
from subspaces.estimators.callbacks import CallbackSupportMixin, with_callbacks
from subspaces.estimators.explain import ExplainMixin
from subspaces.estimators.html_repr import JourneyMixin
from subspaces.estimators.new_points import NewPointsMixin
from subspaces.graphs.affinity import affinity, components, join_components
from subspaces.graphs.rules import GRAPHS, build_graph
from subspaces.graphs.truncation import RANKINGS
from subspaces.kernels import Kernel, Linear, as_kernel, is_precomputed
from subspaces.numerics import memory
from subspaces.numerics.ordering import canonical_order, inverse_of, reordered, rows_of
from subspaces.numerics.types import Array, Data, Labels, Sparse
from subspaces.representation.coefficients import Coefficients
from subspaces.scaling import SCALINGS, Scaling, apply_scaling, fit_scaling

_MAX_SEED = 2**31 - 1
_STATE = (
    "_X",
    "_largest",
    "_prints",
    "_scaling",
    "_seed",
    "_coefficients",
    "_embedding",
    "_network",
    "_cells",
    "_global",
    "_micro",
)


@dataclass(eq=False, repr=False)
class SubspaceClusterer(
    NewPointsMixin,
    ExplainMixin,
    JourneyMixin,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    Versioned,
    BaseEstimator,
):
    """Base of all estimators: validation and the journey; ``predict`` and ``transform`` come from the mixin.

    Parameters are dataclass fields, so that a subclass lists only its own and its signature shows all. A subclass
    gives ``_representation`` (points or kernel matrix → :class:`~subspaces.representation.coefficients.Coefficients`) and,
    where it does not start from the points themselves, ``_kernel``.
    """

    n_clusters: int | None = 8
    _: KW_ONLY
    scaling: str | None = None
    n_nonzero: int | None = 5
    by: str = "magnitude"
    graph: str = "symmetric"
    graph_params: Mapping[str, Any] | None = None
    partition: str = "kmeans"
    n_init: int = 20
    init: str = "k-means++"
    connect: bool = True
    out_of_sample: str = "neighbors"
    random_state: Any = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "scaling": [StrOptions(set(SCALINGS)), None],
        "n_nonzero": [Interval(Integral, 1, None, closed="left"), None],
        "by": [StrOptions(set(RANKINGS))],
        "graph": [StrOptions(set(GRAPHS))],
        "graph_params": [dict, None],
        "partition": [StrOptions(set(cuts.PARTITIONS))],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"k-means++", "random"})],
        "connect": ["boolean"],
        "out_of_sample": [StrOptions(set(new_points.RULES))],
        "random_state": ["random_state"],
    }

    _n_squares: ClassVar[float] = 3.25
    """n × n arrays that a fit holds at its peak; 0 for a method that makes none. Measured: ``benchmarks/memory.py``."""
    _n_copies: ClassVar[float] = 0
    """Arrays of the size of X that a method without n × n arrays holds instead."""
    cost: ClassVar[str]
    """What a fit costs, in a few words; listed by ``subspaces methods`` like `reference`."""
    reference: ClassVar[str]

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, m), dense, sparse or a dataframe; (n, n) with ``kernel="precomputed"``
        y : ignored

        Returns
        -------
        self
        """
        self._forget()
        try:
            return self._fit(X)
        except BaseException:  # an error or Ctrl-C leaves an unfitted estimator, not half of one
            self._forget()
            raise

    def _fit(self, X: Any) -> Self:
        X = validated(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2)
        self._check_clusters(X.shape[0])
        self._seed = int(check_random_state(self.random_state).randint(_MAX_SEED))
        self.timings_: dict[str, float] = {}
        prints = new_points.fingerprints(X)
        if self._all_equal(X):
            self._remember(X, prints)
            return self._one_cluster(X.shape[0])
        given, order = (X, prints), self._order_of(X, prints)
        place = inverse_of(order)
        X, prints = self._in_order(X, order), prints[order]
        self._remember(X, prints)
        self._warn_of_bad_input(X, prints)

        kernel, representation, truncation, affinity, embedding, partition = self._legs()
        labels = partition(embedding(affinity(truncation(representation(kernel(X))))))

        # clusters are numbered by the first of their points as they were given
        self.labels_: Labels = cuts.in_order(one_label_per_copy(labels, prints)[place])[order]
        self.n_clusters_ = int(self.labels_.max()) + 1
        self._warn_if_fewer()
        self._network = self._fit_network()
        self._as_given(*given, order, place)
        return self

    def _order_of(self, X: Data, prints: Array) -> Labels:
        return canonical_order(X, prints, pairwise=self._is_precomputed())

    def _in_order(self, X: Data, order: Labels) -> Data:
        """The points in their canonical order, in which the whole journey sees them."""
        is_matrix = self._is_precomputed()
        return X if is_matrix and X.shape[0] != X.shape[1] else rows_of(X, order, pairwise=is_matrix)

    def _as_given(self, X: Data, prints: Array, order: Labels, place: Labels) -> None:
        """Everything that was found, in the order in which the points were given."""
        self._X, self._prints = (None, None) if self._is_precomputed() else (X, prints)
        self.labels_ = self.labels_[place]
        self.coefficients_ = reordered(self.coefficients_, place)
        self.affinity_matrix_ = reordered(self.affinity_matrix_, place)
        self.isolated_ = np.sort(order[self.isolated_])
        if self._embedding is not None:
            self._embedding = self._embedding[place]

    def _forget(self) -> None:
        """Remove everything an earlier fit left."""
        for name in [name for name in vars(self) if name.endswith("_") or name in _STATE]:
            delattr(self, name)

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> Labels:
        """Cluster the rows of X and return their labels."""
        return self.fit(X).labels_

    def fit_transform(self, X: Any, y: Any = None, **kwargs: Any) -> Array:
        """Cluster the rows of X and return their spectral embedding."""
        return self.fit(X).embedding_

    @property
    def embedding_(self) -> Array:
        """Spectral embedding Y with unit rows; for ``partition="modularity"``, which needs none, computed when read."""
        check_is_fitted(self, "labels_")
        if self._embedding is None:
            return self._spectral(self.affinity_matrix_, self.n_clusters_)[0]
        return self._embedding

    # ---------------------------------------------------------------- the legs

    def _kernel(self, X: Data) -> Any:
        """Data → what the representation starts from: here the scaled points themselves."""
        X = apply_scaling(X, self._scaling)
        self.kernel_ = self._settled_kernel(X)
        self._require_memory(X, self._n_squares)
        return dense_points(X)

    def _representation(self, K: Any) -> Coefficients:
        raise NotImplementedError

    def _settled_kernel(self, X: Data) -> Kernel:
        return Linear()

    def _require_memory(self, X: Data, n_squares: float) -> None:
        """Refuse before allocating `n_squares` n × n arrays, or copies of X, that do not fit."""
        n, m = X.shape
        shape = f"{n} × {n} matrix" if n_squares else f"{n} × {m} copies"
        copies = 0 if sparse.issparse(X) else self._n_copies * n * m  # of sparse points the dense copy is asked for
        memory.require(
            int((n_squares * n**2 + copies) * X.dtype.itemsize),
            f"the {shape} of {type(self).__name__}",
            "Fit a sample and let predict label the rest; or use TRR, or KTRR with a linear, cosine, polynomial or "
            'correntropy kernel and solver="low_rank", which make no such matrix; float32 input halves it.',
        )

    def _truncation(self, coefficients: Coefficients) -> Sparse:
        self._coefficients = coefficients
        self.trace_ = coefficients.trace
        if self.trace_ is not None:
            self.n_iter_ = max(1, self.trace_.n_iter)
        self.penalty_ = coefficients.penalty
        self.condition_, self.residual_ = coefficients.condition, coefficients.residual
        return build_graph(
            coefficients,
            self.graph,
            n_nonzero=self.n_nonzero,
            by=self.by,
            n_clusters=self.n_clusters,
            params=self.graph_params,
        )

    def _affinity(self, coefficients: Sparse) -> Sparse:
        self.coefficients_ = coefficients
        W = affinity(coefficients)
        self.n_components_, _ = components(W)
        if self._connects(W.shape[0]) and self.n_clusters is not None and self.n_components_ > self.n_clusters:
            W = join_components(W, self._coefficients, self.n_clusters)
        del self._coefficients  # the last reader of the untruncated coefficients was here
        self.affinity_matrix_ = W
        self.isolated_ = np.flatnonzero(np.asarray(W.sum(axis=1)).ravel() == 0)
        return W

    def _connects(self, n: int) -> bool:
        return self.connect

    def _embed(self, W: Sparse) -> Data:
        self._embedding = None
        if self.partition == "modularity":
            return W
        assert self.n_clusters is not None
        self._embedding, self.eigenvalues_ = self._spectral(W, self.n_clusters)
        return self._embedding

    def _partition(self, Y: Data) -> Labels:
        n = Y.shape[0]
        if self.n_clusters in (1, n):
            return np.arange(n, dtype=np.intp) * (self.n_clusters == n)
        connected = np.ones(n, dtype=bool)
        connected[self.isolated_] = False
        if self.partition == "modularity":
            W = Y[connected][:, connected]
            found = cuts.cut_by_modularity(W, self.n_clusters, seed=self._seed)
        else:
            assert self.n_clusters is not None
            found = cuts.cut_embedding(
                Y[connected],
                min(self.n_clusters, int(connected.sum())),
                method=self.partition,
                n_init=self.n_init,
                init=self.init,
                seed=self._seed,
            )
        # nothing is known about a point without edges: it goes to the largest cluster
        labels = np.full(n, np.bincount(found).argmax(), dtype=np.intp)
        labels[connected] = found
        return labels

    def _legs(self) -> list[Callable[[Any], Any]]:
        """The six legs, each timed and announced to scikit-learn's callbacks."""
        names = ("kernel", "representation", "truncation", "affinity", "embed", "partition")
        context = self._init_callback_context(max_subtasks=len(names))
        context.call_on_fit_task_begin(estimator=self)

        def timed(name: str) -> Callable[[Any], Any]:
            leg = getattr(self, f"_{name}")

            def run(value: Any) -> Any:
                task = context.subcontext(task_name=name)
                task.call_on_fit_task_begin(estimator=self)
                start = time.perf_counter()
                result = leg(value)
                self.timings_[name] = time.perf_counter() - start
                task.call_on_fit_task_end(estimator=self)
                if name == names[-1]:
                    context.call_on_fit_task_end(estimator=self)
                return result

            return run

        return [timed(name) for name in names]

    # ---------------------------------------------------------------- fit's small helpers

    def _check_clusters(self, n: int) -> None:
        if self.n_clusters is None and self.partition != "modularity":
            raise ValueError(
                f'n_clusters=None needs partition="modularity", which finds the number itself; got {self.partition!r}.'
            )
        if self.n_clusters is not None and self.n_clusters > n:
            raise ValueError(f"n_clusters={self.n_clusters} must not exceed the number of points, n_samples={n}.")
        if self.scaling is not None and self._is_precomputed():
            raise ValueError(
                f'scaling={self.scaling!r} has no meaning with kernel="precomputed": scale the points first.'
            )

    def _remember(self, X: Data, prints: Array) -> None:
        """Keep what new points are compared with: the training points, never an n × n matrix."""
        units = as_kernel(getattr(self, "kernel", "linear")).sees_units
        self._scaling = Scaling() if self._is_precomputed() else fit_scaling(X, self.scaling, units=units)
        self._X = None if self._is_precomputed() else X
        self._largest = max(float(X.max()), -float(X.min()))
        self._prints = None if self._is_precomputed() else prints

    def _is_precomputed(self) -> bool:
        return is_precomputed(getattr(self, "kernel", None))

    def _all_equal(self, X: Data) -> bool:
        if sparse.issparse(X):
            return abs(X - X[[0] * X.shape[0]]).nnz == 0
        return bool(((X[0, 0] if self._is_precomputed() else X[0]) == X).all())

    def _warn_of_bad_input(self, X: Data, prints: Array) -> None:
        if not self._is_precomputed():
            warn_of_bad_numbers(X, self.scaling)
        most = int(np.unique(prints, return_counts=True)[1].max())
        if self.n_nonzero is not None and self.graph in ("column", "symmetric") and most > self.n_nonzero:
            warnings.warn(
                f"a point occurs {most} times, more often than n_nonzero={self.n_nonzero}: its copies keep "
                "each other's coefficients only and form an island in the graph. Remove copies or raise n_nonzero.",
                UserWarning,
                stacklevel=4,
            )

    def _warn_if_fewer(self) -> None:
        if self.n_clusters is not None and self.n_clusters_ < self.n_clusters:
            warnings.warn(
                f"{self.n_clusters_} clusters found instead of n_clusters={self.n_clusters}: too few points differ, or "
                "the graph shows no more.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _one_cluster(self, n: int) -> Self:
        """All points are equal: there is one cluster, and saying anything else would be an invention."""
        if self.n_clusters not in (1, None):
            warnings.warn(
                f"all {n} points are equal: 1 cluster found instead of n_clusters={self.n_clusters}.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.labels_ = np.zeros(n, dtype=np.intp)
        self.n_clusters_, self.n_components_, self.penalty_, self.trace_ = 1, 1, None, None
        self.condition_, self.residual_ = None, None
        self.kernel_: Kernel = Linear()
        self.coefficients_ = sparse.csc_array((n, n))
        self.affinity_matrix_ = sparse.csr_array((n, n))
        self.isolated_ = np.zeros(0, dtype=np.intp)
        self._embedding = np.ones((n, 1))
        self._network = None
        return self

    def _spectral(self, W: Sparse, n_vectors: int) -> tuple[Array, Array]:
        n = W.shape[0]
        if n_vectors == 1:  # one cluster needs no eigenvector, nor even an edge
            return np.ones((n, 1), dtype=W.dtype), np.zeros(1, dtype=W.dtype)
        if n_vectors == n and W.nnz == 0:  # nor do as many clusters as points
            return np.eye(n, dtype=W.dtype), np.zeros(n, dtype=W.dtype)
        found = spectral_embedding(W, n_vectors)
        if found.n_components > n_vectors:
            warnings.warn(
                f"the graph has {found.n_components} connected components, more than the {n_vectors} clusters asked "
                "for: which of them share a label is arbitrary. Use connect=True or a larger n_nonzero.",
                UserWarning,
                stacklevel=5,
            )
        return unit_rows(found.vectors), found.eigenvalues

    def _fit_network(self) -> Any:
        if self.out_of_sample != "network" or self._X is None or self.n_clusters_ == 1:
            return None
        return new_points.fit_network(apply_scaling(self._X, self._scaling), self.labels_, self._seed)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


POSITIVE = Interval(Real, 0, None, closed="neither")
