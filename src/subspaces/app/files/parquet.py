"""Parquet by pyarrow, batch by batch into one array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.app.files.columns import (
    Columns,
    choose_columns,
    find_column,
    keep_out,
    settle_ids,
    settle_missing,
    text_trouble,
)
from subspaces.app.files.dataset import Dataset, Request, encode
from subspaces.app.files.dialect import SAMPLE, SAMPLE_CHARACTERS
from subspaces.app.files.identifiers import without_ids
from subspaces.app.files.text_files import dataset_of_texts
from subspaces.utils.files import FileError, argument, check_size, printable
from subspaces.utils.types import Array

A_DATE = "2000-01-01"
"""What stands for the cells of a column of dates."""


def read_parquet(path: Path, request: Request) -> Dataset:
    """Read a table of numeric columns."""
    try:
        import pyarrow.parquet
    except ImportError:
        problem = 'reading Parquet needs pyarrow: pip install "subspaces[app]" (or save the table as CSV)'
        raise FileError(path, problem) from None
    with pyarrow.parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
    if len(set(schema.names)) < len(schema.names):
        raise FileError(path, "two columns have the same name; give every column its own")
    if request.text is not None:
        return _texts(path, schema, request)
    columns = _chosen(path, schema, request)
    # texts stay packed (each different one once) until their size is known: a kilobyte may unpack to gigabytes
    texts = [schema.names[i] for i in (columns.label, columns.id) if i is not None and _is_text(schema.field(i).type)]
    with pyarrow.parquet.ParquetFile(path, read_dictionary=texts) as file:
        return _read(path, file, columns, request)


def _texts(path: Path, schema: Any, request: Request) -> Dataset:
    """A column of texts, with label and identifier."""
    wanted = {"text": request.text, "label": request.label, "id": request.id}
    named = {part: name for part, name in wanted.items() if name is not None}
    for part, name in named.items():
        find_column(path, schema.names, name, part)
    columns = read_columns(path, list(named.values()), request.max_bytes)
    for part, name in named.items():
        if None in columns[name] or (part == "text" and not all(str(cell).strip() for cell in columns[name])):
            row = next(i for i, cell in enumerate(columns[name]) if cell is None or not str(cell).strip())
            raise FileError(path, f"row {row} has no {part}; leave it out", column=name)
    return dataset_of_texts(path, request, {part: list(map(str, columns[name])) for part, name in named.items()})


def _chosen(path: Path, schema: Any, request: Request) -> Columns:
    """Give every column its part; texts that nobody settled are refused at once."""
    given = {request.label, request.id, *request.ignore}
    at = [i for i, name in enumerate(schema.names) if name not in given and _is_text(schema.field(i).type)]
    texts: dict[int, Sequence[str]] = dict(zip(at, _first_texts(path, schema, at, request.max_bytes), strict=True))
    texts |= {
        i: [A_DATE] for i, name in enumerate(schema.names) if name not in given and _is_date(schema.field(i).type)
    }
    columns = choose_columns(path, schema.names, request, texts)
    if columns.texts:
        found = {schema.names[i]: cells for i, cells in columns.texts.items()}
        raise text_trouble(path, found, request, next((cell for cells in found.values() for cell in cells), ""))
    return columns


def _first_texts(path: Path, schema: Any, positions: list[int], max_bytes: int) -> list[list[str]]:
    """The first texts of columns; packed, so that a long one which all rows share is there once."""
    import pyarrow.parquet

    names = [schema.names[i] for i in positions]
    with pyarrow.parquet.ParquetFile(path, read_dictionary=names) as file:
        check_size(path, _packed(file), max_bytes, "unpacks to")
        batch = next(file.iter_batches(batch_size=SAMPLE, columns=names), None)
    columns = [] if batch is None else [batch.column(name).slice(0, SAMPLE) for name in names]
    short = [_text_bytes(column) < SAMPLE_CHARACTERS for column in columns]
    texts = [column.to_pylist() if is_short else [] for column, is_short in zip(columns, short, strict=True)]
    return [[printable(value) for value in column] for column in texts] or [[] for _ in names]


def _read(path: Path, file: Any, columns: Columns, request: Request) -> Dataset:
    schema, n_rows = file.schema_arrow, file.metadata.num_rows
    names = list(schema.names)
    dtype = _dtype(path, schema, columns)
    if n_rows == 0:
        raise FileError(path, "the table has no rows")
    check_size(path, n_rows * len(columns.features) * dtype.itemsize, request.max_bytes)
    check_size(path, _packed(file), request.max_bytes, "unpacks to")

    X = np.empty((n_rows, len(columns.features)), dtype=dtype)
    labels: list[Any] = []
    ids: list[Any] = []
    start, n_text_bytes = 0, 0
    used = {*columns.features, columns.label, columns.id}
    for batch in file.iter_batches(columns=[name for i, name in enumerate(names) if i in used]):
        stop = start + batch.num_rows
        for position, i in enumerate(columns.features):
            X[start:stop, position] = _values(batch.column(names[i]))
        n_text_bytes += sum(_text_bytes(batch.column(names[i])) for i in (columns.label, columns.id) if i is not None)
        check_size(path, n_text_bytes, request.max_bytes, "its texts unpack to")
        if columns.label is not None:
            labels += _complete(path, batch.column(names[columns.label]), names[columns.label], start).to_pylist()
        if columns.id is not None:
            ids += batch.column(names[columns.id]).to_pylist()
        start = stop
    if start < n_rows:  # else rows that were never written to would be returned
        raise FileError(path, f"cut short: {n_rows} rows announced, {start} there; write or fetch it again")
    y, classes = None, None
    if columns.label is not None:
        # as objects: an array of texts would have room for the longest in every row
        is_text = any(isinstance(label, str | bytes) for label in labels)
        y, classes = encode(path, np.asarray(labels, dtype=object if is_text else None), names[columns.label])
    features = [names[i] for i in columns.features]
    known = None if columns.id is None else settle_ids(path, names[columns.id], ids, columns, request)
    data = Dataset(X, path, y=y, classes=classes, ids=known, feature_names=features, notes=columns.notes)
    data = without_ids(replace(data, left_out=columns.left_out), features, request)
    kept, can_ignore = data.feature_names or features, request.columns is None
    return settle_missing(data, request.missing, lambda i: f"row {i}", kept, can_ignore=can_ignore)


def read_columns(path: Path, wanted: Sequence[str], max_bytes: int) -> dict[str, list[Any]]:
    """Those of the columns that are there, as lists; None where a value is missing."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
    names = [name for name in schema.names if name in wanted]
    texts = [name for name in names if _is_text(schema.field(name).type)]
    columns: dict[str, list[Any]] = {name: [] for name in names}
    needed = 0
    with pyarrow.parquet.ParquetFile(path, read_dictionary=texts) as file:
        check_size(path, _packed(file), max_bytes, "unpacks to")
        for batch in file.iter_batches(columns=names):
            needed += sum(60 * batch.num_rows + _text_bytes(batch.column(name)) for name in names)
            check_size(path, needed, max_bytes, "its texts unpack to")
            for name in names:
                columns[name] += batch.column(name).to_pylist()
    return columns or {name: [] for name in schema.names}


