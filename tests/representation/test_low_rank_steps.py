"""LRR1 step by step against a plain ADMM (dense, one SVD per step, one block), and LRR at its edges."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from solved import dense_and_trace
from subspaces.representation import _nuclear
from subspaces.representation import low_rank as module
from subspaces.representation._nuclear import (
    COEFFICIENT_PENALTY,
    RELAXATION,
    SLACK,
    STAGE_SHARE,
    THRESHOLD_SHARE,
    LowRank,
    Residuals,
    Shrinkage,
    entrywise_match,
    multipliers_of_errors,
    refitted,
)
from subspaces.representation.kernel_low_rank import kernel_lrr
from subspaces.representation.low_rank import lrr
from subspaces.utils.types import Array

OPTIONS: dict[str, Any] = {"tol": 1e-3, "max_iter": 1000}


@pytest.fixture
def X(rng) -> Array:
    """Points near two planes of a 6-dimensional space, with a few gross errors and no entry near one."""
    clean = np.concatenate([rng.normal(size=(9, 2)) @ rng.normal(size=(2, 6)) for _ in range(2)])
    X = clean / np.linalg.norm(clean, 2) + 0.03 * rng.normal(size=clean.shape) + (rng.random(clean.shape) < 0.05)
    return 37.0 * X


def wide(rng: np.random.Generator) -> Array:
    """Points of a slowly decaying spectrum, for which the stages on some of the directions pay."""
    left, right = (np.linalg.qr(rng.normal(size=(size, 30)))[0] for size in (34, 40))
    return 5.0 * (left * 0.6 ** np.arange(30)) @ right.T + 0.01 * rng.normal(size=(34, 40))


class Reference(NamedTuple):
    coefficients: Array
    primal: list[float]
    dual: list[float]
    objective: list[float]
    stages: list[str]


def soft(M: Array, threshold: float) -> Array:
    return np.sign(M) * np.maximum(np.abs(M) - threshold, 0)


def n_directions(stage: str, rank: int, n_kept: int) -> int | None:
    if stage == "all":
        return rank
    size = max(_nuclear.SMALLEST_LEVEL, n_kept + 8 + n_kept // (3 if stage == "leading" else 7))
    return size if size <= STAGE_SHARE * rank else None


def reference(X: Array, reg: float, tol: float, max_iter: int, start: Array | None = None) -> Reference:
    """Minimise ‖B‖_* + reg Σ|F| over X = B Dᵀ + F, B and F shrunk at once, then projected on the constraint."""
    left, singular, right = np.linalg.svd(X, full_matrices=False)
    D, rank = right.T * singular, len(singular)
    ratio = reg / (THRESHOLD_SHARE * np.sqrt(np.mean(X**2)))  # of the penalties of errors and coefficients
    threshold = reg / (ratio * COEFFICIENT_PENALTY)
    kept, slopes = entrywise_match(singular, reg, X.size)
    if start is None:
        B, Y_F = left * kept, (left * slopes) @ right / (ratio * COEFFICIENT_PENALTY)
        n_kept, stages = np.count_nonzero(kept), ["leading", "turned", "all"]
    else:
        B = start.T @ left
        Y_F = multipliers_of_errors(X - B @ D.T, threshold)
        n_kept, stages = np.count_nonzero(kept), ["turned", "all"]
    found, primal, dual, objective, run = [], [], [], [], []
    for stage in stages:
        size = n_directions(stage, rank, n_kept)
        if size is None:
            continue
        rotation = np.eye(rank)[:, :size]
        if stage == "turned":
            rotation = np.linalg.svd(B + ratio * Y_F @ D)[2][:size].T
        atoms, inside = D @ rotation, B @ rotation
        F, Y_B = X - inside @ atoms.T, ratio * Y_F @ atoms
        system = np.eye(size) + ratio * atoms.T @ atoms
        remaining = max_iter - len(primal)
        for _ in range(remaining if stage == "all" else remaining // 2):
            u, s, vt = np.linalg.svd(inside + Y_B, full_matrices=False)
            shrunk = np.maximum(s - 1 / COEFFICIENT_PENALTY, 0)
            n_kept = np.count_nonzero(shrunk)
            J, E = (u * shrunk) @ vt, soft(F + Y_F, threshold)
            J_relaxed = RELAXATION * J + (1 - RELAXATION) * inside
            E_relaxed = RELAXATION * E + (1 - RELAXATION) * F
            previous = inside, F
            wanted = J_relaxed - Y_B + ratio * (X - E_relaxed + Y_F) @ atoms
            inside = np.linalg.solve(system, wanted.T).T
            F = X - inside @ atoms.T
            Y_B, Y_F = Y_B + inside - J_relaxed, Y_F + F - E_relaxed

            def norm(coefficients: Array, errors: Array) -> float:
                return float(np.sqrt((coefficients**2).sum() + ratio * (errors**2).sum()))

            primal.append(norm(J - inside, E - F) / norm(inside, X))
            dual.append(norm(inside - previous[0], F - previous[1]) / norm(Y_B, Y_F))
            objective.append(shrunk.sum() + reg * np.abs(E).sum())
            run.append(stage)
            if max(primal[-1], dual[-1]) <= SLACK[stage] * tol:
                break
        B = inside @ rotation.T
        if stage != "leading" and stage in run:
            kept_part = inside @ vt[:n_kept].T @ vt[:n_kept] @ rotation.T
            size_of_errors = np.abs(X - kept_part @ D.T).sum()
            found.append((np.linalg.norm(kept_part, "nuc") + reg * size_of_errors, kept_part))
    best = min(found, key=lambda candidate: candidate[0])[1]
    return Reference(left @ best.T, primal, dual, objective, run)


def assert_same(X: Array, reg: float, start: Array | None = None, **options: Any) -> Reference:
    expected = reference(X, reg, start=start, **options)
    Z, trace = dense_and_trace(lrr(X, reg=reg, error="l1", start=start, **options))
    assert trace.n_iter == len(expected.primal)
    assert_allclose(trace.primal, expected.primal, rtol=1e-6, atol=1e-10)
    assert_allclose(trace.dual, expected.dual, rtol=1e-6, atol=1e-10)
    assert_allclose(trace.objective, expected.objective, rtol=1e-8)
    assert_allclose(Z, expected.coefficients, atol=1e-8)
    return expected


# --- every step -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reg", [0.004, 0.01, 0.2])
def test_steps_are_those_of_a_plain_admm(X, reg):
    assert set(assert_same(X, reg, **OPTIONS).stages) == {"all"}


def test_steps_do_not_depend_on_the_blocks(X, monkeypatch):
    monkeypatch.setattr(module, "SWEEP_BYTES", 5 * X[:1].nbytes)
    assert_same(X, 0.01, **OPTIONS)


def test_more_points_than_bytes_of_one(X):
    assert_same(X[:, :2], 0.01, **OPTIONS)


@pytest.mark.parametrize("size", [3, 6, 12])
def test_steps_of_the_stages(rng, monkeypatch, size):
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", size)
    assert set(assert_same(wide(rng), 0.1, tol=1e-4, max_iter=1000).stages) == {"leading", "turned", "all"}


@pytest.mark.parametrize("with_stages", [False, True])
def test_steps_from_a_start(X, rng, monkeypatch, with_stages):
    X, reg = (wide(rng), 0.1) if with_stages else (X, 0.01)
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 6)
    start = lrr(X, reg=1.3 * reg, error="l1").dense() + 0.01 * rng.normal(size=(len(X), len(X)))
    before = start.copy()
    stages = set(assert_same(X, reg, start=start, **OPTIONS).stages)
    assert stages == ({"turned", "all"} if with_stages else {"all"})
    assert_array_equal(start, before)


@pytest.mark.parametrize("max_iter", [1, 2, 3, 5, 8, 13])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_half_of_what_remains_is_for_a_stage_that_is_not_the_last(rng, monkeypatch, max_iter):
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 6)
    expected = assert_same(wide(rng), 0.1, tol=1e-9, max_iter=max_iter)
    leading, turned = max_iter // 2, (max_iter - max_iter // 2) // 2
    assert [expected.stages.count(stage) for stage in ("leading", "turned")] == [leading, turned]


def test_best_of_the_stages_is_returned(rng, monkeypatch):
    """Not the last: a few steps on all directions may leave it worse than many on the leading ones."""
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 6)
    X, candidates = wide(rng), []

    def spoilt(low: LowRank, *rest: Any) -> LowRank:
        worse = 1.0 if not candidates else 1.5
        candidates.append(refitted(low, *rest))
        return LowRank(worse * candidates[-1].left, candidates[-1].right, worse * candidates[-1].singular_values)

    monkeypatch.setattr(_nuclear, "refitted", spoilt)
    factors = lrr(X, reg=0.1, error="l1", **OPTIONS).factors
    assert len(candidates) == 2
    assert_allclose(factors.singular_values, candidates[0].singular_values, rtol=1e-12)


def test_stages_that_end_alike(rng, monkeypatch):
    """Errors that cost nothing: no stage finds anything, and none is better."""
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 6)
    assert_array_equal(lrr(wide(rng), reg=1e-6, error="l1").dense(), 0)


def test_last_step_is_exact(rng, monkeypatch):
    """Steps on a subspace only save time: what meets the tolerance has to be confirmed by a whole one."""
    calls = []

    class Watched(Shrinkage):
        def __call__(self, M: Array) -> LowRank:
            low = super().__call__(M)
            calls.append(self.is_exact)
            return low

    for name, value in (("SUBSPACE_SIZE", 4), ("SUBSPACE_SHARE", 2.0)):
        monkeypatch.setattr(_nuclear, name, value)
    monkeypatch.setattr(_nuclear, "Shrinkage", Watched)
    trace = lrr(wide(rng), reg=0.1, error="l1", **OPTIONS).trace
    assert trace.converged
    assert not all(calls)
    assert calls[-1]


# --- precision --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_start", [False, True])
@pytest.mark.parametrize("given", [np.float32, np.float64])
@pytest.mark.parametrize("single", [False, True])
def test_steps_keep_the_working_precision(X, rng, monkeypatch, given, single, with_start):
    """`single`: double precision that is iterated on in single, as large data are."""
    if single:
        monkeypatch.setattr(_nuclear, "SINGLE_PRECISION_SIZE", 1)
    types, sweep = set(), module._l1_sweep

    def watched(X: Array, atoms: Any, low: LowRank, penalty: float, reg: float, *rest: Array) -> Any:
        types.update(part.dtype for part in (X, atoms.atoms, atoms.singular_values, *low, *rest))
        return sweep(X, atoms, low, penalty, reg, *rest)

    monkeypatch.setattr(module, "_l1_sweep", watched)
    start = rng.normal(size=(len(X), len(X))) if with_start else None
    expected = lrr(X, reg=0.01, error="l1", tol=1e-6, max_iter=20_000).dense()
    types.clear()
    found = lrr(X.astype(given), reg=0.01, error="l1", **OPTIONS, start=start)
    factors, trace = found.factors, found.trace
    assert types == {np.dtype(np.float32 if single else given)}
    assert {part.dtype for part in factors} == {np.dtype(given)}
    assert trace.converged
    assert_allclose(factors.dense(), expected, atol=0.05)


def test_start_has_the_precision_of_the_points(X, rng, monkeypatch):
    given, solve = [], module.solve_l21
    monkeypatch.setattr(module, "solve_l21", lambda *args: given.append(args[-1].dtype) or solve(*args))
    lrr(X.astype(np.float32), reg=0.01, start=rng.normal(size=(18, 18)))
    assert given == [np.float32]


def test_residuals_are_finite_where_nothing_is_left_to_explain(rng):
    """Errors without weight: multipliers and coefficients vanish, and with them the scale of the dual residual."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    atoms = _nuclear.Dictionary(None, np.eye(2), np.ones(2))
    low = LowRank(np.zeros((3, 0)), np.zeros((2, 0)), np.zeros(0))
    zeros = np.zeros((3, 2))
    primal, dual, size = module._l1_sweep(X, atoms, low, 1.0, 0.0, zeros.copy(), X.copy(), zeros.copy(), zeros.copy())
    assert (primal, dual, size) == (0.0, 0.0, 4.0)


