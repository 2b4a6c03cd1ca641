"""Leading components of sparse samples against LAPACK, and the route of KTRR that uses them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from subspaces import KTRR
from subspaces.engine import ridge_routes as ridge_estimator
from subspaces.kernels.scaling import apply_scaling, fit_components, fit_scaling
from subspaces.utils.components import leading_directions, mean_and_deviation

K, N, M = 4, 1000, 900


@pytest.fixture(scope="module")
def topics():
    """Counts of words, nearly half of them of a list of the row's own topic, and the topics."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % K
    own = np.array([rng.choice(M, 60, replace=False) for _ in range(K)])
    rows = np.repeat(np.arange(N), 40)
    words = np.where(
        rng.random(len(rows)) < 0.45, own[y[rows], rng.integers(0, 60, len(rows))], rng.integers(0, M, len(rows))
    )
    X = sparse.coo_array((np.ones(len(rows)), (rows, words)), shape=(N, M)).tocsr()
    return X, y


@pytest.mark.parametrize(("n", "m", "r"), [(80, 30, 5), (30, 80, 5), (20, 8, 100), (6, 40, 100)])
def test_directions_are_singular_vectors(n, m, r):
    X = sparse.random_array((n, m), density=0.4, rng=np.random.default_rng(1), format="csr")
    found, Vt = leading_directions(X, r), np.linalg.svd(X.toarray(), full_matrices=False)[2]
    rank = min(n, m, r)
    assert found.shape == (m, rank)
    np.testing.assert_allclose(found.T @ found, np.eye(rank), atol=1e-10)
    captured = np.linalg.norm(X @ found) / np.linalg.norm(X @ Vt[:rank].T)
    assert captured > 0.999
    np.testing.assert_allclose(abs((found * Vt[:rank].T).sum(axis=0))[:2], 1, atol=1e-3)


def test_all_components_leave_distances_alone():
    X = sparse.random_array((40, 12), density=0.4, rng=np.random.default_rng(1), format="csr")
    scaling = fit_components(X, fit_scaling(X, "unit"), 100, 0)
    found, plain = apply_scaling(X, scaling), apply_scaling(X, fit_scaling(X, "unit")).toarray()
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found @ found.T, plain @ plain.T, atol=1e-12)
    assert fit_components(X.toarray(), scaling, 100, 0) is scaling
    assert fit_components(X, scaling, None, 0) is scaling


def test_mean_and_deviation_of_sparse_points(topics):
    for sparse_one, dense_one in zip(
        mean_and_deviation(topics[0]), mean_and_deviation(topics[0].toarray()), strict=True
    ):
        np.testing.assert_allclose(sparse_one, dense_one, atol=1e-12)


@pytest.mark.parametrize("assign_labels", ["kmeans", "modularity"])
def test_sparse_samples_of_few_features_are_as_dense_ones(assign_labels):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(60, 20)) * 0.1 + centre for centre in np.eye(20)[:4]])
    X[np.abs(X) < 0.05] = 0
    models = [
        KTRR(4, solver="two_scale", assign_labels=assign_labels).fit(points) for points in (X, sparse.csr_array(X))
    ]
    assert models[1].solver_ == "two_scale"
    np.testing.assert_array_equal(models[0].labels_, models[1].labels_)
    new = rng.normal(size=(30, 20)) * 0.1 + np.eye(20)[np.arange(30) % 4]
    np.testing.assert_array_equal(models[0].predict(new), models[1].predict(sparse.csr_array(new)))


def test_route_of_many_sparse_points(topics, monkeypatch):
    X, y = topics
    monkeypatch.setattr(ridge_estimator, "EXACT_SIZE", 900)
    model = KTRR(K, scaling="unit", assign_labels="modularity").fit(X)
    assert "leading components" in model.solver_reason_
    assert adjusted_rand_score(y, model.labels_) > 0.95
    shuffled = np.random.default_rng(0).permutation(N)
    again = KTRR(K, scaling="unit", assign_labels="modularity").fit(X[shuffled])
    assert adjusted_rand_score(model.labels_[shuffled], again.labels_) == 1
    np.testing.assert_array_equal(model.predict(X[:50]), model.labels_[:50])
    assert adjusted_rand_score(y, model.predict(sparse.csr_array(X * 2.0))) > 0.9  # new points, by their direction


def test_memory_stays_sparse(monkeypatch):
    """Points whose dense copy would be refused."""
    monkeypatch.setattr(ridge_estimator, "EXACT_SIZE", 400)
    monkeypatch.setattr("subspaces.utils.memory.available_bytes", lambda: 2**29)
    X = sparse.random_array((500, 10**6), density=2e-5, rng=np.random.default_rng(0), format="csr")
    with pytest.raises(MemoryError, match="two-scale graph of 500 points"):
        KTRR(3).plan(X)
    few = X[:, :100_000]
    assert KTRR(3).plan(few).n_components == 100
