"""``subspaces methods`` and ``subspaces cite``: what there is to choose from, and what to put into a bibliography."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from subspaces import registry
from subspaces.app.cli import _options as options
from subspaces.app.cli._common import refuse


def methods(
    name: Annotated[str | None, typer.Argument(help="Show the whole description of one method.")] = None,
    debug: options.DebugOption = False,
) -> None:
    """List every method: what it is, its cost and its reference.

    Example: subspaces methods ssc
    """
    known = registry.names(*registry.SHALLOW)
    if name is not None and name not in known:
        raise refuse("NAME", f"'{name}' is not one of {', '.join(known)}")
    if name is not None:
        typer.echo(inspect.getdoc(registry.load(name)))
        return
    for key in known:
        method = registry.load(key)
        typer.echo(f"{key}: {(inspect.getdoc(method) or '').splitlines()[0]}")
        typer.echo(f"    cost        {method._cost}\n    reference   {method._reference}\n")
    typer.echo("subspaces methods NAME describes one; subspaces cluster FILE --method NAME runs it, --set changes it.")


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
