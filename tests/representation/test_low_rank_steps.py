"""LRR1, KLRR and LatLRR iteration by iteration against plain dense ADMM with one SVD per step.

On data too small for stages on some of the directions: that those do not move the optimum is tested in test_low_rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal

from solved import dense_and_trace, latent_dense
from subspaces.representation import _nuclear
from subspaces.representation import low_rank as module
from subspaces.representation._nuclear import (
    COEFFICIENT_PENALTY,
    RELAXATION,
    THRESHOLD_SHARE,
    LowRank,
    Shrinkage,
    entrywise_match,
    refitted,
    squared_error_match,
)
from subspaces.representation.latent_low_rank import latent_lrr
from subspaces.representation.low_rank import kernel_lrr, lrr, metric_shrinkage
from subspaces.utils import blocks
from subspaces.utils.types import Array

OPTIONS: dict[str, Any] = {"tol": 1e-3, "max_iter": 1000}


Step = tuple[float, float, float]
"""Primal residual, dual residual and objective after an iteration."""
Reference = tuple[list[Array], list[Step]]


def assert_same(expected: Reference, trace: Any, *found: Array) -> None:
    """Compare every iteration and the result."""
    parts, steps = expected
    primal, dual, objective = zip(*steps, strict=True)
    assert trace.n_iter == len(steps)
    assert_allclose(trace.primal, primal, rtol=1e-6, atol=1e-9)
    assert_allclose(trace.dual, dual, rtol=1e-6, atol=1e-9)
    assert_allclose(trace.objective, objective, rtol=1e-8)
    for one, other in zip(found, parts, strict=True):
        assert_allclose(one, other, atol=1e-7)


def shrunk(M: Array, threshold: float = 1 / COEFFICIENT_PENALTY) -> tuple[Array, Array, Array]:
    """Return M with smaller singular values, those that are left, and their right singular vectors as rows."""
    left, values, right = np.linalg.svd(M, full_matrices=False)
    values = np.maximum(values - threshold, 0)
    return (left * values) @ right, values[values > 0], right[values > 0]


def soft(M: Array, threshold: float) -> Array:
    return np.sign(M) * np.maximum(np.abs(M) - threshold, 0)


def near_planes(rng: np.random.Generator, n_each: int = 9, m: int = 6) -> Array:
    """Return samples near two planes, with a few gross errors and no entry near one."""
    clean = np.concatenate([rng.normal(size=(n_each, 2)) @ rng.normal(size=(2, m)) for _ in range(2)])
    X = clean / np.linalg.norm(clean, 2) + 0.03 * rng.normal(size=clean.shape) + (rng.random(clean.shape) < 0.05)
    return 37.0 * X


def wide(rng: np.random.Generator, n: int = 34, m: int = 40, rank: int = 30) -> Array:
    """Return samples of a decaying spectrum, for which the stages on some of the directions pay."""
    left, right = (np.linalg.qr(rng.normal(size=(size, rank)))[0] for size in (n, m))
    return 5.0 * (left * 0.6 ** np.arange(rank)) @ right.T + 0.01 * rng.normal(size=(n, m))


# ------------------------------------------------------------------ LRR1


def lrr1_reference(X: Array, reg: float, tol: float, max_iter: int) -> Reference:
    """Minimise ‖B‖_* + reg Σ|F| over X = B Dᵀ + F, B and F shrunk at once, then projected on the constraint."""
    left, singular, right = np.linalg.svd(X, full_matrices=False)
    D = right.T * singular
    ratio = reg / (THRESHOLD_SHARE * np.sqrt(np.mean(X**2)))  # of the penalties of errors and coefficients
    threshold = reg / (ratio * COEFFICIENT_PENALTY)
    kept, slopes = entrywise_match(singular, reg, X.size)
    B, Y_F = left * kept, (left * slopes) @ right / (ratio * COEFFICIENT_PENALTY)
    F, Y_B = X - B @ D.T, ratio * Y_F @ D
    system = np.eye(len(singular)) + ratio * D.T @ D
    steps: list[Step] = []

    def norm(coefficients: Array, errors: Array) -> float:
        return float(np.sqrt((coefficients**2).sum() + ratio * (errors**2).sum()))

    while len(steps) < max_iter and (not steps or max(steps[-1][:2]) > tol):
        (J, values, directions), E = shrunk(B + Y_B), soft(F + Y_F, threshold)
        J_relaxed, E_relaxed = RELAXATION * J + (1 - RELAXATION) * B, RELAXATION * E + (1 - RELAXATION) * F
        previous = B, F
        B = np.linalg.solve(system, (J_relaxed - Y_B + ratio * (X - E_relaxed + Y_F) @ D).T).T
        F = X - B @ D.T
        Y_B, Y_F = Y_B + B - J_relaxed, Y_F + F - E_relaxed
        primal = norm(J - B, E - F) / norm(B, X)
        dual = norm(B - previous[0], F - previous[1]) / norm(Y_B, Y_F)
        steps.append((primal, dual, float(values.sum() + reg * np.abs(E).sum())))
    return [left @ (B @ directions.T @ directions).T], steps


@pytest.mark.parametrize("reg", [0.004, 0.01, 0.2])
@pytest.mark.parametrize("m", [2, 6])
def test_lrr1_steps(rng, monkeypatch, reg, m):
    X = near_planes(rng)[:, :m]
    for n_bytes in (module.SWEEP_BYTES, 5 * X[:1].nbytes):
        monkeypatch.setattr(module, "SWEEP_BYTES", n_bytes)
        Z, trace = dense_and_trace(lrr(X, reg=reg, error="l1", **OPTIONS))
        assert_same(lrr1_reference(X, reg, **OPTIONS), trace, Z)


def test_best_of_the_stages_is_returned(rng, monkeypatch):
    """Not the last: a few steps on all directions may leave it worse than many on the leading ones."""
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 6)
    candidates = []

    def spoilt(low: LowRank, *rest: Any) -> LowRank:
        worse = 1.0 if not candidates else 1.5
        candidates.append(refitted(low, *rest))
        return LowRank(worse * candidates[-1].left, candidates[-1].right, worse * candidates[-1].singular_values)

    monkeypatch.setattr(_nuclear, "refitted", spoilt)
    factors = lrr(wide(rng), reg=0.1, error="l1", **OPTIONS).factors
    assert len(candidates) == 2
    assert_allclose(factors.singular_values, candidates[0].singular_values, rtol=1e-12)


# ------------------------------------------------------------------ KLRR


def kernel(rng: np.random.Generator, n: int = 24, decay: float = 0.75) -> Array:
    """Return a kernel matrix of full rank with eigenvalues that decay, none of them near one."""
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    return 300.0 * (basis * decay ** np.arange(n)) @ basis.T


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


def klrr_reference(K: Array, reg: float, tol: float, max_iter: int) -> Reference:
    """Minimise ‖B‖_* + reg Σ‖Λ^½(v_i − b_i)‖ by ADMM with penalty one."""
    values, vectors = np.linalg.eigh(K)
    V, spectrum = np.ascontiguousarray(vectors[:, ::-1]), values[::-1].copy()
    n, rank = V.shape
    kept, size = squared_error_match(spectrum, reg, n)
    P, Y = V * (1 - kept), V * np.minimum(1, reg / size * spectrum)
    steps: list[Step] = []
    while len(steps) < max_iter and (not steps or max(steps[-1][:2]) > tol):
        J, values, _ = shrunk(V - P + Y, 1)
        W = V - (RELAXATION * J + (1 - RELAXATION) * (V - P)) + Y
        before = P
        P, lengths = by_bisection(W, spectrum, reg, np.zeros(n))
        Y = W - P
        dual = np.linalg.norm(P - before) / np.linalg.norm(Y)
        steps.append((np.linalg.norm(V - J - P) / rank**0.5, dual, values.sum() + reg * lengths.sum()))
    return [V @ J.T], steps


@pytest.mark.parametrize("reg", [0.03, 0.1, 0.4])
def test_klrr_steps(rng, monkeypatch, reg):
    K, options = kernel(rng), {"tol": 1e-4, "max_iter": 500}
    for n_bytes in (blocks.BLOCK_BYTES, 5 * K[:1].nbytes):
        monkeypatch.setattr(blocks, "BLOCK_BYTES", n_bytes)
        Z, trace = dense_and_trace(kernel_lrr(K, reg=reg, **options))
        assert_same(klrr_reference(K, reg, **options), trace, Z)


def test_samples_without_errors_on_the_first_level(rng, monkeypatch):
    """Samples inside of the leading directions: their errors have no size, and no direction of a multiplier."""
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 4)
    K = np.zeros((26, 26))
    K[:20, :20] = kernel(rng, n=20, decay=0.8)
    K[20:, 20:] = 1e4 * np.eye(6)
    Z, trace = dense_and_trace(kernel_lrr(K, reg=0.1, tol=1e-4, max_iter=500))
    assert trace.converged
    assert_allclose(Z[20:, 20:], np.eye(6), atol=1e-3)
    assert_allclose(Z[:20, 20:], 0, atol=1e-3)


@pytest.mark.parametrize("solve", [kernel_lrr, latent_lrr], ids=["KLRR", "LatLRR"])
def test_last_step_is_exact(rng, monkeypatch, solve):
    """Steps on a subspace only save time: what meets the tolerance has to be confirmed by a whole one."""
    calls: dict[int, list[bool]] = {}

    class Watched(Shrinkage):
        def __call__(self, M: Array) -> LowRank:
            low = super().__call__(M)
            calls.setdefault(id(self), []).append(self.is_exact)
            return low

    for name, value in (("SUBSPACE_SIZE", 4), ("SUBSPACE_SHARE", 2.0), ("Shrinkage", Watched)):
        monkeypatch.setattr(_nuclear, name, value)
    assert solve(kernel(rng, n=40, decay=0.6), reg=0.1, max_iter=5000).trace.converged
    assert not all(all(exact) for exact in calls.values())
    assert all(exact[-1] for exact in list(calls.values())[-1:])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("reg", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("offsets", ["none", "some", "all"])
def test_metric_shrinkage(rng, reg, offsets, dtype):
    spectrum = np.sort(10.0 ** rng.uniform(-3, 2, size=6))[::-1].astype(dtype)
    W = (rng.normal(size=(40, 6)) * 10.0 ** rng.uniform(-3, 2, size=(40, 1))).astype(dtype)
    W[4] = 0
    offset = (rng.random(40) * {"none": 0, "some": np.arange(40) % 2, "all": 1}[offsets]).astype(dtype)
    expected, sizes = by_bisection(*(array.astype(np.float64) for array in (W, spectrum)), reg, offset.astype(float))
    tolerance = {"rtol": 1e-8, "atol": 1e-11} if dtype == np.float64 else {"rtol": 1e-3, "atol": 1e-4}
    for guess in (None, np.zeros(40, dtype), sizes.astype(dtype), (100 * sizes + 1).astype(dtype)):
        found, found_sizes = metric_shrinkage(W, spectrum, reg, offset, guess)
        assert found.dtype == found_sizes.dtype == dtype
        assert_allclose(found, expected, **tolerance)
        assert_allclose(found_sizes, sizes, **tolerance)


def test_metric_shrinkage_at_its_threshold():
    """Σ w²/Λ = reg²: exactly there the error still vanishes."""
    spectrum, W = np.array([4.0, 1.0]), np.array([[2.0, 0.0], [0.0, 1.0], [2.5, 0.0], [0.0, 0.5], [0.0, 0.0]])
    found, sizes = metric_shrinkage(W, spectrum, 1.0, np.zeros(5))
    assert_array_equal(found[[0, 1, 3, 4]], 0)
    assert_array_equal(sizes[[0, 1, 3, 4]], 0)
    assert_allclose(sizes[2], 2 * 2.5 - 4)  # one direction: s = sqrt(Λ)|w| − reg Λ
    assert_allclose(found[2], [0.5, 0])


# ------------------------------------------------------------------ LatLRR


class Constraint:
    """Hold X = B Dᵀ + G Hᵀ + F and project on it by one general system in all unknowns."""

    def __init__(self, X: Array, D: Array, G: Array, ratio: float) -> None:
        (n, m), self.X, self.D, self.G, self.ratio = X.shape, X, D, G, ratio
        by_points = np.kron(np.eye(n), D)
        by_features = np.einsum("ij,kl->iklj", G, np.eye(m)).reshape(n * m, -1)
        self.matrix = np.hstack([by_points, by_features])
        self.factor = scipy.linalg.cho_factor(np.eye(self.matrix.shape[1]) + ratio * self.matrix.T @ self.matrix)

    def errors(self, B: Array, H: Array) -> Array:
        return self.X - B @ self.D.T - self.G @ H.T

    def project(self, B: Array, H: Array, F: Array) -> tuple[Array, Array, Array]:
        wanted = np.r_[B.ravel(), H.ravel()] + self.ratio * self.matrix.T @ (self.X - F).ravel()
        found = scipy.linalg.cho_solve(self.factor, wanted)
        B, H = found[: B.size].reshape(B.shape), found[B.size :].reshape(H.shape)
        return B, H, self.errors(B, H)

    def norm(self, B: Array, H: Array, F: Array) -> float:
        return float(np.sqrt((B**2).sum() + (H**2).sum() + self.ratio * (F**2).sum()))


def latent_reference(X: Array, reg: float, tol: float, max_iter: int) -> Reference:
    """Minimise ‖B‖_* + ‖H‖_* + reg Σ|F| over X = B Dᵀ + G Hᵀ + F: all three shrunk at once, then projected."""
    V, singular, right = np.linalg.svd(X, full_matrices=False)
    U = right.T
    ratio = reg / (THRESHOLD_SHARE * np.sqrt(np.mean(X**2)))
    threshold = reg / (ratio * COEFFICIENT_PENALTY)
    kept, slopes = entrywise_match(singular, reg, X.size)
    constraint = Constraint(X, U * singular, V * singular, ratio)
    parts: Any = [V * kept / 2, U * kept / 2]
    parts.append(constraint.errors(*parts))
    Y_F = (V * slopes) @ U.T / (ratio * COEFFICIENT_PENALTY)
    Y: Any = [ratio * Y_F @ constraint.D, ratio * Y_F.T @ constraint.G, Y_F]
    steps: list[Step] = []
    while len(steps) < max_iter and (not steps or max(steps[-1][:2]) > tol):
        (J, J_values, J_right), (S, S_values, S_right) = shrunk(parts[0] + Y[0]), shrunk(parts[1] + Y[1])
        new = [J, S, soft(parts[2] + Y[2], threshold)]
        relaxed = [RELAXATION * a + (1 - RELAXATION) * b for a, b in zip(new, parts, strict=True)]
        before = parts
        parts = constraint.project(*(a - y for a, y in zip(relaxed, Y, strict=True)))
        Y = [y + a - b for y, a, b in zip(Y, parts, relaxed, strict=True)]
        primal = constraint.norm(*(a - b for a, b in zip(new, parts, strict=True)))
        dual = constraint.norm(*(a - b for a, b in zip(parts, before, strict=True))) / constraint.norm(*Y)
        value = J_values.sum() + S_values.sum() + reg * np.abs(new[2]).sum()
        steps.append((primal / constraint.norm(parts[0], parts[1], X), dual, value))
    return [V @ (parts[0] @ J_right.T @ J_right).T, parts[1] @ S_right.T @ S_right @ U.T], steps


@pytest.mark.parametrize("reg", [0.004, 0.01])
@pytest.mark.parametrize("is_tall", [False, True])
def test_latent_steps(rng, reg, is_tall):
    X, options = near_planes(rng, n_each=6, m=5), {"tol": 1e-3, "max_iter": 300}
    X = X if is_tall else X.T.copy()
    found = latent_dense(X, reg=reg, **options)
    assert_same(latent_reference(X, reg, **options), found.trace, found.coefficients, found.salient)
