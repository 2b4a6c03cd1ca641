"""Cubes in files with arrays: ``.npy`` (left on disk), ``.npz`` and ``.mat``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from subspaces.app.files.cube_raw import CubeRequest, Raw, check_cube_size
from subspaces.app.files.matlab import N_COPIES, mat_arrays
from subspaces.app.files.numpy_files import npz_arrays
from subspaces.utils.files import FileError, argument, check_size, printable, read_header
from subspaces.utils.mat_files import ArrayInfo
from subspaces.utils.types import Array


def read_npy_cube(path: Path, request: CubeRequest) -> Raw:
    """The only array of a file, memory-mapped."""
    with path.open("rb") as stream:
        shape, dtype = read_header(stream)
        present = path.stat().st_size - stream.tell()
    if dtype.hasobject or dtype.kind not in "biuf":
        raise FileError(path, f"the array is of type {printable(dtype)}; save an array of numbers")
    needed = math.prod(shape) * dtype.itemsize
    if present < needed:
        raise FileError(path, f"cut short: the header announces {printable(needed)} bytes, {present} are there")
    if 0 in shape:  # nothing to map
        return Raw(np.empty(shape, dtype))
    return Raw(np.load(path, mmap_mode="r", allow_pickle=False))


def read_npz_cube(path: Path, request: CubeRequest) -> Raw:
    """One array of an archive, and maybe its labels."""
    with npz_arrays(path) as (infos, load):
        return _chosen(path, infos, load, request, 1)


def read_mat_cube(path: Path, request: CubeRequest) -> Raw:
    """One array of a MATLAB file, and maybe its labels."""
    with mat_arrays(path, request.max_bytes) as (infos, load):
        return _chosen(path, infos, load, request, N_COPIES)


def _chosen(
    path: Path, infos: Mapping[str, ArrayInfo], load: Callable[[str], Array], request: CubeRequest, n_copies: int
) -> Raw:
    name = _cube_name(path, infos, request.array)
    info = infos[name]
    check_cube_size(path, info.shape, n_copies * info.itemsize, request.max_bytes)
    labels = None
    if request.label is not None:
        known = infos.get(request.label)
        if known is None or known.kind != "number":
            listing = "; ".join(f"'{printable(key)}' ({value})" for key, value in list(infos.items())[:8])
            problem = f"{argument('label')} '{printable(request.label)}' is no array of numbers in the file"
            raise FileError(path, f"{problem}; it holds {listing}")
        check_size(path, info.n_bytes + known.n_bytes, request.max_bytes)
        labels = load(request.label)
    notes: tuple[str, ...] = ()
    if request.label is None:
        notes = tuple(
            f"the file also holds '{printable(key)}', one value per pixel: {argument('label', key)} scores the map"
            for key, value in infos.items()
            if key != name and value.kind == "number" and value.shape == info.shape[:2] and 1 not in value.shape
        )
    return Raw(load(name), labels=labels, notes=notes)


def _cube_name(path: Path, infos: Mapping[str, ArrayInfo], wanted: str | None) -> str:
    listing = "; ".join(f"'{printable(name)}' ({info})" for name, info in list(infos.items())[:8]) or "nothing"
    if wanted is not None:
        if wanted not in infos:
            missing = f"{argument('array')} '{printable(wanted)}' is not in the file"
            raise FileError(path, f"{missing}; it holds {listing}")
        if infos[wanted].kind != "number":
            raise FileError(path, f"'{printable(wanted)}' is {printable(infos[wanted].kind)}, not an array of numbers")
        return wanted
    numbers = {name: info for name, info in infos.items() if info.kind == "number" and math.prod(info.shape) > 1}
    cubes = [name for name, info in numbers.items() if len(info.shape) == 3] or list(numbers)
    if len(cubes) != 1:
        raise FileError(path, f"name the array with the image by {argument('array')}; the file holds {listing}")
    return cubes[0]
