"""A few tiny pieces that come off first: ten copies of one sentence among two thousand texts.

Every graph falls into such a piece and the rest, so all settings agree on "two clusters", and on nothing else so well.
The number of clusters is a question about the rest; the pieces are clusters beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from subspaces.graphs.affinity import components
from subspaces.selection.graphs import Candidate
from subspaces.utils.types import Array

_MOST = 0.03  # of the samples, all pieces together: as in splits, where a smaller piece is no cluster to be tested
_MOST_PIECES = 3  # more of them are clusters, or noise, and the count knows what to make of both
_LEAST_POINTS = 4  # of a piece; fewer samples are nothing


class OutlyingComponents(NamedTuple):
    """Which samples are in tiny pieces, and how many such pieces there are."""

    away: Array
    n_pieces: int


def outlying_components(graphs: Sequence[Candidate]) -> OutlyingComponents:
    """Return samples outside the one large piece in most graphs, where they are few and in few pieces; else none."""
    n = graphs[0].W.shape[0]
    votes = np.zeros(n)
    for graph in graphs:
        outside = components(graph.W)[1] != 0
        votes += outside if outside.mean() <= _MOST else 0
    away: Array = votes > len(graphs) / 2
    if not away.any():
        return OutlyingComponents(away, 0)
    between = sum((abs(graph.W[away][:, away]) for graph in graphs), start=sparse.csr_array((away.sum(), away.sum())))
    sizes = np.bincount(np.maximum(components(sparse.csr_array(between))[1], 0))
    n_pieces = int((sizes >= _LEAST_POINTS).sum())
    none = n_pieces == 0 or n_pieces > _MOST_PIECES or away.mean() > _MOST
    return OutlyingComponents(np.zeros(n, dtype=bool), 0) if none else OutlyingComponents(away, n_pieces)


def without(graph: Candidate, away: Array) -> Candidate:
    """Return the graph of the other samples; only to be counted."""
    kept = ~away
    communities = np.full(int(kept.sum()), -1, dtype=np.intp)
    known = graph.communities[kept] >= 0
    communities[known] = np.unique(graph.communities[kept][known], return_inverse=True)[1]
    return replace(graph, W=sparse.csr_array(graph.W[kept][:, kept]), communities=communities)
