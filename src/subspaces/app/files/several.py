"""Several files as one table, patterns like ``photos/*.png``, and pipes."""

from __future__ import annotations

import glob
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from subspaces.app.files.dataset import Dataset, Request
from subspaces.app.files.image_files import belongs
from subspaces.utils.files import FileError, check_size, printable, quoted
from subspaces.utils.spelling import counted

PIPE = Path("standard input")
"""Name of a pipe in messages."""

_CHUNK = 2**20
_ARRAYS = (b"PK\x03\x04", b"PAR1", b"\x93NUMPY", b"MATLAB", b"\x89HDF")  # how files begin that are no text


def expand(paths: Iterable[str | PathLike[str]]) -> list[Path]:
    """Return the files, with patterns filled in where no file has that very name; refuse addresses."""
    found: list[Path] = []
    for given in paths:
        text = os.fspath(given)
        address = re.match(r"(?i)(https?|ftp|s3|gs):/+", text)
        if address:
            problem = "files are not fetched from the net; download it first and name the copy"
            raise FileError(text.replace(address[0], address[1] + "://", 1), problem)  # a path would eat a slash
        path = Path(text)
        if glob.has_magic(text) and not path.exists():
            matches = sorted(glob.glob(text, recursive=True))
            if not matches:
                raise FileError(path, "no file fits this pattern; check the name and the folder")
            found += map(Path, matches)
        else:
            found.append(path)
    return found


def are_images(files: Sequence[Path]) -> bool:
    """Return True for images, or folders of them: several are read as one folder."""
    return any(file.is_dir() or belongs(file.name) for file in files)


def common_folder(files: Sequence[Path]) -> Path:
    """Return the folder that holds them all."""
    folders = [file if file.is_dir() else file.parent for file in files]
    try:
        shared = os.path.commonpath([os.path.abspath(folder) for folder in folders])
    except ValueError:  # two drives of Windows
        raise FileError(files[0], "the images are on several drives; put them on one") from None
    plain = Path(os.path.relpath(shared))
    return plain if ".." not in plain.parts else Path(shared)


def read_several(files: Sequence[Path], request: Request, read: Callable[[Path, Request], Dataset]) -> Dataset:
    """Read tables one after the other and put their rows below each other; the columns must be the same."""
    parts: list[Dataset] = []
    for file in files:
        used = sum(part.X.nbytes for part in parts)
        check_size(file, used, request.max_bytes, "the files before it hold")
        data = read(file, replace(request, max_bytes=request.max_bytes - used))
        if not isinstance(data.X, np.ndarray):
            raise FileError(file, "sparse files are read one by one; join them first with scipy.sparse.vstack")
        if not parts:
            request = _as_first(data, request)
        parts.append(_in_order(parts[0], data) if parts else data)
    total = sum(part.X.nbytes for part in parts)
    check_size(files[-1], 2 * total, request.max_bytes, "with the other files, its values need")
    return _joined(parts)


def _as_first(first: Dataset, request: Request) -> Request:
    """Return the request that gives the columns of the other files the parts that those of the first have."""
    found = {name: kind for name, kind in first.left_out if kind != "empty"}
    named = next((name for name, kind in found.items() if kind != "date"), None) if first.ids is not None else None
    ignore = tuple(name for name in found if name != named or request.id is not None)
    return replace(
        request,
        id=request.id or named,
        ignore=(*request.ignore, *ignore),
        keep=None if request.keep is None else (*request.keep, *(first.feature_names or ())),
    )


def _in_order(first: Dataset, data: Dataset) -> Dataset:
    """Return the same columns in the order of the first file."""
    ours, theirs = first.feature_names, data.feature_names
    if ours is not None and theirs is not None and ours != theirs and len(set(ours)) == len(ours):
        odd = sorted(set(ours) ^ set(theirs))
        if odd or len(theirs) != len(ours):
            where = quoted(odd) or "how often a column is there"
            problem = f"{printable(first.source.name)} and this file differ in {where}"
            raise FileError(data.source, f"{problem}; files that are read together need the same columns")
        order = [theirs.index(name) for name in ours]
        if (own := data.columns) is not None:
            own = replace(own, numbers=own.numbers[:, order], places=[own.places[j] for j in order])
        data = replace(data, X=data.X[:, order], feature_names=ours, columns=own)
    if data.X.shape[1] != first.X.shape[1]:
        widths = f"{counted(data.X.shape[1], 'column')}, and {printable(first.source.name)} has {first.X.shape[1]}"
        raise FileError(data.source, f"{widths}; files that are read together need the same columns")
    return data


