"""The documentation holds what it promises: each method has its page, examples run, links lead somewhere."""

from __future__ import annotations

import doctest
import importlib.util
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from subspaces import registry
from subspaces.graphs.rules import GRAPHS
from subspaces.spectral.partition import PARTITIONS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
SECTIONS = [
    "Assumes",
    "Solves",
    "How it is computed here",
    "When it wins, when it does not",
    "Cost",
    "Reference",
    "Example",
]
MAX_LINES = 80  # a page is read in a minute or not at all
NO_TORCH = "PyTorch is not installed: pip install subspaces[deep]"

on_every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


def listed():
    """The extension of the manual that makes lists of methods from the registry."""
    spec = importlib.util.spec_from_file_location("listed", DOCS / "_ext" / "listed.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def without_code(text: str) -> str:
    """The prose of a page: blocks and inline code may contain brackets and hashes that mean something else."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def sections(text: str) -> dict[str, str]:
    """Text under each second-level heading, in the order of the page."""
    _, *parts = re.split(r"^## ", text, flags=re.M)
    return {title.strip(): body.strip() for title, _, body in (part.partition("\n") for part in parts)}


def examples(page: Path) -> doctest.DocTest:
    """All ``>>>`` examples of a page as one test; the fences become blank lines, which end the expected output."""
    text = re.sub(r"^[ \t]*```.*$", "", read(page), flags=re.M)
    return doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)


def anchors(page: Path) -> set[str]:
    """The names GitHub gives the headings of a page."""
    titles = re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", read(page), flags=re.M | re.S), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def broken_links(page: Path) -> list[str]:
    """Targets of the page's relative links that do not exist, as a file or as a heading in it."""
    broken = []
    for target in re.findall(r"\]\(([^()\s]+)\)", without_code(read(page))):
        if re.match(r"[a-z]+:", target):  # another site: not ours to check in a test
            continue
        path, _, anchor = unquote(target).partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    return broken


@pytest.mark.parametrize("name", registry.names())
def test_every_method_has_its_page(name):
    page = DOCS / "methods" / f"{name}.md"
    assert page.exists(), f"{name} is a method and needs {page.relative_to(ROOT)}"
    if registry.entry_of(name).needs:
        pytest.importorskip("torch", reason=NO_TORCH)
    text, cls = read(page), registry.load(name)
    found = sections(text)
    assert text.startswith(f"# {cls.__name__}: ")
    assert list(found) == SECTIONS
    assert all(found.values()), [title for title, body in found.items() if not body]
    assert ">>> " in found["Example"]
    assert cls.reference.partition(",")[0] in found["Reference"], "the first author is not the one of the class"
    assert len(text.splitlines()) < MAX_LINES


@pytest.mark.parametrize("name", registry.names())
def test_formulas_are_maths(name):
    text = read(DOCS / "methods" / f"{name}.md")
    assert set(re.findall(r"^```(\w*)\n.*?^```$", text, flags=re.M | re.S)) == {"python"}, "a formula stands between $$"
    assert text.count("$$\n") % 2 == 0


def test_no_page_without_a_method():
    assert {page.stem for page in (DOCS / "methods").glob("*.md")} == {"index", *registry.names()}


def test_index_lists_every_method():
    page = listed().expanded(read(DOCS / "methods" / "index.md"))
    table = [line for line in page.splitlines() if line.startswith("| [")]
    classes = {entry.name: entry.class_name for entry in registry.METHODS}
    assert all(len([cell for cell in re.split(r"(?<!\\)\|", line) if cell.strip()]) == 5 for line in table)
    assert [line.split("|")[1].strip() for line in table] == [f"[{cls}]({name}.md)" for name, cls in classes.items()]


@pytest.mark.parametrize("choice", [*GRAPHS, *PARTITIONS])
def test_graphs_page_explains_every_choice(choice):
    rows = [line for line in read(DOCS / "graphs.md").splitlines() if line.startswith(f'| `"{choice}"`')]
    assert len(rows) == 1


@pytest.mark.filterwarnings("error::UserWarning")
@on_every_page
def test_examples_run(page):
    if "from subspaces.deep import" in read(page):
        pytest.importorskip("torch", reason=NO_TORCH)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(examples(page), out=report.append)
    assert not report, "".join(report)


def test_the_readme_has_two_commands_and_a_small_picture():
    text = read(ROOT / "README.md")
    marked = re.findall(r"^<!-- (demo|tests) -->\n```sh\n(.*)\n```$", text, flags=re.M)
    assert [name for name, _ in marked] == ["demo", "tests"]
    assert text.count("```sh") == 2, "a fresh machine needs two commands; others are said in a sentence"
    assert all(command.startswith("python3 -m venv .venv && .venv/bin/pip install") for _, command in marked)
    assert ".venv\\Scripts\\subspaces demo" in text, "Windows"
    assert (DOCS / "first.png").stat().st_size < 150_000


@on_every_page
def test_links_resolve(page):
    assert not broken_links(page)


def test_the_checks_can_fail(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A title (`x=`)\n[fine](#a-title-x) [gone](gone.md) [no such](#b) `[code](c.md)`\n"
        "```\n[block](d.md)\n```\n```python\n>>> 1 + 1\n2\n```\n```python\n>>> 1 + 1\n3\n```\n",
        encoding="utf-8",
    )
    assert broken_links(page) == ["gone.md", "#b"]
    results = doctest.DocTestRunner(verbose=False).run(examples(page), out=lambda text: None)
    assert (results.attempted, results.failed) == (2, 1)
