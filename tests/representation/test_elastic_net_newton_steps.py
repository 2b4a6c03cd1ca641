"""The small problems of the elastic net: every part against its definition, codes against optimality conditions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import ElasticNet
from test_elastic_net import cloud

from subspaces.representation import _elastic_net_newton as newton
from subspaces.representation._elastic_net_newton import Problems, excess_of, solve_working_sets
from subspaces.utils.types import Array

EPS = float(np.finfo(np.float64).eps)


def small_problems(
    rng: np.random.Generator, n_problems: int = 7, size: int = 12, m: int = 6, error_weight: float = 40.0, **parts: Any
) -> tuple[Array, Problems]:
    """Atoms (the last is the padding) and problems of points over random working sets."""
    X = cloud(rng, 30, m)
    atoms = np.vstack([X, np.zeros(m)])
    working = np.array([1 + n_problems + rng.permutation(30 - n_problems - 1)[:size] for _ in range(n_problems)])
    points, weights = X[:n_problems], error_weight * rng.uniform(0.5, 2, n_problems)
    problems = Problems(
        rows=np.arange(n_problems),
        points=points,
        weights=weights,
        tolerance=np.full(n_problems, 1e-9),
        dual=0.1 * weights[:, None] * points,
        working=working,
        centre=np.zeros(working.shape),
        proximal=np.zeros(n_problems),
    )
    for name, value in parts.items():
        setattr(problems, name, value)
    return atoms, problems


def violation(atoms: Array, problems: Problems, codes: Array, l1_ratio: float) -> Array:
    """Largest distance from the optimality conditions of every problem, from its own residual."""
    found = []
    for x, weight, working, code in zip(problems.points, problems.weights, problems.working, codes, strict=True):
        slopes = weight * atoms[working] @ (x - code @ atoms[working]) - (1 - l1_ratio) * code
        on, off = np.abs(slopes - l1_ratio * np.sign(code)), np.maximum(np.abs(slopes) - l1_ratio, 0)
        found.append(np.where(code != 0, on, off).max())
    return np.array(found)


# --- small parts ------------------------------------------------------------------------------------------------


def test_excess_and_soft_thresholds() -> None:
    correlations = np.array([0.7, -0.7, 0.9, -1.0, 0.3, 0.0, -0.8])
    codes = np.array([0.0, 0.0, 0.5, 2.0, -1.0, 0.0, -0.25])
    # u_j − (1 − τ) c_j − τ sign(c_j) with τ = 0.6
    assert_allclose(excess_of(correlations, codes, 0.6), [0.1, 0.1, 0.1, 2.4, 1.3, 0.0, 0.1], atol=1e-15)
    assert_allclose(newton._soft(np.array([-2.0, -0.5, 0.0, 0.6, 0.7]), 0.6), [-1.4, 0, 0, 0, 0.1], atol=1e-15)


@pytest.mark.parametrize("index", [slice(1, 3), np.array([True, False, True, False, False, False, True])])
def test_some_of_the_problems(rng: np.random.Generator, index: Any) -> None:
    _, problems = small_problems(rng)
    some = problems[index]
    for name in ("rows", "points", "weights", "tolerance", "dual", "working", "centre", "proximal"):
        assert_array_equal(getattr(some, name), getattr(problems, name)[index])


def test_packed_lists() -> None:
    chosen = np.array([[True, False, True, False], [False] * 4, [True, True, False, True]])
    atoms = np.array([[5, 6, 7, 8], [1, 2, 3, 4], [9, 8, 7, 6]], dtype=np.int32)
    packed, slots = newton._packed(chosen, atoms, 30)
    assert_array_equal(packed, [[5, 7, 30], [30, 30, 30], [9, 8, 6]])
    assert_array_equal(slots, [[True, True, False], [False] * 3, [True] * 3])
    assert packed.dtype == np.int32
    assert newton._packed(chosen & False, atoms, 30)[0].shape == (3, 0)


def test_gathered_atoms_are_double(rng: np.random.Generator) -> None:
    atoms = rng.normal(size=(5, 2)).astype(np.float32)
    found = newton._gather(atoms, np.array([[4, 0, 0], [1, 2, 3]]))
    assert found.shape == (2, 3, 2)
    assert found.dtype == np.float64
    assert_array_equal(found[0], atoms[[4, 0, 0]].astype(np.float64))


def test_products_of_every_problem(rng: np.random.Generator) -> None:
    matrices, vectors, codes = rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 2)), rng.normal(size=(3, 4))
    assert_allclose(newton._times(matrices, vectors), np.einsum("bij,bj->bi", matrices, vectors), rtol=1e-12)
    assert_allclose(newton._combine(codes, matrices), np.einsum("bi,bij->bj", codes, matrices), rtol=1e-12)


def test_ridge_has_a_floor_at_rounding() -> None:
    zero = np.zeros((2, 2, 2))
    targets, ridge = np.array([[1.0, -2.0], [3.0, 4.0]]), np.array([0.0, 0.5])
    assert_allclose(newton._ridge_solve(zero, ridge, targets), targets / np.array([[16 * EPS], [0.5]]), rtol=1e-14)
    equal = newton._ridge_solve(np.ones((1, 2, 2)), np.zeros(1), np.ones((1, 2)))
    assert_allclose(equal, [[0.5, 0.5]], rtol=0.1)
    assert_allclose(equal.sum(), 1, rtol=1e-12)
    gram = np.array([[[2.0, 1.0], [1.0, 3.0]]])
    expected = np.linalg.solve(gram[0] + 0.5 * np.eye(2), [1.0, 2.0])
    assert_allclose(newton._ridge_solve(gram, np.array([0.5]), np.array([[1.0, 2.0]])), expected[None], rtol=1e-14)


@pytest.mark.parametrize("n_active", [0, 2, 4, 5, 9])
def test_newton_direction_solves_its_system(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, n_active: int
) -> None:
    sizes, original = [], newton._ridge_solve

    def spy(grams: Array, ridge: Array, targets: Array) -> Array:
        sizes.append(grams.shape[1])
        return original(grams, ridge, targets)

    monkeypatch.setattr(newton, "_ridge_solve", spy)
    active, gradient = rng.normal(size=(3, n_active, 5)), rng.normal(size=(3, 5))
    weights, curvature = rng.uniform(1, 50, 3), rng.uniform(0.1, 2, 3)
    found = newton._newton_direction(active, gradient, weights, curvature)
    assert found.shape == (3, 5)
    for A, g, d, weight, a in zip(active, gradient, found, weights, curvature, strict=True):
        assert_allclose(d / weight + A.T @ (A @ d) / a, -g, rtol=1e-9, atol=1e-12)
    assert sizes == [min(n_active, 5)]


# --- lengths of steps -------------------------------------------------------------------------------------------


def dual_value(problem: Problems, local: Array, delta: Array, l1_ratio: float) -> float:
    """The dual of one problem (the first) at `delta`, from its definition."""
    inputs = local @ delta + problem.proximal[0] * problem.centre[0]
    soft = np.sign(inputs) * np.maximum(np.abs(inputs) - l1_ratio, 0)
    a = 1 - l1_ratio + problem.proximal[0]
    return float(delta @ delta / (2 * problem.weights[0]) - problem.points[0] @ delta + soft @ soft / (2 * a))


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_steps_are_halved_until_the_dual_falls(rng: np.random.Generator, scale: float) -> None:
    atoms, problems = small_problems(rng, n_problems=20, size=8)
    problems.proximal, problems.centre = rng.uniform(0, 0.1, 20), rng.normal(size=problems.centre.shape)
    l1_ratio = 0.9
    local = atoms[problems.working]
    inputs = newton._times(local, problems.dual) + problems.proximal[:, None] * problems.centre
    curvature = 1 - l1_ratio + problems.proximal
    residual = problems.points - newton._combine(newton._soft(inputs, l1_ratio) / curvature[:, None], local)
    gradient = problems.dual / problems.weights[:, None] - residual
    direction = -scale * problems.weights[:, None] * gradient * rng.uniform(0.5, 1, gradient.shape)
    slope = np.sum(gradient * direction, axis=1)
    bend = np.sum(direction**2, axis=1) / problems.weights
    change = newton._times(local, direction)
    found = newton._step_lengths(inputs, change, slope, bend, l1_ratio, curvature)
    assert found.shape == (20,)
    for i in range(20):
        one = problems[i : i + 1]
        start, length = dual_value(one, local[i], problems.dual[i], l1_ratio), 1.0
        while dual_value(one, local[i], problems.dual[i] + length * direction[i], l1_ratio) - start > (
            1e-4 * length * slope[i]
        ):
            length /= 2
        assert found[i] == length
    if scale == 30:
        assert len(set(found)) > 1


def test_step_with_the_least_fall_that_counts() -> None:
    # without curvature of the penalty the fall at length t is t slope + t² bend / 2; it must reach 1e-4 t slope
    one, none = np.ones(1), np.zeros((1, 2))
    for share, expected in [(0.9998, 1.0), (0.99995, 0.5)]:
        slope = np.array([-1.0])
        bend = np.array([2 * share])  # fall at one: share − 1, allowed: −1e-4
        assert newton._step_lengths(none, none, slope, bend, 0.9, one) == expected


def test_step_below_rounding_is_full() -> None:
    inputs, curvature = np.array([[3.0, -2.0, 0.1]]), np.array([0.5])
    rounding = 16 * EPS * (2.1 * 3 + 1.1 * 2) / 0.5
    for share, expected in [(0.98, 1.0), (1.03, 0.5)]:
        bend = np.array([2 * share * rounding])
        assert newton._step_lengths(inputs, 0 * inputs, np.zeros(1), bend, 0.9, curvature) == expected


def test_step_uphill_is_given_up_after_thirty_halvings() -> None:
    none = np.zeros((2, 2))
    found = newton._step_lengths(none, none, np.array([1.0, -1.0]), np.zeros(2), 0.9, np.ones(2))
    assert_array_equal(found, [2.0**-30, 1.0])


# --- Newton's method --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("l1_ratio", [0.2, 0.9])
@pytest.mark.parametrize("m", [4, 15])
def test_codes_are_those_of_coordinate_descent(rng: np.random.Generator, l1_ratio: float, m: int) -> None:
    atoms, problems = small_problems(rng, m=m)
    codes, dual = newton._newton(atoms, problems, l1_ratio)
    assert violation(atoms, problems, codes, l1_ratio).max() < 1e-9
    for i, (working, weight) in enumerate(zip(problems.working, problems.weights, strict=True)):
        model = ElasticNet(1 / (weight * m), l1_ratio=l1_ratio, fit_intercept=False, tol=1e-14, max_iter=10**5)
        expected = model.fit(atoms[working].T, problems.points[i]).coef_
        assert_allclose(codes[i], expected, atol=1e-6)
        assert_allclose(dual[i], weight * (problems.points[i] - codes[i] @ atoms[working]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("l1_ratio", [0.9, 1.0])
def test_proximal_term_keeps_codes_near_the_centre(rng: np.random.Generator, l1_ratio: float) -> None:
    atoms, problems = small_problems(rng)
    problems.proximal = np.linspace(0.3, 2, 7)
    problems.centre = rng.normal(size=problems.centre.shape)
    codes, dual = newton._newton(atoms, problems, l1_ratio)
    for i in range(7):
        local, pull = atoms[problems.working[i]], problems.proximal[i] * (codes[i] - problems.centre[i])
        assert excess_of(local @ dual[i] - pull, codes[i], l1_ratio).max() < 1e-8
        assert_allclose(dual[i], problems.weights[i] * (problems.points[i] - codes[i] @ local), rtol=1e-9, atol=1e-11)


def test_problems_do_not_disturb_each_other(rng: np.random.Generator) -> None:
    atoms, problems = small_problems(rng, n_problems=12)
    problems.weights[::3] *= 100
    problems.weights[1] = 1e-3  # its code is zero, so it leaves at once
    together = newton._newton(atoms, problems, 0.9)
    for i in range(12):
        alone = newton._newton(atoms, problems[i : i + 1], 0.9)
        assert_allclose(together[0][i], alone[0][0], atol=1e-9)
        assert_allclose(together[1][i], alone[1][0], rtol=1e-7, atol=1e-9)
    assert not together[0][1].any()


def error_at_the_start(atoms: Array, problems: Problems, l1_ratio: float) -> tuple[Array, Array]:
    """Codes of the duals to start from and the length of the scaled gradient there."""
    local = atoms[problems.working]
    inputs = newton._times(local, problems.dual)
    codes = np.sign(inputs) * np.maximum(np.abs(inputs) - l1_ratio, 0) / (1 - l1_ratio)
    residual = problems.points - newton._combine(codes, local)
    return codes, np.linalg.norm(problems.dual - problems.weights[:, None] * residual, axis=1)


def test_a_start_within_a_quarter_of_the_tolerance_is_the_result(rng: np.random.Generator) -> None:
    atoms, problems = small_problems(rng)
    codes, error = error_at_the_start(atoms, problems, 0.7)
    problems.tolerance = 4.01 * error
    found, dual = newton._newton(atoms, problems, 0.7)
    assert_allclose(found, codes, atol=1e-12)
    residual = problems.points - newton._combine(codes, atoms[problems.working])
    assert_allclose(dual, problems.weights[:, None] * residual, atol=1e-9)
    problems.tolerance = 3.99 * error
    moved, _ = newton._newton(atoms, problems, 0.7)
    assert np.all(np.abs(moved - codes).max(axis=1) > 1e-6)


def test_number_of_steps_is_bounded(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    atoms, problems = small_problems(rng, error_weight=200.0)
    calls, original = [], newton._newton_direction

    def spy(*arguments: Array) -> Array:
        calls.append(len(arguments[0]))
        return original(*arguments)

    monkeypatch.setattr(newton, "_newton_direction", spy)
    monkeypatch.setattr(newton, "MAX_NEWTON", 0)
    assert_allclose(newton._newton(atoms, problems, 0.9)[0], error_at_the_start(atoms, problems, 0.9)[0], atol=1e-9)
    assert calls == []
    monkeypatch.setattr(newton, "MAX_NEWTON", 2)
    newton._newton(atoms, problems, 0.9)
    assert len(calls) == 2
    calls.clear()
    monkeypatch.setattr(newton, "MAX_NEWTON", 1000)
    problems.tolerance = np.zeros(7)  # rounding cannot meet that, but the last step is known to be one
    codes, _ = newton._newton(atoms, problems, 0.9)
    assert 2 < len(calls) < 100
    assert violation(atoms, problems, codes, 0.9).max() < 1e-10


# --- with and without the proximal term -------------------------------------------------------------------------


@pytest.mark.parametrize("l1_ratio", [0.95, 1.0])
@pytest.mark.parametrize(("m", "size"), [(3, 12), (6, 12), (15, 5)])
def test_polished_codes_are_optimal_without_the_proximal_term(
    rng: np.random.Generator, l1_ratio: float, m: int, size: int
) -> None:
    atoms, problems = small_problems(rng, m=m, size=size)
    problems.proximal = np.full(7, 1e-4)
    biased, _ = newton._newton(atoms, problems, l1_ratio)
    before = violation(atoms, problems, biased, l1_ratio)
    codes, dual = newton._polished(atoms, problems, l1_ratio)
    after = violation(atoms, problems, codes, l1_ratio)
    assert np.median(after) < 1e-9 < np.median(before)
    assert np.all(after <= before * (1 + 1e-6))
    residual = problems.points - newton._combine(codes, atoms[problems.working])
    assert_allclose(dual, problems.weights[:, None] * residual, rtol=1e-7, atol=1e-9)


def test_polish_is_left_out_where_it_makes_things_worse(rng: np.random.Generator) -> None:
    atoms, problems = small_problems(rng)
    problems.proximal = np.full(7, 50.0)  # the code has hardly left its centre, so its support says nothing
    problems.centre = rng.normal(size=problems.centre.shape)
    biased, biased_dual = newton._newton(atoms, problems, 1.0)
    codes, dual = newton._polished(atoms, problems, 1.0)
    same = np.all(codes == biased, axis=1)
    assert same.any()
    assert_array_equal(dual[same], biased_dual[same])
    assert np.all(violation(atoms, problems, codes, 1.0) <= violation(atoms, problems, biased, 1.0) * (1 + 1e-9))


@pytest.mark.parametrize("proximal", [0.0, 1e-4])
def test_blocks_of_problems(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, proximal: float) -> None:
    atoms, problems = small_problems(rng)
    problems.proximal[3:] = proximal
    start = problems.dual.copy()
    codes = solve_working_sets(atoms, problems, 0.95)
    duals, problems.dual = problems.dual, start
    assert codes.dtype == np.float64
    assert violation(atoms, problems, codes, 0.95)[:3].max() < 1e-9
    assert violation(atoms, problems, codes, 0.95).max() < 1e-3
    residual = problems.points - newton._combine(codes, atoms[problems.working])
    assert_allclose(duals, problems.weights[:, None] * residual, rtol=1e-7, atol=1e-9)
    monkeypatch.setattr(newton, "NEWTON_BYTES", 3 * 12 * 6 * 8)
    sizes = []
    for name in ("_newton", "_polished"):
        original = getattr(newton, name)

        def spy(atoms: Array, block: Problems, l1_ratio: float, original: Any = original, name: str = name) -> Any:
            sizes.append((name, len(block.rows)))
            return original(atoms, block, l1_ratio)

        monkeypatch.setattr(newton, name, spy)
    assert_allclose(solve_working_sets(atoms, problems, 0.95), codes, atol=1e-9)
    assert_allclose(problems.dual, duals, rtol=1e-7, atol=1e-9)
    polished = [size for name, size in sizes if name == "_polished"]
    assert [size for name, size in sizes if name == "_newton"] == [3, 3, 1]
    assert polished == ([3, 1] if proximal else [])
