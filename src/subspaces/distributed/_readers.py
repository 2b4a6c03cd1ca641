"""Read rows of files where they are needed: ``.npy``, Zarr, Parquet, folders of CSV; no Dask."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from subspaces.distributed._files import mapped
from subspaces.utils.column_names import is_id
from subspaces.utils.files import FileError, printable
from subspaces.utils.optional import from_app
from subspaces.utils.process import warn_caller
from subspaces.utils.types import Array


class Reader(Protocol):
    """A small object that can be sent to a worker and reads rows there."""

    def read(self, start: int, stop: int) -> Array:
        """Return the rows from `start` to `stop`."""


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
class ZarrRows:
    """A Zarr array."""

    path: str

    @staticmethod
    def opened(path: Path) -> Any:
        """Open the array; pickles are refused before a chunk is unpacked: some codecs of object arrays unpickle."""
        import zarr

        stored = zarr.open_array(str(path), mode="r")
        codecs = [*(getattr(stored, "filters", None) or ()), *(getattr(stored, "compressors", None) or ())]
        if any(getattr(codec, "codec_id", "") == "pickle" for codec in codecs):
            raise FileError(path, "its chunks are pickles, which are never loaded; store numbers")
        return stored

    def read(self, start: int, stop: int) -> Array:
        """Unpack the chunks that hold these rows."""
        return np.asarray(self.opened(Path(self.path))[start:stop])


def _spans(starts: tuple[int, ...], start: int, stop: int) -> list[tuple[int, int, int]]:
    """Return number, first and last row within it, of each part that has rows from `start` to `stop`."""
    parts = [(i, max(start, a) - a, min(stop, b) - a) for i, (a, b) in enumerate(pairwise(starts))]
    return [(i, a, b) for i, a, b in parts if a < b]


@dataclass(frozen=True)
class ParquetRows:
    """The numeric columns of Parquet files, found by their names: parts are their row groups."""

    files: tuple[Stamped, ...]
    columns: tuple[str, ...]
    groups: tuple[tuple[int, int], ...]
    starts: tuple[int, ...]

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
                warn_of_ids(left_out)
            first, names = (path, list(kinds)) if first is None else (first, names)
            if sorted(kinds) != sorted(names):
                missing, more = (sorted(a - b)[:10] for a, b in ((set(names), {*kinds}), ({*kinds}, set(names))))
                raise FileError(path, f"its columns are not those of {first.name}: {missing} missing, {more} more")
            single = single and all(str(kind) == "float" for kind in kinds.values())
            groups += [(number, g) for g in range(meta.num_row_groups)]
            sizes += [meta.row_group(g).num_rows for g in range(meta.num_row_groups)]
        starts = tuple(np.cumsum([0, *sizes]).tolist())
        rows = ParquetRows(tuple(map(Stamped.of, paths)), tuple(names), tuple(groups), starts)
        return rows, np.dtype(np.float32 if single else np.float64)

    def read(self, start: int, stop: int) -> Array:
        """Unpack the row groups that hold these rows; the last is kept for the next call."""
        parts = []
        for i, a, b in _spans(self.starts, start, stop):
            number, group = self.groups[i]
            self.files[number].check()
            parts.append(_parquet_group(self.files[number], group, self.columns)[a:b])
        return np.concatenate(parts) if len(parts) > 1 else parts[0]


def warn_of_ids(names: list[str]) -> None:
    """Warn which columns of a table that is read piece by piece were left out."""
    warn_caller(f"left out: {', '.join(map(printable, names))} (id by its name); rename a column to use it.")


def _columns(path: Path, schema: Any) -> tuple[dict[str, Any], list[str]]:
    """Return types of the features by name, without the index of pandas; and the ids, which are left out."""
    index = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
    names = [name for name in schema.names if name not in index]
    left_out = [name for name in names if is_id(name)]
    kinds = {name: schema.field(name).type for name in names if name not in left_out}
    wrong = [name for name, kind in kinds.items() if not _is_number(kind)]
    if wrong:
        raise FileError(path, f"has columns that are not numbers: {wrong[:10]}; drop or encode them first")
    return kinds, left_out


def _is_number(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind))


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


@dataclass(frozen=True)
class CsvRows:
    """A folder of CSV files with the same columns: parts are the files."""

    files: tuple[Stamped, ...]
    starts: tuple[int, ...]

    @staticmethod
    def look(file: Stamped) -> tuple[int, list[str], list[str]]:
        """Return how many rows a file has, its columns, and those that are ids and left out."""
        X, names, left_out = _csv_file(file)
        return len(X), names, left_out

    def read(self, start: int, stop: int) -> Array:
        """Parse the files that hold these rows; the last is kept for the next call."""
        parts = []
        for i, a, b in _spans(self.starts, start, stop):
            self.files[i].check()
            parts.append(_csv_file(self.files[i])[0][a:b])
        return np.concatenate(parts) if len(parts) > 1 else parts[0]


@lru_cache(maxsize=1)
def _csv_file(file: Stamped) -> tuple[Array, list[str], list[str]]:
    data = from_app("files", "read_table")(file.path, keep=None)
    names = list(data.feature_names or [str(i + 1) for i in range(data.X.shape[1])])
    used = [i for i, name in enumerate(names) if not is_id(name)]
    return np.asarray(data.X)[:, used], [names[i] for i in used], [name for name in names if is_id(name)]
