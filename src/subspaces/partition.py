"""Y or W → labels: k-means with restarts, QR, discretisation of the embedding, or modularity of the graph itself."""

from __future__ import annotations

from collections.abc import Iterator

import graspologic_native
import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.cluster._spectral import discretize

from subspaces.numerics.decompositions import svd
from subspaces.numerics.kmeans import kmeans
from subspaces.numerics.process import one_thread
from subspaces.numerics.ties import first_largest
from subspaces.numerics.types import Array, Labels, Sparse

PARTITIONS = ("kmeans", "qr", "discretize", "modularity")

_MAX_RESOLUTION = 1e4
_CRUMB = 50  # a community with less than this part of a typical one is a crumb
_WEIGHT_BITS = 16
_MANY_POINTS = 20_000  # above, Leiden's rounds are dear and gain little after the third


def cut_embedding(
    Y: Array,
    n_clusters: int,
    *,
    method: str = "kmeans",
    n_init: int = 20,
    init: str = "k-means++",
    seed: int = 0,
) -> Labels:
    """Labels from the rows of a spectral embedding.

    Parameters
    ----------
    Y : array of shape (n, k), rows scaled to unit length
    method : ``"kmeans"`` (best of `n_init` starts, :func:`subspaces.numerics.kmeans.kmeans`), ``"qr"`` (pivoted QR, no
        randomness) or ``"discretize"`` (rotation towards indicator vectors)
    init : ``"k-means++"``; ``"random"`` samples as the authors' program: independent starts, it needs hundreds;
        ``"qr"``: one start, from the clusters of the QR cut, where that gives one
    """
    if n_clusters == 1:
        return np.zeros(Y.shape[0], dtype=np.intp)
    if method == "kmeans" and init == "qr":
        return _kmeans_from_qr(Y, n_clusters, n_init, seed)
    if method == "kmeans" or Y.shape[1] != n_clusters:  # the other two make one cluster per column
        if init == "k-means++":
            return kmeans(Y, n_clusters, n_init=n_init, seed=seed)
        model = KMeans(n_clusters, init=init, n_init=n_init, random_state=seed, max_iter=1000)
        with one_thread("blas"):  # as in subspaces.numerics.kmeans
            return model.fit(Y).labels_.astype(np.intp)
    if method == "qr":
        return cut_by_qr(Y)
    return np.asarray(discretize(Y, random_state=seed), dtype=np.intp)


def _kmeans_from_qr(Y: Array, n_clusters: int, n_init: int, seed: int) -> Labels:
    """K-means from the centres of the QR cut; from `n_init` ordinary starts where that leaves a cluster empty."""
    start = cut_by_qr(Y) if Y.shape[1] == n_clusters else np.zeros(0, dtype=np.intp)
    sizes = np.bincount(start, minlength=n_clusters)
    if (sizes == 0).any():
        return kmeans(Y, n_clusters, n_init=n_init, seed=seed)
    centres = np.zeros((n_clusters, Y.shape[1]), dtype=Y.dtype)
    np.add.at(centres, start, Y)
    model = KMeans(n_clusters, init=centres / sizes[:, None].astype(Y.dtype), n_init=1)
    return model.fit(Y).labels_.astype(np.intp)


def cut_by_qr(Y: Array) -> Labels:
    """One cluster per column of Y by pivoted QR (Damle, Minden, Ying 2019), with pivots that rounding does not choose.

    All rows have length 1, so all are equally good as the first pivot: LAPACK takes the one that the last digit of the
    norms favours, and labels then differ between one thread and two. Of rows that are equal but for rounding the first
    is taken here.
    """
    rest, pivots, tolerance = Y.astype(np.float64), [], float(np.sqrt(np.finfo(Y.dtype).eps))
    for _ in range(Y.shape[1]):
        lengths = np.einsum("ij,ij->i", rest, rest)
        pivot = int(np.argmax(lengths >= (1 - tolerance) * lengths.max()))
        pivots.append(pivot)
        direction = rest[pivot] / (np.sqrt(lengths[pivot]) or 1)
        rest -= np.outer(rest @ direction, direction)
    left, _, right = svd(Y[pivots].T.astype(np.float64))
    labels: Labels = np.abs(Y @ (left @ right)).argmax(axis=1)
    return labels


def cut_by_modularity(
    W: Sparse,
    n_clusters: int | None = None,
    *,
    resolution: float = 1.0,
    seed: int = 0,
    iterations: int | None = None,
    communities: Labels | None = None,
) -> Labels:
    """Communities of the graph by the Leiden algorithm, merged to `n_clusters` when that is given.

    Without `n_clusters` the number is found: the partition of largest modularity. With it the resolution is raised
    until at least that many communities come out; the surplus is merged pair by pair
    (:func:`merge_communities`). `iterations` of Leiden: by default 10 up to 20,000 points, 3 above. 3 come within 0.002
    of the modularity of 10 in a third of the time, and within 0.0002 on the graph of MNIST's 60,000 digits.
    `communities` of this resolution, where they are known, are not looked for again.

    References
    ----------
    Traag, Waltman, van Eck (2019), From Louvain to Leiden: guaranteeing well-connected communities.
    """
    W = sparse.csr_array(W)
    if not W.sum() > 0:
        raise ValueError("the affinity graph has no edge, so it has no communities.")
    iterations = iterations or (10 if W.shape[0] <= _MANY_POINTS else 3)
    labels = _leiden(W, resolution, seed, iterations) if communities is None else communities
    if n_clusters is None:
        return in_order(labels)
    while labels.max() + 1 < n_clusters and resolution < _MAX_RESOLUTION:
        resolution *= 1.5
        labels = _leiden(W, resolution, seed, iterations)
    return in_order(merge_communities(W, labels, n_clusters))


