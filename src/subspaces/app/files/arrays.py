"""Files of arrays: ``.npy``, ``.npz`` (also SciPy's sparse ones) and ``.mat``; headers first, never a pickle."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from subspaces.app.files.dataset import (
    Dataset,
    Request,
    check_not_empty,
    check_points,
    encode,
    whole_numbers,
)
from subspaces.utils.column_names import LABEL_NAMES
from subspaces.utils.files import FileError, argument, check_size, printable, read_header
from subspaces.utils.mat_files import ArrayInfo, list_matrices, read_matrix
from subspaces.utils.process import quiet
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array, Labels

Infos = Mapping[str, ArrayInfo]
Load = Callable[[str], Array]

MAT_COPIES = 2
"""MATLAB stores columns one after another; putting them into rows takes a second array."""

_PER_INDEX, _PER_FEATURE = 8, 64  # bytes of a row, and of a feature whether it has an entry or not
_POINT_NAMES = ("X", "fea", "data")  # usual names of the array with the samples, tried in this order


# ------------------------------------------------------------------ NumPy


def read_npy(path: Path, request: Request) -> Dataset:
    """Read the samples from a single array."""
    shape, dtype = npy_info(path)
    check_size(path, math.prod(shape) * dtype.itemsize, request.max_bytes)
    if len(shape) < 2:
        raise FileError(path, f"the array has the shape {printable(shape)}; points are the rows of two dimensions")
    check_not_empty(path, shape, "X")
    with path.open("rb") as stream:
        X = _read_array(stream).reshape(shape[0], -1)
    return check_points(Dataset(X, path, notes=_flattened(shape), image_shape=_image_shape(shape)), request.missing)


def npy_info(path: Path, kinds: Sequence[str] = ("number",)) -> tuple[tuple[int, ...], np.dtype]:
    """Return shape and type of the numbers in a ``.npy`` file that is as long as its header says."""
    with path.open("rb") as stream:
        shape, dtype = read_header(stream)
        present = path.stat().st_size - stream.tell()
    kind, needed = _kind(dtype), math.prod(shape) * dtype.itemsize
    if kind not in kinds:
        raise FileError(path, f"the array is {kind}; save an array of numbers")
    if present < needed:
        raise FileError(path, f"cut short: the header announces {printable(needed)} bytes, {present} are there")
    return shape, dtype


def read_vector(path: Path, max_bytes: int) -> Array:
    """Read labels: an array of one dimension."""
    shape, dtype = npy_info(path, ("number", "text"))
    if len(shape) != 1:
        raise FileError(path, f"the array has the shape {printable(shape)}; labels have one dimension")
    check_size(path, math.prod(shape) * max(dtype.itemsize, 60), max_bytes)
    with path.open("rb") as stream:
        return _read_array(stream)


def read_npz(path: Path, request: Request) -> Dataset:
    """Read samples and companions from an archive of arrays."""
    with npz_arrays(path) as (infos, load):
        if {"data", "format", "shape"} <= infos.keys() and {"indices", "row", "offsets"} & infos.keys():
            return _read_sparse_archive(path, infos, load, request)
        return _dataset(path, infos, load, request)


@contextmanager
def npz_arrays(path: Path) -> Iterator[tuple[dict[str, ArrayInfo], Load]]:
    """Describe the arrays of an archive, and give a function that reads one of them."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]

        def load(name: str) -> Array:
            with archive.open(name + ".npy") as member:
                return _read_array(member)

        yield {name.removesuffix(".npy"): _member_info(archive, name) for name in names}, load


def _member_info(archive: zipfile.ZipFile, name: str) -> ArrayInfo:
    # of what NumPy writes, a small piece unpacks to a bounded one; the first bytes of the others may hide gigabytes
    if archive.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("packed in a way that NumPy does not use")
    with archive.open(name) as member:
        shape, dtype = read_header(member)
    return ArrayInfo(shape, _kind(dtype), dtype.itemsize)


