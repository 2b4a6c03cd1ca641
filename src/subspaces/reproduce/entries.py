"""A cell: the smallest piece of work that is kept. Exact inputs make its name, so it is computed once.

A cell is a plain mapping (data, method, parameters, cuts, versions); its result is kept as one JSON file whose name
ends in a hash of those inputs. Files appear whole or not at all and carry a checksum, so a killed run loses only the
cells in flight, and two runs may share a folder.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from subspaces.io.writing import write_text

CODE = 1
"""Raised whenever a change of the code changes results: cells of older code are then not found any more."""

Cell = dict[str, Any]
Result = dict[str, Any]


def canonical(value: Any) -> str:
    """The one JSON text of a value, whatever the order of its keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """SHA-256 of the canonical text."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def cell_path(cache: Path, cell: Mapping[str, Any]) -> Path:
    """Where the result of a cell is kept: a part for people to read, then the hash of all inputs."""
    data = cell["points"]
    words = [data["name"], *(str(data[name]) for name in ("first", "draw", "corruption", "level") if name in data)]
    words += [cell["method"], *(f"{name}-{value}" for name, value in sorted(cell["parameters"].items()))]
    readable = re.sub(r"[^a-z0-9.]+", "-", "-".join(words).lower())[:70].strip("-")
    return cache / f"{readable}-{digest(cell)[:16]}.json"


def read_result(cache: Path, cell: Mapping[str, Any]) -> Result | None:
    """The kept result, or None where there is none that can be trusted."""
    try:
        document = json.loads(cell_path(cache, cell).read_bytes())
        if document["cell"] == cell and document["checksum"] == digest(document["result"]):
            result: Result = document["result"]
            return result
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass  # missing, cut short or not ours: computed again
    return None


def write_result(cache: Path, cell: Mapping[str, Any], result: Result) -> None:
    """Keep a result."""
    cache.mkdir(parents=True, exist_ok=True)
    document = {"cell": dict(cell), "result": result, "checksum": digest(result)}
    write_text(cell_path(cache, cell), json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))
