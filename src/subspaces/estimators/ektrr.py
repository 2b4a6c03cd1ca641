"""The named methods that sample, cluster and classify: EKTRR, SSSC, SLSR and SLRR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from subspaces.estimators.automatic import AUTOMATIC
from subspaces.estimators.ktrr import KTRR, LSR1
from subspaces.estimators.lrr import LRR2
from subspaces.estimators.sampled import FRAMEWORK, Sampled
from subspaces.estimators.ssc import SSC
from subspaces.kernels import KernelLike
from subspaces.landmarks.collaborative import CollaborativeClassifier


@dataclass(eq=False, repr=False, kw_only=True)
class EKTRR(Sampled):
    """Extended KTRR (EKTRR), Algorithm 2 of the paper: KTRR on a sample, a small network for the rest.

    δ points are drawn uniformly and clustered by :class:`~subspaces.KTRR`; a network with one hidden layer of 10 units
    learns their labels and classifies all other points.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of subspaces L.
    n_landmarks : int, default=1000
        δ, points drawn. With as many as there are points the labels are KTRR's.
    kernel, bandwidth, kernel_params, reg, n_nonzero, graph, partition, n_init
        As in :class:`~subspaces.KTRR`.
    sampler, n_draws, scaling, random_state
        As in :class:`~subspaces.estimators.sampled.SampledClusterer`; Algorithm 2 is ``"uniform"`` and 1.

    Attributes
    ----------
    labels_, n_clusters_, landmarks_, clusterer_, classifier_, timings_
        As in :class:`~subspaces.estimators.sampled.SampledClusterer`.

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

    kernel: KernelLike = "rbf"
    bandwidth: float | str = "rms"
    kernel_params: Mapping[str, Any] | None = None
    reg: float | str = 1.0
    n_nonzero: int | str | None = 5
    graph: str = "symmetric"
    partition: str = "kmeans"
    n_init: int = 20

    _constraints: ClassVar[dict[str, list[Any]]] = {
        name: AUTOMATIC[name] for name in ("kernel", "reg", "n_nonzero", "partition")
    }
    _method = KTRR
    cost = "KTRR on δ points, O(δ³), then O(10 m) per point"
    reference = KTRR.reference


@dataclass(eq=False, repr=False, kw_only=True)
class ByResiduals:
    """Beside :class:`Sampled`, what the other three share: ridge residuals classify the points."""

    scaling: str | None = "unit"
    partition: str = "kmeans"
    n_init: int = 20
    kappa: float = 1e-6
    normalize_residual: bool = False

    _constraints = CollaborativeClassifier._parameter_constraints

    def _new_classifier(self) -> Any:
        return CollaborativeClassifier(self.kappa, self.normalize_residual)


@dataclass(eq=False, repr=False, kw_only=True)
class SSSC(ByResiduals, Sampled):
    """Scalable sparse subspace clustering (SSSC): SSC on a sample, ridge residuals for the rest.

    Parameters
    ----------
    n_clusters : int, default=8
    alpha, tol, max_iter, partition, n_init
        Of the clustering of the landmarks, as in :class:`~subspaces.SSC`.
    kappa, normalize_residual
        Of the classifier, as in :class:`~subspaces.landmarks.collaborative.CollaborativeClassifier`.
    scaling : {None, "unit", "max", "minmax", "standard"}, default="unit"
        The authors scale every point to length 1.
    n_landmarks, sampler, n_draws, random_state
        As in :class:`~subspaces.estimators.sampled.SampledClusterer`.

    Attributes
    ----------
    labels_, n_clusters_, landmarks_, clusterer_, classifier_, timings_
        As in :class:`~subspaces.estimators.sampled.SampledClusterer`.

    Examples
    --------
    >>> from subspaces.datasets import make_subspaces
    >>> from subspaces.metrics import accuracy
    >>> from subspaces import SSSC
    >>> X, y = make_subspaces(3, dimension=3, ambient=20, n_points=1000, random_state=0)
    >>> accuracy(y, SSSC(n_clusters=3, n_landmarks=150).fit_predict(X))
    1.0
    """

    alpha: float = 20.0
    tol: float = 1e-4
    max_iter: int = 200

    _method = SSC
    cost = "SSC on δ points, then O(L m²) per point"
    reference = "Peng, Zhang, Yi: Scalable sparse subspace clustering, CVPR 2013"


@dataclass(eq=False, repr=False, kw_only=True)
class SLSR(ByResiduals, Sampled):
    """Scalable least squares regression (SLSR): LSR1 on a sample, ridge residuals for the rest.

    Parameters
    ----------
    n_clusters : int, default=8
    reg, partition, n_init
        Of the clustering of the landmarks, as in :class:`~subspaces.LSR1`.
    kappa, normalize_residual, scaling, n_landmarks, sampler, n_draws, random_state
        As in :class:`SSSC`.

    Attributes
    ----------
    labels_, n_clusters_, landmarks_, clusterer_, classifier_, timings_
        As in :class:`~subspaces.estimators.sampled.SampledClusterer`.

    Examples
    --------
    >>> from subspaces import SLSR
    >>> SLSR(n_clusters=2).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    reg: float = 0.1

    _method = LSR1
    cost = "LSR1 on δ points, O(δ³), then O(L m²) per point"
    reference = FRAMEWORK


@dataclass(eq=False, repr=False, kw_only=True)
class SLRR(ByResiduals, Sampled):
    """Scalable low-rank representation (SLRR): LRR2 on a sample, ridge residuals for the rest.

    Parameters
    ----------
    n_clusters : int, default=8
    error_weight, tol, max_iter, partition, n_init
        Of the clustering of the landmarks, as in :class:`~subspaces.LRR2`.
    kappa, normalize_residual, scaling, n_landmarks, sampler, n_draws, random_state
        As in :class:`SSSC`.

    Attributes
    ----------
    labels_, n_clusters_, landmarks_, clusterer_, classifier_, timings_
        As in :class:`~subspaces.estimators.sampled.SampledClusterer`.

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
    cost = "LRR2 on δ points, tens of SVDs, then O(L m²) per point"
    reference = FRAMEWORK
