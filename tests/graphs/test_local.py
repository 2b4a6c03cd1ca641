"""LSA and the heat kernel against slow references written plainly, and at the edges of their arguments."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import subspace_angles
from scipy.sparse import issparse
from scipy.spatial.distance import pdist, squareform

from subspaces.graphs import local as module
from subspaces.graphs.local import heat_kernel_graph, lsa, self_tuned_graph
from subspaces.utils import blocks
from subspaces.utils.distances import columns_to_sparse

GRAPHS = {
    "lsa": lambda X: lsa(X, subspace_dim=2, n_neighbors=5, rank=6),
    "heat": heat_kernel_graph,
    "heat knn": lambda X: heat_kernel_graph(X, n_neighbors=4),
    "local": lambda X: heat_kernel_graph(X, bandwidth="local", n_neighbors=4),
}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)


@pytest.fixture
def X(rng):
    """Samples near three 3-dimensional subspaces of a 10-dimensional space."""
    clean = [rng.normal(size=(15, 3)) @ rng.normal(size=(3, 10)) for _ in range(3)]
    return np.concatenate(clean) + 0.1 * rng.normal(size=(45, 10))


def dense(matrix):
    return matrix.toarray() if issparse(matrix) else matrix


def slow_lsa(X, subspace_dim, n_neighbors, rank):
    n = len(X)
    points = np.linalg.svd(X, full_matrices=False)[0][:, :rank]
    points = points / np.linalg.norm(points, axis=1, keepdims=True)
    bases = []
    for i in range(n):
        cosines = np.abs(points @ points[i])
        cosines[i] = 2  # first of all the sample itself
        members = np.argsort(-cosines)[: n_neighbors + 1]
        bases.append(np.linalg.svd(points[members])[2][:subspace_dim].T)
    W = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i != j:
                W[i, j] = np.exp(-np.sum(np.sin(subspace_angles(bases[i], bases[j])) ** 2))
    return W


@pytest.mark.parametrize(
    ("asked", "n_neighbors", "rank", "dim"),
    [(1, 3, 4, 1), (3, 5, 7, 3), (4, 9, 10, 4), (3, 6, 2, 1), (9, 6, 5, 4), (4, 1, 7, 2)],
)
def test_lsa_is_the_principal_angle_formula(X, asked, n_neighbors, rank, dim):
    """Local subspaces never fill the space, and few neighbours span no more than they are."""
    X = X[::2]
    W = lsa(X, subspace_dim=asked, n_neighbors=n_neighbors, rank=rank)
    assert_allclose(W, slow_lsa(X, dim, n_neighbors, rank), atol=1e-7)
    flipped = X * np.where(np.arange(len(X)) % 3, 1, -1)[:, None]
    assert_allclose(lsa(flipped, subspace_dim=asked, n_neighbors=n_neighbors, rank=rank), W, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_subspaces_have_affinity_one_and_not_more(dtype, rng):
    X = np.zeros((60, 11))
    for block in range(3):
        X[20 * block : 20 * block + 20, 3 * block : 3 * block + 3] = rng.normal(size=(20, 3))
    X = (X @ np.linalg.qr(rng.normal(size=(11, 11)))[0]).astype(dtype)
    same = np.kron(np.eye(3), np.ones((20, 20))) > 0
    expected = np.where(same, 1, np.exp(-3)) * (1 - np.eye(60))
    for dim in (3, 5):  # beyond the rank of the neighbourhoods directions are rounding
        W = lsa(X, subspace_dim=dim, n_neighbors=8, rank=9)
        assert W.max() <= 1
        assert_allclose(W, expected, atol=1e-3 if dtype == np.float32 else 1e-7)


@pytest.mark.parametrize(
    ("shares", "subspace_dim", "rank"),
    [
        ([0.5, 0.3, 0.175, 0.015, 0.01], 1, 4),
        ([0.5, 0.3, 0.175, 0.015, 0.01], 4, 5),
        ([0.97, 0.02, 0.006, 0.004], 1, 2),
        ([0.99, 0.01], 1, 2),
    ],
)
def test_default_rank_keeps_98_percent_of_the_energy(shares, subspace_dim, rank, rng):
    m = len(shares)
    left, right = np.linalg.qr(rng.normal(size=(20, m)))[0], np.linalg.qr(rng.normal(size=(m, m)))[0]
    X = (left * np.sqrt(shares)) @ right.T
    found, given = (lsa(X, subspace_dim=subspace_dim, rank=r) for r in (None, rank))
    assert_allclose(found, given, atol=1e-10)


def slow_heat(X, bandwidth):
    distances = squareform(pdist(X))
    sigma2 = (distances**2).mean() / 2 if bandwidth is None else bandwidth**2
    return np.exp(-(distances**2) / (2 * sigma2)) * (1 - np.eye(len(X)))


@pytest.mark.parametrize("bandwidth", [None, 2.0])
def test_heat_kernel_is_the_formula(X, bandwidth):
    full = slow_heat(X, bandwidth)
    assert_allclose(heat_kernel_graph(X, bandwidth=bandwidth), full, rtol=1e-9, atol=1e-300)
    among = np.zeros(full.shape, bool)
    np.put_along_axis(among, np.argsort(-full, axis=1)[:, :4], True, axis=1)
    found = heat_kernel_graph(X, bandwidth=bandwidth, n_neighbors=4)
    assert_allclose(found.toarray(), full * (among | among.T), rtol=1e-9, atol=1e-300)
    # a common offset costs no digits, nor do units in single precision
    assert_allclose(heat_kernel_graph(X + 1e6, bandwidth=bandwidth), full, atol=1e-8)
    if bandwidth is None:
        far = heat_kernel_graph(np.ldexp(X, 60).astype(np.float32), n_neighbors=4)
        assert_allclose(far.toarray(), found.toarray(), atol=1e-5)


def test_self_tuned_graph_is_the_formula(X):
    distances = squareform(pdist(X))
    scales = np.sort(distances, axis=1)[:, 4]
    near = distances <= scales[:, None]
    expected = np.where(near | near.T, np.exp(-(distances**2) / np.outer(scales, scales)), 0) * (1 - np.eye(45))
    assert_allclose(GRAPHS["local"](X).toarray(), expected, atol=1e-12)
    assert_allclose(self_tuned_graph(X, 4, scale_copies=True).toarray(), expected, atol=1e-12)
    X[:8], X[8] = X[0], X[0] + 0.01  # more copies than neighbours, and a sample near them
    distances = squareform(pdist(X))
    scales = np.sort(distances, axis=1)[:, 5]
    plain, scaled = (self_tuned_graph(X, 5, scale_copies=flag).toarray() for flag in (False, True))
    assert set(np.unique(plain[:8, :9]).tolist()) == {0.0, 1.0}  # joined to their copies alone
    assert not plain[:8, 8].any()
    near = np.flatnonzero(scaled[:8, 8])
    expected = np.exp(-(distances[near, 8] ** 2) / (scales.mean() * scales[8]))
    assert_allclose(scaled[near, 8], expected, rtol=1e-9)
    assert len(near) == 5


@every_graph
def test_blocks_precision_and_order_change_nothing(X, rng, monkeypatch, graph):
    X.flags.writeable = False
    whole, order = dense(graph(X)), rng.permutation(len(X))
    assert_array_equal(whole, whole.T)
    assert_allclose(dense(graph(X[order])), whole[np.ix_(order, order)], atol=1e-7)
    single = graph(X.astype(np.float32))
    assert single.dtype == np.float32
    assert_allclose(dense(single), whole, atol=1e-3)
    integers = np.round(5 * X)
    assert_allclose(dense(graph(integers.astype(np.int8))), dense(graph(integers)), atol=1e-10)
    for owner in (blocks, module):
        monkeypatch.setattr(owner, "BLOCK_BYTES", 500)
    again = dense(graph(X))
    assert_array_equal(again, again.T)
    assert_allclose(again, whole, atol=1e-7)


@every_graph
@pytest.mark.parametrize("case", ["zero rows", "duplicates", "all equal", "all zero", "one feature"])
def test_degenerate_samples_never_give_nan(X, graph, case):
    if case == "zero rows":
        X[[0, 5, 44]] = 0
    elif case == "duplicates":
        X = np.repeat(X[:4], 10, axis=0)  # more copies than neighbours
    elif case.startswith("all"):
        X[:] = X[0] * (case == "all equal")
    else:
        X = X[:, :1]
    for dtype in (np.float32, np.float64):
        W = dense(graph(X.astype(dtype)))
        assert np.isfinite(W).all()
        assert W.min() >= 0
        assert W.max() <= 1 + 1e-6
        assert np.all(np.diag(W) == 0)


def test_lsa_leaves_zero_rows_without_edges(X):
    X[[0, 5]] = 0
    W, others = GRAPHS["lsa"](X), np.delete(np.arange(len(X)), [0, 5])
    assert not W[[0, 5]].any()
    assert_allclose(W[np.ix_(others, others)], GRAPHS["lsa"](X[others]), atol=1e-7)


def test_errors_name_the_argument(X):
    for n_neighbors in (0, 45, -1):
        for function in (lsa, heat_kernel_graph):
            with pytest.raises(ValueError, match=f"n_samples - 1 = 44, got {n_neighbors}"):
                function(X, n_neighbors=n_neighbors)
    for options, message in (
        ({"subspace_dim": 0}, "subspace_dim must be at least 1, got 0"),
        ({"rank": 0}, "rank must be at least 1 or None, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            lsa(X, **options)
    for bandwidth, message in ((0, "bandwidth must be positive or None, got 0"), ("local", "needs n_neighbors")):
        with pytest.raises(ValueError, match=message):
            heat_kernel_graph(X, bandwidth=bandwidth)
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        heat_kernel_graph(X[:1])


def test_columns_to_sparse_sorts_copies_and_drops_zeros():
    indices, values = np.array([[2, 1], [0, 2], [1, 0]]), np.array([[5.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
    before = indices.copy(), values.copy()
    found = columns_to_sparse(indices, values)
    assert_array_equal(found.toarray(), [[0, 1, 4], [0, 0, 3], [5, 2, 0]])
    assert (found.nnz, found.format, found.has_sorted_indices) == (5, "csc", True)
    assert_array_equal(indices, before[0])
    assert_array_equal(values, before[1])
