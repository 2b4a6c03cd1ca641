"""Rows above and below the samples of a table: titles, names in one or more rows, units, sums and notes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from subspaces.app.files.cells import kind_of
from subspaces.utils.files import printable, quoted

Cells = Sequence[str]

_TOTALS = {
    "sum",
    "sums",
    "total",
    "totals",
    "mean",
    "means",
    "average",
    "median",
    "stdev",
    "variance",
    "summe",
    "gesamt",
}
_TOTALS |= {"mittelwert", "durchschnitt", "standardabweichung", "somme", "moyenne", "écart-type", "promedio"}
_BESIDE_TOTALS = frozenset({"min", "max", "sd", "std", "se", "sem", "n", "count", "anzahl"})  # alone also other names
_NO_UNIT = re.compile(r"[~≈±]?\s*\d[\d.,]*\s*\D?|.*\s\d+([.,]\d+)?")  # a number in words: "ca. 5", "5*"


@dataclass(frozen=True)
class Names:
    """Names of the columns, and what the rows that hold them say beside."""

    names: list[str] | None
    n_rows: int = 0
    units: dict[str, str] | None = None
    notes: tuple[str, ...] = ()


def told_rows(lines: Sequence[int], cells: Cells, where: str) -> str:
    """Say that rows were left out above or below a table."""
    shown = printable(next((cell for cell in cells if cell.strip()), ""), 40)
    if len(lines) == 1:
        return f"line {lines[0]}, {where} the table, was left out ('{shown}')"
    return f"lines {lines[0]} to {lines[-1]}, {where} the table, were left out ('{shown}', ...)"


def usual_width(rows: Sequence[Cells]) -> tuple[int, int]:
    """Return the length that most rows have (of equally many, the larger), and how many rows have it."""
    counts = Counter(len(row) for row in rows)
    return max(counts.items(), key=lambda item: (item[1], item[0]), default=(0, 0))


def filled(row: Cells) -> Cells:
    """Return a row without the empty cells at its end."""
    end = len(row)
    while end and not row[end - 1].strip():
        end -= 1
    return row[:end]


def count_titles(rows: Sequence[Cells]) -> int:
    """Count the rows above the table: text, and at most half as many cells as the table is wide.

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
        if sum(len(other) == width for other in below) < 2 or _are_groups(row, below[0]):
            return i
        if not end:
            continue
        starts_with_text = kind_of(next(cell for cell in end if cell.strip())) == "text"
        following = next(other for other in below if len(other) == width)
        named = {"text"} <= {kind_of(cell) for cell in following} <= {"text", "missing"}
        unsure = len(row) >= length or width < 3
        n_cells = sum(bool(cell.strip()) for cell in end) if named else len(end)
        if not starts_with_text or 2 * n_cells > width or (unsure and not named):
            return i
    return 0


def _are_groups(row: Cells, below: Cells) -> bool:
    """Return True for names above several columns each (merged cells), with the names of the columns right below."""
    cells = [cell.strip() for cell in row]
    at = [i for i, cell in enumerate(cells) if cell]
    names = [cell.strip() for cell in below]
    is_text = all(kind_of(cell) == "text" for cell in (*cells, *names) if cell)
    are_short = len(set(filter(None, names))) < len(list(filter(None, names))) or any(
        cell and not name for cell, name in zip(cells, names, strict=False)
    )
    return (
        len(at) > 1
        and 2 * at[-1] + 2 >= len(below)
        and is_text
        and are_short
        and len(names) - names.count("") > len(at)
    )


def name_columns(rows: Sequence[Cells], header: bool | None) -> Names:
    """Find the names in the first rows: merged names above others are joined with them, units below are taken apart.

    Examples
    --------
    >>> found = name_columns([["Sepal", "", "x"], ["l", "w", ""], ["cm", "cm", ""], ["1", "2", "3"]], None)
    >>> found.names, found.n_rows, found.units
    (['Sepal l', 'Sepal w', 'x'], 3, {'Sepal l': 'cm', 'Sepal w': 'cm'})
    """
    if header is False or (header is None and not looks_like_header(*rows[:2])):
        return Names(None)
    names, n_rows, units, notes = [cell.strip() for cell in rows[0]], 1, dict[str, str](), tuple[str, ...]()
    while n_rows < len(rows) - 1 and _says_more(rows[n_rows], rows[n_rows + 1 :]):
        row = [cell.strip() for cell in rows[n_rows]][: len(names)]
        joined = _joined(names, row)
        blanks = any(not name and cell for name, cell in zip(names, row, strict=False))
        if not units and (blanks or (len(set(names)) < len(names) and len(set(joined)) == len(joined))):
            names, n_rows = joined, n_rows + 1
            notes = (f"the names of the columns stand in {n_rows} rows and were joined ({quoted(names, 4)})",)
            continue
        if any(map(_NO_UNIT.fullmatch, row)):
            break
        n_rows += 1
        units = {name: cell.strip("()[]") for name, cell in zip(names, row, strict=False) if cell}
        notes = (*notes, f"the row below the names was taken for units ({quoted(list(units.values()), 4)})")
    return Names(names, n_rows, units, notes)


def _says_more(row: Cells, below: Sequence[Cells]) -> bool:
    """Return True for a row of text above columns of numbers."""
    kinds = [[kind_of(other[j], ".") for other in below if j < len(other)] for j in range(len(row))]
    columns = [j for j, kind in enumerate(kinds) if kind.count("number") >= max(1, kind.count("text"))]
    found = {kind_of(row[j], ".") for j in columns}
    return "text" in found and "number" not in found


def _joined(upper: list[str], lower: list[str]) -> list[str]:
    """Join two rows of names; a name stands for the columns to its right until the next one begins."""
    joined, group = [], ""
    for above, below in zip(upper, [*lower, *[""] * (len(upper) - len(lower))], strict=True):
        group = above or (group if below else "")
        joined.append(" ".join(filter(None, (group, below))))
    return joined


def looks_like_header(first: Cells, second: Cells | None = None) -> bool:
    """Return True if the first line names the columns.

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
    kinds = [kind_of(cell, ".") for cell in first]
    if all(kind == "number" for kind in kinds):
        return False
    if second is None:
        return "text" in kinds
    pairs = list(zip(kinds, (kind_of(cell, ".") for cell in second), strict=False))
    if ("text", "number") in pairs or not any(below == "number" for _, below in pairs):
        return "text" in kinds
    numbers = [cell for cell, kind in zip(first, kinds, strict=True) if kind == "number"]
    return len(numbers) > 1 and counts_up(numbers)


def counts_up(cells: Cells) -> bool:
    """Return True if cells are 0, 1, 2, and so on."""
    return list(cells) == [str(i) for i in range(len(cells))]


def is_total(cell: str, above: bool = False) -> bool:
    """Return True for the name of a sum, a mean or the like; of "min" or "sd" only `above` or below one of those."""
    word = cell.strip().rstrip(":").casefold()
    return word in _TOTALS or (above and word in _BESIDE_TOTALS)


def are_below(rows: Sequence[Cells], width: int) -> bool:
    """Return True for rows below a table: sums, means, notes; each begins with text, and notes are short."""
    ends = [[cell for cell in row if cell.strip()] for row in rows]
    return width > 1 and all(
        kind_of(cells[0]) == "text" and (2 * len(cells) <= width or is_total(cells[0], True)) for cells in ends if cells
    )
