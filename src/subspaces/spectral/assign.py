"""Assign labels to the rows of an embedding: k-means whose later starts learn from earlier ones, QR, discretisation."""

from __future__ import annotations

from operator import itemgetter

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.cluster._spectral import discretize

from subspaces.utils.decompositions import svd
from subspaces.utils.process import one_thread
from subspaces.utils.types import Array, Labels

_POPULATION = 40
"""Solutions kept for crossing. 500 starts on the embedding of Extended Yale B (k = 38) end at an inertia of 259.6 to
265.6 with 10 kept, 259.64 to 265.42 with 20, 259.64 to 260.52 with 40 (ten seeds); 500 independent starts end at 259.9
and 260.5 and take five times as long."""

_EXHAUSTED = 50  # crossings in a row that give only known solutions: no more starts are tried
_EXACT = 1e-6
"""Share of the total scatter below which the clusters of a start are points up to rounding: no other start can do
better. This happens where the graph falls into as many components as there are clusters."""
_MAX_ITER = 60  # Lloyd steps of a start; the best one is run to its end
_GRID = 2.0**11
"""Rows and centres of the starts are multiples of 1/2048 and no longer than 1: then every product and distance is a
multiple of 2⁻²² below 4 and exact in single precision, whatever the order of the terms. So all processors go the same
way, with any number of threads."""


def cut_embedding(
    Y: Array, n_clusters: int, *, method: str = "kmeans", n_init: int = 20, init: str = "k-means++", seed: int = 0
) -> Labels:
    """Assign labels to the rows of a spectral embedding.

    Parameters
    ----------
    Y : array of shape (n, k), rows scaled to unit length
    method : ``"kmeans"`` (best of `n_init` starts, :func:`subspaces.spectral.assign.kmeans`), ``"cluster_qr"``
        (pivoted QR, no randomness) or ``"discretize"`` (rotation towards indicator vectors)
    init : ``"k-means++"``; ``"random"`` samples as the authors' program: independent starts, it needs hundreds
    """
    if n_clusters == 1:
        return np.zeros(Y.shape[0], dtype=np.intp)
    if method == "kmeans" or Y.shape[1] != n_clusters:  # the other two make one cluster per column
        if init == "k-means++":
            return kmeans(Y, n_clusters, n_init=n_init, seed=seed)
        return lloyd(Y, n_clusters, init=init, n_init=n_init, seed=seed)
    if method == "cluster_qr":
        return cut_by_qr(Y)
    return np.asarray(discretize(Y, random_state=seed), dtype=np.intp)


def cut_by_qr(Y: Array) -> Labels:
    """Make one cluster per column of Y by pivoted QR (Damle, Minden, Ying 2019); rounding does not choose the pivots.

    All rows have length 1, so all are equally good as the first pivot: LAPACK takes the one that the last digit of the
    norms favours, and labels then differ between one thread and two. Of rows equal up to rounding the first is taken
    here.
    """
    rest, pivots, tolerance = Y.astype(np.float64), [], float(np.sqrt(np.finfo(Y.dtype).eps))
    for _ in range(Y.shape[1]):
        lengths = np.einsum("ij,ij->i", rest, rest)
        pivot = int(np.argmax(lengths >= (1 - tolerance) * lengths.max()))
        pivots.append(pivot)
        direction = rest[pivot] / (np.sqrt(lengths[pivot]) or 1)
        rest -= np.outer(rest @ direction, direction)
    left, _, right = svd(Y[pivots].T.astype(np.float64))
    labels: Labels = np.abs(Y @ (left @ right)).argmax(axis=1)
    return labels


