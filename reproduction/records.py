"""Results of cells → records: mean, spread, best, significance, the paper's number beside each; choices of a grid."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from reproduction.cells import Outcome, Result
from reproduction.plan import DRAWN, HERE, Experiment, Planned, names_of, read_chosen
from subspaces.metrics import PAPER_SCORES
from subspaces.metrics.significance import LEVEL, rank_sum
from subspaces.utils.atomic import write_text
from subspaces.utils.spelling import counted

RATIO = "t2 / KTRR"
CLOCKS = ("t1", "t2", "seconds")
"""Metrics that are times: less is better, and no two are equal."""


@dataclass
class Record:
    """One number of a table or figure, ours and the paper's; a row of the CSV file.

    `x` is the place along a curve, `cut` which of several cuts of the same graph; `sd` divides by n − 1, as the
    paper's program does; `distinct` are the runs that differ in any score, 0 if unknown. `best`: the best mean of its
    panel. `p`: of Wilcoxon's rank-sum test of a rival against the paper's method, the first row, on the runs that
    differ; None where so few cannot show a difference. `dagger`: the paper's method differs at 0.05 from every rival
    the paper has. `mark`: how the protocol is smaller than the paper's.
    """

    panel: str
    row: str
    x: float | None
    cut: str
    metric: str
    mean: float | None = None
    sd: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    paper: float | None = None
    paper_sd: float | None = None
    difference: float | None = None
    best: bool = False
    dagger: bool = False
    mark: str = ""
    setting: str = ""
    distinct: int = 0
    p: float | None = None


@dataclass
class Run:
    """What a finished experiment has to say."""

    experiment: Experiment
    planned: list[Planned]
    outcome: Outcome
    records: list[Record]


def distinct(records: Sequence[Record], name: str) -> list[str]:
    """List every panel, row, cut or metric of the records once, in order."""
    return list(dict.fromkeys(getattr(record, name) for record in records))


def is_curve(records: Sequence[Record]) -> bool:
    """Tell whether the records lie along an axis."""
    return any(record.x is not None for record in records)


def make_records(
    experiment: Experiment, planned: Sequence[Planned], outcome: Outcome, home: Path = HERE
) -> list[Record]:
    """Return everything an experiment found, in the order of its plan, joined with what the paper printed."""
    paper = read_paper(experiment.name, home)
    places: dict[tuple[str, str, float | None], list[Planned]] = {}
    for item in planned:
        places.setdefault((item.panel, item.row, item.x), []).append(item)
    records: list[Record] = []
    samples: dict[int, list[float]] = {}
    for (panel, row, x), (first, *_) in places.items():
        results = [found for item in places[panel, row, x] if (found := outcome.result(item.cell)) is not None]
        cuts = list(dict.fromkeys(how["name"] for item in places[panel, row, x] for how in item.cell["cuts"]))
        for cut in cuts:
            fresh = _first_of_equals(results, cut)
            for metric in experiment.metrics:
                values = _values(results, cut, metric)
                record = Record(panel, row, x, cut, metric, setting=first.method)
                _fill(record, values, *paper.get((panel, row, x, metric), (None, None)))
                if record.n and cut == cuts[0]:
                    few = [counted(record.n, "run")] if record.n < first.runs else []
                    record.mark = ", ".join([*few, *[first.short] * bool(first.short)])
                records.append(record)
                samples[id(record)] = values if metric in CLOCKS else [values[i] for i in fresh if i < len(values)]
                record.distinct = len(samples[id(record)])
    _mark_best(records)
    _test(records, samples, experiment.tested)
    _fill_ratios(records)
    return records


def _first_of_equals(results: Sequence[Result], cut: str) -> list[int]:
    """Find the runs that differ in any score from all before them: a clustering found twice is no second sign."""
    runs: dict[tuple[float, ...], int] = {}
    columns = [_values(results, cut, metric) for metric in PAPER_SCORES]
    for place, scores in enumerate(zip(*filter(None, columns), strict=False)):
        runs.setdefault(scores, place)
    return list(runs.values())


def _values(results: Sequence[Result], cut: str, metric: str) -> list[float]:
    """Return all runs of all draws; times are per cell, not per cut."""
    if metric in ("t1", "t2"):
        return [result[metric] for result in results if metric in result]
    return [value for result in results for value in result["scores"].get(cut, {}).get(metric, [])]


def _fill(record: Record, values: Sequence[float], paper: float | None, paper_sd: float | None) -> None:
    if values:
        record.mean, record.sd = float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        record.low, record.high, record.n = min(values), max(values), len(values)
    record.paper, record.paper_sd = paper, paper_sd
    record.difference = None if record.mean is None or paper is None else record.mean - paper


def _fill_ratios(records: Sequence[Record]) -> None:
    """Fill the metric ``t2 / KTRR``: times as multiples of the first row's, ours and the paper's."""
    times = {(record.panel, record.row): record for record in records if record.metric == "t2"}
    for record in records:
        if record.metric == RATIO:
            own = times[record.panel, record.row]
            first = next(other for (panel, _), other in times.items() if panel == record.panel)
            ours, paper = (
                (a / b if a is not None and b else None) for a, b in ((own.mean, first.mean), (own.paper, first.paper))
            )
            record.mean, record.n, record.paper = ours, int(ours is not None), paper
            record.difference = None if ours is None or paper is None else ours - paper


def _mark_best(records: Sequence[Record]) -> None:
    groups: dict[Any, list[Record]] = {}
    for record in records:
        if record.mean is not None:
            cut = None if record.x is None else record.cut  # rows of a table have one cut each, whatever its name
            groups.setdefault((record.panel, record.x, cut, record.metric), []).append(record)
    for group in groups.values():
        wanted = (min if group[0].metric in CLOCKS else max)(record.mean for record in group if record.mean is not None)
        for record in group:
            record.best = len(group) > 1 and record.mean == wanted


def _test(records: Sequence[Record], samples: Mapping[int, Sequence[float]], metrics: Sequence[str]) -> None:
    """Do the paper's test: its method, the first row of each panel, against every rival it has, in these metrics."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.metric in metrics and record.x is None and record.paper is not None:
            groups.setdefault((record.panel, record.metric), []).append(record)
    for own, *rivals in groups.values():
        for rival in rivals:
            first, second = samples[id(own)], samples[id(rival)]
            # so few runs cannot show a difference, whatever their scores are
            if first and second and 2 / comb(len(first) + len(second), len(first)) < LEVEL:
                rival.p = rank_sum(first, second).pvalue
        own.dagger = bool(rivals) and all(rival.p is not None and rival.p < LEVEL for rival in rivals)


