"""Y or W → labels: k-means with restarts, QR, discretisation of the embedding, or modularity of the graph itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice

import graspologic_native
import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.cluster._spectral import discretize

from subspaces.spectral.coarse import embed_contracted
from subspaces.spectral.kmeans import kmeans
from subspaces.spectral.merging import join_neighbours, join_rest, join_tiny
from subspaces.utils.decompositions import svd
from subspaces.utils.process import one_thread
from subspaces.utils.ties import first_largest
from subspaces.utils.types import Array, Labels, Sparse

PARTITIONS = ("kmeans", "cluster_qr", "discretize", "modularity")

_MAX_RESOLUTION = 1e4
_WEIGHT_BITS = 16
_MANY_POINTS = 20_000  # above, Leiden's rounds are dear and gain little after the second
_SURPLUS = 2  # times the clusters: with fewer communities merging them was never the worse cut of a graph of points
_PARTS, _PART_ROUNDS = 64.0, 2  # resolution and rounds of the communities that are embedded: some thousand


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
    method : ``"kmeans"`` (best of `n_init` starts, :func:`subspaces.spectral.kmeans.kmeans`), ``"cluster_qr"``
        (pivoted QR, no randomness) or ``"discretize"`` (rotation towards indicator vectors)
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
        with one_thread("blas"):  # as in subspaces.spectral.kmeans
            return model.fit(Y).labels_.astype(np.intp)
    if method == "cluster_qr":
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
    with one_thread("blas"):
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

    Without `n_clusters` it is the partition of largest modularity, of which :func:`distinct_communities` makes the
    clusters of a fit whose number is not given. With it :func:`cut_to_number` raises the resolution until at least that
    many come out and merges the surplus; above 20,000 points, where more than twice as many come out, the embedding
    of small communities is cut as well.
    `iterations` of Leiden: by default 10 up to 20,000 points, 2 above: on the graph of MNIST's 60,000 digits 2 come
    within 0.0003 of the modularity of 3, and 3 within 0.0002 of that of 10. `communities` of this resolution, where
    they are known, are not looked for again.

    References
    ----------
    Traag, Waltman, van Eck (2019), From Louvain to Leiden: guaranteeing well-connected communities.
    """
    W = sparse.csr_array(W)
    if not W.sum() > 0:
        raise ValueError("the affinity graph has no edge, so it has no communities.")
    many = W.shape[0] > _MANY_POINTS
    iterations = iterations or (2 if many else 10)

    def find(resolution: float, rounds: int) -> Labels:
        return _leiden(W, resolution, seed, rounds)

    found = find(resolution, iterations) if communities is None else communities
    if n_clusters is not None:
        embed = many and found.max() + 1 > _SURPLUS * n_clusters
        found = cut_to_number(
            W, found, n_clusters, find, resolution=resolution, iterations=iterations, seed=seed, embed=embed
        )
    return in_order(found)


def cut_to_number(
    W: Sparse,
    communities: Labels,
    n_clusters: int,
    find: Callable[[float, int], Labels],
    *,
    resolution: float = 1.0,
    iterations: int = 10,
    seed: int = 0,
    embed: bool = True,
    sizes: Array | None = None,
) -> Labels:
    """Communities of a resolution → `n_clusters` clusters; ``find(resolution, iterations)`` gives those of another.

    The resolution is raised until there are enough; the surplus is merged (:func:`merge_communities`). The more points,
    the more communities: of ten pieces 10 in 100,000 points, 24 in a million, 62 in ten million. Merging many pair by
    pair goes astray: it joins two pieces and leaves a third in halves. So with `embed` the embedding of some thousand
    small communities is cut as well, and the partition of larger modularity is taken: for the pieces from a million
    points on that of the embedding (98.3 % for 94.3), for MNIST the merged one (94 % for 77). `sizes`: points of each
    node, one unless given.
    """
    while communities.max() + 1 < n_clusters and resolution < _MAX_RESOLUTION:
        resolution *= 1.5
        communities = find(resolution, iterations)
    merged = merge_communities(W, communities, n_clusters)
    if not embed or communities.max() + 1 <= n_clusters:
        return merged
    parts = find(_PARTS * resolution, _PART_ROUNDS)
    return better_cut(W, [merged, _cut_of_parts(W, parts, n_clusters, seed, sizes)], n_clusters, resolution)


def _cut_of_parts(W: Sparse, parts: Labels, n_clusters: int, seed: int, sizes: Array | None) -> Labels:
    """Clusters of small communities by their embedding; small pieces apart join the largest, as tiny components do.

    The edges inside a community count here: without them tiny components would decide.
    """
    of_parts = np.bincount(parts, weights=sizes)
    found = embed_contracted(sparse.csr_array(contracted(W, parts)), of_parts, None, n_clusters)
    if found.kept.sum() <= n_clusters:
        return parts
    labels = cut_embedding(found.rows[found.kept], n_clusters, seed=seed)
    all_labels = np.full(len(of_parts), np.bincount(labels, weights=of_parts[found.kept]).argmax(), dtype=np.intp)
    all_labels[found.kept] = labels
    return np.unique(all_labels, return_inverse=True)[1][parts].astype(np.intp)


