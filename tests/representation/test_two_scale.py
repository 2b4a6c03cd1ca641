"""Two-scale and searched ridge coefficients against the dense closed form; the routes of the estimator."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import block_diag
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from subspaces import KTRR, TRR
from subspaces.engine import ridge_routes as ridge_estimator
from subspaces.kernels import KERNELS, as_kernel
from subspaces.representation import two_scale as two_scale_module
from subspaces.representation.nystrom import fit_global_part
from subspaces.representation.ridge import ridge, ridge_low_rank
from subspaces.representation.ridge_search import ridge_search
from subspaces.representation.two_scale import Prepared, cell_scores, pair_scores, rows_of_coefficients, two_scale
from subspaces.spectral.coarse import coarse_embedding, contract, smooth_labels
from subspaces.utils import cells as cells_module
from subspaces.utils.cells import build_cells

DISTANCE_KERNELS = tuple(name for name, kind in KERNELS.items() if kind.of_distances)


def dense_coefficients(X, kernel, reg):
    return ridge(kernel.gram(X), reg=reg).columns(0, len(X)).T


def recall(C, D, k):
    """Return the share of the k largest entries of each column of D that are among the k largest of C."""
    best = [np.argsort(-np.abs(M), axis=0, kind="stable")[:k] for M in (C, D)]
    return np.mean([len(set(a) & set(b)) / k for a, b in zip(best[0].T, best[1].T, strict=True)])


def prepare(X, kernel, reg, n_landmarks, n_candidates):
    cells, model = build_cells(X), fit_global_part(X, kernel, reg, n_landmarks)
    return Prepared.of(X[cells.order], cells, model, n_candidates)


@pytest.mark.parametrize("name", DISTANCE_KERNELS)
@pytest.mark.parametrize("reg", [0.05, 5.0])
def test_exact_if_candidates_are_all_samples(name, reg, seed):
    X = np.random.default_rng(seed).standard_normal((90, 4))
    kernel = as_kernel(name).fit(X)
    C = two_scale(X, kernel=kernel, reg=reg, n_landmarks=11, n_candidates=89).matrix.toarray()
    np.testing.assert_allclose(C, dense_coefficients(X, kernel, reg), atol=1e-8)


@pytest.mark.parametrize("name", DISTANCE_KERNELS)
def test_exact_if_landmarks_carry_everything(name, seed):
    X = np.random.default_rng(seed).standard_normal((60, 4))
    kernel = as_kernel(name).fit(X)
    C = two_scale(X, kernel=kernel, reg=0.3, n_landmarks=60, n_candidates=7).matrix.toarray()
    D = dense_coefficients(X, kernel, 0.3)
    np.testing.assert_allclose(C[C != 0], D[C != 0], atol=1e-8)
    assert ((C != 0).sum(axis=0) == 7).all()


@pytest.mark.parametrize(("reg", "least"), [(0.1, 0.92), (1.0, 0.94), (10.0, 0.95)])
def test_finds_the_dense_neighbours_of_digits(reg, least):
    X = load_digits().data / 16
    kernel = as_kernel("rbf").fit(X)
    D = dense_coefficients(X, kernel, reg)
    for dtype in (np.float64, np.float32):
        found = two_scale(X.astype(dtype), kernel=kernel, reg=reg)
        assert found.matrix.dtype == np.float64
        assert recall(found.matrix.toarray(), D, 5) > least


def test_leverages_and_pair_scores(seed):
    X = np.random.default_rng(seed).standard_normal((200, 3))
    kernel = as_kernel("rbf").fit(X)
    model = fit_global_part(X, kernel, 0.5, n_landmarks=200)
    H = model.rows(X)
    leverage = (H**2).sum(axis=1)
    assert (leverage > 0).all()
    assert (leverage < 1).all()
    np.testing.assert_allclose(leverage.sum(), model.effective_dimension)
    K = kernel.gram(X)
    np.testing.assert_allclose((H * model.spectrum) @ H.T, K, atol=1e-7)
    # all directions of 100 landmarks: the score is R_ij + λ h_iᵀh_j, −∞ on the diagonal
    prepared = prepare(X, kernel, 0.5, n_landmarks=100, n_candidates=20)
    rows, around = slice(3, 8), np.arange(5, 200)
    found, _ = cell_scores(prepared)(rows, around, np.float64)
    single, error = cell_scores(prepared)(rows, around, np.float32)
    pairs = pair_scores(prepared)(np.arange(3, 8), np.tile(around, (5, 1)))
    model, points = prepared.model, X[prepared.cells.order]
    H = model.rows(points)
    expected = kernel.gram(points) - (H * (model.spectrum - model.penalty)) @ H.T
    np.fill_diagonal(expected, -np.inf)
    np.testing.assert_allclose(found, expected[3:8, 5:], atol=1e-7)
    np.testing.assert_allclose(pairs, found, atol=1e-12)
    others = np.isfinite(found)
    assert single.dtype == np.float32
    assert 0 < np.abs(single[others] - found[others]).max() < error < 1e-3


@pytest.mark.parametrize("kernel", ["rbf", "exponential", "inverse_square", "inverse_distance"])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_candidates_are_those_of_double_precision(kernel, offset, seed, monkeypatch):
    """Clusters that are tight compared with their distances, far from the origin, are hard for single precision."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.standard_normal((30, 4)), 100, axis=0) + 0.02 * rng.standard_normal((3000, 4)) + offset
    X[5:40] = X[4]  # copies tie
    settled = as_kernel(kernel).fit(X)
    prepared = prepare(X, settled, 1.0, n_landmarks=100, n_candidates=15)
    found = rows_of_coefficients(prepared)[0]
    monkeypatch.setattr(type(settled), "steepest_at_zero", False)
    assert (found == rows_of_coefficients(prepared)[0]).all()


