"""X → landmarks and the whitened Nyström features of all points, in double precision: the global part of two scales.

Points may be in several places: landmarks come from a sample, sums over the points are added up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from subspaces.kernels import Kernel
from subspaces.representation.inverse import above_rounding, penalty
from subspaces.utils.blocks import map_blocks, row_blocks
from subspaces.utils.centroids import first_centres
from subspaces.utils.decompositions import eigh
from subspaces.utils.process import one_thread
from subspaces.utils.progress import phase
from subspaces.utils.types import Array

N_LANDMARKS = 256
ROWS = 1024
"""Points whose kernel values to the landmarks are made at a time: with 128 a product costs a quarter more."""
_SAMPLE = 64  # points per landmark that k-means looks at
_STARTS = 16  # of them those that its starts are drawn from, one by one
_ROUNDING = 1e3  # smallest λ in units of the kernel's rounding: R is a difference of two matrices that nearly agree


@dataclass(frozen=True)
class GlobalPart:
    """Landmarks and what turns kernel values to them into rows of H.

    h(x) = k(x, landmarks) ``whitening``;  z(x)ᵀz(y) = Σ_a h_a(x) ``spectrum``_a h_a(y), so Z need not be kept.
    ``effective_dimension`` is Σ_i ‖h_i‖²; at r it says that the landmarks are used up. Where columns are to sum to one
    ``mean`` is the mean of the `n_samples` rows k(x, landmarks) ``whitening``, which H leaves out; else it is empty.
    """

    kernel: Kernel
    penalty: float
    landmarks: Array
    whitening: Array
    spectrum: Array
    effective_dimension: float
    n_samples: float
    mean: Array

    @property
    def affine(self) -> bool:
        """Whether columns of C are to sum to one."""
        return self.mean.size > 0

    def rows(self, X: Array) -> Array:
        """Rows of H for any points, with their mean."""
        return self.kernel.cross(X.astype(np.float64, copy=False), self.landmarks) @ self.whitening


def fit_global_part(
    X: Array, kernel: Kernel, reg: float, n_landmarks: int = N_LANDMARKS, seed: int = 0, affine: bool = False
) -> GlobalPart:
    """Landmarks by k-means and the whitening of their Nyström features; two passes over X in blocks, O(n r²)."""
    frame = choose_landmarks(X, kernel, n_landmarks, seed, affine)
    return settle_global_part(frame, frame.sums(X), reg)


class Sums(NamedTuple):
    """What the whitening needs to know of points: ZᵀZ, Zᵀ1, the sum of their k(x, x), and how many they are."""

    inner: Array
    total: Array
    diagonal: float
    n_samples: int


@dataclass(frozen=True)
class Frame:
    """Landmarks, and what turns kernel values to them into rows of Z; the points whose rows are summed may be many."""

    kernel: Kernel
    landmarks: Array
    to_features: Array
    affine: bool

    def sums(self, X: Array) -> Sums:
        """Sums over points, in blocks."""
        landmarks, kernel = self.landmarks, self.kernel

        def of_block(start: int, stop: int) -> tuple[Array, Array, float]:
            points = X[start:stop].astype(np.float64, copy=False)
            Z = kernel.cross(points, landmarks) @ self.to_features
            return Z.T @ Z, Z.sum(axis=0), float(kernel.diagonal(points).sum())

        with one_thread("blas"):
            parts = map_blocks(of_block, row_blocks(len(X), 1, ROWS))
        inner, total = np.sum([part[0] for part in parts], axis=0), np.sum([part[1] for part in parts], axis=0)
        return Sums(inner, total, sum(part[2] for part in parts), len(X))


def choose_landmarks(X: Array, kernel: Kernel, n_landmarks: int, seed: int, affine: bool) -> Frame:
    """Landmarks among points, all of them or a sample."""
    with phase("Choosing landmarks"):
        landmarks = _landmarks(X, n_landmarks, seed)
    eigenvalues, vectors = eigh(kernel.gram(landmarks))
    kept = eigenvalues > np.finfo(np.float64).eps * eigenvalues[-1]
    return Frame(kernel, landmarks, vectors[:, kept] / np.sqrt(eigenvalues[kept]), affine)


def settle_global_part(frame: Frame, sums: Sums, reg: float) -> GlobalPart:
    """The whitening that the sums over all points give."""
    kernel, landmarks, to_features, affine = frame.kernel, frame.landmarks, frame.to_features, frame.affine
    n = sums.n_samples
    mean_diagonal = spread = sums.diagonal / n
    inner, mean = sums.inner, np.zeros(0)
    if affine:
        mean = sums.total / n
        inner = inner - n * np.outer(mean, mean)
        spread = max(mean_diagonal - float(mean @ mean), 0.0)
    lam = above_rounding(penalty(np.array([spread]), reg), mean_diagonal, np.float64, _ROUNDING)
    spectrum, rotation = eigh(inner)
    spectrum = np.maximum(spectrum, 0)
    raised, effective_dimension = spectrum + lam, float((spectrum / (spectrum + lam)).sum())
    whitening = (to_features @ rotation) / np.sqrt(raised)
    mean = (mean @ rotation) / np.sqrt(raised) if affine else mean
    return GlobalPart(kernel, lam, landmarks, whitening, raised, effective_dimension, float(n), mean)


def _landmarks(X: Array, n_landmarks: int, seed: int) -> Array:
    if len(X) <= n_landmarks:
        return X.astype(np.float64, copy=False)
    rng = np.random.default_rng(seed)
    sample = X[np.sort(rng.choice(len(X), min(len(X), _SAMPLE * n_landmarks), replace=False))]
    sample = sample.astype(np.float64, copy=False)
    n_landmarks = min(n_landmarks, len(np.unique(sample, axis=0)))
    with one_thread("openmp"), one_thread("blas"):  # one thread, one result
        few = sample[:: max(1, len(sample) // (_STARTS * n_landmarks))]
        starts = first_centres(few, n_landmarks, rng, spread_out=True, n_trials=1)
        model = KMeans(n_landmarks, init=starts, n_init=1, max_iter=10)
        return np.asarray(model.fit(sample).cluster_centers_)
