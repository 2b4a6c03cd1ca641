"""A few known labels, or answers about pairs: what is not in the data, and how it decides.

1. *Pool.* The graphs of all settings are cut into a spread of numbers of clusters, by modularity and by ties.
2. *Prior.* Agreement with the others of the same number, the score of the setting, and the distance from the natural
   number. The automatic answer is worth two hints more.
3. *Evidence.* Each sample that must be left out until the hints hold costs log 9; of known labels, those outside the
   best pairing of clusters and classes: a class in many pieces is as wrong as a piece of many classes.
4. *Carrying.* Labels spread along a graph (Zhou et al. 2004), each sample beginning with the known labels of its
   cluster, or without clusters, or not at all: what finds known labels again that are left out one by one.

Questions compare samples, drawn at random, with one of each group that is known so far, so that answers soon are labels
(active learning by neighbourhoods, Basu et al. 2004). What share of the data a partition gets right is seen by samples
at random; typical ones of many clusters do not say it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components

from subspaces.selection.count import ABOVE, BELOW, Cuts, cuts_of
from subspaces.selection.criteria import support
from subspaces.selection.graphs import Candidate
from subspaces.selection.result import Selection
from subspaces.spectral.agreement import pairwise_agreement
from subspaces.spectral.hierarchy import FINE
from subspaces.utils.blocks import map_blocks
from subspaces.utils.ordering import first_largest
from subspaces.utils.process import one_thread, quiet, warn_caller
from subspaces.utils.progress import phase
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array, Labels, Sparse

SURE = 0.9
"""Probability that a hint is right."""

_MOST = 125  # clusters of a partition in the pool, if no more classes are named
_LEAST_POINTS = 4
_EXACT = 12  # numbers of clusters up to which each is in the pool; above in steps of 10 %
_PRIOR, _AUTOMATIC, _AWAY = 2.0, 5.0, 0.3  # weights of the prior, of the automatic answer, of the number in the prior
_OF_PAIR = 0.7  # what an error about pairs, of two samples, counts beside one about a label
_MOST_LINKED = 200  # linked samples that are looked at: their pairs in a thousand partitions take 40 MB
_OWN, _SPREAD, _STEPS = 0.1, 0.8, 30  # weight of a sample's cluster; share that comes from neighbours; steps
_TESTED, _GRAPHS = 50, 4  # labels left out in turn; graphs that classes spread on
_FRESH = 3  # samples that nothing is known of, among which a question chooses
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
        if not isinstance(entry, (tuple, list)) or len(entry) != 3 or not _is_answer(entry[2]):
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


def _is_answer(value: Any) -> bool:
    return value is None or isinstance(value, (bool, np.bool_))


def n_moved(before: Labels, after: Labels) -> int:
    """Return how many samples are not in the cluster that is the most like theirs before."""
    table = np.zeros((int(before.max()) + 1, int(after.max()) + 1))
    np.add.at(table, (before, after), 1)
    return int(len(before) - table[linear_sum_assignment(-table)].sum())


def contradictions(hints: Hints) -> list[tuple[int, int]]:
    """Return pairs that were said to be apart, and that other hints join."""
    group = hints.together(by_class=True)
    return [(i, j) for i, j in map(tuple, hints.cannot.tolist()) if group[i] == group[j]]


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
    automatic : which is the answer of the search
    found_again : share of the known labels that each way to carry them finds, as far as it was tried
    place : array of shape (n,), of every sample of the data the searched one that it is or equals, −1 where none
    """

    graphs: list[Candidate]
    partitions: Labels
    of_graph: Labels
    prior: Array
    automatic: int
    place: Labels
    found_again: dict[tuple[int, int, float], float] = field(default_factory=dict)

    @property
    def order(self) -> Labels:
        """Return the samples in the order in which questions come to them."""
        return np.random.default_rng(0).permutation(self.partitions.shape[1])

    def at(self, rows: Labels) -> Labels:
        """Return which of these rows the search looked at."""
        return rows[self.place[rows] >= 0]

    def posterior(self, hints: Hints, one_by_one: bool = False) -> Array:
        """Return the logarithm of the probability of every partition, up to a constant; or with each pair by itself."""
        errors = np.zeros(len(self.partitions))
        known = self.at(hints.known)
        if len(known):
            errors += [_misnamed(labels, hints.codes[known]) for labels in self.partitions[:, self.place[known]]]
        linked = self.at(hints.linked)
        linked = linked[np.argsort(self.place[linked], kind="stable")][:_MOST_LINKED]
        if one_by_one:
            ends = self.place[np.concatenate([hints.must, hints.cannot])]
            same = self.partitions[:, ends[:, 0]] == self.partitions[:, ends[:, 1]]
            errors += (same != (np.arange(len(ends)) < len(hints.must))).sum(axis=1, where=(ends >= 0).all(axis=1))
        elif len(linked):
            own, relation = hints.relations(linked)
            errors += _OF_PAIR * _least_left_out(self.partitions[:, self.place[linked]], relation[own][:, own])
        return self.prior - np.log(SURE / (1 - SURE)) * errors


