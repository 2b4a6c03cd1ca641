"""Truncation against a full sort of every column, for both graphs and both rankings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from subspaces.graphs import truncation
from subspaces.graphs.affinity import affinity
from subspaces.graphs.truncation import truncate, truncate_symmetric
from subspaces.representation.coefficients import Coefficients, from_dense, from_sparse
from subspaces.representation.ridge import ridge, ridge_low_rank


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
@pytest.mark.parametrize("n_nonzero", [29, 30, 10_000])
def test_n_minus_one_and_more_keep_everything(graph, n_nonzero, rng):
    C = random_coefficients(30, rng)
    T = truncated(from_dense(C), n_nonzero, graph)
    assert T.nnz == 30 * 29
    if graph == "column":
        assert_array_equal(T.toarray(), C)


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
    real = truncation.row_blocks
    for rows in (1, 7, 129):
        monkeypatch.setattr(truncation, "row_blocks", lambda n, size, rows=rows: real(n, size, rows * size))
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
