"""``.mat``: version 7.3 (which is HDF5) by h5py, versions 5 to 7 by `subspaces.utils.mat_files`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.app.files.arrays import dataset_from_arrays
from subspaces.app.files.dataset import Dataset, Request
from subspaces.utils.files import FileError, check_size
from subspaces.utils.mat_files import SPARSE, ArrayInfo, is_hdf5, list_matrices, read_matrix
from subspaces.utils.types import Array

N_COPIES = 2
"""MATLAB stores columns one after another; putting them into rows takes a second array."""


def read_mat(path: Path, request: Request) -> Dataset:
    """Read the points and their companions from a MATLAB file."""
    with mat_arrays(path, request.max_bytes) as (infos, load):
        return dataset_from_arrays(path, infos, load, request, N_COPIES)


@contextmanager
def mat_arrays(path: Path, max_bytes: int) -> Iterator[tuple[dict[str, ArrayInfo], Callable[[str], Array]]]:
    """What the arrays of a file are, and what reads one of them."""
    if not is_hdf5(path):
        matrices = list_matrices(path)
        infos = {name: matrix.info for name, matrix in matrices.items()}
        yield infos, lambda name: read_matrix(path, matrices[name])
        return
    try:
        import h5py
    except ImportError:
        problem = 'a MATLAB 7.3 file needs h5py: pip install "subspaces[app]" (or save it with -v7)'
        raise FileError(path, problem) from None
    with h5py.File(path, "r") as file:
        infos = {
            name: _hdf5_info(path, file[name], max_bytes)
            for name in file
            # MATLAB makes hard links only; others could lead into files that were never named.
            if isinstance(file.get(name, getlink=True), h5py.HardLink) and not name.startswith("#")
        }
        # HDF5 lists MATLAB's column-major axes in reverse order.
        yield infos, lambda name: np.ascontiguousarray(file[name][()].T)


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
