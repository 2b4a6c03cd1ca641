"""Every method as a parameter of a test, points whose clusters are known, and silence."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from subspaces import registry

METHODS = {name: registry.load(name) for name in registry.names(*registry.SHALLOW)}
ESTIMATORS = {name: METHODS[name] for name in registry.names("graph")}
SCALABLE = {name: METHODS[name] for name in registry.names("large")}
ALL = [pytest.param(cls, id=name) for name, cls in METHODS.items()]
GRAPH = [pytest.param(cls, id=name) for name, cls in ESTIMATORS.items()]
LARGE = [pytest.param(cls, id=name) for name, cls in SCALABLE.items()]


def union_of_subspaces(
    seed: int, sizes: tuple[int, ...] = (40, 40, 40), dimension: int = 3, ambient: int = 20, noise: float = 0.01
) -> tuple[Any, Any]:
    """Unit points of random subspaces, with noise, and the numbers of their subspaces."""
    rng = np.random.default_rng(seed)
    bases = [np.linalg.qr(rng.standard_normal((ambient, dimension)))[0] for _ in sizes]
    X = np.vstack([rng.standard_normal((n, dimension)) @ B.T for n, B in zip(sizes, bases, strict=True)])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X + noise * rng.standard_normal(X.shape), np.repeat(np.arange(len(sizes)), sizes)


def rings(rng: np.random.Generator, n: int, k: int) -> tuple[Any, Any]:
    """Noisy points of `k` rings, one around the other, and the numbers of their rings."""
    angle = rng.uniform(0, 2 * np.pi, n)
    y = np.arange(n) % k
    return (1.0 + 2 * y)[:, None] * np.c_[np.cos(angle), np.sin(angle)] + 0.05 * rng.normal(size=(n, 2)), y


@contextmanager
def quiet() -> Iterator[None]:
    """Advice to the user is no fault here; RuntimeWarnings stay errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        yield
