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
from rich.progress import MofNCompleteColumn, Progress

from reproduction.compute import data_needed, needs_torch
from reproduction.page import write_page
from reproduction.plan import GRID, HERE, experiment_names, load_experiment
from reproduction.run import Settings, progress, run_experiment
from subspaces.utils.spelling import counted

ALL, PAGE = "all", "page"
STOPPED = {2: "interrupted", 15: "terminated", 1: "the terminal was closed"}
"""Signals that end a run, in words; the exit code is 128 and the number, as shells count."""

DESCRIPTION = """
Run the paper's experiments and set our numbers beside the published ones.

Without a name: list the experiments, their cost, the data they need and how much is computed. Stop a run whenever you
like: finished cells are kept and the same command goes on. The first run of every row comes before the second of any;
rows with fewer runs than the paper's are marked. "page" writes the page with all results, "grid" chooses the settings
anew, "digits" needs no download.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code. Errors and signals end in one line on standard error."""
    names, settings = _parse(arguments)
    try:
        for number in {15, 1} & signal.valid_signals():
            signal.signal(number, _stop)
        return _run(names, settings) if names else _list(settings)
    except KeyboardInterrupt as stopped:
        number = stopped.args[0] if stopped.args else 2
        print(STOPPED[number], file=sys.stderr)
        return 128 + number
    except (ValueError, OSError, ImportError, MemoryError) as error:
        text = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else error
        print(f"error: {text}", file=sys.stderr)
        return 1


def _stop(number: int, frame: Any) -> None:
    raise KeyboardInterrupt(number)


def _parse(arguments: Sequence[str] | None) -> tuple[list[str], Settings]:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m reproduction", description=DESCRIPTION, formatter_class=form)
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help='experiments such as table3 or fig4, "all", or "page"')
    add("-j", "--jobs", type=int, default=1, help="cells computed at once (default: 1)")
    add("--minutes", type=float, help="begin no further cell after so many minutes; 0 only writes what is there")
    add("--data-home", type=Path, help="folder with the data sets (default: SUBSPACES_DATA or the user's cache)")
    add("-o", "--output", type=Path, default=Path("results/reproduction"), help="folder for tables and figures")
    add("--again", action="append", default=[], metavar="ROW", help='anew what other code made, of a row or of "all"')
    add("--home", type=Path, default=HERE, help="folder with other experiments and parameters.toml")
    options = vars(parser.parse_intermixed_args(arguments))  # names before and after options
    names, minutes = options.pop("names"), options.pop("minutes")
    until = None if minutes is None else time.monotonic() + 60 * minutes
    settings = Settings(**options, until=until)
    known = experiment_names(settings.home)
    for name in names:
        if name not in (*known, ALL, PAGE):
            parser.error(f"there is no experiment '{name}' (known: {', '.join(known)})")
    return names, settings


def _run(names: Sequence[str], settings: Settings) -> int:
    """Run experiments one after another."""
    every = [name for name in experiment_names(settings.home) if name != GRID]
    wanted = [each for name in names for each in (every if name == ALL else [name]) if each != PAGE]
    failures = sum(_run_one(name, settings) for name in dict.fromkeys(wanted))
    if {PAGE, ALL} & set(names):
        print(f"page: {write_page(settings)}")
    if failures:
        print(f"error: {counted(failures, 'cell')} failed; the same command tries again", file=sys.stderr)
    return int(failures > 0)


def _run_one(name: str, settings: Settings) -> int:
    """Run an experiment; return how many cells failed."""
    columns, console = (*Progress.get_default_columns(), MofNCompleteColumn()), Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(name, total=None)
        run = run_experiment(name, settings, lambda done, total: bar.update(task, completed=done, total=total))
    for error in run.outcome.errors.values():
        print(f"failed: {error}", file=sys.stderr)
    done = f"{counted(run.outcome.n_computed, 'cell')} computed, {run.outcome.n_found} kept"
    done += f", {run.outcome.n_left} left" * bool(run.outcome.n_left)
    print(f"{run.experiment.name}: {done}; {settings.output / run.experiment.name}.md")
    return len(run.outcome.errors)


def _list(settings: Settings) -> int:
    """List the experiments."""
    print("name     in the paper   CPU min   cells done   what, and the data it needs")
    for name in experiment_names(settings.home):
        experiment = load_experiment(name, settings.home)
        n_cells, n_done, *_ = progress(experiment, settings)
        needed = ", ".join([*data_needed(experiment).values(), *["PyTorch"] * needs_torch(experiment)])
        cells = f"{experiment.minutes:>8g} {f'{n_done}/{n_cells}':>12}"
        print(f"{name:<8} {experiment.paper or '–':<13} {cells}   {experiment.title} ({needed})")
    print("\nRun one: python -m reproduction table4 (add --minutes 5 for its first cells); all of them: all.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
