"""The points of a cell: a data set, a part of it, a draw from it, and the damage done to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from subspaces import datasets
from subspaces.numerics.types import Array, Labels

SOURCES: dict[str, tuple[str, Callable[[Path | None], tuple[Array, Labels]]]] = {
    "yaleb": ("Extended Yale B", lambda home: datasets.load_yaleb(data_home=home, return_X_y=True)),
    "coil20": ("COIL20", lambda home: datasets.load_coil20(data_home=home, return_X_y=True)),
    "coil100": ("COIL100", lambda home: datasets.load_coil100(data_home=home, return_X_y=True)),
    "usps": ("USPS", lambda home: datasets.load_usps(data_home=home, return_X_y=True)),
    # the paper draws from the first 10,000 training images
    "mnist": ("MNIST", lambda home: datasets.load_mnist(data_home=home, return_X_y=True, n_images=10_000)),
    "covtype": ("Covtype", lambda home: datasets.load_covtype(data_home=home, return_X_y=True, dtype=np.float32)),
    "digits": ("digits of scikit-learn", lambda home: load_digits(return_X_y=True)),
    "curves": ("three curves", lambda home: datasets.make_three_curves(100, noise=0.01, random_state=0)),
}
"""For people, and how to load them: the data sets by the name experiments use; the last two need no file."""

IMAGE_SHAPES = {"yaleb": (32, 32), "coil20": (32, 32), "coil100": (32, 32)}


@lru_cache(maxsize=2)
def load_whole(name: str, home: Path | None) -> tuple[Array, Labels]:
    """A whole data set; kept, because neighbouring cells use the same one."""
    return SOURCES[name][1](home)


def load_points(points: Mapping[str, Any], home: Path | None = None) -> tuple[Array, Labels]:
    """The points that a cell describes.

    They have the ``name`` of a data set; optionally ``first`` (so many classes), ``per_class`` and ``draw`` (a random
    subset and its seed), ``corruption`` (``gaussian`` or ``salt_and_pepper``) with ``level`` and ``noise_seed``.
    """
    X, y = load_whole(points["name"], home)
    if "first" in points:
        chosen = y < points["first"]
        X, y = X[chosen], y[chosen]
    if "per_class" in points:
        rows = datasets.balanced_subset(y, points["per_class"], random_state=points["draw"])
        X, y = X[rows], y[rows]
    if points.get("corruption") == "gaussian":
        X = datasets.add_gaussian_noise(X, points["level"], random_state=points["noise_seed"])
    elif points.get("corruption") == "salt_and_pepper":
        X = datasets.salt_and_pepper(X, points["level"] / 100, random_state=points["noise_seed"])
    elif points.get("corruption"):
        raise ValueError(f"corruption must be gaussian or salt_and_pepper; got {points['corruption']!r}")
    return X, y
