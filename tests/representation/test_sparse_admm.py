"""The iterations of the authors' program of SSC, against the same steps written down as they print them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from subspaces import SSC
from subspaces.representation.sparse import data_weight, ssc
from subspaces.representation.sparse_admm import ssc_admm


def as_printed(X: np.ndarray, error_weight: float, affine: bool, n_steps: int) -> np.ndarray:
    """Z, C, Λ and δ in turn, with the whole inverse."""
    n, K = len(X), X @ X.T
    weight, rho, ones = data_weight(K, error_weight), error_weight, np.ones((n, n)) * affine
    inverse = np.linalg.inv(weight * K + rho * np.eye(n) + rho * ones)
    C, multipliers, sums = np.zeros((n, n)), np.zeros((n, n)), np.zeros(n)
    for _ in range(n_steps):
        Z = inverse @ (weight * K + rho * C - multipliers + rho * ones - affine * sums)
        np.fill_diagonal(Z, 0)
        moved = Z + multipliers / rho
        C = np.sign(moved) * np.maximum(np.abs(moved) - 1 / rho, 0)
        multipliers = multipliers + rho * (Z - C)
        sums = sums + rho * (Z.sum(axis=0) - 1)
    return C


def objective(C: np.ndarray, X: np.ndarray, error_weight: float) -> float:
    return float(np.abs(C).sum() + data_weight(X @ X.T, error_weight) / 2 * np.square(X.T - X.T @ C).sum())


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("shape", [(30, 6), (10, 25)])
@pytest.mark.parametrize("n_steps", [1, 7, 40])
def test_steps(affine, shape, n_steps, rng):
    X = rng.standard_normal(shape)
    found = ssc_admm(X, error_weight=50.0, affine=affine, tol=0, max_iter=n_steps)
    assert_allclose(found.dense(), as_printed(X, 50.0, affine, n_steps), atol=1e-9)
    assert found.trace.n_iter == n_steps
    assert not found.trace.converged
    assert (found.dense().diagonal() == 0).all()


def test_it_stops_above_the_minimum_with_more_entries(rng):
    X = np.concatenate([rng.normal(size=(30, 3)) @ rng.normal(size=(3, 20)) + rng.normal(size=20) for _ in range(2)])
    X += 0.01 * rng.normal(size=X.shape)
    early, exact = ssc_admm(X, error_weight=800.0, affine=True), ssc(X, error_weight=800.0, affine=True)
    assert early.trace.converged
    values = [objective(found.dense(), X, 800.0) for found in (early, exact)]
    assert values[1] < values[0] < 1.2 * values[1]
    assert np.count_nonzero(early.dense()) > 1.5 * np.count_nonzero(exact.dense())
    assert_allclose(early.dense().sum(axis=0), 1, atol=0.05)


def test_refusals():
    with pytest.raises(ValueError, match="affine=True needs at least two points"):
        ssc_admm(np.ones((1, 2)), affine=True)
    X = np.random.default_rng(0).normal(size=(20, 4))
    with pytest.raises(ValueError, match='outliers=True needs solver="exact"; got solver="admm"'):
        SSC(2, solver="admm", outliers=True).fit(X)
    with pytest.raises(ValueError, match="solver"):
        SSC(2, solver="dense").fit(X)
    assert SSC(2, solver="admm", error_weight=20, max_iter=2000).fit(X).n_iter_ > 1
