"""Sparse points: archives that SciPy wrote, and the checks that every compressed matrix goes through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.app.files.arrays import check_not_empty, companions
from subspaces.app.files.dataset import Dataset, Request
from subspaces.utils.files import FileError, argument, check_size, printable
from subspaces.utils.mat_files import ArrayInfo
from subspaces.utils.types import Array, Sparse

INDEX_BYTES = 8
PER_FEATURE = 64
"""Bytes that some steps take for each feature, whether it has an entry or not."""


def is_sparse_archive(infos: Mapping[str, ArrayInfo]) -> bool:
    """Whether an ``.npz`` was written by ``scipy.sparse.save_npz``."""
    return {"data", "format", "shape"} <= infos.keys() and bool({"indices", "row", "offsets"} & infos.keys())


def read_sparse_archive(
    path: Path, infos: Mapping[str, ArrayInfo], load: Callable[[str], Array], request: Request
) -> Dataset:
    """Points from an archive of ``scipy.sparse.save_npz``; other arrays in it may be labels or identifiers."""
    for name in ("format", "shape"):
        check_size(path, infos[name].n_bytes, 1000, f"its '{name}' needs")
    kind = str(load("format").reshape(-1).astype("S8").astype("U8")[0])
    parts = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}.get(kind)
    if parts is None or not set(parts) <= infos.keys():
        raise FileError(path, f"a SciPy sparse matrix of the kind '{printable(kind)}'; save X.tocsr() instead")
    if request.array is not None:
        raise FileError(path, f"{argument('array')} has no meaning for a SciPy sparse matrix, which is one array")
    shape = checked_shape(path, load("shape").reshape(-1).tolist(), request)
    for name in ("data", *parts):
        if infos[name].kind != "number" or len(infos[name].shape) != 1:
            raise FileError(path, f"'{name}' is {printable(infos[name])}, not a row of numbers; save the matrix again")
    needed = sum(infos[name].n_bytes for name in ("data", *parts))
    check_size(path, (2 if kind == "csr" else 3) * needed, request.max_bytes)
    arrays = [load(name) for name in ("data", *parts)]
    X = from_triplets(path, *arrays, shape=shape) if kind == "coo" else compressed(path, kind, *arrays, shape=shape)
    y, classes, ids = companions(path, {**infos, "data": ArrayInfo(shape, "number")}, load, request, "data")
    return check_sparse(Dataset(X, path, y=y, classes=classes, ids=ids))


def checked_shape(path: Path, shape: Any, request: Request) -> tuple[int, int]:
    """Numbers of rows and columns; refuses what is no shape, and more features than memory has room for."""
    try:
        rows, columns = (int(length) for length in shape)
    except (TypeError, ValueError):
        raise FileError(path, f"{printable(shape)} is not a number of rows and of columns; save it again") from None
    if min(rows, columns) < 0:
        raise FileError(path, f"the shape {printable((rows, columns))} is impossible; save it again")
    check_size(path, INDEX_BYTES * rows + PER_FEATURE * columns, request.max_bytes, "its rows and columns alone need")
    return rows, columns


def compressed(path: Path, kind: str, data: Array, indices: Array, indptr: Array, *, shape: tuple[int, int]) -> Sparse:
    """A CSR matrix from the arrays of a CSR or CSC one, every one of which may lie."""
    from scipy import sparse

    along, across = shape if kind == "csr" else shape[::-1]
    if indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        raise FileError(path, "the places of its values are no whole numbers; save the matrix again")
    starts = indptr.astype(np.int64, copy=False)
    fits = len(starts) == along + 1 and len(indices) == len(data) == int(starts[-1]) and starts[0] == 0
    if not fits or (np.diff(starts) < 0).any() or not _inside(indices, across):
        raise FileError(path, "its values and their places do not fit together; save or fetch the matrix again")
    container = sparse.csr_array if kind == "csr" else sparse.csc_array
    return _summed(container((data, indices, indptr), shape=shape))


def from_triplets(path: Path, data: Array, rows: Array, columns: Array, *, shape: tuple[int, int]) -> Sparse:
    """A CSR matrix from values with their rows and columns; values of one place are added."""
    from scipy import sparse

    whole = rows.dtype.kind in "iu" and columns.dtype.kind in "iu" and len(rows) == len(columns) == len(data)
    if not whole or not _inside(rows, shape[0]) or not _inside(columns, shape[1]):
        raise FileError(path, "its values and their places do not fit together; save or fetch the matrix again")
    return _summed(sparse.coo_array((data, (rows, columns)), shape=shape))


def _inside(indices: Array, length: int) -> bool:
    return len(indices) == 0 or (int(indices.min()) >= 0 and int(indices.max()) < length)


def _summed(X: Sparse) -> Sparse:
    found = X.tocsr()
    found.sum_duplicates()
    return found


def check_sparse(data: Dataset) -> Dataset:
    """Refuse what no method can use: nothing at all, values that are no finite numbers."""
    X = data.X
    check_not_empty(data.source, X.shape, "the matrix")
    bad = np.flatnonzero(~np.isfinite(X.data)) if X.data.dtype.kind == "f" else np.zeros(0, dtype=np.intp)
    if len(bad):
        row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
        value = X.data[bad[0]]
        problem = f"row {row}, column {int(X.indices[bad[0]])} is {'missing (NaN)' if np.isnan(value) else value}"
        raise FileError(data.source, f"{problem}; fill it in, or leave out its row or column")
    return data
