"""The package is built as docs/architecture.md says: layers, private names, sizes."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
MAX_FILE, MAX_FUNCTION = 620, 70
LONG_FUNCTIONS = {  # mostly docstrings and lists of options
    "subspaces.app.files.reading.read_table",
    "subspaces.app.description.describe",
    "subspaces.selection.search.choose",
}

pytestmark = pytest.mark.skipif(not SOURCE.is_dir(), reason="no source beside the tests")


def modules() -> dict[str, ast.Module]:
    """Every module of the package and of the reproduction, parsed."""
    found = {}
    for path in [*(SOURCE / "subspaces").rglob("*.py"), *(ROOT / "reproduction").rglob("*.py")]:
        parts = path.relative_to(SOURCE if path.is_relative_to(SOURCE) else ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text(encoding="utf-8"))
    return found


MODULES = modules()


def imported(tree: ast.Module) -> Iterator[str]:
    """Full names of this package that a module imports when it runs; not those for type checkers only."""
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
    for_types = {id(inner) for block in blocks for statement in block.body for inner in ast.walk(statement)}
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("subspaces"))
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("subspaces"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def part_of(module: str) -> str:
    """The package or module below ``subspaces`` that a module belongs to; "" for ``subspaces`` itself."""
    return f"{module}.".split(".")[1]


def test_imports_go_down():
    """Check what ``lint-imports`` checks, where it is not installed."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    row = {part_of(name): i for i, names in enumerate(layers) for name in re.findall(r"[\w.]+", names)}
    ours = {name: tree for name, tree in MODULES.items() if name.startswith("subspaces.")}
    assert set(row) == {part_of(name) for name in ours}, "every package and module has its layer"
    arrows = {(part_of(name), part_of(target)) for name, tree in ours.items() for target in imported(tree)}
    assert not {(a, b) for a, b in arrows if b in row and row[a] > row[b]}


def test_no_private_name_crosses_packages():
    found = set()
    for module, tree in MODULES.items():
        for name in imported(tree):
            private = [part for part in name.split(".") if part.startswith("_") and not part.startswith("__")]
            if private and (part_of(module) != part_of(name) or not module.startswith("subspaces")):
                found.add((module, name))
    assert not found, "make these public where they are, or move them below both packages"


def test_files_and_functions_are_short():
    files = {
        name: max((getattr(node, "end_lineno", 0) for node in tree.body), default=0) for name, tree in MODULES.items()
    }
    assert not {name: n for name, n in files.items() if n > MAX_FILE}
    long = {
        f"{module}.{node.name}": node.end_lineno - node.lineno + 1
        for module, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno - node.lineno >= MAX_FUNCTION
    }
    assert not {name: n for name, n in long.items() if name not in LONG_FUNCTIONS}


def test_every_file_that_the_page_names_exists():
    page = ROOT / "docs" / "architecture.md"
    text = page.read_text(encoding="utf-8")
    named = {name for name in re.findall(r"`([\w./]+)`", text) if "/" in name or name.endswith((".py", ".toml", ".md"))}
    assert not [name for name in named if not any((at / name).exists() for at in (SOURCE / "subspaces", ROOT))]
    parts = {part_of(name) for name in MODULES if name.startswith("subspaces.")} - {"registry"}
    diagram = re.search(r"```text\n(.*?)```", text, flags=re.S)[1]
    assert not [part for part in parts if part not in diagram], "the picture shows every package"
