"""Write tables as text: Markdown, LaTeX without any package, pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_TEX = {
    **{character: "\\" + character for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "η": r"$\eta$",
    "λ": r"$\lambda$",
    "−": "$-$",
    "–": "--",
    "·": r"$\cdot$",
    "×": r"$\times$",
    "±": r"$\pm$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "²": r"$^2$",
    "³": r"$^3$",
    "ᵀ": r"$^T$",
    "‖": r"$\|$",
    "σ": r"$\sigma$",
    "≥": r"$\ge$",
    "≈": r"$\approx$",
}


def escape(text: str) -> str:
    """Escape text for LaTeX."""
    return "".join(_TEX.get(character, character) for character in text)


def tabular(columns: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a ``tabular`` of LaTeX from cells that are LaTeX already, in the style of the paper's tables."""
    lines = [" & ".join(cells) + r" \\" for cells in (header, *rows)]
    begin, rule = rf"\begin{{tabular}}{{{columns}}}", r"\hline"
    return "\n".join([begin, rule, lines[0], rule, rule, *lines[1:], rule, r"\end{tabular}"])


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown: the first column is text, the others are numbers; bars in cells are escaped."""
    rule = ["---"] + ["---:"] * (len(header) - 1)
    body = [[cell.replace("|", "\\|") for cell in row] for row in (header, *rows)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [body[0], rule, *body[1:]])


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return plain text: the first column to the left, the others to the right."""
    first, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
    return "\n".join("  ".join([row[0].ljust(first), *map(str.rjust, row[1:], widths)]).rstrip() for row in rows)


def pandas() -> Any:
    """Return the module pandas; raise an error with the remedy without it."""
    try:
        import pandas
    except ImportError:
        raise ImportError("to_pandas needs pandas, which is not installed: pip install pandas") from None
    return pandas
