"""AnnData (``.h5ad``) by h5py alone: the matrix or its components, names of the cells, a column as labels."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.app.files.arrays import check_points
from subspaces.app.files.dataset import Dataset, Request, encode
from subspaces.app.files.sparse_files import check_sparse, checked_shape, compressed
from subspaces.utils.files import FileError, argument, check_size, printable, quoted
from subspaces.utils.types import Array, Data

COMPONENTS = "obsm/X_pca"
"""What is clustered where it is there: the components that scanpy computed."""

_NAMES_AT_ONCE = 256
_PER_NAME = 100


def read_h5ad(path: Path, request: Request) -> Dataset:
    """Read cells from an AnnData file: ``obsm/X_pca`` if it is there, else ``X``, or what `array` names."""
    try:
        import h5py
    except ImportError:
        raise FileError(path, 'an AnnData file needs h5py: pip install "subspaces[app]"') from None
    with h5py.File(path, "r") as file:
        name = request.array or (COMPONENTS if _item(file, COMPONENTS) is not None else "X")
        item = _item(file, name)
        if item is None:
            problem = (
                f"'{printable(name)}' is not in the file; {argument('array')} may be one of {quoted(_places(file))}"
            )
            raise FileError(path, problem)
        X = _values(path, item, name, request)
        notes = []
        if request.array is None and name == COMPONENTS:
            notes = [f"the components in {COMPONENTS} are clustered; {argument('array', 'X')} takes the matrix itself"]
        y, classes = _labels(path, file, request, X.shape[0])
        ids = _ids(path, file, request, X.shape[0])
        genes = _genes(path, file, name, request, X.shape[1])
    data = Dataset(X, path, y=y, classes=classes, ids=ids, feature_names=genes, notes=tuple(notes))
    return check_points(data, request.missing, name) if isinstance(X, np.ndarray) else check_sparse(data)


def _item(group: Any, name: str) -> Any:
    """An item by its path; None where it is not there, or where a link leads out of the file."""
    import h5py

    for part in name.strip("/").split("/"):
        is_group = isinstance(group, h5py.Group)
        if not is_group or not isinstance(group.get(part, getlink=True), h5py.HardLink):
            return None
        group = group[part]
    return group


def _places(file: Any) -> list[str]:
    inside = [f"{group}/{name}" for group in ("obsm", "layers") for name in (_item(file, group) or ())]
    return [name for name in ("X", "raw/X", *inside) if _item(file, name) is not None]


def _values(path: Path, item: Any, name: str, request: Request) -> Data:
    kind = _text(item.attrs.get("encoding-type", item.attrs.get("h5sparse_format", "")))
    if hasattr(item, "shape"):
        shape = item.shape
        if len(shape) != 2:
            raise FileError(path, f"'{printable(name)}' has the shape {printable(shape)}; points are the rows of two")
        check_size(path, math.prod(shape) * item.dtype.itemsize, request.max_bytes)
        return _read(path, item, name, request)
    kinds = {"csr_matrix": "csr", "csc_matrix": "csc", "csr": "csr", "csc": "csc"}
    if kind not in kinds:
        raise FileError(path, f"'{printable(name)}' is {printable(kind) or 'a group'}, not a matrix of numbers")
    parts = {part: _item(item, part) for part in ("data", "indices", "indptr")}
    stored = item.attrs.get("shape", item.attrs.get("h5sparse_shape"))
    if stored is None or any(not hasattr(part, "shape") or len(part.shape) != 1 for part in parts.values()):
        raise FileError(path, f"'{printable(name)}' is a sparse matrix without all of its parts; write it again")
    shape = checked_shape(path, np.asarray(stored).reshape(-1)[:3].tolist(), request)
    needed = sum(math.prod(part.shape) * part.dtype.itemsize for part in parts.values())
    check_size(path, (2 if kinds[kind] == "csr" else 3) * needed, request.max_bytes)
    arrays = [_read(path, parts[part], f"{name}/{part}", request) for part in ("data", "indices", "indptr")]
    return compressed(path, kinds[kind], *arrays, shape=shape)


def _read(path: Path, item: Any, name: str, request: Request) -> Array:
    """An array of numbers that lies in this file and nowhere else."""
    if item.dtype.kind not in "biuf" or item.external or item.is_virtual:
        raise FileError(path, f"'{printable(name)}' is not an array of real numbers in this file")
    # a chunk is unpacked whole, however small the array in it is
    check_size(path, math.prod(item.chunks or ()) * item.dtype.itemsize, request.max_bytes, "a chunk needs")
    return np.ascontiguousarray(item[()])


def _labels(path: Path, file: Any, request: Request, n: int) -> tuple[Array | None, list[str] | None]:
    """The column of ``obs`` that was named: categories, text or numbers."""
    if request.label is None:
        return None, None
    item = _item(file, f"obs/{request.label}")
    if item is None:
        columns = [name for name in (_item(file, "obs") or ()) if not name.startswith("_")]
        problem = f"{argument('label')} '{printable(request.label)}' is not a column of obs"
        raise FileError(path, f"{problem}; the columns are {quoted(columns)}")
    legacy = _item(file, f"obs/__categories/{request.label}")
    names = _item(item, "categories") if not hasattr(item, "shape") else legacy
    codes = item if hasattr(item, "shape") else _item(item, "codes")
    if not hasattr(codes, "shape") or codes.shape != (n,):
        raise FileError(path, f"{argument('label')} '{printable(request.label)}' has no value for each of {n} cells")
    if names is None:
        return encode(path, _strings_or_numbers(path, codes, request), request.label)
    categories = np.array([str(name) for name in _strings_or_numbers(path, names, request).tolist()], dtype=object)
    given = _read(path, codes, request.label, request)
    if given.dtype.kind not in "iu" or len(given) == 0 or given.min() < 0 or given.max() >= len(categories):
        missing = f"the label of cell {int(np.argmin(given))} is missing" if given.min(initial=0) < 0 else "is damaged"
        raise FileError(path, f"{missing}; fill it in or name no label", column=request.label)
    return encode(path, categories[given], request.label)


def _ids(path: Path, file: Any, request: Request, n: int) -> list[Any] | None:
    """Names of the cells, or the column that was named."""
    item = _item(file, f"obs/{request.id or _index(_item(file, 'obs'))}")
    if request.id is not None and item is None:
        raise FileError(path, f"{argument('id')} '{printable(request.id)}' is not a column of obs")
    if not hasattr(item, "shape") or item.shape != (n,):
        if request.id is not None:
            raise FileError(path, f"{argument('id')} '{printable(request.id)}' does not name each of the {n} cells")
        return None
    found: list[Any] = _strings_or_numbers(path, item, request).tolist()
    return found


def _genes(path: Path, file: Any, name: str, request: Request, m: int) -> list[str] | None:
    """Names of the columns of the matrix, a layer or what was raw, if they are all different."""
    place = {"X": "var", "layers": "var", "raw": "raw/var"}.get(name.strip("/").partition("/")[0])
    item = None if place is None else _item(file, f"{place}/{_index(_item(file, place))}")
    if item is None or getattr(item, "shape", None) != (m,):
        return None
    names = [str(name) for name in _strings_or_numbers(path, item, request).tolist()]
    return names if len(set(names)) == m else None


def _index(group: Any) -> str:
    """The column of a table that names its rows."""
    return _text(group.attrs.get("_index", "_index")) if hasattr(group, "attrs") else "_index"


def _strings_or_numbers(path: Path, item: Any, request: Request) -> Array:
    if len(item.shape) != 1:
        raise FileError(path, f"'{printable(item.name)}' is not one value for each cell")
    check_size(path, _PER_NAME * item.shape[0], request.max_bytes, "its names need")
    if item.dtype.kind in "biuf":
        return _read(path, item, item.name, request)
    if item.dtype.kind not in "OS" or item.external or item.is_virtual:
        raise FileError(path, f"'{printable(item.name)}' is neither text nor numbers")
    largest = max(item.shape[0], math.prod(item.chunks or ()))  # texts of a fixed length, and a chunk, are read whole
    check_size(path, largest * item.dtype.itemsize, request.max_bytes, "its names need")
    names: list[str] = []
    used = 0
    # many entries may point at one text as long as the file: four copies of each, in half of the memory
    at_once = max(1, min(_NAMES_AT_ONCE, request.max_bytes // (8 * path.stat().st_size)))
    for start in range(0, item.shape[0], at_once):
        names += [_text(value) for value in item[start : start + at_once]]
        used += sum(map(sys.getsizeof, names[start:]))
        check_size(path, 2 * used, request.max_bytes, "its names need")
    return np.array(names, dtype=object)  # an array of texts would have room for the longest in every row


def _text(value: Any) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)
