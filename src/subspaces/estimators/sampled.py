"""Sample, cluster, classify: cluster a few landmarks and let a classifier label the rest; EKTRR, SSSC, SLSR, SLRR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

from sklearn import config_context
from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods, Interval

from subspaces.engine.landmark_run import Outcome, check_landmarks, run_landmarks
from subspaces.engine.validation import check_count
from subspaces.estimators.base import COUNT, POSITIVE, SubspaceClusterer
from subspaces.estimators.graph import WithKernel
from subspaces.estimators.ktrr import KTRR, LSR1
from subspaces.estimators.large import keep_outcome
from subspaces.estimators.lrr import LRR2
from subspaces.estimators.ssc import SSC
from subspaces.kernels import as_kernel
from subspaces.landmarks.collaborative import CollaborativeClassifier
from subspaces.landmarks.points import Points
from subspaces.landmarks.sample_cluster_classify import SampledModel, asked, sample_cluster_classify
from subspaces.utils.choices import AssignLabels, GraphName, Scaling
from subspaces.utils.progress import Listener
from subspaces.utils.types import Array

FRAMEWORK = "Peng, Tang, Zhang, Yi, Xiao: A unified framework for representation-based subspace, TNNLS 27 (2016)"


@dataclass(eq=False, repr=False, kw_only=True)
class Sampled(SubspaceClusterer):
    """Run Algorithm 2 with any parts; a subclass names ``_method`` or ``_new_clusterer``, and ``_new_classifier``.

    Parameters
    ----------
    n_landmarks : int, default=1000
        δ, samples drawn uniformly and clustered. With as many as there are the labels are the clusterer's own.

    Attributes
    ----------
    landmark_indices_ : array of shape (δ,)
        Row numbers of the landmarks.
    clusterer_ : estimator
        The clusterer, fitted on the landmarks.
    classifier_ : estimator
        The classifier, trained on their labels; it labels new samples.
    n_iter_ : int
        Steps of the clusterer's solver, where it has one.
    """

    n_landmarks: int = 1000

    _constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [COUNT],
        "n_landmarks": [Interval(Integral, 2, None, closed="left")],
    }
    _block_bytes: ClassVar[int] = 4 * 2**20  # stays in cache from scaling to label
    _method: ClassVar[type[SubspaceClusterer]]
    """Clusterer of the landmarks in a named method."""

    def _new_clusterer(self) -> Any:
        """Return the unfitted clusterer; parameters that it shares with this method are handed on."""
        shared = {field.name for field in fields(self._method)} & {field.name for field in fields(self)}
        shared -= {"scaling", "random_state", "verbose"}  # scaled before, for the classifier too; seeded by the draw
        own = {name: getattr(self, name) for name in shared}
        return self._method(**own, scaling=None, random_state=None)

    def _new_classifier(self) -> Any:
        """Return the unfitted classifier; None is the paper's network."""
        return None

    def _fit(self, X: Array) -> None:
        solve = self._solve(len(X))
        with config_context(skip_parameter_validation=False):  # the parts' are not checked
            found = run_landmarks(
                X,
                solve,
                n_clusters=self.n_clusters,
                scaling=self.scaling,
                units=self._sees_units(),
                block_bytes=self._block_bytes,
            )
        self._keep(found)

    def _solve(self, n: int) -> Callable[[Points, Listener], SampledModel]:
        """Return the function that clusters n samples."""
        check_count(self.n_clusters, n)
        clusterer, seed = self._new_clusterer(), self._drawn_seed()
        check_landmarks(asked(clusterer), self.n_landmarks)
        return partial(
            sample_cluster_classify,
            clusterer=clusterer,
            classifier=self._new_classifier(),
            n_landmarks=self.n_landmarks,
            seed=seed,
            own_seed=int(self.random_state) if isinstance(self.random_state, Integral) else seed,
        )

    def _sees_units(self) -> bool:
        """Return whether a common factor of all samples matters to the kernel."""
        return hasattr(self, "kernel") and as_kernel(self.kernel).sees_units

    def _keep(self, found: Outcome) -> None:
        """Set fitted attributes from an outcome."""
        keep_outcome(self, found, ("landmark_indices", "clusterer", "classifier"))
        if found.model is not None and hasattr(self.clusterer_, "n_iter_"):
            self.n_iter_ = self.clusterer_.n_iter_


