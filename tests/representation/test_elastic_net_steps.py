"""The parts of the elastic net, each against its definition, and what happens at the limits of its arguments."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from test_elastic_net import cloud, largest_violation, objectives, unit, weights

from solved import sparse_and_trace
from subspaces.representation import elastic_net as module
from subspaces.representation._elastic_net_newton import Problems
from subspaces.representation.elastic_net import _Codes, elastic_net, elastic_net_path
from subspaces.utils.types import Array

EPS = float(np.finfo(np.float64).eps)


def coherence(X: Array) -> Array:
    gram = np.abs(X @ X.T)
    np.fill_diagonal(gram, -1)
    return gram


# --- arguments --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"error_weight": 1.0}, "error_weight must be above 1"),
        ({"error_weight": float("nan")}, "error_weight must be above 1"),
        ({"error_weight": 1.01e30}, "error_weight must be below 1e"),
        ({"l1_ratio": 0.0}, "l1_ratio must be in"),
        ({"l1_ratio": 1 + 1e-12}, "l1_ratio must be in"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
        ({"X": np.ones(3)}, "X must be a two-dimensional array"),
        ({"X": np.ones((3, 1, 1))}, "X must be a two-dimensional array"),
        ({"X": np.ones((0, 3))}, "X must be a two-dimensional array"),
        ({"X": np.array([[1.0, np.nan], [1.0, 2.0]])}, "X must be finite"),
        ({"start": np.ones((3, 2))}, r"start must be of shape \(3, 3\)"),
        ({"start": np.diag([0.0, np.inf, 0.0])}, "start must be finite"),
    ],
)
def test_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        elastic_net(**{"X": np.eye(3) + 1, **arguments})


@pytest.mark.parametrize(
    "arguments",
    [{"error_weight": 1.0 + 1e-9}, {"error_weight": 2.0}, {"l1_ratio": 1e-3}, {"l1_ratio": 1.0}, {"max_iter": 1}],
)
def test_accepted(arguments: dict[str, Any]) -> None:
    X = np.array([[1.0, 0.0], [0.6, 0.8]])
    C, trace = sparse_and_trace(elastic_net(X, **arguments))
    assert trace.converged
    assert (
        largest_violation(X, C.toarray(), arguments.get("error_weight", 50.0), arguments.get("l1_ratio", 0.9)) < 1.01e-6
    )


def test_the_largest_gamma() -> None:
    module._check(np.ones((2, 2)), 1e30, 0.5, 1)


def test_defaults() -> None:
    X = cloud(np.random.default_rng(0), 12, 3)
    C, trace = sparse_and_trace(elastic_net(X))
    same = elastic_net(X, error_weight=50.0, l1_ratio=0.9, tol=1e-6, max_iter=100).sparse()
    assert_array_equal(C.toarray(), same.toarray())
    path = [found.dense() for found in elastic_net_path(X, [50.0])]
    assert_array_equal(path, [C.toarray()])
    assert largest_violation(X, C.toarray(), 50.0, 0.9) < 1.01e-6
    assert trace.converged is True


def test_start_is_read_by_columns_without_its_diagonal(rng: np.random.Generator) -> None:
    start = rng.normal(size=(4, 4))
    start[1, 2] = 0
    expected = start.T * (1 - np.eye(4))
    for given in (start, sparse.csc_array(start), sparse.csr_matrix(start)):
        rows = module._start_rows(given, 4)
        assert rows.format == "csr"
        assert_array_equal(rows.toarray(), expected)
        assert rows.nnz == 11
    assert module._start_rows(np.zeros((4, 4)), 4).shape == (4, 4)


# --- scaling, records -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("factor", [1e-30, 1.0, 1e30])
def test_atoms_are_a_copy_with_the_longest_of_length_one(rng: np.random.Generator, dtype: Any, factor: float) -> None:
    X = (factor * rng.normal(size=(6, 3))).astype(dtype)
    atoms = module._scaled_atoms(X)
    assert atoms.shape == (7, 3)
    assert atoms.dtype == dtype
    assert not atoms[-1].any()
    expected = X.astype(np.float64) / np.linalg.norm(X.astype(np.float64), axis=1).max()
    assert_allclose(atoms[:-1], expected, rtol=10 * np.finfo(dtype).eps)
    assert not module._scaled_atoms(np.zeros((2, 3), dtype)).any()
    assert module._scaled_atoms(np.arange(6).reshape(3, 2)).dtype == np.float64


def test_batches_side_by_side_in_one_trace() -> None:
    empty = sparse.csr_array((1, 1))
    short, long = _Codes(empty, [0.5, 0.1], [4.0, 3.0], 0), _Codes(empty, [0.3, 0.2, 0.05], [9.0, 8.0, 7.0], 0)
    trace = module._joined_trace([short, long], True)
    assert trace.converged is True
    assert trace.n_iter == 3
    assert_array_equal(trace.primal, [0.5, 0.2, 0.1])
    assert_array_equal(trace.objective, [13, 11, 10])
    assert trace.dual == []
    assert module._joined_trace([short], False).converged is False


@pytest.mark.parametrize("l1_ratio", [0.8, 1.0])
@pytest.mark.parametrize("batch", [9, 256])
def test_trace_tells_of_the_codes_after_every_test(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, l1_ratio: float, batch: int
) -> None:
    monkeypatch.setattr(module, "WORKING_SET", 4)
    monkeypatch.setattr(module, "MAX_BATCH", batch)
    monkeypatch.setattr(module, "MIN_BATCH", 1)
    X = cloud(rng, 40, 8)
    X[3] = 0
    full = elastic_net(X, error_weight=20.0, l1_ratio=l1_ratio).trace
    assert full.converged
    assert full.n_iter == len(full.primal) == len(full.objective) > 3
    rest = np.delete(np.arange(40), 3)
    for n_iter in range(1, full.n_iter + 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            C, trace = sparse_and_trace(elastic_net(X, error_weight=20.0, l1_ratio=l1_ratio, max_iter=n_iter))
        assert trace.converged == (n_iter == full.n_iter)
        assert trace.n_iter == n_iter
        assert trace.primal == full.primal[:n_iter]
        codes = C.toarray()[np.ix_(rest, rest)]
        assert_allclose(trace.primal[-1], largest_violation(X[rest], codes, 20.0, l1_ratio), atol=1e-9)
        assert_allclose(trace.objective[-1], objectives(X[rest], codes, 20.0, l1_ratio).sum(), rtol=1e-9)
    assert np.all(np.diff(full.objective) <= 1e-9 * full.objective[0])


def test_points_that_are_done_are_not_solved_again(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORKING_SET", 6)
    X, calls, original = cloud(rng, 60, 20), [], module.solve_working_sets

    def spy(atoms: Array, problems: Problems, l1_ratio: float) -> Array:
        values = original(atoms, problems, l1_ratio)
        calls.append((problems.rows, problems.working, problems.centre, values))
        return values

    monkeypatch.setattr(module, "solve_working_sets", spy)
    C, trace = sparse_and_trace(elastic_net(X, error_weight=30.0, l1_ratio=0.7))
    assert trace.converged
    assert largest_violation(X, C.toarray(), 30.0, 0.7) < 1.01e-6
    assert len(calls) == trace.n_iter > 3
    assert not calls[0][2].any()
    for (rows, working, _, values), (next_rows, next_working, centre, _) in pairwise(calls):
        left = np.isin(rows, next_rows)
        assert_array_equal(rows[left], next_rows)
        n_support = np.count_nonzero(values[left], axis=1).max()
        assert next_working.shape[1] == max(working.shape[1], n_support + n_support // 2)
        for old, new, code, last in zip(working[left], next_working, values[left], centre, strict=True):
            assert set(old[code != 0]) <= set(new)
            dense = np.zeros(60)
            dense[old] = code
            assert_array_equal(last, dense[new])
    assert len(calls[-1][0]) < 60


def test_warning_counts_the_points_and_names_the_numbers(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BATCH", 25)
    monkeypatch.setattr(module, "MIN_BATCH", 1)
    X = cloud(rng, 80, 10)
    with pytest.warns(ConvergenceWarning) as record:
        C, trace = sparse_and_trace(elastic_net(X, max_iter=1))
    correlations = X @ (X.T - X.T @ C) * weights(X, 50.0, 0.9)
    np.fill_diagonal(correlations, 0)
    n_unfinished = int((np.abs(correlations * (C.toarray() == 0)).max(axis=0) > 0.9 * (1 + 1e-6)).sum())
    assert 0 < n_unfinished < 80
    expected = f"elastic_net: {n_unfinished} of 80 points are not optimal to tol=1e-06 after max_iter=1 tests"
    assert str(record[0].message).startswith(f"{expected} (relative violation {trace.primal[-1]:.1e}); raise max_iter")
    assert not trace.converged


def test_path_passes_its_arguments_on(rng: np.random.Generator) -> None:
    X = cloud(rng, 50, 10)
    for l1_ratio in (0.5, 1.0):
        (C, _), (_, again) = map(sparse_and_trace, elastic_net_path(X, [20.0, 20.0], l1_ratio=l1_ratio, tol=1e-9))
        assert largest_violation(X, C.toarray(), 20.0, l1_ratio) < 1.1e-9
        assert again.n_iter == 1
    with pytest.warns(ConvergenceWarning, match="max_iter=1 tests"):
        list(elastic_net_path(X, [50.0], max_iter=1))


def test_batch_sizes(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    original = module._solve_batch

    def spy(atoms: Array, start: int, stop: int, *rest: Any) -> _Codes:
        sizes.append(stop - start)
        return original(atoms, start, stop, *rest)

    monkeypatch.setattr(module, "_solve_batch", spy)
    X = cloud(rng, 70, 3)
    elastic_net(X)
    monkeypatch.setattr(module, "BATCH_BYTES", 40 * 70 * 8)
    elastic_net(X)
    elastic_net(X.astype(np.float32))
    monkeypatch.setattr(module, "BATCH_BYTES", 8)
    elastic_net(X)
    assert sorted(sizes) == sorted([70, 40, 30, 70, 32, 32, 6])


# --- first problems ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_first_problems(rng: np.random.Generator, dtype: Any) -> None:
    X = cloud(rng, 40, 5) * rng.uniform(0.1, 1, size=(40, 1))
    X[[12, 20]] = 0
    atoms = module._scaled_atoms(X.astype(dtype))
    problems = module._first_problems(atoms, 10, 25, 30.0, 0.8, 1e-6)
    rows = np.delete(np.arange(15), [2, 10])
    points = atoms[10 + rows].astype(np.float64)
    gram = coherence(atoms[:-1].astype(np.float64))[10 + rows]
    threshold, tolerance = 0.8 / gram.max(axis=1), 50 * np.finfo(dtype).eps
    assert_array_equal(problems.rows, rows)
    assert_array_equal(problems.points, points)
    assert problems.points.dtype == problems.dual.dtype == problems.weights.dtype == np.float64
    assert problems.tolerance.dtype == np.float64
    assert_allclose(problems.weights, 30 * threshold, rtol=tolerance)
    assert_allclose(problems.dual, threshold[:, None] * points, rtol=tolerance, atol=1e-300)
    lengths = np.linalg.norm(points, axis=1)
    assert_allclose(
        problems.tolerance, np.maximum(0.8e-6, 32 * np.finfo(dtype).eps * 30 * threshold * lengths), rtol=1e-5
    )
    assert problems.working.shape == problems.centre.shape == (13, 30)
    assert not problems.centre.any()
    assert_array_equal(problems.proximal, np.zeros(13))
    smallest = np.sort(gram, axis=1)[:, -30:][:, :1]
    for row, working, least in zip(gram, problems.working, smallest, strict=True):
        assert len(set(working)) == 30
        assert np.all(row[working] >= least * (1 - tolerance))


def test_few_points_are_all_in_the_working_set(rng: np.random.Generator) -> None:
    atoms = module._scaled_atoms(cloud(rng, 7, 3))
    problems = module._first_problems(atoms, 2, 6, 30.0, 0.8, 1e-6)
    assert problems.working.shape == (4, 6)
    for i, working in enumerate(problems.working):
        assert set(working) == set(range(7)) - {2 + i}


@pytest.mark.parametrize(("multiple", "rows"), [(3.5, []), (4.0, []), (4.5, [0, 1])])
def test_correlations_at_the_level_of_rounding_are_none(multiple: float, rows: list[int]) -> None:
    X = np.array([[1.0, 0.0], [multiple * EPS, 1.0]])
    assert_array_equal(module._first_problems(module._scaled_atoms(X), 0, 2, 50.0, 0.9, 1e-6).rows, rows)
    X[1] *= 1 / 16  # in relation to the point itself
    expected = [1] if rows else []
    assert_array_equal(module._first_problems(module._scaled_atoms(X), 0, 2, 50.0, 0.9, 1e-6).rows, expected)


# --- start ------------------------------------------------------------------------------------------------------


def started(X: Array, codes: Array, first: int, l1_ratio: float, weights: Array | None = None) -> Problems:
    atoms = module._scaled_atoms(X)
    problems = module._first_problems(atoms, first, first + len(codes), 20.0, l1_ratio, 1e-6)
    if weights is not None:
        problems.weights = weights
    module._start_from(problems, codes, atoms, first, l1_ratio)
    return problems


def weights_of(X: Array, codes: Array, first: int, l1_ratio: float) -> Array:
    """The weight at which each code would be optimal along its own direction."""
    fits = codes @ X
    slopes = np.sum(fits * (X[first : first + len(codes)] - fits), axis=1)
    return (l1_ratio * np.abs(codes).sum(axis=1) + (1 - l1_ratio) * (codes**2).sum(axis=1)) / slopes


def test_start_gives_dual_working_set_and_centre(rng: np.random.Generator) -> None:
    X, l1_ratio = cloud(rng, 70, 6), 0.7
    codes = elastic_net(X, error_weight=15.0, l1_ratio=l1_ratio).sparse().toarray().T[5:25].copy()
    codes[3] = 0
    codes[4] *= -1
    problems = started(X, codes, 5, l1_ratio)
    cold = module._first_problems(module._scaled_atoms(X), 5, 25, 20.0, l1_ratio, 1e-6)
    with np.errstate(invalid="ignore"):
        expected = weights_of(X, codes, 5, l1_ratio)[:, None] * (X[5:25] - codes @ X)
    expected[3:5] = cold.dual[3:5]
    assert_allclose(problems.dual, expected, rtol=1e-9, atol=1e-12)
    n_support = np.count_nonzero(codes, axis=1).max()
    size = max(30, n_support + n_support // 2)
    scores = np.abs(expected @ X.T)
    scores[codes != 0] = 1e9
    scores[np.arange(20), np.arange(5, 25)] = -1
    assert problems.working.shape == problems.centre.shape == (20, size)
    assert problems.centre.dtype == np.float64
    for i in range(20):
        assert set(problems.working[i]) == set(np.argsort(scores[i])[-size:])
        assert_array_equal(problems.centre[i], codes[i, problems.working[i]])


def test_start_with_many_coefficients_gets_room_for_half_as_many(rng: np.random.Generator) -> None:
    X = cloud(rng, 70, 6)
    codes = np.zeros((3, 70))
    codes[0, 10:43], codes[1, 20:40] = 0.01, 0.02
    problems = started(X, codes, 0, 0.7)
    assert problems.working.shape == (3, 33 + 16)
    assert set(range(10, 43)) <= set(problems.working[0])
    assert np.all(problems.working != np.arange(3)[:, None])


def test_start_with_all_points(rng: np.random.Generator) -> None:
    X = cloud(rng, 9, 4)
    codes = rng.uniform(0.1, 0.2, size=(3, 9)) * (np.arange(9) != np.arange(2, 5)[:, None])
    problems = started(X, codes, 2, 1.0)
    assert problems.working.shape == (3, 8)
    for i in range(3):
        assert set(problems.working[i]) == set(range(9)) - {2 + i}


def test_start_without_residual_has_no_dual() -> None:
    X = unit(np.array([[1.0, 0.0], [1.0, 0.0], [0.5, 1.0]]))
    problems = started(X, np.array([[0.0, 1.0, 0.0]]), 0, 0.9)
    assert_allclose(problems.dual, 0.9 * X[:1], rtol=1e-12)


@pytest.mark.parametrize("l1_ratio", [0.6, 1.0])
@pytest.mark.parametrize(("ratio", "is_near"), [(999, True), (1000.5, False), (1 / 999, True), (1 / 1001, False)])
def test_start_is_used_within_a_factor_of_a_thousand(l1_ratio: float, ratio: float, is_near: bool) -> None:
    X = unit(np.array([[1.0, 0.0], [1.0, 0.3], [0.5, 1.0]]))
    codes = np.array([[0.0, 0.4, 0.0]])
    weight = weights_of(X, codes, 0, l1_ratio)
    problems = started(X, codes, 0, l1_ratio, weight / ratio)
    expected = weight[:, None] * (X[:1] - codes @ X) if is_near else l1_ratio / coherence(X)[0].max() * X[:1]
    assert_allclose(problems.dual, expected, rtol=1e-12, atol=1e-15)


# --- proximal weights, oracle -----------------------------------------------------------------------------------


def test_proximal_weights_fall_in_the_end() -> None:
    assert_allclose(module._proximal_weights(np.array([10.0, 1e4]), 1.0, 0), [1e-3, 1.0], rtol=1e-12)
    assert_allclose(module._proximal_weights(np.array([10.0, 1e4]), 0.9, 0), [0.0, 0.9], atol=1e-12)
    for n_iter, ridge in [(5, 1e-4), (6, 1e-4), (7, 1e-5), (8, 1e-6), (12, 1e-10), (13, 1e-10), (50, 1e-10)]:
        assert_allclose(module._proximal_weights(np.ones(1), 1.0, n_iter), [ridge], rtol=1e-9)


@pytest.mark.parametrize("size", [0, 1, 3, 5])
def test_largest_entries_of_rows(rng: np.random.Generator, size: int) -> None:
    scores = rng.normal(size=(4, 5))
    found = module._largest(scores, size)
    assert found.shape == (4, size)
    assert_array_equal(np.sort(found, axis=1), np.sort(np.argsort(scores, axis=1)[:, 5 - size :], axis=1))


def test_oracle_finds_the_worst_atom_in_and_out_of_the_working_set(rng: np.random.Generator) -> None:
    X, l1_ratio = cloud(rng, 30, 6), 0.6
    atoms = module._scaled_atoms(X)
    problems = module._first_problems(atoms, 4, 12, 20.0, l1_ratio, 1e-6)[np.array([0, 2, 3, 7])]
    problems.working = problems.working[:, ::3]
    values = rng.normal(size=problems.working.shape) * (rng.random(problems.working.shape) < 0.5)
    values[1] = 0
    correlations = rng.uniform(-1.5, 1.5, size=(4, 30))
    correlations[2] *= 0.1  # there the code is to blame
    scores = correlations.copy()
    found = module._oracle_test(scores, values, problems, 4, l1_ratio)
    codes = np.zeros((4, 30))
    np.put_along_axis(codes, problems.working, values, axis=1)
    on = np.abs(correlations - (1 - l1_ratio) * codes - l1_ratio * np.sign(codes))
    violation = np.where(codes != 0, on, np.abs(correlations) - l1_ratio)
    own = np.arange(4), 4 + problems.rows
    violation[own] = -1
    assert_allclose(found, np.maximum(violation.max(axis=1), 0), rtol=1e-12)
    expected = np.where(codes != 0, np.inf, np.abs(correlations))
    expected[own] = -1
    assert_array_equal(scores, expected)
    penalty = l1_ratio * np.abs(values).sum(axis=1) + (1 - l1_ratio) / 2 * (values**2).sum(axis=1)
    fit = (problems.dual**2).sum(axis=1) / (2 * problems.weights)
    assert_allclose(module._objective(values, problems, l1_ratio), penalty + fit, rtol=1e-12)


def test_no_code_no_violation() -> None:
    C, trace = sparse_and_trace(elastic_net(np.diag([1.0, 2.0, 0.0])))
    assert C.nnz == 0
    assert trace.converged
    assert (trace.n_iter, trace.primal, trace.objective) == (1, [0.0], [0.0])