def better_cut(W: Sparse, cuts: list[Labels], n_clusters: int, resolution: float = 1.0) -> Labels:
    """The partition of largest modularity, of those with `n_clusters` if there are any; of equal ones the first."""
    between = [contracted(W, labels) for labels in cuts]
    of_size = [i for i, graph in enumerate(between) if graph.shape[0] == n_clusters] or list(range(len(cuts)))
    found = [modularity(between[i], np.arange(between[i].shape[0]), resolution) for i in of_size]
    # modularity is a difference of shares, never below −resolution: rounding is relative to the shares
    return cuts[of_size[first_largest(resolution + np.array(found))]]


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

    Only tiny components come first: communities without any edge to the rest and with less than a fiftieth of the
    points of the community of a typical point. They join the largest one. Kept to the end, a handful of points would
    take the place of a cluster: three islands of 8 to 13 points among 300,000 cost three clusters of 30,000.
    """
    return _joined(labels, list(merge_steps(W, labels, n_clusters)))


def distinct_communities(W: Sparse, labels: Labels, share: float = 0.5, tie: float = 0.02) -> Labels:
    """Join communities with more than a `share` of the edges that chance would give; pieces apart stay apart.

    Modularity divides what is continuous once there are enough points: the two halves of the 1s of MNIST have 0.53 to
    0.61 of the edges that points of their degrees would have by chance, its 4s and 9s 0.31 to 0.35. So communities of
    resolution 1 are joined while that raises the modularity of resolution `share`, the pair that raises it most first.
    Leiden at resolution ½ from the start is worse: it joins 4s and 9s in one of three runs. A half is what most of the
    labelled sets of ``benchmarks/communities.py`` ask for, with MNIST and without.

    Among a hundred communities chance is next to nothing, and half of it is no sign of one piece. So two are joined
    only if the smaller has at least the part `tie` of its edges to the other (halves of an object of COIL20 have 2 to
    3 %; without this rule six of the objects of COIL100 would be lost).

    Examples
    --------
    >>> W = np.kron(np.eye(2), 1 - np.eye(8))
    >>> distinct_communities(sparse.csr_array(W), np.repeat([0, 1, 2, 2], 4)).tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    """
    after, degree, _ = _between(W, labels)
    for a, row in enumerate(after):
        after[a] = {b: weight for b, weight in row.items() if weight >= tie * min(degree[a], degree[b])}
    steps = list(join_neighbours(after, [share**0.5 * part for part in degree], least=0.0))
    return in_order(_joined(labels, steps))


def merge_steps(W: Sparse, labels: Labels, n_clusters: int = 1) -> Iterator[tuple[int, int]]:
    """The merges of :func:`merge_communities` one by one: the community that stays and the one that joins it.

    W is symmetric; only the weights of pairs a < b are read.
    """
    n_found = int(labels.max()) + 1
    if n_found <= n_clusters:
        return
    after, degree, alone = _between(W, labels)
    steps = chain(join_tiny(degree, alone, np.bincount(labels)), join_neighbours(after, degree), join_rest(degree))
    yield from islice(steps, n_found - n_clusters)


def _between(W: Sparse, labels: Labels) -> tuple[list[dict[int, float]], list[float], Array]:
    """Shares of the edge weight between communities a < b, shares of degree, and which have no edge to the rest."""
    n_found, between = int(labels.max()) + 1, contracted(W, labels)
    shares = between.data / between.data.sum()
    degree = np.bincount(between.row, weights=shares, minlength=n_found).tolist()
    upper = between.row < between.col
    first, second = between.row[upper], between.col[upper]
    after: list[dict[int, float]] = [{} for _ in range(n_found)]
    for a, b, weight in zip(first.tolist(), second.tolist(), shares[upper].tolist(), strict=True):
        after[a][b] = weight
    return after, degree, ~np.isin(np.arange(n_found), [first, second])


def _joined(labels: Labels, steps: list[tuple[int, int]]) -> Labels:
    """Labels after these merges, numbered from 0 on."""
    target = np.arange(int(labels.max()) + 1)
    for kept, gone in reversed(steps):
        target[gone] = target[kept]  # where that one goes later is known by now
    return np.unique(target[labels], return_inverse=True)[1].astype(np.intp)


def contracted(W: Sparse, labels: Labels) -> sparse.coo_array:
    """The graph of the communities: weights between those that are connected, and within them on the diagonal."""
    indicator = sparse.csr_array((np.ones(len(labels)), (np.arange(len(labels)), labels)))
    between = sparse.coo_array(indicator.T @ W.astype(np.float64) @ indicator)
    between.eliminate_zeros()
    return between


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
    rounded: Array = np.ldexp(weights.astype(np.float64), _WEIGHT_BITS - exponent)
    np.maximum(np.rint(rounded, out=rounded), 1, out=rounded)
    np.ldexp(rounded, -_WEIGHT_BITS, out=rounded)
    return rounded
