"""LRR1, KLRR and LatLRR iteration by iteration against plain dense ADMM with one SVD per step."""

from __future__ import annotations

from typing import Any, NamedTuple

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
    SLACK,
    STAGE_SHARE,
    THRESHOLD_SHARE,
    LowRank,
    Shrinkage,
    entrywise_match,
    levels,
    refitted,
    squared_error_match,
)
from subspaces.representation.latent_low_rank import latent_lrr
from subspaces.representation.low_rank import kernel_lrr, lrr, metric_shrinkage
from subspaces.utils import blocks
from subspaces.utils.types import Array

OPTIONS: dict[str, Any] = {"tol": 1e-3, "max_iter": 1000}


class Reference(NamedTuple):
    parts: list[Array]
    primal: list[float]
    dual: list[float]
    objective: list[float]
    stages: list[Any]


def assert_same(expected: Reference, *found: Array, trace: Any) -> set[Any]:
    """Compare every iteration and the result; return the stages that were run."""
    assert trace.n_iter == len(expected.primal)
    assert_allclose(trace.primal, expected.primal, rtol=1e-6, atol=1e-9)
    assert_allclose(trace.dual, expected.dual, rtol=1e-6, atol=1e-9)
    assert_allclose(trace.objective, expected.objective, rtol=1e-8)
    for one, other in zip(found, expected.parts, strict=True):
        assert_allclose(one, other, atol=1e-7)
    return set(expected.stages)


def soft(M: Array, threshold: float) -> Array:
    return np.sign(M) * np.maximum(np.abs(M) - threshold, 0)


def n_directions(stage: str, rank: int, n_kept: int) -> int | None:
    if stage == "all":
        return rank
    size = max(_nuclear.SMALLEST_LEVEL, n_kept + 8 + n_kept // (3 if stage == "leading" else 7))
    return size if size <= STAGE_SHARE * rank else None


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
    D, rank = right.T * singular, len(singular)
    ratio = reg / (THRESHOLD_SHARE * np.sqrt(np.mean(X**2)))  # of the penalties of errors and coefficients
    threshold = reg / (ratio * COEFFICIENT_PENALTY)
    kept, slopes = entrywise_match(singular, reg, X.size)
    B, Y_F = left * kept, (left * slopes) @ right / (ratio * COEFFICIENT_PENALTY)
    n_kept = np.count_nonzero(kept)
    found, primal, dual, objective, run = [], [], [], [], []
    for stage in ("leading", "turned", "all"):
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
    return Reference([left @ best.T], primal, dual, objective, run)


def same_lrr1(X: Array, reg: float, **options: Any) -> set[str]:
    Z, trace = dense_and_trace(lrr(X, reg=reg, error="l1", **options))
    return assert_same(lrr1_reference(X, reg, **options), Z, trace=trace)


@pytest.mark.parametrize("reg", [0.004, 0.01, 0.2])
@pytest.mark.parametrize("m", [2, 6])
def test_lrr1_steps(rng, monkeypatch, reg, m):
    X = near_planes(rng)[:, :m]
    assert same_lrr1(X, reg, **OPTIONS) == {"all"}
    monkeypatch.setattr(module, "SWEEP_BYTES", 5 * X[:1].nbytes)
    same_lrr1(X, reg, **OPTIONS)


@pytest.mark.parametrize("size", [3, 6, 12])
def test_lrr1_stages(rng, monkeypatch, size):
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", size)
    assert same_lrr1(wide(rng), 0.1, tol=1e-4, max_iter=1000) == {"leading", "turned", "all"}


@pytest.mark.parametrize("max_iter", [1, 2, 3, 8, 13])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_lrr1_leaves_half_of_the_iterations_to_the_next_stage(rng, monkeypatch, max_iter):
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 6)
    same_lrr1(wide(rng), 0.1, tol=1e-9, max_iter=max_iter)


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
    """Minimise ‖B‖_* + reg Σ‖Λ^½(v_i − b_i)‖ by ADMM with penalty one, on more and more directions."""
    values, vectors = np.linalg.eigh(K)
    V, spectrum = np.ascontiguousarray(vectors[:, ::-1]), values[::-1].copy()
    n, rank = V.shape
    kept, size = squared_error_match(spectrum, reg, n)
    errors, multipliers = V * (1 - kept), V * np.minimum(1, reg / size * spectrum)
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
    return Reference([V @ J.T], primal, dual, objective, run)


def same_klrr(K: Array, reg: float, **options: Any) -> set[int]:
    Z, trace = dense_and_trace(kernel_lrr(K, reg=reg, **options))
    return assert_same(klrr_reference(K, reg, **options), Z, trace=trace)


@pytest.mark.parametrize("reg", [0.03, 0.1, 0.4])
def test_klrr_steps(rng, monkeypatch, reg):
    K = kernel(rng)
    assert same_klrr(K, reg, tol=1e-4, max_iter=500) == {24}
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 5 * K[:1].nbytes)
    same_klrr(K, reg, tol=1e-4, max_iter=500)


