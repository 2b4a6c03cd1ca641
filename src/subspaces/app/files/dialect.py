"""How a table of texts is laid out, seen from its first rows: what separates cells, titles, decimals, the header."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal

MISSING = frozenset(
    {"", "na", "n/a", "n.a.", "nan", "<na>", "null", "none", "missing", "?", "-", "--", "–", "—", "."}
    | {"nd", "n/d", "n.d."}  # "not determined", as laboratories write
    | {"#n/a", "#div/0!", "#value!", "#ref!", "#num!", "#name?", "#null!"}  # errors that spreadsheets write
)
"""Cells that stand for a missing value (compared in lower case)."""

COMMENT = ("#", "%", "//")
"""What lines before a table begin with that only people read."""

SAMPLE, SAMPLE_CHARACTERS = 50, 2**20
"""Rows that are looked at before the table is read, and after how many characters the looking ends (with 3 rows)."""

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tabulator", " ": "blank"}
"""What may stand between cells, and what it is called; a blank means any number of them."""

_WITH_COMMA = re.compile(r"[+-]?(\d+|[1-9]\d{0,2}(\.\d{3})+),\d+([eE][+-]?\d+)?(\s*%)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?")

Kind = Literal["number", "missing", "text"]
Row = tuple[int, list[str]]
"""Line number and cells."""


def kind_of(cell: str, decimal: str = ".") -> Kind:
    """What a cell holds, where `decimal` stands before the decimals."""
    if cell.strip().lower() in MISSING:
        return "missing"
    try:
        number_of(cell, decimal)
    except ValueError:
        return "text"
    return "text" if "_" in cell else "number"  # Python reads 2019_04 as 201904; in a file that is text


def number_of(cell: str, decimal: str = ".") -> float:
    """The number in a cell; per cent as a fraction, which is what a workbook stores.

    Examples
    --------
    >>> number_of("75%"), number_of("-1,5", ","), number_of("12 %", ",")
    (0.75, -1.5, 0.12)
    """
    plain = cell.strip()
    percent = plain.endswith("%")
    plain = plain[:-1] if percent else plain
    value = float(with_point(plain) if decimal == "," else plain)
    return value / 100 if percent else value


def with_point(cell: str) -> str:
    """A number with a decimal comma (and maybe points between the thousands) as Python writes it.

    Examples
    --------
    >>> with_point("-1,5"), with_point("1.234,5"), with_point("12"), with_point("1.5")
    ('-1.5', '1234.5', '12', '1.5 has a point')
    """
    if "." not in cell:
        return cell.replace(",", ".")
    plain = cell.strip()
    return plain.replace(".", "").replace(",", ".") if _GROUPED.fullmatch(plain) else f"{plain} has a point"


def find_decimal(rows: Sequence[Sequence[str]]) -> str:
    """The sign before the decimals: a comma if some number can only be read with one, and none only with a point.

    ``1,234`` alone decides nothing: it is one and a bit in Berlin and a thousand and more in Boston.

    Examples
    --------
    >>> find_decimal([["1,5", "2"]]), find_decimal([["1,5", "2.5"]]), find_decimal([["1,234", "x"]])
    (',', '.', '.')
    """
    cells = [cell.strip() for row in rows for cell in row]
    commas = any(_WITH_COMMA.fullmatch(cell) and not _THOUSANDS.fullmatch(cell) for cell in cells)
    points = any("." in cell and kind_of(cell) == "number" for cell in cells)
    return "," if commas and not points else "."


def split(lines: Sequence[str], delimiter: str) -> Iterator[list[str]]:
    """Cells of lines that may be broken."""
    if delimiter == " ":
        yield from (line.split() for line in lines)
        return
    try:
        yield from csv.reader(lines, delimiter=delimiter)
    except csv.Error:
        return


def find_delimiter(lines: Sequence[str], candidates: Sequence[str]) -> str:
    r"""What separates the cells: what gives most rows of one length, then most numbers, then the first candidate.

    Examples
    --------
    >>> find_delimiter(["a;b\n", "1,5;2,5\n"], ",;"), find_delimiter(["a,b\n", "1,c;d\n"], ",;")
    (';', ',')
    """
    return max(candidates, key=lambda delimiter: _score(list(split(lines, delimiter)))) if len(lines) else candidates[0]


def _score(rows: list[list[str]]) -> tuple[int, float]:
    rows = [row for row in rows if row]
    width, n = usual_width(rows)
    alike = [row for row in rows if len(row) == width]
    if width < 2:
        return 0, 0.0
    cells = [cell for row in alike[len(alike) > 1 :] for cell in row]
    numbers = sum("number" in (kind_of(cell), kind_of(cell, ",")) for cell in cells)
    return n, numbers / len(cells)


def usual_width(rows: Sequence[Sequence[str]]) -> tuple[int, int]:
    """The length that most rows have (of equally many, the larger), and how many rows have it."""
    counts = Counter(len(row) for row in rows)
    return max(counts.items(), key=lambda item: (item[1], item[0]), default=(0, 0))


def filled(row: Sequence[str]) -> Sequence[str]:
    """A row without the empty cells at its end."""
    end = len(row)
    while end and not row[end - 1].strip():
        end -= 1
    return row[:end]


def count_titles(rows: Sequence[Sequence[str]]) -> int:
    """How many rows above the table are titles or remarks: text, and at most half as many cells as the table is wide.

    Spreadsheets fill titles up with empty cells; then the first whole row below has to be the names of the columns.

    Examples
    --------
    >>> count_titles([["Ward 3"], ["a", "b", "c"], ["1", "2", "3"]]), count_titles([["a", "b"], ["1", "2", "3"]])
    (1, 0)
    >>> count_titles([["Ward 3", "", ""], ["May", "", ""], ["a", "b", "c"], ["1", "2", "3"], ["4", "5", "6"]])
    2
    """
    ends = [filled(row) for row in rows]
    width, length = usual_width(ends)[0], usual_width(rows)[0]
    for i, (row, end) in enumerate(zip(rows, ends, strict=True)):
        below = ends[i + 1 :]
        if sum(len(other) == width for other in below) < 2:
            return i
        if not end:
            continue
        starts_with_text = kind_of(next(cell for cell in end if cell.strip())) == "text"
        following = next(other for other in below if len(other) == width)
        named = all(kind_of(cell) == "text" for cell in following)
        unsure = len(row) >= length or width < 3
        n_cells = sum(bool(cell.strip()) for cell in end) if named else len(end)
        if not starts_with_text or 2 * n_cells > width or (unsure and not named):
            return i
    return 0


def count_comments(lines: Sequence[str]) -> int:
    """How many lines above the table are comments; blank ones between them count, but no table is all comment."""
    n = 0
    for i, line in enumerate(lines):
        if not line.strip():
            continue
        if not line.lstrip().startswith(COMMENT):
            return n
        n = i + 1
    return 0


def names_in_comment(line: str, below: Sequence[str], delimiter: str) -> list[str] | None:
    """Names of the columns in the last comment above a table that has none, as NumPy writes them; else None.

    Examples
    --------
    >>> names_in_comment("# a,b", ["1,2"], ","), names_in_comment("# by me", ["1,2"], ",")
    (['a', 'b'], None)
    """
    (names,) = list(split([line.lstrip().lstrip("#%/").strip()], delimiter)) or [[]]
    rows = [row for row in split(below, delimiter) if row]
    decimal = find_decimal(rows)
    if len(names) < 2 or len(names) != usual_width(rows)[0] or any(kind_of(name) == "number" for name in names):
        return None
    return None if looks_like_header(rows[0], rows[1] if len(rows) > 1 else None, decimal) else names


def looks_like_header(first: Sequence[str], second: Sequence[str] | None, decimal: str = ".") -> bool:
    """Whether the first line names the columns.

    It does when it has text above a number. Text above text decides nothing (a column of class names), so
    then the other cells do: pandas names unnamed columns 0, 1, 2, ...

    Examples
    --------
    >>> looks_like_header(["length", "species"], ["5.1", "setosa"])
    True
    >>> looks_like_header(["4.9", "setosa"], ["5.1", "setosa"])
    False
    >>> looks_like_header(["", "0", "1"], ["0", "5.1", "3.5"])
    True
    """
    kinds = [kind_of(cell, decimal) for cell in first]
    if all(kind == "number" for kind in kinds):
        return False
    if second is None:
        return "text" in kinds
    pairs = list(zip(kinds, (kind_of(cell, decimal) for cell in second), strict=False))
    if ("text", "number") in pairs or not any(below == "number" for _, below in pairs):
        return "text" in kinds
    numbers = [cell for cell, kind in zip(first, kinds, strict=True) if kind == "number"]
    return len(numbers) > 1 and counts_up(numbers)


def counts_up(cells: Sequence[str]) -> bool:
    """Whether cells are 0, 1, 2, and so on."""
    return list(cells) == [str(i) for i in range(len(cells))]


def take_lines(lines: Iterator[str]) -> list[str]:
    """The first lines, as many as it takes to see how a table is laid out, beside comments."""
    taken: list[str] = []
    n_lines = n_characters = 0
    for line in lines:
        taken.append(line)
        n_lines += bool(line.strip()) and not line.lstrip().startswith(COMMENT)
        n_characters += len(line)
        if n_lines == SAMPLE or (len(taken) > 2 and n_characters > SAMPLE_CHARACTERS):
            break
    return taken


def take_rows(rows: Iterator[Row]) -> list[Row]:
    """The first rows, as many as it takes."""
    taken: list[Row] = []
    n_characters = 0
    for line, row in islice(rows, SAMPLE):
        taken.append((line, row))
        n_characters += sum(map(len, row))
        if len(taken) > 2 and n_characters > SAMPLE_CHARACTERS:
            break
    return taken
