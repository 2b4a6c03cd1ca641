"""What a representation returns: the same matrix whatever it is made of, in blocks that belong to the caller."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from subspaces.representation.coefficients import Factors, Trace, from_dense, from_factors, from_sparse
from subspaces.utils import blocks

TRACE = Trace(True, 3, [0.1], [0.2], [0.3])


def made_of(kind, C):
    if kind == "factors":
        left, values, right = np.linalg.svd(C)
        return from_factors(Factors(left, values, right.T), TRACE)
    return from_dense(C, TRACE) if kind == "dense" else from_sparse(getattr(sparse, kind)(C), TRACE)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["dense", "factors", "csr_array", "csc_array", "coo_array"])
def test_blocks_are_columns_and_rows(kind, dtype, rng):
    C = (rng.standard_normal((9, 9)) * (rng.random((9, 9)) < 0.6)).astype(dtype)
    found = made_of(kind, C)
    assert (found.n_samples, found.dtype, found.trace) == (9, dtype, TRACE)
    tolerance = 20 * np.finfo(dtype).eps
    for start, stop in ((0, 9), (2, 3), (4, 8)):
        columns, rows = found.columns(start, stop), found.rows(start, stop)
        assert columns.dtype == rows.dtype == dtype
        assert_allclose(columns, C[:, start:stop].T, atol=tolerance)
        assert_allclose(rows, C[start:stop], atol=tolerance)
        columns[:], rows[:] = np.nan, np.nan  # the caller's own
    assert_allclose(found.columns(0, 9), C.T, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["dense", "factors", "csr_array", "csc_array", "coo_array", "blocks"])
def test_the_whole(kind, dtype, rng, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 9 * 8 * 2)
    C = (rng.standard_normal((9, 9)) * (rng.random((9, 9)) < 0.6)).astype(dtype)
    C[:, 4] = 0
    found = replace(made_of("dense", C), array=None) if kind == "blocks" else made_of(kind, C)
    tolerance = 20 * np.finfo(dtype).eps if kind == "factors" else 0
    for whole in (found.dense(), found.sparse().toarray()):
        assert whole.dtype == dtype
        assert_allclose(whole, C, atol=tolerance)
    assert found.sparse().format == "csc"
    if kind != "factors":
        assert found.sparse().nnz == np.count_nonzero(C)


def test_what_a_solver_ends_with_is_kept(rng):
    C = rng.standard_normal((6, 6))
    assert made_of("coo_array", C).matrix.format == "csc"
    assert_array_equal(made_of("coo_array", C).matrix.toarray(), C)
    assert_allclose(made_of("factors", C).factors.dense(), C, atol=1e-12)
    assert from_dense(C).dense() is C
    whole = sparse.csc_array(C)
    assert from_sparse(whole).sparse() is from_sparse(whole).matrix is whole
    assert made_of("dense", C).matrix is None
    assert made_of("dense", C).factors is None