def kmeans(Y: Array, n_clusters: int, *, n_init: int, seed: int) -> Labels:
    """Return the labels of the lowest-inertia k-means solution among `n_init` starts.

    Half of the starts (at most 40) are independent, by greedy k-means++. Every further one crosses two good solutions:
    their centres are matched, one of each pair is taken, one centre is dropped and placed anew by k-means++. The starts
    run on a grid in single precision, for only their order matters; the winner is refined in the precision of Y.

    References
    ----------
    Gribel, Vidal (2019), HG-means: A scalable hybrid genetic algorithm for minimum sum-of-squares clustering.
    """
    if n_init == 1 or len(Y) == n_clusters:
        return lloyd(Y, n_clusters, init="k-means++", seed=seed)
    points = Y - Y.mean(axis=0)
    longest = 1.01 * np.sqrt(np.einsum("ij,ij->i", points, points).max())  # on the grid a sample may be a little longer
    if longest == 0:
        return lloyd(Y, n_clusters, init="k-means++", seed=seed)
    points = _on_grid((points / longest).astype(np.float32))
    rng = np.random.default_rng(seed)
    search = _Search(points, n_clusters, rng)
    n_independent = min(_POPULATION, (n_init + 1) // 2)
    first = points[rng.integers(len(points), size=(n_independent, 1))]
    population: list[tuple[float, Array]] = []
    for centre in first:
        population.append(search.descend(search.extend(centre)))
        if population[-1][0] <= _EXACT * search.total:
            n_init = 0
            break
    n_twins = 0
    for _ in range(n_init - n_independent):
        inertia, centres = search.descend(search.cross(_good(population, rng), _good(population, rng)))
        n_twins += 1
        if all(abs(inertia - other) > 1e-5 * other for other, _ in population):  # a twin would crowd out variety
            n_twins = 0
            population = sorted([*population, (inertia, centres)], key=itemgetter(0))[:_POPULATION]
        if n_twins == _EXHAUSTED:
            break
    best = min(population, key=itemgetter(0))[1]
    return lloyd(Y, n_clusters, init=(best * longest + Y.mean(axis=0)).astype(Y.dtype), seed=seed)


def lloyd(Y: Array, n_clusters: int, *, init: str | Array, n_init: int = 1, seed: int = 0) -> Labels:
    """Return the labels of scikit-learn's k-means."""
    model = KMeans(n_clusters, init=init, n_init=n_init, random_state=seed, max_iter=1000)
    with one_thread("blas"):  # k-means sets this itself, but not so that it can be done in several threads
        return model.fit(Y).labels_.astype(np.intp)


def _on_grid(points: Array) -> Array:
    """Round to multiples of 1/2048."""
    return np.rint(points * np.float32(_GRID)) / np.float32(_GRID)


def _good(population: list[tuple[float, Array]], rng: np.random.Generator) -> Array:
    """Return the centres of the better of two solutions drawn at random."""
    i, j = rng.integers(len(population), size=2)
    return min(population[i], population[j], key=itemgetter(0))[1]


class _Search:
    """Make the moves of the search; they share the samples, their squared lengths and the indicator matrix."""

    def __init__(self, points: Array, n_clusters: int, rng: np.random.Generator) -> None:
        self.points, self.n_clusters, self.rng = points, n_clusters, rng
        self.squares = np.einsum("ij,ij->i", points, points)
        self.total = float(self.squares.sum(dtype=np.float64))
        self.n_draws = 2 + int(np.log(n_clusters))  # scikit-learn's number of k-means++ candidates
        n = len(points)
        # a sample's cluster is its row index here: written in place, for a new matrix costs more than its product
        self.indicator = sparse.csc_array(
            (np.ones(n, points.dtype), np.zeros(n, np.int32), np.arange(n + 1, dtype=np.int32)), shape=(n_clusters, n)
        )

    def distances(self, centres: Array) -> Array:
        # all values are finite and exact: "invalid", seen on a machine with AVX-512, cannot be about them
        with np.errstate(invalid="ignore"):
            D = self.points @ (-2 * centres.T)
        D += np.einsum("ij,ij->i", centres, centres)
        D += self.squares[:, None]
        return np.maximum(D, 0, out=D)

    def extend(self, centres: Array) -> Array:
        """Add centres by greedy k-means++ until there are `n_clusters`."""
        missing = self.n_clusters - len(centres)
        nearest = self.distances(centres).min(axis=1)
        added = np.empty((missing, centres.shape[1]), dtype=centres.dtype)
        for j in range(missing):
            chance = np.cumsum(nearest, dtype=np.float64)
            drawn = np.searchsorted(chance, self.rng.random(self.n_draws) * chance[-1])
            drawn = np.minimum(drawn, len(nearest) - 1)
            D = self.distances(self.points[drawn])
            np.minimum(D, nearest[:, None], out=D)
            best = int(D.sum(axis=0).argmin())
            nearest = D[:, best]
            added[j] = self.points[drawn[best]]
        return np.concatenate([centres, added])

    def cross(self, first: Array, second: Array) -> Array:
        """Take one centre of each pair of matched centres, except one, which is placed anew."""
        apart = -2 * first @ second.T + np.einsum("ij,ij->i", second, second)
        partner = linear_sum_assignment(apart)[1]
        chosen = np.where(self.rng.random((self.n_clusters, 1)) < 0.5, first, second[partner])
        return self.extend(np.delete(chosen, self.rng.integers(self.n_clusters), axis=0))

    def descend(self, centres: Array) -> tuple[float, Array]:
        """Return inertia and centres after Lloyd's steps."""
        labels = None
        for _ in range(_MAX_ITER):
            scores = self.points @ (2 * centres.T)
            scores -= np.einsum("ij,ij->i", centres, centres)
            found = scores.argmax(axis=1)
            if labels is not None and np.array_equal(found, labels):
                break
            labels = found
            sizes = np.bincount(labels, minlength=self.n_clusters)[:, None]
            self.indicator.indices[:] = labels
            means = self.indicator @ self.points / np.maximum(sizes, 1).astype(centres.dtype)
            centres = np.where(sizes > 0, _on_grid(means), centres)
        inside = np.take_along_axis(scores, found[:, None], axis=1).sum(dtype=np.float64)
        return self.total - float(inside), centres