@pytest.mark.parametrize("max_iter", [1, 3, 12, 500])
@pytest.mark.parametrize("size", [3, 6])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_klrr_steps_on_more_and_more_directions(rng, monkeypatch, size, max_iter):
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", size)
    sizes = same_klrr(kernel(rng, n=40, decay=0.6), 0.1, tol=1e-4, max_iter=max_iter)
    assert max(sizes) == 40
    assert max_iter < 500 or len(sizes) >= 3


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


def shrunk(M: Array) -> tuple[Array, Array, Array]:
    left, values, right = np.linalg.svd(M, full_matrices=False)
    values = np.maximum(values - 1 / COEFFICIENT_PENALTY, 0)
    return (left * values) @ right, values[values > 0], right[values > 0]


def latent_reference(X: Array, reg: float, tol: float, max_iter: int) -> Reference:
    """Minimise ‖B‖_* + ‖H‖_* + reg Σ|F| over X = B Dᵀ + G Hᵀ + F: all three shrunk at once, then projected."""
    V, singular, right = np.linalg.svd(X, full_matrices=False)
    U, rank = right.T, len(singular)
    D, G = U * singular, V * singular
    ratio = reg / (THRESHOLD_SHARE * np.sqrt(np.mean(X**2)))
    threshold = reg / (ratio * COEFFICIENT_PENALTY)
    kept, slopes = entrywise_match(singular, reg, X.size)
    ranks = [np.count_nonzero(kept)] * 2
    B, H, Y_F = V * kept / 2, U * kept / 2, (V * slopes) @ U.T / (ratio * COEFFICIENT_PENALTY)
    found, primal, dual, objective, run = [], [], [], [], []
    for stage in ("leading", "turned", "all"):
        sizes = [n_directions(stage, rank, n_kept) for n_kept in ranks]
        if None in sizes:
            continue
        turns = [np.eye(rank)[:, :size] for size in sizes]
        if stage == "turned":
            arguments = B + ratio * Y_F @ D, H + ratio * Y_F.T @ G
            turns = [np.linalg.svd(M)[2][:size].T for M, size in zip(arguments, sizes, strict=True)]
        constraint = Constraint(X, D @ turns[0], G @ turns[1], ratio)
        parts: Any = [B @ turns[0], H @ turns[1]]
        parts.append(constraint.errors(*parts))
        Y: Any = [ratio * Y_F @ constraint.D, ratio * Y_F.T @ constraint.G, Y_F]
        remaining = max_iter - len(primal)
        for _ in range(remaining if stage == "all" else remaining // 2):
            (J, J_values, J_right), (S, S_values, S_right) = shrunk(parts[0] + Y[0]), shrunk(parts[1] + Y[1])
            new = [J, S, soft(parts[2] + Y[2], threshold)]
            relaxed = [RELAXATION * a + (1 - RELAXATION) * b for a, b in zip(new, parts, strict=True)]
            before = parts
            parts = constraint.project(*(a - y for a, y in zip(relaxed, Y, strict=True)))
            Y = [y + a - b for y, a, b in zip(Y, parts, relaxed, strict=True)]
            gap = constraint.norm(*(a - b for a, b in zip(new, parts, strict=True)))
            primal.append(gap / constraint.norm(parts[0], parts[1], X))
            dual.append(constraint.norm(*(a - b for a, b in zip(parts, before, strict=True))) / constraint.norm(*Y))
            objective.append(J_values.sum() + S_values.sum() + reg * np.abs(new[2]).sum())
            run.append(stage)
            ranks = [len(J_values), len(S_values)]
            if max(primal[-1], dual[-1]) <= SLACK[stage] * tol:
                break
        B, H, Y_F = parts[0] @ turns[0].T, parts[1] @ turns[1].T, Y[2]
        if stage != "leading" and stage in run:
            fit_B = parts[0] @ J_right.T @ J_right @ turns[0].T
            fit_H = parts[1] @ S_right.T @ S_right @ turns[1].T
            size_of_errors = np.abs(X - fit_B @ D.T - G @ fit_H.T).sum()
            value = np.linalg.norm(fit_B, "nuc") + np.linalg.norm(fit_H, "nuc") + reg * size_of_errors
            found.append((value, fit_B, fit_H))
    _, B, H = min(found, key=lambda candidate: candidate[0])
    return Reference([V @ B.T, H @ U.T], primal, dual, objective, run)


def same_latent(X: Array, reg: float, **options: Any) -> set[str]:
    found = latent_dense(X, reg=reg, **options)
    return assert_same(latent_reference(X, reg, **options), found.coefficients, found.salient, trace=found.trace)


@pytest.mark.parametrize("reg", [0.004, 0.01])
@pytest.mark.parametrize("is_tall", [False, True])
def test_latent_steps(rng, reg, is_tall):
    X = near_planes(rng, n_each=6, m=5)
    assert same_latent(X if is_tall else X.T.copy(), reg, tol=1e-3, max_iter=300) == {"all"}


@pytest.mark.parametrize("max_iter", [1, 3, 9, 300])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_latent_stages(rng, monkeypatch, max_iter):
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 3)
    stages = same_latent(wide(rng, 17, 18, 17), 0.1, tol=1e-3, max_iter=max_iter)
    assert max_iter < 300 or stages == {"leading", "turned", "all"}