@dataclass(eq=False, repr=False, kw_only=True)
class ByClassifier:
    """Label what is no landmark by any classifier; a mixin.

    Parameters
    ----------
    classifier : scikit-learn classifier or pipeline, or None, default=None
        Anything with ``fit`` and ``predict``; it is cloned. None is the paper's network with 10 hidden units.
    """

    classifier: Any = None

    _constraints: ClassVar[dict[str, list[Any]]] = {"classifier": [HasMethods(["fit", "predict"]), None]}

    def _new_classifier(self) -> Any:
        return self.classifier


@dataclass(eq=False, repr=False, kw_only=True)
class SampledClusterer(ByClassifier, Sampled):
    """Sample, cluster, classify: make any clusterer linear in n.

    Some samples, the landmarks, are clustered; a classifier learns their labels and labels all other samples. Time and
    memory of the clusterer depend on `n_landmarks` alone, the rest is one pass over the samples.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters, handed to the clusterer. None leaves the clusterer as it is.
    clusterer : scikit-learn clusterer or None, default=None
        Anything with ``fit_predict``; it is cloned. None is :class:`~subspaces.KTRR`. Landmarks it calls noise (−1)
        stay noise and do not train the classifier.
    scaling : {None, "unit", "max", "minmax", "standard"}, default=None
        Scaling of the input, fitted to all samples, seen by clusterer and classifier.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the draw, and of clusterer and classifier where these have none of their own.

    Attributes
    ----------
    labels_ : array of shape (n,)
        The landmarks' labels are the clusterer's; with several draws every label is the vote's.
    n_clusters_ : number of clusters found
    timings_ : seconds of sampling, clustering, training and classifying

    Examples
    --------
    >>> from sklearn.cluster import SpectralClustering
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from subspaces import SampledClusterer
    >>> X, y = make_moons(20_000, noise=0.05, random_state=0)
    >>> clusterer = SpectralClustering(2, gamma=20)
    >>> model = SampledClusterer(clusterer=clusterer, classifier=KNeighborsClassifier()).fit(X)
    >>> max((model.labels_ == y).mean(), (model.labels_ != y).mean()) > 0.99
    np.True_
    """

    n_clusters: int | None = field(default=None, kw_only=False)
    clusterer: Any = None

    _constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [COUNT, None],
        "clusterer": [HasMethods("fit_predict"), None],
    }
    _cost = "the clusterer on n_landmarks points, the classifier on all"
    _reference = FRAMEWORK

    def _new_clusterer(self) -> Any:
        clusterer = KTRR(random_state=None) if self.clusterer is None else clone(self.clusterer)
        if self.n_clusters is None:
            return clusterer
        if "n_clusters" not in clusterer.get_params(deep=False):
            raise ValueError(
                f"n_clusters={self.n_clusters} needs a clusterer with a parameter of that name, which "
                f"{type(clusterer).__name__} has not: set the number there and leave n_clusters=None."
            )
        return clusterer.set_params(n_clusters=self.n_clusters)


@dataclass(eq=False, repr=False, kw_only=True)
class EKTRR(ByClassifier, WithKernel, Sampled):
    """Extended KTRR (EKTRR), Algorithm 2 of the paper: KTRR on a subset, a small network for the rest.

    δ samples are drawn uniformly and clustered by :class:`~subspaces.KTRR`; a network with one hidden layer of 10 units
    (or another `classifier`) learns their labels and classifies all other samples.

    Algorithm 2 has ``classifier=None``.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of subspaces L.
    n_landmarks : int, default=1000
        δ, samples drawn. With as many as there are samples the labels are KTRR's.
    reg : float, default=1.0
        λ divided by the mean diagonal of the kernel matrix.
    affine : bool, default=False
        Subspaces need not contain the origin.
    n_nonzero : int or None, default=5
        η, coefficients kept per landmark, as in :class:`~subspaces.KTRR`; None keeps all.
    graph, assign_labels, n_init
        Of the clustering of the landmarks, as in :class:`~subspaces.KTRR`.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces import EKTRR
    >>> angle = np.linspace(0, 2 * np.pi, 10_000)
    >>> ring = np.c_[np.cos(angle), np.sin(angle)]
    >>> labels = EKTRR(n_clusters=2, n_landmarks=300).fit_predict(np.vstack([ring, 3 * ring]))
    >>> len(set(labels[:10_000])), len(set(labels[10_000:])), labels[0] != labels[-1]
    (1, 1, np.True_)
    """

    reg: float = 1.0
    affine: bool = False
    n_nonzero: int | None = 5
    graph: GraphName = "symmetric"
    assign_labels: AssignLabels = "kmeans"
    n_init: int = 20

    _method = KTRR
    _constraints: ClassVar[dict[str, list[Any]]] = KTRR._constraints
    _cost = "KTRR on δ points, O(δ³), then O(10 m) per point"
    _reference = KTRR._reference