# --- closed forms, scales and refusals --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [2.0**-20, 1.0, 2.0**20])
def test_squared_errors_have_the_closed_form(X, dtype, scale):
    X = (scale * X).astype(dtype)
    V, singular, _ = np.linalg.svd(X.astype(np.float64), full_matrices=False)
    reg = 1 / float(singular[2] * singular[3])
    shares = np.maximum(0, 1 - 1 / (reg * singular**2))
    assert np.count_nonzero(shares) == 3
    Z, trace = dense_and_trace(lrr(X, reg=reg, error="fro"))
    assert Z.dtype == dtype
    assert (trace.converged, trace.n_iter) == (True, 0)
    assert_allclose(Z, (V * shares) @ V.T, atol=1e-10 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("error", ["l1", "l21", "fro"])
def test_no_errors_and_no_points(X, error):
    V = np.linalg.svd(X, full_matrices=False)[0]
    Z, trace = dense_and_trace(lrr(X, reg=np.inf, error=error))
    assert_allclose(Z, V @ V.T, atol=1e-10)
    assert (trace.converged, trace.n_iter) == (True, 0)
    Z, trace = dense_and_trace(lrr(np.zeros((4, 3)), reg=0.5, error=error))
    assert_array_equal(Z, np.zeros((4, 4)))
    assert (trace.converged, trace.n_iter) == (True, 0)


@pytest.mark.parametrize("error", ["l1", "l21"])
def test_scale_of_data_only_rescales_reg(X, error):
    Z, trace = dense_and_trace(lrr(X, reg=0.01, error=error))
    scaled, scaled_trace = dense_and_trace(lrr(2.0**-9 * X, reg=0.01 * 2.0**9, error=error))
    assert_array_equal(scaled, Z)
    assert scaled_trace == trace


@pytest.mark.parametrize("with_start", [False, True])
def test_errors_of_whole_points_see_the_linear_kernel_alone(X, rng, with_start):
    start = 0.1 * rng.normal(size=(18, 18)) if with_start else None
    expected, expected_trace = dense_and_trace(kernel_lrr(X @ X.T, reg=0.01, tol=1e-4, start=start))
    Z, trace = dense_and_trace(lrr(X, reg=0.01, error="l21", tol=1e-4, start=start))
    assert_allclose(Z, expected, atol=1e-8)
    assert trace.n_iter == expected_trace.n_iter
    assert_allclose(trace.primal, expected_trace.primal, rtol=1e-6)
    assert_allclose(trace.objective, expected_trace.objective, rtol=1e-8)


def test_defaults(X, monkeypatch):
    found, expected = lrr(X, reg=0.01), lrr(X, reg=0.01, error="l21", tol=1e-3, max_iter=1000)
    assert_array_equal(found.dense(), expected.dense())
    assert found.trace == expected.trace
    given: list[Any] = []
    monkeypatch.setattr(_nuclear, "Residuals", lambda *limits: given.append(limits) or Residuals(1.0, 5))
    lrr(X, reg=0.01, error="l1")
    assert given == [(1e-3, 1000)]


@pytest.mark.parametrize("error", ["l1", "l21"])
def test_limits_reach_the_solver(X, error):
    with pytest.warns(ConvergenceWarning, match="max_iter=3 iterations.*tol=1e-12"):
        trace = lrr(X, reg=0.01, error=error, tol=1e-12, max_iter=3).trace
    assert (trace.converged, trace.n_iter) == (False, 3)
    loose = lrr(X, reg=0.01, error=error, tol=0.1).trace
    tight = lrr(X, reg=0.01, error=error, tol=1e-4).trace
    assert loose.n_iter < tight.n_iter


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"error": "l2"}, "error must be 'l1', 'l21' or 'fro', got 'l2'"),
        ({"reg": 0.0}, "reg must be positive, got 0.0"),
        ({"tol": 0.0}, "tol must be positive, got 0.0"),
        ({"max_iter": 0}, "max_iter must be at least 1, got 0"),
        ({"start": np.eye(3)}, r"start must have shape \(18, 18\) for this X, got \(3, 3\)"),
    ],
)
def test_refusals(X, change, message):
    with pytest.raises(ValueError, match=message):
        lrr(X, **{"reg": 0.1, **change})


@pytest.mark.parametrize("error", ["l1", "l21", "fro"])
def test_points_have_two_dimensions(error):
    with pytest.raises(ValueError, match="X must have one row per point, got 1 dimension"):
        lrr(np.ones(3), reg=1.0, error=error)
