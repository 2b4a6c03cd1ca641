"""Labels of new samples against ridge problems solved one by one, and the recognition of training samples."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist

from subspaces.kernels import RBF, Cosine, Cubic, Linear
from subspaces.kernels.base import FunctionKernel
from subspaces.representation import new_samples
from subspaces.representation.new_samples import (
    find_training_points,
    fit_network,
    nearest_points,
    neighbor_codes,
    residual_scores,
    strongest_values,
    vote,
)
from subspaces.utils.cells import build_cells
from subspaces.utils.ordering import hash_rows


def ridge_value(x: np.ndarray, basis: np.ndarray, lam: float) -> float:
    """Return min ‖x − basisᵀc‖² + λ‖c‖² by stacked least squares."""
    stacked = np.vstack([basis.T, np.sqrt(lam) * np.eye(len(basis))])
    target = np.r_[x, np.zeros(len(basis))]
    c = np.linalg.lstsq(stacked, target, rcond=None)[0]
    return float(((stacked @ c - target) ** 2).sum())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_residual_scores_are_ridge_residuals_in_the_feature_space(kernel, dtype, rng):
    X, new = rng.standard_normal((30, 6)).astype(dtype), rng.standard_normal((8, 6)).astype(dtype)
    labels = rng.integers(0, 3, 30)
    both = np.vstack([X, new]).astype(np.float64)
    if kernel == "linear":
        K, Z = both @ both.T, both
    else:
        K = np.exp(-(cdist(both, both) ** 2) / 9)
        values, vectors = np.linalg.eigh(K)
        Z = vectors * np.sqrt(values.clip(0))  # coordinates of the samples in the kernel space
    train, lam = K[:30, :30].astype(dtype), 0.7
    scores = residual_scores(K[30:, :30].astype(dtype), lambda m: train[np.ix_(m, m)].copy(), labels, 4, lam)
    assert scores.shape == (8, 4)
    assert (scores[:, 3] == -np.inf).all()  # an empty cluster never wins
    for i in range(8):
        for label in range(3):
            expected = ridge_value(Z[30 + i], Z[:30][labels == label], lam)
            assert_allclose(K[30 + i, 30 + i] - scores[i, label], expected, rtol=1e-8 if dtype == np.float64 else 1e-3)


def test_residual_scores_of_an_indefinite_kernel_use_its_positive_part():
    K = np.diag([2.0, -1.0])
    scores = residual_scores(np.array([[1.0, 5.0]]), lambda m: K[np.ix_(m, m)].copy(), np.zeros(2, int), 1, 0.5)
    assert_allclose(scores, [[1 / 2.5]])


def direct_code(k: np.ndarray, K: np.ndarray, candidates: np.ndarray, lam: float, n_nonzero: int) -> np.ndarray:
    code = np.zeros(len(k))
    inner = K[np.ix_(candidates, candidates)] + lam * np.eye(len(candidates))
    code[candidates] = np.linalg.inv(inner) @ k[candidates]
    code[np.argsort(-np.abs(code), kind="stable")[n_nonzero:]] = 0
    return code


@pytest.mark.parametrize("kernel", [RBF(2.0), Cubic(), FunctionKernel(lambda X, Y: np.exp(-(cdist(X, Y) ** 2) / 4))])
@pytest.mark.parametrize(
    ("n", "n_new", "n_nonzero"), [(20, 5, 3), (30, 300, 4), (45, 3, 100), (180, 70, 5), (200, 9, 20)]
)
def test_neighbor_codes_are_truncated_ridge_codes(n, n_new, n_nonzero, kernel, rng):
    """Up to 30 training samples all are candidates; 300 new samples need several blocks."""
    X, new = rng.standard_normal((n, 4)), rng.standard_normal((n_new, 4))
    K, to_train = kernel.cross(X, X), kernel.cross(new, X)
    codes = neighbor_codes(new, X, kernel, 0.5, n_nonzero)
    assert isinstance(codes, sparse.csr_array)
    assert codes.shape == (n_new, n)
    n_candidates = min(n, max(30, 4 * n_nonzero))
    alone = np.argsort(-abs(to_train) / np.sqrt(K.diagonal()), axis=1)[:, :n_candidates]
    expected = [direct_code(k, K, np.sort(near), 0.5, n_nonzero) for k, near in zip(to_train, alone, strict=True)]
    assert_allclose(codes.toarray(), expected, rtol=0, atol=1e-9)
    assert (np.diff(codes.indptr) <= n_nonzero).all()


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("kernel", [RBF(2.0), Linear(), Cosine()])
def test_codes_do_not_depend_on_blocks_order_storage_or_cells(kernel, affine, rng):
    """Rows one by one, in another order, as sparse samples, and looked for in cells that hold all samples."""
    X, new = rng.integers(-2, 3, (300, 5)) + 0.0, rng.integers(-2, 3, (90, 5)) + 0.25
    found = neighbor_codes(new, X, kernel, 0.5, 4, affine=affine).toarray()
    order = rng.permutation(90)
    stored = sparse.csr_array(new), sparse.csr_array(X)
    cells = build_cells(X)
    for codes, rows in [
        (np.vstack([neighbor_codes(x[None], X, kernel, 0.5, 4, affine=affine).toarray() for x in new]), slice(None)),
        (neighbor_codes(new[order], X, kernel, 0.5, 4, affine=affine).toarray(), order),
        (neighbor_codes(*stored, kernel, 0.5, 4, affine=affine).toarray(), slice(None)),
        (neighbor_codes(new, X, kernel, 0.5, 4, affine=affine, cells=cells).toarray(), slice(None)),
    ]:
        assert_allclose(codes, found[rows], atol=1e-9)


def test_a_sample_out_of_reach_has_no_code():
    codes = neighbor_codes(np.array([[0.5], [1e3]]), np.arange(5.0)[:, None], RBF(1.0), 0.5, 2)
    assert_array_equal(np.diff(codes.indptr), [2, 0])


def test_codes_of_kernel_values_alone_are_the_largest(rng):
    to_train = rng.standard_normal((6, 30))
    codes = strongest_values(to_train, 4).toarray()
    for row, code in zip(to_train, codes, strict=True):
        kept = np.argsort(-np.abs(row))[:4]
        assert_array_equal(np.flatnonzero(code), np.sort(kept))
        assert_array_equal(code[kept], row[kept])


def test_vote_is_a_sum_of_magnitudes(rng):
    C = rng.standard_normal((7, 20)) * (rng.random((7, 20)) < 0.4)
    labels = rng.integers(0, 3, 20)
    expected = np.array([[np.abs(row[labels == label]).sum() for label in range(4)] for row in C])
    assert_allclose(vote(sparse.csr_array(C), labels, 4), expected, rtol=1e-12)


def test_nearest_training_sample_is_the_first_of_equals(rng):
    X, new = rng.standard_normal((40, 3)) + 5, rng.standard_normal((9, 3)) + 5
    X[20:] = X[:20]
    expected = cdist(new, X[:20]).argmin(axis=1)
    assert_array_equal(nearest_points(new, X), expected)
    assert_array_equal(nearest_points(sparse.csr_array(new), sparse.csr_array(X)), expected)


# ------------------------------------------------------------------ training samples


values = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 255.0, 1e-300, 1e300, 3.14159, 5e-324])


@given(arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 6)), elements=values))
def test_hashes_depend_on_values_only(X):
    expected = hash_rows(X)
    assert expected.dtype == np.uint64
    assert_array_equal(hash_rows(sparse.csr_array(X)), expected)
    assert_array_equal(hash_rows(sparse.csc_array(X)), expected)
    assert_array_equal(hash_rows(np.asfortranarray(X)), expected)
    assert_array_equal(hash_rows(X + 0.0), expected)  # −0.0 becomes 0.0
    assert_array_equal(np.concatenate([hash_rows(row[None]) for row in X]), expected)
    stored = sparse.csr_array((X.ravel(), np.indices(X.shape).reshape(2, -1)), shape=X.shape)  # zeros stored
    assert_array_equal(hash_rows(stored), expected)


@pytest.mark.parametrize("data", ["binary", "pixels", "halves", "normal"])
def test_different_rows_have_different_hashes(data, rng):
    """64 bits: among 3000 rows a collision has a chance of 1e-12, whatever the values are."""
    X = {
        "binary": lambda: (rng.random((3000, 60)) < 0.3).astype(float),
        "pixels": lambda: rng.integers(0, 256, (3000, 60)).astype(float),
        "halves": lambda: rng.integers(0, 8, (3000, 60)) / 2,
        "normal": lambda: rng.standard_normal((3000, 60)),
    }[data]()
    assert len(np.unique(hash_rows(X))) == len(np.unique(X, axis=0))


@pytest.mark.parametrize("form", ["dense", "sparse", "dense new", "sparse new"])
def test_training_samples_are_found(form, rng):
    X = rng.integers(0, 3, (200, 12)).astype(float)
    new = np.vstack([X[rng.permutation(200)[:50]], rng.random((30, 12))])
    train_sparse, new_sparse = form in ("sparse", "dense new"), form in ("sparse", "sparse new")
    A = sparse.csr_array(X) if train_sparse else X
    B = sparse.csr_array(new) if new_sparse else new
    found = find_training_points(B, A, hash_rows(A))
    assert found.dtype == np.intp
    assert_array_equal(X[found[:50]], new[:50])
    assert (found[:50] >= 0).all()
    assert_array_equal(found[50:], -1)


def test_duplicates_find_one_of_their_copies(rng):
    X = np.repeat(rng.standard_normal((10, 3)), 4, axis=0)
    found = find_training_points(X, X, hash_rows(X))
    assert_array_equal(X[found], X)


def test_negative_zero_is_zero():
    X = np.array([[0.0, 1.0], [2.0, 3.0]])
    assert_array_equal(find_training_points(np.array([[-0.0, 1.0]]), X, hash_rows(X)), [0])


@pytest.mark.parametrize("n_hashes", [1, 3])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_hash_collisions_do_no_harm(n_hashes, convert, rng, monkeypatch):
    monkeypatch.setattr(new_samples, "hash_rows", lambda X: hash_rows(X) % np.uint64(n_hashes))
    X, new = convert(rng.standard_normal((20, 3))), convert(rng.standard_normal((20, 3)))
    train_hashes = new_samples.hash_rows(X)
    assert_array_equal(find_training_points(new, X, train_hashes), -1)
    assert_array_equal(find_training_points(X, X, train_hashes), np.arange(20))


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_network_learns_separated_clusters(convert, seed, rng):
    centres = 10 * np.eye(3, 6)
    labels = np.repeat(np.arange(3), 30)
    X = centres[labels] + rng.standard_normal((90, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fit_network(convert(X), labels, seed)
    assert_array_equal(model.predict(convert(X)), labels)
    new = centres[[2, 0, 1]] + 0.1
    assert_array_equal(model.predict(convert(new)), [2, 0, 1])
    again = fit_network(convert(X), labels, seed)
    assert_array_equal(model.predict_proba(convert(X)), again.predict_proba(convert(X)))
    assert model[-1].hidden_layer_sizes == (10,)