def _joined(parts: list[Dataset]) -> Dataset:
    """Put the rows of all parts below each other."""
    shapes = {part.image_shape for part in parts}
    data = Dataset(
        np.concatenate([part.X for part in parts]),
        parts[0].source,
        ids=_joined_names(parts, [part.ids for part in parts], [part.places for part in parts]),
        feature_names=parts[0].feature_names,
        notes=_joined_notes(parts),
        image_shape=shapes.pop() if len(shapes) == 1 else None,
        units=parts[0].units,
    )
    if all(columns := [part.columns for part in parts]):
        first, *others = [part for part in columns if part is not None]
        is_whole = all(part.X is own.numbers for part, own in zip(parts, (first, *others), strict=True))
        numbers = data.X if is_whole else np.concatenate([own.numbers for own in (first, *others)])
        data = replace(data, columns=first.below(others, numbers))
    if all(part.y is not None and part.classes is not None for part in parts):
        names = list(dict.fromkeys(name for part in parts for name in part.classes or ()))
        codes = [np.array([*map(names.index, part.classes or ()), -1])[part.y] for part in parts]
        data = replace(data, y=np.concatenate(codes).astype(np.intp), classes=names)
    if all(part.rows is None for part in parts):
        return data
    whole = [replace(part, ids=part.ids if part.rows is None else part.row_ids, rows=None) for part in parts]
    row_ids = _joined_names(parts, [part.ids for part in whole], [part.places for part in whole])
    sizes = [part.n_rows or len(part.X) for part in parts]
    starts = np.cumsum([0, *sizes])
    rows = [np.arange(len(part.X)) if part.rows is None else part.rows for part in parts]
    joined = np.concatenate([start + found for start, found in zip(starts[:-1], rows, strict=True)])
    return replace(data, rows=joined, row_ids=row_ids, n_rows=int(starts[-1]), ids=[row_ids[i] for i in joined])


def _joined_names(parts: list[Dataset], ids: list[Any], places: list[dict[str, list[Any]]]) -> list[str]:
    """Return the ids of all samples, where each has one and all differ; else the file before the id, line or row."""
    together = [str(name) for own in ids for name in own or ()]
    if all(own is not None for own in ids) and len(set(together)) == len(together):
        return together
    short = [part.source.name for part in parts]
    files = short if len(set(short)) == len(short) else [part.source.as_posix() for part in parts]
    return [
        f"{file}:{name}"
        for file, part, place in zip(files, parts, places, strict=True)
        for name in next(iter(place.values()), range(part.n_rows or len(part.X)))
    ]


def _joined_notes(parts: list[Dataset]) -> tuple[str, ...]:
    """Return notes of all files once, and of single files with their name."""
    sizes = ", ".join(f"{printable(part.source.name)} {len(part.X)}" for part in parts[:4])
    more = f", and {len(parts) - 4} more" if len(parts) > 4 else ""
    notes = [f"{len(parts)} files were read as one table ({sizes}{more})"]
    for note in dict.fromkeys(note for part in parts for note in part.notes):
        having = [part for part in parts if note in part.notes]
        notes.append(note if len(having) == len(parts) else f"{printable(having[0].source.name)}: {note}")
    return tuple(notes)


def read_stream(stream: BinaryIO, request: Request, read: Callable[[Path, Request], Dataset]) -> Dataset:
    """Read a table of text from a pipe, packed or not."""
    with tempfile.TemporaryDirectory(prefix="subspaces-") as folder:
        plain, size, suffix = Path(folder, "piped"), 0, ""
        with plain.open("wb") as copy:
            while chunk := stream.read(_CHUNK):
                if not size and chunk.startswith(_ARRAYS):
                    raise FileError(PIPE, "not a table of text; write it to a file and name that")
                suffix = suffix or (".txt.gz" if chunk.startswith(b"\x1f\x8b") else ".txt")
                size += len(chunk)
                check_size(PIPE, size, request.max_bytes, "it holds more than")
                copy.write(chunk)
        try:
            return replace(read(plain.rename(plain.with_suffix(suffix or ".txt")), request), source=PIPE)
        except FileError as error:
            raise error.saying(error.problem, PIPE) from None
