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

from subspaces.app.report import _tables as tables
from subspaces.app.report._content import Content
from subspaces.app.report._doubtful import doubtful_section
from subspaces.app.report._figures import drawn, pictures
from subspaces.app.report._map import MapView, map_view, still_map
from subspaces.app.report._members import gallery
from subspaces.app.report._next import next_steps, python_steps
from subspaces.app.report._pictures import Pictures
from subspaces.app.report._tree import tree_section
from subspaces.engine.confidence import UNSURE
from subspaces.utils.atomic import write_text
from subspaces.utils.progress import phase
from subspaces.utils.types import Labels

MAX_BYTES = 5_900_000
"""Size of a page that any mail server and browser takes."""

TABLE_BYTES = 1_600_000
"""Most room for the table of points and their places on the map, in JSON."""

POINT_BYTES = 56
"""What a point takes of it beside its name."""

COLUMNS = ("cluster", "class", "confidence", "second_cluster", "margin", "fits_nowhere")
"""Columns of the table, named as in every file."""


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
        raise ImportError("a report needs Jinja2: pip install 'subspaces[app]'.") from None
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["two"] = tables.two_digits
    folder = files("subspaces.app.report") / "templates"
    style, *scripts = ((folder / name).read_text(encoding="utf-8") for name in ("report.css", "report.js", "map.js"))
    script = "\n".join(scripts)
    template = environment.from_string((folder / "report.html").read_text(encoding="utf-8"))
    now = datetime.now()
    images = Pictures(content) if content.image_shape is not None else None
    with phase("Placing the points on a map"):
        place = map_view(content)
    with phase("Drawing the plots"):
        drawings, plots = drawn(content.drawings), pictures(content)
    fixed = {
        "content": content,
        "document": content.document,
        "style": style,
        "script": script,
        "policy": _policy(style, script),
        "words": tables.plain_words(content),
        "figures": tables.key_figures(content),
        "columns": [content.named_by, *(name for name in COLUMNS if name != "class" or content.y is not None)],
        "map": place,
        "still": [] if place is None else drawn([still_map(content, place)]),
        "doubtful": doubtful_section(content, images),
        "steps": next_steps(content),
        "python_steps": python_steps(content),
        "drawings": drawings,
        "parameters": tables.parameters(content),
        "quality": tables.quality(content),
        "scores": tables.scores(content),
        "versions": tables.versions(),
        "python": tables.python_lines(content),
        "pictures": plots,
        "tree": tree_section(content),
        "made": f"{now.day} {now:%B %Y, %H:%M}",
    }
    for share in (1.0, 0.5, 0.25, 0.1):  # names that grow when they are escaped may need more room than foreseen
        with phase("Putting the page together"):
            points = _points(content, place, share)
            shown = gallery(content, images, share)
        page = template.render(**fixed, clusters=shown, points=points, n_listed=len(points["index"])).lstrip()
        page = page.encode(errors="backslashreplace").decode()  # paths may hold bytes that are no text
        if len(page.encode()) < MAX_BYTES:
            break
    return page


def _policy(style: str, script: str) -> str:
    allowed = {"style-src": style, "script-src": script}
    hashes = {name: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for name, text in allowed.items()}
    rules = [f"{name} 'sha256-{value}'" for name, value in hashes.items()]
    return "; ".join(["default-src 'none'", "img-src data:", *rules, "base-uri 'none'", "form-action 'none'"])


def _points(content: Content, place: MapView | None, share: float) -> dict[str, Any]:
    """Columns of the table and of the map; `share` is the part of the usual room they may use."""
    summary = content.summary
    listed = _listed(content, share * TABLE_BYTES)
    columns: dict[str, Any] = {
        "named_by": content.named_by,
        "unsure": UNSURE,
        "index": listed.tolist(),
        "id": [content.place_of(int(i)) for i in listed],
        "cluster": summary.labels[listed].tolist(),
        "confidence": _rounded(summary.confidence[listed]),
        "second_cluster": [None if label < 0 else label for label in summary.second_cluster[listed].tolist()],
        "margin": _rounded(summary.margin[listed]),
        "fits_nowhere": summary.fits_nowhere[listed].astype(int).tolist(),
    }
    if content.y is not None:
        names = content.classes
        columns["class"] = [str(code) if names is None else names[code] for code in content.y[listed].tolist()]
    if place is not None:
        columns |= {"x": place.points[listed, 0].tolist(), "y": place.points[listed, 1].tolist()}
    return columns


def _listed(content: Content, room: float) -> Labels:
    """Points for which there is room: all, else the least sure and an even part of the others."""
    n = len(content.summary.labels)
    order = np.argsort(content.summary.confidence, kind="stable")
    sample = [content.place_of(int(i)) for i in order[:200]]
    each = len(json.dumps(sample)) / max(1, len(sample)) + POINT_BYTES  # names differ in length; the rest is numbers
    most = max(2, int(room / each))
    if n <= most:
        return np.arange(n)
    rest = np.sort(order[most // 2 :])
    even = rest[np.unique(np.linspace(0, len(rest) - 1, most - most // 2).astype(int))]
    return np.sort(np.concatenate([order[: most // 2], even]))


def _rounded(values: Any) -> list[float]:
    return [round(float(value), 3) for value in values]
