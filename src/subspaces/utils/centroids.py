"""Find few representatives of X by k-means, nearest representatives, and k-means of many rows."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning

from subspaces.utils.blocks import map_blocks, row_blocks
from subspaces.utils.ordering import hash_rows
from subspaces.utils.process import one_thread, quiet
from subspaces.utils.types import Array, Labels

_POINTS_PER_CENTROID = 64  # samples per centroid: four times as many lower the mean squared distance on Covtype by 4 %
_RESTART_SAMPLE = 20_000  # rows on which the restarts of cluster_rows compete; only the best one sees all rows


def sample_rows(n: int, size: int, seed: int) -> Labels:
    """Draw `size` of n rows uniformly without replacement, ascending; all of them if there are fewer."""
    if size >= n:
        return np.arange(n, dtype=np.intp)
    return np.sort(np.random.default_rng(seed).choice(n, size, replace=False)).astype(np.intp)


def centroids(X: Array, n_centroids: int, seed: int, *, n_iter: int = 20) -> Array:
    """Return at most `n_centroids` centroids of k-means (Lloyd, one random start) on a subset of the rows of X.

    Scikit-learn's k-means, not faiss: on 64,000 rows of Covtype and 1000 centroids both take 2.9 s, and scikit-learn's
    centroids are 5 % closer to the samples, for it moves empty ones to where samples are far from any.

    With `n_centroids` or fewer distinct samples these themselves are returned. The result, in X's dtype, depends
    on X and `seed` only; `n_iter` are Lloyd's steps.
    """
    size = _POINTS_PER_CENTROID * n_centroids
    sample = X if size >= len(X) else X[sample_rows(len(X), size, seed)]
    _, first = np.unique(hash_rows(sample), return_index=True)
    if len(first) <= n_centroids:
        return np.asarray(sample[np.sort(first)])
    # k-means++ for 1000 centroids takes 1.1 s and brings them 9 % closer on Covtype (0.1 % on MNIST); the NMI of KASP,
    # LSC and U-SPEC on Covtype was no higher for it (3 seeds)
    rng = np.random.default_rng(seed)
    starts = first_centres(sample, n_centroids, rng, spread_out=n_centroids <= 100)
    # k-means shifts the samples to their mean: it may do so in place unless they are the caller's
    model = KMeans(n_centroids, init=starts, n_init=1, max_iter=n_iter, copy_x=sample is X)
    with one_thread("blas"):  # k-means sets this itself, but not so that it can be done in several threads
        return np.asarray(model.fit(sample).cluster_centers_.astype(X.dtype, copy=False))


def first_centres(
    X: Array, n_centres: int, rng: np.random.Generator, *, spread_out: bool, n_trials: int | None = None
) -> Array:
    """Choose rows of X to start k-means from, uniformly or (`spread_out`) by k-means++, each moved a little.

    Samples on a grid (pixels, counts) are often as far from one centre as from another, and rounding would decide
    where they go. A thousandth of the samples' spread makes no start worse and leaves no such ties. `n_trials`
    are the draws of k-means++ for each centre, of which the best is taken; None for 2 + log(`n_centres`).
    """
    if spread_out:
        seed = int(rng.integers(2**31 - 1))
        centres, _ = kmeans_plusplus(X, n_centres, random_state=seed, n_local_trials=n_trials)
    else:
        centres = X[rng.choice(len(X), n_centres, replace=False)]
    step = 1e-3 * np.sqrt(X.var(axis=0, dtype=np.float64))
    return np.asarray(centres + step * rng.standard_normal(centres.shape), dtype=X.dtype)


def nearest(X: Array, centres: Array, k: int = 1) -> tuple[Array, Array]:
    """Return indices and squared distances of the k nearest `centres` of each row of X, nearest first, both (n, k).

    Block by block; no n × p array. The k smallest are found by k passes over a block in the cache, which for small k
    is twice as fast as a partition.
    """
    origin = centres.mean(axis=0)  # distances by ‖x‖² − 2 xᵀc + ‖c‖² lose the digits that a common offset takes
    centres = centres - origin
    half_norms = np.einsum("ij,ij->i", centres, centres) / 2
    indices = np.empty((len(X), k), dtype=np.int32)
    distances = np.empty((len(X), k), dtype=X.dtype)

    def search(start: int, stop: int) -> None:
        points = X[start:stop] - origin
        scores = points @ centres.T
        scores -= half_norms
        rows = np.arange(stop - start)
        for j in range(k):
            best = scores.argmax(axis=1)
            indices[start:stop, j] = best
            distances[start:stop, j] = scores[rows, best]
            scores[rows, best] = -np.inf
        found = distances[start:stop]
        found *= -2
        found += np.einsum("ij,ij->i", points, points)[:, None]
        np.maximum(found, 0, out=found)

    map_blocks(search, row_blocks(len(X), len(centres) * X.itemsize))
    return indices, distances


def cluster_rows(Y: Array, n_clusters: int, n_init: int, seed: int) -> tuple[Labels, Array]:
    """Return labels and centres of k-means on the rows of Y: the best of `n_init` starts, refined on all rows."""
    sample = Y[sample_rows(len(Y), _RESTART_SAMPLE, seed)]
    with one_thread("blas"), quiet(ConvergenceWarning):  # fewer clusters than asked for: the caller counts them
        model = KMeans(n_clusters, n_init=n_init, random_state=seed).fit(sample)
        if len(sample) < len(Y):
            model = KMeans(n_clusters, init=model.cluster_centers_, n_init=1, max_iter=100).fit(Y)
    centres = model.cluster_centers_.astype(Y.dtype, copy=False)
    return nearest(Y, centres)[0][:, 0].astype(np.intp), centres
