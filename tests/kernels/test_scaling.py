"""Scaling rules, exactness of the power of two, and magnitudes at the ends of the floating-point range."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from subspaces.kernels.scaling import SCALINGS, apply_scaling, fit_scaling

RULES = [None, *SCALINGS]


def scaled(X, rule):
    return apply_scaling(X, fit_scaling(X, rule))


def dense(X) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else X


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rules_are_what_they_say(dtype, rng):
    X = (rng.standard_normal((40, 5)) + 2).astype(dtype)
    X64 = X.astype(np.float64)
    expected = {
        None: X64,
        "unit": X64 / np.sqrt((X64**2).sum(axis=1, keepdims=True)),
        "max": X64 / np.abs(X64).max(),
        "minmax": (X64 - X64.min(axis=0)) / (X64.max(axis=0) - X64.min(axis=0)),
        "standard": (X64 - X64.mean(axis=0)) / X64.std(axis=0),
    }
    counts = np.abs(X64).sum(axis=1, keepdims=True)
    assert_allclose(
        scaled(np.abs(X), "log"),
        np.log1p(np.abs(X64) * np.median(counts) / counts),
        rtol=1e-12,
    )
    for rule, value in expected.items():
        before = X.copy()
        out = scaled(X, rule)
        assert out.dtype == np.float64  # however samples are stored
        assert_allclose(out, value, rtol=1e-12, atol=1e-12)
        assert_array_equal(X, before)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_new_samples_get_the_scaling_of_the_training_samples(rule, dtype, rng):
    X = (rng.standard_normal((30, 4)) * 5 + 1).astype(dtype)
    X = np.abs(X) if rule == "log" else X
    scaling = fit_scaling(X, rule)
    assert_allclose(apply_scaling(X[3:9], scaling), apply_scaling(X, scaling)[3:9], rtol=1e-6)


@pytest.mark.parametrize("rule", [None, "unit", "max"])
@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1.0, 1e200])
@pytest.mark.parametrize("convert", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
def test_sparse_is_dense(rule, scale, convert, rng):
    X = rng.standard_normal((30, 6)) * (rng.random((30, 6)) < 0.5) * scale
    X[4] = 0
    S = convert(X)
    before = S.copy()
    out = scaled(S, rule)
    assert sparse.issparse(out)
    assert_allclose(out.toarray(), scaled(X, rule), rtol=1e-12)
    assert_array_equal(S.toarray(), before.toarray())


def test_sparse_standard_and_minmax_divide_only(rng):
    X = rng.standard_normal((50, 6)) * (rng.random((50, 6)) < 0.5)
    assert_allclose(scaled(sparse.csr_array(X), "standard").toarray(), X / X.std(axis=0), rtol=1e-10)
    X[:, 2] = 0
    for scale in (1e-200, 1.0, 1e200):
        expected = X * scale / np.where(X.any(axis=0), np.abs(X * scale).max(axis=0), 1)
        assert_allclose(scaled(sparse.csr_array(X * scale), "minmax").toarray(), expected, rtol=1e-12)


def test_minmax_of_a_feature_that_vanishes_beside_the_others(rng):
    X = rng.standard_normal((20, 2))
    X[:, 1] = np.finfo(X.dtype).smallest_subnormal * rng.permutation(20)
    with np.errstate(all="raise", under="ignore"):
        assert_array_equal(scaled(X, "minmax")[:, 1], 0)
        # in double precision the smallest numbers of single precision are numbers like others
        X[:, 1] = np.finfo(np.float32).smallest_subnormal * rng.permutation(20)
        assert_allclose(np.sort(scaled(X.astype(np.float32), "minmax")[:, 1]), np.arange(20) / 19)


@pytest.mark.parametrize("rule", ["minmax", "standard"])
@pytest.mark.parametrize("value", [0.1, 1e6 + 0.1, -3.3, 1e-9])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_constant_features_become_zero(rule, value, convert, rng):
    """The standard deviation of equal numbers is rounding, not information."""
    for n, dtype in ((3, np.float32), (1000, np.float64)):
        X = np.c_[np.full(n, value), rng.standard_normal(n)].astype(dtype)
        assert_array_equal(dense(scaled(convert(X), rule))[:, 0], 0)


def test_zero_rows_and_all_zeros(rng):
    X = rng.standard_normal((5, 3))
    X[1] = 0
    assert_allclose(np.linalg.norm(scaled(X, "unit"), axis=1), [1, 0, 1, 1, 1], rtol=1e-12)
    for rule in RULES:
        for zeros in (np.zeros((4, 3)), sparse.csr_array((4, 3))):
            assert_array_equal(dense(scaled(zeros, rule)), np.zeros((4, 3)))


@given(st.integers(-1000, 900))
def test_power_of_two_is_exact(exponent):
    """Data times 2^k is, once the exponent is taken out, the same data bit for bit (up to another power of two)."""
    X = np.random.default_rng(0).standard_normal((6, 3))
    shifted = scaled(np.ldexp(X, exponent), None)
    mantissa, powers = np.frexp(shifted / X)
    assert (mantissa == 0.5).all()
    assert len(np.unique(powers)) == 1
    assert 2.0**-41 < np.abs(shifted).max() < 2.0**41
    assert_allclose(scaled(np.ldexp(X, exponent), "unit"), scaled(X, "unit"), rtol=1e-14)
    assert_allclose(scaled(np.ldexp(X, exponent), "max"), scaled(X, "max"), rtol=1e-14)


def test_ordinary_data_is_left_alone(rng):
    X = rng.standard_normal((6, 3))
    assert scaled(X, None) is X
    assert fit_scaling(1e100 * X, None, units=True).exponent == 0


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-200, 1e-150, 1e150, 1e200, 1.7e308])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_extreme_magnitudes_stay_finite_and_useful(rule, scale, convert):
    X = np.array([[1, 0, 0.5], [0.25, 1, 0], [0, -0.5, 1], [1, 1, 1], [0.5, 0, 0]])
    X = np.abs(X) if rule == "log" else X
    if scale < 1e-300:
        X = (X * 4).round()  # denormals have few digits, so whole multiples of the smallest
    with np.errstate(all="raise", under="ignore"):
        out = dense(scaled(convert(X * scale), rule))
    assert np.isfinite(out).all()
    with np.errstate(all="raise"):
        assert (out**2).sum() > 0  # squares neither overflow nor vanish
    expected = dense(scaled(convert(X), rule))
    if rule not in (None, "log"):  # the logarithm of counts sees how many they are
        assert_allclose(out, expected, rtol=1e-9, atol=1e-12)


def test_negative_counts_are_refused():
    with pytest.raises(ValueError, match=r'scaling="log" is for counts, .* the smallest value is -1\. Use'):
        fit_scaling(np.array([[3.0, -1.0]]), "log")


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_depth_of_reading_does_not_matter(convert, rng):
    """A row of twice the counts is the same row; zero rows stay zero."""
    X = rng.poisson(2.0, (9, 6)).astype(float)
    X[3], X[4] = 2 * X[2], 0
    out = dense(scaled(convert(X), "log"))
    assert_allclose(out[3], out[2], rtol=1e-12)
    assert not out[4].any()


@pytest.mark.parametrize("small", [1e-170, 1e-200, 1e-300])
@pytest.mark.parametrize("large", [1.0, 1e200])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_unit_rows_of_very_different_lengths(small, large, convert):
    """A row has length 1 or is zero; its own magnitude decides, not that of other rows."""
    X = np.array([[3 * large, 4 * large], [3 * small, 4 * small], [0.0, 0.0]])
    assert_allclose(dense(scaled(convert(X), "unit")), [[0.6, 0.8], [0.6, 0.8], [0, 0]], rtol=1e-9)
