"""Choose landmarks among many samples.

Each sampler is a function ``sampler(X, n_landmarks, rng)`` that returns `n_landmarks` different row numbers of X. A
function of the same form is accepted wherever a sampler's name is. Those here also take the order of the rows in which
they draw: in a canonical one (:mod:`subspaces.utils.ordering`) the same samples are drawn from a shuffled table.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.cluster import kmeans_plusplus
from sklearn.preprocessing import normalize

from subspaces.utils.blocks import row_blocks
from subspaces.utils.decompositions import eigh
from subspaces.utils.ordering import first_largest
from subspaces.utils.types import Array, Labels

Sampler = Callable[..., Labels]

_POOL = 20_000  # samples a sequential sampler looks at: each of its steps is a pass over them
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


def leverage(
    X: Array, n_landmarks: int, rng: np.random.Generator, order: Labels | None = None, reg: float = 0.01
) -> Labels:
    """Draw with probability proportional to the ridge leverage score ℓ_i = x_iᵀ(XᵀX + λI)⁻¹x_i.

    Samples in directions that few others share are preferred. λ is `reg` times the mean eigenvalue of XᵀX. O(n m²).
    """
    scores = leverage_scores(X, reg)
    # the largest of log-weights plus Gumbel noise: sampling without replacement in proportion to the weights
    rows = np.arange(len(X)) if order is None else order
    keys = np.log(np.maximum(scores[rows], np.finfo(np.float64).tiny)) + rng.gumbel(size=len(X))
    return rows[np.argpartition(-keys, n_landmarks - 1)[:n_landmarks]].astype(np.intp)


def exemplars(X: Array, n_landmarks: int, rng: np.random.Generator, order: Labels | None = None) -> Labels:
    """Take as the next landmark the sample that those chosen so far represent worst (farthest first).

    These are the exemplars of You et al. 2018 with codes of one atom: a sample of unit length costs
    min_c |c| + ½λ‖x − c e‖² over the landmarks e, a decreasing function of the largest |xᵀe| whatever λ is. So each
    step is one product with the newest landmark instead of n lassos. Candidates are the pool of
    :func:`kmeans_plus_plus`.
    """
    pool = _pool(len(X), n_landmarks, rng, order)
    points = normalize(X[pool])
    chosen = np.empty(n_landmarks, dtype=np.intp)
    closeness = np.zeros(len(points), dtype=points.dtype)
    closeness[~points.any(axis=1)] = 1  # zero rows represent nothing: last
    newest = int(rng.integers(len(points)))
    for step in range(n_landmarks):
        if step:
            newest = int(first_largest(1 - closeness))
        chosen[step] = newest
        np.maximum(closeness, np.abs(points @ points[newest]), out=closeness)
        closeness[newest] = np.inf  # rounding must not let a sample be chosen twice
    return pool[chosen]


SAMPLERS: dict[str, Sampler] = {
    "uniform": uniform,
    "kmeans++": kmeans_plus_plus,
    "leverage": leverage,
    "exemplars": exemplars,
}


def leverage_scores(X: Array, reg: float) -> Array:
    """Return the ridge leverage scores of the rows of X, in float64 and in blocks."""
    blocks = row_blocks(len(X), X.shape[1] * 8)
    covariance = np.zeros((X.shape[1], X.shape[1]))
    for start, stop in blocks:
        block = X[start:stop].astype(np.float64, copy=False)
        covariance += block.T @ block
    values, vectors = eigh(covariance)
    damped = np.maximum(values, 0) + reg * max(float(values.mean()), np.finfo(np.float64).tiny)
    whitening = vectors / np.sqrt(damped)
    scores = np.empty(len(X))
    for start, stop in blocks:
        white = X[start:stop] @ whitening
        scores[start:stop] = np.einsum("ij,ij->i", white, white)
    return scores


def _pool(n: int, n_landmarks: int, rng: np.random.Generator, order: Labels | None) -> Labels:
    size = max(_POOL, _POOL_PER_LANDMARK * n_landmarks)
    places = np.arange(n) if size >= n else np.sort(rng.choice(n, size, replace=False))
    return (places if order is None else order[places]).astype(np.intp)


def _completed(chosen: Labels, n: int, n_landmarks: int, rng: np.random.Generator) -> Labels:
    """Add random rows: k-means++ repeats itself when there are fewer different samples than landmarks."""
    chosen = np.unique(chosen)
    others = np.setdiff1d(np.arange(n), chosen, assume_unique=True)
    return np.concatenate([chosen, rng.choice(others, n_landmarks - len(chosen), replace=False)]).astype(np.intp)
