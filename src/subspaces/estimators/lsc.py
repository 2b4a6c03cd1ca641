"""LSC: points coded over their few nearest landmarks, and the transfer cut of that graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from subspaces.estimators.base import SubspaceClusterer
from subspaces.estimators.model_fit import NEAR, Given, fit_landmarks
from subspaces.landmarks.bipartite import SQUARES, BipartiteModel, lsc, work_bytes
from subspaces.numerics.types import Array


@dataclass(eq=False, repr=False, kw_only=True)
class LSC(SubspaceClusterer):
    """Landmark-based spectral clustering (LSC): points coded over their few nearest landmarks.

    With Z the codes (rows sum to 1) the graph is Z D⁻¹ Zᵀ; its eigenvectors are the left singular vectors of Z D^(−½),
    which come from p × p. The first one is constant and left out, as in the authors' program.

    Parameters
    ----------
    n_clusters : int, default=8
    n_landmarks : int, default=1000
        p; with more than there are points every point is one.
    landmarks : {"kmeans", "random"}
        Centroids of k-means (LSC-K) or points drawn at random (LSC-R).
    n_neighbors : int, default=5
        Landmarks each point is coded over.
    bandwidth : "neighbors" or float, default="neighbors"
        σ of the weights exp(−d²/σ²); ``"neighbors"`` is √2 times the mean distance between points and the landmarks
        they are coded over.
    n_init : int, default=10
        Starts of the final k-means.
    scaling, random_state
        As in :class:`~subspaces.KTRR`.

    Attributes
    ----------
    labels_, n_clusters_, timings_
    landmarks_ : array of shape (at most p, m), as scaled
    bandwidth_ : σ
    cluster_centers_ : centres of the embedded points

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.estimators.lsc import LSC
    >>> angle = np.linspace(0, 2 * np.pi, 300, endpoint=False)
    >>> ring = np.c_[np.cos(angle), np.sin(angle)]
    >>> labels = LSC(n_clusters=2, n_landmarks=100).fit_predict(np.vstack([ring, 3 * ring]))
    >>> len(set(labels[:300])), len(set(labels[300:]))
    (1, 1)
    """

    n_landmarks: int = 1000
    n_init: int = 10
    n_neighbors: int = 5
    bandwidth: float | str = "neighbors"
    landmarks: str = "kmeans"

    _constraints: ClassVar[dict[str, list[Any]]] = {**NEAR, "landmarks": [StrOptions({"kmeans", "random"})]}
    cost: ClassVar[str] = "O(n p m), no n × p array"
    reference: ClassVar[str] = (
        "Chen, Cai: Large scale spectral clustering with landmark-based representation, AAAI 2011"
    )

    def _fit(self, X: Array) -> None:
        def solve(X: Array, given: Given) -> BipartiteModel:
            return lsc(
                X,
                n_clusters=given.n_clusters,
                n_landmarks=self.n_landmarks,
                landmarks=self.landmarks,
                n_neighbors=self.n_neighbors,
                bandwidth=given.length(self.bandwidth),
                n_init=self.n_init,
                seed=given.seed,
                stage=given.stage,
            )

        work = work_bytes(len(X), self.n_neighbors, X.itemsize)
        keeps = ("landmarks", "bandwidth", "cluster_centers")
        fit_landmarks(self, X, solve, keeps, n_squares=SQUARES, work_bytes=work)
