"""AKK on groups that are there, from all its kernels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from subspaces import AKK
from subspaces.landmarks import kernel_kmeans


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sample", [10_000, 300])
def test_separated_groups(rng, dtype, sample, monkeypatch):
    monkeypatch.setattr(kernel_kmeans, "_START_SAMPLE", sample)
    y = np.arange(2000) % 3
    X = (7.0 * np.eye(3)[y] + rng.normal(size=(2000, 3))).astype(dtype)
    model = AKK(3, n_landmarks=100).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("kernel", ["linear", "cosine", "quadratic", "cubic", "polynomial", "exponential"])
def test_kernels_of_products(rng, kernel):
    y = np.arange(300) % 3
    X = 6.0 * np.eye(3)[y] + 0.5 * rng.normal(size=(300, 3))
    assert adjusted_rand_score(y, AKK(3, n_landmarks=60, kernel=kernel).fit_predict(X)) > 0.95
