"""Pages: examples run, links resolve, every method has its section, measured tables are those of this code."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import os
import re
import runpy
from pathlib import Path
from urllib.parse import unquote

import pytest

import subspaces
from subspaces import datasets, deep, metrics, registry, selection
from subspaces.graphs.rules import GRAPHS
from subspaces.inspection import citations
from subspaces.spectral.partition import PARTITIONS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md"))]
METHOD_PAGES = [page for page in sorted((DOCS / "methods").glob("*.md")) if page.stem != "index"]
PARTS = ["Assumes", "Solves", "Computed here", "When to use it", "Cost", "Reference", "Example"]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
SLOW = {"straight_or_curved", "nothing_to_set", "reg_and_n_nonzero", "broken_features", "many_points", "which_cut"}
ALL_WANTED = os.environ.get("SUBSPACES_MANUAL") == "all"

on_every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


def module_of(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LISTED = module_of(DOCS / "_ext" / "listed.py")
MEASURED = module_of(ROOT / "benchmarks" / "measured.py")


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def examples(page: Path) -> doctest.DocTest:
    """All ``>>>`` examples of a page as one test; the fences become blank lines, which end the expected output."""
    text = re.sub(r"^[ \t]*```.*$", "", read(page), flags=re.M)
    return doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)


def anchors(page: Path) -> set[str]:
    """The names GitHub gives the headings of a page."""
    titles = re.findall(r"^#+ +(.*)$", without_blocks(read(page)), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def broken_links(page: Path) -> list[str]:
    """Targets of relative links, and pages of Sphinx's ``{doc}``, that do not exist as a file or as a heading in it."""
    broken, text = [], without_blocks(read(page))
    for target in re.findall(r"\]\(([^()\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        if re.match(r"[a-z]+:", target):  # another site: not ours to check in a test
            continue
        path, _, anchor = unquote(target).partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    for target in re.findall(r"\{doc\}`(?:[^`<]*<)?/?([^`>]+)>?`", text):
        if target.startswith("gallery/"):
            made = target == "gallery/index" or (ROOT / "examples" / f"{target.removeprefix('gallery/')}.py").exists()
        else:
            made = any((DOCS / f"{target}{suffix}").exists() for suffix in (".md", ".rst"))
        if not made:
            broken.append(target)
    return broken


@pytest.mark.filterwarnings("error::UserWarning")
@on_every_page
def test_examples_run(page):
    if "from subspaces.deep import" in read(page):
        pytest.importorskip("torch", reason="PyTorch is not installed: pip install subspaces[deep]")
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(examples(page), out=report.append)
    assert not report, "".join(report)


@on_every_page
def test_links_resolve(page):
    assert not broken_links(page)


def missing_names(text: str) -> list[str]:
    """Names below ``subspaces`` that a page writes out or imports, and that are not there."""
    named = set(re.findall(r"\bsubspaces(?:\.[A-Za-z]\w*)+", text))
    for module, names in re.findall(r"\bfrom (subspaces[\w.]*) import ([\w, ]+)", text):
        named |= {f"{module}.{name.split(' as ')[0].strip()}" for name in names.split(",")}
    return [name for name in sorted(named) if not exists(name)]


def exists(name: str) -> bool:
    """Whether the longest part of a name that is a module has the rest; True where it needs what is not installed."""
    parts, rest = name.split("."), []
    while parts:
        try:
            found = importlib.import_module(".".join(parts))
        except ImportError as error:
            if not str(error.name).startswith("subspaces"):
                return True
            rest.insert(0, parts.pop())
        else:
            try:
                return all((found := getattr(found, part, None)) is not None for part in rest)
            except ImportError:  # a name of the deep methods without PyTorch
                return True
    return False


@on_every_page
def test_names_exist(page):
    assert not missing_names(read(page))


def test_pages_are_few_and_listed():
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")}
    assert len(pages) <= 35, "merge two pages before you add one"
    listed = set(re.findall(r"^[\w/]+$", read(DOCS / "index.md"), flags=re.M))
    listed |= {f"methods/{name}" for name in re.findall(r"^\w+$", read(DOCS / "methods" / "index.md"), flags=re.M)}
    assert pages - {"index"} <= listed


def test_readme_has_two_commands_and_names_every_extra():
    text = read(ROOT / "README.md")
    marked = re.findall(r"^<!-- (demo|tests) -->\n```sh\n(.*)\n```$", text, flags=re.M)
    assert [name for name, _ in marked] == ["demo", "tests"]
    assert text.count("```sh") == 2, "a fresh machine needs two commands; others are said in a sentence"
    assert all(command.startswith("python3 -m venv .venv && .venv/bin/pip install") for _, command in marked)
    assert [re.search(r"\"(\..*)\"", command)[1] for _, command in marked] == [".[app]", ".[test]"]
    assert ".venv\\Scripts\\subspaces demo" in text, "Windows"
    assert len(text.splitlines()) <= 105
    extras = re.findall(
        r"^(\w+) = \[", read(ROOT / "pyproject.toml").partition("optional-dependencies]")[2], flags=re.M
    )
    offered = extras[: extras.index("everything") + 1]
    for page in (text, read(DOCS / "start.md")):
        assert not [extra for extra in offered if f"`{extra}`" not in page]
        assert set(re.findall(r"subspaces\[(\w+)\]", page)) <= set(extras)


# ---------------------------------------------------------------- measured numbers


def stale_tables(folder: Path = DOCS) -> list[str]:
    """Measured tables that are not those of their file, or whose code has changed."""
    faults = []
    for page in sorted(folder.rglob("*.md")):
        for found in MEASURED.MARK.finditer(read(page)):
            if not (MEASURED.FOLDER / f"{found[1]}.json").exists():
                faults.append(f"{page.name}: no benchmark has written docs/measured/{found[1]}.json")
                continue
            table = MEASURED.read(found[1])
            if found[2] != MEASURED.markdown(table):
                faults.append(f"{page.name}: {found[1]} is not as measured; run python benchmarks/measured.py")
            if MEASURED.SOURCE.is_dir() and (changed := MEASURED.overtaken(table)):
                faults.append(f"{page.name}: {', '.join(changed)} changed since; run again: {table['command']}")
    return faults


def test_measured_tables_are_of_this_code():
    assert not stale_tables()


def test_stale_tables_are_found(tmp_path, monkeypatch):
    source = tmp_path / "src"
    (source / "graphs").mkdir(parents=True)
    (source / "graphs" / "a.py").write_text('"""Text."""\nx = 1  # comment\n')
    monkeypatch.setattr(MEASURED, "SOURCE", source)
    monkeypatch.setattr(MEASURED, "FOLDER", tmp_path / "measured")
    MEASURED.save("speed", ["method", "s"], [["KTRR", 1.5]], folders=("graphs",))
    page = tmp_path / "page.md"
    page.write_text(MEASURED.filled("<!-- measured: speed -->\n<!-- end -->"))
    assert "| KTRR | 1.5 |" in read(page)
    (source / "graphs" / "a.py").write_text('"""Another text."""\nx = 1\n')
    assert stale_tables(tmp_path) == []
    (source / "graphs" / "a.py").write_text("x = 2\n")
    assert "graphs changed since" in stale_tables(tmp_path)[0]
    page.write_text(read(page).replace("1.5", "1.4") + "\n<!-- measured: gone -->\n<!-- end -->")
    assert len(stale_tables(tmp_path)) == 3


TYPED = re.compile(
    r"\d ?±|(?:accuracy|NMI|ARI|error) (?:is |was |of )?\d"
    r"|\d[\d.,]* times (?:as fast|faster|slower)|\d (?:seconds|minutes)"
)


def test_no_measured_number_is_typed():
    """Blocks of examples run and tables of benchmarks are compared; prose would go stale unseen."""
    prose = {page.name: without_blocks(MEASURED.MARK.sub("", read(page))) for page in PAGES}
    del prose["reproduction.md"]  # made from its records, to the byte
    assert not {name: found for name, text in prose.items() if (found := TYPED.findall(text))}


# ---------------------------------------------------------------- methods


def section_of(name: str) -> tuple[Path, str]:
    """The page of a method and its section there."""
    heading = f"## {registry.entry_of(name).class_name}"
    found = [(page, part) for page in METHOD_PAGES for part in re.split(r"^(?=## )", read(page), flags=re.M)]
    found = [(page, part) for page, part in found if part.startswith(f"{heading}\n")]
    assert len(found) == 1, f"{name} needs one section {heading!r} in docs/methods"
    return found[0]


@pytest.mark.parametrize("name", registry.names())
def test_every_method_has_its_section(name):
    _, text = section_of(name)
    parts = re.split(r"^\*\*([\w ]+)\.\*\*", text, flags=re.M)
    assert parts[1::2] == PARTS
    assert all(part.strip() for part in parts[2::2])
    assert ">>> " in parts[-1]
    assert text.count("$$\n") % 2 == 0
    said = plain(" ".join(parts[PARTS.index("Reference") * 2 + 2].split()))
    for entry in subspaces.cite(name).split("\n\n"):
        fields = dict(re.findall(r"(\w+) = \{(.*)\}", entry))
        assert plain(fields["title"]) in said
        assert plain(fields["author"].replace(" and ", ", ")) in said
        assert all(fields.get(part, "").replace("--", "-") in said for part in ("year", "volume", "pages"))


def plain(text: str) -> str:
    """Words of a reference, without accents and braces of LaTeX."""
    return re.sub(r'[{}\\"]', "", text).replace("ö", "o").lower()


def test_lists_of_methods_come_from_the_registry():
    table = [line for line in LISTED.table().splitlines() if line.startswith("| [")]
    shallow = registry.names(*registry.SHALLOW)
    for name, line in zip(shallow, table, strict=True):
        page, _ = section_of(name)
        cls = registry.entry_of(name).class_name
        assert line.startswith(f"| [{cls}]({page.name}#{cls.lower()}) |")
        assert len([cell for cell in re.split(r"(?<!\\)\|", line) if cell.strip()]) == 5
    assert LISTED.expanded(read(DOCS / "methods" / "index.md")).count("```bibtex") == len(citations.entries())


def test_graphs_page_explains_every_choice():
    rows = re.findall(r'^\| `"(\w+)"`', read(DOCS / "graphs.md"), flags=re.M)
    assert sorted(rows) == sorted([*GRAPHS, *PARTITIONS])


# ---------------------------------------------------------------- manual


def listed_names() -> set[str]:
    """Names in the autosummary tables of the reference, with the module they are listed under."""
    names = set()
    for page in (DOCS / "api").glob("*.rst"):
        module = ""
        for line in LISTED.expanded(read(page)).splitlines():
            if found := re.match(r"\.\. (?:automodule|currentmodule):: ([\w.]+)", line):
                module = found[1]
            elif module and (found := re.fullmatch(r"   (\w+)", line)):
                names.add(f"{module}.{found[1]}")
    return names


def test_reference_lists_every_public_name():
    plots = pytest.importorskip("subspaces.inspection.plots", reason="needs Matplotlib")
    scores = {name for name, value in vars(metrics).items() if getattr(value, "__module__", "") == metrics.__name__}
    public = {
        "subspaces": set(subspaces.__all__) - {"__version__"},
        "subspaces.datasets": set(datasets.__all__),
        "subspaces.deep": set(deep.__all__),
        "subspaces.selection": set(selection.__all__) - {"AUTO"},
        "subspaces.metrics": {name for name in scores if not name.startswith("_")},
        "subspaces.inspection.plots": set(plots.__all__) - {"show"},
    }
    wanted = {f"{module}.{name}" for module, names in public.items() for name in names}
    assert not wanted - listed_names(), "add these to docs/api"


def test_reference_lists_only_names_that_exist():
    gone = []
    for name in sorted(listed_names()):
        module, _, attribute = name.rpartition(".")
        if not module.startswith(("subspaces.deep", "subspaces.distributed", "subspaces.app.explorer")):
            try:
                getattr(importlib.import_module(module), attribute)
            except (ImportError, AttributeError) as error:
                gone.append(f"{name}: {error}")
    assert not gone


def test_reference_of_commands_is_made_from_them_and_pages_name_their_options():
    pytest.importorskip("typer")
    reference = module_of(DOCS / "_ext" / "commands.py").reference()
    assert "<!-- commands -->" in read(DOCS / "commands.md")
    assert "`--report" in reference.partition("## subspaces cluster\n")[2]
    known = {*re.findall(r"(?<![\w-])--?[a-z][a-z-]*", reference), "--help"}
    for page in PAGES:
        code = re.findall(r"^(?:\$ )?subspaces .*|`(?:subspaces |--)[^`\n]+`", read(page), flags=re.M)
        named = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", " ".join(code)))
        assert named <= known, f"{page.name} names options that no command has: {sorted(named - known)}"


def test_every_equation_that_is_named_is_printed_once():
    text = "\n".join(read(page) for page in DOCS.rglob("*.md"))
    printed = re.findall(r"^\$\$ \(([\d.]+)\)$", text, flags=re.M)
    assert set(re.findall(r"\{eq\}`([^`]+)`", text)) <= set(printed)
    assert len(printed) == len(set(printed))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_gallery_example_runs(path, monkeypatch, no_figure_is_left):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    if path.stem.split("_", 2)[2] in SLOW and not ALL_WANTED:
        pytest.skip("takes seconds; docs/build runs it, and so does SUBSPACES_MANUAL=all")
    monkeypatch.chdir(path.parent)
    runpy.run_path(str(path), run_name="__main__")
    assert pyplot.get_fignums(), "an example of the gallery shows something"
