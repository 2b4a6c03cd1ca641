"""A few known labels, or answers about pairs: what is not in the data, and how it decides.

1. *Pool.* The graphs of all settings are cut into a spread of numbers of clusters, by modularity and by ties: about a
   thousand partitions, beside those of the search.
2. *Prior.* What the search thinks of each: agreement with the others of the same number, the score of its setting, and
   the distance from the natural number. The automatic answer has a little more.
3. *Evidence.* A hint that a partition does not follow costs log 9: one in ten is wrong (:data:`SURE`). Of m known
   labels all m (m − 1) / 2 pairs are hints, which count as m − 1.
4. *Carrying.* The graph that was cut spreads the known labels (Zhou et al. 2004, local and global consistency): each
   sample starts, weakly, with the known labels of its cluster; known samples keep theirs.

Questions are about typical samples, of two neighbouring clusters or of two parts of one, for many numbers of clusters;
those come first that leave the least doubt among the partitions of the pool (COBS, Van Craenendonck and Blockeel 2017,
selects among clusterings by pairs as well).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components

from subspaces.selection.count import ABOVE, BELOW, Cuts, cuts_of
from subspaces.selection.criteria import support
from subspaces.selection.graphs import Candidate, cut
from subspaces.selection.result import Selection
from subspaces.spectral.agreement import pairwise_agreement
from subspaces.spectral.hierarchy import FINE
from subspaces.utils.blocks import map_blocks
from subspaces.utils.ordering import in_order
from subspaces.utils.process import one_thread, quiet, warn_caller
from subspaces.utils.progress import phase
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array, Labels, Sparse

SURE = 0.9
"""Probability that a hint is right."""

_MOST = 125  # clusters of a partition in the pool, if no more classes are named
_LEAST_POINTS = 4
_EXACT = 12  # numbers of clusters up to which each is in the pool; above in steps of 10 %
_PRIOR, _AUTOMATIC, _AWAY = 5.0, 0.1, 0.3  # weights of the prior, of the automatic answer, and of the number in it
_OWN, _SPREAD, _STEPS = 0.1, 0.8, 30  # weight of a sample's cluster; share that comes from neighbours; steps
_LEVELS = 12  # partitions of other numbers of clusters that questions are about
_TINY = 1e-4  # a partition of less weight than this share of the best has no say in questions

# ------------------------------------------------------------------------------------------------ what is told


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
    def rows(self) -> Labels:
        """Return all samples that something is known of."""
        return np.unique(np.concatenate([self.known, self.must.ravel(), self.cannot.ravel()]))

    @property
    def n_links(self) -> int:
        """Return the number of pairs."""
        return len(self.must) + len(self.cannot)

    def pairs(self) -> tuple[Labels, Labels, Array, Array]:
        """Return samples i and j, whether they belong together, and the weight of each such hint."""
        known = self.known
        a, b = np.triu_indices(len(known), 1)
        i, j = known[a], known[b]
        links = np.concatenate([self.must, self.cannot])
        same = np.concatenate([self.codes[i] == self.codes[j], np.arange(len(links)) < len(self.must)])
        weight = np.concatenate([np.full(len(i), 2 / max(len(known), 1)), np.ones(len(links))])
        return np.concatenate([i, links[:, 0]]), np.concatenate([j, links[:, 1]]), same, weight

    def together(self) -> Labels:
        """Return the group of every sample, all that must be together in one."""
        i, j = self.must.T
        edges = sparse.csr_array((np.ones(len(i)), (i, j)), shape=(len(self.codes),) * 2)
        return np.asarray(connected_components(edges, directed=False)[1])

    def and_answers(self, answers: Sequence[Answer]) -> Hints:
        """Return the same with answers, of which those of doubt say nothing."""
        must, cannot = ([(i, j) for i, j, same in answers if same is told] for told in (True, False))
        return self._replace(must=_joined(self.must, must), cannot=_joined(self.cannot, cannot))


Answer = tuple[int, int, bool | None]


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
        unknown = value is None or value != value or (isinstance(value, str) and not value.strip())
        if unknown or type(value).__name__ in ("NAType", "NaTType") or (not isinstance(value, str) and value == -1):
            continue
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
        if not isinstance(entry, (tuple, list)) or len(entry) != 3 or not _is_answer(entry[2]):
            raise ValueError(f"answers must be (i, j, answer), the answer True, False or None; got {entry!r:.60}.")
        ((i, j),) = _links([entry[:2]], "answers", n).tolist()
        found.append((i, j, None if entry[2] is None else bool(entry[2])))
    return found


def _is_answer(value: Any) -> bool:
    return value is None or isinstance(value, (bool, np.bool_))


def n_moved(before: Labels, after: Labels) -> int:
    """Return how many samples are not in the cluster that is the most like theirs before."""
    table = np.zeros((int(before.max()) + 1, int(after.max()) + 1))
    np.add.at(table, (before, after), 1)
    return int(len(before) - table[linear_sum_assignment(-table)].sum())


def contradictions(answers: Sequence[Answer]) -> list[tuple[int, int]]:
    """Return pairs that were said to be apart, and that other answers join."""
    n = 1 + max((max(i, j) for i, j, _ in answers), default=-1)
    hints = no_hints(n).and_answers(answers)
    group = hints.together()
    return [(i, j) for i, j in dict.fromkeys(map(tuple, hints.cannot.tolist())) if group[i] == group[j]]


def _joined(links: Labels, more: list[tuple[int, int]]) -> Labels:
    return np.concatenate([links, np.array(more, dtype=np.intp).reshape(-1, 2)])


# ------------------------------------------------------------------------------------------------ what it is told of


@dataclass(frozen=True)
class Pool:
    """Many partitions of the searched samples, and how good each is before anything is told.

    Attributes
    ----------
    graphs : of all settings
    partitions : array of shape (p, n_searched)
    of_graph : which graph each is of
    prior : of each, the larger the better
    place : array of shape (n,), of every sample of the data the searched one that it is or equals, −1 where none
    """

    graphs: list[Candidate]
    partitions: Labels
    of_graph: Labels
    prior: Array
    place: Labels

    @property
    def sizes(self) -> Labels:
        """Return the number of clusters of every partition."""
        sizes: Labels = self.partitions.max(axis=1) + 1
        return sizes

    def posterior(self, hints: Hints) -> Array:
        """Return the logarithm of the probability of every partition, up to a constant."""
        i, j, same, weight = hints.pairs()
        i, j = self.place[i], self.place[j]
        seen = (i >= 0) & (j >= 0) & (i != j)
        i, j, same, weight = i[seen], j[seen], same[seen], weight[seen]
        violated = np.zeros(len(self.partitions))
        for row, labels in enumerate(self.partitions):
            violated[row] = weight[(labels[i] == labels[j]) != same].sum()
        return _PRIOR * self.prior - np.log(SURE / (1 - SURE)) * violated


def pool_of(selection: Selection, row_hashes: Array, n_clusters: int | None, n_classes: int = 0, seed: int = 0) -> Pool:
    """Return all graphs of a search cut into many numbers of clusters; into `n_clusters` where that is given.

    Parameters
    ----------
    selection : of a search that kept its graphs
    row_hashes : of all rows of the data
    n_classes : classes that are named: more clusters than these are tried
    """
    kept = selection.kept
    assert kept is not None
    graphs, n = kept.graphs, len(selection.searched)
    most = max(2, min(max(_MOST, 2 * n_classes), n // _LEAST_POINTS))
    numbers = list(_spread(most)) if n_clusters is None else [n_clusters]
    with phase("Cutting the graphs into many numbers", len(graphs)) as step, quiet(), one_thread("blas"):

        def one(start: int, stop: int) -> Cuts:
            found = cuts_of(graphs[start], seed, numbers, FINE)
            step()
            return found

        cuts = map_blocks(one, [(i, i + 1) for i in range(len(graphs))])
    scores = np.zeros(len(graphs))
    if len(kept.partitions) >= len(graphs):  # the first trials are of the graphs, in their order
        scores = np.nan_to_num([trial.score for trial in selection.trials[: len(graphs)]])
    found: dict[bytes, tuple[Labels, int]] = {}
    winner = selection.labels.astype(np.int32).tobytes()
    for graph, labels in _all_of(kept.of_graph, kept.partitions, cuts):
        if n_clusters is None or int(labels.max()) + 1 == n_clusters:
            found.setdefault(labels.astype(np.int32).tobytes(), (labels, graph))
    partitions: Labels = np.array([labels for labels, _ in found.values()], dtype=np.int32)
    of_graph = np.array([graph for _, graph in found.values()], dtype=np.intp)
    natural = np.ones(1) if selection.n_clusters is None else selection.n_clusters.natural
    prior = _prior(partitions, scores[of_graph] - scores.max(), float(np.median(natural)), n_clusters is not None)
    prior[[key == winner for key in found]] += _AUTOMATIC
    order = np.argsort(row_hashes[selection.searched], kind="stable")
    hashes = row_hashes[selection.searched][order]
    at = np.minimum(np.searchsorted(hashes, row_hashes), len(hashes) - 1)
    return Pool(graphs, partitions, of_graph, prior, np.where(hashes[at] == row_hashes, order[at], -1))


def _all_of(
    of_graph: Sequence[int], partitions: Sequence[Labels], cuts: Sequence[Cuts]
) -> Iterator[tuple[int, Labels]]:
    yield from zip(of_graph, partitions, strict=True)
    for graph, found in enumerate(cuts):
        for labels in (*found.by_modularity.values(), *found.by_ties.values()):
            yield graph, labels


def _prior(partitions: Labels, scores: Array, natural: float, is_given: bool) -> Array:
    sizes = partitions.max(axis=1) + 1
    prior = scores.copy()
    for k in np.unique(sizes):
        own = np.flatnonzero(sizes == k)
        if len(own) > 1:
            prior[own] += support(pairwise_agreement(list(partitions[own])))
    if is_given:
        return prior
    away = np.log(sizes / max(1.0, natural))
    return prior - _AWAY * np.where(away > 0, ABOVE, BELOW) * np.abs(away)


def with_own_cuts(pool: Pool, n_clusters: int) -> Pool:
    """Return the pool with every graph cut into this number by k-means on eigenvectors as well."""
    graphs = [i for i, graph in enumerate(pool.graphs) if graph.W.shape[0] > 2 * n_clusters]

    def one(start: int, stop: int) -> Labels:
        labels = np.unique(cut(pool.graphs[graphs[start]], "kmeans", n_clusters), return_inverse=True)[1]
        step()
        return labels.astype(np.int32)

    with phase("Cutting the graphs again", len(graphs)) as step, quiet(), one_thread("blas"):
        found = map_blocks(one, [(i, i + 1) for i in range(len(graphs))])
    if not found:
        return pool
    same = np.flatnonzero(pool.sizes == n_clusters)
    agreement = pairwise_agreement([*found, *pool.partitions[same]])
    others = support(agreement)
    # the rest of the prior, of the setting and the number, is that of the same graph's cuts into as many
    rest: dict[int, list[float]] = {g: [] for g in graphs}
    for row, own in zip(same.tolist(), others[len(found) :].tolist(), strict=True):
        rest.setdefault(int(pool.of_graph[row]), []).append(pool.prior[row] - own)
    typical = float(np.median(np.concatenate([np.zeros(0), *rest.values()]))) if len(same) else -np.inf
    prior = [own + (float(np.median(rest[g])) if rest[g] else typical) for g, own in zip(graphs, others, strict=False)]
    return replace(
        pool,
        partitions=np.concatenate([pool.partitions, found]),
        of_graph=np.concatenate([pool.of_graph, graphs]),
        prior=np.concatenate([pool.prior, prior]),
    )


def _spread(most: int) -> Iterator[int]:
    k = 2
    while k <= most:
        yield k
        k += 1 if k < _EXACT else round(k / 10)


# ------------------------------------------------------------------------------------------------ what follows


def carried(W: Sparse, labels: Labels, hints: Hints) -> tuple[Labels, dict[int, Any]]:
    """Return labels that follow the hints, and the names of those that have one.

    Parameters
    ----------
    W : graph
    labels : clusters, −1 for samples that no cluster is known of
    hints : known samples keep their label; linked samples go where most of them belong, and others of their own
    """
    if not len(hints.rows) and (labels >= 0).all():
        return in_order(labels), {}
    known, n_classes = hints.known, len(hints.names)
    column = np.full(len(labels), -1, dtype=np.intp)
    column[known] = hints.codes[known]
    of_class = np.zeros((int(labels.max()) + 1, n_classes))
    inside = known[labels[known] >= 0]
    np.add.at(of_class, (labels[inside], column[inside]), 1)
    nameless = np.flatnonzero(of_class.sum(axis=1) == 0)  # keep a column of their own
    start = np.zeros((len(of_class), n_classes + len(nameless)))
    start[:, :n_classes] = of_class
    start[nameless, n_classes + np.arange(len(nameless))] = 1
    start /= start.sum(axis=1, keepdims=True)
    if start.shape[1] > 1:  # a cluster of two classes says little of its samples, one of two halves nothing
        start *= -np.diff(np.sort(start, axis=1)[:, -2:][:, ::-1])
    first = np.where(labels[:, np.newaxis] >= 0, _OWN * start[labels], 0)
    first[known] = np.eye(start.shape[1])[column[known]]
    found = _propagated(W, first)
    if hints.n_links:
        column = _linked(found, column, hints)
        fixed = np.flatnonzero(column >= 0)
        first[fixed] = np.eye(start.shape[1])[column[fixed]]
        found = _propagated(W, first)
    codes = np.where(column >= 0, column, found.argmax(axis=1))
    _, at, numbers = np.unique(codes, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(at))  # clusters are numbered by their first samples
    names = {int(rank[i]): hints.names[code] for i, code in enumerate(codes[at].tolist()) if code < n_classes}
    return rank[numbers].astype(np.intp), dict(sorted(names.items()))


def _propagated(W: Sparse, first: Array) -> Array:
    degree = np.asarray(W.sum(axis=1), dtype=np.float64).ravel()
    root = np.where(degree > 0, 1 / np.sqrt(np.where(degree > 0, degree, 1)), 0)
    step = sparse.csr_array(sparse.diags_array(root) @ W @ sparse.diags_array(root))
    found = first
    for _ in range(_STEPS):
        found = _SPREAD * (step @ found) + (1 - _SPREAD) * first
    return np.asarray(found)


def _linked(found: Array, column: Labels, hints: Hints) -> Labels:
    """Return the column of every sample that is fixed: known ones, and linked ones where most of them belong."""
    group, fixed = hints.together(), column.copy()
    for number in np.unique(group[hints.must.ravel()]):
        members = np.flatnonzero(group == number)
        of_known = fixed[members][fixed[members] >= 0]
        fixed[members] = of_known[0] if len(of_known) else found[members].sum(axis=0).argmax()
    for i, j in hints.cannot.tolist():
        a, b = (int(fixed[r]) if fixed[r] >= 0 else int(found[r].argmax()) for r in (i, j))
        if a == b:
            free = next((r for r in (j, i) if column[r] < 0), None)
            if free is not None:
                elsewhere = found[group == group[free]].sum(axis=0)
                elsewhere[a] = -np.inf
                fixed[group == group[free]] = elsewhere.argmax()
    return fixed


def said(hints: Hints, n_answers: int, n_fit: int, n_without: int | None) -> str:
    """Say what the hints decided."""
    told = [counted(len(hints.known), "known label")] * bool(len(hints.known))
    n_links = hints.n_links - n_answers
    told += [counted(n_links, "linked pair")] * (n_links > 0) + [counted(n_answers, "answer")] * (n_answers > 0)
    n_told = len(hints.known) + hints.n_links
    fits = "fit it best" if n_told == 1 else "fit them best"
    without = "as without them" if n_without == n_fit else f"without them {n_without}"
    return f"{' and '.join(told)}: {counted(n_fit, 'group')} {fits}" + ("" if n_without is None else f"; {without}")


# ------------------------------------------------------------------------------------------------ questions


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
        groups = (
            f"{counted(self.after, 'group')}, as before"
            if self.before == self.after
            else (f"{self.before} groups became {self.after}")
        )
        parts = [f"{groups}; {counted(self.n_moved, 'item')} moved"]
        if self.contradictions:
            parts.append(f"answers that contradict others: {', '.join(map(str, self.contradictions))}")
        if self.not_followed:
            parts.append(f"answers the groups do not follow: {', '.join(map(str, self.not_followed))}")
        return "; ".join(parts) + "."


def questions(pool: Pool, hints: Hints, n: int, asked: Sequence[Answer] = ()) -> list[Question]:
    """Return the pairs whose answers leave the least doubt among the partitions of the pool, the best first.

    Parameters
    ----------
    asked : what was answered before, and is not asked again
    """
    log = pool.posterior(hints)
    weight = np.exp(log - log.max())
    kept = np.flatnonzero(weight > _TINY)
    partitions, weight = pool.partitions[kept], weight[kept] / weight[kept].sum()
    row_of = np.full(pool.partitions.shape[1], -1, dtype=np.intp)
    there = np.flatnonzero(pool.place >= 0)[::-1]
    row_of[pool.place[there]] = there  # the first of equal rows
    over = {frozenset(pool.place[[i, j]].tolist()) for i, j, _ in asked}
    pairs = {pair: why for pair, why in _worth_asking(pool, log).items() if frozenset(pair) not in over}
    if not pairs:
        return []
    i, j = np.array(list(pairs)).T
    same = partitions[:, i] == partitions[:, j]
    reasons, found = list(pairs.values()), []
    signature = np.zeros(len(kept), dtype=np.intp)  # partitions that the questions so far do not tell apart
    free = np.ones(len(reasons), dtype=bool)
    for _ in range(min(n, len(reasons))):
        doubt = np.full(len(reasons), -np.inf)
        doubt[free] = [_entropy(2 * signature + same[:, q], weight) for q in np.flatnonzero(free)]
        best = int(doubt.argmax())
        free[best] = False
        signature = np.unique(2 * signature + same[:, best], return_inverse=True)[1]
        found.append(Question(int(row_of[i[best]]), int(row_of[j[best]]), reasons[best]))
    return found


def _entropy(groups: Labels, weight: Array) -> float:
    share = np.bincount(groups, weight)
    share = share[share > 0]
    return float(-(share * np.log(share)).sum())


def _worth_asking(pool: Pool, log: Array) -> dict[tuple[int, int], str]:
    """Return pairs of typical samples, with the reason, from good partitions of many numbers of clusters."""
    pairs: dict[tuple[int, int], str] = {}
    sizes, levels = pool.sizes, set[int]()
    for row in np.argsort(-log, kind="stable").tolist():
        k = int(sizes[row])
        if k in levels:
            continue
        levels.add(k)
        labels, graph = pool.partitions[row], int(pool.of_graph[row])
        inside, ties = _ties(pool.graphs[graph].W, labels)
        order = np.lexsort((-inside, labels))
        typical = order[np.searchsorted(labels[order], np.arange(k))]
        if k > 1:
            nearest = ties.argmax(axis=1)
            why = f"typical of two neighbouring groups of {k}: are they one group?"
            pairs |= {_pair(typical[a], typical[b]): why for a, b in enumerate(nearest.tolist())}
        finer = np.flatnonzero((pool.of_graph == graph) & (sizes > k))
        if len(finer):
            parts = pool.partitions[finer[np.argmin(np.abs(sizes[finer] - 2 * k))]]
            pairs |= _parts_of(labels, parts, inside, k)
        if len(levels) >= _LEVELS:
            break
    return pairs


def _parts_of(labels: Labels, parts: Labels, inside: Array, k: int) -> dict[tuple[int, int], str]:
    """Return of each cluster the most typical samples of its two largest parts."""
    found = {}
    for cluster in range(k):
        members = np.flatnonzero(labels == cluster)
        sizes = np.bincount(parts[members])
        if np.count_nonzero(sizes) > 1:
            two = np.argsort(-sizes, kind="stable")[:2]
            ends = [members[parts[members] == part] for part in two]
            pair = _pair(*(end[inside[end].argmax()] for end in ends))
            found[pair] = f"far apart in one group of {counted(len(members), 'item')}: is it one group?"
    return found


def _pair(a: Any, b: Any) -> tuple[int, int]:
    return min(int(a), int(b)), max(int(a), int(b))


def _ties(W: Sparse, labels: Labels) -> tuple[Array, Array]:
    """Return the weight of each sample in its own cluster, and the mean tie between every two clusters."""
    n, k = len(labels), int(labels.max()) + 1
    indicator = sparse.csr_array((np.ones(n), (np.arange(n), labels)), shape=(n, k))
    to_clusters = (W @ indicator).toarray()
    between = indicator.T @ to_clusters
    volume = np.maximum(between.sum(axis=1), np.finfo(np.float64).tiny)
    ties = between / (volume[:, np.newaxis] * volume) ** 0.75
    np.fill_diagonal(ties, -np.inf)
    return to_clusters[np.arange(n), labels], ties
