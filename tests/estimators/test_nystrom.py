"""Nyström spectral clustering: far points, both precisions, blocks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from subspaces import NystromSC
from subspaces.landmarks import nystrom_features


@pytest.fixture
def X(rng):
    return rng.normal(size=(200, 3))


def test_negative_degrees_do_no_harm(rng):
    # a wide kernel with few landmarks: the approximation of far points is negative
    X = np.vstack([rng.normal(size=(300, 2)), 8 * rng.normal(size=(30, 2))])
    model = NystromSC(3, n_landmarks=5, bandwidth=1.0).fit(X)
    assert np.isfinite(model.cluster_centers_).all()
    assert model.n_clusters_ == 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_separated_groups_in_both_precisions(rng, dtype):
    y = np.arange(3000) % 3
    X = (7.0 * np.eye(3)[y] + rng.normal(size=(3000, 3))).astype(dtype)
    model = NystromSC(3, n_landmarks=150).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.cluster_centers_.dtype == np.float64
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(model.eigenvalues_[0], 1, atol=1e-3)


def test_same_labels_whether_rows_are_kept_or_computed_again(X, monkeypatch):
    kept = NystromSC(4, n_landmarks=50).fit(X).labels_
    monkeypatch.setattr(nystrom_features, "_KEPT_BYTES", 0)
    monkeypatch.setattr(nystrom_features, "_BLOCK_BYTES", 50 * 8 * 37)
    assert adjusted_rand_score(kept, NystromSC(4, n_landmarks=50).fit(X).labels_) == 1
