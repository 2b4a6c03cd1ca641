"""Choose landmarks among many samples.

Each sampler is a function ``sampler(X, n_landmarks, rng)`` that returns `n_landmarks` different row numbers of X. A
function of the same form is accepted wherever a sampler's name is. Those here also take the order of the rows in which
they draw: in a canonical one (:mod:`subspaces.utils.ordering`) the same samples are drawn from a shuffled table.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.cluster import kmeans_plusplus

from subspaces.utils.types import Array, Labels

Sampler = Callable[..., Labels]

_POOL = 20_000  # samples that k-means++ looks at: each of its steps is a pass over them
_POOL_PER_LANDMARK = 10


def uniform(X: Array, n_landmarks: int, rng: np.random.Generator, order: Labels | None = None) -> Labels:
    """Draw any set of `n_landmarks` samples with equal probability: step 1 of the paper's Algorithm 2."""
    rows = rng.choice(len(X), n_landmarks, replace=False).astype(np.intp)
    return rows if order is None else order[rows]


def kmeans_plus_plus(X: Array, n_landmarks: int, rng: np.random.Generator, order: Labels | None = None) -> Labels:
    """Draw with probability proportional to the squared distance from the samples drawn before (D² sampling).

    It reaches small clusters that uniform sampling misses. Candidates are a uniform pool of 20,000 samples, or 10 per
    landmark, so that the cost does not grow with n.
    """
    pool = _pool(len(X), n_landmarks, rng, order)
    # one trial: with more, each step keeps the best of several candidates, which serves k-means but is no sampling
    _, chosen = kmeans_plusplus(X[pool], n_landmarks, random_state=int(rng.integers(2**31 - 1)), n_local_trials=1)
    return pool[_completed(np.asarray(chosen, dtype=np.intp), len(pool), n_landmarks, rng)]


SAMPLERS: dict[str, Sampler] = {
    "uniform": uniform,
    "kmeans++": kmeans_plus_plus,
}


def _pool(n: int, n_landmarks: int, rng: np.random.Generator, order: Labels | None) -> Labels:
    size = max(_POOL, _POOL_PER_LANDMARK * n_landmarks)
    places = np.arange(n) if size >= n else np.sort(rng.choice(n, size, replace=False))
    return (places if order is None else order[places]).astype(np.intp)


def _completed(chosen: Labels, n: int, n_landmarks: int, rng: np.random.Generator) -> Labels:
    """Add random rows: k-means++ repeats itself when there are fewer different samples than landmarks."""
    chosen = np.unique(chosen)
    others = np.setdiff1d(np.arange(n), chosen, assume_unique=True)
    return np.concatenate([chosen, rng.choice(others, n_landmarks - len(chosen), replace=False)]).astype(np.intp)
