"""Matching pursuit where there is nothing to pursue, or hardly anything in numbers."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from numpy.testing import assert_allclose

from solved import sparse_and_trace
from subspaces.representation import elastic_net
from subspaces.representation import matching_pursuit as module
from subspaces.representation.matching_pursuit import orthogonal_matching_pursuit


def test_no_points_are_refused():
    with pytest.raises(ValueError, match=r"two-dimensional array with points as rows, got shape \(0, 3\)"):
        orthogonal_matching_pursuit(np.empty((0, 3)), n_nonzero=2)


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e150])
def test_scale_does_not_matter(scale, rng):
    """The squares of these numbers have no value."""
    X = rng.standard_normal((12, 4))
    expected = orthogonal_matching_pursuit(X, n_nonzero=3).sparse()
    assert_allclose(
        orthogonal_matching_pursuit(scale * X, n_nonzero=3).sparse().toarray(), expected.toarray(), atol=1e-9
    )


def test_more_atoms_asked_for_than_there_are(rng):
    X = rng.standard_normal((4, 9))
    C = orthogonal_matching_pursuit(X, n_nonzero=50).sparse().toarray()
    assert np.count_nonzero(C, axis=0).max() == 3
    assert (C.diagonal() == 0).all()
    for i in range(4):
        others = np.delete(np.arange(4), i)
        assert_allclose(C[others, i], np.linalg.lstsq(X[others].T, X[i], rcond=None)[0], atol=1e-10)


def slow_pursuit(X, i, n_steps, tol):
    """Atoms in the order they are chosen, their coefficients, and the relative residual after every step."""
    chosen, lengths, residual = [], [], X[i].copy()
    coefficients = np.zeros(0)
    while len(chosen) < n_steps and np.linalg.norm(residual) > tol * np.linalg.norm(X[i]):
        scores = np.abs(X @ residual)
        scores[[i, *chosen]] = -1
        chosen.append(int(scores.argmax()))
        coefficients = np.linalg.lstsq(X[chosen].T, X[i], rcond=None)[0]
        residual = X[i] - coefficients @ X[chosen]
        lengths.append(float(np.linalg.norm(residual) / np.linalg.norm(X[i])))
    return chosen, coefficients, lengths + [lengths[-1]] * (n_steps - len(lengths))


@pytest.mark.parametrize("tol", [1e-6, 0.4])
@pytest.mark.parametrize("batch", [5, 256])
def test_every_step_of_every_point(rng, monkeypatch, tol, batch):
    monkeypatch.setattr(elastic_net, "MAX_BATCH", batch)
    monkeypatch.setattr(elastic_net, "MIN_BATCH", 1)
    X = rng.standard_normal((18, 6)) * rng.uniform(0.5, 2, (18, 1))
    C, trace = sparse_and_trace(orthogonal_matching_pursuit(X, n_nonzero=4, tol=tol))
    expected, lengths = np.zeros((18, 18)), []
    for i in range(18):
        chosen, coefficients, history = slow_pursuit(X, i, 4, tol)
        expected[chosen, i] = coefficients
        lengths.append(history)
    assert_allclose(C.toarray(), expected, atol=1e-9)
    assert C.nnz == np.count_nonzero(expected)
    assert_allclose(trace.primal, np.max(lengths, axis=0), rtol=1e-9)
    assert trace.n_iter == 4
    assert trace.converged is True
    assert C.has_sorted_indices
    assert C.indices.dtype == C.indptr.dtype == np.int32


def test_number_of_steps(rng):
    X = rng.standard_normal((14, 12))
    for shape, n_nonzero, n_steps in [((14, 12), 3, 3), ((4, 12), 9, 3), ((14, 2), 9, 2)]:
        trace = orthogonal_matching_pursuit(X[: shape[0], : shape[1]], n_nonzero=n_nonzero).trace
        assert trace.n_iter == len(trace.primal) == n_steps
    assert orthogonal_matching_pursuit(X).trace.n_iter == 10
    assert orthogonal_matching_pursuit(X, n_nonzero=1).trace.n_iter == 1


def test_tolerance_of_one_asks_for_nothing(rng):
    assert orthogonal_matching_pursuit(rng.standard_normal((6, 3)), tol=1.0).sparse().nnz == 0


def test_default_tolerance():
    X = np.array([[1.0, 0.0], [1.0, 0.9e-6], [0.0, 1.0], [0.0, 0.5]])
    assert np.count_nonzero(orthogonal_matching_pursuit(X).sparse().toarray()[:, 0]) == 1
    X[1, 1] = 1.1e-6
    assert np.count_nonzero(orthogonal_matching_pursuit(X).sparse().toarray()[:, 0]) == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("multiple", "n_atoms"), [(9.5, 1), (10.5, 2)])
def test_ten_times_the_machine_precision_is_nothing(dtype, multiple, n_atoms):
    X = np.array([[1, 0], [1, multiple * np.finfo(dtype).eps], [0, 1]], dtype=dtype)
    C = orthogonal_matching_pursuit(X, n_nonzero=2, tol=0.0).sparse()
    assert C.dtype == dtype
    assert np.count_nonzero(C.toarray()[:, 0]) == n_atoms


@pytest.mark.parametrize(("multiple", "is_chosen"), [(9.0, False), (10.9, True)])
def test_atoms_within_rounding_of_the_others_are_not_chosen(multiple, is_chosen):
    """The second atom of the first point hardly leaves the first one, in relation to its own length."""
    eps = np.finfo(np.float64).eps
    X = np.array([[1.0, 0.5, 0.0], [1.0, 0.0, 0.0], [0.25, 0.25 * multiple * eps, 0.0]])
    C = orthogonal_matching_pursuit(X, n_nonzero=2).sparse().toarray()
    assert (C[2, 0] != 0) == is_chosen


@pytest.mark.parametrize(("multiple", "is_chosen"), [(9.0, False), (10.9, True)])
def test_atoms_orthogonal_to_the_rest_are_not_chosen(multiple, is_chosen):
    """What is left of the first point is (0, 0.5, 0), which the last atom sees only in its last digits."""
    eps = np.finfo(np.float64).eps
    X = np.array([[1.0, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.25 * multiple * eps, 0.25]])
    C = orthogonal_matching_pursuit(X, n_nonzero=2).sparse().toarray()
    assert (C[2, 0] != 0) == is_chosen


def test_most_correlated_atom(rng):
    atoms, residuals = rng.standard_normal((9, 4)), rng.standard_normal((3, 4))
    own, chosen = np.array([1, 2, 3]), np.array([[0, 4], [5, 0], [8, 7]])
    best, strength = module._most_correlated(atoms, residuals, own, chosen)
    for i in range(3):
        scores = np.abs(atoms @ residuals[i])
        scores[[own[i], *chosen[i]]] = -1
        assert best[i] == scores.argmax()
        assert strength[i] == pytest.approx(scores.max(), rel=1e-12)


def test_components_along_and_beside_a_basis(rng):
    Q = np.array([np.linalg.qr(rng.standard_normal((7, 3)))[0].T for _ in range(5)])
    beside = rng.standard_normal((5, 7))
    beside -= np.einsum("bij,bj,bik->bk", Q, beside, Q)
    inside = rng.standard_normal((5, 3))
    vectors = np.einsum("bi,bij->bj", inside, Q) + 1e-7 * beside
    overlap, rest = module._orthogonalised(vectors, Q)
    assert_allclose(overlap, inside, rtol=1e-12)
    assert_allclose(np.einsum("bij,bj->bi", Q, rest), 0, atol=1e-22)
    assert_allclose(rest, 1e-7 * beside, atol=1e-14)
    Q *= 1 + 1e-4  # the parts add up even so
    overlap, rest = module._orthogonalised(vectors, Q)
    assert_allclose(np.einsum("bi,bij->bj", overlap, Q) + rest, vectors, rtol=1e-12, atol=1e-14)


def test_batches_and_threads(rng, monkeypatch):
    sizes, limits, original = [], [], module._pursue

    def spy(atoms, start, stop, *rest):
        sizes.append(stop - start)
        return original(atoms, start, stop, *rest)

    @contextmanager
    def recorded(user_api):
        limits.append(user_api)
        yield

    monkeypatch.setattr(module, "_pursue", spy)
    monkeypatch.setattr(module, "one_thread", recorded)
    X = rng.standard_normal((70, 3))
    orthogonal_matching_pursuit(X, n_nonzero=2)
    monkeypatch.setattr(elastic_net, "BATCH_BYTES", 40 * 70 * 8)
    orthogonal_matching_pursuit(X, n_nonzero=2)
    orthogonal_matching_pursuit(X.astype(np.float32), n_nonzero=2)
    monkeypatch.setattr(elastic_net, "BATCH_BYTES", 8)
    orthogonal_matching_pursuit(X, n_nonzero=2)
    assert sorted(sizes) == sorted([70, 40, 30, 70, 32, 32, 6])
    assert limits == 4 * ["blas"]


@pytest.mark.parametrize("X", [np.ones((3, 2, 1)), np.ones(3)])
def test_points_are_rows_of_a_matrix(X):
    with pytest.raises(ValueError, match="X must be a two-dimensional array"):
        orthogonal_matching_pursuit(X)


def test_one_point_and_no_features():
    for X in (np.ones((1, 3)), np.zeros((2, 0))):
        C, trace = sparse_and_trace(orthogonal_matching_pursuit(X))
        assert C.shape == (len(X), len(X))
        assert C.nnz == 0
        assert trace.n_iter == 0
