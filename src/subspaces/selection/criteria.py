"""Small functions that judge a graph, a partition or a whole family of partitions without any label.

None of them finds the best setting alone (``docs/automatic.md`` has the figures); :mod:`subspaces.selection.search`
combines two: the agreement between settings and how well subspaces fit the clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from subspaces.spectral.agreement import pairwise_agreement
from subspaces.utils.blocks import map_blocks
from subspaces.utils.decompositions import eigenvalues
from subspaces.utils.ordering import levels
from subspaces.utils.types import Array, Data, Labels, Sparse

DIMENSIONS = (3, 4, 6)
"""Of the subspaces that are fitted to clusters: motions have 3, faces about 9; none of the three need be right."""
N_COMPONENTS = 60


def normalized_cut(W: Sparse, labels: Labels) -> float:
    """Return mean over the clusters of the share of a cluster's edge weight that leaves it: 0 for separate components.

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
    occupied = volume > 0  # a cluster of samples without edges says nothing
    return float(np.mean(1 - inside[occupied] / volume[occupied])) if occupied.any() else 1.0


def support(agreement: Array, share: float = 1 / 3, least: int = 3) -> Array:
    """Return mean agreement of each partition with the ones most like it.

    `share` of the rivals, at least `least` of them.

    Settings that see the structure of the data agree with each other; settings that do not fail each in its own
    way. So the partition in the densest spot is trusted, and not the one nearest to the mean of all: where most
    settings fail, that one would fail as well.
    """
    n_rivals = len(agreement) - 1
    if n_rivals < 1:
        return np.ones(len(agreement))
    n_kept = min(n_rivals, max(least, round(share * n_rivals)))
    rivals = agreement.copy()
    np.fill_diagonal(rivals, -np.inf)
    mean: Array = np.sort(rivals, axis=1)[:, ::-1][:, :n_kept].mean(axis=1)
    return mean


def consensus(
    partitions: Sequence[Labels], chosen: int, agreement: Array, share: float = 1 / 3, least: int = 3
) -> Array:
    """Return how far the partitions most like the chosen one put each sample into the same cluster, 0 to 1.

    The Jaccard index of the sample's clusters in the two partitions, mean of `share` of the others; `agreement` is that
    of the chosen one with each.

    Examples
    --------
    >>> consensus([np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])], 0, np.array([1.0, 0.0])).round(2)
    array([0.67, 0.67, 0.25, 0.5 ])
    """
    labels = partitions[chosen]
    n_others = len(partitions) - 1
    if n_others < 1:
        return np.full(len(labels), np.nan)
    like = np.argsort(levels(-agreement), kind="stable")
    others = like[like != chosen][: max(least, round(share * n_others))]
    size = np.bincount(labels)
    mean = np.zeros(len(labels))
    for i in others:
        other = partitions[i]
        joint = np.unique(labels * (int(other.max()) + 1) + other, return_inverse=True)[1]
        common = np.bincount(joint)[joint]
        mean += common / (size[labels] + np.bincount(other)[other] - common)
    return mean / len(others)


def leading_components(X: Data, n_components: int = N_COMPONENTS) -> Array:
    """Return the samples in their leading principal components.

    Sparse ones about the origin, which stay sparse on the way.
    """
    points = X if sparse.issparse(X) else X - X.mean(axis=0)
    if min(points.shape) <= n_components:
        return np.asarray(points.toarray() if sparse.issparse(points) else points)
    left, singular, _ = randomized_svd(points, n_components, n_iter=2, random_state=0)
    components: Array = left * singular
    return components


def subspace_residuals(points: Array, partitions: Sequence[Labels], dimensions: Sequence[int] = DIMENSIONS) -> Array:
    """Return what affine subspaces, one fitted to each cluster, leave of the samples: sums of squares, shape (p, d).

    The objective of k-subspaces, in a few dimensions at once because that of the data is not known. Clusters that mix
    subspaces need more dimensions than their parts.

    Examples
    --------
    >>> cross = np.array([[1.0, 0], [2, 0], [3, 0], [0, 1.0], [0, 2], [0, 3]])
    >>> right, wrong = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 0, 1, 0, 1])
    >>> subspace_residuals(cross, [right, wrong], [1]).round(2).ravel()
    array([0.  , 1.64])
    """
    found = np.zeros((len(partitions), len(dimensions)))

    def one(start: int, stop: int) -> None:
        for number in range(start, stop):
            order = np.argsort(partitions[number], kind="stable")
            for members in np.split(order, np.cumsum(np.bincount(partitions[number]))[:-1]):
                found[number] += _unexplained(points[members], dimensions)

    map_blocks(one, [(i, i + 1) for i in range(len(partitions))])
    return found


def _unexplained(points: Array, dimensions: Sequence[int]) -> Array:
    """Return sums of squares about the best affine subspaces of these dimensions."""
    if len(points) < 2:
        return np.zeros(len(dimensions))
    centred = points - points.mean(axis=0)
    wide = points.shape[1] > len(points)
    values = np.maximum(eigenvalues(centred @ centred.T if wide else centred.T @ centred), 0)[::-1]
    left = np.maximum(values.sum() - np.concatenate([[0.0], np.cumsum(values)]), 0)
    return np.array([left[min(dimension, len(values))] for dimension in dimensions])


def stability(
    W: Sparse,
    labels: Labels,
    cut: Callable[[Sparse], Labels],
    *,
    n_draws: int = 3,
    share: float = 0.8,
    seed: int = 0,
) -> float:
    """Return agreement (adjusted Rand index) of the partition with those of random parts of the graph.

    Parameters
    ----------
    W : graph
    labels : its partition
    cut : function that partitions a graph
    n_draws, share : how many parts, and the share of the samples in each
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