def _misnamed(labels: Labels, codes: Labels) -> int:
    """Return how many samples do not have the class that is paired with their cluster, one to one."""
    clusters = np.unique(labels, return_inverse=True)[1]
    table = np.zeros((clusters.max() + 1, codes.max() + 1))
    np.add.at(table, (clusters, codes), 1)
    return int(len(codes) - table[linear_sum_assignment(-table)].sum())


def _least_left_out(partitions: Labels, relation: Array) -> Array:
    """Return how many samples to leave out, always the one in most of the wrong pairs, until no pair is wrong."""
    same = partitions[:, :, np.newaxis] == partitions[:, np.newaxis]
    wrong = np.where(same, relation < 0, relation > 0)
    errors = np.zeros(len(partitions))
    while len(left := np.flatnonzero(wrong.any(axis=(1, 2)))):
        worst = wrong[left].sum(axis=2).argmax(axis=1)
        wrong[left, worst] = False
        wrong[left, :, worst] = False
        errors[left] += 1
    return errors


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
    automatic = list(found).index(winner)
    prior *= _PRIOR
    prior[automatic] += _AUTOMATIC
    order = np.argsort(row_hashes[selection.searched], kind="stable")
    hashes = row_hashes[selection.searched][order]
    at = np.minimum(np.searchsorted(hashes, row_hashes), len(hashes) - 1)
    place = np.where(hashes[at] == row_hashes, order[at], -1)
    return Pool(graphs, partitions, of_graph, prior, automatic, place)


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


def _spread(most: int) -> Iterator[int]:
    k = 2
    while k <= most:
        yield k
        k += 1 if k < _EXACT else round(k / 10)


# ------------------------------------------------------------------------------------------------ what follows


class Following(NamedTuple):
    """What fits hints best: a partition of the searched samples, a graph that carries labels, and how far it does."""

    labels: Labels
    graph: Candidate
    own: float  # weight of a sample's cluster: 0, classes only; infinity, nothing spreads


def following(pool: Pool, hints: Hints, log: Array, classes_suffice: bool) -> Following:
    """Return what fits the hints best.

    Parameters
    ----------
    log : posterior of the pool
    classes_suffice : whether there may be no clusters beside those that are named
    """
    best = int(first_largest(log))
    labels, graphs = pool.partitions[best], pool.graphs
    known = pool.at(hints.known)
    if not len(known):
        return Following(labels, graphs[pool.of_graph[best]], np.inf)
    codes = np.full(len(labels), -1, dtype=np.intp)
    codes[pool.place[known]] = hints.codes[known]
    ways = [(best, int(pool.of_graph[best]), _OWN)]
    if best == pool.automatic:
        ways.insert(0, (best, ways[0][1], np.inf))
    if classes_suffice:
        first = np.unique(pool.of_graph[np.argsort(-log, kind="stable")], return_index=True)
        ways += [(-1, g, 0.0) for g in first[0][np.argsort(first[1])][:_GRAPHS].tolist()]
    options = [Following(labels if row >= 0 else np.zeros_like(labels), graphs[g], own) for row, g, own in ways]
    for key, option in zip(ways, options, strict=True):
        if key not in pool.found_again:
            pool.found_again[key] = _found_again(option, codes)
    return options[int(first_largest(np.array([pool.found_again[key] for key in ways])))]