def _packed(file: Any) -> int:
    return sum(file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups))


def _dtype(path: Path, schema: Any, columns: Columns) -> np.dtype:
    """float32 if every column is, else float64; a column that is no number is an error."""
    import pyarrow.types as types

    for i in (columns.label, columns.id):
        if i is not None and types.is_nested(schema.field(i).type):
            problem = f"of type {printable(schema.field(i).type)}; labels and identifiers are numbers or texts"
            raise FileError(path, problem, column=schema.field(i).name)
    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    for i in columns.features:
        field = schema.field(i)
        if not any(is_kind(field.type) for is_kind in numeric):
            problem = f"of type {printable(field.type)}, not numbers"
            remedy = f"use {keep_out(field.name)} to keep it out of the points"
            raise FileError(path, f"{problem}; {remedy}", column=field.name)
    single = all(types.is_float32(schema.field(i).type) for i in columns.features)
    return np.dtype(np.float32 if single else np.float64)


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    kind = kind.value_type if types.is_dictionary(kind) else kind  # as pandas writes its categories
    return any(is_kind(kind) for is_kind in (types.is_string, types.is_large_string, types.is_binary))


def _is_date(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_temporal(kind))


def _text_bytes(column: Any) -> int:
    """Bytes of the texts of a column, one copy for every row, found without making the copies."""
    import pyarrow.compute as compute
    import pyarrow.types as types

    if not types.is_dictionary(column.type) or not _is_text(column.type.value_type):
        return int(column.nbytes)
    lengths = compute.binary_length(column.dictionary).cast("int64")
    return int(compute.sum(lengths.take(column.indices)).as_py() or 0)


def _complete(path: Path, column: Any, name: str, start: int) -> Any:
    if column.null_count:
        row = start + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        problem = f"row {row} is missing; fill it in or leave out the row or column ({argument('ignore')})"
        raise FileError(path, problem, column=name)
    return column


def _values(column: Any) -> Array:
    """Numbers of a column, NaN where they are missing."""
    values: Array = column.to_numpy(zero_copy_only=False)
    return values.astype(np.float64) if values.dtype.kind == "O" else values  # decimals come as objects