@pytest.mark.parametrize("name", ["rbf", "inverse_distance", "quadratic", "polynomial", "linear"])
def test_small_grams_are_grams(name, rng):
    X = rng.standard_normal((3, 4, 6))
    kernel = as_kernel(name).fit(X.reshape(12, 6))
    for found, points in zip(two_scale_module.small_grams(X.copy(), kernel), X, strict=True):
        np.testing.assert_allclose(found, kernel.gram(points), rtol=1e-9, atol=1e-12)


def test_some_cells_at_a_time_give_the_same(seed, monkeypatch):
    monkeypatch.setattr(cells_module, "PROBED_POINTS", 400)
    X = np.random.default_rng(seed).standard_normal((4000, 4))
    kernel, sizes, of = as_kernel("rbf").fit(X), [], Prepared.of
    monkeypatch.setattr(Prepared, "of", lambda points, *rest: (sizes.append(len(points)), of(points, *rest))[1])
    at_once = two_scale(X, kernel=kernel, n_landmarks=50).matrix
    monkeypatch.setattr(two_scale_module, "AROUND", 1500)
    in_parts = two_scale(X, kernel=kernel, n_landmarks=50).matrix
    assert sizes[0] == 4000
    assert max(sizes[1:]) <= 1500
    assert (at_once.indices == in_parts.indices).all()
    np.testing.assert_allclose(at_once.data, in_parts.data, rtol=1e-9, atol=1e-12)


def test_no_square_array(seed):
    X = np.random.default_rng(seed).standard_normal((6000, 5)).astype(np.float32)
    kernel = as_kernel("rbf").fit(X)
    tracemalloc.start()
    two_scale(X, kernel=kernel, reg=1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6000**2 * 4


def test_search_among_rows_of_h_agrees_with_all_products(seed):
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.standard_normal((200, 3)) @ rng.standard_normal((3, 12)) for _ in range(4)])
    D = ridge_low_rank(X, reg=0.1).columns(0, len(X)).T
    found = ridge_search(X, reg=0.1, n_candidates=10, seed=seed)
    C = found.matrix.toarray()
    np.testing.assert_allclose(C[C != 0], D[C != 0], atol=1e-10)
    assert recall(C, D, 5) == 1  # everything is probed at this size
    assert found.penalty == ridge_low_rank(X, reg=0.1).penalty


# ------------------------------------------------------------------ coarse graphs


def test_contraction_sums_edges_between_groups(seed):
    rng = np.random.default_rng(seed)
    W = sparse.random_array((40, 40), density=0.2, rng=rng)
    W = sparse.csr_array(W + W.T)
    groups = rng.integers(0, 6, 40)
    groups[:6] = np.arange(6)
    coarse = contract(W, groups).toarray()
    dense = W.toarray()
    for a in range(6):
        for b in range(6):
            expected = dense[np.ix_(groups == a, groups == b)].sum() if a != b else 0
            assert coarse[a, b] == pytest.approx(expected)


def test_blobs_with_outliers_are_three_clusters(seed):
    X, y = make_blobs([400, 400, 400], centers=[[0, 0], [9, 0], [0, 9]], cluster_std=0.8, random_state=seed)
    outliers = np.random.default_rng(seed).uniform(-60, 60, (20, 2))
    model = KTRR(3, solver="two_scale", spectral="coarse", bandwidth=3.0, random_state=seed).fit(
        np.vstack([X, outliers])
    )
    assert adjusted_rand_score(y, model.labels_[:1200]) > 0.95
    assert model.n_clusters_ == 3


