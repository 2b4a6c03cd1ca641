"""Ridge coefficients at the limits of single precision, of their defaults and of what is kept the same every time."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from subspaces.representation import inverse as module
from subspaces.representation.inverse import IndefiniteKernelWarning, penalty, warn_if_indefinite
from subspaces.representation.ridge import ridge, ridge_low_rank, ridge_unconstrained_low_rank, whitened
from subspaces.utils import decompositions


def with_eigenvalues(values, rng) -> np.ndarray:
    basis = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    K = (basis * np.asarray(values)) @ basis.T
    return (K + K.T) / 2


def test_default_penalty_is_the_mean_diagonal(rng):
    Z = rng.standard_normal((12, 5))
    for found in (ridge(Z @ Z.T), ridge_low_rank(Z)):
        assert_allclose(found.penalty, (Z**2).sum() / 12, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_residual_is_measured(rng, dtype):
    Z = rng.standard_normal((20, 30)).astype(dtype)
    found = ridge(Z @ Z.T, reg=0.1)
    assert 0 < found.residual < 100 * np.finfo(dtype).eps * found.condition


@pytest.mark.parametrize("overwrite", [False, True])
def test_inverse_of_an_array_in_fortran_order(rng, overwrite):
    Z = rng.standard_normal((9, 9))
    K = Z @ Z.T
    expected = np.linalg.inv(K + 0.2 * np.trace(K) / 9 * np.eye(9))
    found = ridge(np.asfortranarray(K), reg=0.2, overwrite=overwrite)
    assert_allclose(found.dense(), np.eye(9) - expected / np.diag(expected), atol=1e-10)


# ------------------------------------------------------------------ large numbers in single precision


def test_draft_of_negative_points_of_very_different_sizes():
    """The draft is divided by the largest magnitude: by the smallest, squares would overflow."""
    for sign in (1, -1):
        found = ridge_low_rank(sign * np.array([[1.0], [1e-30], [0.5]]), reg=1.0)
        draft = found.draft.core(0, 3)
        assert np.isfinite(draft).all()
        assert_allclose(draft[0, 2], 0.5, rtol=1e-6)


def test_penalty_of_whitened_points_is_summed_in_double(rng):
    """Each feature has a sum of squares in single precision, all of them together have none."""
    Z = rng.standard_normal((60, 40)).astype(np.float32)
    expected, lam = whitened(Z, 0.1)
    H, scaled_lam = whitened(np.ldexp(Z, 60), 0.1)
    assert np.ldexp(np.square(Z, dtype=np.float64).sum(), 120) > np.finfo(np.float32).max
    assert_allclose(scaled_lam, np.ldexp(lam, 120), rtol=1e-6)
    assert_allclose(H @ H.T, expected @ expected.T, atol=1e-4)


def test_sums_have_a_value_where_single_precision_has_none():
    large = np.full(10, 2e38, dtype=np.float32)
    assert module._exponent_of(large, 0.0) == 128


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_penalty_equal_to_the_largest_number_is_refused(dtype):
    with pytest.raises(ValueError, match="take a smaller reg"):
        penalty(np.full(1, np.finfo(dtype).max), 1.0)


def test_precision_of_the_probe_is_that_of_the_kernel(rng, monkeypatch):
    """A vector in double would make a second, larger copy of the matrix it is multiplied with."""
    given, probe = [], module._probe
    monkeypatch.setattr(module, "_probe", lambda n, dtype: given.append((n, dtype)) or probe(n, dtype))
    Z = rng.standard_normal((110, 4)).astype(np.float32)
    K = Z @ Z.T
    ridge(K, reg=0.5), ridge_low_rank(Z, reg=0.5)
    real = decompositions.eigsh
    monkeypatch.setattr(
        decompositions, "eigsh", lambda *a, v0, **b: given.append((len(v0), v0.dtype)) or real(*a, v0=v0, **b)
    )
    module._smallest_by_lanczos(K)
    assert given == [(110, np.float32)] * 3
    assert probe(5, np.float32).dtype == np.float32


def test_points_without_features_have_zero_coefficients():
    found = ridge_unconstrained_low_rank(np.zeros((5, 0)), reg=1.0)
    assert_array_equal(found.columns(0, 5), np.zeros((5, 5)))
    assert (found.condition, found.residual) == (1.0, 0.0)


# ------------------------------------------------------------------ eigenvalues


def test_everything_is_the_same_every_time(rng):
    assert_array_equal(module._probe(7, np.float64), module._probe(7, np.float64))
    K = with_eigenvalues(np.linspace(-3, 9, 300), rng)
    assert module._smallest_by_lanczos(K) == module._smallest_by_lanczos(K)


def test_estimate_is_not_above_the_smallest_eigenvalue(rng):
    """λ is raised by it: what Lanczos has not found yet would be missing."""
    K = with_eigenvalues(np.linspace(-3, 9, 600), rng)
    assert -3.02 < module._smallest_by_lanczos(K) <= -3


def test_margin_for_rounding_is_ten_times_it():
    K = np.diag(np.array([1.0, -3.0, 2.0]))
    with pytest.warns(IndefiniteKernelWarning):
        raised = module._raised_penalty(K, 0.25, -3.0)
    assert raised == 0.25 + 3.0 * 1.001 + 10 * np.finfo(np.float64).eps * 3 * 2.0
    with pytest.warns(IndefiniteKernelWarning):
        raised = module._raised_penalty(np.float32(2.0**40) * np.eye(4, dtype=np.float32), 0.0, 5.0)
    assert raised == 10 * np.finfo(np.float32).eps * 4 * 2.0**40


def test_eigenvalue_at_the_limit_is_rounding(monkeypatch):
    for smallest, told in ((-2e-4, False), (-2.0001e-4, True)):
        monkeypatch.setattr(module, "_smallest_by_lanczos", lambda K, smallest=smallest: smallest)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            warn_if_indefinite(np.diag([1.0, -2.0]))
        assert len(said) == told
