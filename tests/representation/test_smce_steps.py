"""SMCE step by step against a plain ADMM for one point, its parts against their definitions, and limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from solved import sparse_and_trace
from subspaces.representation import smce as module
from subspaces.representation.coefficients import Trace
from subspaces.representation.smce import smce, smce_path
from subspaces.utils.types import Array


def batch(rng: np.random.Generator, n_samples: int = 6, size: int = 5, m: int = 4) -> tuple[Array, Array]:
    """Gram matrices of unit directions and shares of distances."""
    directions = rng.normal(size=(n_samples, size, m))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    shares = rng.uniform(0.5, 1.5, size=(n_samples, size))
    return directions @ directions.swapaxes(1, 2), shares / shares.sum(axis=1, keepdims=True)


def nearest(X: Array, i: int, n_neighbors: int) -> tuple[Array, Array]:
    distances = np.linalg.norm(X - X[i], axis=1)
    distances[i] = np.inf
    chosen = np.argsort(distances)[:n_neighbors]
    return chosen, distances[chosen]


def bordered(G: Array, target: Array) -> Array:
    """Minimum of ½cᵀGc − target·c with sum one."""
    size = len(G)
    system = np.block([[G, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
    return np.linalg.solve(system, [*target, 1.0])[:size]


def slow_admm(
    G: Array, q: Array, reg: float, tol: float, max_iter: int, c: Array | None = None, u: Array | None = None
) -> tuple[Array, list[float], list[float]]:
    """One point: the sparse copy, and both residuals at every tenth and the last step until they meet `tol`."""
    penalty = max(np.sqrt(reg / 10), 1e-4)
    c = np.zeros_like(q) if c is None else c
    u = np.zeros_like(q) if u is None else u
    primal, dual = [], []
    for n_iter in range(1, max_iter + 1):
        z = bordered(G + penalty * np.eye(len(q)), penalty * (c - u))
        relaxed, before = 1.6 * z - 0.6 * c, c
        c = np.sign(relaxed + u) * np.maximum(np.abs(relaxed + u) - reg * q / penalty, 0)
        u = relaxed + u - c
        if n_iter % 10 == 0 or n_iter == max_iter:
            primal.append(float(np.linalg.norm(z - c) / np.linalg.norm(z)))
            dual.append(float(penalty * np.linalg.norm(c - before + z - relaxed) / (reg * np.linalg.norm(q))))
            if max(primal[-1], dual[-1]) <= tol:
                break
    return c, primal, dual


def worst(histories: list[list[float]]) -> list[float]:
    longest = max(map(len, histories))
    return [max(h[k] for h in histories if k < len(h)) for k in range(longest)]


# --- the solver -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reg", [1e-9, 0.4, 3.0, 50.0])
@pytest.mark.parametrize("max_iter", [1, 9, 10, 11, 20, 3000])
def test_every_step_is_that_of_admm(rng: np.random.Generator, reg: float, max_iter: int) -> None:
    gram, shares = batch(rng)
    max_iter = min(max_iter, 20) if reg == 1e-9 else max_iter  # rounding is all that is left after that
    solution, trace = module._sparse_sum_to_one(gram, shares, reg, 1e-6, max_iter)
    expected, primal, dual = zip(
        *(slow_admm(G, q, reg, 1e-6, max_iter) for G, q in zip(gram, shares, strict=True)), strict=True
    )
    assert_allclose(solution, expected, atol=1e-6 if reg == 1e-9 else 1e-9)
    assert_allclose(trace.primal, worst(list(primal)), rtol=1e-5, atol=1e-12)
    assert_allclose(trace.dual, worst(list(dual)), rtol=1e-5, atol=1e-12)
    n_checks = max(map(len, primal))
    assert trace.n_iter == min(10 * n_checks, max_iter)
    assert trace.converged == (max(p[-1] for p in primal) <= 1e-6 and max(d[-1] for d in dual) <= 1e-6)


def test_a_point_is_done_when_both_residuals_are(rng: np.random.Generator) -> None:
    gram, shares = batch(rng, n_samples=1)
    _, primal, dual = slow_admm(gram[0], shares[0], 3.0, 1e-10, 1000)
    for k in range(3):
        tol = max(primal[k], dual[k])
        for factor, more in [(1 + 1e-6, False), (1 - 1e-6, True)]:
            n_checks = len(slow_admm(gram[0], shares[0], 3.0, factor * tol, 1000)[1])
            trace = module._sparse_sum_to_one(gram, shares, 3.0, factor * tol, 1000)[1]
            assert trace.n_iter == 10 * n_checks
            assert (len(trace.primal) > k + 1) or not more


def test_solver_keeps_float32(rng: np.random.Generator) -> None:
    gram, shares = (part.astype(np.float32) for part in batch(rng))
    solution, trace = module._sparse_sum_to_one(gram, shares, 3.0, 1e-5, 1000)
    assert solution.dtype == np.float32
    assert trace.converged
    again, _ = module._sparse_sum_to_one(gram, shares, 3.1, 1e-5, 1000, solution)
    assert again.dtype == np.float32


def test_solution_for_another_reg_on_the_same_support(rng: np.random.Generator) -> None:
    gram, shares = batch(rng, n_samples=12)
    solution, _ = module._sparse_sum_to_one(gram, shares, 3.0, 1e-11, 20_000)
    solution[4] = 0
    regs = np.where(np.arange(12) % 2, 3.05, 40.0)  # some stay and some do not, side by side
    found = module._same_support(solution, gram, regs[:, None] * shares)
    assert found.dtype == np.float64
    stay = []
    for G, q, reg, old, new in zip(gram, shares, regs, solution, found, strict=True):
        on = np.flatnonzero(old)
        expected = np.zeros_like(old)
        if len(on):
            expected[on] = bordered(G[np.ix_(on, on)], -reg * q[on] * np.sign(old[on]))
        stay.append(bool(np.all(np.sign(expected) == np.sign(old))))
        assert_allclose(new, expected if stay[-1] else old, atol=1e-8)
    assert not found[4].any()
    assert sum(stay[1::2]) > 1
    assert not all(stay)


def test_dependent_directions_on_a_support() -> None:
    ones, bounds = np.ones((1, 2, 2)), np.ones((1, 2))
    assert_allclose(module._same_support(np.array([[0.3, 0.7]]), ones, bounds), [[0.5, 0.5]], rtol=1e-6)
    tilt = np.array([[0.0, 60 * np.finfo(np.float64).eps]])  # against a ridge of 100 eps: half as much each
    assert_allclose(module._same_support(np.array([[0.3, 0.7]]), ones, bounds + tilt), [[0.8, 0.2]], atol=0.02)


def test_multipliers_balance_the_gradient(rng: np.random.Generator) -> None:
    gram, shares = batch(rng, n_samples=12)
    solution, _ = module._sparse_sum_to_one(gram, shares, 3.0, 1e-12, 50_000)
    solution[4], solution[5] = 0, np.eye(5)[2]
    for reg in (3.0, 2.0):
        found = module._multiplier_of(solution, gram, reg * shares)
        for G, bounds, c, multiplier in zip(gram, reg * shares, solution, found, strict=True):
            on, gradient = c != 0, G @ c
            level = (gradient + bounds * np.sign(c))[on].mean() if on.any() else 0
            assert_allclose(multiplier[on], (bounds * np.sign(c))[on], rtol=1e-12)
            assert_allclose(multiplier[~on], np.clip(level - gradient, -bounds, bounds)[~on], atol=1e-12)
            if reg == 3 and np.count_nonzero(on) > 1:
                assert_allclose(gradient + multiplier, level, atol=1e-9)


def test_a_solution_stays_and_a_near_one_is_the_start(rng: np.random.Generator) -> None:
    gram, shares = batch(rng)
    solution, _ = module._sparse_sum_to_one(gram, shares, 3.0, 1e-11, 20_000)
    again, trace = module._sparse_sum_to_one(gram, shares, 3.0, 1e-7, 20_000, solution)
    assert trace.n_iter == 10
    assert_allclose(again, solution, atol=1e-9)
    for reg in (3.3, 20.0):
        first = module._same_support(solution, gram, reg * shares)
        multiplier = module._multiplier_of(first, gram, reg * shares) / np.sqrt(reg / 10)
        found, trace = module._sparse_sum_to_one(gram, shares, reg, 1e-7, 10, solution)
        for G, q, c, u, new in zip(gram, shares, first, multiplier, found, strict=True):
            assert_allclose(new, slow_admm(G, q, reg, 1e-7, 10, c, u)[0], atol=1e-9)


def test_worst_of_several_batches() -> None:
    traces = [Trace(True, 20, [0.5, 0.1], [0.3, 0.2]), Trace(True, 30, [0.2, 0.4, 0.05], [0.6, 0.1, 0.01])]
    joined = module._worst_trace(traces)
    assert joined.converged is True
    assert joined.n_iter == 30
    assert joined.primal == [0.5, 0.4, 0.05]
    assert joined.dual == [0.6, 0.2, 0.01]
    assert module._worst_trace([*traces, Trace(False, 5, [0.9], [0.0])]).converged is False


# --- directions and weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_grams_of_unit_directions(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    monkeypatch.setattr(module, "row_blocks", lambda n, size: [(0, 2), (2, n)])
    X = rng.normal(size=(9, 3)).astype(dtype)
    neighbours = np.array([np.delete(np.arange(9), i)[[0, 3, 5, 7]] for i in range(4, 9)])
    before = X.copy()
    gram, distances = module._direction_grams(X, neighbours, 4)
    assert gram.dtype == distances.dtype == dtype
    assert_array_equal(X, before)
    for i in range(5):
        differences = X[neighbours[i]] - X[4 + i]
        lengths = np.linalg.norm(differences, axis=1)
        unit = differences / lengths[:, None]
        assert_allclose(gram[i], unit @ unit.T, atol=20 * np.finfo(dtype).eps)
        assert_allclose(distances[i], lengths / lengths.mean(), rtol=20 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_duplicates_have_a_tiny_distance_and_no_direction(dtype: Any) -> None:
    X = np.array([[0, 0], [0, 0], [3, 4], [0, 0]], dtype=dtype)
    gram, distances = module._direction_grams(X, np.array([[1, 2], [3, 0]]), 0)
    eps = np.finfo(dtype).eps
    assert_allclose(distances, [[eps, 2], [eps, eps]], rtol=1e-6)
    assert_array_equal(gram, [[[0, 0], [0, 1]], [[0, 0], [0, 0]]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_are_those_of_the_solutions(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, dtype: Any
) -> None:
    X = rng.normal(size=(14, 3)).astype(dtype)
    C, trace = sparse_and_trace(smce(X, reg=4.0, n_neighbors=5, tol=1e-9))
    assert trace.converged
    assert isinstance(C, sparse.csc_array)
    assert C.dtype == dtype
    expected = np.zeros((14, 14))
    for i in range(14):
        chosen, distances = nearest(X.astype(np.float64), i, 5)
        directions, q = (X[chosen] - X[i]) / distances[:, None], distances / distances.sum()
        code = slow_admm(directions @ directions.T, q, 4.0, 1e-9, 10_000)[0]
        expected[chosen, i] = np.abs(code) / q
    assert_allclose(C.toarray(), expected / expected.sum(axis=0), atol=1e-6 if dtype == np.float64 else 1e-3)
    sizes: list[int] = []

    def blocks(n: int, size: int) -> list[tuple[int, int]]:
        sizes.append(size)
        return [(k, min(k + 4, n)) for k in range(0, n, 4)]

    monkeypatch.setattr(module, "row_blocks", blocks)
    split, joined = sparse_and_trace(smce(X, reg=4.0, n_neighbors=5, tol=1e-9))
    assert_allclose(split.toarray(), C.toarray(), atol=1e-8 if dtype == np.float64 else 1e-4)
    assert sizes[0] == 3 * 25 * X.itemsize
    assert sizes[1] == 5 * 3 * X.itemsize
    if dtype == np.float64:
        assert joined.n_iter == trace.n_iter
        assert_allclose(joined.primal, trace.primal, rtol=1e-3)


def test_defaults(rng: np.random.Generator) -> None:
    X = rng.normal(size=(25, 3))
    C = smce(X).sparse()
    same = smce(X, reg=10.0, n_neighbors=20, tol=1e-6, max_iter=10_000).sparse()
    assert_array_equal(C.toarray(), same.toarray())
    assert_array_equal(next(smce_path(X, [10.0])).dense(), same.toarray())
    assert np.all(np.diff(C.indptr) <= 20)


def test_defaults_are_those_of_the_documentation(monkeypatch: pytest.MonkeyPatch) -> None:
    given, original = [], module._solve

    def spy(X: Array, neighbours: Array, *options: Any) -> Any:
        given.append((neighbours.shape[1], *options))
        return original(X, neighbours, *options)

    monkeypatch.setattr(module, "_solve", spy)
    X = np.random.default_rng(0).normal(size=(22, 2))
    smce(X)
    list(smce_path(X, [10.0]))
    assert given == 2 * [(20, 10.0, 1e-6, 10_000, None)]


def test_path_starts_from_the_solution_before(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "row_blocks", lambda n, size: [(0, 5), (5, n)])
    X = rng.normal(size=(14, 3))
    (first, cold), (second, warm) = map(
        sparse_and_trace, smce_path(X, [4.0, 4.0], n_neighbors=5, tol=1e-8, max_iter=5000)
    )
    assert cold.converged
    assert warm.n_iter == 10 < cold.n_iter
    assert_allclose(second.toarray(), first.toarray(), atol=1e-5)


@pytest.mark.parametrize("reg", [0.0, -1.0])
def test_reg_must_be_positive(rng: np.random.Generator, reg: float) -> None:
    with pytest.raises(ValueError, match=f"reg must be positive, got {reg}"):
        smce(rng.normal(size=(9, 3)), reg=reg, n_neighbors=4)
    assert smce(rng.normal(size=(9, 3)), reg=0.5, n_neighbors=4, tol=1e-3).trace.converged


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tolerance_has_a_floor_at_rounding(rng: np.random.Generator, dtype: Any) -> None:
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


def test_codes_that_are_still_zero(rng: np.random.Generator) -> None:
    with pytest.warns(ConvergenceWarning):
        C = smce(rng.normal(size=(14, 3)), reg=1e6, n_neighbors=5, max_iter=1).sparse()
    assert C.nnz == 0
    assert C.shape == (14, 14)


def test_more_neighbours_than_points(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match="n_neighbors must be from 1 to n_samples - 1 = 4, got 5"):
        smce(rng.normal(size=(5, 2)), n_neighbors=5)


def test_columns_sum_to_one_or_nothing_at_any_step(rng: np.random.Generator) -> None:
    X, sums = rng.normal(size=(14, 3)), []
    for reg in np.geomspace(1, 1e3, 40):
        with pytest.warns(ConvergenceWarning):
            sums.append(smce(X, reg=reg, n_neighbors=5, max_iter=1).sparse().sum(axis=0))
    assert_allclose(np.ravel(sums), np.round(np.ravel(sums)), atol=1e-12)
    assert set(np.round(np.ravel(sums))) == {0, 1}


def test_dependent_directions_in_single_precision() -> None:
    ones, bounds = np.ones((1, 2, 2), np.float32), np.ones((1, 2), np.float32)
    found = module._same_support(np.array([[0.3, 0.7]], np.float32), ones, bounds)
    assert_allclose(found, [[0.5, 0.5]], rtol=0.05)


def test_multipliers_stay_within_their_bounds(rng: np.random.Generator) -> None:
    gram, shares = batch(rng, n_samples=12)
    codes = rng.normal(size=shares.shape) * (rng.random(shares.shape) < 0.4)
    found = module._multiplier_of(codes, 10 * gram, shares)
    assert np.all(np.abs(found) <= shares)
    off = codes == 0
    assert np.any(found[off] == shares[off])
    assert np.any(found[off] == -shares[off])
