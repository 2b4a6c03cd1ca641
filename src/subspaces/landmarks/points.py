"""All points of a fit, for methods that look at a few of them closely and at the rest once, in blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from subspaces.kernels.scaling import Scaling, apply_scaling
from subspaces.utils.blocks import row_blocks
from subspaces.utils.ordering import inverse_of, rows_of
from subspaces.utils.types import Array, Labels

BLOCK_BYTES = 64 * 2**20
"""Points that are scaled and labelled at a time."""


@dataclass(eq=False)
class Points:
    """Points of an array; a subclass may leave them elsewhere.

    Attributes
    ----------
    X : the points as given
    scaling : what makes them, and new points, those that the method sees
    order : row numbers in canonical order (:mod:`subspaces.utils.ordering`)
    block_bytes : of points that are scaled and labelled at a time
    """

    X: Any
    scaling: Scaling
    order: Labels
    block_bytes: int = BLOCK_BYTES

    @property
    def shape(self) -> tuple[int, int]:
        """Number of points and of features."""
        n, m = self.X.shape
        return n, m

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return np.dtype(self.X.dtype)

    def take(self, rows: Labels) -> Array:
        """Some rows."""
        return np.asarray(apply_scaling(self.X[rows], self.scaling))

    def whole(self) -> Array:
        """All rows in the order given, or what looks like them to a sampler."""
        return np.asarray(apply_scaling(self.X, self.scaling))

    def in_order(self) -> Array:
        """All rows in canonical order."""
        return np.asarray(apply_scaling(rows_of(self.X, self.order), self.scaling))

    def as_given(self, labels: Labels) -> Labels:
        """Labels of the rows of :meth:`in_order`, in the order given."""
        return labels[inverse_of(self.order)]

    def label(self, function: Callable[[Array], Labels]) -> Labels:
        """A function of rows applied to all of them, block by block, so that no scaled copy of all exists."""
        return label_blocks(self.X, self.scaling, function, self.block_bytes)


def label_blocks(X: Array, scaling: Scaling, function: Callable[[Array], Labels], block_bytes: int) -> Labels:
    """Scale and label points block by block."""
    labels = np.empty(len(X), dtype=np.intp)
    for start, stop in row_blocks(len(X), 8 * X.shape[1], block_bytes):  # scaled, they are in double precision
        labels[start:stop] = function(np.asarray(apply_scaling(X[start:stop], scaling)))
    return labels
