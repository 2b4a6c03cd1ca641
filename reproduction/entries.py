"""A cell: the smallest piece of work that is kept. Exact inputs make its name, so it is computed once.

A cell is a plain mapping (data, method, parameters, cuts, versions); its result is kept as one JSON file whose name
ends in a hash of those inputs. Files appear whole or not at all and carry a checksum, so a killed run loses only the
cells in flight, and two runs may share a folder.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from subspaces.io.writing import write_text

CODE = 1
"""Raised whenever a change of the code changes results: cells of older code are then not found any more."""

LARGE = ("C", "W", "X", "y", "labels", "image")
"""Parts of results that are for pictures: made again in seconds, and partly the data itself."""

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


def read_runs(path: Path, *, whole: bool = True) -> dict[str, Result]:
    """Results kept beside a table by the digests of their cells; lines that cannot be trusted are left out.

    So are, if `whole`, those that lack what their picture needs.
    """
    found: dict[str, Result] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return found
    for line in lines:
        try:
            document = json.loads(line)
            wanted = not (whole and document.get("drawn"))
            if wanted and document["checksum"] == digest(document["result"])[:16]:
                found[str(document["cell"])] = dict(document["result"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return found


def write_runs(path: Path, cells: Iterable[Cell], results: Mapping[str, Result]) -> None:
    """Keep the results of an experiment in one file, a line for each cell: what its table is made from."""
    lines = []
    for key in dict.fromkeys(digest(cell) for cell in cells):
        found = {name: value for name, value in results.get(key, {}).items() if value not in ([], None)}
        result = {name: value for name, value in found.items() if name not in LARGE}
        if result:
            drawn = {"drawn": True} if len(result) < len(found) else {}
            lines.append(canonical({"cell": key, "result": result, "checksum": digest(result)[:16], **drawn}))
    if lines:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, "\n".join(lines) + "\n")
