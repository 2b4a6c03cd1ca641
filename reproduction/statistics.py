"""Results of cells → records: mean, spread, best, significance, and the paper's number beside each."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.entries import Result
from reproduction.runner import Outcome
from reproduction.schedule import HERE, OWN, QUICK, Experiment, Planned
from subspaces.io.dataset import printable
from subspaces.metrics import PAPER_SCORES
from subspaces.significance import LEVEL, rank_sum
from subspaces.spelling import counted

RATIO = "t2 / KTRR"
CLOCKS = ("t1", "t2", "seconds")
"""Metrics that are times: less is better, and no two are equal."""
PAPER = HERE / "paper"


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


Key = tuple[str, str, float | None, str]


def make_records(experiment: Experiment, planned: Sequence[Planned], outcome: Outcome) -> list[Record]:
    """Everything an experiment found, in the order of its plan, joined with what the paper printed."""
    paper = read_paper(experiment.name.removesuffix(QUICK).removesuffix(OWN))
    places: dict[tuple[str, str, float | None], list[Planned]] = {}
    for item in planned:
        places.setdefault((item.panel, item.row, item.x), []).append(item)
    records: list[Record] = []
    samples: dict[int, list[float]] = {}
    for (panel, row, x), items in places.items():
        setting = setting_of(items[0])
        cuts = list(dict.fromkeys(how["name"] for item in items for how in item.cell["cuts"]))
        results = [result for item in items if (result := outcome.result(item.cell)) is not None]
        for cut in cuts:
            fresh = _first_of_equals(results, cut)
            for metric in experiment.metrics:
                values = _values(results, cut, metric)
                record = Record(panel, row, x, cut, metric, setting=setting)
                _fill(record, values, paper.get((panel, row, x, metric)))
                record.mark = _mark(items[0], record.n) if cut == cuts[0] else ""
                records.append(record)
                samples[id(record)] = values if metric in CLOCKS else [values[i] for i in fresh if i < len(values)]
                record.distinct = len(samples[id(record)])
    _mark_best(records, experiment.best)
    _test(records, samples, experiment.tested)
    _fill_ratios(records)
    return records


def setting_of(item: Planned) -> str:
    """The method and parameters of a cell as text."""
    parameters = ", ".join(f"{name}={value}" for name, value in item.cell["parameters"].items())
    return f"{item.cell['method']}({parameters})"


def _mark(item: Planned, n: int) -> str:
    """How a row's runs are fewer than the paper's, or its starts of k-means."""
    return ", ".join([*[counted(n, "run")] * (0 < n < item.runs), *[item.short] * bool(n and item.short)])


def _first_of_equals(results: Sequence[Result], cut: str) -> list[int]:
    """Places of the runs that differ in any score from all before them: a clustering found twice is no second sign."""
    runs: dict[tuple[float, ...], int] = {}
    columns = [_values(results, cut, metric) for metric in PAPER_SCORES]
    for place, scores in enumerate(zip(*filter(None, columns), strict=False)):
        runs.setdefault(scores, place)
    return list(runs.values())


def _values(results: Sequence[Result], cut: str, metric: str) -> list[float]:
    """All runs of all draws; times are per cell, not per cut."""
    if metric in ("t1", "t2"):
        return [result[metric] for result in results if metric in result]
    return [value for result in results for value in result["scores"].get(cut, {}).get(metric, [])]


def _fill(record: Record, values: Sequence[float], printed: tuple[float, float | None] | None) -> None:
    if values:
        record.mean, record.sd = float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        record.low, record.high, record.n = float(np.min(values)), float(np.max(values)), len(values)
    if printed is not None:
        record.paper, record.paper_sd = printed
        if record.mean is not None:
            record.difference = record.mean - printed[0]


def _fill_ratios(records: Sequence[Record]) -> None:
    """The metric ``t2 / KTRR``: times as multiples of the first row's, ours and the paper's."""
    times = {(record.panel, record.row): record for record in records if record.metric == "t2"}
    for record in records:
        if record.metric == RATIO:
            own = times[record.panel, record.row]
            first = next(other for (panel, _), other in times.items() if panel == record.panel)
            if own.mean is not None and first.mean:
                record.mean, record.n = own.mean / first.mean, 1
            if own.paper is not None and first.paper:
                record.paper = own.paper / first.paper
            if record.mean is not None and record.paper is not None:
                record.difference = record.mean - record.paper


def _mark_best(records: Sequence[Record], best: str) -> None:
    groups: dict[Any, list[Record]] = {}
    for record in records:
        if record.mean is not None:
            cut = None if record.x is None else record.cut  # rows of a table have one cut each, whatever its name
            groups.setdefault((record.panel, record.x, cut, record.metric), []).append(record)
    for group in groups.values():
        if len(group) < 2:
            continue
        least = best == "min" or group[0].metric in CLOCKS
        wanted = (min if least else max)(record.mean for record in group if record.mean is not None)
        for record in group:
            record.best = record.mean == wanted


def _test(records: Sequence[Record], samples: Mapping[int, Sequence[float]], metrics: Sequence[str]) -> None:
    """The paper's test: its method, the first row of each panel, against every rival it has, in these metrics."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.metric in metrics and record.x is None and record.paper is not None:
            groups.setdefault((record.panel, record.metric), []).append(record)
    for own, *rivals in groups.values():
        for rival in rivals:
            ours, theirs = samples[id(own)], samples[id(rival)]
            if ours and theirs and 2 / comb(len(ours) + len(theirs), len(ours)) < LEVEL:
                rival.p = rank_sum(ours, theirs).pvalue
        own.dagger = bool(rivals) and all(rival.p is not None and rival.p < LEVEL for rival in rivals)


def read_paper(name: str, folder: Path = PAPER) -> dict[Key, tuple[float, float | None]]:
    """The published numbers of an experiment by panel, row, x and metric; empty if there is no file."""
    path = folder / f"{name}.csv"
    if not path.exists():
        return {}
    found: dict[Key, tuple[float, float | None]] = {}
    for line in csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))):
        key = (line["panel"], line["row"], _number(line["x"]), line["metric"])
        mean = _number(line["mean"])
        assert mean is not None
        found[key] = (mean, _number(line["sd"]))
    return found


def to_csv(records: Sequence[Record]) -> str:
    """Records as CSV, numbers with four decimals."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [item.name for item in fields(Record)], lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({name: _text(value) for name, value in asdict(record).items()})
    return text.getvalue()


def from_csv(text: str) -> list[Record]:
    """Records from :func:`to_csv`'s text; ValueError for any other text."""
    numbers = ("x", "mean", "sd", "low", "high", "paper", "paper_sd", "difference", "p")
    records = []
    try:
        for line in csv.DictReader(io.StringIO(text)):
            values: dict[str, Any] = {name: _number(line[name]) if name in numbers else line[name] for name in line}
            values |= {"n": int(line["n"]), "distinct": int(line["distinct"])}
            values |= {"best": line["best"] == "True", "dagger": line["dagger"] == "True"}
            records.append(Record(**values))
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise ValueError(f"not a table of results ({printable(error, 120)})") from error
    return records


def _text(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.10g}" if value == int(value) else f"{value:.6g}"
    return "" if value is None else value


def _number(text: str) -> float | None:
    return float(text) if text else None
