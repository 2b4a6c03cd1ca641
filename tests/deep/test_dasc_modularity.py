"""DASC with the cut by modularity."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from subspaces.representation.coefficients import from_dense


def test_dasc_cuts_by_modularity_on_the_way():
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install subspaces[deep]")
    from subspaces.deep import DASC
    from subspaces.deep.dasc import labels_of

    C = np.kron(np.eye(2), np.ones((5, 5))) + 0.01
    np.fill_diagonal(C, 0)
    plan = DASC(2, assign_labels="modularity")._outline(np.zeros((10, 3)))
    labels = labels_of(from_dense(C), plan)
    assert_array_equal(labels == labels[0], np.arange(10) < 5)