def test_small_components_follow_the_nearest(seed):
    blocks = [np.ones((30, 30)), np.ones((30, 30)), np.ones((2, 2))]
    W = sparse.csr_array(block_diag(*blocks))
    W.setdiag(0)
    groups = np.r_[np.repeat(np.arange(20), 3), 20, 21]
    centroids = np.r_[np.zeros((10, 1)), np.full((10, 1), 9.0), [[8.0]], [[8.5]]]
    big = sparse.csr_array(sparse.block_diag([W, sparse.csr_array((600, 600))]))  # makes the third component small
    groups = np.r_[groups, np.full(600, 0)]
    found = coarse_embedding(big, groups, centroids, 2)
    assert not found.kept[20:].any()
    np.testing.assert_array_equal(found.rows[20], found.rows[19])


def test_smoothing_repairs_single_wrong_labels_and_loses_no_cluster():
    W = sparse.csr_array(block_diag(np.ones((20, 20)), np.ones((20, 20))))
    W.setdiag(0)
    labels = np.repeat([0, 1], 20)
    labels[3], labels[30] = 1, 0
    assert (smooth_labels(W, labels, 2) == np.repeat([0, 1], 20)).all()
    alone = np.zeros(40, dtype=int)
    alone[5] = 1
    assert set(smooth_labels(W, alone, 2)) == {0, 1}


# ------------------------------------------------------------------ the estimator


def test_auto_takes_the_route_that_fits_and_says_why(seed, monkeypatch):
    X = np.random.default_rng(seed).standard_normal((120, 3))
    assert KTRR(2).fit(X).solver_ == "dense"
    assert TRR(2).fit(X).solver_ == "low_rank"
    monkeypatch.setattr(ridge_estimator.memory, "available_bytes", lambda: 14 * 2**20)
    model = KTRR(2).fit(np.random.default_rng(seed).standard_normal((1800, 3)))  # half of K takes 13 MB
    assert model.solver_ == "two_scale"
    assert "free" in model.solver_reason_


@pytest.mark.parametrize(("m", "n_dense", "n_two_scales"), [(50, 3300, 3500), (1000, 7200, 7700)])
def test_auto_takes_two_scales_where_an_inverse_takes_longer(m, n_dense, n_two_scales):
    X = np.broadcast_to(np.zeros(m), (n_two_scales, m))  # a plan looks at the shape alone
    assert KTRR(2).plan(X[:n_dense]).solver == "dense"
    plan = KTRR(2).plan(X)
    assert plan.solver == "two_scale"
    assert "1.6 times as long" in plan.solver_reason
    assert KTRR(2).plan(sparse.csr_array((n_two_scales, m))).solver == "dense"  # two scales would see components


@pytest.mark.parametrize("assign_labels", ["kmeans", "modularity"])
@pytest.mark.parametrize("spectral", ["full", "coarse"])
def test_two_scale_estimator_finds_what_the_dense_one_finds(assign_labels, spectral, seed):
    X, y = make_blobs(600, 8, centers=4, cluster_std=0.7, random_state=seed)
    model = KTRR(4, solver="two_scale", spectral=spectral, assign_labels=assign_labels, random_state=seed).fit(X[:500])
    dense = KTRR(4, solver="dense", assign_labels=assign_labels, random_state=seed).fit(X[:500])
    assert adjusted_rand_score(y[:500], dense.labels_) == 1
    assert adjusted_rand_score(y[:500], model.labels_) == 1
    assert adjusted_rand_score(y[500:], model.predict(X[500:])) == 1
    assert (model.predict(X[:500]) == model.labels_).all()
    assert model.transform(X[500:]).shape == (100, model.embedding_.shape[1])


def test_two_scale_is_the_same_for_every_number_of_threads(seed):
    X = load_digits().data[:900].astype(np.float32)
    labels = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            labels.append(KTRR(10, solver="two_scale", assign_labels="modularity").fit(X).labels_)
    assert (labels[0] == labels[1]).all()


@pytest.mark.parametrize(
    ("params", "X", "word"),
    [
        ({"solver": "two_scale", "kernel": "linear"}, np.eye(30), "two_scale"),
        ({"solver": "two_scale", "kernel": "linear"}, sparse.csr_array(np.eye(30)), "two_scale"),
        ({"spectral": "coarse"}, sparse.csr_array(np.eye(30)), "spectral"),
    ],
)
def test_routes_that_cannot_be_taken(params, X, word):
    with pytest.raises(ValueError, match=word):
        KTRR(2, **params).fit(X)
