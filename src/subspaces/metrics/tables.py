"""Write tables as plain text, Markdown and LaTeX (booktabs); the one place where cells are escaped."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias


class Cell(NamedTuple):
    """A cell with emphasis: `text` in bold or italics, then `mark` (a dagger, say) in plain type."""

    text: str
    bold: bool = False
    italic: bool = False
    mark: str = ""


Row: TypeAlias = Sequence[str | Cell]

_NUMBER = re.compile(r"[-+−]?\d[^A-Za-z]*|–|")
"""Cells of columns that are aligned to the right: numbers, also "90.1 ± 0.5" and "3/4", gaps and empty cells."""

_LATEX = {
    **{character: "\\" + character for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    **{"–": "--", "η": r"$\eta$", "λ": r"$\lambda$", "σ": r"$\sigma$", "Δ": r"$\Delta$", "χ": r"$\chi$"},
    **{"−": "$-$", "·": r"$\cdot$", "×": r"$\times$", "±": r"$\pm$", "≥": r"$\ge$", "≤": r"$\le$", "≈": r"$\approx$"},
    **{"†": r"$\dagger$", "‡": r"$\ddagger$", "‖": r"$\|$", "²": "$^2$", "³": "$^3$", "ᵀ": "$^T$"},
}


def escape_latex(text: str) -> str:
    r"""Return the text that LaTeX prints and does not run.

    Examples
    --------
    >>> print(escape_latex(r"\input{x} 5%"))
    \textbackslash{}input\{x\} 5\%
    """
    return "".join(_LATEX.get(c, c) for c in re.sub(r"\s+", " ", text) if c.isprintable())


def escape_markdown(text: str) -> str:
    r"""Return the text that no Markdown program takes for markup; underscores inside words are none.

    Examples
    --------
    >>> print(escape_markdown("a|b_c _d_ <i> *"))
    a\|b_c \_d\_ &lt;i> \*
    """
    joined = re.sub(r"\s+", " ", text).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*\[\]|]|(?<![^\W_])_|_(?![^\W_]))", r"\\\1", joined)


@dataclass(frozen=True)
class Table:
    """A header and rows of cells, with a caption and notes below; numbers stand to the right, words to the left.

    Examples
    --------
    >>> rows = [["KTRR", Cell("91.5", bold=True, mark="†"), "digits"], ["k-means", "7.5", "digits"]]
    >>> print(Table(["", "AC", "data"], rows))
                 AC  data
    KTRR     91.5*†  digits
    k-means     7.5  digits
    >>> print(Table(["", "AC", "data"], rows).to_markdown())
    |  | AC | data |
    | --- | ---: | --- |
    | KTRR | **91.5**† | digits |
    | k-means | 7.5 | digits |
    """

    header: Row
    rows: Sequence[Row]
    caption: str = ""
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        """Return the table as plain text; a star follows what is bold elsewhere."""
        lines = [[cell.text + "*" * cell.bold + cell.mark for cell in row] for row in self._cells()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rights = self._right()
        table = [
            "  ".join(
                text.rjust(n) if right else text.ljust(n) for text, n, right in zip(line, widths, rights, strict=True)
            )
            for line in lines
        ]
        return "\n".join([*[self.caption] * bool(self.caption), *(line.rstrip() for line in table), *self.notes])

    def to_markdown(self) -> str:
        """Return the table as Markdown: the caption in bold before it, the notes after it."""
        header, *rows = self._written(escape_markdown, "**{}**", "*{}*")
        rule = ["---:" if right else "---" for right in self._right()]
        lines = ["| " + " | ".join(row) + " |" for row in (header, rule, *rows)]
        caption = [f"**{escape_markdown(self.caption)}**", ""] if self.caption else []
        notes = ["", *(f"{escape_markdown(note)}  " for note in self.notes)] if self.notes else []
        return "\n".join([*caption, *lines, *notes]).rstrip()

    def to_latex(self) -> str:
        """Return the table as LaTeX with the package booktabs: in a ``table`` if it has a caption."""
        header, *rows = (
            " & ".join(row) + r" \\" for row in self._written(escape_latex, r"\textbf{{{}}}", r"\textit{{{}}}")
        )
        columns = "".join("r" if right else "l" for right in self._right())
        begin = rf"\begin{{tabular}}{{{columns}}}"
        lines = [begin, r"\toprule", header, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
        if self.caption or self.notes:
            caption = escape_latex(" ".join([f"{self.caption}.", *self.notes]))
            lines = [r"\begin{table}[htbp]", r"\centering", rf"\caption{{{caption}}}", *lines, r"\end{table}"]
        return "\n".join(lines)

    def _cells(self) -> list[list[Cell]]:
        rows = (self.header, *self.rows)
        return [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]

    def _right(self) -> list[bool]:
        """Find the columns of numbers; the first column names the rows."""
        columns = zip(*self._cells()[1:], strict=True)
        right = [all(_NUMBER.fullmatch(cell.text) for cell in column) for column in columns]
        return [False, *right[1:]] if right else [False] * len(self.header)

    def _written(self, escape: Callable[[str], str], bold: str, italic: str) -> list[list[str]]:
        def write(cell: Cell) -> str:
            text = escape(cell.text)
            text = bold.format(text) if cell.bold else text
            return (italic.format(text) if cell.italic else text) + escape(cell.mark)

        return [[write(cell) for cell in row] for row in self._cells()]


def import_pandas() -> Any:
    """Return the module pandas, or say how to get it."""
    try:
        import pandas
    except ImportError:
        raise ImportError("to_pandas needs pandas, which is not installed: pip install pandas") from None
    return pandas
