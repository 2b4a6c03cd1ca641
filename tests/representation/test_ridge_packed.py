"""The closed form in half the memory against the one of the full matrix."""

import tracemalloc

import numpy as np
import pytest

from subspaces import KTRR
from subspaces.estimators import ridge as routes
from subspaces.kernels import DistanceKernel, as_kernel
from subspaces.numerics.packed import packed
from subspaces.representation.ridge import IndefiniteKernelWarning, ridge
from subspaces.representation.ridge_packed import ridge_packed


@pytest.fixture
def X(rng):
    points = rng.standard_normal((91, 300)) + 3
    points[7] = points[50]
    return points


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("name", ["rbf", "exponential", "inverse_square", "inverse_distance", "cosine", "cubic"])
def test_kernel_and_coefficients_are_those_of_the_full_matrix(X, name, affine):
    kernel = as_kernel(name).fit(X)
    K, half = kernel.gram(X), kernel.packed_gram(X)
    np.testing.assert_allclose(half.block(0, len(X)), K, rtol=1e-12)
    expected, found = ridge(K, reg=0.1, affine=affine), ridge_packed(half, reg=0.1, affine=affine)
    C = expected.dense()
    np.testing.assert_allclose(found.dense(), C, atol=1e-11 * abs(C).max())
    np.testing.assert_allclose(np.vstack([found.rows(0, 60), found.rows(60, 91)]), found.dense(), rtol=1e-14)
    assert found.penalty == pytest.approx(expected.penalty, rel=1e-12)
    assert found.condition == pytest.approx(expected.condition, rel=1e-8)
    assert found.residual < 1e-11
    np.testing.assert_allclose(half.block(0, len(X)), K, rtol=1e-12)  # not overwritten


def test_copies_of_a_point_are_at_distance_zero(X):
    half = as_kernel("exponential").fit(X).packed_gram(X)
    assert half.block(7, 8)[0, 50] == pytest.approx(1, abs=1e-12)


def test_overwriting_takes_the_memory(X):
    half = as_kernel("rbf").fit(X).packed_gram(X)
    before = half.half.copy()
    ridge_packed(half, overwrite=True)
    assert not np.array_equal(half.half, before)


def test_what_the_full_matrix_sees_to_goes_its_way(rng):
    Z = rng.standard_normal((30, 4))
    K = Z @ Z.T
    K = np.where(np.eye(30) > 0, K, -K)

    def of(K):
        return packed(30, K.dtype, lambda start, stop, first, last: K[start:stop, first:last], K.copy)

    with pytest.warns(IndefiniteKernelWarning, match="not positive definite"):
        found = ridge_packed(of(K), reg=1e-3)
    with pytest.warns(IndefiniteKernelWarning, match="not positive definite"):
        np.testing.assert_array_equal(found.dense(), ridge(K, reg=1e-3).dense())
    large = (K @ K) * 2.0**80
    np.testing.assert_array_equal(ridge_packed(of(large)).dense(), ridge(large).dense())


def test_kernels_of_others_keep_their_own_matrix(X):
    class Own(DistanceKernel):
        def profile(self, block):
            np.exp(-block, out=block)

        def gram(self, X):
            return super().gram(X) + np.eye(len(X))

    assert Own(bandwidth=1.0).packed_gram(X) is None
    assert as_kernel(lambda A, B: A @ B.T).packed_gram(X) is None
    assert as_kernel("precomputed").packed_gram(X @ X.T) is None


@pytest.mark.parametrize(
    "settings", [{}, {"affine": True}, {"graph": "column"}, {"n_clusters": 3, "n_nonzero": 2}], ids=str
)
def test_a_fit_is_the_same_either_way(X, settings, monkeypatch):
    settings = {"n_clusters": 4, **settings}
    expected = KTRR(**settings).fit(X)
    monkeypatch.setattr(routes, "PACKED_SIZE", 2)
    found = KTRR(**settings).fit(X)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    for name in ("coefficients_", "affinity_matrix_"):
        ours, full = getattr(found, name), getattr(expected, name)
        np.testing.assert_array_equal(ours.indices, full.indices)
        np.testing.assert_allclose(ours.data, full.data, rtol=1e-9)


def test_memory_of_a_fit(rng, monkeypatch):
    X = rng.standard_normal((2000, 8))
    monkeypatch.setattr(routes, "PACKED_SIZE", 2)
    KTRR(3, n_init=1).fit(X[:100])
    tracemalloc.start()
    try:
        KTRR(3, n_init=1, partition="modularity").fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (
        peak < 0.9 * X.shape[0] ** 2 * 8
    )  # at this size blocks of a fixed size count; benchmarks/memory.py has larger ones
