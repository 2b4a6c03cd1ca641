"""Orthogonal matching pursuit for all samples at once against scikit-learn and a slow pursuit of each sample."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from solved import sparse_and_trace
from subspaces.representation import elastic_net
from subspaces.representation.matching_pursuit import orthogonal_matching_pursuit
from subspaces.utils.types import Array


@pytest.fixture(params=[0, 1], ids="seed={}".format)
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(request.param)


def unit(X: Array) -> Array:
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def slow_pursuit(X, i, n_steps, tol):
    """Return the atoms in the order of choice, their coefficients, and the relative residual after every step."""
    chosen, lengths, residual = [], [], X[i].copy()
    coefficients = np.zeros(0)
    while len(chosen) < n_steps and np.linalg.norm(residual) > tol * np.linalg.norm(X[i]):
        scores = np.abs(X @ residual)
        scores[[i, *chosen]] = -1
        chosen.append(int(scores.argmax()))
        coefficients = np.linalg.lstsq(X[chosen].T, X[i], rcond=None)[0]
        residual = X[i] - coefficients @ X[chosen]
        lengths.append(float(np.linalg.norm(residual) / np.linalg.norm(X[i])))
    return chosen, coefficients, lengths + [lengths[-1]] * (n_steps - len(lengths))


@pytest.mark.parametrize("tol", [1e-6, 0.4])
@pytest.mark.parametrize("batch", [5, 256])
def test_every_step_of_every_sample(rng, monkeypatch, tol, batch):
    monkeypatch.setattr(elastic_net, "MAX_BATCH", batch)
    monkeypatch.setattr(elastic_net, "MIN_BATCH", 1)
    X = rng.standard_normal((18, 6)) * rng.uniform(0.5, 2, (18, 1))
    C, trace = sparse_and_trace(orthogonal_matching_pursuit(X, n_nonzero=4, tol=tol))
    expected, lengths = np.zeros((18, 18)), []
    for i in range(18):
        chosen, coefficients, history = slow_pursuit(X, i, 4, tol)
        expected[chosen, i] = coefficients
        lengths.append(history)
    assert_allclose(C.toarray(), expected, atol=1e-9)
    assert C.nnz == np.count_nonzero(expected)
    assert_allclose(trace.primal, np.max(lengths, axis=0), rtol=1e-9)
    assert trace.n_iter == 4
    assert trace.converged is True
    assert C.has_sorted_indices
    assert C.indices.dtype == C.indptr.dtype == np.int32


def test_stops_when_nothing_is_left(rng):
    basis = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    X = unit(np.vstack([rng.standard_normal((25, 3)) @ basis[3 * k : 3 * k + 3] for k in range(4)]))
    labels = np.repeat(np.arange(4), 25)
    C, trace = sparse_and_trace(orthogonal_matching_pursuit(X, n_nonzero=10))
    assert trace.primal[-1] <= 1e-6
    assert np.all(np.count_nonzero(C.toarray(), axis=0) <= 3)
    C = C.tocoo()
    assert np.all(labels[C.row] == labels[C.col])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_duplicates_and_zero_rows(rng, dtype):
    X = np.repeat(unit(rng.standard_normal((20, 6))), 2, axis=0).astype(dtype)
    X[10] = 0
    X[13] = -X[12]
    C = orthogonal_matching_pursuit(X, n_nonzero=4).sparse().toarray()
    assert np.all(np.isfinite(C))
    assert not C[:, 10].any()
    assert not C[10].any()
    twins = np.setdiff1d(np.arange(40), [10, 11])
    expected = np.where(np.isin(twins, [12, 13]), -1.0, 1.0)
    np.testing.assert_allclose(C[twins ^ 1, twins], expected, rtol=10 * np.finfo(dtype).eps)
    assert np.all(np.count_nonzero(C[:, twins], axis=0) == 1)


@pytest.mark.parametrize("X", [np.eye(5), np.zeros((4, 3)), np.ones((1, 3)), np.zeros((2, 0))])
def test_nothing_to_represent_with(X):
    C = orthogonal_matching_pursuit(X).sparse()
    assert C.shape == (len(X), len(X))
    assert C.nnz == 0


@pytest.mark.parametrize("shape", [(4, 9), (30, 3), (10, 1)])
def test_more_atoms_asked_for_than_there_are(rng, shape):
    X = unit(rng.standard_normal(shape))
    C = orthogonal_matching_pursuit(X, n_nonzero=100).sparse()
    assert np.all(np.isfinite(C.data))
    assert np.all(np.count_nonzero(C.toarray(), axis=0) <= min(shape[0] - 1, shape[1]))
    if shape[0] > shape[1]:
        np.testing.assert_allclose(X.T @ C, X.T, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("multiple", "n_atoms"), [(9.5, 1), (10.5, 2)])
def test_ten_times_the_machine_precision_is_nothing(dtype, multiple, n_atoms):
    X = np.array([[1, 0], [1, multiple * np.finfo(dtype).eps], [0, 1]], dtype=dtype)
    C = orthogonal_matching_pursuit(X, n_nonzero=2, tol=0.0).sparse()
    assert C.dtype == dtype
    assert np.count_nonzero(C.toarray()[:, 0]) == n_atoms


@pytest.mark.parametrize(("multiple", "is_chosen"), [(9.0, False), (10.9, True)])
@pytest.mark.parametrize("direction", [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], ids=["in the span", "orthogonal"])
def test_atoms_that_differ_from_no_use_by_rounding_are_not_chosen(direction, multiple, is_chosen):
    """The first atom leaves (0, 0.5, 0) of the first sample, which the last one meets in its last digits only."""
    last = 0.25 * np.array(direction) + [0.0, 0.25 * multiple * np.finfo(np.float64).eps, 0.0]
    X = np.array([[1.0, 0.5, 0.0], [1.0, 0.0, 0.0], last])
    assert (orthogonal_matching_pursuit(X, n_nonzero=2).dense()[2, 0] != 0) == is_chosen


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_nonzero": 0}, "n_nonzero must be at least 1"),
        ({"X": np.ones(3)}, "X must be a two-dimensional array"),
        ({"X": np.empty((0, 3))}, r"points as rows, got shape \(0, 3\)"),
        ({"X": np.array([[1.0, np.inf]])}, "X must be finite"),
    ],
)
def test_errors_name_the_argument(arguments, message):
    with pytest.raises(ValueError, match=message):
        orthogonal_matching_pursuit(**{"X": np.eye(3), **arguments})
