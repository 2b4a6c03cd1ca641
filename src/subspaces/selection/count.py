"""The number of clusters, from the graphs of all settings; no label and no fitted weight is used.

1. *Natural numbers.* Every graph has distinct communities of its own (:mod:`subspaces.spectral.partition`); the median
   of their numbers says about how fine the structure is.
2. *Agreement.* Every graph is cut into every number k by merging fine communities. Settings that see structure agree at
   its number; at another each joins or splits something else. A number far from the natural one needs a larger
   agreement: it loses `ABOVE` or `BELOW` times the logarithm of the ratio.
3. *Gaps.* Merging by modularity prefers equal sizes. So the communities are merged by the strength of their ties as
   well, and where every split down to k is a gap (a walker who has crossed it hardly returns) while the next two
   let the agreement fall by `FALL`, or no walker returns and beyond the next split many do, k is the number: ten
   samples apart from a thousand are a cluster.

Then the evidence has three degrees (:attr:`ClusterCount.evidence`). *Gap*: nearly all settings agree, or rule 3 holds,
or a split is clearer than chance makes it (:mod:`subspaces.spectral.splits`, asked by the search only where the first
two do not hold). *Steady*: no gap, but the best third of the settings agree on a division, and random parts of the
samples have the same one. *None*: one cluster.

``benchmarks/number.py`` says how well this does beside plainer rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np

from subspaces.selection.candidates import PLANE
from subspaces.selection.criteria import support
from subspaces.selection.graphs import Candidate, part_of
from subspaces.spectral.agreement import pairwise_agreement
from subspaces.spectral.hierarchy import COARSER, fine_pieces, level, merged
from subspaces.spectral.partition import distinct_communities, merge_steps
from subspaces.spectral.splits import ONE_PIECE
from subspaces.utils.ordering import first_largest, levels
from subspaces.utils.types import Array, Labels

N_GRAPHS = 12
"""Graphs that decide on the number of clusters."""
ABOVE, BELOW = 0.2, 0.1
"""Agreement that an e-fold more, or fewer, clusters than the natural number must gain."""
GAP, FALL = 0.25, 0.25
"""Return below which a split is a gap (in one piece it is 0.3); fall of the agreement beyond."""
CLEAR, JUMP = 0.1, 0.13
"""Return below which nobody comes back, and how much larger it is where a piece is divided."""
DIVIDED, LOPSIDED = 0.7, 0.6
"""Agreement from which a finer division counts more than gaps that leave more than this share of the samples together:
a few outliers beside ten clusters are one gap."""
SURE = 0.9
"""Agreement that chance does not reach."""
STEADY = 0.57
"""Agreement of the best third of the settings on a steady division, times its agreement with those of random parts:
of a hundred samples of one Gaussian either alone is often large."""
OPEN, WIDE, UNSEEN = -0.6, 0.3, 0.3
"""Of :attr:`ClusterCount.doubt`: always, for each e-fold of the range, and where there is no gap."""
NEAR = 0.16
"""Numbers whose score is within this of the best are in the range."""

_EVERY, _LEAST_POINTS, _MOST_CLUSTERS = 40, 4, 1000  # which numbers are looked at, see _spread
_DOUBT = 0.2  # p-value up to which "no groups" is said with doubt, and settings that are sure are believed


@dataclass(frozen=True)
class ClusterCount:
    """The number of clusters read off the graphs of all settings.

    Attributes
    ----------
    estimate, low, high : the number, and a range
    evidence : ``"gap"``, ``"steady"`` (a division without a gap) or ``"none"`` (one cluster)
    candidates : numbers looked at, two and more
    agreement : of the settings when all are cut into that many clusters, one value per candidate
    best_agreement : of the third of them that agree best
    natural : number of distinct communities of every graph
    are_shapes : whether the samples lie in the plane or in space, where natural numbers say nothing
    p_value : of "all samples are one piece", NaN where it was not asked
    untested : whether the samples are too few to tell
    """

    estimate: int
    low: int
    high: int
    evidence: Literal["gap", "steady", "none"]
    candidates: Labels
    agreement: Array
    best_agreement: Array
    natural: Labels
    are_shapes: bool = False
    p_value: float = float("nan")
    untested: bool = False

    @property
    def score(self) -> Array:
        """Agreement less what the distance from the natural number costs, one value per candidate."""
        return _scores(self.candidates, self.agreement, self.natural)

    @property
    def agreed(self) -> float:
        """Agreement at the estimate; of the best third where there is no gap."""
        values = self.agreement if self.evidence == "gap" else self.best_agreement
        return float(values[np.abs(np.log(self.candidates / max(self.estimate, 2))).argmin()])

    @property
    def doubt(self) -> float:
        """Log odds that labels of this number are less surely right than of one that is given."""
        return OPEN + WIDE * float(np.log(self.high / self.low)) + UNSEEN * (self.evidence == "steady")

    @property
    def otherwise(self) -> int | None:
        """The number that is nearest to being one, where one cluster is found with doubt."""
        return self.high if self.evidence == "none" and self.p_value <= _DOUBT else None

    def tested(self, p_value: float) -> ClusterCount:
        """Return what remains where one piece has this p-value: groups, a steady division, or one cluster."""
        if self.estimate == 1:
            return replace(self, p_value=p_value)
        near = self.best_agreement[np.searchsorted(self.candidates, self.estimate)]
        if p_value <= ONE_PIECE or (p_value <= _DOUBT and near >= SURE):
            return replace(self, evidence="gap", p_value=p_value)
        score = _scores(self.candidates, self.best_agreement, self.natural, 0.0 if self.are_shapes else BELOW)
        best = int(first_largest(score))
        estimate, (low, high) = int(self.candidates[best]), _range(self.candidates, score)
        found = replace(self, estimate=estimate, low=low, high=high, evidence="steady", p_value=p_value)
        return found if estimate > 1 and self.best_agreement[best] >= STEADY else found.as_one()

    def steadied(self, stability: float) -> ClusterCount:
        """Return one cluster in place of a division that random parts of the samples do not have."""
        unknown = np.isnan(stability)
        lasts = self.evidence != "steady" or self.agreed * (self.agreed if unknown else stability) >= STEADY
        return self if lasts else self.as_one()

    def as_one(self) -> ClusterCount:
        """Return one cluster, because the division into more is not steady."""
        return replace(self, estimate=1, low=1, high=self.estimate, evidence="none")


class _Apart(NamedTuple):
    """Clusters between which all splits are gaps: their number, agreement and the share of the largest."""

    n_clusters: int
    agreement: float
    largest: float


class Cuts(NamedTuple):
    """One graph cut into many numbers: by modularity, by ties, and the return of the weakest split of the latter."""

    by_modularity: dict[int, Labels]
    by_ties: dict[int, Labels]
    returns: dict[int, float]


def count_clusters(graphs: Sequence[Candidate], n_features: int, seed: int = 0) -> ClusterCount:
    """Return the number of clusters if there is more than one.

    Parameters
    ----------
    graphs : of all settings
    n_features : of the samples; up to `PLANE` they are shapes, whose steady divisions may be found by ties as well
    seed : of Leiden
    """
    natural = np.array([_natural(graph) for graph in graphs])
    cuts = [cuts_of(graphs[i], seed) for i in most_supported(graphs)]
    largest = sorted((max(cut.by_modularity) for cut in cuts), reverse=True)[(len(cuts) - 1) // 2]
    candidates = np.array(_spread(largest, graphs[0].W.shape[0]), dtype=np.intp)
    agreement, best_agreement = _agreements([cut.by_modularity for cut in cuts], candidates.tolist()).T
    are_shapes = n_features <= PLANE
    if are_shapes:
        by_ties = _agreements([cut.by_ties for cut in cuts], candidates.tolist())
        best_agreement = np.maximum(best_agreement, by_ties[:, 1])
    score = _scores(candidates, agreement, natural)
    best = int(first_largest(score))
    found = int(candidates[best]), *_range(candidates, score)
    count = ClusterCount(*found, "none", candidates, agreement, best_agreement, natural, are_shapes)
    apart = _gaps(cuts, candidates)
    if apart is not None:
        k = apart.n_clusters
        own = _scores(np.array([k]), np.array([apart.agreement]), natural)[0]
        decides = agreement[best] < DIVIDED or (apart.largest <= LOPSIDED and own > score[best])
        if decides or k == count.estimate:
            low, high = min(count.low, k), max(k, min(count.high, 2 * k))
            return replace(count, estimate=k, low=low, high=high, evidence="gap")
    return replace(count, evidence="gap") if count.estimate > 1 and agreement[best] >= SURE else count


def _natural(graph: Candidate) -> int:
    """Return how many distinct communities a graph has."""
    known = graph.communities >= 0
    return int(distinct_communities(part_of(graph.W, known), graph.communities[known]).max()) + 1


def _scores(candidates: Labels, agreement: Array, natural: Labels, below: float = BELOW) -> Array:
    away = np.log(candidates / max(1.0, float(np.median(natural))))
    score: Array = agreement - np.where(away > 0, ABOVE, below) * np.abs(away)
    return score


def _range(candidates: Labels, score: Array) -> tuple[int, int]:
    near = candidates[score >= score.max() - NEAR]
    return int(near.min()), int(near.max())


def _gaps(cuts: Sequence[Cuts], candidates: Labels) -> _Apart | None:
    """Return the most clusters between which all splits are gaps, and beyond which the settings disagree or none is."""
    numbers = [k for k in candidates.tolist() if any(k in cut.returns for cut in cuts)]
    returns = [np.mean([cut.returns[k] for cut in cuts if k in cut.returns]) for k in numbers]
    n_gaps = next((i for i, back in enumerate(returns) if back >= GAP), len(returns))
    agreement = _agreements([cut.by_ties for cut in cuts], numbers[: n_gaps + 2])[:, 0]
    apart = None
    for i in range(n_gaps):
        beyond = min(agreement[i + 1 : i + 3], default=0.0)
        weakest, after = max(returns[: i + 1]), max(returns[i + 1 : i + 2], default=0.0)
        if agreement[i] - beyond >= FALL or (weakest <= CLEAR and after - weakest >= JUMP):
            apart = i
    if apart is None:
        return None
    k = numbers[apart]
    largest = [np.bincount(cut.by_ties[k]).max() / len(cut.by_ties[k]) for cut in cuts if k in cut.by_ties]
    return _Apart(k, float(agreement[apart]), float(np.median(largest)))


def _agreements(cuts: Sequence[dict[int, Labels]], numbers: Sequence[int]) -> Array:
    """Return the agreement of the cuts into each of these numbers, shape (numbers, 2)."""
    return np.array([_agreement([cut[k] for cut in cuts if k in cut]) for k in numbers]).reshape(-1, 2)


def _agreement(partitions: Sequence[Labels]) -> tuple[float, float]:
    """Return how well partitions confirm each other, mean of all and of the best third; 0 where there are none."""
    if len(partitions) < 2:
        return float(len(partitions)), float(len(partitions))
    confirmation = np.sort(support(pairwise_agreement(partitions)))
    return float(confirmation.mean()), float(confirmation[-max(3, len(confirmation) // 3) :].mean())


def cuts_of(graph: Candidate, seed: int, numbers: Sequence[int] | None = None, resolution: float = COARSER) -> Cuts:
    """Cut one graph into these numbers by merging communities of this resolution; into every one that is looked at."""
    connected = graph.communities >= 0
    W = part_of(graph.W, connected)
    pieces = fine_pieces(W, seed=seed, resolution=resolution)
    m = int(pieces.max()) + 1
    wanted = set(_spread(m, len(connected)) if numbers is None else [k for k in numbers if k <= m])

    def of_all(of_pieces: Labels) -> Labels:
        labels = np.zeros(len(connected), dtype=np.intp)
        labels[connected] = np.unique(of_pieces, return_inverse=True)[1][pieces]
        return labels

    by_modularity, target, left = {}, np.arange(m), m
    for kept, gone in chain([(0, 0)], merge_steps(W, pieces, 2)):
        left -= kept != gone
        target[target == gone] = kept
        if left in wanted:
            by_modularity[left] = of_all(target)
    tree = merged(W, pieces)
    by_ties = {k: of_all(level(tree.merges, k)) for k in wanted if k > 1}
    returns = {k: float(tree.returns[m - k]) for k in by_ties}
    return Cuts(by_modularity or {1: of_all(target)}, by_ties, returns)


def _spread(largest: int, n: int) -> list[int]:
    """Return numbers from 2 to `largest`, every one up to 40, then in steps of 2.5 %.

    Above 40 none that leaves less than four of the n samples to a cluster, and none above 1,000: the agreement of
    twelve graphs of 2,500 samples takes 0.4 s at 600 clusters and 11 s at 2,000.
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
    order = [int(i) for i in np.argsort(levels(-supported), kind="stable")]
    first: dict[tuple[object, ...], int] = {}
    for i in order:
        first.setdefault((graphs[i].setting.scaling, graphs[i].setting.kernel, graphs[i].setting.reg), i)
    chosen = list(first.values())
    return [*chosen, *(i for i in order if i not in chosen)][:N_GRAPHS]
