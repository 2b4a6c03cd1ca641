"""Ridge columns that sum to one: every route against the optimality conditions of the problem as stated."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist

from subspaces import EKTRR, KTRR, LSR1, LSR2, TRR
from subspaces.datasets import make_subspaces
from subspaces.kernels import Linear, as_kernel
from subspaces.metrics import accuracy
from subspaces.representation.new_samples import neighbor_codes, residual_scores
from subspaces.representation.ridge import (
    affine_inverse,
    ridge,
    ridge_low_rank,
    ridge_unconstrained,
    ridge_unconstrained_low_rank,
)
from subspaces.representation.ridge_search import ridge_search
from subspaces.representation.two_scale import two_scale
from subspaces.utils.packed import packed_copy


def by_conditions(K: np.ndarray, lam: float, right: np.ndarray, fixed: tuple[int, ...] = ()) -> np.ndarray:
    """Solve min ½cᵀKc − cᵀright + ½λ‖c‖² with 1ᵀc = 1 and c_i = 0 for i in `fixed` by its KKT system."""
    n = len(K)
    constraints = np.vstack([np.ones(n), *(np.eye(n)[i] for i in fixed)])
    zeros = np.zeros((len(constraints), len(constraints)))
    system = np.block([[K + lam * np.eye(n), constraints.T], [constraints, zeros]])
    return np.linalg.solve(system, np.r_[right, 1.0, np.zeros(len(fixed))])[:n]


def separate(K: np.ndarray, lam: float, *, hollow: bool = True) -> np.ndarray:
    columns = [by_conditions(K, lam, K[:, i], (i,) if hollow else ()) for i in range(len(K))]
    return np.column_stack(columns)


def centred_mean_diagonal(K: np.ndarray) -> float:
    return float(np.trace(K) / len(K) - K.mean())


def kernel_matrix(name: str, X: np.ndarray) -> np.ndarray:
    return X @ X.T if name == "linear" else np.exp(-(cdist(X, X) ** 2) / 4)


@pytest.mark.parametrize("reg", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("name", ["linear", "rbf"])
def test_closed_form_solves_the_problem_with_the_constraint(name, reg, rng):
    K = kernel_matrix(name, rng.standard_normal((40, 5)) + 1.5)
    lam = reg * centred_mean_diagonal(K)
    found = ridge(K, reg=reg, affine=True)
    assert_allclose(found.penalty, lam, rtol=1e-12)
    C = found.dense()
    assert_allclose(C, separate(K, lam), rtol=0, atol=1e-10)
    assert_allclose(C.sum(axis=0), 1, atol=1e-10)
    assert (C.diagonal() == 0).all()
    Z = ridge_unconstrained(K, reg=reg, affine=True).dense()
    assert_allclose(Z, separate(K, lam, hollow=False), rtol=0, atol=1e-10)
    assert_allclose(Z.sum(axis=0), 1, atol=1e-10)


@pytest.mark.parametrize("reg", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize(("n", "r"), [(40, 4), (20, 30), (2, 1)])
def test_low_rank_routes_solve_the_same_problem(n, r, reg, rng):
    Z = (rng.standard_normal((n, r)) + 1) * (rng.random((n, r)) < 0.7)
    Z[0], Z[1, 0] = 0, 1
    K = Z @ Z.T
    lam = reg * centred_mean_diagonal(K)
    for given in (Z, sparse.csr_array(Z)):
        found = ridge_low_rank(given, reg=reg, affine=True)
        assert_allclose(found.penalty, lam, rtol=1e-10)
        assert_allclose(found.dense(), separate(K, lam), rtol=0, atol=1e-10)
        assert found.residual < 1e-9
        assert 1 <= found.condition < 1e7
        unconstrained = ridge_unconstrained_low_rank(given, reg=reg, affine=True)
        assert_allclose(unconstrained.dense(), separate(K, lam, hollow=False), rtol=0, atol=1e-10)


def test_search_finds_the_largest_coefficients(rng):
    Z = rng.standard_normal((60, 4)) + 2
    C = ridge(Z @ Z.T, reg=0.1, affine=True).dense()
    assert_allclose(ridge_search(Z, reg=0.1, affine=True, n_candidates=59).dense(), C, atol=1e-10)
    few = ridge_search(Z, reg=0.1, affine=True, n_candidates=5).dense()
    assert_allclose(few[few != 0], C[few != 0], atol=1e-10)


def test_kernels_that_are_not_positive_definite_are_refused():
    with pytest.raises(ValueError, match="affine=True needs a positive definite K"):
        affine_inverse(packed_copy(-np.eye(3)), np.full(3, -1.0))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_shift_of_all_samples_changes_nothing(dtype, rng):
    X = rng.standard_normal((50, 6))
    expected = ridge_low_rank(X, reg=0.1, affine=True).dense()
    for solve in (lambda Y: ridge_low_rank(Y, reg=0.1, affine=True), lambda Y: ridge(Y @ Y.T, reg=0.1, affine=True)):
        found = solve((X + 10).astype(dtype)).dense()
        assert found.dtype == dtype
        assert_allclose(found, expected, atol=1e-10 if dtype == np.float64 else 2e-3)


@pytest.mark.parametrize("n_landmarks", [60, 7])
@pytest.mark.parametrize("reg", [0.01, 1.0])
def test_two_scales_are_exact_if_candidates_are_all_samples(n_landmarks, reg, rng):
    X = rng.standard_normal((60, 3))
    kernel = as_kernel("rbf").fit(X)
    found = two_scale(X, kernel=kernel, reg=reg, affine=True, n_landmarks=n_landmarks, n_candidates=59)
    C = found.dense()
    assert_allclose(C, separate(kernel.gram(X), found.penalty), atol=1e-8)
    if n_landmarks == 60:
        assert_allclose(found.penalty, reg * centred_mean_diagonal(kernel.gram(X)), rtol=1e-6)
        few = two_scale(X, kernel=kernel, reg=reg, affine=True, n_landmarks=60, n_candidates=6).dense()
        assert_allclose(few[few != 0], C[few != 0], atol=1e-6)


def test_neighbor_codes_of_new_samples(rng):
    X, new = rng.standard_normal((30, 4)) + 3, rng.standard_normal((5, 4)) + 3
    codes = neighbor_codes(new, X, Linear(), 0.3, 30, affine=True).toarray()
    assert_allclose(codes, [by_conditions(X @ X.T, 0.3, X @ x) for x in new], atol=1e-9)


def test_residual_scores_are_distances_to_affine_hulls(rng):
    X, new = rng.standard_normal((30, 6)) + 2, rng.standard_normal((5, 6))
    labels, lam = np.repeat([0, 1, 2], 10), 0.2
    scores = residual_scores(new @ X.T, lambda m: X[m] @ X[m].T, labels, 3, lam, affine=True)
    for i, x in enumerate(new):
        for label in range(3):
            A = X[labels == label]
            c = by_conditions(A @ A.T, lam, A @ x)
            assert_allclose(scores[i, label], x @ x - ((x - A.T @ c) ** 2).sum() - lam * (c**2).sum(), atol=1e-9)


# ------------------------------------------------------------------ estimators


def shifted_planes(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return three planes in the same two directions, side by side."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((8, 5)))[0].T
    parts = [rng.standard_normal((40, 2)) @ basis[:2] + 2 * basis[2 + i] for i in range(3)]
    X = np.concatenate(parts) + 0.01 * rng.standard_normal((120, 8))
    return X, np.repeat([0, 1, 2], 40)


@pytest.mark.parametrize("solver", ["dense", "low_rank"])
@pytest.mark.parametrize("method", [KTRR, TRR, LSR1, LSR2])
def test_estimators_follow_affine_subspaces(method, solver):
    X, y = make_subspaces(3, dimension=2, ambient=10, n_samples=120, affine=True, noise=0.01, random_state=0)
    kernel = {"kernel": "linear"} if method is KTRR else {}
    model = method(3, affine=True, reg=1e-3, scaling=None, solver=solver, **kernel).fit(X)
    assert accuracy(y, model.labels_) == 1
    moved = method(3, affine=True, reg=1e-3, scaling=None, solver=solver, **kernel).fit(X + 5)
    assert_array_equal(moved.labels_, model.labels_)
    for rule in ("neighbors", "residual"):
        found = method(3, affine=True, reg=1e-3, scaling=None, solver=solver, out_of_sample=rule, **kernel).fit(X[::2])
        assert accuracy(y[1::2], found.predict(X[1::2])) > 0.95


def test_parallel_planes_on_every_route():
    X, y = shifted_planes()
    assert accuracy(y, TRR(3, affine=True, reg=1e-2).fit_predict(X)) == 1
    assert accuracy(y, KTRR(3, affine=True, solver="two_scale", reg=1e-2).fit_predict(X)) == 1
    assert accuracy(y, EKTRR(3, affine=True, kernel="linear", reg=1e-2, n_landmarks=100).fit_predict(X)) > 0.95


def test_affine_is_part_of_the_cache_key():
    X, _ = shifted_planes()
    plain, affine = (TRR(3, affine=value).plan(X) for value in (False, True))
    assert plain.key("kernel") == affine.key("kernel")
    assert plain.key("coefficients") != affine.key("coefficients")
    with pytest.raises(ValueError, match="affine"):
        TRR(3, affine="yes").fit(X)
