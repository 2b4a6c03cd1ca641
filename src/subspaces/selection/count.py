"""The number of clusters: how probable each is, from the graphs of all settings.

Three things are known of a number k.

1. *Agreement*: every graph is cut into k clusters by merging fine communities. At the right k different settings give
   the same partition; at a wrong one each joins or splits something else.
2. *Borders*: the largest share of a cluster's edges that goes to one other cluster. It jumps where a cluster is split
   that is none.
3. *Splits*: one tree is made of all graphs (:mod:`subspaces.spectral.hierarchy`), and each of its splits has a
   probability to divide two classes, from the cut, the return, the sizes and whether the settings' own communities
   respect it. At the right k the weakest split made is still probable, and the strongest one not made is improbable.

Where different kernels and penalties, each left to itself, find the same communities, these are the clusters; chance
does not do that. Likewise where nearly all settings agree on one number and far less on smaller ones. So it is with
subspaces, of which labelled sets have few. Else logistic regression puts the three together: one for splits, one for
numbers, a choice among all that are looked at (conditional logit). Their weights were fitted to labelled data sets by
``benchmarks/number.py``, which also says how well they do on families of sets that were left out, and chooses how much
probability the range has, so that it holds the number of classes in 85 % of those. One cluster is another question,
asked where the settings do not agree: :mod:`subspaces.spectral.splits`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np

from subspaces.selection import fitted
from subspaces.selection.criteria import support
from subspaces.selection.graphs import LEIDEN_ITERATIONS, Candidate
from subspaces.selection.result import ClusterCount
from subspaces.spectral.agreement import pairwise_agreement
from subspaces.spectral.embedding import spectral_embedding
from subspaces.spectral.hierarchy import Merged, fine_pieces, merged
from subspaces.spectral.partition import contracted, cut_by_modularity, merge_steps
from subspaces.utils.ties import first_largest, levels
from subspaces.utils.types import Array, Labels

N_GRAPHS = 12
"""Graphs that decide on the number of clusters."""

WIDE = 64
"""Features from which points are images, spectra or expression profiles."""

_FINE = 3.0  # resolution of the communities that are merged down: more of them than there are clusters
_NEARLY = 0.2  # of the logarithm
_EXTENSIONS = 3
_MOST_EIGENVALUES = 120
_EVERY, _LEAST_POINTS, _MOST_CLUSTERS = 40, 4, 1000  # which numbers are looked at, see _spread
_LOWEST = 1e-3  # of a share whose logarithm is taken
_AGREED, _FEWER, _RISE, _STEP = 0.9, 1.5, 0.2, 0.02  # see _levels and _agreed_on
_MANY = 10  # clusters of which a test that sees 400 samples sees few of each
_VOICES = 6  # graphs whose agreement may decide alone: at least three of them have as many communities
_SAME, _ALIKE = 0.99, 0.95  # adjusted Rand index from which communities are the same, or differ by a few samples
_KINDS, _SHARE = 3, 0.4  # kernels and penalties that must find them: in none of 480 draws of one piece they do


def count_clusters(graphs: Sequence[Candidate], n_features: int, seed: int = 0) -> ClusterCount:
    """Return how probable each number of clusters is, two or more.

    Where the best is the largest looked at, finer ones too.

    Parameters
    ----------
    graphs : of all settings
    n_features : of the samples
    seed : of Leiden
    """
    free = [np.maximum(graph.communities, 0) for graph in graphs]
    deciding = most_supported(graphs)
    chosen, own = [graphs[i] for i in deciding], [free[i] for i in deciding]
    numbers = np.array([int(labels.max()) + 1 for labels in free])
    n, splits = chosen[0].W.shape[0], _split_probabilities(chosen, own, n_features, seed)
    levels_of = partial(_levels, chosen, splits, n_features, seed)
    same = numbers[_coinciding(graphs, free)]
    found = _coincided(levels_of(_FINE), same) if len(same) else _extended(levels_of, n)
    agreement, estimate = found.agreement, found.estimate
    low, high = _range(found.candidates, found.probability)
    n_values = min(max(2 * estimate, estimate + 10), _MOST_EIGENVALUES, n - 1)
    return ClusterCount(
        estimate=estimate,
        low=min(low, estimate),
        high=max(high, estimate),
        candidates=found.candidates,
        probability=found.probability,
        agreement=agreement,
        score=np.maximum(agreement, 0) * found.separation,
        communities=numbers,
        eigenvalues=spectral_embedding(chosen[0].W, max(1, n_values)).eigenvalues,
        agreed=len(same) > 0 or (found.agreed and estimate >= _MANY),
    )


class _Levels(NamedTuple):
    """Numbers of clusters that are looked at, what is known of each, and the one to take."""

    candidates: Labels
    agreement: Array
    separation: Array
    probability: Array
    agreed: bool
    estimate: int


def _extended(levels_of: Callable[[float], _Levels], n: int) -> _Levels:
    """Return all numbers up to that of fine communities, and of finer ones where the estimate is among the largest."""
    found = levels_of(_FINE)
    for step in range(1, _EXTENSIONS + 1):
        largest = found.candidates[-1]
        if found.estimate < largest or largest >= min(n // _LEAST_POINTS, _MOST_CLUSTERS):
            break
        finer = levels_of(_FINE * 2**step)
        if found.agreed and not finer.agreed:
            break
        found = finer
    return found


def _levels(graphs: Sequence[Candidate], splits: Array, n_features: int, seed: int, resolution: float) -> _Levels:
    """Return all numbers up to that of the communities at a resolution."""
    candidates, agreement, separation, border = _judged_numbers(graphs, seed, resolution)
    agreed = len(graphs) >= _VOICES and _agreed_on(candidates, agreement)
    if agreed:
        probability = _softmax((agreement - agreement.max()) / _STEP)
        best = int(first_largest(agreement))
    else:
        features = level_features(candidates, agreement, separation, border, splits)
        probability = _softmax(features @ np.array(fitted.WIDE if n_features >= WIDE else fitted.NARROW))
        best = _best(candidates, probability)
    return _Levels(candidates, agreement, separation, probability, agreed, int(candidates[best]))


def _coincided(found: _Levels, numbers: Labels) -> _Levels:
    """Return what is known where settings coincide that have found these numbers.

    The one that all settings agree on best.
    """
    numbers = np.unique(numbers)
    places = np.array([_nearest(found.candidates, number) for number in numbers])
    agreement, probability = found.agreement[places], np.zeros(len(found.candidates))
    probability[places] = np.exp((agreement - agreement.max()) / _STEP)
    estimate = int(numbers[first_largest(agreement)])
    return found._replace(probability=probability / probability.sum(), estimate=estimate)


def _coinciding(graphs: Sequence[Candidate], communities: Sequence[Labels]) -> Labels:
    """Return the settings, of several kernels and penalties, that give the same communities; none where they are few.

    Truncations of one kernel and penalty are prefixes of each other and count once. Others that differ by a few samples
    are among them: such samples may be tiny components that two or three settings count.
    """
    kinds = np.unique([repr(_kind(graph)) for graph in graphs], return_inverse=True)[1]
    agreement = pairwise_agreement(communities)
    same = agreement >= _SAME
    n_kinds = np.array([len(np.unique(kinds[row])) for row in same])
    if n_kinds.max() < max(_KINDS, _SHARE * (kinds.max() + 1)):
        return np.zeros(0, dtype=np.intp)
    most = int((n_kinds * len(graphs) + same.sum(axis=1)).argmax())
    several = np.array([labels.max() for labels in communities]) > 0
    return np.flatnonzero((agreement[most] >= _ALIKE) & several)


def _kind(graph: Candidate) -> tuple[object, ...]:
    return graph.setting.scaling, graph.setting.kernel, graph.setting.reg


def _agreed_on(candidates: Labels, agreement: Array) -> bool:
    """Return whether nearly all settings give the same partition into one number of clusters.

    And into fewer they do not.
    """
    fewer = agreement[candidates * _FEWER <= candidates[agreement.argmax()]]
    return bool(len(fewer) and agreement.max() >= _AGREED and agreement.max() - fewer.max() >= _RISE)


def _best(candidates: Labels, probability: Array) -> int:
    """Return the number that is expected to be nearest: numbers that differ by a fifth support each other by 60 %."""
    near = np.exp(-np.square(np.log(candidates[:, None] / candidates) / _NEARLY) / 2)
    return int(first_largest(near @ probability))


def _range(candidates: Labels, probability: Array) -> tuple[int, int]:
    """Return from the smallest to the largest of the most probable numbers that together have enough."""
    order = np.argsort(levels(-probability), kind="stable")
    n_kept = int(np.searchsorted(np.cumsum(probability[order]), fitted.MASS)) + 1
    kept = candidates[order[:n_kept]]
    return int(kept.min()), int(kept.max())


def _softmax(utility: Array) -> Array:
    weight = np.exp(utility - utility.max())
    share: Array = weight / weight.sum()
    return share


# ------------------------------------------------------------------------------------------------ levels


def level_features(candidates: Labels, agreement: Array, separation: Array, border: Array, splits: Array) -> Array:
    """Return what is known of every number of clusters, one row each; columns as in ``fitted.NARROW``.

    Parameters
    ----------
    candidates : numbers of clusters, rising
    agreement, separation : of the settings' partitions into so many, and 1 − their normalised cut
    border : largest share of a cluster's edges that goes to one other cluster, mean of the settings
    splits : probabilities of the splits of the tree, in the order in which they are made
    """
    score = np.maximum(agreement, 0) * separation
    relative = np.log(np.maximum(score, 0.01) / max(float(score.max()), 0.01))
    share = np.log(np.maximum(border, _LOWEST))
    sure = np.clip(np.concatenate([[1.0], splits, [0.0]]), _LOWEST, 1 - _LOWEST)
    weakest, rest = np.minimum.accumulate(np.log(sure)), np.log(1 - sure)
    rows, last = [], len(candidates) - 1
    for i, k in enumerate(candidates):
        more = [min(last, max(i + 1, _nearest(candidates, k * factor))) for factor in (1.25, 1.6)]
        less = [max(0, min(i - 1, _nearest(candidates, k / factor))) for factor in (1.25, 1.6)]
        level = min(int(k), len(splits) + 1)
        rows.append(
            [
                relative[i],
                agreement[i] - agreement[more].max(),
                agreement[i] - agreement[less].max(),
                share[more].mean() - share[i],
                share[i] - share[less].mean(),
                np.log(k),
                np.log(k) ** 2,
                weakest[level - 1],
                rest[level : level + max(1, level // 4) + 1].min(),
            ]
        )
    return np.array(rows)


def _nearest(candidates: Labels, k: float) -> int:
    return int(np.abs(np.log(candidates / k)).argmin())


def _judged_numbers(graphs: Sequence[Candidate], seed: int, resolution: float) -> tuple[Labels, Array, Array, Array]:
    """Return numbers of clusters.

    Agreement of the graphs' partitions into so many, how separate those are, their borders.
    """
    merges = [_merged(graph, seed, resolution) for graph in graphs]
    largest = sorted((max(by_number) for by_number in merges), reverse=True)[(len(merges) - 1) // 2]
    candidates, agreement, separation, border = _spread(largest, graphs[0].W.shape[0]), [], [], []
    for k in candidates:
        cuts = [by_number[k] for by_number in merges if k in by_number]
        table = pairwise_agreement([labels for labels, _, _ in cuts])
        n_pairs = table.size - len(table)
        agreement.append(float((table.sum() - len(table)) / n_pairs) if n_pairs else 1.0)
        separation.append(float(np.mean([separate for _, separate, _ in cuts])))
        border.append(float(np.mean([widest for _, _, widest in cuts])))
    return np.array(candidates, dtype=np.intp), np.array(agreement), np.array(separation), np.array(border)


def _merged(graph: Candidate, seed: int, resolution: float) -> dict[int, tuple[Labels, float, float]]:
    """Partitions of one graph into every number of clusters, each with 1 − its normalised cut and its widest border."""
    connected = graph.communities >= 0
    W = graph.W[connected][:, connected]
    fine = cut_by_modularity(W, resolution=resolution, seed=seed, iterations=LEIDEN_ITERATIONS)
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
            weights = np.zeros((n_left, n_left))
            np.add.at(weights, (number[between.row], number[between.col]), between.data)
            found[n_left] = labels, *_separation(weights)
    return found or {1: (np.zeros(len(connected), dtype=np.intp), 1.0, 0.0)}


def _separation(weights: Array) -> tuple[float, float]:
    """1 − normalised cut, and the largest share of the edges of one of two clusters that crosses to the other."""
    inside = np.diag(weights).copy()
    separate = float(np.mean(inside / weights.sum(axis=1)))
    crossing = weights - np.diag(inside)
    own = inside[:, None] + crossing
    share = np.divide(crossing, np.minimum(own, own.T), out=np.zeros_like(crossing), where=crossing > 0)
    return separate, float(share.max())


def _spread(largest: int, n: int) -> list[int]:
    """Return numbers from 2 to `largest`, every one up to 40, then in steps of 2.5 %.

    Above 40 none that leaves less than four of the n samples to a cluster, and none above 1,000. A graph with so many
    communities has fallen apart, and the agreement of twelve graphs of 2,500 samples takes 0.4 s at 600 clusters
    and 11 s at 2,000.
    """
    numbers, k = [], 2
    while k <= min(largest, max(_EVERY, min(n // _LEAST_POINTS, _MOST_CLUSTERS))):
        numbers.append(k)
        k += max(1, k // _EVERY)
    return numbers or [1]


def most_supported(graphs: Sequence[Candidate]) -> list[int]:
    """Return the graphs to trust: those whose own communities others confirm best.

    At first one for each kernel and penalty: prefixes of one truncation agree anyway.
    """
    supported = support(pairwise_agreement([np.maximum(graph.communities, 0) for graph in graphs]))
    first: dict[tuple[object, ...], int] = {}
    order = [int(i) for i in np.argsort(levels(-supported), kind="stable")]
    for i in order:
        first.setdefault(_kind(graphs[i]), i)
    chosen = list(first.values())
    return [*chosen, *(i for i in order if i not in chosen)][:N_GRAPHS]


# ------------------------------------------------------------------------------------------------ splits


def _split_probabilities(graphs: Sequence[Candidate], own: Sequence[Labels], n_features: int, seed: int) -> Array:
    """Probabilities of the splits of the tree of all graphs, each next split the most probable one that can be made."""
    pieces = fine_pieces(graphs[0].W, seed=seed)
    tree = merged([graph.W for graph in graphs], pieces)
    if not len(tree.merges):
        return np.zeros(0)
    weight, constant = np.array(fitted.SPLIT[:-1]), fitted.SPLIT[-1]
    utility = split_features(tree, _kept_together(tree, pieces, own), n_features) @ weight + constant
    return _in_order_made(tree, 1 / (1 + np.exp(-utility)))


def split_features(tree: Merged, together: Array, n_features: int) -> Array:
    """Return what is known of every split of a tree, one row each; columns as in ``fitted.SPLIT``."""
    sizes = tree.sizes[tree.merges]
    return np.column_stack(
        [
            np.log(np.maximum(tree.cuts, _LOWEST)).mean(axis=1),
            tree.returns.mean(axis=1),
            np.log(sizes.min(axis=1)),
            np.log(sizes.sum(axis=1)),
            together,
            np.full(len(sizes), np.log(n_features)),
        ]
    )


def _kept_together(tree: Merged, pieces: Labels, own: Sequence[Labels]) -> Array:
    """Return how far the settings' own communities keep the two sides of each split together, 0 to 1.

    The cosine between the two sides' shares in the communities, mean of the settings.
    """
    m = len(tree.merges) + 1
    found = np.zeros(m - 1)
    for labels in own:
        counts = np.zeros((2 * m - 1, int(labels.max()) + 1))
        np.add.at(counts, (pieces, labels), 1.0)
        for i, (a, b) in enumerate(tree.merges):
            counts[m + i] = counts[a] + counts[b]
        one, other = counts[tree.merges[:, 0]], counts[tree.merges[:, 1]]
        found += (one * other).sum(axis=1) / np.sqrt(np.square(one).sum(axis=1) * np.square(other).sum(axis=1))
    return found / len(own)


def _in_order_made(tree: Merged, probability: Array) -> Array:
    """Return from the root down, each time the most probable of the splits that can be made."""
    m = len(tree.merges) + 1
    rounded = levels(-probability)
    open_splits, made = [(float(rounded[-1]), m - 2)], []
    while open_splits:
        _, i = heapq.heappop(open_splits)
        made.append(i)
        for child in tree.merges[i]:
            if child >= m:
                heapq.heappush(open_splits, (float(rounded[child - m]), int(child) - m))
    found: Array = probability[made]
    return found
