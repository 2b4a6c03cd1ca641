"""Parquet by pyarrow, batch by batch into one array."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from subspaces._typing import Array
from subspaces.io._columns import Columns, choose_columns
from subspaces.io._dataset import Dataset, FileError, Request, check_size, encode, printable
from subspaces.io._missing import settle_missing


def read_parquet(path: Path, request: Request) -> Dataset:
    """Read a table of numeric columns."""
    try:
        import pyarrow.parquet
    except ImportError:
        problem = 'reading Parquet needs pyarrow: pip install "subspaces[io]" (or save the table as CSV)'
        raise FileError(path, problem) from None
    with pyarrow.parquet.ParquetFile(path) as file:
        return _read(path, file, request)


def _read(path: Path, file: Any, request: Request) -> Dataset:
    schema, n_rows = file.schema_arrow, file.metadata.num_rows
    names = list(schema.names)
    if len(set(names)) < len(names):
        raise FileError(path, "two columns have the same name; give every column its own")
    columns = choose_columns(path, names, request)
    dtype = _dtype(path, schema, columns)
    if n_rows == 0:
        raise FileError(path, "the table has no rows")
    check_size(path, n_rows * len(columns.features) * dtype.itemsize, request.max_bytes)
    packed = sum(file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups))
    check_size(path, packed, request.max_bytes, "unpacks to")

    X = np.empty((n_rows, len(columns.features)), dtype=dtype)
    labels: list[Any] = []
    ids: list[Any] = []
    start = 0
    used = {*columns.features, columns.label, columns.id}
    for batch in file.iter_batches(columns=[name for i, name in enumerate(names) if i in used]):
        stop = start + batch.num_rows
        for position, i in enumerate(columns.features):
            X[start:stop, position] = _values(batch.column(names[i]))
        if columns.label is not None:
            labels += _complete(path, batch.column(names[columns.label]), names[columns.label], start).to_pylist()
        if columns.id is not None:
            ids += batch.column(names[columns.id]).to_pylist()
        start = stop
    y, classes = None, None
    if columns.label is not None:
        y, classes = encode(path, np.asarray(labels), names[columns.label])
    features = [names[i] for i in columns.features]
    data = Dataset(
        X,
        path,
        y=y,
        classes=classes,
        ids=None if columns.id is None else ids,
        feature_names=features,
        notes=columns.notes,
    )
    return settle_missing(data, request.missing, lambda i: f"row {i}", features)


def _dtype(path: Path, schema: Any, columns: Columns) -> np.dtype:
    """float32 if every column is, else float64; a column that is no number is an error."""
    import pyarrow.types as types

    for i in columns.features:
        field = schema.field(i)
        if not (
            types.is_integer(field.type)
            or types.is_floating(field.type)
            or types.is_boolean(field.type)
            or types.is_decimal(field.type)
        ):
            name = printable(field.name)
            raise FileError(
                path,
                f"of type {printable(field.type)}, not numbers; use --label {name}, --id {name} or "
                f"--ignore {name} to keep it out of the points",
                column=field.name,
            )
    single = all(types.is_float32(schema.field(i).type) for i in columns.features)
    return np.dtype(np.float32 if single else np.float64)


def _complete(path: Path, column: Any, name: str, start: int) -> Any:
    if column.null_count:
        row = start + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        problem = f"row {row} is missing; fill it in or leave out the row or column (--ignore)"
        raise FileError(path, problem, column=name)
    return column


def _values(column: Any) -> Array:
    """Numbers of a column, NaN where they are missing."""
    values: Array = column.to_numpy(zero_copy_only=False)
    return values.astype(np.float64) if values.dtype.kind == "O" else values  # decimals come as objects
