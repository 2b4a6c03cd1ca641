"""Cells of tables as people write them: numbers with any decimal sign, gaps, dates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

MISSING = frozenset(
    {"", "na", "n/a", "n.a.", "nan", "<na>", "null", "none", "missing", "?", "-", "--", "–", "—", "."}
    | {"nd", "n/d", "n.d.", "k.a.", "k. a.", "n.b."}  # "not determined", as laboratories write
    | {"#n/a", "#div/0!", "#value!", "#ref!", "#num!", "#name?", "#null!"}  # errors of spreadsheets
)
"""Cells that stand for a missing value (compared in lower case)."""

TRUTHS = {"true": 1.0, "false": 0.0, "wahr": 1.0, "falsch": 0.0}
"""Cells of columns that spreadsheets write for yes and no."""

Kind = Literal["number", "missing", "text"]

_LIMIT = re.compile(r"(?i)[<>≤≥]\s*(l\.?o\.?[dq]\.?|m?dl|\d+([.,]\d+)?)|b(lo)?[dq]l")
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}(?:\1\d{3})*(?:(?!\1)[.,]\d+)?")
_CURRENCY = re.compile(r"(EUR|USD|CHF|GBP|[€$£¥])\s*(?=[\d.,+-])|(?<=[\d.,])\s*(EUR|USD|CHF|GBP|[€$£¥])$")
_APART = re.compile(r"[+-]?[1-9]\d{0,2}(['’\xa0\u2009\u202f ])\d{3}(?:\1\d{3})*([.,]\d+)?")
_WITH_UNIT = re.compile(r"[+-]?\d[\d.,]*\s*([^\W\d_]\S*|[%°]\S+)")
_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?\s?([AaPp][Mm]|Z|[+-]\d{2}:?\d{2})?"
_DAY = r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{2}|\d{4})"
_MONTH = r"\d{1,2}[ .-]+[^\W\d_]{3,9}[ .,-]+(\d{2}|\d{4})|[^\W\d_]{3,9}\.? \d{1,2},? \d{4}"
_DATE = re.compile(rf"({_DAY}|{_MONTH})([T ,]+{_TIME})?|{_TIME}")


def kind_of(cell: str, decimal: str = "") -> Kind:
    """Classify a cell, given the decimal sign of its file; what could not be measured (``<LOD``) is missing."""
    if cell.strip().lower() in MISSING or is_limit(cell):
        return "missing"
    try:
        number_of(cell, decimal)
    except ValueError:
        return "text"
    return "number"


def is_limit(cell: str) -> bool:
    """Return True if a cell says that a value was too small or too large to be measured."""
    return _LIMIT.fullmatch(cell.strip()) is not None


def is_date(cell: str) -> bool:
    """Return True for a date or a time of day."""
    return _DATE.fullmatch(cell) is not None


def is_unsure(cell: str, decimal: str) -> bool:
    """Return True if only a decimal sign would tell which number is meant."""
    return kind_of(cell, decimal) == "text" and kind_of(cell, ".") == "number"


def have_units(cells: Iterable[str]) -> bool:
    """Return True for cells that are mostly a number and one unit: measurements that nobody can compute with."""
    known = [cell.strip() for cell in cells if cell.strip().lower() not in MISSING]
    units = [found[1] for cell in known if (found := _WITH_UNIT.fullmatch(cell))]
    return len(units) > 1 and 2 * len(units) > len(known) and len(set(units)) == 1


def number_of(cell: str, decimal: str = "") -> float:
    """Return the number in a cell: per cent as a fraction (which is what a workbook stores), thousands joined.

    Only where a number is grouped like ``1,234`` the decimal sign of the file is asked for; if that is "" (not known)
    a comma raises ValueError, and if it is "?" (both signs occur) a point does, too.

    Examples
    --------
    >>> number_of("75%"), number_of("-1,5"), number_of("1.234,5 €"), number_of("1'234.5"), number_of("1,234", ".")
    (0.75, -1.5, 1234.5, 1234.5, 1234.0)
    """
    plain = cell.strip()
    percent = plain.endswith("%")
    plain = _bare(plain)
    if found := _GROUPED.fullmatch(plain):
        mark = found[1]
        rest = plain.replace(mark, "", 1)
        if rest.lstrip("+-").isdigit() and decimal in ("", "?", mark):  # one group
            if decimal != mark and (decimal or mark == ","):
                raise ValueError(f"{cell} is grouped by {mark}")
        else:
            plain = plain.replace(mark, "")
    if "_" in plain:  # Python reads 2019_04 as 201904; in a file that is text
        raise ValueError(cell)
    value = float(plain.replace(",", "."))
    return value / 100 if percent else value


def _bare(cell: str) -> str:
    """Return a number without per cent sign, currency and gaps between thousands."""
    plain = _CURRENCY.sub("", cell.removesuffix("%").rstrip().replace("−", "-"))
    return plain.replace(found[1], "") if (found := _APART.fullmatch(plain)) else plain


def find_decimal(rows: Iterable[Sequence[str]]) -> str:
    """Return the decimal sign that cells show: "," or ".", "" if none does, "?" if it could be either.

    ``1,234`` alone decides nothing: it is one and a bit in Berlin and a thousand and more in Boston.

    Examples
    --------
    >>> find_decimal([["1,5", "2"]]), find_decimal([["1,5", "2.5"]]), find_decimal([["1,234", "x"]])
    (',', '?', '')
    """
    signs, points, grouped = set(), False, False
    for cell in {cell.strip() for row in rows for cell in row if "," in cell or "." in cell}:
        plain = _bare(cell)
        found = _GROUPED.fullmatch(plain)
        if found is None:
            if kind_of(cell) == "number":
                signs.add("," if "," in plain else ".")
        elif plain.replace(found[1], "", 1).lstrip("+-").isdigit():
            points |= found[1] == "."
        else:
            signs.add("." if found[1] == "," else ",")
            grouped |= found[1] == "."
    if signs == {","} and points and not grouped:
        return "?"
    return signs.pop() if len(signs) == 1 else "?" if signs else ""
