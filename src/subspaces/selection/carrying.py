"""Labels that follow what a person knows, from a partition and the graph it is of.

Labels spread along the graph (Zhou et al. 2004), each sample beginning with the known labels of its cluster; or the
partition stays as it is, or classes spread without clusters: whichever finds most known labels that are left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from subspaces.selection.graphs import Candidate
from subspaces.selection.hints import Hints
from subspaces.selection.pool import Pool
from subspaces.utils.ordering import first_largest
from subspaces.utils.types import Array, Labels, Sparse

_OWN, _SPREAD, _STEPS = 0.03, 0.8, 30  # weight of a sample's cluster; share that comes from neighbours; steps
_TESTED, _GRAPHS = 50, 4  # labels left out in turn; graphs that classes spread on


class Following(NamedTuple):
    """What fits hints best: a partition of the searched samples, a graph that carries labels, and how far it does."""

    labels: Labels
    graph: Candidate
    own: float  # weight of a sample's cluster: 0, classes only; infinity, nothing spreads
    is_automatic: bool = False


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
        return Following(labels, graphs[pool.of_graph[best]], np.inf, best == pool.automatic)
    codes = np.full(len(labels), -1, dtype=np.intp)
    codes[pool.place[known]] = hints.codes[known]
    ways = [(best, int(pool.of_graph[best]), _OWN)]
    if best == pool.automatic:
        ways.insert(0, (best, ways[0][1], np.inf))
    if classes_suffice:
        first = np.unique(pool.of_graph[np.argsort(-log, kind="stable")], return_index=True)
        ways += [(-1, g, 0.0) for g in first[0][np.argsort(first[1])][:_GRAPHS].tolist()]
    options = [
        Following(labels if row >= 0 else np.zeros_like(labels), graphs[g], own, row == pool.automatic)
        for row, g, own in ways
    ]
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
