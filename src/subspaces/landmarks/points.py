"""All samples of a fit, for methods that look at a few of them closely and at the rest once, in blocks."""

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
"""Bytes of samples that are scaled and labelled at a time."""


@dataclass(eq=False)
class Points:
    """Give access to the samples X of an array; a subclass may leave them elsewhere.

    A method sees them after `scaling`; `order` holds row numbers in canonical order (:mod:`subspaces.utils.ordering`).
    """

    X: Any
    scaling: Scaling
    order: Labels
    block_bytes: int = BLOCK_BYTES

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of samples and of features."""
        n, m = self.X.shape
        return n, m

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the values."""
        return np.dtype(self.X.dtype)

    def take(self, rows: Labels) -> Array:
        """Return some rows, scaled."""
        return np.asarray(apply_scaling(self.X[rows], self.scaling))

    def in_order(self) -> Array:
        """Return all rows in canonical order."""
        return np.asarray(apply_scaling(rows_of(self.X, self.order), self.scaling))

    def as_given(self, labels: Labels) -> Labels:
        """Bring labels of the rows of :meth:`in_order` into the order given."""
        return labels[inverse_of(self.order)]

    def label(self, function: Callable[[Array], Labels]) -> Labels:
        """Apply a function of rows to all of them, block by block, so that no scaled copy of all exists."""
        return label_blocks(self.X, self.scaling, function, self.block_bytes)


def label_blocks(X: Array, scaling: Scaling, function: Callable[[Array], Labels], block_bytes: int) -> Labels:
    """Scale and label samples block by block."""
    labels = np.empty(len(X), dtype=np.intp)
    for start, stop in row_blocks(len(X), 8 * X.shape[1], block_bytes):  # scaled, they are in double precision
        labels[start:stop] = function(np.asarray(apply_scaling(X[start:stop], scaling)))
    return labels
