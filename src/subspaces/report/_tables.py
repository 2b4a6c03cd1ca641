"""The tables of a report for a text: Markdown or LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path

from subspaces.io.writing import write_atomically
from subspaces.report import _facts as facts
from subspaces.report._content import Content

Table = tuple[str, list[tuple[str, ...]]]

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    **{character: "\\" + character for character in "&%$#_{}"},
}


def write_tables(path: str | PathLike[str], content: Content) -> None:
    """Write the tables to a ``.md`` or ``.tex`` file."""
    text = render_tables(content, latex=Path(path).suffix.lower() == ".tex")
    with write_atomically(path) as stream:
        stream.write(text.encode())


def render_tables(content: Content, *, latex: bool = False) -> str:
    """Parameters, quality, scores and clusters as Markdown or LaTeX (booktabs)."""
    tables: list[Table] = [
        ("Parameters", [("parameter", "value", "origin", "meaning"), *facts.parameters(content)]),
        ("Quality", [("measure", "value", "meaning"), *facts.quality(content)]),
    ]
    if content.y is not None:
        tables.append(("Scores against the known classes, in percent", facts.scores(content)))
    tables.append((f"Clusters of {content.title}", facts.clusters(content)))
    form: Callable[[str, Sequence[tuple[str, ...]]], str] = latex_table if latex else markdown_table
    return "\n".join(form(title, rows) for title, rows in tables)


def markdown_table(title: str, rows: Sequence[tuple[str, ...]]) -> str:
    """A table with its title as a heading; the first row holds the names of the columns."""
    header, *body = rows
    lines = [f"## {markdown(title)}", "", _row(header), _row([_rule(i, body) for i in range(len(header))], plain=True)]
    return "\n".join([*lines, *(_row(row) for row in body), ""])


def _row(cells: Sequence[str], plain: bool = False) -> str:
    return "| " + " | ".join(cell if plain else markdown(cell) for cell in cells) + " |"


def _rule(i: int, body: Sequence[tuple[str, ...]]) -> str:
    return "---:" if body and all(_is_number(row[i]) for row in body) else "---"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell == ""
    return True


def markdown(text: str) -> str:
    r"""Text that no Markdown program takes for anything else.

    Examples
    --------
    >>> markdown("a|b <i>")
    'a\\|b &lt;i&gt;'
    """
    joined = " ".join(text.split())
    escaped = joined.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join("\\" + c if c in "\\`*_[]|#" else c for c in escaped)


def latex_table(title: str, rows: Sequence[tuple[str, ...]]) -> str:
    """A table for booktabs; the first row holds the names of the columns."""
    header, *body = rows
    columns = "".join("r" if _rule(i, body) == "---:" else "l" for i in range(len(header)))
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex(title)}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(map(latex, header)) + r" \\",
        r"\midrule",
        *(" & ".join(map(latex, row)) + r" \\" for row in body),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
        "",
    ]
    return "\n".join(lines)


def latex(text: str) -> str:
    r"""Text that LaTeX prints and does not run.

    Examples
    --------
    >>> print(latex(r"\input{x} 5%"))
    \textbackslash{}input\{x\} 5\%
    """
    joined = " ".join(text.split())
    return "".join(_LATEX.get(c, c) for c in joined if c.isprintable())
