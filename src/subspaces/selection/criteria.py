"""Small functions that judge a graph, a partition or a whole family of partitions without any label.

None of them finds the best setting alone (``docs/selection.md`` has the figures); :mod:`subspaces.selection.search`
combines three: modularity, normalised cut and the agreement between settings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import sparse

from subspaces.numerics.types import Array, Labels, Sparse
from subspaces.partition import modularity

__all__ = [
    "eigengap",
    "leave_one_out_error",
    "modularity",
    "modularity_ceiling",
    "normalized_cut",
    "pairwise_agreement",
    "stability",
    "support",
]


def modularity_ceiling(W: Sparse, labels: Labels) -> float:
    """The modularity these clusters would have without any edge between them: 1 − Σ (share of degree)².

    It is larger for equal clusters, which is why modularity prefers them.
    """
    degree = np.asarray(W.sum(axis=1), dtype=np.float64).ravel()
    shares = np.bincount(labels, weights=degree) / max(float(degree.sum()), np.finfo(np.float64).tiny)
    return float(1 - np.square(shares).sum())


def normalized_cut(W: Sparse, labels: Labels) -> float:
    """Mean over the clusters of the share of a cluster's edge weight that leaves it: 0 for separate components.

    Modularity weighs every edge alike, so large clusters dominate it; here each cluster counts once.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> W = csr_array([[0.0, 3.0, 1.0], [3.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    >>> float(normalized_cut(W, np.array([0, 0, 1])))  # (1/7 + 1/1) / 2
    0.571...
    """
    W = sparse.coo_array(W)
    weights = W.data.astype(np.float64)
    volume = np.bincount(labels[W.row], weights=weights, minlength=int(labels.max()) + 1)
    same = labels[W.row] == labels[W.col]
    inside = np.bincount(labels[W.row][same], weights=weights[same], minlength=len(volume))
    occupied = volume > 0  # a cluster of points without edges says nothing
    return float(np.mean(1 - inside[occupied] / volume[occupied])) if occupied.any() else 1.0


def eigengap(eigenvalues: Array, n_clusters: int) -> float:
    """Step λ_{k+1} − λ_k of the ascending Laplacian eigenvalues after the k-th; 0 where it was not computed."""
    if not 0 < n_clusters < len(eigenvalues):
        return 0.0
    return float(eigenvalues[n_clusters] - eigenvalues[n_clusters - 1])


def leave_one_out_error(inverse: Array, penalty: float) -> float:
    """Mean squared distance, in the kernel's space, of a point to its ridge representation by the others.

    Every point is already represented without itself (c_ii = 0), so no refit is needed: with U = (K + λI)⁻¹ the
    squared residual is (u_ii − λ (U²)_ii) / u_ii². It falls with λ, so it must not be minimised
    alone: it is reported, not used.

    Parameters
    ----------
    inverse : array of shape (n, n)
        U.
    penalty : float
        λ.
    """
    diagonal = inverse.diagonal().astype(np.float64)
    squares = np.einsum("ij,ij->i", inverse, inverse, dtype=np.float64)
    return float(np.mean((diagonal - penalty * squares) / diagonal**2))


def pairwise_agreement(partitions: Sequence[Labels]) -> Array:
    """Adjusted Rand index between every two partitions of the same points, shape (p, p), ones on the diagonal.

    All contingency tables of one partition with the others come from one sparse product.
    """
    n, sizes = len(partitions[0]), [int(labels.max()) + 1 for labels in partitions]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    columns = np.concatenate([labels + offset for labels, offset in zip(partitions, offsets[:-1], strict=True)])
    rows = np.tile(np.arange(n), len(partitions))
    indicator = sparse.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(n, int(offsets[-1])))
    transposed = indicator.T.tocsr()
    counts = np.bincount(columns, minlength=int(offsets[-1])).astype(np.float64)
    pairs = np.add.reduceat(counts * (counts - 1) / 2, offsets[:-1])  # within each partition
    all_pairs = max(n * (n - 1) / 2, 1.0)
    agreement = np.eye(len(partitions))
    for i in range(len(partitions)):
        table = (transposed[offsets[i] : offsets[i + 1]] @ indicator).toarray().astype(np.float64)
        together = np.add.reduceat((table * (table - 1) / 2).sum(axis=0), offsets[:-1])
        expected = pairs[i] * pairs / all_pairs
        possible = (pairs[i] + pairs) / 2 - expected
        # two partitions that both put everything together (or everything apart) agree
        agreement[i] = np.divide(together - expected, possible, out=np.ones_like(possible), where=possible > 0)
    return agreement


def support(agreement: Array, share: float = 0.05, least: int = 6) -> Array:
    """Mean agreement of each partition with the ones most like it: `share` of the rivals, at least `least` of them.

    Settings that see the structure of the data agree with each other; settings that do not fail each in its own
    way. So the partition in the densest spot is trusted, and not the one nearest to the mean of all: where most
    settings fail, that one would fail as well.
    """
    n_rivals = len(agreement) - 1
    if n_rivals < 1:
        return np.ones(len(agreement))
    n_kept = min(n_rivals, max(least, round(share * len(agreement))))
    rivals = agreement.copy()
    np.fill_diagonal(rivals, -np.inf)
    mean: Array = np.sort(rivals, axis=1)[:, ::-1][:, :n_kept].mean(axis=1)
    return mean


def stability(
    W: Sparse,
    labels: Labels,
    cut: Callable[[Sparse], Labels],
    *,
    n_draws: int = 5,
    share: float = 0.8,
    seed: int = 0,
) -> float:
    """Agreement (adjusted Rand index) of the partition with those of random parts of the graph.

    Parameters
    ----------
    W : graph
    labels : its partition
    cut : function that partitions a graph
    n_draws, share : how many parts, and the share of the points in each
    seed : of the draws
    """
    rng = np.random.default_rng(seed)
    n = W.shape[0]
    found = []
    for _ in range(n_draws):
        kept = np.sort(rng.choice(n, max(2, round(share * n)), replace=False))
        part = W[kept][:, kept]
        if part.nnz:
            found.append(pairwise_agreement([labels[kept], cut(part)])[0, 1])
    return float(np.mean(found)) if found else 0.0
