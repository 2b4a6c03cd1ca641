"""The points of a cell: a data set, a part of it, a draw from it, and the damage done to it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.own import read_points
from subspaces import datasets
from subspaces.datasets.named import NAMED
from subspaces.numerics.decompositions import svd
from subspaces.numerics.types import Array, Labels

IMAGE_SHAPES = {"yaleb": (32, 32), "coil20": (32, 32), "coil100": (32, 32), "orl": (32, 32)}
FILMS = "hopkins155"
"""Not one set of points but many, each clustered by itself: see `load_films`."""


def title(name: str) -> str:
    """A data set's name for people."""
    return "Hopkins155" if name == FILMS else NAMED[name].title


@lru_cache(maxsize=2)
def load_whole(name: str, home: Path | None, shape: tuple[int, int] | None = None) -> tuple[Array, Labels]:
    """A whole data set; kept, because neighbouring cells use the same one. `shape`: faces of another size."""
    if shape is not None:
        X, y = datasets.load_yaleb(image_shape=shape, data_home=home, return_X_y=True)
        return X, y
    return NAMED[name].load(home)


def find_films(home: Path | None) -> Path:
    """The archive of tracks: ``NAME_X`` (tracks × 2 · frames) and ``NAME_y`` (their motions) of every sequence."""
    path = datasets.get_data_home(home) / "hopkins155_part.npz"
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there; it is no download, put an archive of NAME_X and NAME_y there")
    return path


def load_films(points: Mapping[str, Any], home: Path | None = None) -> list[tuple[Array, Labels]]:
    """Tracks and motions of the sequences with as many ``motions`` as said, `prepared`."""
    with np.load(find_films(home), allow_pickle=False) as archive:
        names = sorted(name[:-2] for name in archive.files if name.endswith("_X"))
        films = [(archive[f"{name}_X"].astype(np.float64), archive[f"{name}_y"]) for name in names]
    found = [(prepared(X, points), y) for X, y in films if len(np.unique(y)) in points["motions"]]
    if not found:
        wanted = " or ".join(map(str, points["motions"]))
        raise ValueError(f"no sequence in {find_films(home)} has {wanted} motions")
    return found


def prepared(X: Array, points: Mapping[str, Any]) -> Array:
    """Points as the programs of some authors prepare them.

    With ``axes``, a number: by their coordinates along so many principal axes, not centred (LSR's programs); those of
    ``unit`` length have it before axes are left out. With ``constant``: with a further feature that is 1 everywhere.
    """
    if "axes" in points:
        _, _, axes = svd(X - X.mean(axis=0))
        X = X @ axes.T
        if points.get("unit"):
            X = X / np.linalg.norm(X, axis=1, keepdims=True)
        X = np.ascontiguousarray(X[:, : points["axes"]])
    return np.column_stack([X, np.ones(len(X))]) if points.get("constant") else X


def load_points(points: Mapping[str, Any], home: Path | None = None) -> tuple[Array, Labels]:
    """The points that a cell describes.

    They have the ``name`` of a data set, or a ``file`` of the user with its ``label``; optionally ``image_shape`` (of
    faces), ``first`` (so many classes), ``persons`` and ``group`` (so many classes each), ``per_class`` and ``draw``
    (a random subset and its seed), ``corruption`` (``gaussian`` or ``salt_and_pepper``) with ``level`` and
    ``noise_seed``; then what `prepared` knows.
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
    return prepared(X, points), y
