"""Small points and small helpers of the fault cases (docs/trust.md lists the cases by number)."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import subspaces
from method_data import ESTIMATORS, METHODS, quiet, union_of_subspaces

ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(Path(subspaces.__file__).parents[1]),
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""Of a process that a test starts: this source, one thread."""

KERNELISED = [pytest.param(ESTIMATORS[name], id=name) for name in ("ktrr", "kssc", "klrr")]
TRANSLATION_INVARIANT = [
    pytest.param(METHODS[name], id=name)
    for name in ("ktrr", "smce", "sc", "kasp", "nystrom", "sec", "akk", "lsc", "uspec")
]

ENTRYWISE = (METHODS["lrr1"], METHODS["latlrr"])
"""An error costs a tenth of what it would explain: of few different points none is worth representing."""


def planes(seed: int, sizes: tuple[int, ...] = (14, 14, 14), noise: float = 0.005) -> tuple[Any, Any]:
    """Points near planes through the origin of R⁹, and their planes."""
    return union_of_subspaces(seed, sizes, dimension=2, ambient=9, noise=noise)


def blobs(seed: int, size: int = 14) -> tuple[Any, Any]:
    """Three tight heaps far apart on the axes of R⁴: the same clusters for every method, linear or not."""
    rng = np.random.default_rng(seed)
    centres = np.repeat(10 * np.eye(4)[:3], size, axis=0)
    return centres + 0.1 * rng.standard_normal(centres.shape), np.repeat(np.arange(3), size)


def write_photos(folder: Path, rng: np.random.Generator, side: int) -> Path:
    """Twelve small pictures in two kinds, in a folder of their own."""
    Image = pytest.importorskip("PIL.Image")
    folder.mkdir()
    for i in range(12):
        pixels = 200 * (i % 2) + rng.integers(0, 40, size=(side, side))
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{i}.png")
    return folder


def said(function: Any) -> tuple[Any, list[str]]:
    """The result of a call and the texts of its warnings; RuntimeWarnings are errors."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("error", RuntimeWarning)
        result = function()
    return result, [str(warning.message) for warning in caught]


def fit(cls: Any, X: Any, n_clusters: int | None = 3, **parameters: Any) -> Any:
    """Fit and check what must hold of every fit whatever the data."""
    with quiet():
        model = cls(n_clusters=n_clusters, **parameters).fit(X)
    check_labels(model, X.shape[0] if hasattr(X, "shape") else len(X), n_clusters)
    return model


def check_unfitted(model: Any, fresh: set[str]) -> None:
    """Nothing is left beside the attributes of a fresh estimator."""
    assert set(vars(model)) <= fresh
    assert not hasattr(model, "labels_")


def check_labels(model: Any, n: int, n_clusters: int | None) -> None:
    labels = model.labels_
    assert labels.shape == (n,)
    assert labels.dtype.kind == "i"
    assert labels.min() >= 0
    assert model.n_clusters_ == len(np.unique(labels))
    if n_clusters is not None:
        assert labels.max() < n_clusters
    embedding = getattr(model, "_embedding", None)
    if embedding is not None:
        assert np.isfinite(embedding).all()
