"""Warnings name the line of whoever called, not one of ours. (Apart: mutation testing adds calls in between.)"""

from __future__ import annotations

import numpy as np
import pytest

from subspaces.representation.ridge import IndefiniteKernelWarning, ridge


def test_warnings_of_ridge_point_at_the_caller():
    with pytest.warns(IndefiniteKernelWarning) as said:
        ridge(np.array([[1.0, 3.0], [3.0, 1.0]]), reg=0.01)
    assert said[0].filename == __file__
    with pytest.warns(UserWarning, match="condition number") as said:
        ridge(np.diag([1.0, 1e-30]), reg=1e-18)
    assert said[0].filename == __file__
