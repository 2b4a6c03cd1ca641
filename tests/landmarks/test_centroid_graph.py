"""Labels of centroids by their graph."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from subspaces.landmarks.centroid_graph import spectral_labels


def test_a_centroid_far_from_all_others_joins_the_largest_cluster():
    W = np.zeros((7, 7))
    W[:4, :4] = W[4:6, 4:6] = 1
    np.fill_diagonal(W, 0)
    labels = spectral_labels(sparse.csr_array(W), 2, 5, 0)
    assert labels[6] == labels[0]
    assert adjusted_rand_score(labels[:6], [0, 0, 0, 0, 1, 1]) == 1
