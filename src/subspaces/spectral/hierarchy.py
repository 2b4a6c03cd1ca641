"""Build a tree of clusters: from the labels of a fit down to fine pieces, and up to one cluster.

Leaves are fine communities of the graph, none of them in two clusters. Pieces are merged pair by pair, first within the
clusters, then the clusters themselves, each time the pair with the strongest tie

    tie(A, B) = w(A, B) / (w(A) w(B))^¾,

where w(A, B) is the weight of the edges between two pieces and w(A) that of all edges of one. The exponent 1 would be
the mean weight of a pair of samples, which leaves small pieces to the end; ½ lets large pieces swallow the others one
by one. So every number of clusters is a level of the tree, and that of the labels is the
labels themselves.

Two numbers tell how real a split is. The *cut* is the share of the edges of the lighter piece (edges to the other piece
and inside) that cross. The *return* is the probability that a walker who has just crossed from one piece into the
other crosses back with the next step. Where a border runs through a continuous piece, a sample at the border has about
half of its neighbours beyond, and the return is about 0.3 whatever the dimension and the shape of the piece; across a
gap it is near 0. The cut depends on size and dimension, the return does not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from subspaces.spectral.partition import contracted, cut_by_modularity
from subspaces.utils.ordering import first_largest, in_order, order_of_keys
from subspaces.utils.types import Array, Labels, Sparse

LEVEL = 0.05
"""P-value up to which a split counts as real."""
FINE = 6.0
"""Resolution of the communities at the leaves: far more of them than there are clusters."""
COARSER = 3.0
"""The same where a graph is only cut: more of them than there are clusters."""

_POWER = 0.75
_LEAST_CUT = 1e-3  # a smaller one is as good as none
_MOST_LEAVES = 600
_DRAWN = 30  # clusters that a drawing shows at most
_MOST_ROWS = 20_000  # samples whose neighbours give the return
_LEAST = np.finfo(np.float64).tiny
_NO_PAIR = -1.0  # in the place of a tie: one piece, or one that has gone


@dataclass(frozen=True, repr=False)
class ClusterTree:
    """Hold nested clusters, coarse to fine.

    Pieces are numbered as in SciPy's dendrograms: 0 to m − 1 are the leaves, m + i is what merge i makes of two pieces.

    Attributes
    ----------
    leaves : array of shape (n,), the leaf of every sample
    merges : array of shape (m − 1, 2), the two pieces that each merge joins, the finest merges first
    sizes : array of shape (2 m − 1,), samples in every piece
    cut : array of shape (m − 1,), share of the edges of the lighter piece that cross the split
    returns : array of shape (m − 1,), probability to cross back at once: 0.3 in one continuous piece, 0 across a gap
    p_value : array of shape (m − 1,), from a null model (:mod:`subspaces.spectral.splits`), corrected for the number
        of splits; NaN where a split was not tested
    stability : array of shape (m − 1,), agreement of random parts of the graph on the split, 0 to 1; NaN if unknown
    n_clusters : the level of the labels it was made from
    """

    leaves: Labels
    merges: Labels
    sizes: Labels
    cut: Array
    returns: Array
    n_clusters: int
    p_value: Array = field(default_factory=lambda: np.zeros(0))
    stability: Array = field(default_factory=lambda: np.zeros(0))

    def __repr__(self) -> str:
        """Draw the clusters as text, coarse to fine, with the p-values of splits that were tested.

        Examples
        --------
        >>> cluster_tree(sparse.csr_array(np.kron(np.eye(3), np.ones((2, 2)))), [0, 0, 1, 1, 2, 2])
        6 points
        ├─ 4 points
        │  ├─ cluster 0: 2 points
        │  └─ cluster 1: 2 points
        └─ cluster 2: 2 points
        """
        m, labels = self.n_leaves, self._labels_of_leaves()
        pieces = self._pieces(min(self.n_clusters, _DRAWN))
        inside = {piece: np.unique(labels[pieces == piece]).tolist() for piece in np.unique(pieces).tolist()}
        lines, waiting = [], [(2 * m - 2, "", "")]
        while waiting:
            piece, before, below = waiting.pop()
            found = inside.get(piece)
            few = "" if not found else f"cluster {found[0]}: " if len(found) == 1 else f"{len(found)} clusters: "
            p = _plain(self.p_value, piece - m) if found is None else None
            lines.append(
                f"{before}{few}{self.sizes[piece]:,} points" + ("" if p is None else f", split with p = {p:.2g}")
            )
            if found is None:
                first, second = sorted(self.merges[piece - m].tolist(), key=lambda child: -self.sizes[child])
                waiting += [(second, f"{below}└─ ", f"{below}   "), (first, f"{below}├─ ", f"{below}│  ")]
        return "\n".join(lines)

    @property
    def n_leaves(self) -> int:
        """Return the number of leaves, the finest level."""
        return len(self.merges) + 1

    def labels_at(self, n_clusters: int) -> Labels:
        """Return the labels of the level with `n_clusters` from 1 to ``n_leaves``, numbered by their first samples.

        Examples
        --------
        >>> from subspaces import TRR
        >>> from subspaces.datasets import make_subspaces
        >>> X, y = make_subspaces(3, dimension=2, ambient=10, n_samples=30, noise=0.01, random_state=0)
        >>> tree = TRR(3).fit(X).tree_
        >>> [len(set(tree.labels_at(k).tolist())) for k in (1, 2, 3, 4)]
        [1, 2, 3, 4]
        """
        if not 1 <= n_clusters <= self.n_leaves:
            raise ValueError(f"n_clusters={n_clusters} must be from 1 to {self.n_leaves}, the leaves of this tree.")
        return in_order(self._pieces(n_clusters)[self.leaves])

    def of_points(self, leaves: Labels) -> ClusterTree:
        """Return the same tree of other samples with these leaves."""
        sizes = [*np.bincount(leaves, minlength=self.n_leaves)]
        for one, other in self.merges:
            sizes.append(sizes[one] + sizes[other])
        return replace(self, leaves=leaves, sizes=np.array(sizes, dtype=self.sizes.dtype))

    def _pieces(self, n_clusters: int) -> Labels:
        return level(self.merges, n_clusters)

    def members(self, piece: int) -> Labels:
        """Return the samples of a piece."""
        wanted, m = {piece}, self.n_leaves
        for i in range(piece - m, -1, -1):
            if m + i in wanted:
                wanted |= set(self.merges[i].tolist())
        return np.flatnonzero(np.isin(self.leaves, [leaf for leaf in wanted if leaf < m]))

    def split(self, n_clusters: int) -> int:
        """Return the row of ``merges`` that a level with one cluster more undoes."""
        return self.n_leaves - 1 - n_clusters

    @property
    def layers(self) -> list[int]:
        """Return numbers of clusters that stand out, coarse to fine; that of the labels is one of them.

        At such a level the next finer split cuts at least twice as much as any split above (three times, where it is
        finer than the labels), and no split above is known to be chance.
        """
        cuts = [max(float(self.cut[self.split(k)]), _LEAST_CUT) for k in range(1, self.n_leaves)]
        most = np.maximum.accumulate(cuts) if cuts else np.zeros(0)
        few = range(2, min(self.n_leaves, 2 * self.n_clusters + 1))
        clear = {k: 2 if k <= self.n_clusters else 3 for k in few}
        stands = {k for k in few if cuts[k - 1] > clear[k] * most[k - 2] and self._is_real(k)}
        return sorted(stands | {self.n_clusters})

    def _is_real(self, n_clusters: int) -> bool:
        tested = [self.p_value[self.split(k)] for k in range(1, n_clusters) if len(self.p_value)]
        return not any(p > LEVEL for p in tested)

    def to_dict(self) -> dict[str, Any]:
        """Return nested dictionaries of pieces, ready for JSON: the root first, down to the leaves.

        Each piece has ``size``; one that is split also ``cut``, ``returns``, ``p_value``, ``stability`` and its
        ``children``; one that is a cluster of the labels ``cluster``; a leaf the rows of its ``points``.
        """
        pieces = self._entries()
        for entry, pair in zip(pieces[self.n_leaves :], self.merges, strict=True):
            entry["children"] = [pieces[child] for child in pair]
        return pieces[-1]

    def _entries(self) -> list[dict[str, Any]]:
        """Describe each piece, without its children."""
        m, clusters = self.n_leaves, self._pieces(self.n_clusters)
        named = dict(zip(clusters.tolist(), self._labels_of_leaves().tolist(), strict=True))
        pieces: list[dict[str, Any]] = []
        for piece in range(2 * m - 1):
            entry: dict[str, Any] = {"size": int(self.sizes[piece])}
            if piece in named:
                entry["cluster"] = named[piece]
            if piece < m:
                entry["points"] = np.flatnonzero(self.leaves == piece).tolist()
            else:
                entry |= {name: _plain(getattr(self, name), piece - m) for name in _MEASURES}
            pieces.append(entry)
        return pieces

    def _labels_of_leaves(self) -> Labels:
        labels = self.labels_at(self.n_clusters)
        of_leaf = np.zeros(self.n_leaves, dtype=np.intp)
        of_leaf[self.leaves] = labels
        return of_leaf

    def to_json(self) -> str:
        """Return :meth:`to_dict` as JSON, built from the leaves up, so that no tree is too deep."""
        texts: list[str] = []
        for piece, entry in enumerate(self._entries()):
            text = json.dumps(entry, allow_nan=False)
            if piece >= self.n_leaves:
                children = ", ".join(texts[child] for child in self.merges[piece - self.n_leaves])
                text = f'{text[:-1]}, "children": [{children}]}}'
            texts.append(text)
        return f'{{"n_clusters": {self.n_clusters}, "tree": {texts[-1]}}}'


_MEASURES = ("cut", "returns", "p_value", "stability")


def _plain(values: Array, i: int) -> float | None:
    return float(values[i]) if i < len(values) and np.isfinite(values[i]) else None


@dataclass(frozen=True)
class Merged:
    """Hold the merges of pieces, with cut and return of each."""

    merges: Labels
    sizes: Labels
    cuts: Array
    returns: Array


def level(merges: Labels, n_clusters: int) -> Labels:
    """Return the piece of each leaf where `n_clusters` are left."""
    m = len(merges) + 1
    above = np.arange(2 * m - 1)
    for i in range(m - n_clusters - 1, -1, -1):
        above[merges[i]] = above[m + i]
    found: Labels = above[:m]
    return found


def cut_agglomeratively(W: Sparse, n_clusters: int, *, seed: int = 0) -> Labels:
    """Merge communities of the graph, the pair with the strongest tie first, until `n_clusters` are left.

    Unlike modularity and k-means this has no preference for equal sizes: ten samples across a gap from a thousand are a
    cluster. Where there is no gap it cuts worse than they do.

    Examples
    --------
    >>> W = sparse.csr_array(np.kron(np.eye(3), np.ones((6, 6))))
    >>> cut_agglomeratively(W, 3).tolist()
    [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]
    """
    W = sparse.csr_array(W)
    pieces = fine_pieces(W, seed=seed, resolution=COARSER)
    if pieces.max() + 1 < n_clusters:
        return cut_by_modularity(W, n_clusters, seed=seed)
    return in_order(level(merged(W, pieces).merges, n_clusters)[pieces])


def fine_pieces(W: Sparse, labels: Labels | None = None, *, seed: int = 0, resolution: float = FINE) -> Labels:
    """Find fine communities of the graph, none in two clusters of the labels; samples without edges are apart."""
    n = W.shape[0]
    fine = np.zeros(n, dtype=np.intp)
    connected = np.asarray(W.sum(axis=1)).ravel() > 0
    for fineness in (resolution, 1.0):
        if connected.any():
            part = sparse.csr_array(W) if connected.all() else sparse.csr_array(W)[connected][:, connected]
            fine[connected] = 1 + cut_by_modularity(part, resolution=fineness, seed=seed, iterations=3)
        pieces = fine if labels is None else fine + (int(fine.max()) + 1) * np.asarray(labels)
        if len(np.unique(pieces)) <= _MOST_LEAVES:
            return in_order(pieces)
    return in_order(pieces if labels is None else labels)


def merged(W: Sparse, pieces: Labels, groups: Labels | None = None) -> Merged:
    """Merge pieces (0 to m − 1, one per sample) of a symmetric graph to one, the pair with the strongest tie first.

    Pieces of one of the `groups`, shape (m,), are merged before any other.
    """
    m = int(pieces.max()) + 1
    between = contracted(W, pieces).toarray() / (W.sum() or 1.0)
    volume, inside = between.sum(axis=1), between.diagonal().copy()
    np.fill_diagonal(between, 0)
    near = _Neighbourhoods(W, pieces, m)
    groups = np.arange(m) if groups is None else groups
    size, number = np.bincount(pieces, minlength=m), np.arange(m)
    ties = _ties(between, volume[:, None], volume)
    np.fill_diagonal(ties, _NO_PAIR)
    together = groups[:, None] == groups
    pairs = np.where(together, ties, _NO_PAIR)  # that may be merged
    n_within = m - len(np.unique(groups))
    sizes, merges, cuts, returns = [*size.tolist()], [], [], []
    for step in range(m - 1):
        pairs = pairs if step < n_within else ties
        a, b = _strongest(pairs, size)
        crossing, smaller = between[a, b], min(inside[a], inside[b])
        cuts.append(crossing / (smaller + crossing) if crossing > 0 else 0.0)
        returns.append(near.join(a, b))
        merges.append((number[a], number[b]))
        inside[a] += inside[b] + 2 * crossing
        between[a] += between[b]
        between[:, a] += between[:, b]
        between[a, a] = between[b] = between[:, b] = 0
        volume[a] += volume[b]
        size[a] += size[b]
        sizes.append(int(size[a]))
        number[a] = m + step
        new = _ties(between[a], volume[a], volume)
        new[ties[a] < 0] = _NO_PAIR
        ties[a] = ties[:, a] = new
        ties[b] = ties[:, b] = _NO_PAIR
        if pairs is not ties:
            pairs[a] = pairs[:, a] = np.where(together[a], new, _NO_PAIR)
            pairs[b] = pairs[:, b] = _NO_PAIR
    joined = np.array(merges, dtype=np.intp).reshape(-1, 2)
    return Merged(joined, np.array(sizes), np.array(cuts), np.array(returns))


def _ties(between: Array, volume: Array | float, others: Array) -> Array:
    """Return the ties of pieces."""
    ties: Array = between / np.maximum(volume * others, _LEAST) ** _POWER
    return ties


def _strongest(pairs: Array, size: Array) -> tuple[int, int]:
    """Find the next pair to merge: the one with the strongest tie; without any edge left, the two smallest pieces."""
    a, b = divmod(int(first_largest(pairs)), len(pairs))
    if pairs[a, b] <= 0:
        joint = np.where(pairs >= 0, size[:, None] + size, np.iinfo(np.intp).max)
        a, b = divmod(int(joint.argmin()), len(pairs))
    return min(a, b), max(a, b)


class _Neighbourhoods:
    """Hold the weight that each sample sends into each piece of one graph; of many samples a subset is taken."""

    def __init__(self, W: Sparse, pieces: Labels, m: int) -> None:
        n = len(pieces)
        rows = np.arange(n) if n <= _MOST_ROWS else np.unique(np.linspace(0, n - 1, _MOST_ROWS).astype(int))
        indicator = sparse.csr_array((np.ones(n), (np.arange(n), pieces)), shape=(n, m))
        self.to_piece = (sparse.csr_array(W)[rows].astype(np.float64) @ indicator).toarray()
        self.rows = [np.flatnonzero(pieces[rows] == piece) for piece in range(m)]

    def join(self, a: int, b: int) -> float:
        """Return the probability to cross back between two pieces, and make them one."""
        to_piece, one, other = self.to_piece, self.rows[a], self.rows[b]
        crossing = np.concatenate([to_piece[one, b], to_piece[other, a]])
        staying = np.concatenate([to_piece[one, a], to_piece[other, b]])
        back = np.square(crossing) / np.maximum(crossing + staying, _LEAST)
        to_piece[:, a] += to_piece[:, b]
        self.rows[a], self.rows[b] = np.concatenate([one, other]), other[:0]
        return float(back.sum() / max(crossing.sum(), _LEAST))


def cluster_tree(W: Sparse, labels: Labels, *, seed: int = 0) -> ClusterTree:
    """Build the tree of a graph W (sparse, symmetric, not negative) in which the labels are a level."""
    W, codes = sparse.csr_array(W), np.unique(labels, return_inverse=True)[1]
    order = _own_order(W)
    ordered = W[order][:, order]
    pieces = fine_pieces(ordered, codes[order], seed=seed)
    groups = np.zeros(int(pieces.max()) + 1, dtype=np.intp)
    groups[pieces] = codes[order]
    found = merged(ordered, pieces, groups)
    leaves = np.empty_like(pieces)
    leaves[order] = pieces
    unknown = np.full(len(found.merges), np.nan)
    return ClusterTree(
        leaves, found.merges, found.sizes, found.cuts, found.returns, int(codes.max()) + 1, unknown, unknown
    )


def _own_order(W: Sparse) -> Labels:
    """Order the samples by their degrees and those of their neighbours.

    Leiden visits samples in their order: a shuffled table must not change the fine levels.
    """
    exact = W.astype(np.float64)
    degree = exact @ np.ones(W.shape[0])
    around = exact @ degree
    return order_of_keys(np.column_stack([degree, around]), np.arange(W.shape[0]))
