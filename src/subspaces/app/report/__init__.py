"""One self-contained HTML page per run, and its tables for a text. Needs Matplotlib and Jinja2 (extra ``report``)."""

from __future__ import annotations

from subspaces.app.report._content import Content
from subspaces.app.report._page import render, write_report
from subspaces.app.report._tables import render_tables, write_tables

__all__ = ["Content", "render", "render_tables", "write_report", "write_tables"]
