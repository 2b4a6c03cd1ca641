"""LatLRR step by step against a plain ADMM (an SVD and a general linear system per step), and LatLRR at its edges."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from test_low_rank_steps import n_directions, soft

from solved import latent_dense
from subspaces.representation import _nuclear
from subspaces.representation import latent_low_rank as module
from subspaces.representation._nuclear import (
    COEFFICIENT_PENALTY,
    RELAXATION,
    SLACK,
    THRESHOLD_SHARE,
    LowRank,
    Residuals,
    Shrinkage,
    entrywise_match,
    multipliers_of_errors,
    refitted,
    stage_dictionary,
)
from subspaces.representation.latent_low_rank import latent_lrr, latent_lrr_factors
from subspaces.utils.types import Array

OPTIONS: dict[str, Any] = {"tol": 1e-3, "max_iter": 300}


@pytest.fixture
def X(rng) -> Array:
    """Points near two planes of a 5-dimensional space, with a few gross errors and no entry near one."""
    clean = np.concatenate([rng.normal(size=(6, 2)) @ rng.normal(size=(2, 5)) for _ in range(2)])
    X = clean / np.linalg.norm(clean, 2) + 0.03 * rng.normal(size=clean.shape) + (rng.random(clean.shape) < 0.05)
    return 37.0 * X


@pytest.fixture
def wide(rng) -> Array:
    """A decaying spectrum, for which the stages on some of the directions pay."""
    left, right = (np.linalg.qr(rng.normal(size=(size, 17)))[0] for size in (17, 18))
    return 5.0 * (left * 0.6 ** np.arange(17)) @ right.T + 0.01 * rng.normal(size=(17, 18))


class Reference(NamedTuple):
    coefficients: Array
    salient: Array
    primal: list[float]
    dual: list[float]
    objective: list[float]
    stages: list[str]


class Constraint:
    """X = B Dᵀ + G Hᵀ + F; what is nearest to given parts by one general system in all unknowns."""

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


def reference(X: Array, reg: float, tol: float, max_iter: int, start: tuple[Array, Array] | None = None) -> Reference:
    """Minimise ‖B‖_* + ‖H‖_* + reg Σ|F| over X = B Dᵀ + G Hᵀ + F: all three shrunk at once, then projected."""
    V, singular, right = np.linalg.svd(X, full_matrices=False)
    U, rank = right.T, len(singular)
    D, G = U * singular, V * singular
    ratio = reg / (THRESHOLD_SHARE * np.sqrt(np.mean(X**2)))
    threshold = reg / (ratio * COEFFICIENT_PENALTY)
    kept, slopes = entrywise_match(singular, reg, X.size)
    ranks, stages = [np.count_nonzero(kept)] * 2, ["leading", "turned", "all"]
    if start is None:
        B, H, Y_F = V * kept / 2, U * kept / 2, (V * slopes) @ U.T / (ratio * COEFFICIENT_PENALTY)
    else:
        B, H, stages = start[0].T @ V, start[1] @ U, stages[1:]
        Y_F = multipliers_of_errors(X - B @ D.T - G @ H.T, threshold)
    found, primal, dual, objective, run = [], [], [], [], []
    for stage in stages:
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
    return Reference(V @ B.T, H @ U.T, primal, dual, objective, run)


def assert_same(X: Array, reg: float, start: Any = None, **options: Any) -> Reference:
    expected = reference(X, reg, start=start, **options)
    found = latent_dense(X, reg=reg, start=start, **options)
    assert found.trace.n_iter == len(expected.primal)
    assert_allclose(found.trace.primal, expected.primal, rtol=1e-6, atol=1e-10)
    assert_allclose(found.trace.dual, expected.dual, rtol=1e-6, atol=1e-10)
    assert_allclose(found.trace.objective, expected.objective, rtol=1e-8)
    assert_allclose(found.coefficients, expected.coefficients, atol=1e-8)
    assert_allclose(found.salient, expected.salient, atol=1e-8)
    return expected


def a_start(X: Array, reg: float, rng: np.random.Generator) -> tuple[Array, Array]:
    found = latent_dense(X, reg=1.3 * reg)
    return tuple(part + 0.01 * rng.normal(size=part.shape) for part in found[:2])


# --- every step -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reg", [0.004, 0.01])
@pytest.mark.parametrize("is_tall", [False, True])
def test_steps_are_those_of_a_plain_admm(X, reg, is_tall):
    assert set(assert_same(X if is_tall else X.T.copy(), reg, **OPTIONS).stages) == {"all"}


@pytest.mark.parametrize("size", [3, 11])
def test_steps_of_the_stages(wide, monkeypatch, size):
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", size)
    assert set(assert_same(wide, 0.06, **OPTIONS).stages) == {"leading", "turned", "all"}


@pytest.mark.parametrize("with_stages", [False, True])
def test_steps_from_a_start(X, wide, rng, monkeypatch, with_stages):
    X, reg = (wide, 0.06) if with_stages else (X, 0.01)
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 6)
    start = a_start(X, reg, rng)
    before = [part.copy() for part in start]
    stages = set(assert_same(X, reg, start=start, **OPTIONS).stages)
    assert stages == ({"turned", "all"} if with_stages else {"all"})
    for part, copy in zip(start, before, strict=True):
        assert_array_equal(part, copy)


@pytest.mark.parametrize("max_iter", [1, 2, 3, 5, 9])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_half_of_what_remains_is_for_a_stage_that_is_not_the_last(wide, monkeypatch, max_iter):
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 3)
    expected = assert_same(wide, 0.06, tol=1e-9, max_iter=max_iter)
    leading, turned = max_iter // 2, (max_iter - max_iter // 2) // 2
    assert [expected.stages.count(stage) for stage in ("leading", "turned")] == [leading, turned]


def test_best_of_the_stages_is_returned(wide, monkeypatch):
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 3)
    candidates: list[LowRank] = []

    def spoilt(low: LowRank, *rest: Any) -> LowRank:
        worse = 1.0 if len(candidates) < 2 else 1.5
        candidates.append(refitted(low, *rest))
        return LowRank(worse * candidates[-1].left, candidates[-1].right, worse * candidates[-1].singular_values)

    monkeypatch.setattr(_nuclear, "refitted", spoilt)
    factors = latent_lrr_factors(wide, reg=0.06, **OPTIONS)
    assert len(candidates) == 4
    assert_allclose(factors.coefficients.singular_values, candidates[0].singular_values, rtol=1e-12)
    assert_allclose(factors.salient.singular_values, candidates[1].singular_values, rtol=1e-12)


def test_stages_that_end_alike(wide, monkeypatch):
    """Errors that cost nothing: no stage finds anything, and none is better."""
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 3)
    found = latent_dense(wide, reg=1e-6)
    assert_array_equal(found.coefficients, 0)
    assert_array_equal(found.salient, 0)


def test_stage_needs_both_dictionaries(wide, monkeypatch):
    """Where it would save nothing for the points or for the features, it is left out."""
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 3)
    found = []
    for without in ({17}, {18}, {17, 18}):

        def dictionary(stage: str, basis: Array, *rest: Any, without: Any = without) -> Any:
            is_left_out = stage == "turned" and len(basis) in without
            return None if is_left_out else stage_dictionary(stage, basis, *rest)

        monkeypatch.setattr(_nuclear, "stage_dictionary", dictionary)
        found.append(latent_dense(wide, reg=0.06, **OPTIONS))
    assert found[0].trace == found[1].trace == found[2].trace
    assert_array_equal(found[0].coefficients, found[2].coefficients)
    assert_array_equal(found[1].coefficients, found[2].coefficients)


def test_each_dictionary_has_room_for_its_own_rank(wide, monkeypatch):
    made, asked = [], []

    class Ranked(Shrinkage):
        def __call__(self, M: Array) -> LowRank:
            low = super().__call__(M)
            self.rank = 2 + made.index(self) % 2  # of the points 2, of the features 3
            return low

    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 3)
    monkeypatch.setattr(_nuclear, "Shrinkage", lambda *args: made.append(Ranked(*args)) or made[-1])

    def dictionary(stage: str, basis: Array, singular_values: Array, M: Array, n_kept: int) -> Any:
        asked.append((stage, len(basis), n_kept))
        return stage_dictionary(stage, basis, singular_values, M, n_kept)

    monkeypatch.setattr(_nuclear, "stage_dictionary", dictionary)
    latent_lrr(wide, reg=0.06, **OPTIONS)
    assert asked[2:] == [("turned", 18, 2), ("turned", 17, 3), ("all", 18, 2), ("all", 17, 3)]


def test_last_step_is_exact(wide, monkeypatch):
    """Of both: what meets the tolerance has to be confirmed by a whole step, and both hear of it at once."""
    made: list[Any] = []

    class Watched(Shrinkage):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append((self, []))

        def __call__(self, M: Array) -> LowRank:
            low = super().__call__(M)
            next(history for shrink, history in made if shrink is self).append(self.is_exact)
            return low

    for name, value in (("SUBSPACE_SIZE", 4), ("SUBSPACE_SHARE", 2.0)):
        monkeypatch.setattr(_nuclear, name, value)
    monkeypatch.setattr(_nuclear, "Shrinkage", Watched)
    trace = latent_lrr(wide, reg=0.06).trace
    assert trace.converged
    histories = [history for _, history in made[-2:]]
    for history in histories:
        assert not all(history)
        assert history[-1]
    assert all(shrink.stays_exact for shrink, _ in made[-2:])
    assert histories[0] == histories[1]


# --- precision --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_start", [False, True])
@pytest.mark.parametrize("given", [np.float32, np.float64])
@pytest.mark.parametrize("single", [False, True])
def test_steps_keep_the_working_precision(X, rng, monkeypatch, given, single, with_start):
    """`single`: double precision that is iterated on in single, as large data are."""
    if single:
        monkeypatch.setattr(_nuclear, "SINGLE_PRECISION_SIZE", 1)
    types, step = set(), module._step

    def watched(constraint: Any, *parts: Any) -> Any:
        types.update(part.dtype for triple in parts for part in triple)
        types.update(part.dtype for part in vars(constraint).values() if isinstance(part, np.ndarray))
        return step(constraint, *parts)

    monkeypatch.setattr(module, "_step", watched)
    start = (rng.normal(size=(12, 12)), rng.normal(size=(5, 5))) if with_start else None
    found = latent_lrr_factors(X.astype(given), reg=0.01, **OPTIONS, start=start)
    assert types == {np.dtype(np.float32 if single else given)}
    assert {part.dtype for factors in found[:2] for part in factors} == {np.dtype(given)}
    assert found.trace.converged


def test_dual_residual_of_nothing_is_zero():
    atoms = _nuclear.Dictionary(None, np.eye(2), np.ones(2))
    constraint = module._Constraint(np.eye(2), atoms, atoms, 1.0)
    parts = np.zeros((2, 2)), np.zeros((2, 2)), np.eye(2)
    nothing = (np.zeros((2, 2)),) * 3
    assert module._step(constraint, (*parts[:2], np.eye(2)), parts, nothing)[2:] == (0.0, 0.0)


def test_projection_is_the_nearest_point_of_the_constraint(rng):
    X = rng.normal(size=(6, 4))
    D, G = (np.linalg.qr(rng.normal(size=(size, 3)))[0] * [3.0, 1.0, 0.5] for size in (4, 6))
    lengths = np.array([3.0, 1.0, 0.5])
    constraint = module._Constraint(
        X, _nuclear.Dictionary(None, D, lengths), _nuclear.Dictionary(None, G, lengths), 0.7
    )
    parts = rng.normal(size=(6, 3)), rng.normal(size=(4, 3)), rng.normal(size=(6, 4))
    expected = Constraint(X, D, G, 0.7)
    before = parts[0].copy(), parts[1].copy()
    for found, wanted in zip(constraint.project(*parts[:2], parts[2].copy()), expected.project(*parts), strict=True):
        assert_allclose(found, wanted, atol=1e-12)
    assert_array_equal(parts[0], before[0])
    assert_array_equal(parts[1], before[1])
    assert_allclose(constraint.norm(parts), expected.norm(*parts), rtol=1e-12)


# --- closed forms, scales and refusals --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_errors_and_no_points(X, dtype):
    V, _, right = np.linalg.svd(X, full_matrices=False)
    found = latent_dense(X.astype(dtype), reg=np.inf)
    assert found.coefficients.dtype == found.salient.dtype == dtype
    assert_allclose(found.coefficients, V @ V.T / 2, atol=1e-4 if dtype == np.float32 else 1e-10)
    assert_allclose(found.salient, right.T @ right / 2, atol=1e-4 if dtype == np.float32 else 1e-10)
    assert (found.trace.converged, found.trace.n_iter) == (True, 0)
    found = latent_dense(np.zeros((4, 3), dtype), reg=0.5)
    assert_array_equal(found.coefficients, np.zeros((4, 4)))
    assert_array_equal(found.salient, np.zeros((3, 3)))
    assert (found.trace.converged, found.trace.n_iter) == (True, 0)


def test_scale_of_data_only_rescales_reg(X):
    found, scaled = latent_dense(X, reg=0.01), latent_dense(2.0**-9 * X, reg=0.01 * 2.0**9)
    assert_array_equal(scaled.coefficients, found.coefficients)
    assert_array_equal(scaled.salient, found.salient)
    assert scaled.trace == found.trace


def test_defaults(X, monkeypatch):
    given: list[Any] = []
    monkeypatch.setattr(_nuclear, "Residuals", lambda *limits: given.append(limits) or Residuals(1.0, 5))
    latent_lrr(X, reg=0.01)
    assert given == [(1e-3, 1000)]


def test_limits_reach_the_solver(X):
    with pytest.warns(ConvergenceWarning, match="max_iter=3 iterations.*tol=1e-12"):
        trace = latent_lrr(X, reg=0.01, tol=1e-12, max_iter=3).trace
    assert (trace.converged, trace.n_iter) == (False, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.ones(3)}, "X must have one row per point, got 1 dimension"),
        ({"reg": 0.0}, "reg must be positive, got 0.0"),
        ({"tol": 0.0}, "tol must be positive, got 0.0"),
        ({"max_iter": 0}, "max_iter must be at least 1, got 0"),
        ({"start": (np.eye(5), np.eye(5))}, r"start\[0\] must have shape \(12, 12\) for this X, got \(5, 5\)"),
        ({"start": (np.eye(12), np.eye(12))}, r"start\[1\] must have shape \(5, 5\) for this X, got \(12, 12\)"),
    ],
)
def test_refusals(X, change, message):
    with pytest.raises(ValueError, match=message):
        latent_lrr(**{"X": X, "reg": 0.1, **change})
