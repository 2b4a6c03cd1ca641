"""Work over blocks of rows: sizes that fit the cache, threads that obey the usual limits."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from itertools import starmap
from typing import TypeVar

import numpy as np
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

from subspaces.utils.progress import counting
from subspaces.utils.types import Array

T = TypeVar("T")

BLOCK_BYTES = 2**20
"""Bytes of one block: small enough to stay in cache through several elementwise passes."""

_LONG_WORK = 4  # blocks from which somebody who listens is told


def row_blocks(n_rows: int, bytes_per_row: int, block_bytes: int | None = None) -> list[tuple[int, int]]:
    """Split ``range(n_rows)`` into ``(start, stop)`` pairs of about `block_bytes` (default ``BLOCK_BYTES``) each."""
    step = max(1, min(n_rows, (block_bytes or BLOCK_BYTES) // max(1, bytes_per_row)))
    return list(zip(range(0, n_rows, step), [*range(step, n_rows, step), n_rows], strict=False))


def map_blocks(function: Callable[[int, int], T], blocks: list[tuple[int, int]]) -> list[T]:
    """Call ``function(start, stop)`` on every block, on as many threads as OpenMP may use, in order.

    NumPy's elementwise loops release the interpreter lock, so threads are enough. The number follows
    ``OMP_NUM_THREADS`` and ``threadpoolctl.threadpool_limits`` like scikit-learn's own loops.
    """
    n_threads = min(_openmp_effective_n_threads(), len(blocks))
    if n_threads <= 1 and len(blocks) < _LONG_WORK:
        return list(starmap(function, blocks))
    with counting(sum(stop - start for start, stop in blocks)) if len(blocks) >= _LONG_WORK else nullcontext() as step:

        def one(start: int, stop: int) -> T:
            result = function(start, stop)
            if step is not None:
                step(stop - start)
            return result

        if n_threads <= 1:
            return list(starmap(one, blocks))
        context = copy_context()  # silence, NumPy's error states and who is told of progress hold in the threads too
        with ThreadPoolExecutor(n_threads) as pool:
            return list(pool.map(lambda block: context.copy().run(one, *block), blocks))


TILE = 256
"""Side of a square tile: 512 kB in float64, so that a tile and its transpose share the cache."""


def mirror_lower(matrix: Array, transform: Callable[[Array, slice, slice], None] | None = None) -> None:
    """Copy the lower triangle of a square matrix to its upper one, in place, tile by tile.

    `transform(block, rows, columns)` may first change each tile of the lower triangle in place; it is
    called once per unordered pair of samples, which halves the cost of the elementwise kernels.
    """
    n, tile = matrix.shape[0], TILE
    starts = range(0, n, tile)

    def tile_row(start: int, stop: int) -> None:
        rows = slice(start, stop)
        for column_start in range(0, start + 1, tile):
            columns = slice(column_start, min(column_start + tile, n))
            block = matrix[rows, columns]
            if transform is not None:
                transform(block, rows, columns)
            if column_start == start:
                block[:] = np.tril(block) + np.tril(block, -1).T
            else:
                matrix[columns, rows] = block.T

    # long rows first, so that the threads finish together
    map_blocks(tile_row, [(start, min(start + tile, n)) for start in reversed(starts)])
