"""Sparse samples: Matrix Market, folders of 10x Genomics around one, AnnData (``.h5ad``); every part may lie."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.app.files.dataset import Dataset, Request, check_not_empty, check_points, encode, imported
from subspaces.app.files.text import open_unpacked
from subspaces.utils.files import FileError, argument, check_beside, check_size, printable, quoted
from subspaces.utils.types import Array, Data, Sparse

COMPONENTS = "obsm/X_pca"
"""The part of an AnnData file that is clustered where it is there: the components that scanpy computed."""

_MATRIX = ("matrix.mtx.gz", "matrix.mtx")
_BARCODES = ("barcodes.tsv.gz", "barcodes.tsv")
_FEATURES = ("features.tsv.gz", "features.tsv", "genes.tsv")
_PER_INDEX, _PER_FEATURE = 8, 64  # bytes of a row, and of a feature whether it has an entry or not
_PER_ENTRY = 48  # bytes of a triplet while it is sorted into rows, measured
_LONG_LINE = 2**20
_NAMES_AT_ONCE, _PER_NAME = 256, 100
_UNFIT = "its values and their places do not fit together; save or fetch the matrix again"


# ------------------------------------------------------------------ matrices


def checked_shape(path: Path, shape: Any, max_bytes: int) -> tuple[int, int]:
    """Return the numbers of rows and columns; refuse other shapes, and more features than memory has room for."""
    try:
        rows, columns = (int(length) for length in shape)
    except (TypeError, ValueError):
        raise FileError(path, f"{printable(shape)} is not a number of rows and of columns; save it again") from None
    if min(rows, columns) < 0:
        raise FileError(path, f"the shape {printable((rows, columns))} is impossible; save it again")
    check_size(path, _PER_INDEX * rows + _PER_FEATURE * columns, max_bytes, "its rows and columns alone need")
    return rows, columns


def compressed(path: Path, kind: str, data: Array, indices: Array, indptr: Array, *, shape: tuple[int, int]) -> Sparse:
    """Return a CSR matrix from the arrays of a CSR or CSC one."""
    from scipy import sparse

    if indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        raise FileError(path, "the places of its values are no whole numbers; save the matrix again")
    container = sparse.csr_array if kind == "csr" else sparse.csc_array
    try:
        X = container((data, indices, indptr), shape=shape)
        X.check_format(full_check=True)
    except ValueError:
        raise FileError(path, _UNFIT) from None
    X = X.tocsr()
    X.sum_duplicates()
    return X


def from_triplets(path: Path, data: Array, rows: Array, columns: Array, *, shape: tuple[int, int]) -> Sparse:
    """Return a CSR matrix from values with their rows and columns; values of one place are added."""
    from scipy import sparse

    if rows.dtype.kind not in "iu" or columns.dtype.kind not in "iu":
        raise FileError(path, _UNFIT)
    try:
        return sparse.coo_array((data, (rows, columns)), shape=shape).tocsr()
    except (ValueError, TypeError):
        raise FileError(path, _UNFIT) from None


def check_sparse(data: Dataset) -> Dataset:
    """Refuse an empty matrix and values that are not finite."""
    X = data.X
    check_not_empty(data.source, X.shape, "the matrix")
    bad = np.flatnonzero(~np.isfinite(X.data)) if X.data.dtype.kind == "f" else np.zeros(0, dtype=np.intp)
    if len(bad):
        row, value = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1, X.data[bad[0]]
        problem = f"row {row}, column {int(X.indices[bad[0]])} is {'missing (NaN)' if np.isnan(value) else value}"
        raise FileError(data.source, f"{problem}; fill it in, or leave out its row or column")
    return data


# ------------------------------------------------------------------ Matrix Market


def matrix_of_folder(folder: Path) -> Path | None:
    """Return the matrix in a folder of 10x Genomics, None in any other."""
    return None if _first(folder, _BARCODES) is None else _first(folder, _MATRIX)


def read_mtx(path: Path, request: Request) -> Dataset:
    """Read samples from the rows of a matrix; cells, whose barcodes lie beside it, from its columns."""
    from scipy.io import mminfo, mmread

    with open_unpacked(path, request.max_bytes, _LONG_LINE) as stream:
        rows, columns, n_entries, layout, field, symmetry = mminfo(stream)
    if field == "complex":
        raise FileError(path, "its values are complex; save real numbers")
    shape = checked_shape(path, (rows, columns), request.max_bytes)
    n_entries = n_entries if layout == "coordinate" else rows * columns
    check_size(path, _PER_ENTRY * n_entries * (1 if symmetry == "general" else 2), request.max_bytes)
    with open_unpacked(path, request.max_bytes, _LONG_LINE) as stream:
        found = mmread(stream, spmatrix=False)
    if layout != "coordinate":
        return check_points(Dataset(found, path), request.missing)
    data = Dataset(from_triplets(path, found.data, *found.coords, shape=shape), path)
    barcodes = _first(path.parent, _BARCODES) if path.name in _MATRIX else None
    return check_sparse(data if barcodes is None else _cells(data, barcodes, request))


def read_10x(path: Path, request: Request) -> Dataset:
    """Read a folder of 10x Genomics: cells are samples, genes their features."""
    matrix = matrix_of_folder(path)
    assert matrix is not None
    return replace(read_mtx(check_beside(matrix), request), source=path)


def _cells(data: Dataset, barcodes: Path, request: Request) -> Dataset:
    """Transpose a matrix whose columns are cells, and read their names and those of the genes beside it."""
    n_genes, n_cells = data.X.shape
    ids = _lines(barcodes, n_cells, request.max_bytes)
    table, names = _first(barcodes.parent, _FEATURES), None
    if table is not None:
        parts = [line.split("\t") for line in _lines(table, n_genes, request.max_bytes)]
        names = [part[1] if len(part) > 1 else part[0] for part in parts]
    note = f"cells are the columns of this matrix, by the {printable(barcodes.name)} beside it"
    return replace(data, X=data.X.T.tocsr(), ids=ids, feature_names=names, notes=(*data.notes, note))


def _lines(path: Path, count: int, max_bytes: int) -> list[str]:
    """Return the lines of a small text file; refuse another number than `count`."""
    check_size(path, 100 * count, max_bytes)
    with open_unpacked(check_beside(path), max_bytes, _LONG_LINE) as stream:
        found = stream.read().decode("utf-8", errors="replace").splitlines()
    if len(found) != count:
        raise FileError(path, f"it has {len(found)} lines and the matrix beside it {count}; they belong to two runs")
    return found


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


# ------------------------------------------------------------------ AnnData, by h5py: anndata itself follows links


def read_h5ad(path: Path, request: Request) -> Dataset:
    """Read cells from an AnnData file: ``obsm/X_pca`` if it is there, else ``X``, or the part that `array` names."""
    with imported(path, "h5py", "an AnnData file").File(path, "r") as file:
        name = request.array or (COMPONENTS if _item(file, COMPONENTS) is not None else "X")
        item = _item(file, name)
        if item is None:
            inside = [f"{group}/{part}" for group in ("obsm", "layers") for part in (_item(file, group) or ())]
            places = quoted([part for part in ("X", "raw/X", *inside) if _item(file, part) is not None])
            problem = f"'{printable(name)}' is not in the file"
            raise FileError(path, f"{problem}; {argument('array')} may be one of {places}")
        X = _values(path, item, name, request.max_bytes)
        notes: tuple[str, ...] = ()
        if request.array is None and name == COMPONENTS:
            notes = (f"the components in {COMPONENTS} are clustered; {argument('array', 'X')} takes the matrix itself",)
        y, classes = _labels(path, file, request, X.shape[0])
        ids = _ids(path, file, request, X.shape[0])
        genes = _genes(path, file, name, request.max_bytes, X.shape[1])
    data = Dataset(X, path, y=y, classes=classes, ids=ids, feature_names=genes, notes=notes)
    return check_points(data, request.missing, name) if isinstance(X, np.ndarray) else check_sparse(data)


def _item(group: Any, name: str) -> Any:
    """Return an item by its path; None where it is not there, or where a link leads out of the file."""
    import h5py

    for part in name.strip("/").split("/"):
        is_group = isinstance(group, h5py.Group)
        if not is_group or not isinstance(group.get(part, getlink=True), h5py.HardLink):
            return None
        group = group[part]
    return group


def _values(path: Path, item: Any, name: str, max_bytes: int) -> Data:
    if hasattr(item, "shape"):
        if len(item.shape) != 2:
            problem = f"'{printable(name)}' has the shape {printable(item.shape)}"
            raise FileError(path, f"{problem}; points are the rows of two dimensions")
        return _array(path, item, name, max_bytes)
    kind = _text(item.attrs.get("encoding-type", item.attrs.get("h5sparse_format", "")))
    short = {"csr_matrix": "csr", "csc_matrix": "csc", "csr": "csr", "csc": "csc"}.get(kind)
    if short is None:
        raise FileError(path, f"'{printable(name)}' is {printable(kind) or 'a group'}, not a matrix of numbers")
    parts = [_item(item, part) for part in ("data", "indices", "indptr")]
    stored = item.attrs.get("shape", item.attrs.get("h5sparse_shape"))
    if stored is None or any(not hasattr(part, "shape") or len(part.shape) != 1 for part in parts):
        raise FileError(path, f"'{printable(name)}' is a sparse matrix without all of its parts; write it again")
    shape = checked_shape(path, np.asarray(stored).reshape(-1)[:3].tolist(), max_bytes)
    needed = sum(math.prod(part.shape) * part.dtype.itemsize for part in parts)
    check_size(path, (2 if short == "csr" else 3) * needed, max_bytes)
    return compressed(path, short, *(_array(path, part, part.name, max_bytes) for part in parts), shape=shape)


def _array(path: Path, item: Any, name: str, max_bytes: int) -> Array:
    """Read an array of numbers that lies in this file and nowhere else."""
    if item.dtype.kind not in "biuf" or item.external or item.is_virtual:
        raise FileError(path, f"'{printable(name)}' is not an array of real numbers in this file")
    check_size(path, math.prod(item.shape) * item.dtype.itemsize, max_bytes)
    # a chunk is unpacked whole, however small the array in it is
    check_size(path, math.prod(item.chunks or ()) * item.dtype.itemsize, max_bytes, "a chunk needs")
    return np.ascontiguousarray(item[()])


def _labels(path: Path, file: Any, request: Request, n: int) -> tuple[Array | None, list[str] | None]:
    """Read the column of ``obs`` that was named: categories, text or numbers."""
    if request.label is None:
        return None, None
    item, option = _item(file, f"obs/{request.label}"), f"{argument('label')} '{printable(request.label)}'"
    if item is None:
        columns = [name for name in (_item(file, "obs") or ()) if not name.startswith("_")]
        raise FileError(path, f"{option} is not a column of obs; the columns are {quoted(columns)}")
    legacy = _item(file, f"obs/__categories/{request.label}")
    names = _item(item, "categories") if not hasattr(item, "shape") else legacy
    codes = item if hasattr(item, "shape") else _item(item, "codes")
    if not hasattr(codes, "shape") or codes.shape != (n,):
        raise FileError(path, f"{option} has no value for each of {n} cells")
    if names is None:
        return encode(path, _strings_or_numbers(path, codes, request.max_bytes), request.label)
    categories = _strings_or_numbers(path, names, request.max_bytes).tolist()
    given = _array(path, codes, request.label, request.max_bytes)
    if given.dtype.kind not in "iu" or len(given) == 0 or given.min() < 0 or given.max() >= len(categories):
        missing = f"the label of cell {int(np.argmin(given))} is missing" if given.min(initial=0) < 0 else "is damaged"
        raise FileError(path, f"{missing}; fill it in or name no label", column=request.label)
    return encode(path, np.array([str(name) for name in categories], dtype=object)[given], request.label)


def _ids(path: Path, file: Any, request: Request, n: int) -> list[Any] | None:
    """Read the names of the cells, or the column that was named."""
    item = _item(file, f"obs/{request.id or _index(_item(file, 'obs'))}")
    if hasattr(item, "shape") and item.shape == (n,):
        found: list[Any] = _strings_or_numbers(path, item, request.max_bytes).tolist()
        return found
    if request.id is not None:
        problem = "is not a column of obs" if item is None else f"does not name each of the {n} cells"
        raise FileError(path, f"{argument('id')} '{printable(request.id)}' {problem}")
    return None


def _genes(path: Path, file: Any, name: str, max_bytes: int, m: int) -> list[str] | None:
    """Read the names of the columns of the matrix, a layer or the raw matrix, if they are all different."""
    place = {"X": "var", "layers": "var", "raw": "raw/var"}.get(name.strip("/").partition("/")[0])
    item = None if place is None else _item(file, f"{place}/{_index(_item(file, place))}")
    if item is None or getattr(item, "shape", None) != (m,):
        return None
    names = [str(name) for name in _strings_or_numbers(path, item, max_bytes).tolist()]
    return names if len(set(names)) == m else None


def _index(group: Any) -> str:
    """Return the column of a table that names its rows."""
    return _text(group.attrs.get("_index", "_index")) if hasattr(group, "attrs") else "_index"


def _strings_or_numbers(path: Path, item: Any, max_bytes: int) -> Array:
    if len(item.shape) != 1:
        raise FileError(path, f"'{printable(item.name)}' is not one value for each cell")
    check_size(path, _PER_NAME * item.shape[0], max_bytes, "its names need")
    if item.dtype.kind in "biuf":
        return _array(path, item, item.name, max_bytes)
    if item.dtype.kind not in "OS" or item.external or item.is_virtual:
        raise FileError(path, f"'{printable(item.name)}' is neither text nor numbers")
    largest = max(item.shape[0], math.prod(item.chunks or ()))  # texts of a fixed length, and a chunk, are read whole
    check_size(path, largest * item.dtype.itemsize, max_bytes, "its names need")
    names: list[str] = []
    used = 0
    # many entries may point at one text as long as the file: four copies of each, in half of the memory
    at_once = max(1, min(_NAMES_AT_ONCE, max_bytes // (8 * path.stat().st_size)))
    for start in range(0, item.shape[0], at_once):
        names += [_text(value) for value in item[start : start + at_once]]
        used += sum(map(sys.getsizeof, names[start:]))
        check_size(path, 2 * used, max_bytes, "its names need")
    return np.array(names, dtype=object)  # an array of texts would have room for the longest in every row


def _text(value: Any) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)
