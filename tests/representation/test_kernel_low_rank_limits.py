"""KLRR where something is zero, exactly at a limit, or not set at all."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal

from subspaces.representation import _nuclear
from subspaces.representation import kernel_low_rank as module
from subspaces.representation.inverse import IndefiniteKernelWarning
from subspaces.representation.kernel_low_rank import kernel_lrr, metric_shrinkage, solve_l21
from subspaces.utils.types import Array


@pytest.fixture
def unset(monkeypatch) -> None:
    """NaN in the memory that a division with a mask, and without an array for its result, would leave as it is."""
    divide = np.divide

    def masked(*args: Any, out: Array | None = None, where: Any = True) -> Any:
        if out is None and where is not True:
            out = np.full(np.shape(where), np.nan)
        return divide(*args, out=out, where=where)

    monkeypatch.setattr(module.np, "divide", masked)


@pytest.mark.usefixtures("unset")
def test_points_without_errors_have_no_multipliers(rng):
    spectrum = np.array([4.0, 1.0, 0.25])
    B, errors = rng.normal(size=(7, 3)), rng.normal(size=(7, 3))
    errors[2] = 0
    assert np.isfinite(module._multipliers_of(errors, B, spectrum, 0.7)).all()


@pytest.mark.usefixtures("unset")
def test_points_without_errors_on_the_first_level(rng, monkeypatch):
    """Six points have a direction each, all in the first level, and are represented by themselves at once."""
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 4)
    V = scipy.linalg.block_diag(np.eye(6), np.linalg.qr(rng.normal(size=(24, 24)))[0])
    spectrum = np.r_[np.full(6, 1e4), 30 * 0.7 ** np.arange(24)]
    levels, sweep = set(), module._sweep
    monkeypatch.setattr(module, "_sweep", lambda target, *rest: levels.add(target.shape[1]) or sweep(target, *rest))
    low, trace = solve_l21(V, spectrum, 0.1, 1e-4, 500, None)
    assert len(levels) > 1
    assert trace.converged
    found = V @ low.dense().T
    assert_allclose(found[:6, :6], np.eye(6), atol=1e-3)
    assert_allclose(found[6:, :6], 0, atol=1e-3)


@pytest.mark.usefixtures("unset")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_error_step_ends_when_it_has_converged(rng, monkeypatch, dtype):
    steps, einsum = [], np.einsum
    monkeypatch.setattr(module.np, "einsum", lambda *args: steps.append(1) or einsum(*args))
    spectrum = np.array([9.0, 4.0, 0.1], dtype=dtype)
    W = 3 * rng.normal(size=(30, 3)).astype(dtype)
    W[7] = 0
    for offset in (np.zeros(30, dtype), rng.random(30).astype(dtype)):
        steps.clear()
        found, sizes = metric_shrinkage(W, spectrum, 0.3, offset)
        assert 1 < len(steps) < 15
        assert_array_equal(found[7], 0)
        assert np.isfinite(sizes).all()
    for share in (0.01, 0.6, 0.99):  # of the threshold, Σ w²/Λ = reg²
        steps.clear()
        found, sizes = metric_shrinkage(np.array([[0, 2 * share, 0]], dtype), spectrum, 1.0, np.zeros(1, dtype))
        assert len(steps) == 1
        assert (sizes[0], found.any()) == (0, False)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_is_that_of_the_largest_eigenvalue(dtype):
    limit = 4 * float(np.finfo(dtype).eps)  # the root of 16 points
    for smallest, rank in ((1.5 * limit, 16), (0.5 * limit, 15)):
        K = np.diag(np.r_[1.0, np.full(14, 0.01), smallest]).astype(dtype)
        assert_allclose(np.trace(kernel_lrr(K, reg=np.inf).dense()), rank, rtol=1e-5)


@pytest.mark.parametrize(("smallest", "told"), [(-0.9e-4, False), (-1.1e-4, True)])
def test_negative_eigenvalues_are_compared_with_the_largest(smallest, told):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        Z = kernel_lrr(np.diag([smallest, 1.0, 0.0, 1e-3]), reg=np.inf).dense()
    assert [message.category for message in said] == [IndefiniteKernelWarning] * told
    assert_allclose(Z, np.diag([0, 1, 0, 1]), atol=1e-12)
