"""``.npy`` and ``.npz``: headers first, then only the arrays that are needed, never a pickle."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np

from subspaces.app.files.arrays import as_rows, check_points, dataset_from_arrays, flattened, image_shape
from subspaces.app.files.dataset import Dataset, Request, first_not_finite
from subspaces.app.files.sparse_files import is_sparse_archive, read_sparse_archive
from subspaces.utils.files import FileError, check_size, printable, read_header
from subspaces.utils.mat_files import ArrayInfo
from subspaces.utils.process import quiet
from subspaces.utils.types import Array


def read_npy(path: Path, request: Request) -> Dataset:
    """Read the points from a single array."""
    with path.open("rb") as stream:
        shape, dtype = read_header(stream)
        kind = _kind(dtype)
        if kind != "number":
            raise FileError(path, f"the array is {kind}; save an array of numbers")
        needed = math.prod(shape) * dtype.itemsize
        present = path.stat().st_size - stream.tell()
        if present < needed:
            raise FileError(path, f"cut short: the header announces {printable(needed)} bytes, {present} are there")
        check_size(path, needed, request.max_bytes)
        if len(shape) < 2:
            raise FileError(path, f"the array has the shape {printable(shape)}; points are the rows of two dimensions")
        stream.seek(0)
        X = as_rows(_read_array(stream))
    notes = () if len(shape) == 2 else (flattened(shape),)
    return check_points(Dataset(X, path, notes=notes, image_shape=image_shape(shape)), request.missing)


def read_vector(path: Path, max_bytes: int) -> Array:
    """Read labels: an array of one dimension."""
    with path.open("rb") as stream:
        shape, dtype = read_header(stream)
        if len(shape) != 1 or _kind(dtype) not in ("number", "text"):
            raise FileError(path, f"the array has the shape {printable(shape)}; labels have one dimension")
        check_size(path, math.prod(shape) * max(dtype.itemsize, 60), max_bytes)
        if path.stat().st_size - stream.tell() < math.prod(shape) * dtype.itemsize:
            raise FileError(path, "cut short; write or fetch it again")
        stream.seek(0)
        return _read_array(stream)


def read_npz(path: Path, request: Request) -> Dataset:
    """Read points and companions from an archive of arrays; a scalar ``scale`` multiplies the points."""
    with npz_arrays(path) as (infos, load):
        if is_sparse_archive(infos):
            return read_sparse_archive(path, infos, load, request)
        scale = infos.get("scale")
        if scale is None or scale.kind != "number" or math.prod(scale.shape) != 1:
            return dataset_from_arrays(path, infos, load, request)
        # The product is a second array beside the first.
        return _scaled(dataset_from_arrays(path, infos, load, request, n_copies=2), load("scale"))


@contextmanager
def npz_arrays(path: Path) -> Iterator[tuple[dict[str, ArrayInfo], Callable[[str], Array]]]:
    """What the arrays of an archive are, and what reads one of them."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]

        def load(name: str) -> Array:
            with archive.open(name + ".npy") as member:
                return _read_array(member)

        yield {name.removesuffix(".npy"): _info(archive, name) for name in names}, load


def _scaled(data: Dataset, scale: Array) -> Dataset:
    """Undo the packing of real numbers into integers: ``X * scale`` (float32 stays float32)."""
    factor = float(scale.reshape(-1)[0])
    if not np.isfinite(factor) or factor == 0:
        raise FileError(data.source, f"the array 'scale' is {factor}; it must be a finite number other than zero")
    with np.errstate(over="ignore", invalid="ignore"):
        X = data.X * (data.X.dtype.type(factor) if data.X.dtype.kind == "f" else factor)
    if first_not_finite(X) is not None:
        raise FileError(data.source, f"the points times the array 'scale', {factor:.6g}, are too large for {X.dtype}")
    note = f"the points were multiplied by the file's scale {factor:.6g}"
    return replace(data, X=X, notes=(*data.notes, note))


def _info(archive: zipfile.ZipFile, name: str) -> ArrayInfo:
    # Of what NumPy writes, a small piece unpacks to a bounded one; the first bytes of the others may hide gigabytes.
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
