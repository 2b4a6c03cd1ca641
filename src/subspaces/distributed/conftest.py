"""Doctests of this package are skipped where Dask is not installed."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("distributed") else ["*.py"]
