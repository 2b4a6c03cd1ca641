"""``python -m reproduction``: run the paper's experiments and set our numbers beside the published ones."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn

from reproduction.experiment import Settings, adapted, list_experiments, run_experiment
from reproduction.page import write_page
from reproduction.schedule import GRID, HERE, experiment_names
from subspaces.io import FileError
from subspaces.spelling import counted

ALL, PAGE, DIGITS = "all", "page", "digits"
STOPPED = {2: "interrupted", 15: "terminated", 1: "the terminal was closed"}
"""Signals that end a run, in words; the exit code is 128 and the number, as shells count."""

DESCRIPTION = """
Run the paper's experiments and set our numbers beside the published ones.

Without a name: list the experiments, their cost, the data they need and how much is computed. Stop a run whenever you
like: finished cells are kept and the same command goes on. The first run of every row comes before the second of any;
rows with fewer runs than the paper's are marked. "page" writes the page with all results, "grid" chooses the settings
anew, "digits" needs no download.
"""


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m reproduction", description=DESCRIPTION, formatter_class=form)
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help='experiments such as table3 or fig4, "all", or "page"')
    add("--quick", action="store_true", help="a small version: fewer methods, values, runs and starts")
    add("-j", "--jobs", type=int, default=1, help="cells computed at once (default: 1)")
    add("--minutes", type=float, help="begin no further cell after so many minutes; 0 only writes what is there")
    add("--data-home", type=Path, help="folder with the data sets (default: SUBSPACES_DATA or the user's cache)")
    add("-o", "--output", type=Path, default=Path("results/reproduction"), help="folder for tables and figures")
    add("--cache", type=Path, help="folder for finished cells (default: cells in the output)")
    add("--with", dest="classes", action="append", default=[], metavar="MODULE:CLASS", help="a class with fit_predict")
    add("--data", type=Path, metavar="FILE", help="your points in place of the experiment's, with classes to score by")
    add("--label", default="y", help="array or column of --data with the classes (default: y)")
    add("--home", type=Path, default=HERE, help="folder with other experiments and parameters.toml")
    options = parser.parse_intermixed_args(arguments)  # names before and after options
    known = experiment_names(options.home / "experiments")
    if (options.classes or options.data) and not options.names:
        options.names = [DIGITS]
    for name in options.names:
        if name not in (*known, ALL, PAGE):
            parser.error(f"there is no experiment '{name}' (known: {', '.join(known)})")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code. Errors and signals end in one line on standard error."""
    options = _parse(arguments)
    try:
        for number in {15, 1} & signal.valid_signals():
            signal.signal(number, _stop)
        return _run(options)
    except KeyboardInterrupt as stopped:
        number = stopped.args[0] if stopped.args else 2
        print(STOPPED[number], file=sys.stderr)
        return 128 + number
    except (FileError, ValueError, OSError, ImportError, MemoryError) as error:
        named = isinstance(error, OSError) and error.filename is not None
        print(f"error: {f'{error.filename}: {error.strerror}' if named else error}", file=sys.stderr)
        return 2 if isinstance(error, FileError) else 1


def _stop(number: int, frame: Any) -> None:
    raise KeyboardInterrupt(number)


def _run(options: argparse.Namespace) -> int:
    """Run what was asked for, one experiment after another."""
    settings = Settings(
        output=options.output,
        cache=options.cache or options.output / "cells",
        data_home=options.data_home,
        jobs=options.jobs,
        quick=options.quick,
        until=None if options.minutes is None else time.monotonic() + 60 * options.minutes,
        experiments=options.home / "experiments",
        parameters=options.home / "parameters.toml",
        classes=tuple(options.classes),
        points=options.data,
        label=options.label,
    )
    if not options.names:
        _list(settings)
        return 0
    every = [name for name in experiment_names(settings.experiments) if name != GRID]
    names = [each for name in options.names for each in (every if name == ALL else [name]) if each != PAGE]
    names, failures = list(dict.fromkeys(names)), 0
    for name in names:  # a class or a file that cannot be used is refused before anything runs
        adapted(name, settings)
    for name in names:
        columns = (TextColumn("{task.description}"), *Progress.get_default_columns()[1:], MofNCompleteColumn())
        watched = sys.stderr.isatty()
        with Progress(*columns, console=Console(stderr=True), transient=True, disable=not watched) as bar:
            task = bar.add_task(name, total=None)
            run = run_experiment(
                name, settings, lambda done, total, _, t=task, b=bar: b.update(t, completed=done, total=total)
            )
        for error in run.outcome.errors.values():
            print(f"failed: {error}", file=sys.stderr)
        failures += len(run.outcome.errors)
        done = f"{counted(run.outcome.n_computed, 'cell')} computed, {run.outcome.n_found} from the cache"
        done += f", {run.outcome.n_left} left" * bool(run.outcome.n_left)
        print(f"{run.experiment.name}: {done}; {settings.output / run.experiment.name}.md")
    if {PAGE, ALL} & set(options.names):
        print(f"page: {write_page(settings)}")
    if failures:
        print(f"error: {counted(failures, 'cell')} failed; the same command tries again", file=sys.stderr)
    return int(failures > 0)


def _list(settings: Settings) -> None:
    print("name     in the paper   CPU min   cells done   what, and the data it needs")
    for line in list_experiments(settings):
        done = f"{line.n_cached}/{line.n_cells}"
        what = f"{line.title} ({', '.join(line.data)})"
        print(f"{line.name:<8} {line.paper or '–':<13} {line.minutes:>8g} {done:>12}   {what}")
    print("\nRun one: python -m reproduction table4 (add --quick for a small version); all of them: all.")


if __name__ == "__main__":
    sys.exit(main())
