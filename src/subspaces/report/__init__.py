"""One self-contained HTML page per run, and its tables for a text. Needs Matplotlib and Jinja2 (extra ``report``)."""

from __future__ import annotations

from subspaces.report._content import Content
from subspaces.report._page import render, write_report
from subspaces.report._tables import render_tables, write_tables

__all__ = ["Content", "render", "render_tables", "write_report", "write_tables"]
