"""Read samples from a file, a folder of files, or Dask collections, as blocks of rows that workers can open."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from subspaces.distributed._files import mapped
from subspaces.distributed._tasks import DaskWorkers, Workers, results
from subspaces.utils.column_names import is_id
from subspaces.utils.files import FileError, inside, printable
from subspaces.utils.memory import require
from subspaces.utils.optional import from_app
from subspaces.utils.process import warn_caller
from subspaces.utils.types import Array

SUFFIXES = (".npy", ".parquet")
_MASKED = "X has masked entries, whose values would be used all the same: fill or remove them first."
PIECE_BYTES = 64 * 2**20
"""Bytes of a file that one task reads, about."""


# ---------------------------------------------------------------- readers of files, small enough to be sent to a worker


class Stamped(NamedTuple):
    """A file as it was when a run began: what is kept in memory, or read in two passes, must not be of two files."""

    path: str
    size: int
    changed: int

    @staticmethod
    def of(path: str | Path) -> Stamped:
        """Stamp the file as it is now."""
        found = os.stat(path)
        return Stamped(str(path), found.st_size, found.st_mtime_ns)

    def check(self) -> None:
        """Refuse a file that was written again since."""
        if Stamped.of(self.path) != self:
            raise FileError(Path(self.path), "was changed while it was being read; run the same again")


@dataclass(frozen=True)
class NpyRows:
    """An array in NumPy's format."""

    file: Stamped

    def read(self, start: int, stop: int) -> Array:
        """Map the file here: a map sent to a worker would travel with all its bytes."""
        self.file.check()
        return mapped(Path(self.file.path))[start:stop]


@dataclass(frozen=True)
class ArrayRows:
    """An array in the memory of the process that computes."""

    X: Any

    def read(self, start: int, stop: int) -> Array:
        """Return its rows."""
        return np.asarray(self.X[start:stop])


@dataclass(frozen=True)
class _Parts:
    """Files whose rows are read part by part: `starts` holds the first row of each part, and the number of rows."""

    files: tuple[Stamped, ...]
    starts: tuple[int, ...]

    def part(self, number: int) -> Array:
        """Read one part; the last one is kept for the next call."""
        raise NotImplementedError

    def read(self, start: int, stop: int) -> Array:
        """Return the rows from `start` to `stop`."""
        spans = [(i, max(start, a) - a, min(stop, b) - a) for i, (a, b) in enumerate(pairwise(self.starts))]
        found = [self.part(i)[a:b] for i, a, b in spans if a < b]
        return np.concatenate(found) if len(found) > 1 else found[0]


@dataclass(frozen=True)
class ParquetRows(_Parts):
    """The numeric columns of Parquet files, found by their names: parts are their row groups."""

    columns: tuple[str, ...]
    groups: tuple[tuple[int, int], ...]

    @staticmethod
    def of(paths: list[Path]) -> tuple[ParquetRows, np.dtype[Any]]:
        """Open the files of one table; return also the type of all columns (files without rows may have any)."""
        try:
            import pyarrow.parquet
        except ImportError:
            raise FileError(paths[0], 'reading Parquet needs pyarrow: pip install "subspaces[app]"') from None
        first: Path | None = None
        names: list[str] = []
        groups, sizes, single = [], [], True
        for number, path in enumerate(paths):
            with pyarrow.parquet.ParquetFile(path) as file:
                schema, meta = file.schema_arrow, file.metadata
            if not meta.num_rows:
                continue
            kinds, left_out = _columns(path, schema)
            if first is None and left_out:
                _warn_of_ids(left_out)
            first, names = (path, list(kinds)) if first is None else (first, names)
            if sorted(kinds) != sorted(names):
                missing, more = (sorted(a - b)[:10] for a, b in ((set(names), {*kinds}), ({*kinds}, set(names))))
                raise FileError(path, f"its columns are not those of {first.name}: {missing} missing, {more} more")
            single = single and all(str(kind) == "float" for kind in kinds.values())
            groups += [(number, g) for g in range(meta.num_row_groups)]
            sizes += [meta.row_group(g).num_rows for g in range(meta.num_row_groups)]
        starts = tuple(np.cumsum([0, *sizes]).tolist())
        rows = ParquetRows(tuple(map(Stamped.of, paths)), starts, tuple(names), tuple(groups))
        return rows, np.dtype(np.float32 if single else np.float64)

    def part(self, number: int) -> Array:
        """Unpack one row group."""
        file, group = self.groups[number]
        self.files[file].check()
        return _parquet_group(self.files[file], group, self.columns)


