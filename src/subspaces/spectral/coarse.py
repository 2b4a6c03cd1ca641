"""Cut graphs of many samples: the graph between micro-clusters is cut, the samples follow, then labels are smoothed.

The leading eigenvectors of a large graph of real data describe tiny components: small dense pieces that hang on by a
few edges. Contracted to micro-clusters, with their inner edges left out, the same graph shows its large parts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from subspaces.graphs.affinity import components
from subspaces.spectral.embedding import spectral_embedding, unit_rows
from subspaces.utils.cells import nearest_cell
from subspaces.utils.types import Array, Labels, Sparse

_SMALLEST_SHARE = 0.005  # of the samples: smaller pieces of the coarse graph say nothing about large clusters
_SWEEPS = 5
_MEMORY = 0.1  # weight of a sample's own first label in each sweep


@dataclass(frozen=True)
class CoarseEmbedding:
    """Hold the spectral embedding of the micro-clusters."""

    rows: Array  #: (p, k), of unit length; those of small loose pieces are copied from the nearest others
    kept: Array  #: the micro-clusters that were embedded themselves
    eigenvalues: Array  #: of L


def contract(W: Sparse, groups: Labels) -> Sparse:
    """Return the edge weights between groups of samples, PᵀWP with a zero diagonal."""
    n, p = len(groups), int(groups.max()) + 1
    indicator = sparse.csr_array((np.ones(n, dtype=W.dtype), groups, np.arange(n + 1)), shape=(n, p))
    coarse = sparse.csr_array(indicator.T @ (W @ indicator))
    coarse.setdiag(0)
    coarse.eliminate_zeros()
    return (coarse + coarse.T) / 2  # rounding in the sums must not make it unsymmetric


def coarse_embedding(
    W: Sparse, groups: Labels, centroids: Array, n_vectors: int, between: Sparse = None
) -> CoarseEmbedding:
    """Embed the micro-clusters `groups` of the samples of W (:func:`embed_contracted`)."""
    sizes = np.bincount(groups, minlength=len(centroids))
    return embed_contracted(contract(W, groups), sizes, centroids, n_vectors, between)


def embed_contracted(
    coarse: Sparse, sizes: Array, centroids: Array | None, n_vectors: int, between: Sparse = None
) -> CoarseEmbedding:
    """Embed micro-clusters of these sizes, from the graph that :func:`contract` gives.

    Pieces of the coarse graph with less than 0.5 % of the samples are left out and take the row of the nearest
    micro-cluster that was not, or zeros without `centroids`. `between` is a graph between the micro-clusters
    themselves, added to the contracted one with the same total weight: the samples' own edges never leave a piece of
    the data (soil types of Covtype); this one tells which pieces are near.
    """
    dtype = coarse.dtype
    if between is not None and between.sum() > 0:
        coarse = coarse + between * (coarse.sum() / between.sum() if coarse.nnz else 1)
    coarse = sparse.csr_array(coarse, dtype=np.float64)
    _, piece = components(coarse)
    in_piece = np.bincount(piece + 1, weights=sizes)  # the first counts micro-clusters without any edge
    large = in_piece >= _SMALLEST_SHARE * sizes.sum()
    large[0] = False
    if not large[1:].any():
        large[1 + in_piece[1:].argmax()] = True
    kept = large[piece + 1]
    found = spectral_embedding(coarse[kept][:, kept], n_vectors)
    rows = np.zeros((len(sizes), found.vectors.shape[1]), dtype=dtype)
    rows[kept] = unit_rows(found.vectors)
    if centroids is not None:
        rows[~kept] = rows[kept][nearest_cell(centroids[~kept], centroids[kept])]
    return CoarseEmbedding(rows, kept, found.eigenvalues)


def smooth_labels(W: Sparse, labels: Labels, n_clusters: int, fixed: Array | None = None) -> Labels:
    """Let each sample follow its neighbours: five sweeps F ← 0.9 D⁻¹WF + 0.1 F₀ from the indicator F₀ of the labels.

    Those that are `fixed` keep their labels throughout; they belong to other parts of a larger graph, so that a label
    may vanish here.
    """
    degree = np.asarray(W.sum(axis=1)).ravel()
    inverse = np.divide(1 - _MEMORY, degree, out=np.zeros_like(degree), where=degree > 0)[:, None]
    start = np.zeros((len(labels), n_clusters), dtype=W.dtype)
    start[np.arange(len(labels)), labels] = 1
    F = start
    for _ in range(_SWEEPS):
        F = W @ F
        F *= inverse
        F[np.arange(len(labels)), labels] += _MEMORY
        if fixed is not None:
            F[fixed] = start[fixed]
    smoothed = F.argmax(axis=1)
    if fixed is not None:
        return smoothed.astype(np.intp)
    # a cluster must not vanish: its samples keep their labels
    lost = np.setdiff1d(labels, smoothed)
    return np.where(np.isin(labels, lost), labels, smoothed).astype(np.intp)
