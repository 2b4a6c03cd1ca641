"""One self-contained HTML page per run. Needs Matplotlib and Jinja2 (extra ``report``)."""

from __future__ import annotations

from subspaces.app.report._content import Content
from subspaces.app.report._page import render, write_report

__all__ = ["Content", "render", "write_report"]
