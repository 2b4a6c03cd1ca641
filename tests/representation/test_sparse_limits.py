"""SSC at its limits: units, two points, wild steps; and what is handed from part to part."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from test_sparse import union_of_subspaces

from solved import dense_and_trace
from subspaces.representation import sparse as solver
from subspaces.representation.coefficients import Trace
from subspaces.representation.sparse import data_weight, kssc, kssc_path, ssc
from subspaces.utils.types import Array, Labels


def test_defaults_are_those_of_the_documentation(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def recorded(loss: Any, *options: Any) -> tuple[Array, Trace]:
        given.append((loss.weight * 0.5, *options))
        return np.eye(2), Trace(True, 0)

    monkeypatch.setattr(solver, "_solve", recorded)
    K = np.array([[1.0, 0.5], [0.5, 1.0]])
    X = np.linalg.cholesky(K)
    ssc(X)
    kssc(K)
    ssc(X, outliers=True)
    list(kssc_path(K, [20.0]))
    assert len(given) == 4
    for weight, *options in given:
        assert weight == pytest.approx(20)
        assert options == [False, 1e-4, 200, None]
    given.clear()
    start = np.ones((2, 2))
    for outliers in (False, True):
        ssc(X, error_weight=3.0, affine=True, outliers=outliers, tol=0.1, max_iter=7, start=start)
        weight, *options = given.pop()
        assert weight == pytest.approx(3)
        assert options == [True, 0.1, 7, start]


def test_path_hands_every_argument_on(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def recorded(K: Array, **options: Any) -> Any:
        given.append(options)
        n_given = len(given)
        return SimpleNamespace(dense=lambda: n_given)

    monkeypatch.setattr(solver, "kssc", recorded)
    list(kssc_path(np.eye(2), [2.0, 3.0], affine=True, tol=0.1, max_iter=7))
    options = {"affine": True, "tol": 0.1, "max_iter": 7}
    assert given == [{"error_weight": 2.0, "start": None, **options}, {"error_weight": 3.0, "start": 1, **options}]


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("factor", [2.0**-30, 2.0**30])
def test_units_do_not_matter(rng: np.random.Generator, affine: bool, factor: float) -> None:
    X, _ = union_of_subspaces(rng, n_each=6)
    X = np.vstack([X, X[:5]])  # equal points need the ridge
    C, trace = dense_and_trace(ssc(X, affine=affine, tol=1e-7))
    scaled, scaled_trace = dense_and_trace(ssc(factor * X, affine=affine, tol=1e-7))
    assert_allclose(scaled, C, atol=1e-9)
    assert scaled_trace.n_iter == trace.n_iter


def test_two_points_that_sum_to_one() -> None:
    C, trace = dense_and_trace(ssc(np.array([[1.0, 0.0], [0.2, 0.7]]), affine=True))
    assert_array_equal(C, [[0, 1], [1, 0]])
    assert trace.converged


def test_all_points_zero() -> None:
    C, trace = dense_and_trace(ssc(np.zeros((4, 2)), affine=True))
    assert_allclose(C.sum(axis=0), 1)
    assert trace.converged


@pytest.mark.parametrize("sizes", [[17, 19, 22, 1, 3, 21], [0, 15, 16, 18]])
def test_supports_grow_by_half_rounded_down_but_eight_at_least(rng: np.random.Generator, sizes: list[int]) -> None:
    dense = np.zeros((len(sizes), 60))
    for row, size in zip(dense, sizes, strict=True):
        row[rng.permutation(60)[:size]] = 1.0
    excess = rng.uniform(0.2, 1, size=dense.shape) * (dense == 0)
    _, _, member = solver._supports(sparse.csr_array(dense), excess, 0.1)
    assert_array_equal(member.sum(axis=1), [size + max(8, size // 2) for size in sizes])


@dataclass(frozen=True)
class _TooLong(solver._Squared):
    def lengths(self, residual: Array, atoms: Labels, before: Array, step: Array, signs: Array) -> float:
        return 5.0


def test_values_beyond_a_change_of_sign_are_zero(rng: np.random.Generator) -> None:
    X, _ = union_of_subspaces(rng, n_each=5)
    gram, points = X @ X.T, np.arange(15)
    weight = data_weight(gram, 5.0)
    start = np.where(rng.random((15, 15)) < 0.4, rng.uniform(0.05, 0.1, size=(15, 15)), 0) * (1 - np.eye(15))
    columns = [start.copy(), start.copy()]
    for loss, rows in zip((solver._Squared(gram, weight), _TooLong(gram, weight)), columns, strict=True):
        solver._round(loss, rows, np.zeros((4, 15)), points, False, 1e-9, True)
    expected = start + 5 * (columns[0] - start)
    signs = np.sign(np.where(start != 0, start, columns[0]))
    beyond = expected * signs < 0
    assert np.count_nonzero(beyond) > 5
    assert_allclose(columns[1], np.where(beyond, 0, expected), atol=1e-12)


def test_a_round_mends_the_sums_before_its_step(rng: np.random.Generator) -> None:
    X, _ = union_of_subspaces(rng, n_each=7)
    X[rng.random(X.shape) < 0.2] += 2
    loss = solver._Huber(X @ X.T, data_weight(X @ X.T, 60.0), X, 0.05)
    columns = 1.01 * solver._first_columns(loss.gram, True, None)
    left = solver._round(loss, columns, np.zeros((4, 21)), np.arange(21), True, 1e-9, True)
    assert len(left) > 10
    assert_allclose(columns[left].sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layout_and_precision_of_the_result(rng: np.random.Generator, dtype: Any) -> None:
    X, _ = union_of_subspaces(rng, n_each=5)
    K = (X @ X.T).astype(dtype)
    expected = kssc(K).dense()
    for given in (np.asfortranarray(K), np.repeat(K, 2, axis=1)[:, ::2]):
        C = kssc(given).dense()
        assert C.dtype == dtype
        assert C.flags.f_contiguous
        assert_allclose(C, expected, atol=1e-3 if dtype == np.float32 else 1e-9)
    for options in ({"affine": True}, {"outliers": True, "outlier_penalty": 5.0}):
        assert ssc(X.astype(dtype), **options).dense().dtype == dtype


def test_curvature_with_few_entries_beyond_the_threshold(rng: np.random.Generator) -> None:
    X = rng.normal(size=(9, 6))
    loss = solver._Huber(X @ X.T, 1.7, X, 1.0)
    residual, atoms = np.full((3, 6), 0.1), rng.integers(0, 9, size=(3, 4))
    residual[0, 5], residual[1, [2, 4]] = 3.0, (-2.0, 5.0)
    part = np.where(np.abs(residual) > 1, 0.1 / np.abs(residual), 1)
    expected = 1.7 * np.einsum("bim,bm,bjm->bij", X[atoms], part, X[atoms])
    assert_allclose(loss.curvature(atoms, residual), expected, atol=1e-10)


def test_first_point_zero(rng: np.random.Generator) -> None:
    """Supports are padded with the first point; that it is orthogonal to all must not matter."""
    X, _ = union_of_subspaces(rng, n_each=5)
    C = ssc(X, tol=1e-7).dense()
    padded, trace = dense_and_trace(ssc(np.vstack([np.zeros(X.shape[1]), X]), tol=1e-7))
    assert trace.converged
    assert not padded[0].any()
    assert not padded[:, 0].any()
    assert_allclose(padded[1:, 1:], C, atol=1e-9)


def test_a_point_stays_in_the_rounds_as_long_as_it_moves() -> None:
    K = np.array([[1.0, 0.5e9], [0.5e9, 1e18]])  # coefficients far below one
    columns, points = np.zeros((2, 2)), np.array([0])
    n_rounds = 0
    while len(points) and n_rounds < 20:
        points = solver._round(solver._Squared(K, 40.0), columns, np.zeros((4, 2)), points, False, 1e-300, True)
        n_rounds += 1
    assert 1 < n_rounds < 20
    assert columns[0, 1] == pytest.approx((40 * 0.5e9 - 1) / (40 * 1e18), rel=1e-9)


@pytest.mark.parametrize(("size", "change"), [(1.0, (0.0, 0.5)), (1e-20, (0.5, 0.0))])
def test_a_point_that_cannot_move_leaves_and_others_do_not_matter(rng, monkeypatch, size, change):
    """Each point is measured by its own coefficients, be those of the others large or on the move."""
    X = rng.normal(size=(2, 6))
    K = np.vstack([X, rng.normal(size=(6, 6))])
    columns = np.zeros((8, 8))
    columns[:2, 2:] = rng.uniform(1, 2, size=(2, 6))
    columns[0] *= size

    def scaled(curvature, ridge, slope, values, signs, member, affine):
        values *= 1 + np.array(change)[:, None]

    monkeypatch.setattr(solver, "_descend", scaled)
    loss = solver._Squared(K @ K.T, 1.0)
    left = solver._round(loss, columns, np.zeros((4, 8)), np.arange(2), False, 0.0, True)
    assert_array_equal(left, np.flatnonzero(change))


def test_kernels_of_whole_numbers(rng):
    """Counts are numbers as well: the same coefficients, in double precision."""
    X = rng.integers(-3, 4, size=(12, 3))
    C = kssc(X @ X.T).dense()
    assert C.dtype == np.float64
    assert_allclose(C, kssc((X @ X.T).astype(float)).dense(), atol=1e-9)