def _kind(dtype: np.dtype) -> str:
    if dtype.hasobject:
        return "made of Python objects (a pickle, which is never loaded)"
    if dtype.kind in "biuf":
        return "number"
    return "text" if dtype.kind in "US" else f"of type {printable(dtype)}"


def _read_array(stream: IO[bytes]) -> Array:
    with quiet():
        return np.lib.format.read_array(stream, allow_pickle=False)


def _read_sparse_archive(path: Path, infos: Infos, load: Load, request: Request) -> Dataset:
    """Read what ``scipy.sparse.save_npz`` wrote; other arrays beside it may be labels or identifiers."""
    for name in ("format", "shape"):
        check_size(path, infos[name].n_bytes, 1000, f"its '{name}' needs")
    kind = str(load("format").reshape(-1).astype("S8").astype("U8")[0])
    parts = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}.get(kind)
    if parts is None or not set(parts) <= infos.keys():
        raise FileError(path, f"a SciPy sparse matrix of the kind '{printable(kind)}'; save X.tocsr() instead")
    if request.array is not None:
        raise FileError(path, f"{argument('array')} has no meaning for a SciPy sparse matrix, which is one array")
    shape = tuple(load("shape").reshape(-1).tolist())
    if len(shape) != 2 or not all(isinstance(length, int) and length > 0 for length in shape):
        raise FileError(path, f"the matrix has the shape {printable(shape)}: there is nothing to cluster")
    check_size(path, _PER_INDEX * shape[0] + _PER_FEATURE * shape[1], request.max_bytes, "its rows and columns need")
    needed = sum(infos[name].n_bytes for name in ("data", *parts))
    check_size(path, (2 if kind == "csr" else 3) * needed, request.max_bytes)
    try:
        X = sparse.load_npz(path)
        if kind != "coo":
            X.check_format(full_check=True)
        X = sparse.csr_array(X)
        X.sum_duplicates()
        is_finite = np.isfinite(X.data)
    except (ValueError, TypeError):
        raise FileError(path, "its values and their places do not fit together; save the matrix again") from None
    if not is_finite.all():
        i, places = int(np.argmin(is_finite)), X.tocoo()
        place = f"row {places.row[i]}, column {places.col[i]}"
        raise FileError(path, f"{place} is {X.data[i]}; correct it, or leave out its row or column")
    y, classes, ids = _companions(path, {**infos, "data": ArrayInfo(shape, "number")}, load, request, "data")
    return Dataset(X, path, y=y, classes=classes, ids=ids)


# ------------------------------------------------------------------ MATLAB


def read_mat(path: Path, request: Request) -> Dataset:
    """Read samples and companions from a MATLAB file."""
    with mat_arrays(path) as (infos, load):
        return _dataset(path, infos, load, request, MAT_COPIES)


@contextmanager
def mat_arrays(path: Path) -> Iterator[tuple[dict[str, ArrayInfo], Load]]:
    """Describe the arrays of a file, and give a function that reads one of them."""
    matrices = list_matrices(path)
    yield {name: matrix.info for name, matrix in matrices.items()}, lambda name: read_matrix(path, matrices[name])


# ------------------------------------------------------------------ named arrays


def listing(infos: Infos, most: int = 8) -> str:
    """Describe the arrays of a file for an error."""
    shown = "; ".join(f"'{printable(name)}' ({info})" for name, info in list(infos.items())[:most]) or "nothing"
    return shown + (f"; and {len(infos) - most} more" if len(infos) > most else "")


def named_array(path: Path, infos: Infos, name: str, part: str, kinds: Sequence[str] = ("number",)) -> ArrayInfo:
    """Return the description of the array `name`, for the argument `part`; refuse one that cannot be it."""
    option = f"{argument(part)} '{printable(name)}'"
    if name not in infos:
        raise FileError(path, f"{option} is not in the file; it holds {listing(infos)}")
    if infos[name].kind not in kinds:
        raise FileError(path, f"{option} is {printable(infos[name].kind)}, not an array of numbers")
    return infos[name]


