"""Answers about pairs of samples in a file that a person can read, and that a run goes on from."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from subspaces.app.files import Dataset, FileError
from subspaces.app.files.writing import harmless_in_text, write_rows
from subspaces.selection.hints import Answer
from subspaces.utils.atomic import write_atomically
from subspaces.utils.files import check_regular, printable

WORDS = {"same": True, "different": False, "unknown": None}
MAX_BYTES = 10_000_000


def write_answers(path: Path, data: Dataset, answers: Sequence[Answer]) -> None:
    """Write answers with the names of both samples; the file is there whole or not at all."""
    kind, names = _names(data)
    words = {answer: word for word, answer in WORDS.items()}
    text = io.StringIO()
    write_rows(text, [(f"first_{kind}", f"second_{kind}", "answer")])
    write_rows(text, [(names[i], names[j], words[same]) for i, j, same in answers])
    with write_atomically(path) as stream:
        stream.write(text.getvalue().encode())


def read_answers(path: Path, data: Dataset) -> list[Answer]:
    """Read answers about these samples; a file that is not there has none.

    Raises
    ------
    FileError
        Where the file is none of answers, or of other samples.
    """
    check_regular(path)
    if not path.exists():
        return []
    if path.stat().st_size > MAX_BYTES:
        raise FileError(path, f"larger than {MAX_BYTES // 10**6} MB, so no file of answers; name another one")
    try:
        rows = list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig")), strict=True))
    except (UnicodeDecodeError, csv.Error):
        raise FileError(path, "not a table of answers in UTF-8; name another file, and a new one begins") from None
    kind, names = _names(data)
    header = [f"first_{kind}", f"second_{kind}", "answer"]
    if not rows or rows[0] != header:
        held = printable(", ".join(rows[0])) if rows else "nothing"
        problem = f"its first line must be {','.join(header)}, as these samples are named; it holds {held}"
        raise FileError(path, f"{problem}; name another file, and a new one begins", line=1)
    place = {harmless_in_text(name): i for i, name in enumerate(names)}
    found: list[Answer] = []
    for line, row in enumerate(rows[1:], start=2):
        if len(row) != 3 or row[2].strip().lower() not in WORDS:
            wanted = "must name two samples and say same, different or unknown"
            raise FileError(path, f"{wanted}; got {printable(','.join(row))}; correct or delete it", line=line)
        for name in row[:2]:
            if name not in place:
                problem = f"no sample is called {printable(name)}"
                raise FileError(path, f"{problem}; is the file of other samples? Correct or delete the line", line=line)
        if row[0] == row[1]:
            raise FileError(path, f"names {printable(row[0])} twice; correct or delete it", line=line)
        found.append((place[row[0]], place[row[1]], WORDS[row[2].strip().lower()]))
    return found


def _names(data: Dataset) -> tuple[str, list[str]]:
    """Return what identifies samples, and that of each; rows where identifiers are not all different."""
    kind, names = next(iter(data.places.items()), ("row", range(data.n_samples)))
    names = [str(name) for name in names]
    if len({harmless_in_text(name) for name in names}) < len(names):
        return "row", [str(i) for i in range(data.n_samples)]
    return kind, names
