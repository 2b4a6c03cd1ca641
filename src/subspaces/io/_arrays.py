"""Files with named arrays (``.npz``, ``.mat``): which array holds the points, which the labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from subspaces._typing import Array
from subspaces.io._columns import LABEL_NAMES
from subspaces.io._dataset import (
    Dataset,
    FileError,
    Request,
    check_size,
    encode,
    first_not_finite,
    n_bytes_of,
    printable,
    whole_numbers,
)

POINT_NAMES = ("X", "fea", "data")
"""Names under which the points usually travel, tried in this order."""


@dataclass(frozen=True)
class ArrayInfo:
    """What a file says of an array before its values are read."""

    shape: tuple[int, ...]
    kind: str
    """``"number"``, ``"text"``, or in words what else it is (then it is never read)."""
    itemsize: int = 8

    @property
    def is_matrix(self) -> bool:
        """Whether these can be points: numbers, and two or more axes longer than one."""
        return self.kind == "number" and sum(length > 1 for length in self.shape) > 1

    @property
    def n_bytes(self) -> int:
        """Memory of the values."""
        return n_bytes_of(self.shape, self.itemsize)

    def __str__(self) -> str:
        size = " x ".join(str(length) for length in self.shape) or "scalar"
        return size if self.kind == "number" else f"{size}, {printable(self.kind)}"


def dataset_from_arrays(
    path: Path,
    infos: Mapping[str, ArrayInfo],
    load: Callable[[str], Array],
    request: Request,
    n_copies: int = 1,
) -> Dataset:
    """Choose, check and read the arrays.

    `load` reads one by name and is called only after the checks; `n_copies` of the points are in memory at once.
    """
    name = _points_name(path, infos, request)
    shape, needed = infos[name].shape, n_copies * infos[name].n_bytes
    for option, wanted in (("--label", request.label), ("--id", request.id)):
        if wanted is not None:
            _check_companion(path, infos, wanted, option, name)
            needed += infos[wanted].n_bytes
    check_size(path, needed, request.max_bytes)

    X = as_rows(load(name))
    y, classes = None, None
    if request.label is not None:
        y, classes = encode(path, load(request.label).reshape(-1), request.label)
    ids = None if request.id is None else whole_numbers(load(request.id).reshape(-1)).tolist()
    notes = [] if len(shape) == 2 else [flattened(shape)]
    if request.label is None:
        notes += [
            f"the file also holds '{printable(key)}', one value per point: --label {printable(key)} scores it"
            for key, info in infos.items()
            if key.lower() in LABEL_NAMES and key != name and _is_vector(info.shape, shape[0])
        ]
    check_points(path, X, name)
    return Dataset(X, path, y=y, classes=classes, ids=ids, notes=tuple(notes))


def _points_name(path: Path, infos: Mapping[str, ArrayInfo], request: Request) -> str:
    listing = "; ".join(f"'{printable(name)}' ({info})" for name, info in infos.items()) or "nothing"
    if request.array is not None:
        if request.array not in infos:
            raise FileError(path, f"--array '{printable(request.array)}' is not in the file; it holds {listing}")
        chosen = request.array
    elif "X" in infos:
        chosen = "X"
    else:
        matrices = [name for name, info in infos.items() if info.is_matrix]
        known = matrices if len(matrices) == 1 else [name for name in POINT_NAMES if name in matrices]
        if not known:
            raise FileError(path, f"name the array with the points by --array; the file holds {listing}")
        chosen = known[0]
    if infos[chosen].kind != "number":
        raise FileError(path, f"'{printable(chosen)}' is {printable(infos[chosen].kind)}, not an array of numbers")
    if len(infos[chosen].shape) < 2:
        problem = f"'{printable(chosen)}' has {len(infos[chosen].shape)} dimensions; points are the rows of two"
        raise FileError(path, f"{problem} (the file holds {listing})")
    return chosen


def _check_companion(path: Path, infos: Mapping[str, ArrayInfo], wanted: str, option: str, points: str) -> None:
    """Labels and identifiers: there, readable, and one for each point."""
    name = printable(wanted)
    if wanted not in infos:
        others = ", ".join(f"'{printable(key)}'" for key in infos)
        raise FileError(path, f"{option} '{name}' is not in the file; it holds {others}")
    info, shape = infos[wanted], infos[points].shape
    if info.kind not in ("number", "text"):
        raise FileError(path, f"{option} '{name}' is {printable(info.kind)}; save it as an array of numbers")
    if not _is_vector(info.shape, shape[0]):
        hint = "; are the points in columns? then save the transposed array" if shape[-1] in info.shape else ""
        raise FileError(
            path,
            f"{option} '{name}' ({info}) does not give one value for each of the {shape[0]} points{hint}",
        )


def _is_vector(shape: tuple[int, ...], length: int) -> bool:
    return tuple(size for size in shape if size != 1) == ((length,) if length != 1 else ())


def as_rows(X: Array) -> Array:
    """Points as rows: everything behind the first axis flattened."""
    return X if X.ndim == 2 else X.reshape(X.shape[0], -1)


def flattened(shape: tuple[int, ...]) -> str:
    """Say that images became rows."""
    image = " x ".join(str(length) for length in shape[1:])
    return f"{shape[0]} points of {image} values each, flattened"


def check_points(path: Path, X: Array, name: str = "X") -> None:
    """Refuse what no method can use: nothing, or values that are not finite."""
    shown = printable(name)
    if 0 in X.shape:
        raise FileError(path, f"'{shown}' has the shape {X.shape}: there is nothing to cluster")
    bad = first_not_finite(X)
    if bad is not None:
        problem = "missing (NaN)" if np.isnan(X[bad]) else f"{X[bad]}"
        where = f"{shown}[{bad[0]}, {bad[1]}]"
        raise FileError(path, f"{where} is {problem}; fill it in or leave out its row or column")
