"""Find a data set in the user's folder, fetch it if it is not there, and cut out what is asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import Bunch, check_random_state

from subspaces.datasets._formats import Points, names_in_words
from subspaces.utils.atomic import remove_leftovers, unfinished, write_atomically
from subspaces.utils.files import FileError
from subspaces.utils.types import Array, Labels

Folder = str | PathLike[str] | None
Seed = int | np.random.RandomState | None
Loaded = Any
"""A Bunch (scikit-learn has no types), or the points and their labels."""

FETCH_ERRORS = (OSError, ValueError, HTTPException)
"""What scikit-learn's fetchers and our readers raise when a source is down, changed or damaged."""

VARIABLE = "SUBSPACES_DATA"
"""Environment variable with the folder of the data sets."""


@dataclass(frozen=True)
class DataSet:
    """What is to be known of a data set to find, read, fetch and describe it."""

    title: str
    files: Mapping[str, Callable[[Path], Points]]
    """Name (in any case) and reader of each file it may be in, in the order of preference; the first is our own."""
    n_features: int
    description: str
    where: str
    """Where a person finds one of the files."""
    image_shape: tuple[int, int] | None = None
    fetch: Callable[[Path], Points] | None = None


def get_data_home(data_home: Folder = None) -> Path:
    """The folder in which the loaders look for data sets and keep what they fetch.

    Parameters
    ----------
    data_home : path-like, default=None
        The folder. By default the one that the environment variable ``SUBSPACES_DATA`` names, else
        ``subspaces`` in the user's cache: ``~/.cache`` (or ``XDG_CACHE_HOME``), ``~/Library/Caches`` on macOS,
        ``%LOCALAPPDATA%`` on Windows.

    Returns
    -------
    Path
        The folder, which need not exist.

    Examples
    --------
    >>> from subspaces.datasets import get_data_home
    >>> get_data_home("faces").name
    'faces'
    """
    named = data_home or os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser()
    if sys.platform == "win32":
        cache = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        cache = "~/Library/Caches"
    else:
        cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "subspaces"


def load(
    dataset: DataSet,
    data_home: Folder,
    return_X_y: bool,
    first: int | None,
    per_class: int | None,
    random_state: Seed,
    dtype: npt.DTypeLike,
    download_if_missing: bool,
    n_images: int | None = None,
) -> Loaded:
    """Everything the public loaders have in common; they document the parameters.

    Rows are chosen before numbers are converted, so that a subset never costs the memory of the whole.
    """
    if np.dtype(dtype).kind != "f":
        raise ValueError(f"dtype must be a floating type such as numpy.float32; got {np.dtype(dtype)}")
    points, source = find(dataset, get_data_home(data_home), download_if_missing)
    if points.X.shape[1] != dataset.n_features:
        problem = f"has {points.X.shape[1]} features; {dataset.title} has {dataset.n_features}"
        raise FileError(source, f"{problem}. Put the right file in its place")
    rows = choose_rows(points, first, per_class, random_state, n_images)
    X = points.X[rows]
    X = (X if points.scale is None else X * points.scale).astype(dtype, copy=False)
    y = points.y[rows]
    if return_X_y:
        return X, y
    return Bunch(
        data=X,
        target=y,
        target_names=points.classes[:first],
        image_shape=dataset.image_shape,
        DESCR=dataset.description,
        filename=str(source),
    )


def find(dataset: DataSet, home: Path, download_if_missing: bool) -> tuple[Points, Path]:
    """The points and the file they came from."""
    present = {path.name.lower(): path for path in sorted(home.iterdir())} if home.is_dir() else {}
    for name, read in dataset.files.items():
        if name.lower() in present:
            path = present[name.lower()]
            return read(path), path
    if dataset.fetch is None:
        raise FileNotFoundError(_missing(dataset, home, "no public source offers it for download"))
    if not download_if_missing:
        raise FileNotFoundError(_missing(dataset, home, "download_if_missing is False"))
    try:
        return _fetch(dataset, dataset.fetch, home)
    except FETCH_ERRORS as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise FileNotFoundError(_missing(dataset, home, f"fetching it failed: {reason}")) from error


def _missing(dataset: DataSet, home: Path, reason: str) -> str:
    return (
        f"{dataset.title} is not in {home}, and {reason}. Put {names_in_words(list(dataset.files))} there "
        f"({dataset.where}), or name the folder that holds it by data_home or the environment variable {VARIABLE}."
    )


def _fetch(dataset: DataSet, fetch: Callable[[Path], Points], home: Path) -> tuple[Points, Path]:
    """Fetch into a folder that vanishes and keep one ``.npz``: a broken download leaves nothing behind."""
    home.mkdir(parents=True, exist_ok=True)
    remove_leftovers(home)
    with unfinished(home / "fetch") as folder:
        folder.mkdir()
        points = fetch(folder)
    arrays: dict[str, Any] = {"X": points.X, "y": np.array(points.classes, dtype=np.int16)[points.y]}
    if points.scale is not None:
        arrays["scale"] = points.scale
    if dataset.image_shape is not None:
        arrays["image_shape"] = dataset.image_shape
    path = home / next(iter(dataset.files))
    with write_atomically(path) as stream:
        np.savez_compressed(stream, **arrays)
    return points, path


def choose_rows(
    points: Points, first: int | None, per_class: int | None, random_state: Seed, n_images: int | None
) -> Array | slice:
    """Rows of the first points, of the first classes among them, and of a balanced subset of those."""
    if first is None and per_class is None:
        return slice(None if n_images is None else positive("n_images", n_images))
    y = points.y if n_images is None else points.y[: positive("n_images", n_images)]
    rows: Array = np.arange(len(y))
    if first is not None:
        if positive("first", first) > len(points.classes):
            raise ValueError(f"first must be at most the number of classes, {len(points.classes)}; got {first}")
        rows = rows[y < first]
    if per_class is not None:
        rows = rows[balanced_subset(y[rows], per_class, random_state=random_state)]
    return rows


def balanced_subset(y: npt.ArrayLike, per_class: int, *, random_state: Seed = None) -> Labels:
    """Choose the same number of points of every class at random.

    The paper's USPS and MNIST experiments draw 200 a class.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels.
    per_class : int
        Points of each class; no class may have fewer.
    random_state : int, RandomState instance or None, default=None
        Seed of the choice.

    Returns
    -------
    array of shape (n_classes * per_class,)
        Indices of the chosen points, ascending.

    Examples
    --------
    >>> from subspaces.datasets import balanced_subset
    >>> chosen = balanced_subset([0, 0, 0, 1, 1, 1, 1], 2, random_state=0)
    >>> [int((chosen < 3).sum()), int((chosen >= 3).sum())]
    [2, 2]
    """
    labels = np.asarray(y)
    positive("per_class", per_class)
    classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if len(classes) and counts.min() < per_class:
        smallest = int(np.argmin(counts))
        problem = f"class {classes[smallest]} has only {counts[smallest]} points"
        raise ValueError(f"per_class must be at most the size of the smallest class; got {per_class} and {problem}")
    # In random order, then stably by class: the first of each class are a random choice of it.
    shuffled = check_random_state(random_state).permutation(len(labels))
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    starts = np.cumsum(counts) - counts
    return np.sort(by_class[(starts[:, None] + np.arange(per_class)).ravel()]).astype(np.intp, copy=False)


def positive(name: str, value: Any) -> int:
    """The value of a parameter that must be a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}")
    return int(value)
