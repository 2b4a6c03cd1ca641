"""Half of a symmetric matrix against the whole."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from subspaces.utils import packed as module
from subspaces.utils.decompositions import lanczos
from subspaces.utils.packed import packed, packed_copy, packed_in_place

SIZES = [1, 2, 3, 4, 5, 9, 10, 17, 22]


@pytest.fixture(params=SIZES)
def A(request, rng, monkeypatch):
    monkeypatch.setattr(module, "_SIDE", 3)  # several blocks
    Z = rng.standard_normal((request.param, request.param))
    return Z @ Z.T + np.eye(request.param)


def test_it_holds_the_matrix_in_half_the_memory(A):
    n, half = len(A), packed_copy(A)
    assert half.half.size == n * (n + 1) // 2
    assert half.shape == A.shape
    for start in range(n):
        for stop in range(start + 1, n + 1):
            assert_array_equal(half.rows(start, stop), A[start:stop])
    assert_array_equal(half.diagonal(), A.diagonal())
    half.half[:] = np.nan
    half.fill(half)
    assert_array_equal(half.whole(), A)


def test_in_the_memory_of_the_whole(A):
    expected, memory = A.copy(), A
    half = packed_in_place(memory)
    other = half.copy()
    assert np.shares_memory(half.half, memory)
    for one in (half, other):
        assert_array_equal(one.whole(), expected)
        one.half[:] = np.nan
        one.fill(one)
        assert_array_equal(one.whole(), expected)


def test_arrays_of_any_kind():
    whole = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]])
    fixed = whole.astype(float)
    fixed.flags.writeable = False
    for A in (whole, fixed, np.asfortranarray(whole, dtype=np.float32)):
        for half in (packed_copy(A), packed_in_place(A)):
            assert half.dtype == np.result_type(A, np.float32)
            assert_array_equal(half.whole(), whole)
            half.fill(half)
            assert_array_equal(half.whole(), whole)


def test_changes_in_place(A, rng):
    n, offset = len(A), rng.standard_normal(len(A))
    half = packed_copy(A)
    other = half.copy()

    def subtract(block, i, j):
        block -= offset[i] + offset[j]

    other.transform(subtract)
    assert_allclose(other.whole(), A - offset[:, None] - offset, atol=1e-14)
    other.set_diagonal(np.arange(n))
    assert_array_equal(other.diagonal(), np.arange(n))
    other.set_diagonal(2.0)
    assert_array_equal(other.diagonal(), np.full(n, 2.0))
    assert_array_equal(half.whole(), A)  # the copy is one


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_and_sums_of_magnitudes(A, dtype, rng):
    half, V = packed_copy(A.astype(dtype)), rng.standard_normal((len(A), 2)).astype(dtype)
    products, sums = half.times(V)
    exact = 1e-12 if dtype == np.float64 else 1e-4
    assert_allclose(products, A @ V, atol=exact)
    assert_allclose(sums, np.abs(A).sum(axis=1), rtol=exact)
    assert (half @ V).dtype == half.matvec(V[:, 0]).dtype == half.dtype == dtype
    assert_allclose(half.matvec(V[:, 0]), A @ V[:, 0], atol=exact)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_of_parts(n, dtype, rng):
    X = rng.standard_normal((n, 7)).astype(dtype)
    found = packed(n, dtype, lambda half: half.set_products([X[:, :4], X[:, 4:]]))
    assert found.dtype == dtype
    for _ in range(2):
        assert_allclose(found.whole(), X @ X.T, atol=1e-13 if dtype == np.float64 else 1e-5)
        found.fill(found)


def test_inverse_in_place(A):
    half = packed_copy(A)
    memory = half.half
    assert half.factorise()
    assert_allclose(half.diagonal().prod() ** 2, np.linalg.det(A), rtol=1e-8)
    assert half.invert_factor()
    assert half.half is memory
    assert_allclose(half.whole(), np.linalg.inv(A), rtol=1e-8, atol=1e-10)


def test_what_is_not_positive_definite_is_told(A):
    half = packed_copy(A)
    half.set_diagonal(-1.0)
    assert not half.factorise()


def test_lanczos_takes_it(rng):
    Z = rng.standard_normal((80, 80))
    A = Z + Z.T
    values, _ = lanczos(packed_copy(A), 1, which="SA")
    assert_allclose(values, np.linalg.eigvalsh(A)[:1])