def _found_again(way: Following, codes: Labels) -> float:
    """Return the share of known labels that are found when they are left out one by one."""
    tested = np.flatnonzero(codes >= 0)[:_TESTED]
    to = np.zeros((len(tested) + 1, len(codes)))
    to[np.arange(len(tested)), tested] = 1
    to[-1] = 1  # all samples together
    if way.own < np.inf:
        to = _propagated(way.graph.W, to.T).T
    n_classes, others, right = int(codes.max()) + 1, np.bincount(codes[codes >= 0]) > 1, 0
    for i, of_sample in zip(tested.tolist(), to, strict=False):
        without = codes.copy()
        without[i] = -1
        first, share = _first(way.labels, without, n_classes, way.own)
        votes = _balanced(of_sample @ first, to[-1] @ first, way.labels, share)
        found = int((votes if votes.max() > 0 else share[way.labels[i]]).argmax())
        right += found == codes[i] if others[codes[i]] else found >= n_classes
    return right / len(tested)


def _first(labels: Labels, codes: Labels, n_classes: int, own: float) -> tuple[Array, Array]:
    """Return where the samples begin, and each cluster's share of the classes; one without any has its own column."""
    of_class = np.zeros((int(labels.max()) + 1, n_classes))
    inside = np.flatnonzero((codes >= 0) & (labels >= 0))
    np.add.at(of_class, (labels[inside], codes[inside]), 1)
    if own == np.inf:  # nothing merges: a class names one cluster
        paired = linear_sum_assignment(-of_class)
        is_seen, of_class = of_class[paired] > 0, np.zeros_like(of_class)
        of_class[paired] = is_seen
    nameless = np.flatnonzero(of_class.sum(axis=1) == 0)
    share = np.zeros((len(of_class), n_classes + len(nameless)))
    share[:, :n_classes] = of_class
    share[nameless, n_classes + np.arange(len(nameless))] = 1
    share /= share.sum(axis=1, keepdims=True)
    clear = share
    if share.shape[1] > 1 and own < np.inf:  # a cluster of two classes says little, one of two halves nothing
        clear = share * -np.diff(np.sort(share, axis=1)[:, -2:][:, ::-1])
    first = np.where(labels[:, np.newaxis] >= 0, min(own, 1.0) * clear[labels], 0)
    if own < np.inf:
        known = np.flatnonzero(codes >= 0)
        first[known] = np.eye(share.shape[1])[codes[known]]
    return first, share


def _balanced(votes: Array, total: Array, labels: Labels, share: Array) -> Array:
    """Return votes, each class and each nameless cluster weighed to have as many in total as samples in its clusters.

    So a label that is alone in its neighbourhood does not flood it (class mass normalisation, Zhu et al. 2003).
    """
    size = np.bincount(labels[labels >= 0], minlength=len(share)) @ share
    balanced: Array = votes * size / np.where(total > 0, total, 1)
    return balanced


def carried(W: Sparse, labels: Labels, hints: Hints, own: float) -> tuple[Labels, dict[int, Any]]:
    """Return labels that follow the hints, and the names of those that have one.

    Parameters
    ----------
    W : graph
    labels : clusters, −1 for samples that no cluster is known of
    hints : known samples keep their label; linked samples move to where most of what is said of them holds
    own : weight of a sample's cluster, see :class:`Following`
    """
    n_classes = len(hints.names)
    first, share = _first(labels, hints.codes, n_classes, own)
    votes = first if own == np.inf and (labels >= 0).all() else _propagated(W, first)
    votes = _balanced(votes, votes.sum(axis=0), labels, share)
    stays = (labels >= 0) & ((own == np.inf) | (votes.max(axis=1) <= 0))
    votes[stays] = share[labels[stays]]
    codes = _moved(np.where(hints.codes >= 0, hints.codes, votes.argmax(axis=1)), votes, hints)
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


