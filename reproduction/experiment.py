"""An experiment from its name to its files, CSV, Markdown, LaTeX and figures: what the command line calls."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from reproduction import data, own, schedule
from reproduction.choice import read_chosen, write_chosen
from reproduction.entries import CODE, Cell, Result, digest, read_result, read_runs, write_runs
from reproduction.own import Rows
from reproduction.runner import Listener, Outcome, run_cells
from reproduction.schedule import QUICK, Experiment, Planned
from reproduction.statistics import Record, make_records, to_csv
from reproduction.tables import latex, markdown
from subspaces import __version__
from subspaces.io.writing import write_atomically, write_text

IMAGES = ("matrices", "samples")
"""Styles of figures that are images themselves; the others are kept as vectors."""


@dataclass
class Run:
    """What a finished experiment has to say."""

    experiment: Experiment
    records: list[Record]
    files: list[Path]
    outcome: Outcome


@dataclass(frozen=True)
class Settings:
    """Where things are and how much of the machine is used."""

    output: Path
    cache: Path
    data_home: Path | None = None
    jobs: int = 1
    quick: bool = False
    until: float | None = None  # after this, of time.monotonic, no further cell is begun
    experiments: Path = schedule.EXPERIMENTS
    parameters: Path = schedule.PARAMETERS
    classes: tuple[str, ...] = ()  # rows of the user, module:Class
    points: Path | None = None  # a file of the user in place of the data
    label: str = "y"  # what holds its classes


def run_experiment(name: str, settings: Settings, listener: Listener | None = None) -> Run:
    """Run one experiment; only the cells that are not in the cache are computed."""
    experiment, rows = adapted(name, settings)
    planned = schedule.plan(experiment, rows)
    cells = [item.cell for item in sorted(planned, key=lambda item: item.turn)]
    kept = runs_file(settings.output, experiment.name)
    known = read_runs(kept)
    begins = settings.until is None or time.monotonic() < settings.until
    if begins and any(_is_missing(cell, settings.cache, known) for cell in cells):
        check_needs(experiment, settings.data_home)
    outcome = run_cells(
        cells,
        settings.cache,
        data_home=settings.data_home,
        jobs=1 if experiment.protocol.get("sequential") else settings.jobs,  # times are taken one after another
        listener=listener,
        known=known,
        until=settings.until,
    )
    records, files = write_outputs(experiment, planned, outcome, settings.output)
    write_runs(kept, cells, outcome.results)
    if name == schedule.GRID and not settings.quick:
        files.append(settings.output / schedule.CHOSEN)
        write_chosen(files[-1], read_chosen(chosen_file(settings)), planned, records)
    return Run(experiment, records, files, outcome)


def chosen_file(settings: Settings) -> Path:
    """The settings that grids chose: those of a grid run into the same folder, left out those that are shipped."""
    own = settings.output / schedule.CHOSEN
    return own if own.exists() else settings.parameters.with_name(schedule.CHOSEN)


def runs_file(output: Path, name: str) -> Path:
    """Where every run of an experiment is kept beside its table."""
    return output / "runs" / f"{name}.jsonl"


def _is_missing(cell: Cell, cache: Path, known: Mapping[str, Result]) -> bool:
    return digest(cell) not in known and read_result(cache, cell) is None


def adapted(name: str, settings: Settings) -> tuple[Experiment, Rows]:
    """An experiment and the rows it may have, with what the user adds to it."""
    experiment = schedule.load_experiment(name, settings.experiments, quick=settings.quick)
    rows: Rows = schedule.load_parameters(settings.parameters, chosen_file(settings))
    if settings.points is not None:
        experiment = own.with_data(experiment, settings.points, settings.label)
    return own.with_rows(experiment, rows, settings.classes)


def write_outputs(
    experiment: Experiment, planned: list[Planned], outcome: Outcome, folder: Path
) -> tuple[list[Record], list[Path]]:
    """Write everything, with the command and version that made it; returns the records and the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    records = make_records(experiment, planned, outcome)
    title = f"{experiment.paper}: {experiment.title}" if experiment.paper else experiment.title
    texts = {
        ".csv": to_csv(records),
        ".md": f"# {title}\n\n{origin(experiment)}\n\n{markdown(experiment, records)}",
        ".tex": f"% {origin(experiment)}\n{latex(experiment, records)}",
    }
    written = []
    for suffix, text in texts.items():
        written.append(folder / f"{experiment.name}{suffix}")
        write_text(written[-1], text)
    if experiment.style != "table" and find_spec("matplotlib") is not None:
        from matplotlib import rc_context

        from reproduction.figures import STYLE, draw

        # without a date and random names inside, the same figure is the same file
        with rc_context({**STYLE, "svg.hashsalt": experiment.name}):
            figure = draw(experiment, records, planned, outcome)
            suffix, metadata = (".png", None) if experiment.style in IMAGES else (".svg", {"Date": None})
            written.append(folder / f"{experiment.name}{suffix}")
            with write_atomically(written[-1]) as stream:
                figure.savefig(stream, format=suffix[1:], dpi=130, metadata=metadata)
    return records, written


def origin(experiment: Experiment) -> str:
    """The command and version that made a result."""
    name = experiment.asked or experiment.name.removesuffix(QUICK)
    command = f"python -m reproduction {name}{experiment.options}{' --quick' if experiment.is_quick else ''}"
    return f"Made by `{command}`, subspaces {__version__}, code {CODE}."


def check_needs(experiment: Experiment, data_home: Path | None) -> None:
    """Refuse before anything is computed what cannot be: data that are not to be had, a missing PyTorch."""
    for name in schedule.data_needed(experiment):
        try:
            if name == data.FILMS:
                data.find_films(data_home)
            else:
                data.load_whole(name, data_home)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{experiment.name} needs {data.title(name)}: {error}") from error
    if needs_torch(experiment):
        try:
            from subspaces.deep import DSCNet  # noqa: F401
        except ImportError as error:
            raise ImportError(f"{experiment.name} trains networks: {error}") from error


def needs_torch(experiment: Experiment) -> bool:
    """Whether any of its rows is a network."""
    asked = [{**experiment.protocol, **panel.get("protocol", {})} for panel in experiment.panels if panel["rows"]]
    return any(protocol.get("needs") == "torch" for protocol in asked)


@dataclass(frozen=True)
class Line:
    """One line of the list of experiments."""

    name: str
    paper: str
    title: str
    minutes: float
    data: list[str]
    n_cells: int
    n_cached: int
    cpu_minutes: float  # that the finished cells took


def list_experiments(settings: Settings, *, kept: bool = False) -> list[Line]:
    """Every experiment with its cost, what it needs and how much of it is done, or kept beside its table."""
    parameters = schedule.load_parameters(settings.parameters, chosen_file(settings))
    lines = []
    for name in schedule.experiment_names(settings.experiments):
        experiment = schedule.load_experiment(name, settings.experiments, quick=settings.quick)
        keys = {digest(item.cell): item.cell for item in schedule.plan(experiment, parameters)}
        known = read_runs(runs_file(settings.output, experiment.name), whole=False)
        found = [known.get(key) or (None if kept else read_result(settings.cache, cell)) for key, cell in keys.items()]
        done = [result for result in found if result is not None]
        spent = round(sum(result.get("cpu_seconds", 0.0) for result in done) / 60, 2)
        needed = [data.title(needed) for needed in schedule.data_needed(experiment)]
        if needs_torch(experiment):
            needed.append("PyTorch")
        counts = (len(keys), len(done), spent)
        lines.append(Line(name, experiment.paper, experiment.title, experiment.minutes, needed, *counts))
    return lines
