"""Cut the graph W into communities by modularity, as many as are asked for or as there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import get_args

import graspologic_native
import numpy as np
from scipy import sparse

from subspaces.spectral.assign import cut_embedding
from subspaces.spectral.coarse import embed_contracted
from subspaces.utils.choices import AssignLabels
from subspaces.utils.ordering import first_largest, in_order, tolerance
from subspaces.utils.types import Array, Labels, Sparse

PARTITIONS = get_args(AssignLabels)
GRAPH_CUTS = ("modularity", "agglomerative")
"""Cuts of the graph itself, which need no embedding."""

_MAX_RESOLUTION = 1e4
_WEIGHT_BITS = 16
_MANY_POINTS = 20_000  # above, Leiden's rounds are dear and gain little after the second
_SURPLUS = 2  # times the clusters: with fewer communities merging them was never the worse cut of a graph of samples
_PARTS, _PART_ROUNDS = 64.0, 2  # resolution and rounds of the communities that are embedded: some thousand
_TINY = 50  # a community with less than this part of a typical one is tiny
_LEAST_DEGREE = 1e-200  # in place of 0, to divide by


def cut_by_modularity(
    W: Sparse,
    n_clusters: int | None = None,
    *,
    resolution: float = 1.0,
    seed: int = 0,
    iterations: int | None = None,
    communities: Labels | None = None,
) -> Labels:
    """Find communities of the graph by the Leiden algorithm, merged to `n_clusters` when that is given.

    Without `n_clusters` it is the partition of largest modularity, of which :func:`distinct_communities` makes the
    clusters of a fit whose number is not given. With it :func:`cut_to_number` raises the resolution until at least that
    many come out and merges the surplus; above 20,000 samples, where more than twice as many come out, the embedding
    of small communities is cut as well.
    `iterations` of Leiden: by default 10 up to 20,000 samples, 2 above: on the graph of MNIST's 60,000 digits 2 come
    within 0.0003 of the modularity of 3, and 3 within 0.0002 of that of 10. Known `communities` of this resolution are
    not searched again.

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
    """Turn communities into `n_clusters` clusters; ``find(resolution, iterations)`` gives those of another resolution.

    The resolution is raised until there are enough; the surplus is merged (:func:`merge_communities`). The more
    samples, the more communities: of ten pieces 10 in 100,000 samples, 24 in a million, 62 in ten million. Merging many
    pair by pair goes astray: it joins two pieces and leaves a third in halves. So with `embed` the embedding of some
    thousand small communities is cut as well, and the partition of larger modularity is taken: for the pieces from a
    million samples on that of the embedding (98.3 % for 94.3), for MNIST the merged one (94 % for 77). `sizes` counts
    the samples of each node, one unless given.
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
    """Cluster small communities by their embedding; small pieces apart join the largest, as tiny components do.

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
    """Return the partition of largest modularity, of those with `n_clusters` if there are any; first if equal."""
    between = [contracted(W, labels) for labels in cuts]
    of_size = [i for i, graph in enumerate(between) if graph.shape[0] == n_clusters] or list(range(len(cuts)))
    found = [modularity(between[i], np.arange(between[i].shape[0]), resolution) for i in of_size]
    # modularity is a difference of shares, never below −resolution: rounding is relative to the shares
    return cuts[of_size[first_largest(resolution + np.array(found))]]


def merge_communities(W: Sparse, labels: Labels, n_clusters: int) -> Labels:
    """Merge communities until `n_clusters` are left, each time the connected pair that costs least modularity.

    Joining a and b changes the modularity by 2 (e_ab − d_a d_b), e_ab being the share of the edge weight between them
    and d the shares of degree. Pairs without any edge between them come last whatever their change: by modularity
    alone two small pieces that have nothing in common are joined before the neighbouring pieces of a large cluster.

    Only tiny components come first: communities without any edge to the rest and with less than a fiftieth of the
    samples of the community of a typical sample. They join the largest one. Kept to the end, a handful of samples would
    take the place of a cluster: three islands of 8 to 13 samples among 300,000 cost three clusters of 30,000.
    """
    return _joined(labels, list(merge_steps(W, labels, n_clusters)))


