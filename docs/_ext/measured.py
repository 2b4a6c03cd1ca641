"""The short table of "Which method when", made from ``methods_measured.md`` whenever the manual is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

MARK = "<!-- the measured table -->"
DATA = {"yaleb": "Yale B", "coil20": "COIL20", "usps": "USPS", "mnist": "MNIST"}


def rows_of(text: str) -> dict[str, dict[str, tuple[float, float | None, str]]]:
    """Best accuracy, accuracy with defaults and seconds, by method and data set."""
    found: dict[str, dict[str, tuple[float, float | None, str]]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) >= 7 and cells[0] in DATA:
            data, method, best, default, seconds = cells[0], cells[1], cells[2], cells[5], cells[6]
            scores = [float(cell.split("/")[0]) if cell else None for cell in (best, default)]
            found.setdefault(method, {})[data] = (scores[0] or 0.0, scores[1], seconds)
    return found


def short_table(text: str, classes: dict[str, str]) -> str:
    """One line for each method, best / default for each data set; the best of a column is bold."""
    rows = rows_of(text)
    tops = {
        data: [max((row[data][i] or 0.0 for row in rows.values() if data in row), default=0.0) for i in (0, 1)]
        for data in DATA
    }
    lines = ["| best / default | " + " | ".join(DATA.values()) + " | s |", "|---" * (len(DATA) + 2) + "|"]
    for method, row in rows.items():
        name = f"[{classes[method]}](methods/{method}.md)" if method in classes else method
        cells = []
        for data in DATA:
            scores = row[data][:2] if data in row else (None, None)
            shown = [
                "" if s is None else f"**{s}**" if s == top else str(s)
                for s, top in zip(scores, tops[data], strict=True)
            ]
            cells.append("\u00a0/\u00a0".join(shown))
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {row['yaleb'][2] if 'yaleb' in row else ''} |")
    return "\n".join(lines)


def insert_table(app: Any, docname: str, source: list[str]) -> None:
    """Put the table where the page marks it."""
    if MARK in source[0]:
        from subspaces import registry

        page = Path(app.srcdir) / "methods_measured.md"
        app.env.note_dependency(str(page))
        classes = {entry.name: entry.class_name for entry in registry.METHODS}
        source[0] = source[0].replace(MARK, short_table(page.read_text(encoding="utf-8"), classes))


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", insert_table)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
