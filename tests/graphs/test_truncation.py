"""Truncation against a full sort of every column, for both graphs and both rankings; and at its edges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from subspaces.graphs import rules
from subspaces.graphs.affinity import affinity
from subspaces.graphs.rules import column_peaks, largest_per_column, truncate, truncate_symmetric
from subspaces.representation import coefficients as coefficients_module
from subspaces.representation.coefficients import Coefficients, from_core, from_dense, from_sparse
from subspaces.representation.ridge import ridge, ridge_low_rank
from subspaces.utils.ordering import top_columns


def by_full_sort(C: np.ndarray, n_nonzero: int, by: str = "magnitude") -> np.ndarray:
    """Column by column: the entries off the diagonal in the order (largest first, then lowest row), η of them."""
    out = np.zeros_like(C)
    for i in range(len(C)):
        entries = np.flatnonzero((C[:, i] != 0) & (np.arange(len(C)) != i))
        keys = np.abs(C[entries, i]) if by == "magnitude" else C[entries, i]
        kept = entries[np.lexsort((entries, -keys))][:n_nonzero]
        out[kept, i] = C[kept, i]
    return out


def symmetric_graph(C: np.ndarray, n_nonzero: int) -> np.ndarray:
    """Graph builder G2 of Elhamifar, Peng and Zhen before the last symmetrisation, dense and literal."""
    A = np.abs(C)
    np.fill_diagonal(A, 0)
    scaled = np.zeros_like(A)
    for i in range(len(A)):
        if A[:, i].max() > 0:
            scaled[:, i] = A[:, i] / A[:, i].max()
    return by_full_sort(scaled + scaled.T, n_nonzero)


def truncated(coefficients: Coefficients, n_nonzero: int | None, graph: str, by: str = "magnitude") -> sparse.csc_array:
    """The graph of either rule."""
    if graph == "symmetric":
        return truncate_symmetric(coefficients, n_nonzero).symmetric
    return truncate(coefficients, n_nonzero, by=by)


def random_coefficients(n: int, rng: np.random.Generator) -> np.ndarray:
    C = rng.standard_normal((n, n))
    np.fill_diagonal(C, 0)
    return C


def check_form(T: sparse.csc_array, n: int, dtype: type) -> None:
    assert isinstance(T, sparse.csc_array)
    assert T.shape == (n, n)
    assert T.dtype == dtype
    assert (T.data != 0).all()
    assert (T.diagonal() == 0).all()
    assert T.has_sorted_indices
    assert T.has_canonical_format


# 700 and 1000: rows are folded into groups of two and more; 1000 with η = 40 has 640 groups and a remainder
@pytest.mark.parametrize(("n", "n_nonzero"), [(2, 1), (5, 2), (60, 7), (300, 5), (700, 5), (1000, 40)])
@pytest.mark.parametrize("by", ["magnitude", "value"])
def test_column_graph_is_a_full_sort(n, n_nonzero, by, rng):
    C = random_coefficients(n, rng)
    T = truncate(from_dense(C), n_nonzero, by=by)
    check_form(T, n, np.float64)
    assert T.indices.dtype == np.int32
    assert_array_equal(T.toarray(), by_full_sort(C, n_nonzero, by))


@pytest.mark.parametrize(("n", "n_nonzero"), [(2, 1), (5, 2), (60, 7), (700, 5)])
def test_symmetric_graph_is_the_authors_builder(n, n_nonzero, rng):
    C = random_coefficients(n, rng)
    T = truncate_symmetric(from_dense(C), n_nonzero).symmetric
    check_form(T, n, np.float64)
    expected = symmetric_graph(C, n_nonzero)
    assert_array_equal(T.toarray() != 0, expected != 0)
    assert_allclose(T.toarray(), expected, rtol=1e-12)
    W = affinity(T).toarray()
    assert_allclose(W, expected + expected.T, rtol=1e-12)


@pytest.mark.parametrize("n", [6, 40, 600])
@pytest.mark.parametrize("n_positive", [0, 1, 3])
def test_by_value_takes_negative_entries_when_nothing_else_is_left(n, n_positive, rng):
    """The zero on the diagonal is no entry of the column: it must not shut out negative ones."""
    C = -rng.random((n, n)) - 0.1
    for i in range(n):
        C[rng.choice(n, n_positive, replace=False), i] *= -1
    np.fill_diagonal(C, 0)
    for n_nonzero in (1, 4):
        T = truncate(from_dense(C), n_nonzero, by="value")
        assert_array_equal(T.toarray(), by_full_sort(C, n_nonzero, "value"))


@given(
    arrays(np.float64, st.integers(2, 12).map(lambda n: (n, n)), elements=st.integers(-3, 3).map(float)),
    st.integers(1, 14),
)
def test_ties_go_to_the_lowest_row(C, n_nonzero):
    np.fill_diagonal(C, 0)
    T = truncate(from_dense(C), n_nonzero)
    check_form(T, len(C), np.float64)
    assert_array_equal(T.toarray(), by_full_sort(C, n_nonzero))


@given(
    arrays(np.float64, st.integers(2, 10).map(lambda n: (n, n)), elements=st.sampled_from([0.0, -1, 1, 0.5, -2, 4])),
    st.integers(1, 12),
)
def test_ties_of_the_symmetric_graph(C, n_nonzero):
    np.fill_diagonal(C, 0)  # powers of two: dividing by the maximum is exact, so ties stay ties
    T = truncate_symmetric(from_dense(C), n_nonzero).symmetric
    check_form(T, len(C), np.float64)
    assert_array_equal(T.toarray(), symmetric_graph(C, n_nonzero))


@pytest.mark.parametrize("graph", ["column", "symmetric"])
def test_zero_columns_and_few_entries(graph, rng):
    n = 400
    C = random_coefficients(n, rng) * (rng.random((n, n)) < 0.01)
    C[:, 7] = 0
    C[:, 9], C[9] = 0, 0
    T = truncated(from_dense(C), 5, graph)
    check_form(T, n, np.float64)
    expected = by_full_sort(C, 5) if graph == "column" else symmetric_graph(C, 5)
    assert_allclose(T.toarray(), expected, rtol=1e-12)
    assert T[:, [9]].nnz == 0
    nothing = truncated(from_dense(np.zeros((20, 20))), 5, graph)
    assert nothing.nnz == 0
    assert nothing.shape == (20, 20)


@pytest.mark.parametrize("scale", [1e-310, 1e-300, 1e300])
def test_symmetric_graph_of_extreme_coefficients(scale, rng):
    """A very large reg makes coefficients so small that 1/maximum overflows."""
    C = random_coefficients(20, rng).clip(-1, 1)
    T = truncate_symmetric(from_dense(C * scale), 5).symmetric
    assert np.isfinite(T.data).all()
    assert_allclose(T.toarray(), symmetric_graph(C, 5), rtol=1e-9 if scale > 1e-305 else 1e-2)


@pytest.mark.parametrize("graph", ["column", "symmetric"])
@pytest.mark.parametrize("by", ["magnitude", "value"])
def test_block_size_changes_no_bit(graph, by, rng, monkeypatch):
    X = rng.standard_normal((130, 6))
    coefficients = ridge(X @ X.T, reg=0.3)
    expected = truncated(coefficients, 5, graph, by)
    real = coefficients_module.row_blocks
    for rows in (1, 7, 129):
        monkeypatch.setattr(coefficients_module, "row_blocks", lambda n, size, rows=rows: real(n, size, rows * size))
        T = truncated(coefficients, 5, graph, by)
        assert_array_equal(T.indptr, expected.indptr)
        assert_array_equal(T.indices, expected.indices)
        assert_array_equal(T.data, expected.data)


@pytest.mark.parametrize("reg", [1e-6, 0.1, 1e30])
def test_a_draft_in_single_precision_gives_the_graph_of_all_products_in_double(reg, rng):
    coefficients = ridge_low_rank(rng.standard_normal((300, 8)), reg=reg)
    assert coefficients.draft is not None
    found = truncate_symmetric(coefficients, 6).symmetric
    expected = truncate_symmetric(replace(coefficients, draft=None), 6).symmetric
    assert_array_equal(found.indptr, expected.indptr)
    assert_array_equal(found.indices, expected.indices)
    assert_allclose(found.data, expected.data, rtol=1e-10)


# ------------------------------------------------------------------ both truncations in one pass


@pytest.mark.parametrize("n_nonzero", [1, 4, 59, 80, None])
@pytest.mark.parametrize("wrap", ["dense", "sparse", "inverse", "draft", "core only"])
def test_the_symmetric_rule_keeps_the_truncated_columns_as_well(wrap, n_nonzero, rng):
    X = rng.standard_normal((60, 8))
    coefficients = {
        "dense": lambda: from_dense(random_coefficients(60, rng)),
        "sparse": lambda: from_sparse(sparse.csc_array(random_coefficients(60, rng) * (rng.random((60, 60)) < 0.3))),
        "inverse": lambda: ridge(X @ X.T, reg=0.1),
        "draft": lambda: ridge_low_rank(X, reg=0.1),
        "core only": lambda: replace(ridge_low_rank(X, reg=0.1), draft=None),
    }[wrap]()
    both = truncate_symmetric(coefficients, n_nonzero)
    C = coefficients.dense()
    expected = C if n_nonzero is None else by_full_sort(C, n_nonzero)
    assert_array_equal(both.coefficients.toarray() != 0, expected != 0)
    assert_allclose(both.coefficients.toarray(), expected, rtol=1e-10)
    check_form(both.coefficients, 60, np.float64)
    lone = truncate_symmetric(coefficients, n_nonzero, keep=False)
    assert lone.coefficients is None
    assert_array_equal(lone.symmetric.toarray(), both.symmetric.toarray())


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
        monkeypatch.setattr(rules, "BLOCK_BYTES", n_bytes)
        assert_array_equal(largest_per_column(sparse.csc_array(C), 3).toarray(), by_full_sort(C, 3))


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


def of_core(M: np.ndarray, scales: np.ndarray) -> Coefficients:
    """C = M diag(s) for a symmetric hollow M, as the closed forms give it."""
    M.flags.writeable = False
    return from_core(lambda start, stop: M[start:stop], scales)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("exponent", [-0.999, -0.99, 0.0, 0.95])
def test_a_core_gives_the_graph_of_its_coefficients(exponent, dtype, rng):
    """Scales to the ends of the range of numbers: 1/maximum overflows at one, sums would at the other."""
    M = np.triu(rng.standard_normal((40, 40)).clip(-1, 1), 1).astype(dtype)
    M += M.T
    M[:, 7] = M[7] = 0
    scale = float(np.finfo(dtype).max) ** exponent if exponent > -0.999 else float(np.finfo(dtype).smallest_normal) / 50
    scaled = (M * dtype(scale)).astype(dtype)
    found = truncate_symmetric(of_core(scaled, np.ones(40, dtype)), 6).symmetric
    assert found.dtype == dtype
    tolerance = 10 * np.finfo(dtype).eps if exponent > -0.999 else 1e-3
    expected = symmetric_graph(M, 6)
    assert_array_equal(found.toarray() != 0, expected != 0)
    assert_allclose(found.toarray(), expected, rtol=tolerance)
    scales = rng.uniform(0.5, 2, 40).astype(dtype)  # the factors of the columns cancel
    assert_allclose(truncate_symmetric(of_core(M, scales), 6).symmetric.toarray(), expected, rtol=tolerance)


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
