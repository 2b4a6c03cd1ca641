"""What the package really imports, read from its files: for the tests of the architecture."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

PACKAGE = "subspaces"
RUNS = ("subspaces.engine.run", "subspaces.engine.landmark_run")
"""The modules that run a plan or a method with landmarks: who imports one is a user of the engine."""

Arrow = tuple[str, str]


def modules_of(source: Path) -> dict[str, Path]:
    """Every module of the package and its file; `source` is the folder that holds the package."""
    found = {}
    for path in sorted((source / PACKAGE).rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def part_of(module: str) -> str:
    """The package or module below ``subspaces`` that a module belongs to; "" for ``subspaces`` itself."""
    return f"{module}.".split(".")[1]


def names_imported(tree: ast.Module) -> Iterator[str]:
    """Full names that a module imports when it runs, wherever the import stands; not those for type checkers only."""
    typing = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if id(node) in typing:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@lru_cache
def imports_of(source: Path) -> frozenset[tuple[str, str]]:
    """Pairs of a module and a full name of this package that it imports."""
    return frozenset(
        (module, name)
        for module, path in modules_of(source).items()
        for name in names_imported(ast.parse(path.read_text(encoding="utf-8")))
        if name.split(".")[0] == PACKAGE
    )


def layers_of(pyproject: Path) -> list[list[str]]:
    """The rows of the layers contract, the highest first."""
    contracts = tomllib.loads(pyproject.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[part_of(name.strip()) for name in row.replace(":", "|").split("|")] for row in layers]


def arrows_of(source: Path) -> set[Arrow]:
    """Which part of the package imports which other."""
    pairs = {(part_of(module), part_of(name)) for module, name in imports_of(source)}
    parts = {part_of(module) for module in modules_of(source)} - {""}
    return {(a, b) for a, b in pairs if a != b and {a, b} <= parts}


def users_of_engine(source: Path) -> set[str]:
    """Parts of the package that run the engine."""
    found = {part_of(module) for module, name in imports_of(source) if name.rpartition(".")[0] in RUNS}
    return found - {part_of(RUNS[0])}