@dataclass(eq=False, repr=False, kw_only=True)
class ByResiduals:
    """Classify by ridge residuals, as SSSC, SLSR and SLRR do. A mixin.

    Parameters
    ----------
    classifier_reg : float, default=1e-6
        Ridge of the classifier (:class:`~subspaces.landmarks.collaborative.CollaborativeClassifier`).
    scaling : {None, "unit", "max", "minmax", "standard"}, default="unit"
        The authors scale every sample to length 1.
    """

    scaling: Scaling | None = "unit"
    assign_labels: AssignLabels = "kmeans"
    n_init: int = 20
    classifier_reg: float = 1e-6

    _constraints: ClassVar[dict[str, list[Any]]] = {"classifier_reg": [POSITIVE]}

    def _new_classifier(self) -> Any:
        return CollaborativeClassifier(self.classifier_reg)


@dataclass(eq=False, repr=False, kw_only=True)
class SSSC(ByResiduals, Sampled):
    """Scalable sparse subspace clustering (SSSC): SSC on a subset, ridge residuals for the rest.

    Parameters
    ----------
    error_weight, tol, max_iter, assign_labels, n_init
        Of the clustering of the landmarks, as in :class:`~subspaces.SSC`.

    Examples
    --------
    >>> from subspaces.datasets import make_subspaces
    >>> from subspaces.metrics import accuracy
    >>> from subspaces import SSSC
    >>> X, y = make_subspaces(3, dimension=3, ambient=20, n_samples=1000, random_state=0)
    >>> accuracy(y, SSSC(n_clusters=3, n_landmarks=150).fit_predict(X))
    1.0
    """

    error_weight: float = 20.0
    tol: float = 1e-4
    max_iter: int = 200

    _method = SSC
    _cost = "SSC on δ points, then O(L m²) per point"
    _reference = "Peng, Zhang, Yi: Scalable sparse subspace clustering, CVPR 2013"


@dataclass(eq=False, repr=False, kw_only=True)
class SLSR(ByResiduals, Sampled):
    """Scalable least squares regression (SLSR): LSR1 on a subset, ridge residuals for the rest.

    Parameters
    ----------
    reg, assign_labels, n_init
        Of the clustering of the landmarks, as in :class:`~subspaces.LSR1`.

    Examples
    --------
    >>> from subspaces import SLSR
    >>> SLSR(n_clusters=2).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    reg: float = 0.1

    _method = LSR1
    _cost = "LSR1 on δ points, O(δ³), then O(L m²) per point"
    _reference = FRAMEWORK


@dataclass(eq=False, repr=False, kw_only=True)
class SLRR(ByResiduals, Sampled):
    """Scalable low-rank representation (SLRR): LRR2 on a subset, ridge residuals for the rest.

    Parameters
    ----------
    error_weight, tol, max_iter, assign_labels, n_init
        Of the clustering of the landmarks, as in :class:`~subspaces.LRR2`.

    Examples
    --------
    >>> from subspaces import SLRR
    >>> SLRR(n_clusters=2).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    error_weight: float = 1.0
    tol: float = 1e-3
    max_iter: int = 1000

    _method = LRR2
    _cost = "LRR2 on δ points, tens of SVDs, then O(L m²) per point"
    _reference = FRAMEWORK
