"""Who computes the large pieces of a run: this process, or workers elsewhere that give the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

import numpy as np

from subspaces.numerics.types import Array

T = TypeVar("T")


class Store(Protocol):
    """Keeps an array that comes in blocks of rows, in memory or in a file."""

    def __call__(self, name: str, shape: tuple[int, ...], dtype: Any, blocks: Iterable[Array]) -> Array:
        """The whole array."""


class Workers(Protocol):
    """Where the pieces of a run are computed."""

    def prepare(self, make: Callable[[Store], T]) -> T:
        """What all pieces read: made once, or found where an earlier run left it."""

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

    def prepare(self, make: Callable[[Store], T]) -> T:
        """What all pieces read."""
        return make(in_memory)

    def rows(self, function: Callable[[Any, int, int], Any], prepared: Any, n: int) -> list[Any]:
        """One range."""
        return [function(prepared, 0, n)]


HERE = Here()
