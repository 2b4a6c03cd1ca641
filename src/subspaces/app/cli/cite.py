"""``subspaces cite``: what to put into a bibliography."""

from __future__ import annotations

from typing import Annotated

import typer

from subspaces.app.cli import _options as options


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
        raise typer.BadParameter(str(error), param_hint="NAME") from None
