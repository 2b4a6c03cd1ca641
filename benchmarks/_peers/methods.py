"""What is compared: ours, the peers, and the lower bounds, each a function (X, number of clusters, seed) → labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain, zip_longest
from typing import Any

import numpy as np

Labels = np.ndarray | None


@dataclass(frozen=True)
class Method:
    """One row of the tables.

    Attributes
    ----------
    run : labels, or a fitted model that has them and the times of its legs
    group : "ours", "peer" or "floor"
    needs : name of the package to import, said in the table where it is missing
    largest : points above which it is not tried (memory, or hours)
    smallest : points below which it has no purpose
    only : recipes of data sets it is for; empty for all
    """

    title: str
    run: Callable[[np.ndarray, int, int], Any]
    group: str = "peer"
    needs: str = "sklearn"
    largest: int = 10**7
    smallest: int = 0
    only: tuple[str, ...] = ()

    def suits(self, recipe: str, n: int) -> bool:
        """Whether it is run on such data at all."""
        return self.smallest <= n <= self.largest and (not self.only or recipe in self.only)

    def missing(self) -> bool:
        """Whether its package is not installed."""
        return find_spec(self.needs) is None


def ours(method: str, **parameters: Any) -> Callable[[np.ndarray, int, int], Any]:
    def run(X: np.ndarray, k: int, seed: int) -> Any:
        from subspaces import registry

        return registry.load(method)(n_clusters=k, random_state=seed, **parameters).fit(X)

    return run


def polynomial(X: np.ndarray, k: int, seed: int) -> Any:
    """KTRR for subspaces that intersect: a high power of the inner product; less high where points are many."""
    from subspaces import KTRR

    degree, reg = (6, 1e-3) if len(X) < 5000 else (3, 1e-4)
    kernel: dict[str, Any] = {"kernel": "polynomial", "kernel_params": {"degree": degree, "coef0": 0}}
    return KTRR(k, reg=reg, n_nonzero=10, random_state=seed, **kernel).fit(X)


# ---------------------------------------------------------------- peers


def kmeans(X: np.ndarray, k: int, seed: int) -> Labels:
    from sklearn.cluster import KMeans

    return KMeans(k, n_init=10, random_state=seed).fit_predict(X)


def spectral_rbf(X: np.ndarray, k: int, seed: int) -> Labels:
    from sklearn.cluster import SpectralClustering

    return SpectralClustering(k, random_state=seed).fit_predict(X)


def spectral_neighbours(X: np.ndarray, k: int, seed: int) -> Labels:
    from sklearn.cluster import SpectralClustering

    return SpectralClustering(k, affinity="nearest_neighbors", random_state=seed).fit_predict(X)


def umap_kmeans(X: np.ndarray, k: int, seed: int) -> Labels:
    from sklearn.cluster import KMeans
    from umap import UMAP

    return KMeans(k, n_init=10, random_state=seed).fit_predict(UMAP(random_state=seed).fit_transform(X))


def hdbscan(X: np.ndarray, k: int, seed: int) -> Labels:
    from sklearn.cluster import HDBSCAN

    return HDBSCAN(min_cluster_size=max(5, len(X) // 100), copy=True).fit_predict(X) + 1  # noise is a group too


def communities(name: str) -> Callable[[np.ndarray, int, int], Labels]:
    def run(X: np.ndarray, k: int, seed: int) -> Labels:
        from sklearn.neighbors import kneighbors_graph
        from sknetwork import clustering

        graph = kneighbors_graph(X, 10, include_self=False)
        return getattr(clustering, name)(random_state=seed).fit_predict((graph + graph.T).tocsr())

    return run


def genie(X: np.ndarray, k: int, seed: int) -> Labels:
    from genieclust import Genie

    return Genie(k).fit_predict(X)


def faiss_kmeans(X: np.ndarray, k: int, seed: int) -> Labels:
    import faiss

    points = np.ascontiguousarray(X, dtype=np.float32)
    model = faiss.Kmeans(X.shape[1], k, niter=50, nredo=10, seed=seed + 1)
    model.train(points)
    return model.index.search(points, 1)[1].ravel()


def spectral_bridges(X: np.ndarray, k: int, seed: int) -> Labels:
    from spectralbridges import SpectralBridges

    points = np.ascontiguousarray(X, dtype=np.float32)
    model = SpectralBridges(k, n_nodes=max(250, 3 * k), random_state=seed)
    model.fit(points)
    return model.predict(points)


def subkmeans(X: np.ndarray, k: int, seed: int) -> Labels:
    from clustpy.centroid import SubKmeans

    return SubKmeans(k, n_init=10, random_state=seed).fit(X).labels_


def spectral_cluster(X: np.ndarray, k: int, seed: int) -> Labels:
    from spectralcluster import SpectralClusterer

    return SpectralClusterer(min_clusters=k, max_clusters=k).predict(X)


# ---------------------------------------------------------------- lower bounds


def bare_closed_form(X: np.ndarray, k: int, seed: int) -> Labels:
    """GEMM + potrf + potri: nothing that inverts the kernel matrix can be faster."""
    from scipy.linalg import get_lapack_funcs

    K = X @ X.T
    K.flat[:: len(X) + 1] += 1
    potrf, potri = get_lapack_funcs(("potrf", "potri"), (K,))
    potrf(K.T, lower=0, clean=0, overwrite_a=1)
    potri(K.T, lower=0, overwrite_c=1)
    return None


def bare_search(X: np.ndarray, k: int, seed: int) -> Labels:
    """Ten nearest neighbours of every point by faiss: all products up to 30,000 points, a navigable graph above."""
    import faiss

    points = np.ascontiguousarray(X, dtype=np.float32)
    if len(X) <= 30_000:
        index: Any = faiss.IndexFlatL2(X.shape[1])
    else:
        index = faiss.IndexHNSWFlat(X.shape[1], 16)
        index.hnsw.efConstruction, index.hnsw.efSearch = 64, 64
    index.add(points)
    index.search(points, 11)
    return None


AUTO = dict.fromkeys(("kernel", "reg", "n_nonzero", "scaling", "assign_labels"), "auto")
OURS: dict[str, Method] = {
    "ktrr": Method("KTRR", ours("ktrr"), "ours", largest=600_000),
    "ktrr-modularity": Method("KTRR, modularity", ours("ktrr", assign_labels="modularity"), "ours"),
    "ktrr-unit": Method(
        "KTRR, unit rows, η 10, modularity",
        ours("ktrr", scaling="unit", n_nonzero=10, assign_labels="modularity"),
        "ours",
    ),
    "ktrr-polynomial": Method("KTRR, polynomial kernel", polynomial, "ours", only=("hard",)),
    "ktrr-auto": Method("KTRR, automatic", ours("ktrr", **AUTO), "ours", largest=8_000),
    "trr": Method("TRR", ours("trr"), "ours", largest=300_000),
    "trr-modularity": Method("TRR, modularity", ours("trr", assign_labels="modularity"), "ours", largest=300_000),
    "ensc": Method("EnSC", ours("ensc"), "ours", largest=10_000),
    "sscomp": Method("SSC-OMP", ours("sscomp"), "ours", largest=10_000),
    "tsc": Method("TSC", ours("tsc"), "ours", largest=30_000),
    "lsc": Method("LSC", ours("lsc"), "ours", smallest=5_000),
    "uspec": Method("U-SPEC", ours("uspec"), "ours", smallest=5_000),
    "ektrr": Method("EKTRR", ours("ektrr"), "ours", smallest=5_000),
}
PEERS: dict[str, Method] = {
    "kmeans": Method("scikit-learn KMeans", kmeans),
    "sc-neighbours": Method("scikit-learn SpectralClustering, kNN", spectral_neighbours, largest=10_000),
    "sc-rbf": Method("scikit-learn SpectralClustering", spectral_rbf, largest=10_000),
    "umap": Method("UMAP + k-means", umap_kmeans, needs="umap", largest=100_000),
    "genie": Method("genieclust", genie, needs="genieclust", largest=100_000),
    "leiden": Method("scikit-network Leiden on kNN", communities("Leiden"), needs="sknetwork", largest=100_000),
    "louvain": Method("scikit-network Louvain on kNN", communities("Louvain"), needs="sknetwork", largest=100_000),
    "faiss": Method("faiss k-means", faiss_kmeans, needs="faiss"),
    "hdbscan": Method("scikit-learn HDBSCAN", hdbscan, largest=30_000),
    "bridges": Method("spectral-bridges", spectral_bridges, needs="spectralbridges"),
    "subkmeans": Method("ClustPy SubKmeans", subkmeans, needs="clustpy", largest=30_000),
    "spectralcluster": Method("spectralcluster", spectral_cluster, needs="spectralcluster", largest=3_000),
}
FLOORS: dict[str, Method] = {
    "floor-dense": Method("bare GEMM + potrf + potri", bare_closed_form, "floor", largest=10_000),
    "floor-search": Method("bare neighbour search", bare_search, "floor", needs="faiss"),
}
REFERENCE = "ktrr"
"""Ours, where a table says "× ours"; where it was not run, the first of ours that was."""

_TAKEN_IN_TURN = zip_longest(OURS.items(), chain(PEERS.items(), FLOORS.items()))
METHODS: dict[str, Method] = dict(item for pair in _TAKEN_IN_TURN for item in pair if item is not None)
"""All, in the order they are run: ours and the others in turn, so that what else the machine does hits all alike."""
