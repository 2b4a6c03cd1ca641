"""What the legs start from: a union of ten subspaces, and each leg's input made from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from subspaces.datasets import make_subspaces
from subspaces.graphs.affinity import affinity
from subspaces.graphs.truncation import truncate_symmetric
from subspaces.kernels import as_kernel
from subspaces.representation.ridge import ridge
from subspaces.spectral.embedding import spectral_embedding, unit_rows

CLUSTERS = 10
SIZES = [500, 1000, 2000]
DTYPES = ["float64", "float32"]


def points(n: int, dtype: str, features: int = 100) -> np.ndarray:
    """Points on ten subspaces of dimension 5, a little noise."""
    X, _ = make_subspaces(CLUSTERS, 5, features, n // CLUSTERS, noise=0.01, random_state=0)
    return X.astype(dtype)


@dataclass
class Legs:
    """The result of every leg on the way from points to labels."""

    X: np.ndarray
    kernel: Any
    K: Any
    coefficients: Any
    truncated: Any
    W: Any
    Y: np.ndarray


def legs(n: int, dtype: str) -> Legs:
    """Run the journey once and keep every stop."""
    X = points(n, dtype)
    kernel = as_kernel("rbf").fit(X)
    K = kernel.packed_gram(X)
    coefficients = ridge(K)
    truncated = truncate_symmetric(coefficients, 5).symmetric
    W = affinity(truncated)
    Y = unit_rows(spectral_embedding(W, CLUSTERS).vectors)
    return Legs(X, kernel, K, coefficients, truncated, W, Y)
