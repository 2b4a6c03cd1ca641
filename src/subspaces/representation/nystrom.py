"""Landmarks and whitened Nyström features in double precision: the global part of the two-scale representation.

Samples may be distributed over several places: landmarks come from a subset, sums over the samples are added up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from subspaces.kernels import Kernel
from subspaces.representation.ridge import above_rounding, penalty
from subspaces.utils.blocks import map_blocks, row_blocks
from subspaces.utils.centroids import first_centres
from subspaces.utils.decompositions import eigh
from subspaces.utils.process import one_thread
from subspaces.utils.progress import phase
from subspaces.utils.types import Array

N_LANDMARKS = 256
ROWS = 1024
"""Samples whose kernel values with the landmarks are computed at a time: with 128 a product costs a quarter more."""
_SAMPLE = 64  # samples per landmark that k-means sees
_STARTS = 16  # samples per landmark that its initial centres are drawn from
_ROUNDING = 1e3  # smallest λ in units of the kernel's rounding: R is a difference of two matrices that nearly agree


@dataclass(frozen=True)
class GlobalPart:
    """Hold landmarks and the map from kernel values with them to rows of H.

    h(x) = k(x, landmarks) ``whitening``;  z(x)ᵀz(y) = Σ_a h_a(x) ``spectrum``_a h_a(y), so Z need not be kept.
    ``effective_dimension`` is Σ_i ‖h_i‖²; near r, more landmarks would help. For columns that sum to one ``mean`` is
    the mean of the `n_samples` rows k(x, landmarks) ``whitening``, which H subtracts; otherwise it is empty.
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
        """Tell whether columns of C are to sum to one."""
        return self.mean.size > 0

    def leading(self, k: int) -> GlobalPart:
        """Return the part of the k leading directions."""
        return replace(self, whitening=self.whitening[:, -k:], spectrum=self.spectrum[-k:])

    def rows(self, X: Array) -> Array:
        """Return rows of H, not centred, for any samples."""
        return self.kernel.cross(X.astype(np.float64, copy=False), self.landmarks) @ self.whitening


def fit_global_part(
    X: Array, kernel: Kernel, reg: float, n_landmarks: int = N_LANDMARKS, seed: int = 0, affine: bool = False
) -> GlobalPart:
    """Choose landmarks by k-means and whiten their Nyström features; two passes over X in blocks, O(n r²)."""
    frame = choose_landmarks(X, kernel, n_landmarks, seed, affine)
    return settle_global_part(frame, frame.sums(X), reg)


class Sums(NamedTuple):
    """Hold the sums over samples that the whitening needs: ZᵀZ, Zᵀ1, Σ k(x, x) and the number of samples."""

    inner: Array
    total: Array
    diagonal: float
    n_samples: int


@dataclass(frozen=True)
class Frame:
    """Hold landmarks and the map from kernel values with them to rows of Z."""

    kernel: Kernel
    landmarks: Array
    to_features: Array
    affine: bool

    def sums(self, X: Array) -> Sums:
        """Compute the sums over samples, in blocks."""
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
    """Choose landmarks for samples, or for the subset of them that is given."""
    with phase("Choosing landmarks"):
        landmarks = _landmarks(X, n_landmarks, seed)
    eigenvalues, vectors = eigh(kernel.gram(landmarks))
    kept = eigenvalues > np.finfo(np.float64).eps * eigenvalues[-1]
    return Frame(kernel, landmarks, vectors[:, kept] / np.sqrt(eigenvalues[kept]), affine)


def settle_global_part(frame: Frame, sums: Sums, reg: float) -> GlobalPart:
    """Compute the whitening from the sums over all samples."""
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
