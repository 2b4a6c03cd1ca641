"""One's own class as one more row of an experiment, and one's own points in place of its data."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reproduction.schedule import OWN, QUICK, Experiment
from subspaces import registry
from subspaces.io import FileError, read_table
from subspaces.numerics.types import Array, Labels

Rows = Mapping[str, Mapping[str, Any]]


def load_method(name: str) -> Any:
    """The class of a method: of the registry, or from ``module:Class``."""
    module, colon, attribute = name.partition(":")
    if not colon:
        return registry.load(name)
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"'{name}' cannot be loaded ({error}); give module:Class as Python finds it here") from error
    if not isinstance(found, type):
        raise ValueError(f"'{name}' must be a class; got {type(found).__name__}")
    if not callable(getattr(found, "fit_predict", None)):
        raise ValueError(f"'{name}' must have fit_predict; derive it from subspaces.SubspaceClusterer, or write it")
    return found


def make_model(name: str, parameters: Mapping[str, Any], *, n_clusters: int, seed: int) -> Any:
    """An estimator for so many clusters; one's own need not have the parameters n_clusters and random_state."""
    cls = load_method(name)
    given = {"n_clusters": n_clusters, "random_state": seed}
    known = inspect.signature(cls).parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in known.values()):
        known = {**known, **dict.fromkeys(given)}  # type: ignore[assignment]
    return cls(**{key: value for key, value in given.items() if key in known}, **parameters)


def own_row(name: str) -> dict[str, Any]:
    """A row of ``parameters.toml`` for a class; the text of its file is part of it, so a changed class is run anew."""
    cls = load_method(name)
    source = inspect.getsourcefile(cls)
    digest = "" if source is None else hashlib.sha256(Path(source).read_bytes()).hexdigest()[:16]
    return {"label": cls.__name__, "method": name, "kind": "fit", "restarted": False, "source": digest}


def with_rows(experiment: Experiment, rows: Rows, classes: Sequence[str]) -> tuple[Experiment, Rows]:
    """The experiment with one more row in every panel for each class, before all others."""
    if not classes:
        return experiment, rows
    cuts = [experiment.protocol, *(panel["protocol"] for panel in experiment.panels if "protocol" in panel)]
    if experiment.style != "table" or any(len(protocol["cuts"]) != 1 for protocol in cuts):
        raise ValueError(f"'{experiment.name}' takes no further row; name a table of one cut, such as digits or table3")
    names = list(dict.fromkeys(classes))
    panels = [{**panel, "rows": [*names, *panel["rows"]]} for panel in experiment.panels]
    command = "".join(f" --with {name}" for name in names)
    own: dict[str, Any] = {"name": _named(experiment, ""), "asked": _asked(experiment)}
    adapted = replace(experiment, panels=panels, options=experiment.options + command, **own)
    return adapted, {**rows, **{name: own_row(name) for name in names}}


def with_data(experiment: Experiment, file: Path, label: str) -> Experiment:
    """The rows of the experiment's first panel on the points of a file; the file is read once to check it."""
    read_points(file, label)
    first = experiment.panels[0]
    if experiment.style != "table" or "vary" in first or first.get("grid"):
        raise ValueError(f"'{experiment.name}' cannot be run on other data; name a table, such as digits or table3")
    points = {
        "name": f"file {file.stem}",
        "file": str(file.resolve()),
        "label": label,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
    }
    panel = {**first, "name": file.name, "data": points}
    title = f"{file.name}: the methods of {experiment.name.removesuffix(QUICK)}, settings chosen for no data set"
    return replace(
        experiment,
        name=_named(experiment, re.sub(r"\W+", "-", file.stem)),
        asked=_asked(experiment),
        title=title,
        paper="",
        note="",
        panels=[panel],
        full={},
        options=f"{experiment.options} --data {file.name} --label {label}",
    )


def read_points(file: Path, label: str) -> tuple[Array, Labels]:
    """Points and classes of a file."""
    table = read_table(file, label=label)
    if table.y is None or len(set(table.y.tolist())) < 2:
        raise FileError(file, f"--label {label} must name classes, two or more, to score the methods by")
    return table.X, table.y


def _asked(experiment: Experiment) -> str:
    return experiment.asked or experiment.name.removesuffix(QUICK)


def _named(experiment: Experiment, part: str) -> str:
    """The name of what is written: it never takes the place of the experiment itself."""
    name = experiment.name.removesuffix(QUICK).removesuffix(OWN)
    return f"{name}{'-' * bool(part)}{part}{OWN}{QUICK if experiment.is_quick else ''}"
