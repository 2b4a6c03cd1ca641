"""What a person knows: labels of a few samples, pairs, answers about pairs; read, checked and put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components

from subspaces.utils.process import warn_caller
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array, Labels


class Hints(NamedTuple):
    """What a person knows: names of some samples, pairs that belong together, pairs that do not."""

    names: tuple[Any, ...]  # of the classes
    codes: Labels  # (n,): class of each sample, −1 where it is unknown
    must: Labels  # (m, 2)
    cannot: Labels  # (c, 2)

    @property
    def known(self) -> Labels:
        """Return the samples whose label is known."""
        return np.flatnonzero(self.codes >= 0)

    @property
    def linked(self) -> Labels:
        """Return the samples of the pairs."""
        return np.unique(np.concatenate([self.must, self.cannot]))

    @property
    def rows(self) -> Labels:
        """Return all samples that something is known of."""
        return np.union1d(self.known, self.linked)

    @property
    def n_links(self) -> int:
        """Return the number of pairs."""
        return len(self.must) + len(self.cannot)

    def together(self, by_class: bool = False) -> Labels:
        """Return the group of every sample, all that must be together in one; also samples of one class."""
        i, j = self.must.T
        if by_class and len(self.known):
            first = np.unique(self.codes[self.known], return_index=True)[1]
            i = np.concatenate([i, self.known])
            j = np.concatenate([j, self.known[first][self.codes[self.known]]])
        edges = sparse.csr_array((np.ones(len(i)), (i, j)), shape=(len(self.codes),) * 2)
        return np.asarray(connected_components(edges, directed=False)[1])

    def relations(self, rows: Labels) -> tuple[Labels, Array]:
        """Return the group of each of these samples, and of every two groups 1 (the same), −1 (apart) or 0 (open)."""
        group = self.together(by_class=True)
        groups, own = np.unique(group[rows], return_inverse=True)
        named = np.full(int(group.max()) + 1, -1, dtype=np.intp)
        named[group[self.known]] = self.codes[self.known]
        names = named[groups]
        relation = -((names[:, np.newaxis] >= 0) & (names >= 0)).astype(np.float64)
        i, j = group[self.cannot].T
        inside = np.isin(i, groups) & np.isin(j, groups)
        i, j = np.searchsorted(groups, i[inside]), np.searchsorted(groups, j[inside])
        relation[i, j] = relation[j, i] = -1
        np.fill_diagonal(relation, 1)  # also where answers contradict each other
        return own, relation

    def and_answers(self, answers: Sequence[Answer]) -> Hints:
        """Return the same with answers, of which those of doubt say nothing."""
        must, cannot = ([(i, j) for i, j, same in answers if same is told] for told in (True, False))
        return self._replace(must=_joined(self.must, must), cannot=_joined(self.cannot, cannot))


Answer = tuple[int, int, bool | None]


class Question(NamedTuple):
    """Are samples `i` and `j` of one group? And why it is asked."""

    i: int
    j: int
    reason: str


class Change(NamedTuple):
    """What answers changed: groups before and after, samples that moved, and answers that do not go together."""

    before: int
    after: int
    n_moved: int
    contradictions: list[tuple[int, int]]  # said to be apart, and joined by other answers
    not_followed: list[tuple[int, int]]  # answers that the clusters do not follow

    def __str__(self) -> str:
        now = ", as before" if self.before == self.after else f" became {self.after}"
        parts = [f"{counted(self.before, 'group')}{now}; {counted(self.n_moved, 'item')} moved"]
        if self.contradictions:
            parts.append(f"answers that contradict others: {', '.join(map(str, self.contradictions))}")
        if self.not_followed:
            parts.append(f"answers the groups do not follow: {', '.join(map(str, self.not_followed))}")
        return "; ".join(parts) + "."


def no_hints(n: int) -> Hints:
    """Return hints that say nothing."""
    none = np.zeros((0, 2), dtype=np.intp)
    return Hints((), np.full(n, -1, dtype=np.intp), none, none)


def read_hints(y: Any, must_link: Any, cannot_link: Any, n: int, n_clusters: int | None = None) -> Hints | None:
    """Return what is told of n samples, checked; None where that is nothing, or every label is known.

    Parameters
    ----------
    y : labels of any kind; −1, NaN, None and "" are unknown
    must_link, cannot_link : pairs of row numbers
    """
    links = [_links(pairs, name, n) for pairs, name in ((must_link, "must_link"), (cannot_link, "cannot_link"))]
    codes, names = np.full(n, -1, dtype=np.intp), ()
    values = None if y is None else np.asarray(y, dtype=object)
    if values is not None and values.shape in ((n,), (n, 1)):
        codes, names = _named(values.ravel())
    elif values is not None:
        raise ValueError(f"y must have one entry for each of {n} samples, -1 where unknown; got shape {values.shape}.")
    if n > 0 and (codes >= 0).all():
        warn_caller(
            f"y names all {n} samples and is ignored: to learn known classes, use a classifier; "
            "for clusters that follow a few known labels, write -1 where the label is unknown."
        )
        codes, names = np.full(n, -1, dtype=np.intp), ()
    hints = Hints(names, codes, *links)
    if not len(hints.rows):
        return None
    if len(names) == 1 and not hints.n_links:
        raise ValueError(
            f"y must name two classes or more; all {counted(len(hints.known), 'known sample')} are {names[0]!r}. "
            "Name a sample of another class, or give must_link."
        )
    if n_clusters is not None and len(names) > n_clusters:
        raise ValueError(
            f"y must not name more classes than clusters are asked for; got {len(names)} classes and "
            f"n_clusters={n_clusters}. Ask for {len(names)} or more, or leave n_clusters out."
        )
    _refuse_contradictions(hints)
    return hints


def _named(values: Array) -> tuple[Labels, tuple[Any, ...]]:
    """Return the class of every sample, −1 where it is unknown, and the names in the order of first samples."""
    place: dict[Any, int] = {}
    codes = np.full(len(values), -1, dtype=np.intp)
    for i, value in enumerate(values.tolist()):
        is_gap = value is None or type(value).__name__ in ("NAType", "NaTType") or value != value
        if not (is_gap or (not value.strip() if isinstance(value, str) else value == -1)):
            codes[i] = place.setdefault(value, len(place))
    return codes, tuple(place)


def _links(pairs: Any, name: str, n: int) -> Labels:
    found = np.asarray([] if pairs is None else pairs)
    if found.size == 0:
        return np.zeros((0, 2), dtype=np.intp)
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        raise ValueError(f"{name} must be pairs of row numbers, such as [(0, 5), (3, 8)]; got {pairs!r:.60}.")
    wrong = (found < 0).any(axis=1) | (found >= n).any(axis=1) | (found[:, 0] == found[:, 1])
    if wrong.any():
        i, j = found[wrong][0].tolist()
        raise ValueError(f"{name} must name two different rows from 0 to {n - 1} in each pair; got ({i}, {j}).")
    return found.astype(np.intp)


def _refuse_contradictions(hints: Hints) -> None:
    group = hints.together()
    known, codes = hints.known, hints.codes
    first: dict[int, int] = {}
    for i in known.tolist():
        other = first.setdefault(int(group[i]), i)
        if codes[other] != codes[i]:
            a, b = hints.names[codes[other]], hints.names[codes[i]]
            raise ValueError(f"must_link joins row {other} ({a!r}) and row {i} ({b!r}); leave out one of the two.")
    for i, j in hints.cannot.tolist():
        if group[i] == group[j]:
            raise ValueError(f"cannot_link has ({i}, {j}), which must_link joins; leave out one of the two.")
        if codes[i] >= 0 and codes[i] == codes[j]:
            name = hints.names[codes[i]]
            raise ValueError(f"cannot_link has ({i}, {j}), and y calls both {name!r}; leave out one of the two.")


def read_answers(answers: Any, n: int) -> list[Answer]:
    """Return answers about pairs of n samples, checked."""
    found: list[Answer] = []
    for entry in answers:
        is_three = isinstance(entry, (tuple, list)) and len(entry) == 3
        if not is_three or not isinstance(entry[2], (bool, np.bool_, type(None))):
            raise ValueError(f"answers must be (i, j, answer), the answer True, False or None; got {entry!r:.60}.")
        ((i, j),) = _links([entry[:2]], "answers", n).tolist()
        found.append((i, j, None if entry[2] is None else bool(entry[2])))
    return found


def with_answers(before: Sequence[Answer], answers: Sequence[Answer]) -> list[Answer]:
    """Return all answers, of each pair the last."""
    found = {frozenset(answer[:2]): answer for answer in before}
    for answer in answers:
        found.pop(frozenset(answer[:2]), None)
        found[frozenset(answer[:2])] = answer
    return list(found.values())


def n_moved(before: Labels, after: Labels) -> int:
    """Return how many samples are not in the cluster that is paired with theirs before, one to one."""
    table = np.zeros((int(before.max()) + 1, int(after.max()) + 1))
    np.add.at(table, (before, after), 1)
    return int(len(before) - table[linear_sum_assignment(-table)].sum())


def contradictions(hints: Hints) -> list[tuple[int, int]]:
    """Return pairs that were said to be apart, and that other hints join."""
    group = hints.together(by_class=True)
    return [(i, j) for i, j in map(tuple, hints.cannot.tolist()) if group[i] == group[j]]


def _joined(links: Labels, more: list[tuple[int, int]]) -> Labels:
    return np.concatenate([links, np.array(more, dtype=np.intp).reshape(-1, 2)])


def said(hints: Hints, n_answers: int, n_fit: int, n_without: int | None) -> str:
    """Say what the hints decided."""
    told = [counted(len(hints.known), "known label")] * bool(len(hints.known))
    n_links = hints.n_links - n_answers
    told += [counted(n_links, "linked pair")] * (n_links > 0) + [counted(n_answers, "answer")] * (n_answers > 0)
    them = "it" if len(hints.known) + hints.n_links == 1 else "them"
    without = f", as without {them}" if n_without == n_fit else f"; without {them} {n_without}"
    groups = counted(n_fit, "group fits", "groups fit")
    return f"{' and '.join(told)}: {groups} {them} best{'' if n_without is None else without}"