def _moved(codes: Labels, votes: Array, hints: Hints) -> Labels:
    """Return codes of which most links hold: samples move one by one, those of the fewest links first.

    A link that others outvote on both its ends is taken to be wrong.
    """
    links = np.concatenate([hints.must, hints.cannot])
    sign = np.where(np.arange(len(links)) < len(hints.must), 1.0, -1.0)
    ends, partners = links.ravel(), links[:, ::-1].ravel()
    rows, n_links = np.unique(ends, return_counts=True)
    free = rows[np.argsort(n_links, kind="stable")]
    own = {i: np.flatnonzero(ends == i) for i in free[hints.codes[free] < 0].tolist()}
    size = max(votes.shape[1], int(codes.max()) + 1)
    for _ in range(_STEPS):
        before = codes.copy()
        for i, where in own.items():
            said = np.bincount(codes[partners[where]], sign[where // 2], minlength=size)
            there = said == said.max()
            if not there[codes[i]]:
                codes[i] = np.where(there[: votes.shape[1]], votes[i], -1).argmax()
        if np.array_equal(codes, before):
            break
    return codes


def said(hints: Hints, n_answers: int, n_fit: int, n_without: int | None) -> str:
    """Say what the hints decided."""
    told = [counted(len(hints.known), "known label")] * bool(len(hints.known))
    n_links = hints.n_links - n_answers
    told += [counted(n_links, "linked pair")] * (n_links > 0) + [counted(n_answers, "answer")] * (n_answers > 0)
    them = "it" if len(hints.known) + hints.n_links == 1 else "them"
    without = f", as without {them}" if n_without == n_fit else f"; without {them} {n_without}"
    groups = counted(n_fit, "group fits", "groups fit")
    return f"{' and '.join(told)}: {groups} {them} best{'' if n_without is None else without}"


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
        groups = f"{self.before} groups became {self.after}"
        if self.before == self.after:
            groups = f"{counted(self.after, 'group')}, as before"
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
    log = pool.posterior(hints, one_by_one=True)
    weight = np.exp(log - log.max())
    kept = np.flatnonzero(weight > _TINY)
    partitions, weight = pool.partitions[kept], weight[kept] / weight[kept].sum()
    over = {frozenset(pool.place[[i, j]].tolist()) for i, j, _ in asked}
    pairs = [pair for pair in _worth_asking(pool, hints, n) if frozenset(pair) not in over]
    if not pairs:
        return []
    row_of = np.full(pool.partitions.shape[1], -1, dtype=np.intp)
    there = np.flatnonzero(pool.place >= 0)[::-1]
    row_of[pool.place[there]] = there  # the first of equal rows
    i, j = np.array(pairs).T
    same = partitions[:, i] == partitions[:, j]
    probability = weight @ same
    free = np.abs(probability - 0.5) < 0.5 - _TINY
    found: list[Question] = []
    signature = np.zeros(len(kept), dtype=np.intp)  # partitions that the questions so far do not tell apart
    while free.any() and len(found) < n:
        doubt = np.full(len(pairs), -np.inf)
        doubt[free] = [_entropy(2 * signature + same[:, q], weight) for q in np.flatnonzero(free)]
        best = int(doubt.argmax())
        free[best] = False
        signature = np.unique(2 * signature + same[:, best], return_inverse=True)[1]
        first, second = sorted(row_of[[i[best], j[best]]].tolist())
        why = f"of the partitions that fit so far, {probability[best]:.0%} say one group"
        found.append(Question(first, second, why))
    return found


def _entropy(groups: Labels, weight: Array) -> float:
    share = np.bincount(groups, weight)
    return float(-(share * np.log(np.where(share > 0, share, 1))).sum())


def _worth_asking(pool: Pool, hints: Hints, n: int) -> list[tuple[int, int]]:
    """Return pairs of a sample and one of each group that is known, and of groups that may be one."""
    rows = pool.at(hints.rows)
    there = pool.place[rows]
    fresh = pool.order[~np.isin(pool.order, there)][: _FRESH + n - 1].tolist()
    if not len(rows):
        return [(fresh[0], x) for x in fresh[1:]]
    own, relation = hints.relations(rows)
    typical = there[np.unique(own, return_index=True)[1]].tolist()
    open_pairs = np.argwhere(np.triu(relation == 0))
    return [(x, r) for x in fresh for r in typical] + [(typical[a], typical[b]) for a, b in open_pairs]
