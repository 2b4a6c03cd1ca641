"""The house is built as docs/architecture.md says: layers, private names, names of modules, sizes, depth of classes."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from subspaces import registry
from subspaces.estimators.base import SubspaceClusterer

ROOT = Path(__file__).resolve().parents[2]
DOCS, SOURCE = ROOT / "docs", ROOT / "src"
PAGE = DOCS / "architecture.md"
sys.path.insert(0, str(DOCS / "_ext"))

import imports  # noqa: E402

MODULES = imports.modules_of(SOURCE)
ALL_FILES = {**MODULES, **{f"reproduction.{path.stem}": path for path in (ROOT / "reproduction").glob("*.py")}}

MAX_FILE, MAX_FUNCTION = 420, 70
LONG_FUNCTIONS = {  # mostly docstrings and lists of options
    "subspaces.app.files.reading.read_table",
    "subspaces.app.description.describe",
    "subspaces.selection.search.choose",
}

MAX_DEPTH = {"graph": 3, "large": 3, "deep": 4}


def functions() -> dict[str, int]:
    """Lines of every function, from its first line to its last, docstring included."""
    found = {}
    for module, path in ALL_FILES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[f"{module}.{node.name}"] = (node.end_lineno or node.lineno) - node.lineno + 1
    return found


def private_imports() -> set[tuple[str, str]]:
    """Packages, and the modules or names with an underscore that they take from another one."""
    found = set()
    for module, name in imports.imports_of(SOURCE):
        parts = name.split(".")
        private = [k for k, part in enumerate(parts) if part.startswith("_") and not part.startswith("__")]
        if private and imports.part_of(module) != imports.part_of(name):
            found.add((imports.part_of(module) or "subspaces", ".".join(parts[: private[0] + 1])))
    return found


def test_no_private_name_crosses_packages():
    assert not private_imports(), "make these public where they are, or move them below both packages"


def test_every_part_has_its_layer():
    layers = imports.layers_of(ROOT / "pyproject.toml")
    named = [name for row in layers for name in row]
    parts = {imports.part_of(module) for module in MODULES} - {""}
    assert len(named) == len(set(named)), "a part stands in one layer"
    assert set(named) == parts, "[tool.importlinter] in pyproject.toml must name every package and module"


def test_imports_go_down():
    """What ``lint-imports`` checks as well, where it is installed; here without it."""
    row = {name: i for i, names in enumerate(imports.layers_of(ROOT / "pyproject.toml")) for name in names}
    assert not {(a, b) for a, b in imports.arrows_of(SOURCE) if row[a] > row[b]}


def test_files_and_functions_are_short():
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in ALL_FILES.items()}
    assert not {name: n for name, n in lines.items() if n > MAX_FILE}
    long = {name: n for name, n in functions().items() if n > MAX_FUNCTION}
    assert not {name: n for name, n in long.items() if name not in LONG_FUNCTIONS}
    assert not LONG_FUNCTIONS - set(long), "these became short: take them off the list"


def test_slow_tests_exist():
    listed = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8").partition("SLOW = (")[2].partition("\n)")[0]
    for entry in re.findall(r'"(.+)"', listed):
        place, _, name = entry.partition("::")
        files = [file for file in (ROOT / "tests").glob(f"{place.removesuffix('/')}*") if file.is_file() or not name]
        assert files, f"{entry} was renamed: it counts as quick now"
        assert not name or any(f"def {name}" in file.read_text(encoding="utf-8") for file in files), entry


def depth(cls: type) -> int:
    """Classes from one of ours up to the base of all estimators, both counted; mixins stand beside that line."""
    if cls is SubspaceClusterer:
        return 1
    return 1 + max((depth(base) for base in cls.__bases__ if issubclass(base, SubspaceClusterer)), default=-1)


@pytest.mark.parametrize("name", registry.names())
def test_classes_are_shallow(name):
    entry = registry.entry_of(name)
    if entry.needs:
        pytest.importorskip("torch", reason="PyTorch is not installed: pip install subspaces[deep]")
    cls = registry.load(name)
    line = [f"{base.__module__}.{base.__qualname__}" for base in cls.__mro__ if base.__module__.startswith("subspaces")]
    assert issubclass(cls, SubspaceClusterer), line
    allowed = MAX_DEPTH[entry.kind]
    assert depth(cls) <= allowed, f"{depth(cls)} classes deep, {allowed} allowed: {' < '.join(line)}"


# ---------------------------------------------------------------- the page


def named_files(text: str) -> set[str]:
    """Files and folders of the package that a page names in code, not as links; those are tested like all links."""
    return {
        name for name in re.findall(r"`([\w./]+)`", text) if name.endswith(("/", ".py", ".toml", ".md")) or "/" in name
    }


def test_every_file_that_the_page_names_exists():
    text = PAGE.read_text(encoding="utf-8")
    links = {target.partition("#")[0] for target in re.findall(r"\]\(([^()\s]+)\)", text) if ":" not in target}
    assert not [target for target in links if not (DOCS / target).exists()]
    places = (SOURCE / "subspaces", ROOT)
    assert not [name for name in named_files(text) if not any((place / name).exists() for place in places)]


def test_the_page_is_found():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        assert "](docs/architecture.md)" in page.read_text(encoding="utf-8")
    assert re.search(r"^architecture$", (DOCS / "index.md").read_text(encoding="utf-8"), flags=re.M)


def test_the_engine_has_these_users():
    assert imports.users_of_engine(SOURCE) == {"estimators", "selection", "distributed", "app"}


def test_the_checks_can_fail(tmp_path):
    package = tmp_path / "subspaces"
    (package / "a").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "a" / "__init__.py").write_text("from subspaces.b import _x\nimport subspaces.b\n")
    (package / "b.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from subspaces.a import y\n"
        "def f():\n    import subspaces.engine.run\n"
    )
    assert imports.imports_of(tmp_path) == {
        ("subspaces.a", "subspaces.b._x"),
        ("subspaces.a", "subspaces.b"),
        ("subspaces.b", "subspaces.engine.run"),
    }
    assert imports.arrows_of(tmp_path) == {("a", "b")}
