"""Files with named arrays (``.npz``, ``.mat``): which array holds the points, which the labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.app.files.columns import settle_missing
from subspaces.app.files.dataset import Dataset, Request, encode, first_not_finite, whole_numbers
from subspaces.utils.column_names import LABEL_NAMES
from subspaces.utils.files import FileError, argument, check_size, printable, quoted
from subspaces.utils.mat_files import ArrayInfo
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array, Labels

POINT_NAMES = ("X", "fea", "data")
"""Names under which the points usually travel, tried in this order."""

_LISTED = 8
"""Arrays of a file that an error lists."""


def dataset_from_arrays(
    path: Path, infos: Mapping[str, ArrayInfo], load: Callable[[str], Array], request: Request, n_copies: int = 1
) -> Dataset:
    """Choose, check and read the arrays.

    `load` reads one by name and is called only after the checks; `n_copies` of the points are in memory at once.
    """
    name = _points_name(path, infos, request)
    check_not_empty(path, infos[name].shape, name)  # a companion may be as long as the first axis, for no bytes
    shape, needed = infos[name].shape, n_copies * infos[name].n_bytes
    needed += _companion_bytes(path, infos, request, name)
    check_size(path, needed, request.max_bytes)

    X = as_rows(load(name))
    y, classes, ids = companions(path, infos, load, request, name)
    notes = [] if len(shape) == 2 else [flattened(shape)]
    if request.label is None:
        notes += [
            f"the file also holds '{printable(key)}', one value per point: {argument('label', key)} scores it"
            for key, info in infos.items()
            if key.lower() in LABEL_NAMES and key != name and _is_vector(info.shape, shape[0])
        ]
    data = Dataset(X, path, y=y, classes=classes, ids=ids, notes=tuple(notes), image_shape=image_shape(shape))
    return check_points(data, request.missing, name)


def companions(
    path: Path, infos: Mapping[str, ArrayInfo], load: Callable[[str], Array], request: Request, points: str
) -> tuple[Labels | None, list[str] | None, list[Any] | None]:
    """Labels, what they are called, and identifiers of the array `points`; None where they were not asked for."""
    check_size(path, _companion_bytes(path, infos, request, points), request.max_bytes)
    y, classes = None, None
    if request.label is not None:
        y, classes = encode(path, load(request.label).reshape(-1), request.label)
    ids = None if request.id is None else whole_numbers(load(request.id).reshape(-1)).tolist()
    return y, classes, ids


def _companion_bytes(path: Path, infos: Mapping[str, ArrayInfo], request: Request, points: str) -> int:
    """Bytes of what goes with the points, after a look at whether it does."""
    needed = 0
    for part, wanted in (("label", request.label), ("id", request.id)):
        if wanted is not None:
            _check_companion(path, infos, wanted, argument(part), points)
            needed += infos[wanted].n_bytes
    return needed


def _points_name(path: Path, infos: Mapping[str, ArrayInfo], request: Request) -> str:
    listing = "; ".join(f"'{printable(name)}' ({info})" for name, info in list(infos.items())[:_LISTED]) or "nothing"
    listing += f"; and {len(infos) - _LISTED} more" if len(infos) > _LISTED else ""
    if request.array is not None:
        if request.array not in infos:
            missing = f"{argument('array')} '{printable(request.array)}' is not in the file"
            raise FileError(path, f"{missing}; it holds {listing}")
        chosen = request.array
    elif "X" in infos:
        chosen = "X"
    else:
        matrices = [name for name, info in infos.items() if info.is_matrix]
        known = matrices if len(matrices) == 1 else [name for name in POINT_NAMES if name in matrices]
        if not known:
            raise FileError(path, f"name the array with the points by {argument('array')}; the file holds {listing}")
        chosen = known[0]
    if infos[chosen].kind != "number":
        raise FileError(path, f"'{printable(chosen)}' is {printable(infos[chosen].kind)}, not an array of numbers")
    if len(infos[chosen].shape) < 2:
        problem = (
            f"'{printable(chosen)}' has {counted(len(infos[chosen].shape), 'dimension')}; points are the rows of two"
        )
        raise FileError(path, f"{problem} (the file holds {listing})")
    return chosen


def _check_companion(path: Path, infos: Mapping[str, ArrayInfo], wanted: str, option: str, points: str) -> None:
    """Labels and identifiers: there, readable, and one for each point."""
    name = printable(wanted)
    if wanted not in infos:
        raise FileError(path, f"{option} '{name}' is not in the file; it holds {quoted(list(infos))}")
    info, shape = infos[wanted], infos[points].shape
    if info.kind not in ("number", "text"):
        raise FileError(path, f"{option} '{name}' is {printable(info.kind)}; save it as an array of numbers")
    if not _is_vector(info.shape, shape[0]):
        hint = "; are the points in columns? then save the transposed array" if shape[-1] in info.shape else ""
        problem = f"{option} '{name}' ({info}) does not give one value for each of the {shape[0]} points"
        raise FileError(path, problem + hint)


def _is_vector(shape: tuple[int, ...], length: int) -> bool:
    return tuple(size for size in shape if size != 1) == ((length,) if length != 1 else ())


def as_rows(X: Array) -> Array:
    """Points as rows: everything behind the first axis flattened."""
    return X if X.ndim == 2 else X.reshape(X.shape[0], -1)


def flattened(shape: tuple[int, ...]) -> str:
    """Say that images became rows."""
    image = printable(" x ".join(str(length) for length in shape[1:]))
    return f"{counted(shape[0], 'point')} of {image} values each, flattened"


def image_shape(shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Height and width (and 3 colours) of the points if an array of this shape looks like a stack of images."""
    is_stack = len(shape) == 3 or (len(shape) == 4 and shape[3] == 3)
    return shape[1:] if is_stack and min(shape[1:3]) >= 4 else None


def check_not_empty(path: Path, shape: tuple[int, ...], name: str) -> None:
    """Refuse an array without values."""
    if 0 in shape:
        shown = printable(name), printable(shape)
        raise FileError(path, f"'{shown[0]}' has the shape {shown[1]}: there is nothing to cluster")


def check_points(data: Dataset, missing: str, name: str = "X") -> Dataset:
    """Refuse what no method can use (nothing, infinite values); settle missing values as asked."""
    X, shown = data.X, printable(name)
    check_not_empty(data.source, X.shape, name)
    bad = first_not_finite(X)
    if bad is None:
        return data
    if missing != "error":
        return settle_missing(data, missing, lambda i: f"row {i}", [str(j) for j in range(X.shape[1])])
    problem = "missing (NaN)" if np.isnan(X[bad]) else f"{X[bad]}"
    settle = f"{argument('missing', 'drop')}, mean or median settles it"
    remedy = settle if np.isnan(X[bad]) else "leave out its row or column"
    raise FileError(data.source, f"{shown}[{bad[0]}, {bad[1]}] is {problem}; fill it in, or {remedy}")
