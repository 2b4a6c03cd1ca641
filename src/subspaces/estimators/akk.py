"""AKK: kernel k-means whose centres are combinations of a few landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from subspaces.estimators.base import SubspaceClusterer
from subspaces.estimators.model_fit import SPACES, WANTED, Given, fit_landmarks, kernel_of
from subspaces.kernels import Kernel, KernelLike
from subspaces.landmarks import kernel_kmeans
from subspaces.landmarks.kernel_kmeans import KernelKMeansModel
from subspaces.numerics.types import Array


@dataclass(eq=False, repr=False, kw_only=True)
class AKK(SubspaceClusterer):
    """Approximate kernel k-means (AKK): k-means in a kernel space, centres spanned by p landmarks.

    Parameters
    ----------
    n_clusters : int, default=8
    n_landmarks : int, default=1000
        p, random points that span the centres. With all points this is kernel k-means.
    kernel : {"rbf", "exponential", "inverse_square", "inverse_distance", "linear", "cosine", "quadratic", "cubic", \
"polynomial"}, callable or Kernel
    bandwidth : {"rms", "mean", "median"} or float
        σ of the kernel, taken from the landmarks; see :class:`~subspaces.kernels.DistanceKernel`.
    n_init : int, default=10
        Starts by k-means++ on 10,000 points; the best goes on with all points.
    max_iter : int, default=50
        Passes over all points.
    scaling, random_state
        As in :class:`~subspaces.KTRR`.

    Attributes
    ----------
    labels_, n_clusters_, timings_
    landmarks_ : array of shape (p, m), as scaled
    kernel_ : the kernel with its bandwidth
    centres_ : weights of the landmarks in the centres
    n_iter_ : passes over all points

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.estimators.akk import AKK
    >>> X = np.random.default_rng(0).normal(size=(500, 2)) + np.repeat([[0, 0], [9, 9]], 250, axis=0)
    >>> labels = AKK(n_clusters=2, n_landmarks=50).fit_predict(X)
    >>> len(set(labels[:250])), len(set(labels[250:]))
    (1, 1)
    """

    n_landmarks: int = 1000
    n_init: int = 10
    kernel: KernelLike = "rbf"
    bandwidth: float | str = "rms"
    max_iter: int = 50

    _constraints: ClassVar[dict[str, list[Any]]] = {**WANTED, "kernel": [StrOptions(set(SPACES)), callable, Kernel]}
    cost: ClassVar[str] = "O(n p (m + n_clusters)) per pass, no n × p array"
    reference: ClassVar[str] = "Chitta, Jin, Havens, Jain: Approximate kernel k-means, KDD 2011"

    def _fit(self, X: Array) -> None:
        kernel = kernel_of(self.kernel, self.bandwidth, SPACES, "AKK")

        def solve(X: Array, given: Given) -> KernelKMeansModel:
            return kernel_kmeans.akk(
                X,
                kernel.scaled(given.exponent),
                n_clusters=given.n_clusters,
                n_landmarks=self.n_landmarks,
                n_init=self.n_init,
                max_iter=self.max_iter,
                seed=given.seed,
                stage=given.stage,
            )

        keeps = ("landmarks", "kernel", "centres", "n_iter")
        work = kernel_kmeans.work_bytes(len(X), min(self.n_landmarks, len(X)), X.itemsize)
        fit_landmarks(self, X, solve, keeps, work_bytes=work, units=kernel.sees_units)
