"""Labels → where they are wanted: kept by the estimator, or written piece by piece to a file and left there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from subspaces.distributed._files import mapped
from subspaces.io.writing import unfinished, write_atomically
from subspaces.numerics.types import Array

OUTPUTS = (".npy", ".parquet", ".zarr")


class Output:
    """What becomes of labels.

    Parameters
    ----------
    path : of a ``.npy``, ``.parquet`` or ``.zarr`` file to write; None keeps the labels in memory
    """

    def __init__(self, path: Path | None) -> None:
        if path is not None and path.suffix not in OUTPUTS:
            raise ValueError(f"output={str(path)!r} must end in one of {', '.join(OUTPUTS)}.")
        if path is not None and not path.parent.is_dir():
            raise FileNotFoundError(f"the folder of output={str(path)!r} does not exist; make it first.")
        self.path = path

    def take(self, estimator: Any, pieces: Iterable[Array], n: int) -> None:
        """Labels of all points in order, piece by piece."""
        if self.path is None:
            labels = np.empty(n, dtype=np.intp)
            start = 0
            for piece in pieces:
                labels[start : start + len(piece)] = piece
                start += len(piece)
            estimator.labels_ = labels
            return
        if self.path.suffix == ".zarr":
            _write_zarr(self.path, pieces, n)
        else:
            with write_atomically(self.path) as stream:
                (_write_npy if self.path.suffix == ".npy" else _write_parquet)(stream, pieces, n)
        if self.path.suffix == ".npy":
            estimator.labels_ = mapped(self.path)

    def keep(self, estimator: Any) -> None:
        """Labels that the estimator has."""
        if self.path is not None:
            labels = estimator.labels_
            self.take(estimator, iter([labels.astype(np.int32)]), len(labels))


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


def _write_zarr(target: Path, pieces: Iterable[Array], n: int) -> None:
    import zarr

    with unfinished(target) as temporary:
        stored = zarr.create_array(str(temporary), shape=(n,), dtype=np.int32, chunks=(min(n, 2**20),))
        start = 0
        for piece in pieces:
            stored[start : start + len(piece)] = piece
            start += len(piece)
        with unfinished(target) as old:
            if target.is_dir():  # a folder replaces none that holds files
                os.replace(target, old)
            os.replace(temporary, target)
