"""The page: everything put into one template that needs nothing from outside, and is allowed nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import datetime
from importlib.resources import files
from os import PathLike
from typing import Any

import numpy as np

from subspaces.io.writing import write_text
from subspaces.report import _tables as tables
from subspaces.report._content import Content
from subspaces.report._figures import pictures
from subspaces.report._members import gallery
from subspaces.report._tree import tree_section

MAX_BYTES = 5_900_000
"""Size of a page that any mail server and browser takes."""

TABLE_BYTES = 1_500_000
"""Most room for the table of points, in JSON; of more points the least sure are listed."""


def write_report(path: str | PathLike[str], content: Content) -> None:
    """Write the page; it is there whole or not at all."""
    write_text(path, render(content))


def render(content: Content) -> str:
    """The page as text.

    Whatever comes from files (names, columns, notes) is escaped by the template; the table's data travels as JSON in
    which ``<`` is escaped, and scripts put it on the page as text. The page's own policy forbids any request and any
    script or style but the two inside, which it knows by their hashes.
    """
    try:
        import jinja2
    except ImportError:
        raise ImportError("a report needs Jinja2: pip install 'subspaces[report]'.") from None
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    folder = files("subspaces.report") / "templates"
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    template = environment.from_string((folder / "report.html").read_text(encoding="utf-8"))
    now = datetime.now()
    fixed = {
        "content": content,
        "document": content.document,
        "style": style,
        "script": script,
        "policy": _policy(style, script),
        "figures": tables.key_figures(content),
        "parameters": tables.parameters(content),
        "quality": tables.quality(content),
        "scores": tables.scores(content),
        "versions": tables.versions(),
        "python": tables.python_lines(content),
        "pictures": pictures(content),
        "tree": tree_section(content),
        "made": f"{now.day} {now:%B %Y, %H:%M}",
    }
    for share in (1.0, 0.5, 0.25, 0.1):  # names that grow when they are escaped may need more room than foreseen
        points, n_listed = _points(content, share)
        page = template.render(**fixed, clusters=gallery(content, share), points=points, n_listed=n_listed)
        page = page.encode(errors="backslashreplace").decode()  # paths may hold bytes that are no text
        if len(page.encode()) < MAX_BYTES:
            break
    return page


def _policy(style: str, script: str) -> str:
    allowed = {"style-src": style, "script-src": script}
    hashes = {name: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for name, text in allowed.items()}
    rules = [f"{name} 'sha256-{value}'" for name, value in hashes.items()]
    return "; ".join(["default-src 'none'", "img-src data:", *rules, "base-uri 'none'", "form-action 'none'"])


def _points(content: Content, share: float) -> tuple[dict[str, Any], int]:
    """Columns of the table, and how many points are in it; `share` is the part of the usual room it may use."""
    summary, room = content.summary, share * TABLE_BYTES
    n = len(summary.labels)
    order = np.argsort(summary.confidence, kind="stable")
    sample = [content.name_of(int(i)) for i in order[:200]]
    each = len(json.dumps(sample)) / max(1, len(sample)) + 40  # names differ in length; the rest is numbers
    listed = np.sort(order[: max(1, int(room / each))]) if n * each > room else np.arange(n)
    columns: dict[str, Any] = {
        "name": [content.name_of(int(i)) for i in listed],
        "cluster": summary.labels[listed].tolist(),
        "confidence": _rounded(summary.confidence[listed]),
        "second": [None if label < 0 else label for label in summary.second_cluster[listed].tolist()],
        "margin": _rounded(summary.margin[listed]),
        "flag": summary.fits_nowhere[listed].astype(int).tolist(),
    }
    if content.y is not None:
        names = content.classes
        columns["truth"] = [str(code) if names is None else names[code] for code in content.y[listed].tolist()]
    return columns, len(listed)


def _rounded(values: Any) -> list[float]:
    return [round(float(value), 3) for value in values]
