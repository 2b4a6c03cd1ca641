"""SEC: copies of points, and points beyond the sample."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from subspaces import SEC
from subspaces.landmarks.spectral_embedded import self_tuned_graph


def test_copies_of_points(rng):
    X = np.vstack([np.zeros((10, 2)), rng.normal(size=(10, 2)) + 5])
    W = self_tuned_graph(X, 3)
    assert np.isfinite(W.data).all()
    assert (W.data > 0).all()
    assert adjusted_rand_score(SEC(2, n_neighbors=3).fit_predict(X), np.repeat([0, 1], 10)) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sampled(rng, dtype):
    y = np.arange(3000) % 3
    X = (8.0 * np.eye(3, 5)[y] + rng.normal(size=(3000, 5))).astype(dtype)
    model = SEC(3, n_landmarks=100).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.cluster_centers_.dtype == np.float64
    others = np.setdiff1d(np.arange(3000), model.landmark_indices_)
    np.testing.assert_array_equal(model.predict(X)[others], model.labels_[others])
