"""All results → one page: ours beside the paper's, the difference, and an honest word where they differ."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from pathlib import Path

from subspaces import __version__
from subspaces.io import FileError
from subspaces.io.dataset import printable
from subspaces.io.writing import write_text
from subspaces.reproduce.entries import CODE
from subspaces.reproduce.experiment import Settings, origin
from subspaces.reproduce.schedule import HERE, Experiment, experiment_names, load_experiment
from subspaces.reproduce.statistics import RATIO, Record, from_csv
from subspaces.reproduce.tables import TIMES, is_curve, markdown

REMARKS = HERE / "remarks.toml"
PAGE = "reproduction.md"
NEAR = 0.3
"""Points of a score that count as the same number."""
_HEAD = """\
| | compared numbers | median difference (ours − paper) | within 0.3 | inside our spread | AC of KTRR: ours | paper |
|---|---|---|---|---|---|---|
"""
_LARGE = 90
"""Rows above which a table is only linked."""


def write_page(settings: Settings, remarks: Path = REMARKS) -> Path:
    """Write the page beside the output folder from the results that are in it; returns its path."""
    words = tomllib.loads(remarks.read_text(encoding="utf-8"))
    page = settings.output.resolve().parent / PAGE
    link = os.path.relpath(settings.output.resolve(), page.parent)
    parts = [f"# The paper's tables and figures, ours beside theirs\n\n{words['introduction'].strip()}\n"]
    command = f"subspaces reproduce all --output {settings.output.as_posix()}"
    parts.append(f"subspaces {__version__}, code {CODE}. All of it: `{command}`.\n")
    sections, summary = [], []
    for name in experiment_names(settings.experiments):
        experiment = load_experiment(name, settings.experiments)
        if not experiment.paper:
            continue
        results = settings.output / f"{name}.csv"
        if not results.exists():
            sections.append(f"## {experiment.paper}: {experiment.title}\n\nNot run yet.\n")
            continue
        try:
            records = from_csv(results.read_text(encoding="utf-8"))
        except ValueError as error:
            raise FileError(results, f"{printable(error, 200)}; remove it and run the experiment again") from error
        summary.append(_summary_line(experiment, records))
        sections.append(_section(experiment, records, words.get(name, ""), link, settings.output))
    parts.append("## At a glance\n\n" + _HEAD + "\n".join(line for line in summary if line) + "\n")
    write_text(page, "\n".join([*parts, *sections]))
    return page


def _summary_line(experiment: Experiment, records: Sequence[Record]) -> str:
    """How near the paper an experiment came: the first cut, and the range of all runs of all cuts."""
    scores = [r for r in records if r.difference is not None and r.metric not in (*TIMES, RATIO)]
    if not scores:
        return ""
    places: dict[tuple[str, str, float | None, str], list[Record]] = {}
    for record in scores:
        places.setdefault((record.panel, record.row, record.x, record.metric), []).append(record)
    compared = [found[0] for found in places.values()]
    differences = sorted(r.difference for r in compared if r.difference is not None)
    near = sum(abs(value) <= NEAR for value in differences)
    inside = sum(_reaches(found) for found in places.values())
    own = [r for r in compared if r.row in ("KTRR", "EKTRR", "exp(−d²/σ²)") and r.metric == "AC"]
    ours, paper = "", ""
    if own and not is_curve(records):
        ours = " / ".join(f"{r.mean:.1f}" for r in own)
        paper = " / ".join(f"{r.paper:.1f}" for r in own)
    middle = differences[len(differences) // 2]
    return f"| {experiment.paper} | {len(differences)} | {middle:+.1f} | {near} | {inside} | {ours} | {paper} |"


def _reaches(found: Sequence[Record]) -> bool:
    """Whether the paper's number is in the range of our runs, all cuts of the graph together."""
    low = min(record.low for record in found if record.low is not None)
    high = max(record.high for record in found if record.high is not None)
    printed = found[0].paper
    return printed is not None and low - NEAR <= printed <= high + NEAR


def _section(experiment: Experiment, records: Sequence[Record], word: str, link: str, folder: Path) -> str:
    """Title, what was done, the figure, the tables, the honest word."""
    name = experiment.name
    lines = [f"## {experiment.paper}: {experiment.title}\n", f"{experiment.note} {origin(experiment)}\n"]
    if (folder / f"{name}.png").exists():
        lines.append(f"![{experiment.title}]({link}/{name}.png)\n")
    lines.append(word.strip() + "\n")
    table = markdown(experiment, records)
    if table.count("\n|") <= _LARGE:
        lines.append(table)
    lines.append(f"All numbers: [csv]({link}/{name}.csv)\n")
    return "\n".join(line for line in lines if line.strip())
