"""Doctests of the optional packages are collected only where what they need is installed."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore = [
    folder
    for folder, needed in (
        ("src/subspaces/deep", "torch"),
        ("src/subspaces/distributed", "distributed"),
        ("src/subspaces/app/explorer", "panel"),
    )
    if find_spec(needed) is None
]

collect_ignore_glob = ["tests/*conftest.py"]  # fixtures, not modules with examples; several of one name would collide
