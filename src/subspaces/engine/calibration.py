"""Confidence as a probability: how likely a point belongs to the class that its cluster stands for.

What the graph says of a point and its cluster (:mod:`subspaces.engine.confidence`, :mod:`subspaces.spectral.hierarchy`)
and, after a search, how far other settings put it into the same cluster go through a logistic function. Its weights
were fitted to labelled data sets by ``benchmarks/confidence.py``, which also says how well the probabilities hold on
families of sets that were left out: of the points with confidence 0.8 about 80 % should be right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from subspaces.engine.calibrated import BY_GRAPH, BY_SEARCH
from subspaces.spectral.hierarchy import ClusterTree
from subspaces.utils.types import Array, Labels, Sparse

if TYPE_CHECKING:
    from subspaces.engine.confidence import Memberships

FEW = 3
"""Points of a cluster that prove little: confidence is drawn towards one half by exp(−size / FEW)."""


_LEAD = 1e-6  # by which the own cluster is more probable than any other


class Agreement(NamedTuple):
    """What a search knows beside the graph."""

    consensus: Array  # of each point, see subspaces.selection.criteria.consensus
    agreement: float  # of the winner with the settings most like it
    stability: float  # of its partition under removal of points


def graph_features(W: Sparse, codes: Labels, found: Memberships, tree: ClusterTree) -> Array:
    """One row for each point: walk, support, share of its cluster's weight that stays inside, gaps, number."""
    edges = sparse.coo_array(W)
    same = codes[edges.row] == codes[edges.col]
    total = np.bincount(codes[edges.row], edges.data, minlength=int(codes.max()) + 1)
    inside = np.bincount(codes[edges.row], edges.data * same, minlength=len(total))
    tight = np.divide(inside, total, out=np.zeros(len(total)), where=total > 0)
    k = tree.n_clusters
    splits = [tree.split(level) for level in range(1, min(k, tree.n_leaves))]
    back = float(np.mean(tree.returns[splits])) if splits else 0.0
    n = len(codes)
    columns = [found.walk, found.support, tight[codes], np.full(n, back), np.full(n, np.log(k))]
    return np.column_stack(columns).astype(np.float64)


def search_features(by_graph: Array, search: Agreement) -> Array:
    """The same, with what the search knows."""
    stability = search.stability if np.isfinite(search.stability) else search.agreement
    n = len(by_graph)
    return np.column_stack([by_graph, search.consensus, np.full(n, search.agreement), np.full(n, stability)])


def probability_right(features: Array, sizes_of_own: Array) -> Array:
    """Probability that each label is right.

    Parameters
    ----------
    features : array of shape (n, 5) or (n, 8)
    sizes_of_own : array of shape (n,), points in the cluster of each
    """
    weights = np.array(BY_GRAPH if features.shape[1] < len(BY_SEARCH) - 1 else BY_SEARCH)
    utility = features @ weights[:-1] + weights[-1]
    probability = 1 / (1 + np.exp(-np.clip(utility, -30, 30)))
    drawn: Array = 0.5 + (probability - 0.5) * (2 * certain(sizes_of_own) - 1)
    return drawn


def certain(sizes_of_own: Array) -> Array:
    """Return the largest probability that a label of a cluster of this size can have."""
    return np.asarray(1 - np.exp(-sizes_of_own / FEW) / 2)


def confidence_in_one(p_value: float) -> float:
    """Return the probability that a label is right where one cluster is reported, by the p-value of "one piece".

    At even odds before, the odds of one piece are at least −e p ln p (Sellke, Bayarri and Berger 2001) for p < 1/e;
    where there are classes instead, about half of the points are in the largest.
    """
    p = np.clip(np.nan_to_num(p_value, nan=1.0), np.finfo(float).tiny, 1 / np.e)  # not tested is no evidence
    odds = -np.e * p * np.log(p)
    return float((odds + 0.5) / (odds + 1))


def soft_memberships(walks: Array, codes: Labels, confidence: Array) -> Array:
    """Probability of every cluster for every point: the own one its confidence, the rest as walks end there.

    Parameters
    ----------
    walks : array of shape (n, k), where walks from each point end
    codes : array of shape (n,), cluster of each point
    confidence : array of shape (n,)

    No other cluster is given more than that, so the label stays the most probable one.
    """
    n, k = walks.shape
    if k == 1:
        return np.ones((n, 1))
    rows = np.arange(n)
    own = np.maximum(confidence, (1 + _LEAD) / k)
    others = np.maximum(walks, 1e-6)
    others[rows, codes] = 0
    others *= ((1 - own) / others.sum(axis=1))[:, None]
    others = np.minimum(others, (1 - _LEAD) * own[:, None])
    others[rows, codes] = 1 - others.sum(axis=1)
    return others
