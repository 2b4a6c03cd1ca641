"""Rows that are tracks of points through a film, told from the numbers alone: places in pairs that hardly change."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from subspaces.numerics.decompositions import eigenvalues
from subspaces.numerics.types import Array, Data

MOST_TRACKS = 5000
"""Tracks up to which a graph of all pairs is made."""

_LEAST_FRAMES, _LEAST_TRACKS = 5, 8  # with fewer, a low rank says nothing
_STEP = 0.03  # squared change from frame to frame over the squared difference between x and y
_PLACE = 0.07  # share of the variance that three dimensions may leave: where a point is, and its depth
_RANK, _LEFT = 12, 2e-3  # dimensions of a film of a few motions, and the share of the variance that they may leave


def are_tracks(X: Data) -> bool:
    """Whether each row holds the places of one point in the frames of a film: x, y, x, y, ... or all x, then all y.

    Spectra and series are smooth from column to column. Tracks are smooth in pairs: a place is near that of the frame
    before, but x says nothing of y. An affine camera gives all tracks of a few motions a rank of 4 a motion or less,
    and three dimensions say nearly all, for a point moves less than points are apart. These three hold for all films
    of Hopkins155 that were looked at, by a factor of 17 or more, and for no table, image, spectrum or count
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
    if sparse.issparse(X) or m % 2 or m < 2 * _LEAST_FRAMES or n < _LEAST_TRACKS:
        return False
    size = max(float(X.max()), -float(X.min()))
    if size <= 0:
        return False
    points = np.asarray(X, dtype=np.float64) / size  # squares must not overflow
    points -= points.mean(axis=0)
    in_turn = points.reshape(n, m // 2, 2)
    one_after_other = points.reshape(n, 2, m // 2).swapaxes(1, 2)
    joint = float(np.square(points[:, m // 2] - points[:, m // 2 - 1]).mean())  # a spectrum has none there
    smooth = _step(in_turn) < _STEP or _step(one_after_other, joint) < _STEP
    return smooth and _has_rank_of_motions(points)


def _step(places: Array, unlike: float = np.inf) -> float:
    """Mean squared change of a coordinate between frames over that between x and y, or over `unlike` if smaller."""
    apart = min(float(np.square(places[..., 0] - places[..., 1]).mean()), unlike)
    change = float(np.square(np.diff(places, axis=1)).mean())
    return change / apart if apart > 0 else np.inf


def _has_rank_of_motions(centred: Array) -> bool:
    """Whether 3 dimensions hold nearly all of the variance, and 12 (or half of the columns) the rest but for noise."""
    wide = centred.shape[1] > centred.shape[0]
    values = np.maximum(eigenvalues(centred @ centred.T if wide else centred.T @ centred), 0)[::-1]
    total = float(values.sum())
    rank = min(_RANK, centred.shape[1] // 2)
    return float(values[3:].sum()) <= _PLACE * total and float(values[rank:].sum()) <= _LEFT * total