def in_order(labels: Labels) -> Labels:
    """Clusters numbered by their first points: Leiden's own numbers change with the last digit of a weight.

    Examples
    --------
    >>> in_order(np.array([2, 2, 0, 1, 0])).tolist()
    [0, 0, 1, 2, 1]
    """
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    names: Labels = np.argsort(np.argsort(first))[codes]
    return names


def merge_communities(W: Sparse, labels: Labels, n_clusters: int) -> Labels:
    """Merge communities until `n_clusters` are left, each time the connected pair that costs least modularity.

    Joining a and b changes the modularity by 2 (e_ab − d_a d_b), e_ab being the share of the edge weight between them
    and d the shares of degree. Pairs without any edge between them come last whatever their change: by modularity
    alone two small pieces that have nothing in common are joined before the neighbouring pieces of a large cluster.

    Only crumbs come before all others: communities without any edge to the rest and with less than a fiftieth of the
    points of the community of a typical point. They join the largest one. Kept to the end, a handful of points would
    take the place of a cluster: three islands of 8 to 13 points among 300,000 cost three clusters of 30,000.
    """
    target = np.arange(int(labels.max()) + 1)
    for kept, gone in merge_steps(W, labels, n_clusters):
        target[target == gone] = kept
    return np.unique(target[labels], return_inverse=True)[1].astype(np.intp)


def merge_steps(W: Sparse, labels: Labels, n_clusters: int = 1) -> Iterator[tuple[int, int]]:
    """The merges of :func:`merge_communities` one by one: the community that stays and the one that joins it."""
    n_found = int(labels.max()) + 1
    if n_found <= n_clusters:
        return
    indicator = sparse.csr_array((np.ones(len(labels)), (np.arange(len(labels)), labels)))
    between = (indicator.T @ W.astype(np.float64) @ indicator).toarray()
    between /= between.sum()
    degree = between.sum(axis=1)
    alive = np.arange(n_found)
    sizes = np.bincount(labels)
    crumbs = _crumbs(between, sizes)
    for step in range(n_found - n_clusters):
        if step < len(crumbs):
            a, b = int(sizes.argmax()), int(crumbs[step])
        else:
            change = between - np.outer(degree, degree)
            change[between == 0] -= 2  # below every change a connected pair can have
            np.fill_diagonal(change, -np.inf)
            best = first_largest(change[np.ix_(alive, alive)] + 4)  # all above 0, and ties as wide for all
            row, column = np.unravel_index(best, (len(alive), len(alive)))
            a, b = int(alive[row]), int(alive[column])
        between[a] += between[b]
        between[:, a] += between[:, b]
        degree[a] += degree[b]
        alive = alive[alive != b]
        yield a, b


def _crumbs(between: Array, sizes: Array) -> Labels:
    """Communities without an edge to the rest, small beside that of a typical point; the smallest first."""
    by_size = np.sort(sizes)
    typical = by_size[np.searchsorted(np.cumsum(by_size), sizes.sum() / 2)]
    alone = np.count_nonzero(between, axis=1) == (between.diagonal() != 0)
    found = np.flatnonzero(alone & (_CRUMB * sizes < typical))
    order: Labels = found[np.argsort(sizes[found], kind="stable")]
    return order


def modularity(W: Sparse, labels: Labels, resolution: float = 1.0) -> float:
    """Share of the edge weight inside clusters minus its expectation in a random graph of the same degrees."""
    W = sparse.coo_array(W)
    degree = np.asarray(W.sum(axis=1), dtype=np.float64).ravel()
    inside = W.data[labels[W.row] == labels[W.col]].sum(dtype=np.float64)
    per_cluster = np.bincount(labels, weights=degree)
    total = degree.sum()
    return float(inside / total - resolution * ((per_cluster / total) ** 2).sum())


def _leiden(W: Sparse, resolution: float, seed: int, iterations: int) -> Labels:
    """Leiden communities as consecutive labels; points without edges are communities of their own."""
    n = W.shape[0]
    _, membership = graspologic_native.leiden_csr(
        W.indptr.astype(np.int64),
        W.indices.astype(np.int32),
        _rounded(W.data),
        n,
        resolution=resolution,
        iterations=iterations,
        seed=seed,
    )
    labels = np.full(n, -1, dtype=np.intp)
    labels[np.fromiter(membership.keys(), np.intp, len(membership))] = np.fromiter(
        membership.values(), np.intp, len(membership)
    )
    missing = np.flatnonzero(labels < 0)
    labels[missing] = labels.max() + 1 + np.arange(len(missing))
    return np.unique(labels, return_inverse=True)[1].astype(np.intp)


def _rounded(weights: Array) -> Array:
    """Weights as multiples of 2⁻¹⁶ of the largest (of the power of two above it), none of them 0.

    Leiden's path follows the last bit of every weight, and these bits differ between processors. On the grid the
    weights are the same numbers everywhere, unless one lies within rounding of the border between two multiples: of
    weights that are right to 1e-13 less than one in ten million does.
    """
    _, exponent = np.frexp(weights.max())
    steps = np.rint(np.ldexp(weights.astype(np.float64), _WEIGHT_BITS - exponent))
    rounded: Array = np.ldexp(np.maximum(steps, 1), -_WEIGHT_BITS)
    return rounded
