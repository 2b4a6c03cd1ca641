"""Truncation at its edges: sparse columns of any length, extreme cores, and the parts by themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from test_truncation import by_full_sort, check_form, random_coefficients, symmetric_graph

from subspaces.graphs import truncation
from subspaces.graphs.truncation import (
    column_peaks,
    largest_per_column,
    truncate,
    truncate_symmetric,
)
from subspaces.representation.coefficients import Coefficients, from_dense, from_sparse
from subspaces.representation.ridge import ridge_low_rank
from subspaces.utils.ties import top_columns

# ------------------------------------------------------------------ sparse coefficients, column by column


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("by", ["magnitude", "value"])
def test_sparse_columns_of_any_length(by, dtype, rng):
    """Empty and full columns side by side, ties, stored zeros, indices out of order; none depends on the others."""
    for n in (2, 3, 17, 60, 400):
        C = (rng.integers(-3, 4, (n, n)) * (rng.random((n, n)) < rng.random(n) ** 3)).astype(dtype)
        np.fill_diagonal(C, 0)
        stored = (C != 0) | (rng.random((n, n)) < 0.1)
        empty = [0, n // 2, n - 1] if n > 3 else [n - 1]
        C[:, empty], stored[:, empty] = 0, False
        rows, columns = rng.permutation(np.argwhere(stored)).T
        order = np.argsort(columns, kind="stable")
        starts = np.searchsorted(columns[order], np.arange(n + 1))
        S = sparse.csc_array((C[rows, columns][order], rows[order], starts), shape=(n, n))
        assert_array_equal(S.toarray(), C)
        for n_nonzero in (1, 2, 7):
            T = truncate(from_sparse(S), n_nonzero, by=by)
            if np.diff(S.indptr).max() > n_nonzero:
                check_form(T, n, dtype)
            assert_array_equal(T.toarray(), by_full_sort(C, n_nonzero, by))


def test_blocks_of_sparse_columns_change_nothing(rng, monkeypatch):
    C = random_coefficients(70, rng) * (rng.random((70, 70)) < rng.random(70))
    for n_bytes in (1, 64, 500):
        monkeypatch.setattr(truncation, "BLOCK_BYTES", n_bytes)
        assert_array_equal(largest_per_column(sparse.csc_array(C), 3).toarray(), by_full_sort(C, 3))


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_index_types(index_type, rng):
    S = sparse.random_array((20, 20), density=0.5, format="csc", random_state=rng)
    S.indices, S.indptr = S.indices.astype(index_type), S.indptr.astype(index_type)
    kept = largest_per_column(S, 3)
    assert kept.indices.dtype == kept.indptr.dtype == index_type
    assert kept.shape == (20, 20)
    dense = truncate(from_dense(random_coefficients(20, rng)), 9)
    assert dense.indices.dtype == dense.indptr.dtype == np.int32  # half the memory while it lasts


@pytest.mark.parametrize("wrap", [from_dense, lambda C: from_sparse(sparse.csr_array(C))])
@pytest.mark.parametrize("n_nonzero", [None, 11, 12, 99])
def test_without_a_number_or_with_a_large_one_all_is_kept(n_nonzero, wrap, rng):
    C = rng.standard_normal((12, 12)) * (rng.random((12, 12)) < 0.9)
    np.fill_diagonal(C, 5 if n_nonzero is None else 0)  # only without a number a diagonal is kept in any case
    for by in ("magnitude", "value"):
        assert_array_equal(truncate(wrap(C), n_nonzero, by=by).toarray(), C)
    scaled = np.abs(C) / np.abs(C).max(axis=0)
    assert_allclose(truncate_symmetric(wrap(C), n_nonzero).symmetric.toarray(), scaled + scaled.T, rtol=1e-12)


# ------------------------------------------------------------------ parts


def from_core(M: np.ndarray, scales: np.ndarray) -> Coefficients:
    """C = M diag(s) for a symmetric hollow M, as the closed forms give it."""
    M.flags.writeable = False
    return replace(from_dense(M * scales), core=lambda start, stop: M[start:stop])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("exponent", [-0.999, -0.99, 0.0, 0.95])
def test_a_core_gives_the_graph_of_its_coefficients(exponent, dtype, rng):
    """Scales to the ends of the range of numbers: 1/maximum overflows at one, sums would at the other."""
    M = np.triu(rng.standard_normal((40, 40)).clip(-1, 1), 1).astype(dtype)
    M += M.T
    M[:, 7] = M[7] = 0
    scale = float(np.finfo(dtype).max) ** exponent if exponent > -0.999 else float(np.finfo(dtype).smallest_normal) / 50
    found = truncate_symmetric(from_core((M * dtype(scale)).astype(dtype), np.ones(40, dtype)), 6).symmetric
    assert found.dtype == dtype
    tolerance = 10 * np.finfo(dtype).eps if exponent > -0.999 else 1e-3
    expected = symmetric_graph(M, 6)
    assert_array_equal(found.toarray() != 0, expected != 0)
    assert_allclose(found.toarray(), expected, rtol=tolerance)
    scales = rng.uniform(0.5, 2, 40).astype(dtype)  # the factors of the columns cancel
    assert_allclose(truncate_symmetric(from_core(M, scales), 6).symmetric.toarray(), expected, rtol=tolerance)


@pytest.mark.parametrize("where", [0, 2, 39])
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_a_draft_does_not_take_the_diagonal_of_a_point_that_nothing_represents(where, value, rng):
    """All its products are zero, so the first columns are looked at, its own among them: of zeros, of ‖z‖² > 0."""
    Z = rng.standard_normal((40, 5))
    Z[where], Z[:, 4] = 0, 0
    Z[where, 4] = value  # orthogonal to all the others
    coefficients = ridge_low_rank(Z, reg=0.1)
    C = truncate_symmetric(coefficients, 3).symmetric
    expected = truncate_symmetric(replace(coefficients, draft=None), 3).symmetric
    assert_allclose(C.toarray(), expected.toarray(), rtol=1e-10)
    assert C[:, [where]].nnz == 0
    assert column_peaks(coefficients)[where] == 0


@given(
    arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 30)), elements=st.integers(-3, 3).map(float)),
    st.integers(1, 32),
)
def test_top_columns_is_a_stable_sort(keys, k):
    expected = np.sort(np.argsort(-keys, axis=1, kind="stable")[:, :k], axis=1)
    assert_array_equal(top_columns(keys, k), expected)
    wide = np.tile(keys, (1, 40))  # folded into groups
    expected = np.sort(np.argsort(-wide, axis=1, kind="stable")[:, :k], axis=1)
    if k < wide.shape[1]:
        assert_array_equal(top_columns(wide, k), expected)


@pytest.mark.parametrize("n_nonzero", [5, 6, 7, 50])
def test_only_none_keeps_the_diagonal(n_nonzero, rng):
    """Coefficients with a diagonal (LSR2): all others are at most n − 1."""
    C = rng.uniform(1, 2, size=(6, 6))
    np.fill_diagonal(C, 0.5)
    found = truncate(from_dense(C), n_nonzero)
    assert_allclose(found.toarray(), C * (1 - np.eye(6)), rtol=1e-12)
    assert_allclose(truncate(from_dense(C), None).toarray(), C, rtol=1e-12)
