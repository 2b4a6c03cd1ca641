"""Communities → pairs that are joined one by one: tiny components, then neighbours, then those without a common edge.

Each kind changes the shares of degree: that of a community that has gone is infinite. Numbers that tie are equal, and
of those the first pair is joined; a step looks at a few communities, not at all pairs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from subspaces.utils.ties import tolerance
from subspaces.utils.types import Array

_TINY = 50  # a community with less than this part of a typical one is tiny
_LEAST_DEGREE = 1e-200  # in place of 0, to divide by


def join_tiny(degree: list[float], alone: Array, sizes: Array) -> Iterator[tuple[int, int]]:
    """Communities without an edge to the rest, small beside that of a typical point; the smallest first."""
    by_size = np.sort(sizes)
    typical = by_size[np.searchsorted(np.cumsum(by_size), sizes.sum() / 2)]
    found = np.flatnonzero(alone & (_TINY * sizes < typical))
    largest = int(sizes.argmax())
    for tiny in found[np.argsort(sizes[found], kind="stable")].tolist():
        degree[largest] += degree[tiny]
        degree[tiny] = np.inf
        yield largest, tiny


def join_neighbours(
    after: list[dict[int, float]], degree: list[float], least: float = -np.inf
) -> Iterator[tuple[int, int]]:
    """Connected pairs by their change e_ab − d_a d_b; of those that tie with the largest the first in row-major order.

    ``after[a]`` holds e_ab of the neighbours b > a. A step goes through the neighbours of a few communities, not
    through all pairs: a merge lowers the changes of the pairs beside it, except with a neighbour of both. So each row
    has a bound from above of its largest change, which is computed again only when it stands out. It ends where no
    change is above `least`, ties with it included.
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
    """Give the edges of b to a, which stands before it; returns the neighbours of both that stand before a."""
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


def join_rest(degree: list[float]) -> Iterator[tuple[int, int]]:
    """Pairs without an edge by their change −d_a d_b; of those that tie with the largest the first in row-major order.

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
    """Numbers that change: the largest of them, and the first that reaches a level, in logarithmic time."""

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
        """The place of the first number that is not below the level; there must be one."""
        i = 1
        while i < self.n_leaves:
            i = 2 * i if self.nodes[2 * i] >= level else 2 * i + 1
        return i - self.n_leaves
