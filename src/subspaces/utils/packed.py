"""Store symmetric matrices in half the memory, at LAPACK's full speed: its rectangular full packed format.

Of n samples the first k = ⌈n/2⌉ are one half, the others the second. Row j of the k × (n + e) array, e = 1 for even n
and 0 for odd, is A[k+s, k..k+s] with s = j + e − 1, followed by A[j, j..n): the lower triangle of the second half's
block, the upper triangle of the first half's, and all that is between the halves. LAPACK adds products to it (`sfrk`),
factorises (`pftrf`) and inverts (`pftri`) it in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs

from subspaces.utils.blocks import map_blocks, row_blocks
from subspaces.utils.types import Array

LARGEST = 65_535
"""Points whose half matrix LAPACK can count: there are fewer than 2³¹ entries."""
_SIDE = 128
"""Of a square tile: every thread holds a few beside its part of the matrix."""
_FORMAT = {"transr": "N", "uplo": "L"}


@dataclass(frozen=True)
class Packed:
    """Hold a symmetric n × n matrix A, ``half`` as in the module; ``fill`` writes its entries, also after a change."""

    half: Array
    n: int
    fill: Callable[[Packed], None]

    @property
    def shape(self) -> tuple[int, int]:
        """Return the shape of the whole matrix."""
        return self.n, self.n

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of its entries."""
        return self.half.dtype

    @property
    def _places(self) -> tuple[int, int, int]:
        """Return the size of the first half, the column shift of its rows and the row shift of the second half."""
        return (self.n + 1) // 2, 1 - self.n % 2, self.n % 2

    def copy(self) -> Packed:
        """Return the same in other memory."""
        return Packed(self.half.copy(), self.n, self.fill)

    def diagonal(self) -> Array:
        """Return a copy of the diagonal."""
        return np.concatenate(self._diagonals())

    def set_diagonal(self, values: Array | float) -> None:
        """Overwrite the diagonal."""
        first, second = self._diagonals()
        values = np.broadcast_to(np.asarray(values), (self.n,))
        first[:], second[:] = values[: len(first)], values[len(first) :]

    def _diagonals(self) -> tuple[Array, Array]:
        """Return views of the diagonals of both halves."""
        k, right, down = self._places
        step = self.half.shape[1] + 1
        flat = self.half.reshape(-1)
        return flat[right::step][:k], flat[down * self.half.shape[1] :: step][: self.n - k]

    def rows(self, start: int, stop: int) -> Array:
        """Return rows ``start:stop`` as a new array."""
        k, right, down = self._places
        whole = np.empty((stop - start, self.n), dtype=self.dtype)
        if start < k:
            a, b, out = start, min(stop, k), whole[: k - start]
            out[:, :a] = self.half[:a, right + a : right + b].T
            out[:, a:] = self.half[a:b, right + a :]
            tile = np.triu(out[:, a:b])
            out[:, a:b] = tile + np.triu(tile, 1).T
        if stop > k:
            a, b, out = max(start - k, 0), stop - k, whole[max(k - start, 0) :]
            out[:, :k] = self.half[:, right + k + a : right + k + b].T
            out[:, k : k + b] = self.half[down + a : down + b, :b]
            tile = np.tril(out[:, k + a : k + b])
            out[:, k + a : k + b] = tile + np.tril(tile, -1).T
            out[:, k + b :] = self.half[down + b :, a:b].T
        return whole

    def whole(self) -> Array:
        """Return all of it, n × n."""
        return self.rows(0, self.n)

    def transform(self, function: Callable[[Array, Array, Array], None]) -> None:
        """Call ``function(block, i, j)`` on every entry once, to change it in place.

        i and j are the rows and columns of A that the entries of a block belong to; all three broadcast.
        """
        k, right, down = self._places

        def strip(start: int, stop: int) -> None:
            for block, rows, columns in self._beside(start, stop):
                function(block, np.r_[rows][:, None], np.r_[columns])
            # about the diagonals of both halves: row by row the second's end where the first's begin
            columns = slice(max(start - down, 0), stop + right)
            r, c = np.r_[start:stop][:, None], np.r_[columns]
            is_first = c >= r + right
            function(
                self.half[start:stop, columns],
                np.where(is_first, r, k + r - down),
                np.where(is_first, c - right, k + c),
            )

        map_blocks(strip, row_blocks(len(self.half), 1, _SIDE))

    def subtract(self, values: Callable[[Array, Array], Array]) -> None:
        """Subtract ``values(i, j)`` from A_ij, in place."""

        def change(block: Array, i: Array, j: Array) -> None:
            block -= values(i, j)

        self.transform(change)

    def times(self, V: Array) -> tuple[Array, Array]:
        """Return A V for a few columns V, and the sums of magnitudes of the rows of A, both in double precision."""
        k, right, down = self._places

        def strip(start: int, stop: int) -> Array:
            found = np.zeros((self.n, V.shape[1] + 1))
            for block, rows, columns in self._beside(start, stop):
                magnitudes = np.abs(block)
                found[rows, :-1] += block @ V[columns]
                found[rows, -1] += magnitudes.sum(axis=1, dtype=np.float64)
                found[columns, :-1] += block.T @ V[rows]
                found[columns, -1] += magnitudes.sum(axis=0, dtype=np.float64)
            # the tiles on the diagonals of both halves, of which one triangle is stored
            above = max(start, down)
            upper = np.triu(self.half[start:stop, start + right : stop + right])
            lower = np.tril(self.half[above:stop, above - down : stop - down])
            rows, more = slice(start, stop), slice(k + above - down, k + stop - down)
            for at, block in ((rows, upper + np.triu(upper, 1).T), (more, lower + np.tril(lower, -1).T)):
                found[at, :-1] += block @ V[at]
                found[at, -1] += np.abs(block).sum(axis=1, dtype=np.float64)
            return found

        found: Array = np.add.reduce(map_blocks(strip, row_blocks(len(self.half), 1, _SIDE)))
        return found[:, :-1], found[:, -1]

    def _beside(self, start: int, stop: int) -> Iterator[tuple[Array, slice, slice]]:
        """Yield tiles off the diagonals in rows ``start:stop`` of the half, with their rows and columns of A."""
        k, right, down = self._places
        for first, last in row_blocks(self.n - stop, 1, _SIDE):
            columns = slice(stop + first, stop + last)
            yield self.half[start:stop, columns.start + right : columns.stop + right], slice(start, stop), columns
        above = max(start, down)
        for first, last in row_blocks(above - down, 1, _SIDE):
            rows, columns = slice(k + above - down, k + stop - down), slice(k + first, k + last)
            yield self.half[above:stop, first:last], rows, columns

    def matvec(self, v: Array) -> Array:
        """Return A v, in the precision of A."""
        return self.times(v.reshape(self.n, -1))[0].astype(self.dtype).reshape(v.shape)

    def __matmul__(self, V: Array) -> Array:
        return self.matvec(V)

    def set_products(self, parts: Iterable[Array]) -> None:
        """Set A to the sum of the products P Pᵀ of parts of n rows."""
        self.half[:] = 0
        (sfrk,) = get_lapack_funcs(("sfrk",), (self.half,))
        for part in parts:
            columns = np.ascontiguousarray(part).T  # which rows one after the other are to LAPACK
            sfrk(self.n, len(columns), 1.0, columns, 1.0, self.half.reshape(-1), trans="T", overwrite_c=1, **_FORMAT)
            del part, columns  # before the next is made

    def factorise(self) -> bool:
        """Compute the Cholesky factor in place; return False, with A lost, where A is not positive definite."""
        (pftrf,) = get_lapack_funcs(("pftrf",), (self.half,))
        _, info = pftrf(self.n, self.half.reshape(-1), overwrite_a=1, **_FORMAT)
        return bool(info == 0)

    def invert_factor(self) -> bool:
        """Compute A⁻¹ from its factor, in place; return False where that fails."""
        (pftri,) = get_lapack_funcs(("pftri",), (self.half,))
        _, info = pftri(self.n, self.half.reshape(-1), overwrite_a=1, **_FORMAT)
        return bool(info == 0 and np.isfinite(self.diagonal()).all())


