"""What makes the low-rank solvers fast must not change what they find: warm started shrinkage, stages, precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal

from low_rank_data import latent_objective, nuclear, objective, subspaces_with_noise
from solved import dense_and_trace, latent_dense
from subspaces.graphs.affinity import affinity
from subspaces.graphs.postprocessing import row_space_affinity
from subspaces.graphs.rules import GraphRule, build_graph
from subspaces.representation import _nuclear
from subspaces.representation._nuclear import Shrinkage, singular_value_shrinkage
from subspaces.representation.coefficients import Factors, from_dense, from_factors
from subspaces.representation.kernel_low_rank import kernel_lrr
from subspaces.representation.latent_low_rank import latent_lrr, latent_lrr_factors
from subspaces.representation.low_rank import lrr
from subspaces.utils.types import Array


def matrix_of_rank(rng: np.random.Generator, n: int, r: int, rank: int) -> Array:
    """Tall, with `rank` singular values from 1.2 to 3 and the others below 0.9."""
    left, right = (np.linalg.qr(rng.normal(size=(size, r)))[0] for size in (n, r))
    values = np.r_[rng.uniform(1.2, 3, size=rank), rng.uniform(0, 0.9, size=r - rank)]
    return (left * values) @ right.T


# --- the shrinkage of one iterate after the other ---------------------------------------------------------------


@pytest.mark.parametrize("threshold", [1.0, 0.5])
def test_shrinkage_follows_a_slowly_changing_matrix(rng, monkeypatch, threshold):
    monkeypatch.setattr(_nuclear, "SUBSPACE_SIZE", 10)
    M = threshold * matrix_of_rank(rng, 60, 40, 8)
    step = 1e-3 * rng.normal(size=M.shape) / np.sqrt(M.size)
    shrink = Shrinkage(8, threshold)
    was_exact = []
    for _ in range(6):
        M = M + step
        low, expected = shrink(M), singular_value_shrinkage(M, 8, threshold)
        was_exact.append(shrink.is_exact)
        assert shrink.rank == len(low.singular_values) == len(expected.singular_values)
        assert_allclose(low.dense(), expected.dense(), atol=1e-4 * threshold)
        assert_allclose(low.right.T @ low.right, np.eye(shrink.rank), atol=1e-10)
        assert_allclose(low.left.T @ low.left, np.diag(low.singular_values**2), atol=1e-10)
    assert was_exact == [True] + [False] * 5
    assert not shrink.confirmed()
    assert_allclose(shrink(M).dense(), expected.dense(), atol=1e-10)
    assert shrink.confirmed()


def test_shrinkage_notices_new_directions(rng, monkeypatch):
    monkeypatch.setattr(_nuclear, "SUBSPACE_SIZE", 10)
    shrink = Shrinkage(5)
    shrink(matrix_of_rank(rng, 60, 50, 5))
    for rank in (5, 12, 30, 0):
        M = matrix_of_rank(rng, 60, 50, rank)
        low = shrink(M)
        assert len(low.singular_values) == rank
        if shrink.is_exact:
            assert_allclose(low.dense(), singular_value_shrinkage(M, rank).dense(), atol=1e-10)


def test_shrinkage_keeps_float32(rng, monkeypatch):
    monkeypatch.setattr(_nuclear, "SUBSPACE_SIZE", 10)
    M = matrix_of_rank(rng, 60, 40, 8).astype(np.float32)
    shrink = Shrinkage(8)
    for _ in range(2):
        assert {part.dtype for part in shrink(M)} == {np.dtype(np.float32)}
    assert not shrink.is_exact


# --- stages and precision of the entrywise solvers --------------------------------------------------------------


def l1_objective(X: Array, reg: float, **options: Any) -> tuple[float, Any]:
    Z, trace = dense_and_trace(lrr(X, reg=reg, error="l1", **options))
    return objective(X, Z, reg, "l1"), trace


def latent_l1_objective(X: Array, reg: float, **options: Any) -> tuple[float, Any]:
    found = latent_dense(X, reg=reg, **options)
    return latent_objective(X, found.coefficients, found.salient, reg), found.trace


both = pytest.mark.parametrize("solve", [l1_objective, latent_l1_objective])


@both
def test_stages_do_not_move_the_optimum(rng, monkeypatch, solve):
    X = subspaces_with_noise(rng, n_each=20, m=50, dim=2)
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 10**6)
    expected, _ = solve(X, 0.1, tol=1e-6, max_iter=20_000)
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 7)
    monkeypatch.setattr(_nuclear, "SUBSPACE_SIZE", 10)
    found, trace = solve(X, 0.1, tol=1e-6, max_iter=20_000)
    assert trace.converged
    assert_allclose(found, expected, rtol=1e-5)


@both
@pytest.mark.parametrize("reg", [0.05, 0.3])
def test_single_precision_is_enough_for_loose_tolerances(rng, monkeypatch, solve, reg):
    X = subspaces_with_noise(rng, n_each=20, m=50, dim=2)
    expected, _ = solve(X, reg, tol=1e-6, max_iter=20_000)
    monkeypatch.setattr(_nuclear, "SINGLE_PRECISION_SIZE", 0)
    assert _nuclear.working_dtype(X, 1e-3) == np.float32
    assert _nuclear.working_dtype(X, 1e-6) == np.float64
    found, trace = solve(X, reg, tol=1e-3)
    assert trace.converged
    assert_allclose(found, expected, rtol=2e-3)


@both
@pytest.mark.parametrize("reg", [0.05, 0.1, 0.3])
def test_tolerance_of_the_estimators(rng, solve, reg):
    X = subspaces_with_noise(rng, n_each=30, m=60, dim=3)
    expected, _ = solve(X, reg, tol=1e-5, max_iter=20_000)
    found, trace = solve(X, reg, tol=0.05)
    assert trace.converged
    assert expected * (1 - 1e-4) < found < 1.02 * expected


# --- coefficients as factors ------------------------------------------------------------------------------------


def test_factors_are_singular_value_decompositions(rng):
    X = subspaces_with_noise(rng)
    options: dict[str, Any] = {"tol": 1e-3, "max_iter": 1000}
    latent = latent_lrr_factors(X, reg=0.1, **options)
    found = [
        lrr(X, reg=0.1, error="l1", **options),
        lrr(X, reg=0.3, error="l21", **options),
        kernel_lrr(X @ X.T, reg=3.0, error="fro"),
        latent_lrr(X, reg=0.1, **options),
    ]
    assert_array_equal(found[-1].dense(), latent.coefficients.dense())
    for factors, Z in [*((one.factors, one.dense()) for one in found), (latent.salient, latent.salient.dense())]:
        rank = len(factors.singular_values)
        assert rank > 0
        assert_allclose(factors.left.T @ factors.left, np.eye(rank), atol=1e-7)
        assert_allclose(factors.right.T @ factors.right, np.eye(rank), atol=1e-7)
        assert_allclose(factors.singular_values.sum(), nuclear(Z), rtol=1e-7)
        assert_array_equal(factors.dense(), Z)


def random_factors(rng: np.random.Generator, dtype: type) -> Factors:
    left, right = (scipy.linalg.orth(rng.normal(size=(40, 6))).astype(dtype) for _ in range(2))
    return Factors(left, np.sort(rng.uniform(0.1, 1, size=6))[::-1].astype(dtype), right)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_graphs_from_factors_are_those_of_the_matrix(rng, dtype):
    factors = random_factors(rng, dtype)
    lazy, whole = from_factors(factors), from_dense(factors.dense())
    tolerance = 1e-5 if dtype == np.float32 else 1e-10
    assert lazy.dtype == dtype
    assert lazy.n_samples == 40
    assert_allclose(lazy.columns(3, 9), whole.columns(3, 9), atol=tolerance)
    assert_allclose(lazy.rows(3, 9), whole.rows(3, 9), atol=tolerance)
    for power in (1, 2, 3.5, 4, 0.5):
        W = row_space_affinity(lazy, power)
        assert W.dtype == dtype
        assert_allclose(W, row_space_affinity(whole, power), atol=np.sqrt(tolerance) if power < 1 else 10 * tolerance)
    for graph in ("row_space", "column", "symmetric", "mass"):
        expected = affinity(build_graph(whole, GraphRule(graph, 5)).treated).toarray()
        assert_allclose(
            affinity(build_graph(lazy, GraphRule(graph, 5)).treated).toarray(), expected, atol=10 * tolerance
        )
