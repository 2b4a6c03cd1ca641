"""The points of a cell: a data set, a part of it, a draw from it, and the damage done to it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from subspaces import datasets
from subspaces.datasets.named import NAMED
from subspaces.numerics.types import Array, Labels
from subspaces.reproduce.own import read_points

IMAGE_SHAPES = {"yaleb": (32, 32), "coil20": (32, 32), "coil100": (32, 32)}


@lru_cache(maxsize=2)
def load_whole(name: str, home: Path | None, shape: tuple[int, int] | None = None) -> tuple[Array, Labels]:
    """A whole data set; kept, because neighbouring cells use the same one. `shape`: faces of another size."""
    if shape is not None:
        X, y = datasets.load_yaleb(image_shape=shape, data_home=home, return_X_y=True)
        return X, y
    return NAMED[name].load(home)


def load_points(points: Mapping[str, Any], home: Path | None = None) -> tuple[Array, Labels]:
    """The points that a cell describes.

    They have the ``name`` of a data set, or a ``file`` of the user with its ``label``; optionally ``image_shape`` (of
    faces), ``first`` (so many classes), ``persons`` and ``group`` (so many classes each), ``per_class`` and ``draw``
    (a random subset and its seed), ``corruption`` (``gaussian`` or ``salt_and_pepper``) with ``level`` and
    ``noise_seed``.
    """
    if "file" in points:
        X, y = read_points(Path(points["file"]), points["label"])
    else:
        shape = points.get("image_shape")
        X, y = load_whole(points["name"], home, None if shape is None else tuple(shape))
    if "first" in points:
        chosen = y < points["first"]
        X, y = X[chosen], y[chosen]
    if "persons" in points:
        chosen = y // points["persons"] == points["group"]
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
