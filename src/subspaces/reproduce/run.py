"""An experiment from its name to its files: what the command line calls."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from subspaces.reproduce import data
from subspaces.reproduce.cells import read_result
from subspaces.reproduce.outputs import write_outputs
from subspaces.reproduce.plan import (
    EXPERIMENTS,
    PARAMETERS,
    Experiment,
    data_needed,
    experiment_names,
    load_experiment,
    load_parameters,
    plan,
)
from subspaces.reproduce.runner import Listener, Outcome, run_cells
from subspaces.reproduce.statistics import Record


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
    experiments: Path = EXPERIMENTS
    parameters: Path = PARAMETERS


def run_experiment(name: str, settings: Settings, listener: Listener | None = None) -> Run:
    """Run one experiment; only the cells that are not in the cache are computed."""
    experiment = load_experiment(name, settings.experiments, quick=settings.quick)
    planned = plan(experiment, load_parameters(settings.parameters))
    cells = [item.cell for item in planned]
    if any(read_result(settings.cache, cell) is None for cell in cells):
        check_needs(experiment, settings.data_home)
    jobs = 1 if experiment.protocol.get("sequential") else settings.jobs  # times are taken one after another
    outcome = run_cells(cells, settings.cache, data_home=settings.data_home, jobs=jobs, listener=listener)
    records, files = write_outputs(experiment, planned, outcome, settings.output)
    return Run(experiment, records, files, outcome)


def check_needs(experiment: Experiment, data_home: Path | None) -> None:
    """Refuse before anything is computed what cannot be: data that are not to be had, a missing PyTorch."""
    for name in data_needed(experiment):
        try:
            data.load_whole(name, data_home)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{experiment.name} needs {data.NAMES[name]}: {error}") from error
    if experiment.protocol.get("needs") == "torch":
        try:
            from subspaces.deep import DSCNet  # noqa: F401
        except ImportError as error:
            raise ImportError(f"{experiment.name} trains networks: {error}") from error


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


def list_experiments(settings: Settings) -> list[Line]:
    """Every experiment with its cost, what it needs and how much of it is in the cache."""
    parameters = load_parameters(settings.parameters)
    lines = []
    for name in experiment_names(settings.experiments):
        experiment = load_experiment(name, settings.experiments, quick=settings.quick)
        cells = [item.cell for item in plan(experiment, parameters)]
        cached = sum(read_result(settings.cache, cell) is not None for cell in cells)
        needed = [data.NAMES[needed] for needed in data_needed(experiment)]
        if experiment.protocol.get("needs"):
            needed.append("PyTorch")
        lines.append(Line(name, experiment.paper, experiment.title, experiment.minutes, needed, len(cells), cached))
    return lines
