"""All results → one page: a report, then every table and figure, ours beside the paper's."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from pathlib import Path

from reproduction.choice import read_chosen
from reproduction.entries import CODE
from reproduction.experiment import Settings, chosen_file, list_experiments, origin
from reproduction.findings import about_settings, findings, outdated
from reproduction.report import Reasons, report
from reproduction.schedule import (
    HERE,
    Experiment,
    experiment_names,
    load_experiment,
    load_parameters,
    plan,
)
from reproduction.statistics import Record, from_csv
from reproduction.tables import markdown
from subspaces import __version__
from subspaces.io import FileError
from subspaces.io.dataset import printable
from subspaces.io.writing import write_text

REMARKS = HERE / "remarks.toml"
PAGE = "reproduction.md"
EARLIER = (
    "These numbers are of an earlier, smaller run whose single runs were not kept, so nothing is tested here; what is "
    "said above about draws, runs, starts and threads is what is run now."
)
_LARGE = 90
"""Rows above which a table is only linked."""


def write_page(settings: Settings, remarks: Path = REMARKS) -> Path:
    """Write the page beside the output folder from the results that are in it; returns its path."""
    words = tomllib.loads(remarks.read_text(encoding="utf-8"))
    page = settings.output.resolve().parent / PAGE
    link = os.path.relpath(settings.output.resolve(), page.parent)
    names = experiment_names(settings.experiments)
    experiments = {name: load_experiment(name, settings.experiments) for name in names}
    results = {name: records for name in names if (records := _read(settings.output / f"{name}.csv")) is not None}
    parts = [f"# The paper's tables and figures, ours beside theirs\n\n{words['introduction'].strip()}\n"]
    if not results:
        parts.append("Nothing has been run yet.\n")
    else:
        status = {
            line.name: (line.n_cells, line.n_cached, line.cpu_minutes) for line in list_experiments(settings, kept=True)
        }
        rows = load_parameters(settings.parameters, chosen_file(settings))
        old = {name: outdated(plan(experiments[name], rows), results[name]) for name in results}
        parts += [report(experiments, results, status, words, Reasons(words["reasons"], old))]
        parts += [f"## How to read it\n\n{words['reading'].strip()}\n\nsubspaces {__version__}, code {CODE}.\n"]
        choices = read_chosen(chosen_file(settings))
        for name, experiment in experiments.items():
            if name in results:
                said = [words.get("words", {}).get(name, ""), *findings(experiment, results[name])]
                said += [EARLIER] * (not status[name][1])
                said.append(about_settings(experiment, rows, choices, old[name]))
                parts.append(_section(experiment, results[name], said, link, settings.output))
            elif experiment.paper:
                parts.append(f"## {experiment.paper}: {experiment.title}\n\nNot run yet.\n")
    write_text(page, "\n".join(parts))
    return page


def _read(results: Path) -> list[Record] | None:
    """The records of a table; None where it was not run."""
    if not results.exists():
        return None
    try:
        return from_csv(results.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FileError(results, f"{printable(error, 200)}; remove it and run the experiment again") from error


def _section(experiment: Experiment, records: Sequence[Record], said: Sequence[str], link: str, folder: Path) -> str:
    """Title, what was done, the figure, what it says, the tables."""
    name = experiment.name
    title = f"{experiment.paper}: {experiment.title}" if experiment.paper else experiment.title
    lines = [f"## {title}\n", f"{experiment.note} {origin(experiment)}\n"]
    picture = next((f"{name}{end}" for end in (".svg", ".png") if (folder / f"{name}{end}").exists()), None)
    if picture is not None:
        lines.append(f"![{experiment.title}]({link}/{picture})\n")
    lines += [f"{text.strip()}\n" for text in said if text.strip()]
    table = markdown(experiment, records)
    if table.count("\n|") <= _LARGE:
        lines.append(table)
    lines.append(f"All numbers: [csv]({link}/{name}.csv)\n")
    return "\n".join(line for line in lines if line.strip())
