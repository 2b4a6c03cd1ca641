"""Rows that are tracks of points through a film, told from the numbers alone: places in pairs that hardly change."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import cdist

from subspaces.utils.decompositions import eigenvalues
from subspaces.utils.types import Array, Data

MOST_TRACKS = 5000
"""Tracks up to which a graph of all pairs is made, and columns up to which all pairs are compared."""

_LEAST_FRAMES, _LEAST_TRACKS = 5, 8  # with fewer, a low rank says nothing
_STEP = 0.03  # mean squared change from frame to frame over the least squared difference between x and y
_PLACE = 0.07  # share of the variance that three dimensions may leave: where a point is, and its depth
_SAME = 1e-9  # squared difference over squared size below which two columns are one
_RANK, _LEFT = 12, 2e-3  # dimensions of a film of a few motions, and the share of the variance that they may leave


def are_tracks(X: Data) -> bool:
    """Return whether each row holds x and y of one point in the frames of a film; columns may stand in any order.

    Spectra and series are smooth from column to column. Tracks are smooth in two chains: a place is near that of the
    frame before, but x says nothing of y. An affine camera gives all tracks of a few motions a rank of 4 a motion or
    less, and three dimensions say nearly all, for a point moves less than points are apart. These three hold for all
    films of Hopkins155 at hand, the steps by a factor of 4 or more, and for no table, image, spectrum or count
    (docs/motion.md).

    Examples
    --------
    >>> from subspaces.datasets import make_motions, make_subspaces
    >>> are_tracks(make_motions(2, 30, 20, random_state=0)[0])
    True
    >>> are_tracks(make_subspaces(2, 3, 40, 30, random_state=0)[0])
    False
    """
    n, m = X.shape
    if sparse.issparse(X) or m % 2 or not 2 * _LEAST_FRAMES <= m <= MOST_TRACKS or n < _LEAST_TRACKS:
        return False
    size = max(float(X.max()), -float(X.min()))
    if size <= 0:
        return False
    points = np.asarray(X, dtype=np.float64) / size  # squares must not overflow
    points -= points.mean(axis=0)
    return _has_rank_of_motions(points) and _are_two_chains(points)


def _are_two_chains(columns: Array) -> bool:
    """Return whether the columns, in any order, are two chains of equal length.

    X and y, each near itself a frame before.

    The shortest tree that ties the columns together has one long edge, between x and y.
    """
    squares = cdist(columns.T, columns.T, "sqeuclidean") + np.finfo(np.float64).tiny  # equal columns: an edge, not none
    if squares.max() <= _SAME * np.square(columns).sum(axis=0).max():
        return False
    tree = minimum_spanning_tree(squares)
    longest = tree.data.max()
    tree.data[tree.data.argmax()] = 0
    tree.eliminate_zeros()
    label = connected_components(tree, directed=False)[1]
    return bool(2 * label.sum() == len(label) and tree.data.mean() < _STEP * longest)


def _has_rank_of_motions(centred: Array) -> bool:
    """Return whether 3 dimensions hold nearly all of the variance.

    And 12 (or half of the columns) the rest but for noise.
    """
    wide = centred.shape[1] > centred.shape[0]
    products = centred @ centred.T if wide else centred.T @ centred
    total = float(np.trace(products))
    if (
        total <= 0 or np.vdot(products, products) < ((1 - _PLACE) * total) ** 2 / 3
    ):  # squares of 3 values that hold nearly all
        return False
    values = np.maximum(eigenvalues(products), 0)[::-1]
    rank = min(_RANK, centred.shape[1] // 2)
    return float(values[3:].sum()) <= _PLACE * total and float(values[rank:].sum()) <= _LEFT * total