def _dataset(path: Path, infos: Infos, load: Load, request: Request, n_copies: int = 1) -> Dataset:
    """Choose, check and read the arrays, of whose samples `n_copies` are in memory at once."""
    name = _points_name(path, infos, request)
    shape = infos[name].shape
    check_not_empty(path, shape, name)  # a companion may be as long as the first axis, for no bytes
    y, classes, ids = _companions(path, infos, load, request, name, n_copies)
    X = load(name).reshape(shape[0], -1)
    notes = _flattened(shape)
    if request.label is None:
        notes += tuple(
            f"the file also holds '{printable(key)}', one value per point: {argument('label', key)} scores it"
            for key, info in infos.items()
            if key.lower() in LABEL_NAMES and key != name and _is_vector(info.shape, shape[0])
        )
    data = Dataset(X, path, y=y, classes=classes, ids=ids, notes=notes, image_shape=_image_shape(shape))
    return check_points(data, request.missing, name)


def _points_name(path: Path, infos: Infos, request: Request) -> str:
    chosen = request.array or ("X" if "X" in infos else None)
    if chosen is None:
        matrices = [name for name, info in infos.items() if info.is_matrix]
        known = matrices if len(matrices) == 1 else [name for name in _POINT_NAMES if name in matrices]
        if not known:
            how = f"name the array with the points by {argument('array')}"
            raise FileError(path, f"{how}; the file holds {listing(infos)}")
        chosen = known[0]
    info = named_array(path, infos, chosen, "array")
    if len(info.shape) < 2:
        problem = f"'{printable(chosen)}' has {counted(len(info.shape), 'dimension')}; points are the rows of two"
        raise FileError(path, f"{problem} (the file holds {listing(infos)})")
    return chosen


def _companions(
    path: Path, infos: Infos, load: Load, request: Request, points: str, n_copies: int = 0
) -> tuple[Labels | None, list[str] | None, list[Any] | None]:
    """Read labels, their names, and identifiers of the array `points`; None where they were not asked for.

    There must be room for them beside `n_copies` of that array, and one for each sample.
    """
    shape, needed = infos[points].shape, n_copies * infos[points].n_bytes
    for part, wanted in (("label", request.label), ("id", request.id)):
        if wanted is None:
            continue
        info = named_array(path, infos, wanted, part, ("number", "text"))
        if not _is_vector(info.shape, shape[0]):
            hint = "; are the points in columns? then save the transposed array" if shape[-1] in info.shape else ""
            problem = f"'{printable(wanted)}' ({info}) does not give one value for each of the {shape[0]} points"
            raise FileError(path, f"{argument(part)} {problem}{hint}")
        needed += info.n_bytes
    check_size(path, needed, request.max_bytes)
    y, classes = None, None
    if request.label is not None:
        y, classes = encode(path, load(request.label).reshape(-1), request.label)
    ids = None if request.id is None else whole_numbers(load(request.id).reshape(-1)).tolist()
    return y, classes, ids


def _is_vector(shape: tuple[int, ...], length: int) -> bool:
    return tuple(size for size in shape if size != 1) == ((length,) if length != 1 else ())


def _flattened(shape: tuple[int, ...]) -> tuple[str, ...]:
    image = printable(" x ".join(str(length) for length in shape[1:]))
    return () if len(shape) == 2 else (f"{counted(shape[0], 'point')} of {image} values each, flattened",)


def _image_shape(shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return height and width (and 3 colours) if an array of this shape looks like a stack of images."""
    is_stack = len(shape) == 3 or (len(shape) == 4 and shape[3] == 3)
    return shape[1:] if is_stack and min(shape[1:3]) >= 4 else None
