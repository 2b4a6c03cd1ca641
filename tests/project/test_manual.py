"""The manual holds what it promises: examples run, every public name has its entry, pages build without a warning."""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import subspaces
from subspaces import datasets, deep, metrics, selection
from subspaces.inspection import citations

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
SLOW = {"straight_or_curved", "nothing_to_set", "reg_and_n_nonzero", "broken_features", "many_points", "which_cut"}
ALL_WANTED = os.environ.get("SUBSPACES_MANUAL") == "all"
NEEDED = ("sphinx", "myst_parser", "pydata_sphinx_theme", "sphinx_gallery", "sphinx_design", "numpydoc", "latex2mathml")


def listed_names() -> set[str]:
    """Names in the autosummary tables of the reference, with the module they are listed under."""
    names = set()
    for page in (DOCS / "api").glob("*.rst"):
        module = ""
        for line in extension("listed").expanded(page.read_text(encoding="utf-8")).splitlines():
            if found := re.match(r"\.\. (?:automodule|currentmodule):: ([\w.]+)", line):
                module = found[1]
            elif found := re.fullmatch(r"   (\w+)", line):
                names.add(f"{module}.{found[1]}")
    return names


def extension(name: str):
    spec = importlib.util.spec_from_file_location(name, DOCS / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib", reason='examples draw: pip install "subspaces[app]"')
    if path.stem.split("_", 2)[2] in SLOW and not ALL_WANTED:
        pytest.skip("takes seconds; docs/build runs it, and so does SUBSPACES_MANUAL=all")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    monkeypatch.chdir(path.parent)
    try:
        runpy.run_path(str(path), run_name="__main__")
        assert pyplot.get_fignums(), "an example of the gallery shows something"
    finally:
        pyplot.close("all")


def test_gallery_has_enough_examples():
    assert len(EXAMPLES) >= 12
    assert {path.stem.split("_", 2)[2] for path in EXAMPLES} >= SLOW, "a slow example was renamed"


SCORES = {name for name, value in vars(metrics).items() if getattr(value, "__module__", "") == metrics.__name__}
PUBLIC = {
    "subspaces": set(subspaces.__all__) - {"__version__"},
    "subspaces.datasets": set(datasets.__all__) - {"BENCHMARKS"},
    "subspaces.deep": set(deep.__all__),
    "subspaces.selection": set(selection.__all__) - {"AUTO"},
    "subspaces.metrics": {name for name in SCORES if not name.startswith("_")},
}


@pytest.mark.parametrize(("module", "names"), PUBLIC.items(), ids=PUBLIC)
def test_reference_lists_every_public_name(module, names):
    missing = {f"{module}.{name}" for name in names} - listed_names()
    assert not missing, f"add to docs/api: {sorted(missing)}"


def test_reference_lists_every_display():
    plots = pytest.importorskip("subspaces.inspection.plots", reason="needs Matplotlib")
    missing = {f"subspaces.inspection.plots.{name}" for name in plots.__all__ if name != "show"} - listed_names()
    assert not missing, f"add to docs/api/seeing.rst: {sorted(missing)}"


def test_every_equation_that_is_named_is_printed():
    text = "\n".join(page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md"))
    printed = re.findall(r"^\$\$ \(([\d.]+)\)$", text, flags=re.M)
    assert set(re.findall(r"\{eq\}`([^`]+)`", text)) <= set(printed)
    assert len(printed) == len(set(printed)), "two equations with one number"


def test_pages_are_checked(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#here">x</a><a href="c.html">y</a><a href="https://a.org">z</a>')
    (tmp_path / "b.html").write_text('<p id="there"></p><script src="https://cdn.org/x.js"></script>')
    faults, elsewhere = extension("check_pages").check(tmp_path)
    assert faults == [
        "a.html links to b.html#here, a place that does not exist",
        "a.html links to c.html, which does not exist",
        "b.html loads https://cdn.org/x.js",
    ]
    assert elsewhere == {"https://a.org", "https://cdn.org/x.js"}


def test_reference_of_commands_has_every_option():
    from typer.main import get_command

    from subspaces.app.cli.main import app

    text = extension("commands").reference()
    assert extension("commands").MARK in (DOCS / "commands.md").read_text(encoding="utf-8")
    for name, command in get_command(app).commands.items():
        section = text.partition(f"## subspaces {name}\n")[2].partition("\n## ")[0]
        typed = [option for param in command.params if not getattr(param, "hidden", False) for option in param.opts]
        missing = [option for option in typed if option.startswith("-") and f"`{option}" not in section]
        assert not [option for option in missing if option not in ("-h", "--help")], name


def test_bibtex_of_every_method_is_on_its_page():
    page = extension("listed").expanded((DOCS / "cite.md").read_text(encoding="utf-8"))
    assert page.count("```bibtex") == len(citations.entries())


def test_short_table_is_made_from_all_numbers():
    measured = extension("measured")
    text = (DOCS / "methods_measured.md").read_text(encoding="utf-8")
    lines = measured.short_table(text, {"ktrr": "KTRR"}).splitlines()
    assert measured.MARK in (DOCS / "which_method.md").read_text(encoding="utf-8")
    assert lines[0].count("|") == 7
    assert len(lines) == 2 + len(measured.rows_of(text)) > 12
    best, default, _ = measured.rows_of(text)["ktrr"]["coil20"]
    row = next(line for line in lines if line.startswith("| [KTRR](methods/ktrr.md) |"))
    assert re.search(rf"\*?{best}\*?\*?.\/.\*?\*?{default}", row)


def test_manual_builds():
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f'the manual is not built here, {missing[0]} is missing: pip install "subspaces[docs]"')
    if not ALL_WANTED:
        pytest.skip("building takes minutes: run docs/build, or set SUBSPACES_MANUAL=all")
    environment = {**os.environ, "PYTHON": sys.executable}
    run = subprocess.run(["bash", str(DOCS / "build")], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-4000:]
