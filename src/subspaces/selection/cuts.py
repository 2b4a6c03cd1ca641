"""Cutting the graphs of a search: fewer k-means starts and Leiden iterations than a fit, otherwise the same."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

from subspaces.embedding.spectral import spectral_embedding, unit_rows
from subspaces.graphs.affinity import components, join_components
from subspaces.numerics.types import Array, Labels, Sparse
from subspaces.partition import cut_by_modularity, cut_by_qr, cut_embedding, merge_communities
from subspaces.selection.graphs import LEIDEN_ITERATIONS, Graph

N_INIT = 3
"""Starts of k-means while searching, where the QR cut cannot give one."""


def cut(graph: Graph, method: str, n_clusters: int | None, *, connect: bool, seed: int) -> tuple[Labels, Array]:
    """Partition a graph; also the eigenvalues that were needed for it (none for modularity).

    `n_clusters` None takes the communities of largest modularity as they are.
    """
    if method == "modularity":
        return _filled(_cut_communities(graph.W, graph.communities, n_clusters, seed)), np.zeros(0)
    assert n_clusters is not None
    W = graph.W
    if connect and graph.n_components > n_clusters:
        W = join_components(W, graph.strongest, n_clusters)
    return cut_spectrally(W, method, n_clusters, seed)


def cut_spectrally(W: Sparse, method: str, n_clusters: int, seed: int) -> tuple[Labels, Array]:
    """Cut by the eigenvectors; one eigenvalue more than needed is computed, for the gap."""
    found = spectral_embedding(W, min(n_clusters + 1, W.shape[0]))
    Y = unit_rows(found.vectors[:, : max(n_clusters, found.n_components)])
    labels = np.full(W.shape[0], -1, dtype=np.intp)
    connected = found.components >= 0
    labels[connected] = _cut_rows(Y[connected], min(n_clusters, int(connected.sum())), method, seed)
    return _filled(labels), found.eigenvalues


def _cut_rows(Y: Array, n_clusters: int, method: str, seed: int) -> Labels:
    """As in a fit, but k-means starts once, from the clusters of the QR cut, instead of many times at random."""
    if method != "kmeans" or Y.shape[1] != n_clusters or n_clusters == 1:
        return cut_embedding(Y, n_clusters, method=method, n_init=N_INIT, seed=seed)
    start = cut_by_qr(Y)
    sizes = np.bincount(start, minlength=n_clusters)
    if (sizes == 0).any():
        return cut_embedding(Y, n_clusters, method=method, n_init=N_INIT, seed=seed)
    centres = np.zeros((n_clusters, Y.shape[1]), dtype=Y.dtype)
    np.add.at(centres, start, Y)
    model = KMeans(n_clusters, init=centres / sizes[:, None].astype(Y.dtype), n_init=1)
    return model.fit(Y).labels_.astype(np.intp)


def recut(W: Sparse, method: str, n_clusters: int | None, seed: int) -> Labels:
    """Cut a part of a graph the same way."""
    connected = components(W)[1] >= 0
    n_clusters = None if n_clusters is None else min(n_clusters, int(connected.sum()))
    if method != "modularity":
        assert n_clusters is not None
        return cut_spectrally(W, method, n_clusters, seed)[0]
    labels = np.full(W.shape[0], -1, dtype=np.intp)
    labels[connected] = cut_by_modularity(
        W[connected][:, connected], n_clusters, seed=seed, iterations=LEIDEN_ITERATIONS
    )
    return _filled(labels)


def _cut_communities(W: Sparse, communities: Labels, n_clusters: int | None, seed: int) -> Labels:
    if n_clusters is None:
        return communities
    connected = communities >= 0
    part, found = W[connected][:, connected], communities[connected]
    labels = np.full(len(communities), -1, dtype=np.intp)
    if found.max() + 1 >= n_clusters:
        labels[connected] = merge_communities(part, found, n_clusters)
    else:  # too few: look again at a finer resolution
        labels[connected] = cut_by_modularity(part, n_clusters, resolution=1.5, seed=seed, iterations=LEIDEN_ITERATIONS)
    return labels


def _filled(labels: Labels) -> Labels:
    """Points nothing is known about go to the largest cluster, as in a fit."""
    if (labels >= 0).all():
        return labels
    return np.where(labels >= 0, labels, np.bincount(labels[labels >= 0]).argmax()).astype(np.intp)
