"""The methods with landmarks: KASP, NystromSC, SEC, AKK, LSC and USPEC.

Each is a function of :mod:`subspaces.landmarks` from all samples in canonical order to a frozen model; what a fit
checks, runs and keeps (:mod:`subspaces.engine.landmark_run`) is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions

from subspaces.engine.landmark_run import Outcome, check_landmarks, run_landmarks
from subspaces.engine.validation import check_count
from subspaces.estimators.base import COUNT, POSITIVE, SubspaceClusterer
from subspaces.kernels import KERNELS, DistanceKernel, DotKernel, Kernel, KernelLike, as_kernel
from subspaces.landmarks import bipartite, kernel_graph
from subspaces.landmarks.points import Points
from subspaces.landmarks.spectral_embedded import sec
from subspaces.utils import memory
from subspaces.utils.choices import Bandwidth
from subspaces.utils.progress import Listener
from subspaces.utils.types import Array

AFFINITIES = tuple(name for name, kind in KERNELS.items() if kind.of_distances)
"""Kernels that are never negative, as a graph needs them."""
SPACES = tuple(name for name, kind in KERNELS.items() if issubclass(kind, DistanceKernel | DotKernel))
"""Kernels of a space in which k-means has centres."""


def keep_outcome(estimator: Any, found: Outcome, keeps: tuple[str, ...]) -> None:
    """Set fitted attributes from an outcome; `keeps` are those of the model, whose names get an underscore."""
    estimator.labels_ = found.labels
    estimator.n_clusters_ = found.n_clusters
    estimator.timings_ = dict(found.timings)
    estimator._predictor = found.predictor
    for name in keeps if found.model is not None else ():
        setattr(estimator, f"{name}_", getattr(found.model, name))


@dataclass(eq=False, repr=False, kw_only=True)
class ByLandmarks:
    """Fit a method with landmarks; a class names what solves it and what is kept. A mixin.

    Parameters
    ----------
    n_init : int, default=10
        Starts of the final k-means.
    """

    n_landmarks: int = 1000
    n_init: int = 10

    _constraints: ClassVar[dict[str, list[Any]]] = {"n_clusters": [COUNT]}
    _method: ClassVar[Callable[..., Any]]
    """Samples and the parameters of its signature → a model."""
    _keeps: ClassVar[tuple[str, ...]]
    _kernels: ClassVar[tuple[str, ...]] = ()
    """Names of the kernels that the method can use."""
    _n_squares: ClassVar[float] = 2
    """p × p arrays in float64 that a fit holds at its peak. Measured (``benchmarks/memory.py``)."""

    def _work_bytes(self, n: int, p: int) -> int:
        """Return the memory of the method besides those and the embedding."""
        return 0

    def _keep(self, found: Outcome) -> None:
        keep_outcome(self, found, self._keeps)

    def _fit(self: Any, X: Array) -> None:
        method = type(self)._method
        own = {name: getattr(self, name) for name in signature(method).parameters if hasattr(self, name)}
        kernel = as_kernel(self.kernel, self.bandwidth) if self._kernels else None
        if kernel is not None and kernel.name in KERNELS and kernel.name not in self._kernels:
            raise ValueError(f"kernel={kernel!r} is none for {type(self).__name__}, which takes {self._kernels}.")
        n, k, p = len(X), int(self.n_clusters), min(int(self.n_landmarks), len(X))
        own["n_clusters"] = k
        check_count(k, n)
        check_landmarks(k, self.n_landmarks)
        work = 4 * n * k * 8 + self._work_bytes(n, p)
        needed, what = int(self._n_squares * 8 * p**2) + work, f"the {p} × {p} matrix of {type(self).__name__}"
        memory.require(needed, what, "Take fewer landmarks (n_landmarks).")
        seed = self._drawn_seed()

        def solve(points: Points, stage: Listener) -> Any:
            exponent = points.scaling.exponent  # samples were divided by 2 to this power: so are given lengths
            if kernel is not None:
                own["kernel"] = kernel.scaled(exponent)
            elif not isinstance(own.get("bandwidth", ""), str):
                own["bandwidth"] = float(np.ldexp(own["bandwidth"], -exponent))
            model = method(points.in_order(), **own, seed=seed, stage=stage)
            return replace(model, labels=points.as_given(model.labels))

        units = kernel is not None and kernel.sees_units
        found = run_landmarks(X, solve, n_clusters=k, scaling=self.scaling, units=units)
        self._keep(found)
        if found.model is not None:  # else it was warned already
            self._warn_if_fewer(found.n_clusters, "too few points differ, or too few landmarks stand for them")


@dataclass(eq=False, repr=False, kw_only=True)
class ByKernelGraph(ByLandmarks):
    """Share the kernel of KASP, NystromSC and AKK. A mixin.

    Parameters
    ----------
    kernel : {"rbf", "exponential", "inverse_square", "inverse_distance"}, callable or Kernel
        Affinity of two samples.
    bandwidth : {"rms", "mean", "median"} or float
        σ of the kernel, taken from the landmarks; see :class:`~subspaces.kernels.DistanceKernel`.

    Attributes
    ----------
    landmarks_ : array of shape (p, m)
        The landmarks, as scaled.
    kernel_ : Kernel
        The kernel with its bandwidth as a number.
    """

    kernel: KernelLike = "rbf"
    bandwidth: float | Bandwidth = "rms"

    _constraints: ClassVar[dict[str, list[Any]]] = {"kernel": [StrOptions(set(AFFINITIES)), callable, Kernel]}
    _kernels = AFFINITIES


@dataclass(eq=False, repr=False, kw_only=True)
class KASP(ByKernelGraph, SubspaceClusterer):
    """K-means-based approximate spectral clustering (KASP): cluster the centroids, copy their labels to the samples.

    Parameters
    ----------
    n_landmarks : int, default=1000
        p, number of centroids. With as many as there are samples the labels are those of :class:`~subspaces.SC`.

    Attributes
    ----------
    landmarks_ : array of shape (at most p, m)
        The centroids, as scaled.
    landmark_labels_ : array of shape (at most p,)
        Cluster of each centroid.

    Examples
    --------
    >>> from subspaces import KASP
    >>> KASP(n_clusters=2, n_landmarks=4).fit_predict([[0, 0], [0, 1], [1, 0], [9, 9], [9, 8], [8, 9]])
    array([0, 0, 0, 1, 1, 1])
    """

    _method, _n_squares = kernel_graph.kasp, kernel_graph.KASP_SQUARES
    _keeps = ("landmarks", "landmark_labels", "kernel")
    _cost = "k-means with p centroids, O(n p m), and O(p³)"
    _reference = "Yan, Huang, Jordan: Fast approximate spectral clustering, KDD 2009"


@dataclass(eq=False, repr=False, kw_only=True)
class NystromSC(ByKernelGraph, SubspaceClusterer):
    """Nyström spectral clustering: eigenvectors of the full kernel graph from its columns at p random samples.

    Parameters
    ----------
    n_landmarks : int, default=1000
        p, columns of the kernel matrix used. With all of them the eigenvectors are exact.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_clusters,)
        Eigenvalues of the approximated normalised affinity, the largest (about 1) first.
    cluster_centers_ : array of shape (n_clusters, k)
        Centres of the clusters among the embedded samples.

    Examples
    --------
    >>> from subspaces import NystromSC
    >>> NystromSC(n_clusters=2, n_landmarks=4).fit_predict([[0, 0], [0, 1], [1, 0], [9, 9], [9, 8], [8, 9]])
    array([0, 0, 0, 1, 1, 1])
    """

    _method, _n_squares = kernel_graph.nystrom_sc, kernel_graph.NYSTROM_SQUARES
    _keeps = ("landmarks", "kernel", "eigenvalues", "cluster_centers")
    _cost = "O(n p (m + p)), three passes, no n × p array"
    _reference = "Fowlkes, Belongie, Chung, Malik: Spectral grouping using the Nyström method, IEEE TPAMI 26 (2004)"

    _work_bytes = staticmethod(kernel_graph.nystrom_bytes)


@dataclass(eq=False, repr=False, kw_only=True)
class SEC(ByLandmarks, SubspaceClusterer):
    """Spectral embedded clustering (SEC): a subset is embedded, all other samples follow by a linear map.

    Parameters
    ----------
    n_landmarks : int, default=1000
        p, samples drawn at random whose graph is cut; as many as there are samples is the method without sampling.
    n_neighbors : int, default=5
        Neighbours each landmark is joined to.
    error_weight : float, default=1
        μ, weight of the linear map against the graph.
    reg : float, default=0.01
        Ridge penalty of the map: γ is `reg` times the mean diagonal entry of X_cᵀX_c, so that units do not matter.

    Attributes
    ----------
    landmark_indices_ : array of shape (p,)
        Row numbers of the landmarks.
    penalty_ : float
        γ as used.
    embedding_map_ : LinearEmbedding
        The linear map, with the embedding of the landmarks.
    cluster_centers_ : array of shape (n_clusters, k)
        Centres of the clusters among the mapped landmarks.

    Notes
    -----
    ``labels_`` of the landmarks come from their embedding, as published; ``predict`` knows the map only and may
    disagree there.

    Examples
    --------
    >>> from subspaces import SEC
    >>> SEC(n_clusters=2, n_landmarks=4).fit_predict([[0, 0], [0, 1], [1, 0], [9, 9], [9, 8], [8, 9]])
    array([0, 0, 0, 1, 1, 1])
    """

    n_neighbors: int = 5
    error_weight: float = 1.0
    reg: float = 0.01

    _method, _keeps = sec, ("penalty", "embedding_map", "cluster_centers")
    _cost = "O(p³ + p m²) and one product, O(n m n_clusters)"
    _reference = "Nie, Zeng, Tsang, Xu, Zhang: Spectral embedded clustering, IEEE Trans. Neural Networks 22 (2011)"

    def _keep(self, found: Outcome) -> None:
        super()._keep(found)
        if found.model is not None:
            self.landmark_indices_ = found.order[found.model.rows]


@dataclass(eq=False, repr=False, kw_only=True)
class AKK(ByKernelGraph, SubspaceClusterer):
    """Approximate kernel k-means (AKK): k-means in a kernel space, centres spanned by p landmarks.

    Parameters
    ----------
    n_landmarks : int, default=1000
        p, random samples that span the centres. With all samples this is kernel k-means.
    kernel : {"rbf", "exponential", "inverse_square", "inverse_distance", "linear", "cosine", "quadratic", "cubic", \
"polynomial"}, callable or Kernel
        Scalar product of the space in which the centres lie.
    n_init : int, default=10
        Starts by k-means++ on 10,000 samples; the best goes on with all samples.
    max_iter : int, default=50
        Passes over all samples.

    Attributes
    ----------
    centres_ : KernelCentres
        Weights of the landmarks in the centres.
    n_iter_ : int
        Passes over all samples.

    Examples
    --------
    >>> from subspaces import AKK
    >>> AKK(n_clusters=2, n_landmarks=4).fit_predict([[0, 0], [0, 1], [1, 0], [9, 9], [9, 8], [8, 9]])
    array([0, 0, 0, 1, 1, 1])
    """

    max_iter: int = 50

    _constraints: ClassVar[dict[str, list[Any]]] = {"kernel": [StrOptions(set(SPACES)), callable, Kernel]}
    _method, _kernels = kernel_graph.akk, SPACES
    _keeps = ("landmarks", "kernel", "centres", "n_iter")
    _cost = "O(n p (m + n_clusters)) per pass, no n × p array"
    _reference = "Chitta, Jin, Havens, Jain: Approximate kernel k-means, KDD 2011"

    _work_bytes = staticmethod(kernel_graph.akk_bytes)


@dataclass(eq=False, repr=False, kw_only=True)
class Bipartite(ByLandmarks):
    """Share the graph between samples and near landmarks of LSC and USPEC. A mixin.

    Parameters
    ----------
    n_neighbors : int, default=5
        Landmarks each sample is coded over.
    bandwidth : "neighbors" or float, default="neighbors"
        σ of the weights exp(−d²/σ²); ``"neighbors"`` is √2 times the mean distance between samples and the landmarks
        they are coded over.

    Attributes
    ----------
    landmarks_ : array of shape (at most p, m)
        The landmarks, as scaled.
    bandwidth_ : float
        σ as used.
    cluster_centers_ : array of shape (n_clusters, k)
        Centres of the clusters among the embedded samples.
    """

    n_neighbors: int = 5
    bandwidth: float | Literal["neighbors"] = "neighbors"

    _constraints: ClassVar[dict[str, list[Any]]] = {"bandwidth": [StrOptions({"neighbors"}), POSITIVE]}
    _keeps = ("landmarks", "bandwidth", "cluster_centers")
    _n_squares = bipartite.SQUARES

    def _work_bytes(self, n: int, p: int) -> int:
        return bipartite.work_bytes(n, self.n_neighbors)


@dataclass(eq=False, repr=False, kw_only=True)
class LSC(Bipartite, SubspaceClusterer):
    """Landmark-based spectral clustering (LSC): samples coded over their few nearest landmarks.

    With Z the codes (rows sum to 1) the graph is Z D⁻¹ Zᵀ; its eigenvectors are the left singular vectors of Z D^(−½),
    which come from p × p. The first one is constant and left out, as in the authors' program.

    Parameters
    ----------
    n_landmarks : int, default=1000
        p; with more than there are samples every sample is one.
    landmarks : {"kmeans", "random"}
        Centroids of k-means (LSC-K) or samples drawn at random (LSC-R).

    Examples
    --------
    >>> from subspaces import LSC
    >>> LSC(n_clusters=2, n_landmarks=4).fit_predict([[0, 0], [0, 1], [1, 0], [9, 9], [9, 8], [8, 9]])
    array([0, 0, 0, 1, 1, 1])
    """

    landmarks: Literal["kmeans", "random"] = "kmeans"

    _constraints: ClassVar[dict[str, list[Any]]] = {"landmarks": [StrOptions({"kmeans", "random"})]}
    _method = bipartite.lsc
    _cost = "O(n p m), no n × p array"
    _reference = "Chen, Cai: Large scale spectral clustering with landmark-based representation, AAAI 2011"


@dataclass(eq=False, repr=False, kw_only=True)
class USPEC(Bipartite, SubspaceClusterer):
    """Ultra-scalable spectral clustering (U-SPEC): near representatives found without looking at all of them.

    10p samples are drawn and k-means makes p representatives of them; each sample is tied to `n_neighbors` near ones,
    found through √p groups; the bipartite graph is cut by a p × p eigenproblem.

    Parameters
    ----------
    n_landmarks : int, default=1000
        p, number of representatives; with more than there are samples every sample is one.

    Examples
    --------
    >>> from subspaces import USPEC
    >>> USPEC(n_clusters=2, n_landmarks=4).fit_predict([[0, 0], [0, 1], [1, 0], [9, 9], [9, 8], [8, 9]])
    array([0, 0, 0, 1, 1, 1])
    """

    _method = bipartite.uspec
    _cost = "O(n √p m), no n × p array"
    _reference = (
        "Huang, Wang, Wu, Lai, Kwoh: Ultra-scalable spectral clustering and ensemble clustering, IEEE TKDE 32 (2020)"
    )
