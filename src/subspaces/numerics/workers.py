"""Who computes the large pieces of a run: this process, or workers elsewhere that give the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

import numpy as np

from subspaces.numerics.ordering import rows_of
from subspaces.numerics.types import Array, Data, Labels

T = TypeVar("T")


Store = Callable[[str, tuple[int, ...], Any, Iterable[Array]], Array]
"""Keeps an array of a name, shape and dtype that comes in blocks of rows, in memory or in a file, and returns it."""


class Workers(Protocol):
    """Where the pieces of a run are computed."""

    def in_order(self, X: Data, order: Labels, pairwise: bool) -> Data:
        """The points in canonical order (:mod:`subspaces.numerics.ordering`)."""

    def prepare(self, make: Callable[[Store], T], settings: Mapping[str, Any]) -> T:
        """What all pieces read: made once, or found where an earlier run with these settings left it."""

    def rows(self, function: Callable[[Any, int, int], Any], prepared: Any, n: int) -> list[Any]:
        """``function(prepared, start, stop)`` for ranges that cover 0 to n, in order."""


def in_memory(name: str, shape: tuple[int, ...], dtype: Any, blocks: Iterable[Array]) -> Array:
    """The blocks as one array."""
    out, start = np.empty(shape, dtype=dtype), 0
    for block in blocks:
        out[start : start + len(block)] = block
        start += len(block)
    return out


class Here:
    """The calling process: one range, whose blocks are shared among its threads."""

    def in_order(self, X: Data, order: Labels, pairwise: bool) -> Data:
        """The points in canonical order."""
        return rows_of(X, order, pairwise=pairwise)

    def prepare(self, make: Callable[[Store], T], settings: Mapping[str, Any]) -> T:
        """What all pieces read."""
        return make(in_memory)

    def rows(self, function: Callable[[Any, int, int], Any], prepared: Any, n: int) -> list[Any]:
        """One range."""
        return [function(prepared, 0, n)]


HERE = Here()