def _warn_of_ids(names: list[str]) -> None:
    """Warn which columns of a table that is read piece by piece were left out."""
    warn_caller(f"left out: {', '.join(map(printable, names))} (id by its name); rename a column to use it.")


def _columns(path: Path, schema: Any) -> tuple[dict[str, Any], list[str]]:
    """Return types of the features by name, without the index of pandas; and the ids, which are left out."""
    from pyarrow import types

    numbers = (types.is_floating, types.is_integer, types.is_boolean)
    index = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
    names = [name for name in schema.names if name not in index]
    left_out = [name for name in names if is_id(name)]
    kinds = {name: schema.field(name).type for name in names if name not in left_out}
    wrong = [name for name, kind in kinds.items() if not any(test(kind) for test in numbers)]
    if wrong:
        raise FileError(path, f"has columns that are not numbers: {wrong[:10]}; drop or encode them first")
    return kinds, left_out


@lru_cache(maxsize=1)
def _parquet_group(kept: Stamped, group: int, columns: tuple[str, ...]) -> Array:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(kept.path) as file:
        table = file.read_row_group(group, columns=list(columns), use_threads=False)
    dtype = np.float32 if all(str(field.type) == "float" for field in table.schema) else np.float64
    out = np.empty((table.num_rows, len(columns)), dtype=dtype)
    for i, name in enumerate(columns):
        out[:, i] = table.column(name).to_numpy(zero_copy_only=False)
    return out


class CsvRows(_Parts):
    """A folder of CSV files with the same columns: parts are the files."""

    @staticmethod
    def look(file: Stamped) -> tuple[int, list[str], list[str]]:
        """Return how many rows a file has, its columns, and those that are ids and left out."""
        X, names, left_out = _csv_file(file)
        return len(X), names, left_out

    def part(self, number: int) -> Array:
        """Parse one file."""
        self.files[number].check()
        return _csv_file(self.files[number])[0]


@lru_cache(maxsize=1)
def _csv_file(file: Stamped) -> tuple[Array, list[str], list[str]]:
    data = from_app("files", "read_table")(file.path, keep=None)
    names = list(data.feature_names or [str(i + 1) for i in range(data.X.shape[1])])
    used = [i for i, name in enumerate(names) if not is_id(name)]
    return np.asarray(data.X)[:, used], [names[i] for i in used], [name for name in names if is_id(name)]


Reader = NpyRows | ArrayRows | ParquetRows | CsvRows


# ---------------------------------------------------------------- sources


@dataclass(frozen=True)
class Block:
    """Some rows of a file, to be read where they are needed."""

    reader: Reader
    start: int
    stop: int
    dtype: np.dtype[Any]


def opened(block: Any) -> Array:
    """Return the rows of a block: Dask has made them an array already, or they are read here."""
    if isinstance(block, Block):
        return _dense(block.reader.read(block.start, block.stop), block.dtype)
    return np.asarray(block)


