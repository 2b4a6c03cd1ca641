"""``subspaces methods`` and ``subspaces cite``: what there is to choose from, and what to put into a bibliography."""

from __future__ import annotations

import inspect
import json
from typing import Annotated, Any

import typer

from subspaces import registry
from subspaces.app.cli import _options as options
from subspaces.app.cli._common import refuse
from subspaces.app.description import plain


def methods(
    name: Annotated[str | None, typer.Argument(help="Show the whole description of one method.")] = None,
    as_json: options.JsonOption = False,
    debug: options.DebugOption = False,
) -> None:
    """List every method: what it is, its own parameters, its cost and its reference.

    The parameters that all methods share (scaling, random_state) come last.

    Example: subspaces methods ssc
    """
    known = registry.names(*registry.SHALLOW)
    if name is not None and name not in known:
        raise refuse("NAME", f"'{name}' is not one of {', '.join(known)}")
    if name is not None and not as_json:
        typer.echo(inspect.getdoc(registry.load(name)))
        return
    from subspaces.estimators.base import SubspaceClusterer

    shared = plain(SubspaceClusterer().get_params())
    found = {key: _described(registry.load(key), shared) for key in (known if name is None else (name,))}
    if as_json:
        typer.echo(json.dumps(found))
        return
    for key, method in found.items():
        typer.echo(f"{key}: {method['summary']}")
        typer.echo(f"    parameters  {_listed(method['parameters'])}")
        typer.echo(f"    cost        {method['cost']}")
        typer.echo(f"    reference   {method['reference']}\n")
    typer.echo(f"all methods: {_listed(shared)}")
    typer.echo(
        "\nsubspaces methods NAME describes one; subspaces cluster FILE --method NAME runs it, --set changes it."
    )


def _described(cls: Any, shared: dict[str, Any]) -> dict[str, Any]:
    parameters = plain(cls().get_params())
    own = {key: value for key, value in parameters.items() if key not in shared or shared[key] != value}
    own.pop("n_clusters", None)
    return {
        "class": cls.__name__,
        "summary": (inspect.getdoc(cls) or "").splitlines()[0],
        "parameters": own,
        "cost": cls._cost,
        "reference": cls._reference,
    }


def _listed(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in parameters.items())


def cite(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Methods; left out, the package itself.")
    ] = None,
    debug: options.DebugOption = False,
) -> None:
    """Print the BibTeX entries of methods' papers.

    Example: subspaces cite ktrr ssc >> references.bib
    """
    from subspaces.inspection.citations import cite as entries_of

    try:
        typer.echo(entries_of(*(names or [])))
    except ValueError as error:
        raise refuse("NAME", str(error)) from None
