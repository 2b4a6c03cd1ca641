"""Numbers that differ by less than their own error are equal: what then decides must not be rounding.

The last bits of a sum depend on the processor, the number of threads and the order of the terms. Wherever computed
numbers choose something (the largest coefficients, the best start, the next merge, the winner of a search), those
within the tolerance below of the best tie, and the first of them is taken: the points stand in a canonical order
(:mod:`subspaces.ordering`), settings in their order of preference.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from subspaces._typing import Array

_TOLERANCE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-9}
"""Share of the largest magnitude: far above rounding, far below what two different points differ by."""


def tolerance(dtype: Any) -> float:
    """Relative difference below which computed numbers of this type tie."""
    return _TOLERANCE[np.dtype(dtype)]


def first_largest(values: Array, axis: int | None = None) -> Any:
    """``argmax`` where numbers that tie with the largest count as equal to it: the first of them.

    Examples
    --------
    >>> int(first_largest(np.array([0.5, 3.0, 3.0 + 1e-15])))
    1
    """
    values = np.asarray(values)
    values = values.astype(np.float64) if values.dtype.kind != "f" else values
    best = values.max(axis=axis, keepdims=True)
    size = np.abs(best) * tolerance(values.dtype)
    with np.errstate(invalid="ignore"):  # a row of −inf
        level = np.where(np.isfinite(best), best - size, best)
    return (values >= level).argmax(axis=axis)
