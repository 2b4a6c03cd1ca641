"""Parquet by pyarrow, batch by batch into one array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.app.files.columns import (
    Columns,
    choose_columns,
    dataset_of_columns,
    find_column,
    keep_out,
    text_trouble,
)
from subspaces.app.files.dataset import Dataset, Original, Request, encode, imported
from subspaces.app.files.tables import TEXT_BYTES, dataset_of_texts
from subspaces.app.files.text import SAMPLE, SAMPLE_CHARACTERS
from subspaces.utils.files import FileError, check_size, printable
from subspaces.utils.types import Array

_A_DATE = "2000-01-01"  # stands for the cells of a column of dates


def read_parquet(path: Path, request: Request) -> Dataset:
    """Read a table of Parquet."""
    schema, n_rows = _described(path)
    names = list(schema.names)
    if len(set(names)) < len(names):
        raise FileError(path, "two columns have the same name; give every column its own")
    if n_rows == 0:
        raise FileError(path, "the table has no rows")
    plain = [name for name in names if not _is_nested(schema.field(name).type)]
    if request.text is not None:
        return _texts(path, names, plain, request)
    columns = _choose(path, schema, request)
    features = [names[i] for i in columns.features]
    X, found = _values(path, features, [name for name in plain if name not in features], request.max_bytes)
    original = Original(names, X, columns.features, {names.index(name): cells for name, cells in found.items()})
    data = Dataset(X, path, columns=original)
    if columns.label is not None:
        labels = found[names[columns.label]]
        known = np.array([label is not None and label == label for label in labels], dtype=bool)
        told = [label for label, is_known in zip(labels, known.tolist(), strict=True) if is_known]
        # as objects: an array of texts would have room for the longest in every row
        is_text = any(isinstance(label, str | bytes) for label in told)
        y = np.full(len(labels), -1)
        y[known], classes = encode(path, np.asarray(told, dtype=object if is_text else None), names[columns.label])
        data = replace(data, y=y, classes=classes)
    return dataset_of_columns(data, columns, request)


def read_columns(path: Path, wanted: Sequence[str], max_bytes: int) -> dict[str, list[Any]]:
    """Return those of the columns that are there, as lists with None where a value is missing."""
    names = _described(path)[0].names
    there = [name for name in names if name in wanted]
    return _values(path, [], there, max_bytes)[1] if there else {name: [] for name in names}


def _described(path: Path) -> tuple[Any, int]:
    """Return the schema of a file and the number of its rows."""
    parquet = imported(path, "pyarrow.parquet", "reading this file", instead=" (or save the table as CSV)")
    with parquet.ParquetFile(path) as file:
        return file.schema_arrow, file.metadata.num_rows


def _batches(path: Path, names: list[str], size: int, max_bytes: int) -> Iterator[Any]:
    """Yield batches; texts stay packed, each different one once: a kilobyte may unpack to gigabytes."""
    import pyarrow.parquet as parquet

    texts = [name for name in names if _is_text(_described(path)[0].field(name).type)]
    with parquet.ParquetFile(path, read_dictionary=texts) as file:
        unpacked = sum(file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups))
        check_size(path, unpacked, max_bytes, "unpacks to")
        yield from file.iter_batches(batch_size=size, columns=names)


def _texts(path: Path, names: list[str], plain: list[str], request: Request) -> Dataset:
    """Read a column of texts, with label and identifier."""
    wanted = {"text": request.text, "label": request.label, "id": request.id}
    named = {part: name for part, name in wanted.items() if name is not None}
    for part, name in named.items():
        find_column(path, names, name, part)
    columns = _values(path, [], plain, request.max_bytes)[1]
    for part, name in named.items():
        cells = [cell if part != "text" or str(cell).strip() else None for cell in columns[name]]
        if None in cells:
            raise FileError(path, f"row {cells.index(None)} is missing; fill it in or leave out the row", column=name)
    data = dataset_of_texts(path, request, {part: list(map(str, columns[name])) for part, name in named.items()})
    return replace(data, columns=Original(names, data.X, [], {names.index(name): columns[name] for name in columns}))


def _choose(path: Path, schema: Any, request: Request) -> Columns:
    """Give every column its part; refuse columns of text or other types among the features."""
    import pyarrow.types as types

    given = {request.label, request.id, *request.ignore}
    free = {i: schema.field(i).type for i, name in enumerate(schema.names) if name not in given}
    texts = _first_texts(path, schema.names, [i for i, kind in free.items() if _is_text(kind)], request.max_bytes)
    texts |= {i: [_A_DATE] for i, kind in free.items() if types.is_temporal(kind)}
    columns = choose_columns(path, schema.names, request, texts)
    if columns.texts:
        found = {schema.names[i]: cells for i, cells in columns.texts.items()}
        raise text_trouble(path, found, request, next((cell for cells in found.values() for cell in cells), ""))
    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    for i in (*columns.features, columns.label, columns.id):
        if i is None:
            continue
        field = schema.field(i)
        if i in columns.features and not any(is_kind(field.type) for is_kind in numeric):
            remedy = f"not numbers; use {keep_out(field.name)} to keep it out of the points"
            raise FileError(path, f"of type {printable(field.type)}, {remedy}", column=field.name)
        if _is_nested(field.type):
            problem = f"of type {printable(field.type)}; labels and identifiers are numbers or texts"
            raise FileError(path, problem, column=field.name)
    return columns


def _first_texts(path: Path, names: list[str], positions: list[int], max_bytes: int) -> dict[int, Sequence[str]]:
    """Return the first texts of columns; none of a column whose first texts are too long to look at."""
    found: dict[int, Sequence[str]] = dict.fromkeys(positions, ())
    batch: Any = next(_batches(path, [names[i] for i in positions], SAMPLE, max_bytes), None)
    for i in positions if batch is not None else ():
        column = batch.column(names[i])
        if _text_bytes(column) < SAMPLE_CHARACTERS:
            found[i] = [printable(value) for value in column.to_pylist()]
    return found


def _values(path: Path, features: list[str], beside: list[str], max_bytes: int) -> tuple[Array, dict[str, list[Any]]]:
    """Read the features as an array and the columns beside them as lists."""
    import pyarrow.types as types

    schema, n_rows = _described(path)
    single = all(types.is_float32(schema.field(name).type) for name in features)  # else float64
    dtype = np.dtype(np.float32 if single else np.float64)
    check_size(path, n_rows * len(features) * dtype.itemsize, max_bytes)
    X = np.empty((n_rows if features else 0, len(features)), dtype=dtype)
    found: dict[str, list[Any]] = {name: [] for name in beside}
    start = n_bytes = 0
    for batch in _batches(path, [*features, *beside], 2**16, max_bytes):
        stop = start + batch.num_rows
        for j, name in enumerate(features):
            X[start:stop, j] = _numbers(batch.column(name))
        n_bytes += sum(_text_bytes(batch.column(name)) + TEXT_BYTES * batch.num_rows for name in beside)
        check_size(path, n_bytes, max_bytes, "its texts unpack to")
        for name in beside:
            found[name] += batch.column(name).to_pylist()
        start = stop
    if start < n_rows:  # else rows that were never written to would be returned
        raise FileError(path, f"cut short: {n_rows} rows announced, {start} there; write or fetch it again")
    return X, found


def _is_nested(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_nested(kind))


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    kind = kind.value_type if types.is_dictionary(kind) else kind  # as pandas writes its categories
    return any(is_kind(kind) for is_kind in (types.is_string, types.is_large_string, types.is_binary))


def _text_bytes(column: Any) -> int:
    """Return the bytes of the texts of a column, one copy for every row, without making the copies."""
    import pyarrow.compute as compute
    import pyarrow.types as types

    if not types.is_dictionary(column.type) or not _is_text(column.type.value_type):
        return int(column.nbytes)
    lengths = compute.binary_length(column.dictionary).cast("int64")
    return int(compute.sum(lengths.take(column.indices)).as_py() or 0)


def _numbers(column: Any) -> Array:
    """Return the numbers of a column, NaN where they are missing."""
    values: Array = column.to_numpy(zero_copy_only=False)
    return values.astype(np.float64) if values.dtype.kind == "O" else values  # decimals come as objects
