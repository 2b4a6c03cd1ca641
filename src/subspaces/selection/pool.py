"""Many partitions of the same samples: how well each fits what a person knows, and what to ask about.

1. *Pool.* The graphs of all settings are cut into a spread of numbers of clusters, by modularity and by ties.
2. *Prior.* Agreement with the others of the same number, the score of the setting, and the distance from the natural
   number. The automatic answer is worth two hints more.
3. *Evidence.* Each sample that must be left out until the hints hold costs log 9; of known labels, those outside the
   best pairing of clusters and classes: a class in many pieces is as wrong as a piece of many classes.

Questions compare samples, drawn at random, with one of each group that is known so far, so that answers soon are labels
(active learning by neighbourhoods, Basu et al. 2004). What share of the data a partition gets right is seen by samples
at random; typical ones of many clusters do not say it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from subspaces.engine.run import FitResult
from subspaces.selection.candidates import Setting
from subspaces.selection.count import ABOVE, BELOW, Cuts, cuts_of
from subspaces.selection.criteria import support
from subspaces.selection.graphs import Candidate
from subspaces.selection.hints import Answer, Hints, Question, n_moved
from subspaces.selection.result import Selection
from subspaces.spectral.agreement import pairwise_agreement
from subspaces.spectral.hierarchy import FINE
from subspaces.utils.blocks import map_blocks
from subspaces.utils.process import one_thread, quiet
from subspaces.utils.progress import phase
from subspaces.utils.types import Array, Labels

_ERROR = np.log(9)  # what an error costs: a hint is right with probability 0.9
_MOST = 125  # clusters of a partition in the pool, if no more classes are named
_LEAST_POINTS = 4
_EXACT = 12  # numbers of clusters up to which each is in the pool; above in steps of 10 %
_PRIOR, _AUTOMATIC, _AWAY = 2.0, 5.0, 0.3  # weights of the prior, of the automatic answer, of the number in the prior
_MOST_LINKED = 200  # linked samples that are looked at: their pairs in a thousand partitions take 40 MB
_FRESH = 3  # samples that nothing is known of, among which a question chooses
_TINY = 1e-4  # a partition of less weight than this share of the best has no say in questions


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
    of_all : graphs of all samples, where more than the searched ones, as far as they were needed
    """

    graphs: list[Candidate]
    partitions: Labels
    of_graph: Labels
    prior: Array
    automatic: int
    place: Labels
    found_again: dict[tuple[int, int, float], float] = field(default_factory=dict)
    of_all: dict[Setting, FitResult] = field(default_factory=dict)

    def at(self, rows: Labels) -> Labels:
        """Return which of these rows the search looked at."""
        return rows[self.place[rows] >= 0]

    def posterior(self, hints: Hints, one_by_one: bool = False) -> Array:
        """Return the logarithm of the probability of every partition, up to a constant; or with each pair by itself."""
        errors = np.zeros(len(self.partitions))
        known = self.at(hints.known)
        if len(known):
            errors += [n_moved(labels, hints.codes[known]) for labels in self.partitions[:, self.place[known]]]
        linked = self.at(hints.linked)
        linked = linked[np.argsort(self.place[linked], kind="stable")][:_MOST_LINKED]
        if one_by_one:
            ends = self.place[np.concatenate([hints.must, hints.cannot])]
            same = self.partitions[:, ends[:, 0]] == self.partitions[:, ends[:, 1]]
            errors += (same != (np.arange(len(ends)) < len(hints.must))).sum(axis=1, where=(ends >= 0).all(axis=1))
        elif len(linked):
            own, relation = hints.relations(linked)
            errors += _least_left_out(self.partitions[:, self.place[linked]], relation[own][:, own])
        posterior: Array = self.prior - _ERROR * errors
        return posterior


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
    ways = [(graph, way) for graph, cut in enumerate(cuts) for way in (cut.by_modularity, cut.by_ties)]
    of_ways = [(graph, labels) for graph, way in ways for labels in way.values()]
    for graph, labels in [*zip(kept.of_graph, kept.partitions, strict=True), *of_ways]:
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
    order = np.random.default_rng(0).permutation(pool.partitions.shape[1])
    fresh = order[~np.isin(order, there)][: _FRESH + n - 1].tolist()
    if not len(rows):
        return [(fresh[0], x) for x in fresh[1:]]
    own, relation = hints.relations(rows)
    typical = there[np.unique(own, return_index=True)[1]].tolist()
    open_pairs = np.argwhere(np.triu(relation == 0))
    return [(x, r) for x in fresh for r in typical] + [(typical[a], typical[b]) for a, b in open_pairs]
