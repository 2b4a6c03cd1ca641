"""SEC: a spectral embedding that is bound to be nearly linear in the points, so that new points have one too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from subspaces.estimators.base import POSITIVE, SubspaceClusterer
from subspaces.estimators.model_fit import WANTED, Given, fit_landmarks
from subspaces.landmarks.spectral_embedded import SpectralEmbeddedModel, sec
from subspaces.numerics.types import Array


@dataclass(eq=False, repr=False, kw_only=True)
class SEC(SubspaceClusterer):
    """Spectral embedded clustering (SEC): a sample is embedded, all other points follow by a linear map.

    Parameters
    ----------
    n_clusters : int, default=8
    n_landmarks : int, default=1000
        p, points drawn at random whose graph is cut; as many as there are points is the method without sampling.
    n_neighbors : int, default=5
        Neighbours each landmark is joined to.
    fidelity : float, default=1
        μ, how much the linear map counts against the graph.
    reg : float, default=0.01
        Ridge penalty of the map: γ is `reg` times the mean diagonal entry of X_cᵀX_c, so that units do not matter.
    n_init : int, default=10
        Starts of the final k-means.
    scaling, random_state
        As in :class:`~subspaces.KTRR`.

    Attributes
    ----------
    labels_, n_clusters_, timings_
    landmarks_ : indices of the landmarks
    penalty_ : γ
    embedding_map_ : the map and the landmarks' embedding
        A :class:`~subspaces.landmarks.spectral_embedded.LinearEmbedding`.
    cluster_centers_ : centres of the clusters among the mapped landmarks

    Notes
    -----
    ``labels_`` of the landmarks come from their embedding, as published; ``predict`` knows the map only and may
    disagree there.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.estimators.sec import SEC
    >>> X = np.random.default_rng(0).normal(size=(500, 2)) + np.repeat([[0, 0], [9, 9]], 250, axis=0)
    >>> labels = SEC(n_clusters=2, n_landmarks=50).fit_predict(X)
    >>> len(set(labels[:250])), len(set(labels[250:]))
    (1, 1)
    """

    n_landmarks: int = 1000
    n_init: int = 10
    n_neighbors: int = 5
    fidelity: float = 1.0
    reg: float = 0.01

    _constraints: ClassVar[dict[str, list[Any]]] = {**WANTED, "fidelity": [POSITIVE]}
    cost: ClassVar[str] = "O(p³ + p m²) and one product, O(n m n_clusters)"
    reference: ClassVar[str] = (
        "Nie, Zeng, Tsang, Xu, Zhang: Spectral embedded clustering, IEEE Trans. Neural Networks 22 (2011)"
    )

    def _fit(self, X: Array) -> None:
        def solve(X: Array, given: Given) -> SpectralEmbeddedModel:
            return sec(
                X,
                n_clusters=given.n_clusters,
                n_landmarks=self.n_landmarks,
                n_neighbors=self.n_neighbors,
                fidelity=self.fidelity,
                reg=self.reg,
                n_init=self.n_init,
                seed=given.seed,
                stage=given.stage,
            )

        found = fit_landmarks(self, X, solve, ("penalty", "embedding_map", "cluster_centers"))
        if found.model is not None:
            self.landmarks_ = found.order[found.model.rows]
