"""What a data scientist would try first, with usual settings, raw and standardised."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import StandardScaler

from subspaces.spectral.partition import cut_by_modularity


def leiden(X: np.ndarray, k: int) -> np.ndarray:
    neighbours = kneighbors_graph(X, min(15, len(X) - 1))
    return cut_by_modularity(sparse.csr_array(((neighbours + neighbours.T) > 0).astype(float)), k)


def umap(X: np.ndarray, k: int) -> np.ndarray:
    from umap import UMAP

    return KMeans(k, n_init=10, random_state=0).fit_predict(UMAP(random_state=0).fit_transform(X))


def spectral(X: np.ndarray, k: int) -> np.ndarray:
    model = SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=10, random_state=0)
    return model.fit_predict(X)


METHODS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "one label for all": lambda X, k: np.zeros(len(X), dtype=int),
    "k-means": lambda X, k: KMeans(k, n_init=10, random_state=0).fit_predict(X),
    "Ward": lambda X, k: AgglomerativeClustering(k).fit_predict(X),
    "spectral, 10 neighbours": spectral,
    "Leiden, 15 neighbours": leiden,
    "UMAP + k-means": umap,
}


def variants(X: np.ndarray) -> dict[str, np.ndarray]:
    """The points as they are and standardised."""
    return {"": X, ", standardised": StandardScaler().fit_transform(X)}
