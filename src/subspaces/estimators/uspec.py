"""U-SPEC: representatives chosen from a sample, found through a coarse index, and the transfer cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from subspaces.estimators.base import SubspaceClusterer
from subspaces.estimators.model_fit import NEAR, Given, fit_landmarks
from subspaces.landmarks.bipartite import SQUARES, BipartiteModel, uspec, work_bytes
from subspaces.numerics.types import Array


@dataclass(eq=False, repr=False, kw_only=True)
class USPEC(SubspaceClusterer):
    """Ultra-scalable spectral clustering (U-SPEC): near representatives found without looking at all of them.

    10p points are drawn and k-means makes p representatives of them; each point is tied to `n_neighbors` near ones,
    found through √p groups; the bipartite graph is cut by a p × p eigenproblem.

    Parameters
    ----------
    n_clusters : int, default=8
    n_landmarks : int, default=1000
        p, number of representatives; with more than there are points every point is one.
    n_neighbors : int, default=5
        Representatives each point is tied to.
    bandwidth : "neighbors" or float, default="neighbors"
        σ of the weights exp(−d²/σ²); ``"neighbors"`` is √2 times the mean distance between points and the
        representatives they are tied to, as in the paper.
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
    >>> from subspaces.estimators.uspec import USPEC
    >>> angle = np.linspace(0, 2 * np.pi, 300, endpoint=False)
    >>> ring = np.c_[np.cos(angle), np.sin(angle)]
    >>> labels = USPEC(n_clusters=2, n_landmarks=100).fit_predict(np.vstack([ring, 3 * ring]))
    >>> len(set(labels[:300])), len(set(labels[300:]))
    (1, 1)
    """

    n_landmarks: int = 1000
    n_init: int = 10
    n_neighbors: int = 5
    bandwidth: float | str = "neighbors"

    _constraints: ClassVar[dict[str, list[Any]]] = NEAR
    cost: ClassVar[str] = "O(n √p m), no n × p array"
    reference: ClassVar[str] = (
        "Huang, Wang, Wu, Lai, Kwoh: Ultra-scalable spectral clustering and ensemble clustering, IEEE TKDE 32 (2020)"
    )

    def _fit(self, X: Array) -> None:
        def solve(X: Array, given: Given) -> BipartiteModel:
            return uspec(
                X,
                n_clusters=given.n_clusters,
                n_landmarks=self.n_landmarks,
                n_neighbors=self.n_neighbors,
                bandwidth=given.length(self.bandwidth),
                n_init=self.n_init,
                seed=given.seed,
                stage=given.stage,
            )

        work = work_bytes(len(X), self.n_neighbors, X.itemsize)
        keeps = ("landmarks", "bandwidth", "cluster_centers")
        fit_landmarks(self, X, solve, keeps, n_squares=SQUARES, work_bytes=work)
