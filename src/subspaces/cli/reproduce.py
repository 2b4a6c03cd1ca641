"""``subspaces reproduce``: the paper's tables and figures, ours beside theirs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from subspaces.cli import _options as options
from subspaces.cli._common import FAILED, bar_of_time, complain, one_line
from subspaces.spelling import counted

ALL, PAGE, DIGITS = "all", "page", "digits"
NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help='Experiments such as table3 or fig4, "all", or "page".'),
]
QuickOption = Annotated[
    bool, options.method("--quick", None, "A small version: fewer methods, values, runs and starts.")
]
JobsOption = Annotated[int, options.method("--jobs -j", "NUMBER", "Cells computed at once (1 if not given).", min=1)]
MinutesOption = Annotated[
    float | None,
    options.method(
        "--minutes",
        "NUMBER",
        "Begin no further cell after so many minutes; 0 only writes what is there.",
        min=0,
    ),
]
DataOption = Annotated[
    Path | None,
    options.data("--data-home", "FOLDER", "Folder with the data sets; left out, SUBSPACES_DATA or the user's cache."),
]
OutputOption = Annotated[
    Path, options.output("-o --output", "FOLDER", "Folder for the tables and figures; left out, reproduction.")
]
CacheOption = Annotated[
    Path | None,
    options.output(
        "--cache",
        "FOLDER",
        "Where finished cells are kept; the same command goes on from there. Left out, cells in the output.",
    ),
]
WithOption = Annotated[
    list[str] | None,
    options.method(
        "--with", "MODULE:CLASS", "One more row: a class of your own with fit_predict; may be given several times."
    ),
]
PointsOption = Annotated[
    Path | None,
    options.data("--data", "FILE", "Points of your own instead of the experiment's, with classes to score by."),
]
LabelOption = Annotated[str | None, options.data("--label", "NAME", "Array or column of --data with the classes (y).")]
HiddenOption = Annotated[Path | None, typer.Option(hidden=True)]


def reproduce(
    names: NamesArgument = None,
    with_: WithOption = None,
    points: PointsOption = None,
    label: LabelOption = None,
    quick: QuickOption = False,
    jobs: JobsOption = 1,
    minutes: MinutesOption = None,
    data_home: DataOption = None,
    output: OutputOption = Path("reproduction"),
    cache: CacheOption = None,
    experiments: HiddenOption = None,
    parameters: HiddenOption = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Run the paper's experiments and set our numbers beside the published ones.

    Without a name: list the experiments, their cost, the data they need and how much is already computed.
    Stop it whenever you like: finished cells are kept, and the same command goes on; the first run of every row comes
    before the second of any, and rows with fewer runs than the paper's are marked. "page" writes the page with all
    results that are there, "grid" chooses the settings anew. "digits" needs no download.

    With --with and --data: your class beside the methods, on your points. Without a name, the methods of "digits".

    Example: subspaces reproduce table4 fig4 --jobs 2; subspaces reproduce --with mine:MyClass --data my.npz
    """
    from subspaces.reproduce.experiment import Settings
    from subspaces.reproduce.schedule import EXPERIMENTS, PARAMETERS

    settings = Settings(
        output=output,
        cache=cache or output / "cells",
        data_home=data_home,
        jobs=jobs,
        quick=quick,
        until=None if minutes is None else time.monotonic() + 60 * minutes,
        experiments=experiments or EXPERIMENTS,
        parameters=parameters or PARAMETERS,
        classes=tuple(with_ or ()),
        points=points,
        label=label or "y",
    )
    if label is not None and points is None:
        raise typer.BadParameter("names the classes of --data; give a file there, too", param_hint="--label")
    if with_ or points:
        names = _check_own(names or [DIGITS], settings)
    if not names:
        _list(settings, as_json)
        return
    failures = _run_all(_expand(names, settings), settings, as_json, quiet)
    if PAGE in names or ALL in names:
        from subspaces.reproduce.page import write_page

        page = write_page(settings)
        if not (quiet or as_json):
            typer.echo(one_line(f"page: {page}"))
    if failures:
        complain(f"error: {counted(failures, 'cell')} failed; the same command tries again")
        raise typer.Exit(FAILED)


def _check_own(names: list[str], settings: Any) -> list[str]:
    """Refuse a class or a file that cannot be used before anything runs."""
    from subspaces.io import FileError
    from subspaces.reproduce.experiment import adapted

    if settings.classes:
        sys.path.insert(0, str(Path.cwd()))  # where people keep what they try; python -m does the same
    for name in _expand(names, settings):
        try:
            adapted(name, settings)
        except FileError:
            raise
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--with") from None
    return names


def _expand(names: list[str], settings: Any) -> list[str]:
    """Names of experiments, in the order given; a wrong one is refused before anything runs."""
    from subspaces.reproduce.schedule import GRID, experiment_names, load_experiment

    wanted: list[str] = []
    for name in names:
        wanted += [each for each in experiment_names(settings.experiments) if each != GRID] if name == ALL else [name]
    wanted = [name for name in dict.fromkeys(wanted) if name != PAGE]
    for name in wanted:
        try:
            load_experiment(name, settings.experiments)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="NAME") from None
    return wanted


def _run_all(names: list[str], settings: Any, as_json: bool, quiet: bool) -> int:
    """Run experiments one after another; returns how many cells failed."""
    from subspaces.reproduce.experiment import run_experiment

    failures, documents = 0, []
    for name in names:
        with _progress(name, not (quiet or as_json)) as listener:
            run = run_experiment(name, settings, listener)
        for error in run.outcome.errors.values():
            complain(f"failed: {error}")
        failures += len(run.outcome.errors)
        document = {"experiment": run.experiment.name, "files": [str(file) for file in run.files]}
        counts = {"cached": run.outcome.n_found, "computed": run.outcome.n_computed, "left": run.outcome.n_left}
        counts["failed"] = len(run.outcome.errors)
        documents.append({**document, **counts, "records": [asdict(record) for record in run.records]})
        if not (quiet or as_json):
            markdown = next(file for file in run.files if file.suffix == ".md")
            done = f"{counted(run.outcome.n_computed, 'cell')} computed, {run.outcome.n_found} from the cache"
            done += f", {run.outcome.n_left} left" * bool(run.outcome.n_left)
            typer.echo(one_line(f"{run.experiment.name}: {done}; {markdown}"))
    if as_json:
        typer.echo(json.dumps(documents, allow_nan=False))
    return failures


def _list(settings: Any, as_json: bool) -> None:
    from subspaces.reproduce.experiment import list_experiments

    lines = list_experiments(settings)
    if as_json:
        typer.echo(json.dumps([asdict(line) for line in lines]))
        return
    typer.echo("name     in the paper   CPU min   cells done   what, and the data it needs")
    for line in lines:
        done = f"{line.n_cached}/{line.n_cells}"
        what = f"{line.title} ({', '.join(line.data)})"
        typer.echo(f"{line.name:<8} {line.paper or '–':<13} {line.minutes:>8g} {done:>12}   {what}")
    typer.echo("\nRun one: subspaces reproduce table4 (add --quick for a small version); all of them: all.")


@contextmanager
def _progress(name: str, wanted: bool) -> Iterator[Any]:
    """A bar with the time left on standard error, if a person is watching."""
    if not (wanted and sys.stderr.isatty()):
        yield None
        return
    with bar_of_time("{task.description}", "[dim]{task.fields[cell]}", counted=True) as bar:
        task = bar.add_task(name, total=None, cell="")
        yield lambda done, total, name: bar.update(task, completed=done, total=total, cell=name)
