"""SMCE against the authors' program and cvxpy, sample by sample."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from subspaces.representation.smce import smce, smce_path

from solved import sparse_and_trace
from subspaces.representation import smce as smce_module


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
    """The sheet's columns, one point after the other; ``solve(directions, shares)`` gives c."""
    n = len(X)
    C = np.zeros((n, n))
    for i in range(n):
        chosen, distances = nearest(X, i, n_neighbors)
        c = solve((X[chosen] - X[i]) / distances[:, None], distances / distances.sum())
        C[chosen, i] = np.abs(c) / distances
        C[:, i] /= C[:, i].sum()
    return C


def authors_admm(directions, shares, reg):
    """ADMM of the authors' program for one point: penalty 10, the sum as a second multiplier."""
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


def cvxpy_solution(directions, shares, reg):
    cvxpy = pytest.importorskip("cvxpy")
    c = cvxpy.Variable(len(shares))
    objective = reg * cvxpy.norm1(cvxpy.multiply(shares, c)) + 0.5 * cvxpy.sum_squares(directions.T @ c)
    cvxpy.Problem(cvxpy.Minimize(objective), [cvxpy.sum(c) == 1]).solve(solver="CLARABEL")
    return c.value


@pytest.mark.parametrize("reg", [10.0, 100.0])
def test_smce_is_the_authors_program_run_to_the_end(X, reg):
    X = X[:8]
    C, trace = sparse_and_trace(smce(X, reg=reg, n_neighbors=6, tol=1e-11, max_iter=100_000))
    expected = smce_weights(X, 6, lambda directions, shares: authors_admm(directions, shares, reg))
    assert trace.converged
    np.testing.assert_allclose(C.toarray(), expected, atol=1e-7)


@pytest.mark.parametrize("reg", [0.5, 10.0])
def test_smce_solves_the_stated_problem(X, reg):
    X = X[::4]
    C = smce(X, reg=reg, n_neighbors=8, tol=1e-11, max_iter=100_000).sparse()
    expected = smce_weights(X, 8, lambda directions, shares: cvxpy_solution(directions, shares, reg))
    np.testing.assert_allclose(C.toarray(), expected, atol=1e-3)  # interior-point accuracy divided by distances


def test_smce_trace_tells_the_truth(X):
    trace = smce(X, n_neighbors=7, tol=1e-8).trace
    assert trace.converged
    assert max(trace.primal[-1], trace.dual[-1]) <= 1e-8
    assert len(trace.primal) == len(trace.dual) == trace.n_iter // smce_module.CHECK_EVERY
    with pytest.warns(ConvergenceWarning, match="max_iter=3 steps"):
        C, short = sparse_and_trace(smce(X, n_neighbors=7, max_iter=3))
    assert not short.converged
    assert short.n_iter == 3
    assert max(short.primal[-1], short.dual[-1]) > 1e-6
    assert np.isfinite(C.data).all()


def test_smce_gives_a_duplicate_all_the_weight(X):
    X[1] = X[0]
    C, trace = sparse_and_trace(smce(X, n_neighbors=7))
    assert trace.converged
    np.testing.assert_allclose(C.toarray()[[1, 0], [0, 1]], 1, atol=1e-5)
    assert C.diagonal().max() == 0


def test_smce_path_agrees_with_single_runs_and_saves_steps(X):
    regs = [10.0, 10.2, 10.4, 10.6]
    n_cold = n_warm = 0
    for reg, found in zip(regs, smce_path(X, regs, n_neighbors=8, tol=1e-9), strict=True):
        C, trace = sparse_and_trace(found)
        expected, cold = sparse_and_trace(smce(X, reg=reg, n_neighbors=8, tol=1e-9))
        assert trace.converged
        np.testing.assert_allclose(C.toarray(), expected.toarray(), atol=1e-6)
        n_cold, n_warm = n_cold + len(cold.primal), n_warm + len(trace.primal)
    assert n_warm < n_cold
