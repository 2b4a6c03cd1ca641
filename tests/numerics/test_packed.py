"""Half of a symmetric matrix against the whole."""

import numpy as np
import pytest

from subspaces.numerics import packed as module
from subspaces.numerics.packed import packed


@pytest.fixture(params=[1, 2, 3, 4, 5, 9, 10, 17, 21])
def both(request, rng, monkeypatch):
    monkeypatch.setattr(module, "_ROWS", (3, 3))  # several blocks
    n = request.param
    Z = rng.standard_normal((n, n))
    A = Z @ Z.T + np.eye(n)
    return A, packed(n, A.dtype, lambda start, stop, first, last: A[start:stop, first:last], lambda: A)


def test_it_holds_the_matrix_in_half_the_memory(both):
    A, half = both
    n = len(A)
    assert half.half.size <= (n + 1) * (n + 2) // 2
    for start in range(n):
        for stop in range(start + 1, n + 1):
            np.testing.assert_array_equal(half.block(start, stop), A[start:stop])
    np.testing.assert_array_equal(half.diagonal, A.diagonal())


def test_changes_in_place(both, rng):
    A, half = both
    n, offset = len(A), rng.standard_normal(len(A))
    other = half.copy()
    other.subtract(lambda i, columns: offset[i] + offset[columns])
    np.testing.assert_allclose(other.block(0, n), A - offset[:, None] - offset, atol=1e-14)
    other.with_diagonal(np.arange(n))
    np.testing.assert_array_equal(other.diagonal, np.arange(n))
    np.testing.assert_array_equal(half.block(0, n), A)  # the copy is one
    np.testing.assert_allclose(half.sums_of(lambda rows: rows @ offset), A @ offset, atol=1e-12)


def test_inverse_in_place(both):
    A, half = both
    memory = half.half
    assert half.factorise()
    np.testing.assert_allclose(np.sort(half.diagonal).prod() ** 2, np.linalg.det(A), rtol=1e-8)
    assert half.invert_factor()
    assert half.half is memory
    np.testing.assert_allclose(half.block(0, len(A)), np.linalg.inv(A), rtol=1e-8, atol=1e-10)


def test_what_is_not_positive_definite_is_told(both):
    _, half = both
    half.with_diagonal(-1.0)
    assert not half.factorise()
