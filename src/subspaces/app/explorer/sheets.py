"""How the page looks: its style sheets, and what all widgets share."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

STYLE, WIDGETS, PAGE = (
    (files("subspaces.app.explorer") / f"{name}.css").read_text(encoding="utf-8")
    for name in ("explorer", "widgets", "page")
)


def wide() -> dict[str, Any]:
    """Of a widget that fills its column."""
    return {"sizing_mode": "stretch_width", "margin": (3, 8), "stylesheets": [WIDGETS]}
