"""Are rows of numbers square pictures? Told from the numbers alone, so that nobody has to say it."""

from __future__ import annotations

from math import isqrt
from typing import Any

import numpy as np
from scipy import sparse

from subspaces.utils.types import Array, Data

SMALLEST = 6
"""Side of the smallest picture that is recognised."""

_MOST_POINTS, _MOST_VALUES = 300, 20_000
_NEAR, _MORE = 0.3, 0.1  # least correlation of neighbours, and how much more than that of pixels half a side apart


def image_shape_of(X: Data) -> tuple[int, ...] | None:
    """Height and width (and 3 for colours) if the points look like square pictures, row by row; else None.

    Pixels beside and below each other are alike, more than those half a picture apart. Of a spectrum or a time series,
    where likeness fades along the row, what is one "row" below is less like it than what is half a row away.

    Parameters
    ----------
    X : array of shape (n, m); sparse ones are no pictures

    Examples
    --------
    >>> from sklearn.datasets import load_digits, load_iris
    >>> image_shape_of(load_digits().data), image_shape_of(load_iris().data)
    ((8, 8), None)
    """
    if sparse.issparse(X) or X.shape[0] < 10 or X.shape[1] > _MOST_VALUES:
        return None
    m = X.shape[1]
    some: Any = X[np.linspace(0, X.shape[0] - 1, min(X.shape[0], _MOST_POINTS)).astype(int)]
    some = np.asarray(some, dtype=np.float64)
    if len(np.unique(some[: min(len(some), 20)])) < 3:
        return None
    for depth in (1, 3):
        side = isqrt(m // depth)
        if depth * side * side == m and side >= SMALLEST and _is_picture(some.reshape(len(some), side, side, depth)):
            return (side, side) if depth == 1 else (side, side, 3)
    return None


def _is_picture(images: Array) -> bool:
    far = max(2, images.shape[1] // 2)
    beside = _likeness(images[:, :, :-1], images[:, :, 1:])
    below = _likeness(images[:, :-1], images[:, 1:])
    apart = max(_likeness(images[:, :, :-far], images[:, :, far:]), _likeness(images[:, :-far], images[:, far:]))
    return bool(min(beside, below) > max(_NEAR, apart + _MORE))


def _likeness(one: Array, other: Array) -> float:
    """Mean correlation, over the points, of pixels with others; those that are the same in all points do not count."""
    one, other = (part - part.mean(axis=0) for part in (one, other))
    scale = np.sqrt(np.square(one).sum(axis=0) * np.square(other).sum(axis=0))
    product = (one * other).sum(axis=0)
    seen = scale > 1e-12 * max(float(scale.max(initial=0)), np.finfo(np.float64).tiny)
    return float((product[seen] / scale[seen]).mean()) if seen.any() else 0.0
