"""What must not change the answer: order of points, rotation, scale, offset, sign, block size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from method_data import ESTIMATORS, union_of_subspaces
from subspaces import KTRR, SC, TRR
from subspaces.utils import blocks

ALL = [pytest.param(cls, id=name) for name, cls in ESTIMATORS.items()]


def graph(model, X):
    return model.fit(X).affinity_matrix_.toarray()


@pytest.mark.parametrize("cls", ALL)
def test_permutation_of_points(cls, seed):
    X, _ = union_of_subspaces(seed)
    order = np.random.default_rng(seed).permutation(len(X))
    W, permuted = graph(cls(3), X), graph(cls(3), X[order])
    np.testing.assert_allclose(permuted, W[np.ix_(order, order)], rtol=1e-6, atol=1e-9)
    if cls is not SC:  # its graph has no clusters here, so rounding decides between equally bad cuts
        assert adjusted_rand_score(cls(3).fit_predict(X)[order], cls(3).fit_predict(X[order])) > 0.98


# an ℓ1 error counts features, which a rotation mixes
@pytest.mark.parametrize("cls", [p for p in ALL if p.id not in ("lrr1", "latlrr")])
def test_rotation_of_features(cls, seed):
    X, _ = union_of_subspaces(seed)
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((X.shape[1],) * 2))[0]
    np.testing.assert_allclose(graph(cls(3), X @ Q), graph(cls(3), X), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("exponent", [-150, -8, 3, 8, 150, 200])
def test_scale(cls, exponent, seed):
    X, _ = union_of_subspaces(seed)
    expected = cls(3).fit(X)
    scaled = cls(3).fit(X * 10.0**exponent)
    np.testing.assert_allclose(
        scaled.affinity_matrix_.toarray(), expected.affinity_matrix_.toarray(), rtol=1e-6, atol=1e-9
    )
    assert adjusted_rand_score(scaled.labels_, expected.labels_) == 1


def test_bandwidth_in_the_units_of_the_data(seed):
    X, _ = union_of_subspaces(seed)
    np.testing.assert_allclose(
        graph(KTRR(3, bandwidth=0.7e200), X * 1e200), graph(KTRR(3, bandwidth=0.7), X), rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("kernel", ["rbf", "exponential", "inverse_square", "inverse_distance"])
def test_offset(kernel, seed):
    X, _ = union_of_subspaces(seed)
    near, far = KTRR(3, kernel=kernel).fit(X), KTRR(3, kernel=kernel).fit(X + 1e6)
    assert adjusted_rand_score(near.labels_, far.labels_) == 1


def test_sign_of_points_under_even_kernels(seed):
    X, _ = union_of_subspaces(seed)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], len(X))[:, None]
    for model in (TRR(3), KTRR(3, kernel="quadratic")):
        np.testing.assert_allclose(graph(model, X * signs), graph(model, X), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("cls", ALL)
def test_block_size(cls, monkeypatch, seed):
    X, _ = union_of_subspaces(seed)
    expected = graph(cls(3), X)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 3000)
    monkeypatch.setattr(blocks, "TILE", 16)
    np.testing.assert_allclose(graph(cls(3), X), expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(4, 40),
    m=st.integers(1, 12),
    k=st.integers(1, 4),
    n_nonzero=st.integers(1, 50),
    kernel=st.sampled_from(["rbf", "linear", "quadratic", "exponential", "cosine", "correntropy"]),
    assign_labels=st.sampled_from(["kmeans", "cluster_qr", "discretize", "modularity"]),
    graph_rule=st.sampled_from(["column", "symmetric"]),
    dtype=st.sampled_from([np.float32, np.float64]),
    data_seed=st.integers(0, 2**20),
)
@pytest.mark.filterwarnings("ignore")
def test_labels_are_valid_for_any_shape(n, m, k, n_nonzero, kernel, assign_labels, graph_rule, dtype, data_seed):
    X = np.random.default_rng(data_seed).standard_normal((n, m)).astype(dtype)
    before = X.copy()
    model = KTRR(k, kernel=kernel, n_nonzero=n_nonzero, assign_labels=assign_labels, graph=graph_rule).fit(X)
    np.testing.assert_array_equal(X, before)
    assert model.labels_.shape == (n,)
    assert model.labels_.min() >= 0
    assert model.labels_.max() < max(k, 1)
    assert np.isfinite(model.embedding_).all()
    np.testing.assert_array_equal(model.predict(X), model.labels_)
