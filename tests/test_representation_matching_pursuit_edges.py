"""Matching pursuit where there is nothing to pursue, or hardly anything in numbers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from subspaces.representation.matching_pursuit import orthogonal_matching_pursuit


def test_no_points_are_refused():
    with pytest.raises(ValueError, match=r"two-dimensional array with points as rows, got shape \(0, 3\)"):
        orthogonal_matching_pursuit(np.empty((0, 3)), n_nonzero=2)


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e150])
def test_scale_does_not_matter(scale, rng):
    """The squares of these numbers have no value."""
    X = rng.standard_normal((12, 4))
    expected = orthogonal_matching_pursuit(X, n_nonzero=3)[0]
    assert_allclose(orthogonal_matching_pursuit(scale * X, n_nonzero=3)[0].toarray(), expected.toarray(), atol=1e-9)


def test_more_atoms_asked_for_than_there_are(rng):
    X = rng.standard_normal((4, 9))
    C = orthogonal_matching_pursuit(X, n_nonzero=50)[0].toarray()
    assert np.count_nonzero(C, axis=0).max() == 3
    assert (C.diagonal() == 0).all()
    for i in range(4):
        others = np.delete(np.arange(4), i)
        assert_allclose(C[others, i], np.linalg.lstsq(X[others].T, X[i], rcond=None)[0], atol=1e-10)
