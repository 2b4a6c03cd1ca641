"""Symmetric matrices in half the memory, at the full speed of LAPACK: its rectangular full packed format.

With n = 2k points (an odd number gets one more, which has to do with none) row j of the k × (2k + 1) array is
A[k+j, k..k+j] followed by A[j, j..n): the lower triangle of the second half's block, the upper triangle of the first
half's, and the whole block between the halves. LAPACK factorises and inverts it in place (pftrf, pftri), as fast as a
full matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs

from subspaces.numerics.blocks import map_blocks, row_blocks
from subspaces.numerics.types import Array

_SHARE, _ROWS = 32, (64, 512)  # of the rows that are filled at once: few beside the whole, enough for fast products


@dataclass(frozen=True)
class Packed:
    """A symmetric n × n matrix, ``half`` as the module says; ``again`` makes it anew, as a full one."""

    half: Array
    n: int
    again: Callable[[], Array]

    def rows(self, start: int, stop: int) -> Array:
        """Rows ``start:stop``, a fresh array; no block reaches across the middle (:meth:`blocks`)."""
        k, R = len(self.half), self.half
        out = np.empty((stop - start, 2 * k), dtype=R.dtype)
        if start < k:
            out[:, :start] = R[:start, 1 + start : 1 + stop].T
            out[:, start:] = R[start:stop, 1 + start :]
            tile = np.triu(out[:, start:stop])
            out[:, start:stop] = tile + np.triu(tile, 1).T
        else:
            s, e = start - k, stop - k
            out[:, :k] = R[:, 1 + k + s : 1 + k + e].T
            out[:, k:stop] = R[s:e, :e]
            tile = np.tril(out[:, start:stop])
            out[:, start:stop] = tile + np.tril(tile, -1).T
            out[:, stop:] = R[e:, s:e].T
        return out[:, : self.n]

    def block(self, start: int, stop: int) -> Array:
        """Rows ``start:stop`` for any of them."""
        k = len(self.half)
        if start < k < stop:
            return np.concatenate([self.rows(start, k), self.rows(k, stop)])
        return self.rows(start, stop)

    @property
    def diagonal(self) -> Array:
        """The diagonal, a copy."""
        first, second = self._diagonals()
        return np.concatenate([first, second])[: self.n]

    def with_diagonal(self, values: Array | float) -> None:
        """Overwrite the diagonal."""
        first, second = self._diagonals()
        all_values = np.broadcast_to(np.asarray(values), (self.n,))
        first[:] = all_values[: len(first)]
        second[: self.n - len(first)] = all_values[len(first) :]

    def _diagonals(self) -> tuple[Array, Array]:
        """Views of the diagonals of both halves."""
        step = self.half.shape[1] + 1
        flat = self.half.reshape(-1)
        return flat[1::step][: len(self.half)], flat[::step][: len(self.half)]

    def subtract(self, function: Callable[[int, slice], Array]) -> None:
        """A_ij − ``function(i, columns)``, in place, a row (or half of one) at a time."""
        k, n, R = len(self.half), self.n, self.half
        for j in range(k):
            R[j, 1 + j : 1 + n] -= function(j, slice(j, n))
            if k + j < n:
                R[j, : j + 1] -= function(k + j, slice(k, k + j + 1))

    def copy(self) -> Packed:
        """The same in other memory."""
        return Packed(self.half.copy(), self.n, self.again)

    def sums_of(self, function: Callable[[Array], Array]) -> Array:
        """``function`` of all rows, block by block: one number each."""
        blocks = row_blocks(self.n, 8 * self.n, 2**21)
        return np.concatenate(map_blocks(lambda start, stop: function(self.block(start, stop)), blocks))

    def factorise(self) -> bool:
        """The Cholesky factor in place; False where A is not positive definite, and then nothing is left of it."""
        (pftrf,) = get_lapack_funcs(("pftrf",), (self.half,))
        _, info = pftrf(2 * len(self.half), self.half.reshape(-1), transr="N", uplo="L", overwrite_a=1)
        return bool(info == 0)

    def invert_factor(self) -> bool:
        """A⁻¹ from its factor, in place; False where it is none."""
        (pftri,) = get_lapack_funcs(("pftri",), (self.half,))
        _, info = pftri(2 * len(self.half), self.half.reshape(-1), transr="N", uplo="L", overwrite_a=1)
        return bool(info == 0 and np.isfinite(self.diagonal).all())


def packed(n: int, dtype: Any, fill: Callable[[int, int, int, int], Array], again: Callable[[], Array]) -> Packed:
    """The matrix whose rows ``start:stop`` and columns ``first:last`` are ``fill(start, stop, first, last)``."""
    k = (n + 1) // 2
    R = np.zeros((k, 2 * k + 1), dtype=dtype)
    step = min(max(_ROWS[0], n // _SHARE), _ROWS[1])
    for start in range(0, k, step):
        stop = min(start + step, k)
        block = fill(start, stop, start, n)
        tile = np.tri(stop - start, dtype=bool).T
        np.copyto(R[start:stop, 1 + start : 1 + stop], block[:, : stop - start], where=tile)
        R[start:stop, 1 + stop : 1 + n] = block[:, stop - start :]
        if k + start < n:
            last = min(k + stop, n)
            block = fill(k + start, last, k, last)
            rows = slice(start, last - k)
            R[rows, :start] = block[:, :start]
            tile = np.tri(last - k - start, dtype=bool)
            np.copyto(R[rows, start : last - k], block[:, start:], where=tile)
    if n % 2:
        R[-1, k - 1] = 1  # the point that has to do with none
    return Packed(R, n, again)
