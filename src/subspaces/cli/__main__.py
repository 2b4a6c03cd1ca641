"""``python -m subspaces.cli`` is the same as ``subspaces``."""

from __future__ import annotations

from subspaces.cli.main import app

app(prog_name="subspaces")
