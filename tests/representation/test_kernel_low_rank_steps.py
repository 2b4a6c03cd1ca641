"""KLRR step by step against a plain ADMM (an SVD per step, its error step by bisection), and KLRR at its edges."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from solved import dense_and_trace
from subspaces.representation import _nuclear
from subspaces.representation import kernel_low_rank as module
from subspaces.representation._nuclear import RELAXATION, LowRank, Residuals, Shrinkage, levels, squared_error_match
from subspaces.representation.inverse import IndefiniteKernelWarning
from subspaces.representation.kernel_low_rank import (
    kernel_lrr,
    metric_shrinkage,
    solve_l21,
    squared_error_coefficients,
)
from subspaces.utils import blocks
from subspaces.utils.types import Array

OPTIONS: dict[str, Any] = {"tol": 1e-4, "max_iter": 500}
both_precisions = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def kernel(rng: np.random.Generator, n: int = 24, decay: float = 0.75) -> Array:
    """Full rank, eigenvalues that decay, none of them near one."""
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    return 300.0 * (basis * decay ** np.arange(n)) @ basis.T


def decomposed(K: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(K)
    return np.ascontiguousarray(vectors[:, ::-1]), values[::-1].copy()


def by_bisection(W: Array, spectrum: Array, reg: float, offset: Array) -> tuple[Array, Array]:
    """Minimise reg sqrt(pᵀΛp + c) + ½‖p − w‖² by halving the interval that holds its size s = sqrt(pᵀΛp + c)."""
    lower, upper = np.zeros(len(W)), np.sqrt(W**2 @ spectrum + offset)
    for _ in range(80):
        middle = (lower + upper) / 2
        P = W * (middle[:, None] / (middle[:, None] + reg * spectrum))
        is_larger = P**2 @ spectrum + offset > middle**2
        lower, upper = np.where(is_larger, middle, lower), np.where(is_larger, upper, middle)
    sizes = np.where((offset == 0) & (W**2 @ (1 / spectrum) <= reg**2), 0, (lower + upper) / 2)
    return W * (sizes[:, None] / (sizes[:, None] + reg * spectrum)), sizes


class Reference(NamedTuple):
    coefficients: Array
    primal: list[float]
    dual: list[float]
    objective: list[float]
    sizes: list[int]


def reference(K: Array, reg: float, tol: float, max_iter: int, start: Array | None = None) -> Reference:
    """Minimise ‖B‖_* + reg Σ‖Λ^½(v_i − b_i)‖ by ADMM with penalty one, on more and more directions."""
    V, spectrum = decomposed(K)
    n, rank = V.shape
    kept, size = squared_error_match(spectrum, reg, n)
    if start is None:
        errors, multipliers = V * (1 - kept), V * np.minimum(1, reg / size * spectrum)
    else:
        B = start.T @ V
        errors = V - B
        left, values, right = np.linalg.svd(
            B + reg * errors * spectrum / np.sqrt(errors**2 @ spectrum)[:, None], full_matrices=False
        )
        multipliers = (left * np.minimum(values, 1)) @ right
    primal, dual, objective, run = [], [], [], []
    n_kept, solved, lengths = np.count_nonzero(kept), 0, np.zeros(n)
    for level in levels(rank, n_kept):
        target, offset = V[:, :level], V[:, level:] ** 2 @ spectrum[level:]
        if solved:
            inverse = np.array([1 / length if length else 0 for length in lengths])
            fresh = slice(solved, level)
            multipliers[:, fresh] = reg * inverse[:, None] * errors[:, fresh] * spectrum[fresh]
        P, Y = errors[:, :level], multipliers[:, :level]
        remaining = max_iter - len(primal)
        for _ in range(remaining if level == rank else remaining // 2):
            left, values, right = np.linalg.svd(target - P + Y, full_matrices=False)
            shrunk = np.maximum(values - 1, 0)
            n_kept = np.count_nonzero(shrunk)
            J = (left * shrunk) @ right
            W = target - (RELAXATION * J + (1 - RELAXATION) * (target - P)) + Y
            before = P
            P, lengths = by_bisection(W, spectrum[:level], reg, offset)
            Y = W - P
            primal.append(float(np.linalg.norm(target - J - P)) / level**0.5)
            dual.append(float(np.linalg.norm(P - before) / np.linalg.norm(Y)))
            objective.append(shrunk.sum() + reg * lengths.sum())
            run.append(level)
            if max(primal[-1], dual[-1]) <= tol:
                break
        errors[:, :level], multipliers[:, :level], solved = P, Y, level
    return Reference(V @ J.T, primal, dual, objective, run)


def assert_same(K: Array, reg: float, start: Array | None = None, **options: Any) -> Reference:
    expected = reference(K, reg, start=start, **options)
    Z, trace = dense_and_trace(kernel_lrr(K, reg=reg, start=start, **options))
    assert trace.n_iter == len(expected.primal)
    assert_allclose(trace.primal, expected.primal, rtol=1e-6, atol=1e-9)
    assert_allclose(trace.dual, expected.dual, rtol=1e-6, atol=1e-9)
    assert_allclose(trace.objective, expected.objective, rtol=1e-8)
    assert_allclose(Z, expected.coefficients, atol=1e-7)
    return expected


# --- every step -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reg", [0.03, 0.1, 0.4])
def test_steps_are_those_of_a_plain_admm(rng, reg):
    assert set(assert_same(kernel(rng), reg, **OPTIONS).sizes) == {24}


@pytest.mark.parametrize("size", [3, 6])
def test_steps_on_more_and_more_directions(rng, monkeypatch, size):
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", size)
    sizes = assert_same(kernel(rng, n=40, decay=0.6), 0.1, **OPTIONS).sizes
    assert len(set(sizes)) >= 3
    assert sizes[-1] == 40


@pytest.mark.parametrize("size", [6, 32])
def test_steps_from_a_start(rng, monkeypatch, size):
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", size)
    K = kernel(rng, n=32, decay=0.6)
    start = kernel_lrr(K, reg=0.13).dense() + 0.01 * rng.normal(size=(32, 32))
    before = start.copy()
    assert_same(K, 0.1, start=start, **OPTIONS)
    assert_array_equal(start, before)


def test_steps_do_not_depend_on_the_blocks(rng, monkeypatch):
    K = kernel(rng)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 5 * K[:1].nbytes)
    assert_same(K, 0.1, **OPTIONS)


@pytest.mark.parametrize("max_iter", [1, 2, 3, 7, 12])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_half_of_what_remains_is_for_a_level_that_is_not_the_last(rng, monkeypatch, max_iter):
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 6)
    assert_same(kernel(rng, n=32, decay=0.6), 0.1, tol=1e-9, max_iter=max_iter)


def test_points_without_errors_on_the_first_level(rng, monkeypatch):
    """Points inside of the leading directions: their errors have no size, and no direction of a multiplier."""
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 4)
    K = np.zeros((26, 26))
    K[:20, :20] = kernel(rng, n=20, decay=0.8)
    K[20:, 20:] = 1e4 * np.eye(6)
    Z, trace = dense_and_trace(kernel_lrr(K, reg=0.1, **OPTIONS))
    assert trace.converged
    assert_allclose(Z[20:, 20:], np.eye(6), atol=1e-3)
    assert_allclose(Z[:20, 20:], 0, atol=1e-3)


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
    trace = kernel_lrr(kernel(rng, n=40, decay=0.6), reg=0.1).trace
    assert trace.converged
    assert not all(calls)
    assert calls[-1]


@both_precisions
@pytest.mark.parametrize("with_start", [False, True])
def test_steps_keep_the_precision(rng, monkeypatch, dtype, with_start):
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 6)
    types, sweep = set(), module._sweep

    def watched(target: Array, low: LowRank, P: Array, Y: Array, metric: Array, reg: float, *rest: Array) -> Any:
        types.update(part.dtype for part in (target, *low, P, Y, metric, *rest))
        return sweep(target, low, P, Y, metric, reg, *rest)

    monkeypatch.setattr(module, "_sweep", watched)
    K = kernel(rng, n=32, decay=0.6)
    start = 0.1 * rng.normal(size=(32, 32)) if with_start else None
    expected = kernel_lrr(K, reg=0.1, tol=1e-6, max_iter=5000).dense()
    types.clear()
    found = kernel_lrr(K.astype(dtype), reg=0.1, error="l21", **OPTIONS, start=start)
    factors, trace = found.factors, found.trace
    assert types == {part.dtype for part in factors} == {np.dtype(dtype)}
    assert trace.converged
    assert_allclose(factors.dense(), expected, atol=5e-3)


def test_dual_residual_of_nothing_is_zero():
    P, Y, sizes = np.zeros((2, 2)), np.zeros((2, 2)), np.zeros(2)
    low = LowRank(np.zeros((2, 0)), np.zeros((2, 0)), np.zeros(0))
    assert module._sweep(np.zeros((2, 2)), low, P, Y, np.ones(2), 1.0, np.zeros(2), sizes) == (0.0, 0.0)


def test_multipliers_of_a_start(rng):
    """A point without an error has none; the others lie in the unit ball of the spectral norm."""
    spectrum = np.array([4.0, 1.0, 0.25])
    B, errors = rng.normal(size=(7, 3)), rng.normal(size=(7, 3))
    errors[2] = 0
    found = module._multipliers_of(errors, B, spectrum, 0.7)
    sizes = np.sqrt(errors**2 @ spectrum)
    sizes[2] = 1
    left, values, right = np.linalg.svd(B + 0.7 * errors * spectrum / sizes[:, None], full_matrices=False)
    assert values.max() > 1
    assert_allclose(found, (left * np.minimum(values, 1)) @ right, atol=1e-12)


# --- the error step ---------------------------------------------------------------------------------------------


@both_precisions
@pytest.mark.parametrize("reg", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("offsets", ["none", "some", "all"])
def test_error_step(rng, reg, offsets, dtype):
    spectrum = np.sort(10.0 ** rng.uniform(-3, 2, size=6))[::-1].astype(dtype)
    W = (rng.normal(size=(40, 6)) * 10.0 ** rng.uniform(-3, 2, size=(40, 1))).astype(dtype)
    W[4] = 0
    offset = (rng.random(40) * {"none": 0, "some": np.arange(40) % 2, "all": 1}[offsets]).astype(dtype)
    expected, sizes = by_bisection(*(array.astype(np.float64) for array in (W, spectrum)), reg, offset.astype(float))
    tolerance = {"rtol": 1e-8, "atol": 1e-11} if dtype == np.float64 else {"rtol": 1e-3, "atol": 1e-4}
    for guess in (None, np.zeros(40, dtype), sizes.astype(dtype), (100 * sizes + 1).astype(dtype)):
        before = W.copy(), offset.copy(), None if guess is None else guess.copy()
        found, found_sizes = metric_shrinkage(W, spectrum, reg, offset, guess)
        assert found.dtype == found_sizes.dtype == dtype
        assert_allclose(found, expected, **tolerance)
        assert_allclose(found_sizes, sizes, **tolerance)
        for array, copy in zip((W, offset, guess), before, strict=True):
            assert_array_equal(array, copy)


def test_error_step_at_its_threshold():
    """Σ w²/Λ = reg²: exactly there the error still vanishes."""
    spectrum, W = np.array([4.0, 1.0]), np.array([[2.0, 0.0], [0.0, 1.0], [2.5, 0.0], [0.0, 0.5], [0.0, 0.0]])
    found, sizes = metric_shrinkage(W, spectrum, 1.0, np.zeros(5))
    assert_array_equal(found[[0, 1, 3, 4]], 0)
    assert_array_equal(sizes[[0, 1, 3, 4]], 0)
    assert_allclose(sizes[2], 2 * 2.5 - 4)  # one direction: s = sqrt(Λ)|w| − reg Λ
    assert_allclose(found[2], [0.5, 0])


def test_error_step_takes_few_newton_steps(rng, monkeypatch):
    """The iteration ends when it has converged, and at once from the sizes themselves."""
    steps, einsum = [], np.einsum
    monkeypatch.setattr(module.np, "einsum", lambda *args: steps.append(1) or einsum(*args))
    spectrum, W = np.array([9.0, 1.0, 0.1]), rng.normal(size=(30, 3)) * 3
    for offset in (np.zeros(30), rng.random(30)):
        steps.clear()
        _, sizes = metric_shrinkage(W, spectrum, 0.3, offset)
        assert 1 < len(steps) < 12
        steps.clear()
        metric_shrinkage(W, spectrum, 0.3, offset, sizes)
        assert len(steps) == 1


# --- closed forms and the kernel matrix -------------------------------------------------------------------------


@both_precisions
@pytest.mark.parametrize("scale", [2.0**-30, 1.0, 2.0**30])
def test_closed_forms_at_any_scale(rng, scale, dtype):
    K = (scale * kernel(rng, n=8)).astype(dtype)
    V, spectrum = decomposed(K.astype(np.float64))
    reg = 1 / float(spectrum[2] * spectrum[3]) ** 0.5
    shares = np.maximum(0, 1 - 1 / (reg * spectrum))
    Z, trace = dense_and_trace(kernel_lrr(K, reg=reg, error="fro"))
    assert Z.dtype == dtype
    assert (trace.converged, trace.n_iter) == (True, 0)
    assert_allclose(Z, (V * shares) @ V.T, atol=1e-10 if dtype == np.float64 else 1e-4)
    factors = kernel_lrr(K, reg=reg, error="fro", **OPTIONS).factors
    assert factors.singular_values.shape == (3,)
    for error in ("l21", "fro"):
        Z, trace = dense_and_trace(kernel_lrr(K, reg=np.inf, error=error))
        assert_allclose(Z, np.eye(8), atol=1e-4)
        assert (trace.converged, trace.n_iter) == (True, 0)


def test_scale_of_the_kernel_only_rescales_reg(rng):
    K = kernel(rng)
    Z, trace = dense_and_trace(kernel_lrr(K, reg=0.1))
    scaled, scaled_trace = dense_and_trace(kernel_lrr(2.0**-20 * K, reg=0.1 * 2.0**10))
    assert_allclose(scaled, Z, atol=1e-10)
    assert scaled_trace.n_iter == trace.n_iter


def test_shares_of_squared_errors():
    found = squared_error_coefficients(np.eye(4), np.array([8.0, 4.0, 2.0, 1.0]), 0.5)
    assert_allclose(found.singular_values, [0.75, 0.5])
    assert_array_equal(found.left, np.eye(4)[:, :2])
    assert_array_equal(found.right, np.eye(4)[:, :2])


@both_precisions
def test_eigenvalues_below_rounding_count_as_zero(dtype):
    limit = 4 * float(np.finfo(dtype).eps)  # the root of 16 points
    for smallest, rank in ((1.5 * limit, 16), (limit, 15), (0.5 * limit, 15), (-limit, 15)):
        K = np.diag(np.r_[np.full(15, 1.0), smallest]).astype(dtype)
        Z = kernel_lrr(K, reg=np.inf).dense()
        assert_allclose(np.trace(Z), rank, rtol=1e-5)
    for error in ("l21", "fro"):
        Z, trace = dense_and_trace(kernel_lrr(np.zeros((5, 5), dtype), reg=1.0, error=error))
        assert_array_equal(Z, np.zeros((5, 5)))
        assert (Z.dtype, trace.converged, trace.n_iter) == (dtype, True, 0)


@pytest.mark.parametrize(
    ("values", "told"),
    [([1.0, -0.9e-4], False), ([1.0, -1.1e-4], True), ([-1.0, -2.0], True), ([1e-7, -1.0], True), ([0.0, 0.0], False)],
)
def test_negative_eigenvalues_are_told_and_left_out(values, told):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        Z = kernel_lrr(np.diag(values), reg=np.inf).dense()
    assert [message.category for message in said] == [IndefiniteKernelWarning] * told
    assert_allclose(Z, np.diag(np.array(values) > 0), atol=1e-12)


def test_kernel_is_left_alone(rng):
    K = kernel(rng)
    K.flags.writeable = False
    before = K.copy()
    kernel_lrr(K, reg=0.1)
    assert_array_equal(K, before)


def test_defaults(rng, monkeypatch):
    given: list[Any] = []
    monkeypatch.setattr(_nuclear, "Residuals", lambda *limits: given.append(limits) or Residuals(1.0, 5))
    K = kernel(rng)
    found, expected = kernel_lrr(K, reg=0.1).dense(), kernel_lrr(K, reg=0.1, error="l21").dense()
    assert given == [(1e-3, 500)] * 2
    np.testing.assert_array_equal(found, expected)
    assert np.abs(found - kernel_lrr(K, reg=0.1, error="fro").dense()).max() > 1e-3


def test_limits_reach_the_solver(rng):
    with pytest.warns(ConvergenceWarning, match="max_iter=2 iterations.*tol=1e-09"):
        trace = kernel_lrr(kernel(rng), reg=0.1, tol=1e-9, max_iter=2).trace
    assert (trace.converged, trace.n_iter) == (False, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"error": "l1"}, "error must be 'l21' or 'fro', got 'l1'"),
        ({"K": np.ones((3, 4))}, r"K must be a square kernel matrix, got shape \(3, 4\)"),
        ({"K": np.ones(3)}, r"K must be a square kernel matrix, got shape \(3,\)"),
        ({"K": np.ones((2, 2, 2))}, r"K must be a square kernel matrix, got shape \(2, 2, 2\)"),
        ({"reg": 0.0}, "reg must be positive"),
        ({"tol": 0.0}, "tol must be positive"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
        ({"start": np.eye(2)}, r"start must have shape \(3, 3\) for this X, got \(2, 2\)"),
    ],
)
def test_refusals(change, message):
    with pytest.raises(ValueError, match=message):
        kernel_lrr(**{"K": np.eye(3), "reg": 0.1, **change})


def test_solver_returns_the_rows_of_the_reduced_problem(rng):
    V, spectrum = decomposed(kernel(rng))
    low, trace = solve_l21(V, spectrum, 0.1, 1e-4, 500, None)
    assert_allclose(V @ low.dense().T, kernel_lrr(kernel_of(V, spectrum), reg=0.1, **OPTIONS).dense(), atol=1e-6)
    assert trace.converged


def kernel_of(V: Array, spectrum: Array) -> Array:
    return (V * spectrum) @ V.T