# ------------------------------------------------------------------ CSV files


def read_paper(
    name: str, home: Path = HERE
) -> dict[tuple[str, str, float | None, str], tuple[float | None, float | None]]:
    """Read the published numbers of an experiment by panel, row, x and metric; empty if there is no file."""
    path = home / "paper" / f"{name}.csv"
    lines = _lines(path.read_text(encoding="utf-8"), "x mean sd") if path.exists() else []
    return {(line["panel"], line["row"], line["x"], line["metric"]): (line["mean"], line["sd"]) for line in lines}


def to_csv(records: Sequence[Record]) -> str:
    """Write records as CSV, numbers with six digits."""
    return pd.DataFrame([asdict(record) for record in records]).to_csv(index=False, float_format="%.6g")


def from_csv(text: str) -> list[Record]:
    """Read records from the text of `to_csv`."""
    numbers = [item.name for item in fields(Record) if item.type == "float | None"]
    return [Record(**line) for line in _lines(text, " ".join(numbers))]


def _lines(text: str, numbers: str) -> list[dict[str, Any]]:
    """Read a CSV file; None for the numbers that are not there."""
    strings = dict.fromkeys(("panel", "row", "cut", "mark", "setting"), str)
    missing = {name: [""] for name in numbers.split()}
    table = pd.read_csv(io.StringIO(text), dtype=strings, keep_default_na=False, na_values=missing)
    return table.astype(object).where(table.notna(), None).to_dict("records")


# ------------------------------------------------------------------ settings chosen from a grid

_HEAD = """\
# Written by `python -m reproduction grid`: the best setting of each row's grid for each data set, and how it was found.
"""


def choose(planned: Sequence[Planned], records: Sequence[Record]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the best setting by mean accuracy of every row and data set whose grid is whole."""
    means = {(r.panel, r.row): r for r in records if r.metric == "AC"}
    grids: dict[tuple[str, str], dict[str, list[Planned]]] = {}
    for item in planned:
        data = names_of(item.cell["points"])[0]
        grids.setdefault((item.key, data), {}).setdefault(item.row, []).append(item)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for (row, data), places in grids.items():
        of_row = {label: means[items[0].panel, label] for label, items in places.items()}
        whole = {record.n for record in of_row.values()}
        if len(whole) != 1 or 0 in whole:  # settings are compared on the same draws or not at all
            continue
        best = max(of_row, key=lambda label: of_row[label].mean or 0.0)
        points = [item.cell["points"] for item in places[best]]
        draws = sorted({each[key] for each in points for key in DRAWN.values() if key in each})[: whole.pop()]
        on = f"draw{'s' * (len(draws) > 1)} {', '.join(map(str, draws))}" if draws else "the points reported"
        accuracy, setting = round(of_row[best].mean or 0.0, 2), places[best][0].setting
        found.setdefault(row, {})[data] = {"tried": len(places), "on": on, "accuracy": accuracy, "setting": setting}
    return found


def write_chosen(path: Path, earlier: Path, planned: Sequence[Planned], records: Sequence[Record]) -> None:
    """Keep what was chosen; rows and data whose grid is not whole keep what an earlier file says."""
    kept = read_chosen(earlier)
    for row, by_data in choose(planned, records).items():
        kept[row] = {**kept.get(row, {}), **by_data}
    lines = [_HEAD]
    for row, by_data in kept.items():
        for data, choice in by_data.items():
            lines += [f"[{row}.{data}]", *(f"{name} = {_toml(value)}" for name, value in choice.items()), ""]
    write_text(path, "\n".join(lines))


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{name} = {_toml(each)}" for name, each in value.items()) + " }"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else repr(value)
