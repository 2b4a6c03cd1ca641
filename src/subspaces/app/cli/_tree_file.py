"""``--tree``: the clusters from coarse to fine in a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import typer

from subspaces import registry
from subspaces.app.cli._outputs import Run

SUFFIXES = (".json", ".nwk", ".newick")


def check_tree(path: Path | None, method: str, sources: Sequence[Path], labels: Path | None, force: bool) -> None:
    """Refuse a tree that could not be made or written, before anything is computed."""
    if path is None:
        return
    from subspaces.app.files import check_output

    if method in registry.names("large"):
        problem = f"the method {method} makes no graph between the points, so it has no tree; choose another --method"
        raise typer.BadParameter(problem, param_hint="--tree")
    for source in sources:
        check_output(path, force=force, source=source, suffixes=SUFFIXES, what="tree")
    if labels is not None and path.resolve() == labels.resolve():
        raise typer.BadParameter("the labels go to this file (-o); choose another name", param_hint="--tree")


def write_tree(path: Path | None, run: Run) -> list[str]:
    """Write the tree; one line for people."""
    if path is None:
        return []
    from subspaces.utils.atomic import write_text

    tree = run.estimator.tree_
    is_json = path.suffix.lower() == ".json"
    write_text(path, f"{_with_names(tree.to_json(), run) if is_json else tree.to_newick()}\n")
    return [f"tree written to {path}"]


def _with_names(text: str, run: Run) -> str:
    """The JSON with what tells whose numbers it holds: names, lines or rows of the points."""
    more = {} if run.data is None else run.data.places
    return f"{text[:-1]}, {json.dumps(more, default=str)[1:]}" if more else text
