"""How the low-rank solvers start and stop: size of the errors, levels, residuals, arguments."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from subspaces.representation._nuclear import (
    Residuals,
    check_arguments,
    check_start,
    levels,
    squared_error_match,
)
from subspaces.representation.coefficients import Trace
from subspaces.representation.low_rank import lrr


@pytest.mark.parametrize("reg", [0.1, 1.0, 3.0, 1000.0])
@pytest.mark.parametrize("n_terms", [5, 200])
@pytest.mark.parametrize("scale", [0.01, 1.0, 50.0])
def test_common_size_of_the_errors(reg, n_terms, scale):
    spectrum, reg = scale**2 * np.array([9.0, 4.0, 1.0, 0.25, 0.01]), reg / scale
    kept, size = squared_error_match(spectrum, reg, n_terms)
    whole = np.sqrt(spectrum.sum() / n_terms)
    expected = whole / 1000
    for _ in range(100):
        left = np.minimum(1, expected / (reg * spectrum))  # share of every direction that is not represented
        expected = max(np.sqrt((spectrum * left**2).sum() / n_terms), 1e-12 * whole)
    assert_allclose(size, expected, rtol=1e-8)
    assert_allclose(kept, 1 - left, atol=1e-10)
    assert isinstance(size, float)
    assert squared_error_match(spectrum.astype(np.float32), reg, n_terms)[0].dtype == np.float32


@pytest.mark.parametrize(
    ("rank", "n_kept", "expected"),
    [
        (39, 3, [39]),
        (40, 3, [32, 40]),
        (40, 16, [32, 40]),
        (42, 17, [42]),
        (43, 17, [34, 43]),
        (200, 3, [32, 64, 128, 200]),
        (160, 20, [40, 80, 160]),
        (1, 0, [1]),
    ],
)
def test_levels_double_up_to_four_fifths(rank, n_kept, expected):
    assert levels(rank, n_kept) == expected


def test_residuals_and_their_trace():
    residuals = Residuals(0.1, 9)
    assert (residuals.budget(True), residuals.budget(False)) == (9, 4)
    assert not residuals.add(0.2, 0.05, 7.0)
    assert not residuals.add(0.05, 0.2, 6.0)
    assert residuals.add(0.1, 0.05, 5.0)
    assert not residuals.add(0.1, 0.05, 5.0, 0.5)
    assert residuals.add(0.05, 0.01, 4.5, 0.5)
    assert residuals.add(0.05, 0.15, 4.0, 1.5)
    assert (residuals.budget(True), residuals.budget(False)) == (3, 1)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=9 .* 5.0e-02 \(primal\) and 1.5e-01 \(dual\) above tol=0.1"):
        assert not residuals.trace().converged
    residuals.add(0.02, 0.1, 3.0)
    trace = residuals.trace()
    assert (trace.converged, trace.n_iter) == (True, 7)
    assert trace.primal == [0.2, 0.05, 0.1, 0.1, 0.05, 0.05, 0.02]
    assert trace.dual == [0.05, 0.2, 0.05, 0.05, 0.01, 0.15, 0.1]
    assert trace.objective == [7.0, 6.0, 5.0, 5.0, 4.5, 4.0, 3.0]
    assert lrr(np.eye(2), reg=np.inf).trace == Trace(True, 0)  # a closed form


@pytest.mark.parametrize("name", ["primal", "dual"])
def test_trace_looks_at_the_last_residuals(name):
    for history, converged in (([1.0, 1.0, 0.1], True), ([0.1, 0.1, 1.0], False)):
        residuals = Residuals(0.5, 3)
        for value in history:
            residuals.add(*((value, 0.0) if name == "primal" else (0.0, value)), 7.0)
        if converged:
            assert residuals.trace().converged
        else:
            with pytest.warns(ConvergenceWarning):
                assert not residuals.trace().converged


def test_arguments():
    assert isinstance(check_arguments(np.float64(0.5), 1e-3, 1), float)
    assert check_arguments(np.inf, 1e-3, 1) == np.inf
    for reg in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="reg must be positive"):
            check_arguments(reg, 1e-3, 1)
    for tol in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="tol must be positive"):
            check_arguments(0.5, tol, 1)
    with pytest.raises(ValueError, match="max_iter must be at least 1, got 0"):
        check_arguments(0.5, 1e-3, 0)


def test_start():
    found = check_start([[1, 2], [3, 4]], 2, np.dtype(np.float32))
    assert found.dtype == np.float32
    assert_array_equal(found, [[1, 2], [3, 4]])
    for start, name in ((np.eye(3), "start"), (np.ones((2, 3)), "start[1]")):
        with pytest.raises(ValueError) as said:
            check_start(start, 2, np.dtype(np.float64), *([name] if name != "start" else []))
        assert str(said.value) == f"{name} must have shape (2, 2) for this X, got {start.shape}"
