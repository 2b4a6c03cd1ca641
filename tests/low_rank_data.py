"""Low-rank solvers under one signature, samples for them, and their objectives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from solved import dense_and_trace
from subspaces.representation.coefficients import Trace
from subspaces.representation.latent_low_rank import latent_lrr
from subspaces.representation.low_rank import kernel_lrr, lrr
from subspaces.utils.types import Array

TIGHT: dict[str, Any] = {"tol": 1e-6, "max_iter": 50_000}


def lrr1(X: Array, **options: Any) -> tuple[Array, Trace]:
    return dense_and_trace(lrr(X, error="l1", **options))


def lrr2(X: Array, **options: Any) -> tuple[Array, Trace]:
    return dense_and_trace(lrr(X, error="l21", **options))


def linear_klrr(X: Array, **options: Any) -> tuple[Array, Trace]:
    return dense_and_trace(kernel_lrr(X @ X.T, **options))


def latent(X: Array, **options: Any) -> tuple[Array, Trace]:
    return dense_and_trace(latent_lrr(X, **options))


# Every solver with a reg at which, on `subspaces_with_noise`, neither the representation nor the errors vanish.
ITERATIVE = [
    pytest.param(lrr1, 0.1, id="LRR1"),
    pytest.param(lrr2, 0.3, id="LRR2"),
    pytest.param(linear_klrr, 0.3, id="KLRR"),
    pytest.param(latent, 0.1, id="LatLRR"),
]


def independent_subspaces(
    rng: np.random.Generator, n_each: int = 12, dim: int = 3, m: int = 15, n_subspaces: int = 3
) -> tuple[Array, Array]:
    """Return unit samples on independent subspaces, as rows, and their labels."""
    X = np.concatenate([rng.normal(size=(n_each, dim)) @ rng.normal(size=(dim, m)) for _ in range(n_subspaces)])
    return X / np.linalg.norm(X, axis=1, keepdims=True), np.repeat(np.arange(n_subspaces), n_each)


def subspaces_with_noise(rng: np.random.Generator, **shape: int) -> Array:
    X, _ = independent_subspaces(rng, **shape)
    return X + 0.2 / np.sqrt(X.shape[1]) * rng.normal(size=X.shape)


def nuclear(M: Array) -> float:
    return float(np.linalg.norm(M.astype(float), "nuc"))


def objective(X: Array, Z: Array, reg: float, error: str) -> float:
    E = X - Z.T @ X
    size = {"l1": np.abs(E).sum(), "l21": np.linalg.norm(E, axis=1).sum(), "fro": (E**2).sum() / 2}[error]
    return nuclear(Z) + reg * float(size)


def latent_objective(X: Array, Z: Array, L: Array, reg: float) -> float:
    return nuclear(Z) + nuclear(L) + reg * float(np.abs(X - Z.T @ X - X @ L.T).sum())
