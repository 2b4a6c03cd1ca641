"""``subspaces methods``: what there is to choose from."""

from __future__ import annotations

import inspect
import json
from typing import Annotated, Any

import typer

from subspaces import registry
from subspaces.app.cli import _options as options
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
        raise typer.BadParameter(f"'{name}' is not one of {', '.join(known)}", param_hint="NAME")
    if as_json:
        chosen = known if name is None else (name,)
        typer.echo(json.dumps({key: describe(registry.load(key)) for key in chosen}))
    elif name is not None:
        typer.echo(inspect.getdoc(registry.load(name)))
    else:
        for key in known:
            method = describe(registry.load(key))
            typer.echo(f"{key}: {method['summary']}")
            typer.echo(f"    parameters  {_settings(method['parameters'])}")
            typer.echo(f"    cost        {method['cost']}")
            typer.echo(f"    reference   {method['reference']}\n")
        typer.echo(f"all methods: {_settings(shared_parameters())}")
        typer.echo(
            "\nsubspaces methods NAME describes one; subspaces cluster FILE --method NAME runs it, --set changes it."
        )


def describe(cls: Any) -> dict[str, Any]:
    """Summary, own parameters with defaults, cost and reference of one estimator."""
    shared = shared_parameters()
    parameters = plain(cls().get_params())
    own = {key: value for key, value in parameters.items() if key not in shared or shared[key] != value}
    own.pop("n_clusters", None)
    return {
        "class": cls.__name__,
        "summary": (inspect.getdoc(cls) or "").splitlines()[0],
        "parameters": own,
        "cost": cls.cost,
        "reference": cls.reference,
    }


def shared_parameters() -> dict[str, Any]:
    """Parameters that every estimator has, with their usual defaults."""
    from subspaces.estimators.base import SubspaceClusterer

    return plain(SubspaceClusterer().get_params())


def _settings(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in parameters.items())
