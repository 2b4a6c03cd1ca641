"""``subspaces``: the group of all commands."""

from __future__ import annotations

from typing import Annotated

import typer

from subspaces.app.cli._common import Commands, PlainCommand
from subspaces.app.cli.ask import ask
from subspaces.app.cli.cluster import cluster
from subspaces.app.cli.compare import compare
from subspaces.app.cli.demo import demo
from subspaces.app.cli.explore import explore
from subspaces.app.cli.methods import cite, methods
from subspaces.app.cli.predict import predict

app = typer.Typer(
    name="subspaces",
    cls=Commands,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from subspaces import __version__

        typer.echo(f"subspaces {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Cluster samples that lie on several low-dimensional, possibly curved, subspaces.

    Start with "subspaces demo", then "subspaces cluster FILE -k NUMBER"; "subspaces methods" lists what there is.
    """


for command in (cluster, predict, compare, demo, explore, ask, methods, cite):
    app.command(cls=PlainCommand)(command)
