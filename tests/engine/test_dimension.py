"""η from the dimension of the pieces: on unions of known dimension, whatever form the samples come in."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from subspaces import KTRR, LSR1
from subspaces.datasets import make_subspaces
from subspaces.engine.dimension import spanning_neighbors
from subspaces.kernels import RBF, Precomputed


def union(d, rng, curved):
    """Two pieces of d dimensions: flat ones through the origin, or products of d circles."""
    if not curved:
        return np.vstack([rng.standard_normal((400, d)) @ rng.standard_normal((d, 12)) for _ in range(2)])
    angle = rng.uniform(0, 2 * np.pi, (800, d))
    X = np.hstack([np.cos(angle), np.sin(angle)])
    X[400:] = 3 * X[400:] + 10
    return X


@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_one_more_than_the_dimension_of_a_union(d, curved, rng):
    X = union(d, rng, curved)
    found = spanning_neighbors(X, RBF(), None)
    assert found == d + 1
    same = (X[rng.permutation(len(X))], 1e-3 * X[:, ::-1] + 5, X.astype(np.float32), np.repeat(X, 3, axis=0))
    assert [spanning_neighbors(form, RBF(), None) for form in same] == [found] * 4
    assert spanning_neighbors(sparse.csr_array(X), RBF(), None) == found
    wide = RBF(10 * float(np.ptp(X)))  # so wide that the given matrix bends the pieces little
    assert spanning_neighbors(wide.gram(X), Precomputed(), None) == found


def test_a_fit_with_it_is_the_fit_with_the_number():
    X, _ = make_subspaces(3, dimension=4, ambient=20, n_samples=100, random_state=0)
    model, plain = KTRR(3, n_nonzero="dimension").fit(X), KTRR(3, n_nonzero=4).fit(X)
    assert (model.n_nonzero_, plain.n_nonzero_) == (4, 4)  # samples of length 1 lose a dimension
    assert_array_equal(model.labels_, plain.labels_)
    assert (np.diff(model.coefficients_.tocsc().indptr) == 4).all()
    assert model.get_params()["n_nonzero"] == "dimension"
    assert LSR1(3, n_nonzero="dimension").fit(X).n_nonzero_ == 4
    assert LSR1(3).fit(X).n_nonzero_ is None


def test_more_samples_than_are_compared(rng):
    assert spanning_neighbors(np.vstack([union(2, rng, True)] * 4) + 0.1 * rng.random((3200, 1)), RBF(), None) <= 4


def test_few_samples():
    assert spanning_neighbors(np.eye(3), RBF(), None) == 5  # too few to tell: the default
    assert spanning_neighbors(np.array([[0.0], [1.0], [2.1], [3.3], [4.0]]), RBF(), None) == 2
    assert spanning_neighbors(10.0 ** np.arange(6)[:, np.newaxis], RBF(), None) == 2  # less than a line
    assert KTRR(1, n_nonzero="dimension").fit(np.ones((6, 2))).n_clusters_ == 1
