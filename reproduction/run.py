"""An experiment from its name to its files: CSV, Markdown and figures."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from reproduction import plan as planning
from reproduction.cells import Listener, digest, read_runs, run_cells
from reproduction.compute import check_needs, code_of
from reproduction.plan import CHOSEN, GRID, HERE, Experiment, Planned
from reproduction.records import Run, make_records, to_csv, write_chosen
from reproduction.tables import markdown
from subspaces.utils.atomic import write_atomically, write_text


@dataclass(frozen=True)
class Settings:
    """Where things are and how much of the machine is used."""

    output: Path
    data_home: Path | None = None
    jobs: int = 1
    until: float | None = None  # after this, of time.monotonic, no further cell is begun
    home: Path = HERE  # of the experiments and their parameters
    again: Sequence[str] = ()  # rows computed anew where other code has made them

    @property
    def chosen(self) -> Path:
        """The settings that grids chose: those of a grid run into the same folder, left out those that are shipped."""
        own = self.output / CHOSEN
        return own if own.exists() else self.home / CHOSEN

    def runs(self, experiment: Experiment) -> Path:
        """Return the file that keeps every run of an experiment beside its table."""
        return self.output / "runs" / f"{experiment.name}.jsonl"


def run_experiment(name: str, settings: Settings, listener: Listener | None = None) -> Run:
    """Run one experiment and write its files; only the cells that are not kept are computed."""
    experiment = planning.load_experiment(name, settings.home)
    rows = planning.load_parameters(settings.home, settings.chosen)
    planned = planning.plan(experiment, rows)
    cells = [item.cell for item in sorted(planned, key=lambda item: item.turn)]
    path, until, home = settings.runs(experiment), settings.until, settings.data_home
    begins = until is None or time.monotonic() < until
    if begins and {digest(cell) for cell in cells} - set(read_runs(path)):
        check_needs(experiment, home)
    again = _overtaken(planned, path, settings.again) if begins else set()
    jobs = 1 if experiment.protocol.get("sequential") else settings.jobs  # times are taken one after another
    outcome = run_cells(cells, path, data_home=home, jobs=jobs, listener=listener, until=until, again=again)
    run = Run(experiment, planned, outcome, make_records(experiment, planned, outcome, settings.home))
    _write(run, settings.output)
    if name == GRID:
        write_chosen(settings.output / CHOSEN, settings.chosen, planned, run.records)
    return run


def _overtaken(planned: Sequence[Planned], path: Path, rows: Sequence[str]) -> set[str]:
    """Return the kept cells of these rows of parameters.toml, or of all, that other code than this one has made."""
    kept, of_rows = read_runs(path), [item.cell for item in planned if {item.key, "all"} & {*rows}]
    now = {digest(cell): code_of(cell["method"]).split()[-1] for cell in of_rows}
    return {key for key in now if key in kept and kept[key].get("made_by", "").split()[-1:] != [now[key]]}


def _write(run: Run, folder: Path) -> None:
    """Write the tables and the figure, with the command and version that made them."""
    experiment, file = run.experiment, folder / run.experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    write_text(f"{file}.csv", to_csv(run.records))
    head = f"# {experiment.heading}\n\n{experiment.origin}\n\n"
    write_text(f"{file}.md", head + markdown(experiment, run.records))
    if experiment.style != "table" and find_spec("matplotlib") is not None:
        from reproduction.figures import save

        with write_atomically(f"{file}.{experiment.picture}") as stream:
            save(run, stream)


class Progress(NamedTuple):
    """Cells of an experiment, those that are done and kept, their CPU minutes, and how many are of which code."""

    n_cells: int
    n_done: int
    minutes: float
    codes: Counter[str]


def progress(experiment: Experiment, settings: Settings) -> Progress:
    """Count the cells of an experiment."""
    planned = planning.plan(experiment, planning.load_parameters(settings.home, settings.chosen))
    cells = {digest(item.cell): item.cell["method"] for item in planned}
    kept = read_runs(settings.runs(experiment))
    done = {key: kept[key] for key in cells if key in kept}
    minutes = round(sum(each.get("cpu_seconds", 0.0) for each in done.values()) / 60, 2)
    codes, first = Counter[str](), dict[str, str]()  # the first commit that has this hash
    for key, each in done.items():
        made_by = each.get("made_by", "not noted")
        codes[first.setdefault(made_by.split()[-1], made_by) + " (automatic)" * (cells[key] == "automatic")] += 1
    return Progress(len(cells), len(done), minutes, codes)