@dataclass(frozen=True)
class Source:
    """Samples as rows, in float32 or float64, wherever they are.

    `names` are those of the columns of a data frame. There is a `reader` of a file or folder, or else an `array` of
    Dask with whole rows and known sizes.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    names: Array | None = None
    reader: Reader | None = None
    array: Any = None

    def pieces(self, n_rows: int | None = None) -> tuple[list[int], list[Any]]:
        """Return bounds of blocks of `n_rows` rows (None: whatever is easiest to read), and the blocks."""
        n, m = self.shape
        if self.reader is None:
            array = self.array if n_rows is None else self.array.rechunk((n_rows, -1), method="tasks")
            bounds = np.cumsum([0, *array.chunks[0]]).tolist()
            return bounds, list(array.to_delayed().ravel())
        step = n_rows or max(1, PIECE_BYTES // (m * self.dtype.itemsize))
        bounds = [*range(0, n, step), n]
        return bounds, [Block(self.reader, a, b, self.dtype) for a, b in pairwise(bounds)]

    def whole(self, workers: Workers) -> Array:
        """Return all samples in one array."""
        if isinstance(self.reader, NpyRows | ArrayRows):  # a map, or there already
            return np.ascontiguousarray(self.reader.read(0, self.shape[0]), dtype=self.dtype)
        size = self.shape[0] * self.shape[1] * self.dtype.itemsize
        require(size, f"one array of {self.shape[0]} points, which this method needs,", "Let EKTRR cluster a sample.")
        bounds, blocks = self.pieces()
        out = np.empty(self.shape, dtype=self.dtype)
        for number, block in workers.run(opened, [(block,) for block in blocks]):
            out[bounds[number] : bounds[number + 1]] = block
        return out


def as_source(X: Any, workers: Workers) -> Source:
    """Make a source of X; only unknown sizes are computed."""
    if isinstance(X, str | PathLike):
        return _from_path(Path(X).expanduser(), workers)
    if isinstance(workers, DaskWorkers):
        return _from_dask(X, workers)
    if hasattr(X, "dask"):
        kind = type(X).__name__
        raise TypeError(f'X is a {kind} of Dask, whose tasks need a client: client="here" computes without Dask.')
    X, names = _in_memory(X)
    return _of_reader(Path("X"), ArrayRows(X), X.shape, X.dtype, names)


def _in_memory(X: Any) -> tuple[Any, Array | None]:
    """Return an array of numbers and the names of its columns from an array or a data frame."""
    if sparse.issparse(X):
        raise TypeError(
            f"X must be a dense array; got a sparse one of the shape {X.shape}. X.toarray() makes it dense."
        )
    names = None
    if hasattr(X, "columns"):
        names = _names(X.columns)
        nullable = hasattr(X, "iloc") and bool(_checked_columns(X))
        X = X.to_numpy(np.float64, na_value=np.nan) if nullable else np.asarray(X)
    X = X if hasattr(X, "ndim") else np.asarray(X)
    if np.ma.is_masked(X):
        raise ValueError(_MASKED)
    _check_array(X)
    return X, names


def _names(columns: Any) -> Array | None:
    """Return names of columns, if they are strings."""
    found = list(columns)
    return np.asarray(found, dtype=object) if all(isinstance(name, str) for name in found) else None


def _checked_columns(frame: Any) -> list[Any]:
    """Return the columns whose type has a missing value of its own; refuse those that hold no numbers."""
    kinds = dict(frame.dtypes.items())
    wrong = [str(name) for name, kind in kinds.items() if getattr(kind, "kind", "O") not in "fiub"]
    if wrong:
        raise ValueError(f"X has columns that are not numbers: {wrong[:10]}. Drop or encode them first.")
    return [name for name, kind in kinds.items() if not isinstance(kind, np.dtype)]


def _from_path(path: Path, workers: Workers) -> Source:
    folder_of = _folder_of(path)
    if path.suffix not in SUFFIXES and folder_of is None:
        raise ValueError(
            f"X={str(path)!r} must end in one of {', '.join(SUFFIXES)}, be a folder of .parquet or .csv files, or be "
            "read by you with Dask."
        )
    if not path.exists():
        raise FileNotFoundError(f"X={str(path)!r} does not exist; check the name and the folder.")
    with _naming(path):
        path = path.resolve()
        if path.suffix == ".npy":
            header = mapped(path)
            _check_array(header, path)
            return _of_reader(path, NpyRows(Stamped.of(path)), header.shape, header.dtype)
        if folder_of == ".csv":
            return _from_csv(path, workers)
        parquet, dtype = ParquetRows.of(_in_order(tables_in(path, ".parquet")) if path.is_dir() else [path])
        shape = (parquet.starts[-1], len(parquet.columns))
        return _of_reader(path, parquet, shape, dtype, np.asarray(parquet.columns, dtype=object))


def _folder_of(path: Path) -> str | None:
    """Return the kind of files in a folder, ``.parquet`` or ``.csv``, or None."""
    if not path.is_dir() or path.suffix == ".npy":
        return None
    found = [suffix for suffix in (".parquet", ".csv") if tables_in(path, suffix)]
    if len(found) > 1:
        raise FileError(path, "holds .parquet and .csv files, and both may be the points; move one kind elsewhere")
    return found[0] if found else None


def tables_in(folder: Path, suffix: str) -> list[Path]:
    """Return files of a table by name, except hidden ones and what Spark is still writing (``_...``)."""
    found = [path for path in sorted(folder.rglob(f"*{suffix}")) if path.is_file()]
    found = [path for path in found if not any(p.startswith((".", "_")) for p in path.relative_to(folder).parts)]
    for path in found:
        try:
            inside(path, folder)
        except ValueError as error:
            raise FileError(path, f"{error}; copy the file itself there") from None
    return found


def _in_order(files: list[Path]) -> list[Path]:
    """Return the files; warn where Dask would read them in another order, because labels follow this one."""
    numbered = sorted(files, key=lambda path: [int(t) if t.isdecimal() else t for t in re.split(r"(\d+)", str(path))])
    for first, other in zip(files, numbered, strict=True):
        if first != other:
            warn_caller(
                f"files are read in the order of their names, {first.name} before {other.name}, as by pandas, and "
                "labels are in this order; Dask reads by number: for its order give dask.dataframe.read_parquet(X)."
            )
            break
    return files


def _from_csv(path: Path, workers: Workers) -> Source:
    files = tuple(map(Stamped.of, _in_order(tables_in(path, ".csv"))))
    found = results(workers, CsvRows.look, [(file,) for file in files])
    _, names, left_out = found[0]
    if left_out:
        _warn_of_ids(left_out)
    for file, (_, other, _) in zip(files, found, strict=True):
        if other != names:
            raise FileError(
                Path(file.path), f"its columns {other[:10]} are not those of {Path(files[0].path).name}, {names[:10]}"
            )
    starts = tuple(np.cumsum([0, *(n for n, *_ in found)]).tolist())
    known = np.asarray(names, dtype=object)
    return _of_reader(path, CsvRows(files, starts), (starts[-1], len(names)), np.dtype(np.float64), known)


def _of_reader(path: Path, reader: Reader, shape: Any, dtype: Any, names: Array | None = None) -> Source:
    if 0 in shape:
        raise FileError(path, f"holds an array of the shape {shape}: there is nothing to cluster")
    _check_size(shape)
    return Source((int(shape[0]), int(shape[1])), _float_type(dtype), names, reader)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn any failure of a parser on damaged bytes into one error that names the file."""
    try:
        yield
    except (ImportError, FileError):
        raise
    except Exception as error:
        reason = printable(" ".join(str(error).split()), 200)
        raise FileError(path, f"damaged or not points in rows ({reason})") from error


