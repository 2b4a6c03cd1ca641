"""Labels to files, so that a file is there whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from subspaces._typing import Labels
from subspaces.io._dataset import FileError, printable

Ids = Sequence[Any] | None


@contextmanager
def write_atomically(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its place only when everything is written and on disk.

    The bytes go to a hidden file in the same folder, which replaces `path` at the end and is removed on any
    failure, an interruption from the keyboard included.
    """
    target = Path(path).resolve()  # through a symbolic link: its target is replaced, not the link
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    # Not tempfile: its files are private to their owner, and this one becomes the result.
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Put the new name itself on disk; not every system or file system can, and then nothing is lost."""
    with suppress(OSError, AttributeError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def check_output(path: str | PathLike[str], *, force: bool = False, source: str | PathLike[str] | None = None) -> None:
    """Refuse an output that could not be written, before hours are spent computing it.

    Parameters
    ----------
    path : path-like
        The file to write; its suffix gives the format.
    force : bool, default=False
        Whether an existing file may be replaced.
    source : path-like, default=None
        The input file, which is never replaced.
    """
    file = Path(path)
    if file.suffix.lower() not in WRITERS:
        found = f"the suffix '{printable(file.suffix)}'" if file.suffix else "a name without a suffix"
        raise FileError(file, f"labels cannot be written to {found}; choose one of {', '.join(WRITERS)}")
    if file.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
        raise FileError(file, 'writing Parquet needs pyarrow: pip install "subspaces[io]" (or choose .csv)')
    if file.is_dir():
        raise FileError(file, "this is a folder; name a file in it")
    folder = file.resolve().parent
    if not folder.is_dir():
        raise FileError(file, "its folder does not exist; create it or choose another")
    if not os.access(folder, os.W_OK):
        raise FileError(file, "its folder may not be written to; choose another or change its permissions")
    if source is not None and file.exists() and file.samefile(source):
        raise FileError(file, "this is the input file; choose another name for the labels")
    if file.exists() and not force:
        raise FileError(file, "the file exists; choose another name or allow it to be replaced with --force")


def write_labels(
    path: str | PathLike[str],
    labels: Labels,
    *,
    ids: Ids = None,
    extra: Mapping[str, Any] | None = None,
    force: bool = False,
) -> None:
    """Write one label per point to a ``.csv``, ``.tsv``, ``.parquet``, ``.json`` or ``.npy`` file.

    Tables have two columns: ``id`` (or ``row``, counted from 0, when there are no identifiers) and ``label``.
    A ``.npy`` file holds the labels only.

    Parameters
    ----------
    path : path-like
        The file to write.
    labels : array of shape (n_samples,)
        The labels.
    ids : sequence, default=None
        An identifier for each point.
    extra : mapping, default=None
        What else a JSON file shall say; other formats leave it out.
    force : bool, default=False
        Whether an existing file may be replaced.
    """
    file = Path(path)
    check_output(file, force=force)
    if ids is not None and len(ids) != len(labels):
        raise ValueError(f"ids has {len(ids)} entries and labels {len(labels)}; there must be one id per label")
    with write_atomically(file) as stream:
        WRITERS[file.suffix.lower()](stream, labels, ids, extra or {})


def _write_text(stream: BinaryIO, labels: Labels, ids: Ids, delimiter: str) -> None:
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    # The csv module leaves a carriage return unquoted, and readers would see a new line there.
    has_return = ids is not None and any("\r" in str(name) for name in ids)
    writer = csv.writer(
        text,
        delimiter=delimiter,
        lineterminator="\n",
        quoting=csv.QUOTE_NONNUMERIC if has_return else csv.QUOTE_MINIMAL,
    )
    writer.writerow(("row" if ids is None else "id", "label"))
    writer.writerows(zip(range(len(labels)) if ids is None else ids, labels.tolist(), strict=True))
    text.detach()  # flushes, and leaves the file open for the caller


def _write_csv(stream: BinaryIO, labels: Labels, ids: Ids, extra: Mapping[str, Any]) -> None:
    _write_text(stream, labels, ids, ",")


def _write_tsv(stream: BinaryIO, labels: Labels, ids: Ids, extra: Mapping[str, Any]) -> None:
    _write_text(stream, labels, ids, "\t")


def _write_json(stream: BinaryIO, labels: Labels, ids: Ids, extra: Mapping[str, Any]) -> None:
    document = {**extra, "labels": labels.tolist()}
    if ids is not None:
        document["ids"] = list(ids)
    stream.write(json.dumps(document, allow_nan=False, default=str).encode() + b"\n")


def _write_npy(stream: BinaryIO, labels: Labels, ids: Ids, extra: Mapping[str, Any]) -> None:
    np.lib.format.write_array(stream, np.asarray(labels, dtype=np.int64), allow_pickle=False)


def _write_parquet(stream: BinaryIO, labels: Labels, ids: Ids, extra: Mapping[str, Any]) -> None:
    import pyarrow
    import pyarrow.parquet

    key = "row" if ids is None else "id"
    points = np.arange(len(labels)) if ids is None else list(ids)
    pyarrow.parquet.write_table(pyarrow.table({key: points, "label": np.asarray(labels, np.int64)}), stream)


WRITERS: dict[str, Callable[[BinaryIO, Labels, Ids, Mapping[str, Any]], None]] = {
    ".csv": _write_csv,
    ".tsv": _write_tsv,
    ".parquet": _write_parquet,
    ".json": _write_json,
    ".npy": _write_npy,
}
"""Writer of each suffix."""
