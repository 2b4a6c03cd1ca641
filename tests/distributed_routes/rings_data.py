"""Three rings in many points, and the estimators that cut them in many small tasks."""

from __future__ import annotations

import numpy as np

from subspaces import EKTRR, KTRR
from subspaces.utils.progress import progress_to


def three_rings(rng, n: int) -> np.ndarray:
    """Return n points of three rings in four dimensions, in single precision."""
    angle, radius = rng.uniform(0, 2 * np.pi, n), rng.integers(1, 4, n)
    return np.c_[radius * np.cos(angle), radius * np.sin(angle), 0.1 * rng.normal(size=(n, 2))].astype(np.float32)


def ktrr(**parameters) -> KTRR:
    """Return the method whose graph is computed in shards."""
    return KTRR(**{"n_clusters": 3, "solver": "two_scale", "assign_labels": "modularity", **parameters})


def ektrr(cls=EKTRR, **parameters):
    """Return a method that labels little at a time, so that a thousand points are many blocks."""
    estimator = cls(n_clusters=3, n_landmarks=100, **parameters)
    estimator._block_bytes = 2**12
    return estimator


def watched(listener):
    """A context in which a function of (done, total) is told of every task that is done."""
    return progress_to(lambda name, done, total: listener(done, total) if done and "piece by piece" in name else None)
