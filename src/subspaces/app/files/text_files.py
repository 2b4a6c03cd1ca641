"""Texts as points: the files of a folder, or a column of a table; vectors are made of them later."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from subspaces.app.files.columns import find_column
from subspaces.app.files.dataset import Dataset, Request, encode
from subspaces.app.files.dialect import Row
from subspaces.app.files.image_files import told_skipped
from subspaces.utils.files import FileError, argument, check_size, inside
from subspaces.utils.spelling import counted

SUFFIXES = (".txt", ".md")
_COPIES = 4  # of a text while its words are counted


def text_files(folder: Path) -> list[Path]:
    """The files of texts in a folder and below, in the order of their names; hidden ones are left out."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [Path(place, name) for name in names if name.lower().endswith(SUFFIXES) and not name.startswith(".")]
    return sorted(found)


def read_texts(path: Path, request: Request) -> Dataset:
    """Read every file of a folder as one text, named by its path below it; ``label="folder"`` takes its folder."""
    files = text_files(path)
    if request.label not in (None, "folder"):
        raise FileError(path, f"{argument('label')} of a folder of texts can only be 'folder', the folder of each")
    texts, kept, skipped, used = [], [], [], 0
    for file in files:
        name = file.relative_to(path).as_posix()
        try:
            with inside(file, path).open("rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                check_size(path, _COPIES * (used + size), request.max_bytes, "its texts need")
                text = stream.read(size).decode("utf-8-sig")
            if not text.strip():
                raise ValueError("is empty")
        except FileError:
            raise
        except (OSError, ValueError) as error:
            reason = "cannot be read" if isinstance(error, OSError) else str(error)
            skipped.append((name, "is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else reason))
            continue
        texts.append(text)
        kept.append(name)
        used += size
    if len(texts) < 2:
        found = counted(len(texts), "text")
        raise FileError(path, f"{found} in it ({', '.join(SUFFIXES)}); two or more are needed")
    y, classes = None, None
    if request.label is not None:
        parents = np.array([str(Path(name).parent.as_posix()) for name in kept])
        y, classes = encode(path, parents, "folder")
    data = Dataset(np.empty((len(texts), 0)), path, y=y, classes=classes, ids=kept, skipped=tuple(skipped))
    return replace(data, texts=texts, notes=tuple(told_skipped(skipped)))


def texts_from_rows(path: Path, request: Request, sample: list[Row], rows: Iterable[Row]) -> Dataset:
    """Read a column of texts, and of the other columns those that were named as label or identifier.

    The first line names the columns, unless the column is asked for by its number.
    """
    assert request.text is not None
    has_header = not request.text.isdigit() if request.header is None else request.header
    first = [cell.strip() for cell in sample[0][1]]
    names: Sequence[str] = first if has_header else [str(i + 1) for i in range(len(first))]
    rows = chain(sample[1:] if has_header else sample, rows)
    wanted = {"text": request.text, "label": request.label, "id": request.id}
    at = {part: find_column(path, names, name, part) for part, name in wanted.items() if name is not None}
    found: dict[str, list[str]] = {part: [] for part in at}
    used = 0
    for line, row in _whole(path, rows, max(at.values())):
        for part, position in at.items():
            found[part].append(row[position])
            used += len(row[position]) + 60
        if not row[at["text"]].strip():
            raise FileError(path, "the text is empty; leave out this row", line=line, column=request.text)
        if not len(found["text"]) % 1000:
            check_size(path, _COPIES * used, request.max_bytes, "its texts need")
    check_size(path, _COPIES * used, request.max_bytes, "its texts need")
    if len(found["text"]) < 2:
        raise FileError(path, "fewer than two texts; two or more are needed")
    return dataset_of_texts(path, request, found)


def dataset_of_texts(path: Path, request: Request, found: dict[str, list[str]]) -> Dataset:
    """Texts, and their labels and identifiers where there are any."""
    y, classes = None, None
    if request.label is not None:
        y, classes = encode(path, np.array(found["label"]), request.label)
    data = Dataset(np.empty((len(found["text"]), 0)), path, y=y, classes=classes, ids=found.get("id"))
    return replace(data, texts=found["text"])


def _whole(path: Path, rows: Iterable[Row], last: int) -> Iterator[Row]:
    for line, row in rows:
        if len(row) <= last:
            found = f"{counted(len(row), 'cell')} instead of {last + 1} or more"
            raise FileError(path, f"{found}; check separators and quotes of this line", line=line)
        yield line, row
