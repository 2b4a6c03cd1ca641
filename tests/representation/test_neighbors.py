"""SMCE against the authors' program, CVXPY and its optimality conditions; TSC against the stated rule."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from solved import sparse_and_trace
from subspaces.representation import neighbors as module
from subspaces.representation.neighbors import smce, strongest_cosines, tsc


@pytest.fixture
def X(rng):
    """Samples near three 3-dimensional subspaces of a 10-dimensional space."""
    clean = [rng.normal(size=(15, 3)) @ rng.normal(size=(3, 10)) for _ in range(3)]
    return np.concatenate(clean) + 0.1 * rng.normal(size=(45, 10))


def nearest(X, i, n_neighbors):
    distances = np.linalg.norm(X - X[i], axis=1)
    distances[i] = np.inf
    chosen = np.argsort(distances)[:n_neighbors]
    return chosen, distances[chosen]


def smce_weights(X, n_neighbors, solve):
    """Compute the columns of the paper one after the other; ``solve(directions, shares)`` returns c."""
    n = len(X)
    C = np.zeros((n, n))
    for i in range(n):
        chosen, distances = nearest(X, i, n_neighbors)
        c = solve((X[chosen] - X[i]) / distances[:, None], distances / distances.sum())
        C[chosen, i] = np.abs(c) / distances
        C[:, i] /= C[:, i].sum()
    return C


def authors_admm(directions, shares, reg):
    """Run ADMM of the authors' program for one sample: penalty 10, the sum as a second multiplier."""
    size = len(shares)
    inverse = np.linalg.inv(directions @ directions.T + 10 * np.eye(size) + 10 * np.ones((size, size)))
    c, multiplier, sum_multiplier = np.zeros(size), np.zeros(size), 0.0
    for _ in range(100_000):
        z = inverse @ (10 * c - multiplier + sum_multiplier + 10)
        shifted = 10 * z + multiplier
        previous, c = c, np.sign(shifted) * np.maximum(np.abs(shifted) - reg * shares, 0) / 10
        multiplier += 10 * (z - c)
        sum_multiplier += 10 * (1 - z.sum())
        if max(np.abs(z - c).max(), np.abs(c - previous).max(), abs(z.sum() - 1)) < 1e-11:
            break
    return c


@pytest.mark.parametrize("reg", [10.0, 100.0])
def test_smce_is_the_authors_program_run_to_the_end(X, reg):
    X = X[:8]
    C, trace = sparse_and_trace(smce(X, reg=reg, n_neighbors=6, tol=1e-11, max_iter=100_000))
    expected = smce_weights(X, 6, lambda directions, shares: authors_admm(directions, shares, reg))
    assert trace.converged
    np.testing.assert_allclose(C.toarray(), expected, atol=1e-7)


def test_smce_on_a_circle_sees_the_two_adjacent_points():
    angles = 2 * np.pi * np.arange(40) / 40
    C, trace = sparse_and_trace(smce(np.c_[np.cos(angles), np.sin(angles)], reg=10, n_neighbors=11))
    expected = (np.roll(np.eye(40), 1, axis=0) + np.roll(np.eye(40), -1, axis=0)) / 2
    np.testing.assert_allclose(C.toarray(), expected, atol=1e-5)
    assert C.nnz == 80
    assert trace.converged


def test_smce_trace_tells_the_truth(X):
    trace = smce(X, n_neighbors=7, tol=1e-8).trace
    assert trace.converged
    assert max(trace.primal[-1], trace.dual[-1]) <= 1e-8
    assert len(trace.primal) == len(trace.dual) == trace.n_iter // module.CHECK_EVERY
    with pytest.warns(ConvergenceWarning, match="max_iter=3 steps"):
        C, short = sparse_and_trace(smce(X, n_neighbors=7, max_iter=3))
    assert not short.converged
    assert short.n_iter == 3
    assert max(short.primal[-1], short.dual[-1]) > 1e-6
    assert np.isfinite(C.data).all()


