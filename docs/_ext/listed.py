"""Lists of methods, made from :mod:`subspaces.registry` whenever the manual is built: nobody keeps them by hand.

A page says where: ``.. listed: graph`` in reStructuredText (a comment to anything else), ``<!-- listed: table -->`` in
Markdown. autosummary looks for names in files, not in what a page becomes, so the same lists are also written to
``api/generated/_listed.rst``, which is no page.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from subspaces import registry, representation

API = Path(__file__).resolve().parents[1] / "api"
METHODS = API.parent / "methods"
MARK = re.compile(r"^(?:\.\. listed: (\w+)|<!-- listed: (\w+) -->)$", flags=re.M)


def expanded(text: str) -> str:
    """A page with every mark replaced by its list."""
    return MARK.sub(lambda found: LISTS[found[1] or found[2]](), text)


def classes(*kinds: str) -> list[str]:
    """Names of the classes of these kinds of methods."""
    return [registry.entry_of(name).class_name for name in registry.names(*kinds)]


def autosummary(names: list[str]) -> str:
    """A table of the reference, with a page for each name."""
    return "\n".join([".. autosummary::", "   :toctree: generated", "", *(f"   {name}" for name in names), ""])


def table() -> str:
    """One line for each method, from what its class says of itself."""
    rows = ["| method | in one line | sees | cost | reference |", "|---|---|---|---|---|"]
    for name in registry.names(*registry.SHALLOW):
        cls = registry.load(name)
        summary = (inspect.getdoc(cls) or "").splitlines()[0].rstrip(".")
        line = summary.partition(": ")[2] or summary
        sees = "a kernel" if hasattr(cls, "kernel") else "samples"
        cost = cls._cost.replace("|", r"\|")
        rows.append(f"| {link(name)} | {line} | {sees} | {cost} | {short_reference(cls._reference)} |")
    return "\n".join(rows)


def link(name: str) -> str:
    """Return a link to the section of a method, on the page of its family."""
    title = registry.entry_of(name).class_name
    pages = [page for page in METHODS.glob("*.md") if f"\n## {title}\n" in page.read_text(encoding="utf-8")]
    return f"[{title}]({pages[0].name}#{title.lower()})"


def short_reference(reference: str) -> str:
    """Authors and year."""
    authors = reference.partition(":")[0].split(", ")
    years = re.findall(r"\b(?:19|20)\d\d\b", reference)
    return (", ".join(authors) if len(authors) < 4 else f"{authors[0]} et al.") + "".join(f" {y}" for y in years[-1:])


def representations() -> str:
    """The representations that no page of the reference names."""
    pages = "\n".join(page.read_text(encoding="utf-8") for page in API.glob("*.rst"))
    blocks = []
    for info in pkgutil.iter_modules(representation.__path__, "subspaces.representation."):
        if info.name.rpartition(".")[2].startswith("_") or re.search(rf":: {info.name}$", pages, flags=re.M):
            continue
        found = vars(importlib.import_module(info.name))
        names = [name for name, value in found.items() if _is_representation(value, info.name)]
        blocks.append(f".. automodule:: {info.name}\n   :no-members:\n\n{autosummary(names)}")
    return "\n".join(blocks)


def _is_representation(function: Any, module: str) -> bool:
    public = inspect.isfunction(function) and function.__module__ == module and not function.__name__.startswith("_")
    return public and inspect.signature(function).return_annotation == "Coefficients"


def bibtex() -> str:
    """The entry of every paper, after the methods that it is cited for."""
    from subspaces.inspection.citations import entries

    blocks = []
    for text, names in entries().values():
        methods = ", ".join(link(name) for name in names)
        blocks.append(f"{methods}\n\n```bibtex\n{text}\n```")
    return "\n\n".join(blocks)


LISTS: dict[str, Callable[[], str]] = {
    "table": table,
    "graph": lambda: autosummary(classes("graph")),
    "large": lambda: autosummary(classes("large")),
    "names": lambda: " · ".join(f":class:`{name}`" for name in classes(*registry.SHALLOW)),
    "representations": representations,
    "bibtex": bibtex,
}


def write_names(app: Any, config: Any) -> None:
    """The names that autosummary shall make pages for."""
    lists = [LISTS[name]() for name in ("graph", "large", "representations")]
    page = API / "generated" / "_listed.rst"
    page.parent.mkdir(exist_ok=True)
    text = ".. currentmodule:: subspaces\n\n" + "\n".join(lists).replace(":toctree: generated", ":toctree: .")
    page.write_text(text, encoding="utf-8")


def expand_page(app: Any, docname: str, source: list[str]) -> None:
    """Put the lists where a page marks them."""
    source[0] = expanded(source[0])


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("config-inited", write_names)
    app.connect("source-read", expand_page)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
