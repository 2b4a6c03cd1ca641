"""The number of clusters, with a range, from the graphs of all settings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from subspaces.embedding.spectral import spectral_embedding
from subspaces.numerics.ties import levels, tolerance
from subspaces.numerics.types import Array, Labels
from subspaces.partition import contracted, cut_by_modularity, merge_steps
from subspaces.selection.criteria import pairwise_agreement, support
from subspaces.selection.graphs import LEIDEN_ITERATIONS, Candidate
from subspaces.selection.result import ClusterCount

N_GRAPHS = 12
"""Graphs that decide on the number of clusters."""

_FINE = 3.0  # resolution of the communities that are merged down: more of them than there are clusters
_AS_GOOD, _IN_RANGE = 0.98, 0.95  # share of the best score
_MOST_EIGENVALUES = 120
_EVERY, _LEAST_POINTS, _MOST_CLUSTERS = 40, 4, 1000  # which numbers are looked at, see _spread


def count_clusters(graphs: Sequence[Candidate], seed: int = 0) -> ClusterCount:
    """Number of clusters on which different settings agree best.

    The most trustworthy graphs (those whose free communities others confirm) are cut into k = 2, 3, ... clusters by
    merging fine communities. At the right k different settings give the same partition; at a wrong one each joins or
    splits something else. Splitting a cluster in two also cuts many edges. So numbers are judged by mean agreement ×
    (1 − mean normalised cut). Those within 5 % of the best are the range; the largest within 2 % is the estimate,
    because coarse partitions agree more easily. One cluster is never found: every setting agrees on that.
    """
    free = [np.maximum(graph.communities, 0) for graph in graphs]
    deciding = _most_supported(graphs, support(pairwise_agreement(free)))
    communities = np.array([int(labels.max()) + 1 for labels in free])
    candidates, agreement, separation = _judged_numbers([graphs[i] for i in deciding], seed)
    score = np.maximum(agreement, 0) * separation
    best_score = score.max() * (1 - tolerance(score.dtype))
    estimate = int(candidates[score >= _AS_GOOD * best_score][-1])
    good = candidates[score >= _IN_RANGE * best_score]
    best = graphs[deciding[0]]
    n_values = min(max(2 * estimate, estimate + 10), _MOST_EIGENVALUES, best.W.shape[0] - 1)
    return ClusterCount(
        estimate=estimate,
        low=int(good[0]),
        high=int(good[-1]),
        candidates=candidates,
        agreement=agreement,
        score=score,
        communities=communities,
        eigenvalues=spectral_embedding(best.W, max(1, n_values)).eigenvalues,
    )


def _most_supported(graphs: Sequence[Candidate], supported: Array) -> list[int]:
    """Graphs of largest support, at first one for each kernel and penalty: prefixes of one truncation agree anyway."""
    first: dict[tuple[object, ...], int] = {}
    order = [int(i) for i in np.argsort(levels(-supported), kind="stable")]
    for i in order:
        setting = graphs[i].setting
        first.setdefault((setting.scaling, setting.kernel, setting.reg), i)
    chosen = list(first.values())
    return [*chosen, *(i for i in order if i not in chosen)][:N_GRAPHS]


def _judged_numbers(graphs: Sequence[Candidate], seed: int) -> tuple[Labels, Array, Array]:
    """Numbers of clusters, the mean agreement of the graphs' partitions into that many, and how separate those are."""
    merged = [_merged(graph, seed) for graph in graphs]
    largest = sorted((max(by_number) for by_number in merged), reverse=True)[(len(merged) - 1) // 2]
    candidates, agreement, separation = _spread(largest, graphs[0].W.shape[0]), [], []
    for k in candidates:
        cuts = [by_number[k] for by_number in merged if k in by_number]
        table = pairwise_agreement([labels for labels, _ in cuts])
        n_pairs = table.size - len(table)
        agreement.append(float((table.sum() - len(table)) / n_pairs) if n_pairs else 1.0)
        separation.append(float(np.mean([separate for _, separate in cuts])))
    return np.array(candidates, dtype=np.intp), np.array(agreement), np.array(separation)


def _merged(graph: Candidate, seed: int) -> dict[int, tuple[Labels, float]]:
    """Partitions of one graph into every number of clusters, each with 1 − its normalised cut."""
    connected = graph.communities >= 0
    W = graph.W[connected][:, connected]
    fine = cut_by_modularity(W, resolution=_FINE, seed=seed, iterations=LEIDEN_ITERATIONS)
    n_left = int(fine.max()) + 1
    between = contracted(W, fine)
    target = np.arange(n_left)
    wanted = set(_spread(n_left, len(connected)))
    found = {}
    for kept, gone in chain([(0, 0)], merge_steps(W, fine, 2)):
        n_left -= kept != gone
        target[target == gone] = kept
        if n_left in wanted:
            number = np.unique(target, return_inverse=True)[1]
            labels = np.zeros(len(connected), dtype=np.intp)
            labels[connected] = number[fine]
            own, other = number[between.row], number[between.col]
            volume = np.bincount(own, weights=between.data)
            inside = np.bincount(own, weights=between.data * (own == other))
            found[n_left] = labels, float(np.mean(inside / volume))
    return found or {1: (np.zeros(len(connected), dtype=np.intp), 1.0)}


def _spread(largest: int, n: int) -> list[int]:
    """Numbers from 2 to `largest`, every one up to 40, then in steps of 2.5 %.

    Above 40 none that leaves less than four of the n points to a cluster, and none above 1,000. A graph with so many
    communities has fallen into crumbs, and the agreement of twelve graphs of 2,500 points takes 0.4 s at 600 clusters
    and 11 s at 2,000.
    """
    numbers, k = [], 2
    while k <= min(largest, max(_EVERY, min(n // _LEAST_POINTS, _MOST_CLUSTERS))):
        numbers.append(k)
        k += max(1, k // _EVERY)
    return numbers or [1]