def test_smce_has_no_scale_and_columns_sum_to_one(X):
    C = smce(X, n_neighbors=7, tol=1e-10).sparse()
    scaled = smce(1e5 * X, n_neighbors=7, tol=1e-10).sparse()
    np.testing.assert_allclose(scaled.toarray(), C.toarray(), atol=1e-7)
    np.testing.assert_allclose(C.sum(axis=0), 1)
    assert C.data.min() > 0
    assert C.diagonal().max() == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_smce_gives_a_duplicate_all_the_weight(X, dtype):
    X[1] = X[0]
    C, trace = sparse_and_trace(smce(X.astype(dtype), n_neighbors=7))
    assert trace.converged
    assert C.dtype == dtype
    assert_allclose(C.toarray()[[1, 0], [0, 1]], 1, atol=1e-5)
    assert C.diagonal().max() == 0


@pytest.mark.parametrize("block", [4, 45])
def test_smce_in_float32_and_blocks(X, monkeypatch, block):
    expected = smce(X, n_neighbors=5, tol=1e-9).dense()
    monkeypatch.setattr(module, "row_blocks", lambda n, size: [(k, min(k + block, n)) for k in range(0, n, block)])
    assert_allclose(smce(X, n_neighbors=5, tol=1e-9).dense(), expected, atol=1e-8)
    single = smce(X.astype(np.float32), n_neighbors=5).dense()
    assert single.dtype == np.float32
    assert_allclose(single, expected, atol=2e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tolerance_has_a_floor_at_rounding(rng, dtype):
    X = rng.normal(size=(14, 3)).astype(dtype)
    shown = f"{20 * float(np.finfo(dtype).eps):.1e}"
    with pytest.warns(ConvergenceWarning) as record:
        C, trace = sparse_and_trace(smce(X, n_neighbors=5, tol=1e-30, max_iter=2))
    residuals = f"residuals {trace.primal[-1]:.1e} (primal) and {trace.dual[-1]:.1e} (dual) above tol={shown}"
    assert residuals in str(record[0].message)
    assert "after max_iter=2 steps" in str(record[0].message)
    assert trace.n_iter == 2
    assert len(trace.primal) == 1
    assert C.shape == (14, 14)


def test_tsc_is_the_stated_rule(X):
    n, q = len(X), 4
    expected = np.zeros((n, n))
    for i in range(n):
        cosines = [abs(X[i] @ X[j]) / np.linalg.norm(X[i]) / np.linalg.norm(X[j]) if j != i else -1 for j in range(n)]
        for j in np.argsort(cosines)[-q:]:
            expected[j, i] = np.exp(-2 * np.arccos(min(1, cosines[j])))
    C = tsc(X, n_neighbors=q).sparse()
    np.testing.assert_allclose(C.toarray(), expected, atol=1e-7)
    assert C.nnz == n * q


def test_tsc_blocks_zero_rows_and_all_neighbors(X, monkeypatch):
    X[3] = 0
    C = tsc(X, n_neighbors=44).dense()
    assert not C[3].any()
    assert not C[:, 3].any()
    assert np.count_nonzero(C) == 44 * 43
    few = tsc(X, n_neighbors=4).dense()
    monkeypatch.setattr(module, "BLOCK_BYTES", 45 * 8)
    assert_array_equal(few != 0, tsc(X, n_neighbors=4).dense() != 0)
    unit = X[:3] / np.linalg.norm(X[:3], axis=1, keepdims=True)
    indices, values = strongest_cosines(unit, 1)
    cosines = np.abs(unit @ unit.T) - 2 * np.eye(3)
    assert_array_equal(indices[:, 0], cosines.argmax(axis=1))
    assert_allclose(values[:, 0], cosines.max(axis=1))


def test_errors_name_the_argument(X):
    for solve in (smce, tsc):
        with pytest.raises(ValueError, match="n_neighbors must be from 1 to n_samples - 1 = 4, got 5"):
            solve(X[:5], n_neighbors=5)
    for reg in (0.0, -1.0):
        with pytest.raises(ValueError, match=f"reg must be positive, got {reg}"):
            smce(X, reg=reg, n_neighbors=4)
