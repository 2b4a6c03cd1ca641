"""``.mat``: versions 5 to 7 by our own reader, version 7.3 (which is HDF5) by h5py."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.io.arrays import ArrayInfo, dataset_from_arrays
from subspaces.io.dataset import Dataset, FileError, Request, check_size
from subspaces.io.matlab5 import SPARSE, list_matrices, read_matrix

N_COPIES = 2
"""MATLAB stores columns one after another; putting them into rows takes a second array."""


def read_mat(path: Path, request: Request) -> Dataset:
    """Read the points and their companions from a MATLAB file."""
    with path.open("rb") as stream:
        head = stream.read(520)
    if head.startswith((b"MATLAB 7.3", b"\x89HDF")) or head[512:516] == b"\x89HDF":
        return _read_hdf5(path, request)
    matrices = list_matrices(path)
    infos = {name: matrix.info for name, matrix in matrices.items()}
    return dataset_from_arrays(path, infos, lambda name: read_matrix(path, matrices[name]), request, N_COPIES)


def _read_hdf5(path: Path, request: Request) -> Dataset:
    try:
        import h5py
    except ImportError:
        problem = 'a MATLAB 7.3 file needs h5py: pip install "subspaces[io]" (or save it with -v7)'
        raise FileError(path, problem) from None
    with h5py.File(path, "r") as file:
        infos = {
            name: _hdf5_info(path, file[name], request.max_bytes)
            for name in file
            # MATLAB makes hard links only; others could lead into files that were never named.
            if isinstance(file.get(name, getlink=True), h5py.HardLink) and not name.startswith("#")
        }
        # HDF5 lists MATLAB's column-major axes in reverse order.
        return dataset_from_arrays(path, infos, lambda name: np.ascontiguousarray(file[name][()].T), request, N_COPIES)


def _hdf5_info(path: Path, item: Any, max_bytes: int) -> ArrayInfo:
    """Describe an item; only plain numeric data sets stored in this file are ever read."""
    shape = getattr(item, "shape", None)
    if shape is None:
        return ArrayInfo((), SPARSE if "MATLAB_sparse" in item.attrs else "a struct or object")
    if item.dtype.kind not in "biuf" or item.external or item.is_virtual:
        return ArrayInfo(shape[::-1], "not an array of real numbers")
    matlab_class = item.attrs.get("MATLAB_class")  # bytes if MATLAB wrote it, text if h5py did, or anything
    if isinstance(matlab_class, bytes | str) and matlab_class in (b"char", "char"):
        return ArrayInfo(shape[::-1], "of MATLAB's class char")
    # A chunk is unpacked whole, however small the data set in it is.
    check_size(path, math.prod(item.chunks or ()) * item.dtype.itemsize, max_bytes, "a chunk needs")
    return ArrayInfo(shape[::-1], "number", item.dtype.itemsize)
