"""Reach up into the application on demand, so that the library imports none of it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def from_app(module: str, name: str) -> Any:
    """Import `name` from ``subspaces.app.module``: readers of people's files, features of photographs.

    Only what a caller asked for by a path or a name comes this way; everything else is handed down as an argument.
    """
    return getattr(import_module(f"subspaces.app.{module}"), name)