def _check_array(X: Any, path: Path | None = None) -> None:
    """Refuse what holds no numbers or has not two dimensions; arrays of objects in memory are converted later."""
    if path is not None and X.dtype.kind not in "biuf":
        raise FileError(path, f"holds an array of type {printable(X.dtype)}; store numbers")
    if np.dtype(X.dtype).kind not in "biufO":
        raise TypeError(f"X must hold numbers; got an array of type {printable(X.dtype)}. Convert it first.")
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, samples as rows; got {X.ndim}. Reshape it.")


def _check_size(shape: Any) -> None:
    if shape[0] < 2 or shape[1] < 1:
        raise ValueError(f"X must have at least 2 samples and 1 feature; got the shape {tuple(map(int, shape))}.")


def _float_type(dtype: Any) -> np.dtype[Any]:
    native = np.dtype(dtype).newbyteorder("=")
    return native if native in (np.float32, np.float64) else np.dtype(np.float64)


# ---------------------------------------------------------------- Dask's own


def _from_dask(X: Any, workers: DaskWorkers) -> Source:
    import dask.array as da

    if hasattr(X, "to_dask_array"):
        return _from_frame(X, workers)
    if isinstance(X, da.Array):
        return _whole_rows(X, workers)
    X, names = _in_memory(X)
    return _whole_rows(da.from_array(X, chunks=getattr(X, "chunks", "auto")), workers, names)  # Zarr has chunks


def _from_frame(frame: Any, workers: DaskWorkers) -> Source:
    names = _names(frame.columns)
    frame = frame.astype(dict.fromkeys(_checked_columns(frame), np.float64))  # what is missing there becomes NaN
    found = workers.client.compute(frame.map_partitions(len, enforce_metadata=False)).result()
    lengths = tuple(map(int, np.ravel(found)))  # a number, not a list, if there is one partition
    return _whole_rows(frame.to_dask_array(lengths=lengths), workers, names)


def _whole_rows(X: Any, workers: Workers, names: Array | None = None) -> Source:
    """Return a source with chunks of whole rows, known sizes and a float type."""
    import dask.array as da

    _check_array(X)
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    if np.isnan(X.shape[1]):
        raise ValueError("the number of columns of X must be known: call X.compute_chunk_sizes() first.")
    if np.isnan(X.shape[0]):
        lengths = results(workers, len, [(block,) for block in X.to_delayed().ravel()])
        X = da.Array(X.dask, X.name, (tuple(lengths), X.chunks[1]), dtype=X.dtype, meta=X._meta)
    _check_size(X.shape)
    dtype = _float_type(X.dtype)
    X = X.map_blocks(_dense, kind=dtype, dtype=dtype, meta=np.empty((0, 0), dtype=dtype))
    return Source((int(X.shape[0]), int(X.shape[1])), dtype, names, array=X)


def _dense(block: Any, kind: Any) -> Array:
    if sparse.issparse(block):
        raise TypeError("the chunks of X must be dense arrays; got sparse ones. X.map_blocks(lambda x: x.toarray())")
    if np.ma.is_masked(block):
        raise ValueError(_MASKED)
    return np.ascontiguousarray(np.asarray(block), dtype=kind)
