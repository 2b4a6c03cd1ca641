"""Elastic-net self-expression against independent solvers and its own optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet

from solved import sparse_and_trace
from subspaces.representation import elastic_net as module
from subspaces.representation.elastic_net import elastic_net
from subspaces.utils.types import Array


@pytest.fixture(params=[0, 1], ids="seed={}".format)
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(request.param)


def unit(X: Array) -> Array:
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def cloud(rng: np.random.Generator, n_samples: int, n_features: int) -> Array:
    """Return coherent samples, so that the first working sets are not the last ones."""
    return unit(rng.standard_normal((n_samples, n_features)) + 0.5)


def weights(X: Array, error_weight: float, l1_ratio: float) -> Array:
    gram = np.abs(X @ X.T)
    np.fill_diagonal(gram, 0)
    return error_weight * l1_ratio / gram.max(axis=0)


def objectives(X: Array, C: Array, error_weight: float, l1_ratio: float) -> Array:
    fit = weights(X, error_weight, l1_ratio) / 2 * ((X.T - X.T @ C) ** 2).sum(axis=0)
    return l1_ratio * np.abs(C).sum(axis=0) + (1 - l1_ratio) / 2 * (C**2).sum(axis=0) + fit


def largest_violation(X: Array, C: Array, error_weight: float, l1_ratio: float) -> float:
    """Return the distance of the scaled correlations from the subdifferential of the penalty, relative to τ."""
    correlations = X @ (X.T - X.T @ C) * weights(X, error_weight, l1_ratio)
    on = np.abs(correlations - l1_ratio * np.sign(C) - (1 - l1_ratio) * C)
    off = np.maximum(np.abs(correlations) - l1_ratio, 0)
    violation = np.where(C != 0, on, off)
    np.fill_diagonal(violation, 0)
    return float(violation.max() / l1_ratio)


@pytest.mark.parametrize("shape", [(40, 6), (25, 60)])
@pytest.mark.parametrize("l1_ratio", [0.3, 0.9, 1.0])
def test_same_minimum_as_coordinate_descent(rng, shape, l1_ratio):
    X = cloud(rng, *shape)
    C = elastic_net(X, error_weight=20.0, l1_ratio=l1_ratio).sparse().toarray()
    expected = np.zeros_like(C)
    alphas = 1 / (weights(X, 20.0, l1_ratio) * X.shape[1])
    for i, alpha in enumerate(alphas):
        others = np.arange(len(X)) != i
        model = ElasticNet(alpha, l1_ratio=l1_ratio, fit_intercept=False, tol=1e-12, max_iter=100_000)
        expected[others, i] = model.fit(X[others].T, X[i]).coef_
    ours, theirs = objectives(X, C, 20.0, l1_ratio), objectives(X, expected, 20.0, l1_ratio)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    if l1_ratio < 1:  # unique
        np.testing.assert_allclose(C, expected, atol=1e-4)


@pytest.mark.parametrize("shape", [(300, 12), (60, 80)])
@pytest.mark.parametrize(
    ("error_weight", "l1_ratio"), [(1.5, 0.9), (50.0, 0.2), (50.0, 0.9), (50.0, 1.0), (2000.0, 0.95)]
)
def test_optimal_to_the_tolerance(rng, shape, error_weight, l1_ratio):
    X = cloud(rng, *shape)
    C, trace = sparse_and_trace(elastic_net(X, error_weight=error_weight, l1_ratio=l1_ratio, tol=1e-7))
    assert trace.converged
    assert trace.primal[-1] < 1.01e-7
    assert largest_violation(X, C.toarray(), error_weight, l1_ratio) < 1.1e-7


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_more_features_than_samples_and_duplicates(rng, dtype):
    X = cloud(rng, 30, 400).astype(dtype)[rng.integers(0, 30, size=50)]
    C = elastic_net(X).sparse().toarray()
    assert largest_violation(X.astype(np.float64), C, 50.0, 0.9) < (1e-5 if dtype == np.float64 else 1e-2)
    gathered = module._scaled_atoms(X)
    assert gathered.shape == (51, 50)
    np.testing.assert_allclose(gathered[:-1] @ gathered[:-1].T, X @ X.T, atol=1e-5)


@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
@pytest.mark.parametrize("size", [3, 7])
def test_supports_of_nearly_all_samples(rng, monkeypatch, l1_ratio, size):
    monkeypatch.setattr(module, "WORKING_SET", size)
    X = cloud(rng, 10, 20)
    C, trace = sparse_and_trace(elastic_net(X, error_weight=1000.0, l1_ratio=l1_ratio))
    assert trace.converged
    assert np.count_nonzero(C.toarray(), axis=0).max() == 9
    assert_array_equal(C.diagonal(), 0)
    assert largest_violation(X, C.toarray(), 1000.0, l1_ratio) < 1e-5


def test_trace_tells_violation_and_objective(rng):
    X = cloud(rng, 400, 20)
    C, trace = sparse_and_trace(elastic_net(X))
    assert trace.n_iter == len(trace.primal) == len(trace.objective) > 1
    assert trace.primal[0] > 1e-6
    np.testing.assert_allclose(trace.objective[-1], objectives(X, C.toarray(), 50.0, 0.9).sum(), rtol=1e-10)
    assert np.all(np.diff(trace.objective) <= 1e-10 * trace.objective[-1])


def test_warns_how_many_samples_are_not_optimal(rng):
    X = cloud(rng, 400, 20)
    with pytest.warns(ConvergenceWarning, match=r"[1-9]\d* of 400 points are not optimal") as record:
        C, trace = sparse_and_trace(elastic_net(X, max_iter=1))
    assert not trace.converged
    correlations = X @ (X.T - X.T @ C) * weights(X, 50.0, 0.9)
    np.fill_diagonal(correlations, 0)
    n_unfinished = int((np.abs(correlations * (C.toarray() == 0)).max(axis=0) > 0.9 * (1 + 1e-6)).sum())
    assert f"{n_unfinished} of 400" in str(record[0].message)


@pytest.mark.parametrize("l1_ratio", [0.9, 1.0])
def test_batches_do_not_matter(rng, monkeypatch, l1_ratio):
    X = cloud(rng, 61, 12)
    C, trace = sparse_and_trace(elastic_net(X, l1_ratio=l1_ratio))
    monkeypatch.setattr(module, "MAX_BATCH", 25)
    monkeypatch.setattr(module, "MIN_BATCH", 1)
    monkeypatch.setattr(module, "NEWTON_BYTES", 10 * 30 * 12 * 8)
    small, small_trace = sparse_and_trace(elastic_net(X, l1_ratio=l1_ratio))
    np.testing.assert_allclose(small.toarray(), C.toarray(), atol=1e-7)
    np.testing.assert_allclose(small_trace.objective, trace.objective, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("l1_ratio", [0.9, 1.0])
def test_duplicates_and_zero_rows(rng, l1_ratio, dtype):
    X = np.repeat(cloud(rng, 30, 8), 3, axis=0).astype(dtype)
    X[[4, 50]] = 0
    X[7] = -X[6]
    C, trace = sparse_and_trace(elastic_net(X, l1_ratio=l1_ratio))
    assert trace.converged
    assert np.all(np.isfinite(C.data))
    assert C[:, [4, 50]].nnz == 0
    assert C[[4, 50]].nnz == 0
    rest = np.setdiff1d(np.arange(90), [4, 50])
    tolerance = 100 * 50 * np.finfo(np.float32).eps if dtype == np.float32 else 1.1e-6
    C = C.toarray()[np.ix_(rest, rest)].astype(np.float64)
    assert largest_violation(X[rest].astype(np.float64), C, 50.0, l1_ratio) < tolerance


@pytest.mark.parametrize("X", [np.eye(5), np.zeros((4, 3)), np.ones((1, 3)), np.zeros((1, 1)), np.zeros((3, 0))])
def test_nothing_to_represent_with(X):
    C, trace = sparse_and_trace(elastic_net(X))
    assert C.shape == (len(X), len(X))
    assert C.nnz == 0
    assert trace.converged


def test_two_equal_samples_represent_each_other():
    C = elastic_net(np.ones((2, 3))).sparse().toarray()
    # min over c of 0.9 |c| + 0.05 c² + 45 (1 − c)²/2
    np.testing.assert_allclose(C, np.array([[0.0, 1.0], [1.0, 0.0]]) * (45 - 0.9) / (45 + 0.1), rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"error_weight": 1.0}, "error_weight must be above 1"),
        ({"l1_ratio": 0.0}, "l1_ratio must be in"),
        ({"l1_ratio": 1.1}, "l1_ratio must be in"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
        ({"X": np.ones(3)}, "X must be a two-dimensional array"),
        ({"X": np.array([[1.0, np.nan]])}, "X must be finite"),
        ({"error_weight": 2e30}, "error_weight must be below"),
    ],
)
def test_errors_name_the_argument(arguments, message):
    with pytest.raises(ValueError, match=message):
        elastic_net(**{"X": np.eye(3), **arguments})
