"""A graph with many more communities than clusters."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.neighbors import kneighbors_graph


def touching_boxes(rng, k=6, size=500) -> tuple[sparse.csr_array, np.ndarray, np.ndarray]:
    """A graph of points, or of groups, that fill boxes, each with its nearest; neighbouring boxes touch on a side."""
    box, places = np.repeat(np.arange(k), size), rng.uniform(size=(k * size, 3))
    T = sparse.block_diag([kneighbors_graph(places[box == c], 6) for c in range(k)]).tolil()
    for c in range(k):
        a = np.flatnonzero((box == c) & (places[:, 0] < 0.15))
        b = np.flatnonzero((box == (c + 1) % k) & (places[:, 1] < 0.15))
        for i, j in zip(a, b, strict=False):
            T[i, j] = 1
    W = sparse.csr_array(T + T.T)
    W.setdiag(20.0)  # edges inside groups
    return W, box, places + 3 * box[:, None]