def distinct_communities(W: Sparse, labels: Labels, share: float = 0.5, tie: float = 0.02) -> Labels:
    """Join communities with more than a `share` of the edges that chance would give; pieces apart stay apart.

    Modularity divides what is continuous once there are enough samples: the two halves of the 1s of MNIST have 0.53 to
    0.61 of the edges that samples of their degrees would have by chance, its 4s and 9s 0.31 to 0.35. So communities of
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
    steps = list(_join_neighbours(after, [share**0.5 * part for part in degree], least=0.0))
    return in_order(_joined(labels, steps))


def merge_steps(W: Sparse, labels: Labels, n_clusters: int = 1) -> Iterator[tuple[int, int]]:
    """Yield the merges of :func:`merge_communities`: the community that stays and the one that joins it.

    W is symmetric; only the weights of pairs a < b are read.
    """
    n_found = int(labels.max()) + 1
    if n_found <= n_clusters:
        return
    after, degree, alone = _between(W, labels)
    steps = chain(_join_tiny(degree, alone, np.bincount(labels)), _join_neighbours(after, degree), _join_rest(degree))
    yield from islice(steps, n_found - n_clusters)


def _between(W: Sparse, labels: Labels) -> tuple[list[dict[int, float]], list[float], Array]:
    """Return shares of the edge weight between communities a < b, shares of degree, and which have no outer edge."""
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
    """Return the labels after these merges, numbered from 0 on."""
    target = np.arange(int(labels.max()) + 1)
    for kept, gone in reversed(steps):
        target[gone] = target[kept]  # where that one goes later is known by now
    return np.unique(target[labels], return_inverse=True)[1].astype(np.intp)


def contracted(W: Sparse, labels: Labels) -> sparse.coo_array:
    """Return the graph of the communities: weights between them, and within them on the diagonal."""
    indicator = sparse.csr_array((np.ones(len(labels)), (np.arange(len(labels)), labels)))
    between = sparse.coo_array(indicator.T @ W.astype(np.float64) @ indicator)
    between.eliminate_zeros()
    return between


def modularity(W: Sparse, labels: Labels, resolution: float = 1.0) -> float:
    """Return the share of edge weight inside clusters minus its expectation in a random graph of the same degrees."""
    W = sparse.coo_array(W)
    degree = np.asarray(W.sum(axis=1), dtype=np.float64).ravel()
    inside = W.data[labels[W.row] == labels[W.col]].sum(dtype=np.float64)
    per_cluster = np.bincount(labels, weights=degree)
    total = degree.sum()
    return float(inside / total - resolution * ((per_cluster / total) ** 2).sum())


def _leiden(W: Sparse, resolution: float, seed: int, iterations: int) -> Labels:
    """Find Leiden communities as consecutive labels; samples without edges are communities of their own."""
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
    """Round weights to multiples of 2⁻¹⁶ of the largest (of the power of two above it), none of them 0.

    Leiden's path follows the last bit of every weight, and these bits differ between processors. On the grid the
    weights are the same everywhere, unless one lies within rounding of the border between two multiples: of weights
    that are right to 1e-13 less than one in ten million does.
    """
    _, exponent = np.frexp(weights.max())
    rounded: Array = np.ldexp(weights.astype(np.float64), _WEIGHT_BITS - exponent)
    np.maximum(np.rint(rounded, out=rounded), 1, out=rounded)
    np.ldexp(rounded, -_WEIGHT_BITS, out=rounded)
    return rounded


# ------------------------------------------------------------------ merges, one by one
# Each generator changes the shares of degree: that of a community that has gone is infinite. Values that tie are equal,
# and of those the first pair is joined; a step looks at a few communities, not at all pairs.


def _join_tiny(degree: list[float], alone: Array, sizes: Array) -> Iterator[tuple[int, int]]:
    """Join communities without an edge to the rest, small beside that of a typical sample; the smallest first."""
    by_size = np.sort(sizes)
    typical = by_size[np.searchsorted(np.cumsum(by_size), sizes.sum() / 2)]
    found = np.flatnonzero(alone & (_TINY * sizes < typical))
    largest = int(sizes.argmax())
    for tiny in found[np.argsort(sizes[found], kind="stable")].tolist():
        degree[largest] += degree[tiny]
        degree[tiny] = np.inf
        yield largest, tiny


def _join_neighbours(
    after: list[dict[int, float]], degree: list[float], least: float = -np.inf
) -> Iterator[tuple[int, int]]:
    """Join connected pairs by their change e_ab − d_a d_b; of those that tie with the largest the first, row by row.

    ``after[a]`` holds e_ab of the neighbours b > a. A merge lowers the changes of the pairs beside it, except with a
    neighbour of both. So each row has an upper bound of its largest change, which is computed again only when it is
    the largest bound. It ends where no change is above `least`, ties with it included.
    """

    def largest(a: int) -> float:
        share = degree[a]
        changes = [weight - share * degree[b] for b, weight in after[a].items()]
        return max(changes, default=-np.inf) + 4  # all above 0, and ties as wide for all

    before: list[set[int]] = [set() for _ in after]
    for a, row in enumerate(after):
        for b in row:
            before[b].add(a)
    bounds = _Tournament([largest(a) for a in range(len(after))])
    while True:
        while (exact := largest(a := bounds.first(bounds.largest))) < bounds.largest:
            bounds[a] = exact
        if exact <= max(least + 4, 0.0) * (1 + tolerance(np.float64)):
            return
        level = exact - exact * tolerance(np.float64)
        while (exact := largest(a := bounds.first(level))) < level:
            bounds[a] = exact
        b = min(x for x, weight in after[a].items() if weight - degree[a] * degree[x] + 4 >= level)
        degree[a], degree[b] = degree[a] + degree[b], np.inf
        for x in _contract(after, before, a, b):
            bounds[x] = max(bounds[x], after[x][a] - degree[x] * degree[a] + 4)
        bounds[a], bounds[b] = np.inf, -np.inf  # any change may be in row a now
        yield a, b


def _contract(after: list[dict[int, float]], before: list[set[int]], a: int, b: int) -> list[int]:
    """Give the edges of b to a < b; return the neighbours of both that come before a."""
    del after[a][b]
    before[b].remove(a)
    both = []
    for x, weight in after[b].items():
        before[x].remove(b)
        before[x].add(a)
        after[a][x] = after[a].get(x, 0.0) + weight
    for x in before[b]:
        low, high = min(a, x), max(a, x)
        weight = after[x].pop(b)
        if x in before[a]:
            both.append(x)
        before[high].add(low)
        after[low][high] = after[low].get(high, 0.0) + weight
    after[b], before[b] = {}, set()
    return both


def _join_rest(degree: list[float]) -> Iterator[tuple[int, int]]:
    """Join pairs without an edge by their change −d_a d_b; of those that tie with the largest the first, row by row.

    The smallest d_a d_b is that of the two smallest degrees. A pair that ties has a community that ties beside the
    smallest degree; the first such community comes first, and its partner is the first that ties beside it.
    """
    order = _Tournament([-share for share in degree])  # the smallest degree is the largest here
    while True:
        smallest = order.first(order.largest)
        least, order[smallest] = degree[smallest], -np.inf
        if order.largest == -np.inf:
            return
        product = -least * order.largest
        most = product + (2 - product) * tolerance(np.float64)  # the tie of 4 − 2 − d_a d_b
        a = min(smallest, order.first(-most / max(least, _LEAST_DEGREE)))
        order[smallest] = -least
        order[a] = -np.inf
        b = order.first(min(-most / max(degree[a], _LEAST_DEGREE), order.largest))
        degree[a], degree[b] = degree[a] + degree[b], np.inf
        order[a], order[b] = -degree[a], -np.inf
        yield a, b


class _Tournament:
    """Find the largest of changing values, and the first that reaches a level, in logarithmic time."""

    def __init__(self, values: list[float]) -> None:
        self.n_leaves = 1 << (len(values) - 1).bit_length()
        self.nodes = [-np.inf] * self.n_leaves + values + [-np.inf] * (self.n_leaves - len(values))
        for i in range(self.n_leaves - 1, 0, -1):  # the children of node i are 2i and 2i + 1
            self.nodes[i] = max(self.nodes[2 * i], self.nodes[2 * i + 1])

    @property
    def largest(self) -> float:
        return self.nodes[1]

    def __getitem__(self, place: int) -> float:
        return self.nodes[self.n_leaves + place]

    def __setitem__(self, place: int, value: float) -> None:
        i = self.n_leaves + place
        self.nodes[i] = value
        while i > 1:
            i //= 2
            self.nodes[i] = max(self.nodes[2 * i], self.nodes[2 * i + 1])

    def first(self, level: float) -> int:
        """Return the place of the first value that is not below the level; there must be one."""
        i = 1
        while i < self.n_leaves:
            i = 2 * i if self.nodes[2 * i] >= level else 2 * i + 1
        return i - self.n_leaves
