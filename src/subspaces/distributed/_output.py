"""Keep labels in the estimator, or write them piece by piece to a file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from subspaces.distributed._files import mapped
from subspaces.utils.atomic import write_atomically
from subspaces.utils.types import Array

OUTPUTS = (".npy", ".parquet")


class Output:
    """Destination of labels: a file to write, or memory without a `path`; the samples X are never replaced."""

    def __init__(self, path: Path | None, X: Any = None) -> None:
        self.path = path
        if path is None:
            return
        name = f"output={str(path)!r}"
        if path.suffix not in OUTPUTS:
            raise ValueError(f"{name} must end in one of {', '.join(OUTPUTS)}.")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"the folder of {name} does not exist; make it first.")
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(f"the folder of {name} may not be written to; choose another.")
        if path.is_dir():
            raise IsADirectoryError(f"{name} is a folder, which labels do not replace; choose another name.")
        if path.suffix == ".parquet" and find_spec("pyarrow") is None:
            raise ImportError(f"{name} needs pyarrow: pip install pyarrow, or choose .npy.")
        source = _place_of(X)
        if source is not None and (path == source or source in path.parents or path in source.parents):
            raise ValueError(f"{name} would replace or join the samples X={str(source)!r}; choose another place.")

    def take(self, estimator: Any, pieces: Iterable[Array], n: int) -> None:
        """Store labels of all samples in order, given piece by piece."""
        if self.path is None:
            labels = np.empty(n, dtype=np.intp)
            start = 0
            for piece in pieces:
                labels[start : start + len(piece)] = piece
                start += len(piece)
            estimator.labels_ = labels
            return
        with write_atomically(self.path) as stream:
            (_write_npy if self.path.suffix == ".npy" else _write_parquet)(stream, pieces, n)
        if self.path.suffix == ".npy":
            estimator.labels_ = mapped(self.path)

    def keep(self, estimator: Any) -> None:
        """Write the labels that the estimator has."""
        if self.path is not None:
            labels = estimator.labels_
            self.take(estimator, iter([labels.astype(np.int32)]), len(labels))


def _place_of(X: Any) -> Path | None:
    """Return the path of X: itself, or that of a memory map or an open Zarr array."""
    place = getattr(X, "filename", None) or getattr(getattr(X, "store", None), "root", None)
    place = X if isinstance(X, str | os.PathLike) else place
    return Path(place).expanduser().resolve() if isinstance(place, str | os.PathLike) else None


def _write_npy(stream: BinaryIO, pieces: Iterable[Array], n: int) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.int32)), "fortran_order": False, "shape": (n,)}
    np.lib.format.write_array_header_1_0(stream, header)
    for piece in pieces:
        stream.write(np.ascontiguousarray(piece, dtype=np.int32).data)


def _write_parquet(stream: BinaryIO, pieces: Iterable[Array], n: int) -> None:
    import pyarrow
    import pyarrow.parquet

    schema, start = pyarrow.schema([("row", pyarrow.int64()), ("cluster", pyarrow.int32())]), 0
    with pyarrow.parquet.ParquetWriter(stream, schema) as writer:
        for piece in pieces:
            columns = {"row": np.arange(start, start + len(piece)), "cluster": np.asarray(piece, dtype=np.int32)}
            writer.write_table(pyarrow.table(columns, schema=schema))
            start += len(piece)
