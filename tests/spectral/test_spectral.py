"""Spectral embedding against dense eigh of the whole Laplacian, above all where iterative solvers go wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import block_diag

from subspaces.spectral import embedding
from subspaces.spectral.embedding import spectral_embedding, unit_rows


def dense_pairs(W: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """All eigenpairs of I − D^(−1/2) W D^(−1/2) on the points that have edges, ascending."""
    A = W.toarray().astype(np.float64)
    degree = A.sum(axis=1)
    used = degree > 0
    L = np.eye(int(used.sum())) - A[np.ix_(used, used)] / np.sqrt(np.outer(degree[used], degree[used]))
    values, inner = np.linalg.eigh((L + L.T) / 2)
    vectors = np.zeros((len(A), len(values)))
    vectors[used] = inner
    return values, vectors


def check(found: embedding.Embedding, W: sparse.csr_array, k: int, tolerance: float = 1e-8, pairs=None) -> None:
    """Eigenvalues, orthonormality, and the invariant subspace of each cluster of eigenvalues."""
    values, vectors = dense_pairs(W) if pairs is None else pairs
    assert found.vectors.shape == (W.shape[0], k)
    assert found.vectors.dtype == W.dtype
    assert_allclose(found.eigenvalues, values[:k], rtol=0, atol=tolerance)
    assert_allclose(found.vectors.T @ found.vectors, np.eye(k), rtol=0, atol=max(tolerance, 1e-9))
    assert found.residuals.max() < max(tolerance, 1e-9)
    # each group of close eigenvalues spans what the reference says; the last one may be cut by k
    borders = np.flatnonzero(np.diff(values) > 1e3 * tolerance) + 1
    for group in np.split(np.arange(len(values)), borders):
        mine = found.vectors[:, group[group < k]]
        outside = mine - vectors[:, group] @ (vectors[:, group].T @ mine)
        assert np.abs(outside).max(initial=0) < max(1e-5, np.sqrt(tolerance))


def random_graph(n: int, rng: np.random.Generator, density: float = 0.1) -> np.ndarray:
    """A connected weighted graph: a path and random edges."""
    A = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 1)
    if n > 1:
        A[np.arange(n - 1), np.arange(1, n)] += 0.2
    return A + A.T


def blocks(sizes: list[int], rng: np.random.Generator, density: float = 0.3) -> sparse.csr_array:
    return sparse.csr_array(block_diag(*[random_graph(size, rng, density) for size in sizes]))


def weakly_tied(n_blocks: int, size: int, weight: float, rng: np.random.Generator) -> sparse.csr_array:
    W = blocks([size] * n_blocks, rng).tolil()
    for b in range(n_blocks):
        i, j = b * size + rng.integers(size), (b + 1) % n_blocks * size + rng.integers(size)
        W[i, j] = W[j, i] = weight
    return sparse.csr_array(W)


# ------------------------------------------------------------------ small graphs: everything against dense eigh


@pytest.mark.parametrize("k", [1, 2, 7, 40])
def test_connected_graph(k, rng):
    W = sparse.csr_array(random_graph(40, rng))
    found = spectral_embedding(W, k)
    assert found.n_components == 1
    check(found, W, k)


@pytest.mark.parametrize("k", [4, 5, 9, 30])
def test_disconnected_graph_with_isolated_points(k, rng):
    W = sparse.block_diag([sparse.csr_array((3, 3)), blocks([12, 5, 20, 7], rng), sparse.csr_array((2, 2))])
    W = sparse.csr_array(W)
    order = rng.permutation(W.shape[0])
    W = W[order][:, order]
    found = spectral_embedding(W, k)
    assert found.n_components == 4
    check(found, W, k)
    isolated = np.asarray(W.sum(axis=1)).ravel() == 0
    assert_array_equal(found.components == -1, isolated)
    assert (found.vectors[isolated] == 0).all()
    assert_array_equal(np.bincount(found.components[~isolated]), [20, 12, 7, 5])


@pytest.mark.parametrize("k", [1, 3])
def test_more_components_than_vectors_gives_all_null_vectors(k, rng):
    W = blocks([6, 7, 8, 9], rng)
    found = spectral_embedding(W, k)
    assert found.vectors.shape == (30, 4)
    assert_allclose(found.eigenvalues, 0, atol=1e-12)
    check(found, W, 4)


@given(
    arrays(np.float64, st.integers(2, 9).map(lambda n: (n, n)), elements=st.sampled_from([0.0, 0.0, 0.0, 0.5, 1, 7])),
    st.integers(1, 9),
)
def test_any_small_graph(A, k):
    A = np.triu(A, 1)
    if not A.any():
        A[0, 1] = 1
    W = sparse.csr_array(A + A.T)
    values, _ = dense_pairs(W)
    n_null = int((values < 1e-9).sum())
    found = spectral_embedding(W, k)
    assert found.n_components == n_null
    check(found, W, max(n_null, min(k, len(values))))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_scale_of_the_weights_does_not_matter(scale, dtype, rng):
    W = blocks([30, 20], rng).astype(dtype)
    tolerance = 1e-8 if dtype == np.float64 else 1e-5
    found = spectral_embedding((W * dtype(scale)).astype(dtype), 6)
    check(found, W, 6, tolerance)
    assert found.eigenvalues.dtype == dtype


def test_no_edge_is_an_error():
    for W in (sparse.csr_array((5, 5)), sparse.csr_array((np.zeros(2), ([0, 1], [1, 0])), shape=(5, 5))):
        with pytest.raises(ValueError, match="no edge"):
            spectral_embedding(W, 2)


def test_graph_is_not_changed_and_any_format_will_do(rng):
    W = blocks([10, 12], rng)
    before = W.copy()
    expected = spectral_embedding(W, 4).vectors
    assert_array_equal(W.toarray(), before.toarray())
    for convert in (sparse.csc_array, sparse.coo_array, sparse.csr_matrix):
        assert_allclose(spectral_embedding(convert(W), 4).vectors, expected, rtol=0, atol=1e-10)


def test_unit_rows(rng):
    Y = rng.standard_normal((6, 3)).astype(np.float32)
    Y[2] = 0
    before = Y.copy()
    scaled = unit_rows(Y)
    assert scaled.dtype == np.float32
    assert_allclose(np.linalg.norm(scaled, axis=1), [1, 1, 0, 1, 1, 1], rtol=1e-6)
    assert_allclose(scaled * np.linalg.norm(Y, axis=1, keepdims=True), Y, rtol=1e-5)
    assert_array_equal(Y, before)


# ------------------------------------------------------------------ the trap: perfect and nearly perfect graphs


@pytest.mark.parametrize(("n_blocks", "size"), [(38, 64), (20, 200)])
@pytest.mark.parametrize("weights", ["random", "equal"])
def test_perfect_graph_misses_nothing(n_blocks, size, weights, rng):
    parts = [random_graph(size, rng) if weights == "random" else 1.0 - np.eye(size) for _ in range(n_blocks)]
    W = sparse.csr_array(sparse.block_diag([sparse.csr_array(part) for part in parts]))
    expected = np.sort(np.concatenate([dense_pairs(sparse.csr_array(part))[0] for part in parts]))
    for k in (n_blocks, n_blocks + 9):
        found = spectral_embedding(W, k)
        assert found.n_components == n_blocks
        assert_allclose(found.eigenvalues, expected[:k], rtol=0, atol=1e-10)
        assert found.residuals.max() < 1e-10
        assert_allclose(found.vectors.T @ found.vectors, np.eye(k), rtol=0, atol=1e-10)
    rows = unit_rows(found.vectors[:, :n_blocks]).reshape(n_blocks, size, n_blocks)
    assert_allclose(rows, np.repeat(rows[:, :1], size, axis=1), rtol=0, atol=1e-10)  # one corner per block
    assert_allclose(rows[:, 0] @ rows[:, 0].T, np.eye(n_blocks), rtol=0, atol=1e-10)


@pytest.mark.parametrize("weight", [1e-6, 1e-5, 1e-4, 1e-3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_weakly_tied_blocks_miss_nothing(weight, dtype, rng):
    """38 eigenvalues within 1e-6 of each other: the Lanczos path must still find every one."""
    W = weakly_tied(38, 16, weight, rng).astype(dtype)
    assert W.shape[0] > embedding.DENSE_SIZE
    values, vectors = dense_pairs(W)
    for k in (38, 43):
        found = spectral_embedding(W, k)
        assert found.n_components == 1
        if dtype == np.float64:
            check(found, W, k, 1e-10, (values, vectors))
        else:
            assert_allclose(found.eigenvalues, values[:k], rtol=0, atol=1e-5)
            assert_allclose(found.vectors.T @ found.vectors, np.eye(k), rtol=0, atol=1e-3)


# ------------------------------------------------------------------ solvers against each other


@pytest.mark.parametrize("k", [2, 6, 20])
def test_lanczos_is_the_dense_solver(k, rng, monkeypatch):
    W = sparse.csr_array(random_graph(300, rng, 0.03))
    expected = spectral_embedding(W, k)
    monkeypatch.setattr(embedding, "DENSE_SIZE", 1)
    found = spectral_embedding(W, k)
    check(found, W, k)
    assert_allclose(found.eigenvalues, expected.eigenvalues, rtol=0, atol=1e-10)


@pytest.mark.parametrize("shape", ["complete", "complete bipartite", "complete multipartite"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_lanczos_where_all_other_eigenvalues_of_the_affinity_are_zero_or_less(shape, dtype, monkeypatch):
    """The known vector must not come back as a fake eigenvector with eigenvalue 0 of the projected affinity."""
    monkeypatch.setattr(embedding, "DENSE_SIZE", 1)
    n_parts = {"complete": 120, "complete bipartite": 2, "complete multipartite": 6}[shape]
    part = np.arange(120) * n_parts // 120
    W = sparse.csr_array((part[:, None] != part).astype(dtype))
    found = spectral_embedding(W, 4)
    check(found, W, 4, 1e-8 if dtype == np.float64 else 1e-4)


def test_same_bits_on_every_run(rng):
    for W in (weakly_tied(38, 16, 1e-5, rng), blocks([40, 60], rng), sparse.csr_array(random_graph(600, rng, 0.02))):
        assert_array_equal(spectral_embedding(W, 40).vectors, spectral_embedding(W, 40).vectors)