def packed(n: int, dtype: Any, fill: Callable[[Packed], None]) -> Packed:
    """Return the matrix that `fill` makes of an empty one."""
    found = Packed(np.empty(((n + 1) // 2, n + 1 - n % 2), dtype=dtype), n, fill)
    fill(found)
    return found


def packed_copy(A: Array) -> Packed:
    """Pack a symmetric array, which is not changed and must not be while this is in use."""
    n = len(A)
    k, down, right = (n + 1) // 2, n % 2, 1 - n % 2

    def fill(found: Packed) -> None:
        for j in range(k):
            found.half[j, j + right :] = A[j, j:]
            if j >= down:
                found.half[j, : j + right] = A[k + j - down, k : k + j + right]

    return packed(n, np.result_type(A, np.float32), fill)


def packed_in_place(A: Array) -> Packed:
    """Pack a symmetric array into the first half of its memory; the rest of it keeps the entries.

    The diagonal apart, these are the rows of the second half, and above their diagonal those of the first half's block.
    An even n takes one row of k numbers more: that is kept on the diagonal.
    """
    A = np.require(A, np.result_type(A, np.float32), ["C", "W"])  # a copy of what is no such array
    n, diagonal = len(A), A.diagonal().copy()
    k, down, right = (n + 1) // 2, n % 2, 1 - n % 2
    for i in range(n - k):
        A[k + i, k + i + right :] = A[i, i + 1 : k]
    if right:
        np.fill_diagonal(A[k:, k:], A[k, :k])

    def fill(found: Packed) -> None:
        for j in range(k):
            row, s = found.half[j], j - down
            row[j + right + 1 : k + right] = A[k + j, k + j + right :] if k + j < n else 0
            row[k + right :] = A[k:, j]
            if right:
                row[k + right] = A[k + j, k + j]
            row[: max(s, 0)] = A[k + s, k : k + s]
        found.set_diagonal(diagonal)

    found = Packed(A.reshape(-1)[: k * (n + right)].reshape(k, n + right), n, fill)
    fill(found)
    return found
