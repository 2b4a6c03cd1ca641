"""All results → one page: a report, then every table and figure, ours beside the paper's.

Every sentence with a number is computed here or in `claims`; words that hold whatever the results are stand in
remarks.toml.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from reproduction import plan as planning
from reproduction.cells import CODE
from reproduction.claims import METHODS, SETS, Judged, Verdict, judge
from reproduction.how import by_labels, made, searched
from reproduction.how import setting as how_chosen
from reproduction.plan import GRID, SEARCH, Experiment, Rows
from reproduction.records import CLOCKS, RATIO, Record, distinct, from_csv, is_curve
from reproduction.run import Settings, progress
from reproduction.tables import markdown
from subspaces import __version__
from subspaces.app.files import FileError
from subspaces.metrics.tables import Cell, Table
from subspaces.utils.atomic import write_text
from subspaces.utils.spelling import counted

PAGE = "reproduction.md"
EARLIER = (
    "These numbers are of an earlier, smaller run whose single runs were not kept, so nothing is tested here; what is "
    "said above about draws, runs, starts and threads is what is run now."
)
LARGE, LONGEST = 90, 220
"""Rows above which a table is only linked; characters of figures in a line of the table of claims."""
NEAR, BELOW = 0.3, 1.0
"""Points of a score that count as the same number; points below the paper that are worth a reason."""
BESIDE = ("KTRR, modularity", "KTRR, automatic")
"""Rows of Tables 3 to 6 that the paper has not."""
OWN = ("KTRR", "EKTRR", "exp(−d²/σ²)")
"""The paper's method, whatever a table calls it."""


class Page(NamedTuple):
    """What the page is made from: experiments, results, words, cells (all, kept, minutes); the rows."""

    experiments: dict[str, Experiment]
    results: dict[str, list[Record]]
    words: dict[str, Any]
    cells: dict[str, tuple[int, int, float]]
    rows: Rows


def write_page(settings: Settings) -> Path:
    """Write the page beside the output folder from the results that are in it; returns its path."""
    path = settings.output.resolve().parent / PAGE
    words = tomllib.loads((settings.home / "remarks.toml").read_text(encoding="utf-8"))
    names = planning.experiment_names(settings.home)
    experiments = {name: planning.load_experiment(name, settings.home) for name in names}
    results = {name: _read(file) for name in names if (file := settings.output / f"{name}.csv").exists()}
    parts = [f"# The paper's tables and figures, ours beside theirs\n\n{words['introduction'].strip()}\n"]
    if not results:
        parts.append("Nothing has been run yet.\n")
    else:
        rows = planning.load_parameters(settings.home, settings.chosen)
        cells = {name: progress(each, settings) for name, each in experiments.items()}
        page = Page(experiments, results, words, cells, rows)
        parts.append(_report(page))
        parts.append(f"## How to read it\n\n{words['reading'].strip()}\n\nsubspaces {__version__}, code {CODE}.\n")
        for name, experiment in experiments.items():
            if name in results:
                said = [words.get("words", {}).get(name, ""), *findings(experiment, results[name])]
                said += [EARLIER] * (not cells[name][1])
                lines = made(experiment, rows, planning.read_chosen(settings.chosen))
                parts.append(_section(page, name, said, lines, settings.output.resolve()))
            elif experiment.paper:
                parts.append(f"## {experiment.heading}\n\nNot run yet.\n")
        parts.append(_sentences())
    write_text(path, "\n".join(parts))
    return path


def _sentences() -> str:
    """Write where the sentences of the paper's text stand in the code."""
    found = tomllib.loads((planning.HERE / "sentences.toml").read_text(encoding="utf-8"))["sentences"]
    lines = ["where | what the paper says | in the code | what to know", "--- | --- | --- | ---"]
    for where, text, names, note in found:
        code = ", ".join(f"`{name}`" for name in names) or "nothing"
        lines.append(f"{where} | {text.replace('|', '&#124;')} | {code} | {note}")
    table = "\n".join(f"| {line} |" for line in lines)
    return f"## The paper's text, sentence by sentence\n\n{table}\n"


def _read(results: Path) -> list[Record]:
    try:
        return from_csv(results.read_text(encoding="utf-8"))
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(results, f"not a table of results ({error}); remove it and run the experiment again") from error


def _section(page: Page, name: str, said: Sequence[str], how: Iterable[str], folder: Path) -> str:
    """Write title, what was done, the figure, what it says, the tables, how their rows were made."""
    experiment, records = page.experiments[name], page.results[name]
    link = f"{os.path.relpath(folder, folder.parent)}/{name}"
    lines = [f"## {experiment.heading}\n", f"{experiment.note} {experiment.origin}\n"]
    if (folder / f"{name}.{experiment.picture}").exists():
        lines.append(f"![{experiment.title}]({link}.{experiment.picture})\n")
    lines += [f"{text.strip()}\n" for text in said if text.strip()]
    grid, tried = page.experiments.get(GRID), {}
    if grid is not None and experiment.tested and experiment.metrics[0] == "AC":
        tried = by_labels(experiment, page.rows, grid, page.results.get(GRID, []))
    table = markdown(experiment, records, tried)
    if table.count("\n|") <= LARGE:
        lines.append(table)
    lines += [f"{line}\n" for line in how]
    return "\n".join([*lines, f"All numbers: [csv]({link}.csv)\n"])


# ------------------------------------------------------------------ the report


def _report(page: Page) -> str:
    """Say what was run, what reproduces and what does not, counted from the results."""
    judged, below = list(judge(page.results)), list(_rows_below(page))
    glance = [line for name in page.results if (line := _summary(page.experiments[name], page.results[name]))]
    scores = "median difference (ours − paper) | within 0.3 | inside our spread | AC of KTRR: ours | paper"
    parts = [
        "## In five minutes",
        "**What was run.** " + _ran(page),
        "**What holds.** " + _agrees(judged, page),
        "**What does not.** " + _fails(judged, len(below), page),
        "**What to believe about KTRR.** " + " ".join([*_believed(page), page.words.get("believe", "").strip()]),
        f"**What the paper leaves open.**\n\n{page.words['open'].strip()}",
        f"**Try it.**\n\n{page.words['commands'].strip()}",
    ]
    if wide := list(_searches(page)):
        head = "where | the paper | reported: accuracy | setting | searched with labels: accuracy | setting | "
        head += "settings tried | within a point of the best | why they differ"
        parts += ["### KTRR at its best", page.words.get("searches", "").strip(), _table(head, wide)]
    parts += [
        "### Cells run and left",
        _table(" | cells of the whole protocol | done and kept | left | CPU minutes spent", _status(page)),
        "### At a glance",
        _table(f" | compared numbers | {scores}", glance),
        "### Every claim, judged",
        _table("where | what the paper says | by its own numbers | by ours | our figures", map(_claim, judged)),
    ]
    if below:
        head = "where | row | ours | paper | what is known"
        parts += ["### Accuracies more than a point below the paper", _table(head, below)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _searches(page: Page) -> Iterator[tuple[object, ...]]:
    """Yield where KTRR is below the paper: the number reported, and what a search with labels reaches."""
    search = page.experiments.get(SEARCH)
    places = {panel["name"]: panel["compared"] for panel in search.panels} if search else {}
    for best, setting, n_settings, near in searched(search, page.rows, page.results.get(SEARCH, [])) if search else ():
        table, panel, row, *x = places[best.panel]
        key = panel, row, "AC", x[0] if x else None
        own = next(r for r in page.results[table] if (r.panel, r.row, r.metric, r.x) == key)
        if (own.difference or 0.0) < -BELOW:
            planned = planning.plan(page.experiments[table], page.rows)
            made_by = how_chosen(next(item for item in planned if (item.panel, item.row) == (panel, row)))
            ours = f"{own.mean:.1f}", made_by, f"{best.mean:.1f}", setting, n_settings, near
            yield best.panel, f"{own.paper:.1f}", *ours, page.words["searched"][best.panel]


def _accuracies(page: Page) -> dict[str, pd.DataFrame]:
    """Return the accuracies of Tables 3 to 6 by row and data set, ours (mean) and the paper's."""
    tables = [records for name, records in page.results.items() if page.experiments[name].tested]
    found = [r for records in tables for r in records if r.metric == "AC" and r.panel in SETS and r.mean is not None]
    numbers = pd.DataFrame([vars(r) for r in found], columns=["panel", "row", "mean", "paper"])
    return {side: numbers.pivot(index="row", columns="panel", values=side) for side in ("mean", "paper")}


def _believed(page: Page) -> Iterator[str]:
    """Say where KTRR stands among the paper's thirteen methods, and what its rivals gained."""
    every, paper = _accuracies(page).values()
    if not {*METHODS, *BESIDE} <= set(every.index) or len(every.columns) < len(SETS):
        return
    ours = every.loc[list(METHODS)]
    ranks = ours.rank(ascending=False)
    best = ranks.mean(axis=1).sort_values().head(4)
    order = ", ".join(f"{row} {value:.1f}" for row, value in best.items())
    yield f"Its places by accuracy among the paper's thirteen methods: {_by_set(ranks.loc['KTRR'], '.0f')}."
    yield f"The best mean places: {order}."
    gains = (ours - paper.loc[list(METHODS)]).drop("KTRR").stack()
    yield (
        f"With twelve settings each, its rivals are in the middle {gains.median():.1f} points above what the paper "
        f"prints for them, and over 5 points in {(gains > 5).sum()} of {len(gains)} places; KTRR itself is "
        f"{(every - paper).loc['KTRR'].median():.1f} above."
    )
    gained = {"the kernel (KTRR over TRR)": ("KTRR", "TRR"), "the truncation (TRR over LSR1)": ("TRR", "LSR1")}
    gained |= {f"{row} (over KTRR)": (row, "KTRR") for row in BESIDE}
    parts = [f"{what} {_by_set(every.loc[a] - every.loc[b], '+.1f')}" for what, (a, b) in gained.items()]
    yield f"Points of accuracy that each part is worth: {'; '.join(parts)}."


def _by_set(values: pd.Series[float], form: str) -> str:
    return ", ".join(f"{panel} {values[panel]:{form}}" for panel in SETS)


def _table(head: str, rows: Iterable[Sequence[object]]) -> str:
    cells = [[cell if isinstance(cell, Cell) else str(cell) for cell in row] for row in rows]
    return Table(head.split(" | "), cells).to_markdown()


def _ran(page: Page) -> str:
    cells, kept, minutes = (sum(each[i] for each in page.cells.values()) for i in range(3))
    whole = [(name, r) for name, records in page.results.items() if page.experiments[name].full for r in records]
    marked = {(name, r.panel, r.row) for name, r in whole if r.mark}
    every = {(name, r.panel, r.row) for name, r in whole if r.mean is not None}
    daggers = counted(sum(r.dagger for _, r in whole), "number")
    return (
        f"{kept} of {cells} cells of the whole protocol are done and kept, {minutes / 60:.2f} CPU hours. ‡ (less than "
        f"the paper's protocol) is on {len(marked)} of {len(every)} rows and curves, † on {daggers}."
    )


def _agrees(judged: Sequence[Judged], page: Page) -> str:
    reached: list[str] = []
    missed: list[str] = []
    for name, records in page.results.items():
        for r in _own_accuracies(records):
            told = f"{page.experiments[name].paper} {r.panel} ({r.mean:.1f}, printed {r.paper:.1f})"
            (missed if (r.difference or 0) < -BELOW else reached).append(told)
    held = sum(each.ours is not None and each.ours.holds for each in judged)
    unknown = sum(each.ours is None for each in judged)
    own = [each.paper for each in judged if each.paper is not None]
    return (
        f"The paper's method reaches its printed accuracy, or is within a point of it, in {len(reached)} of "
        f"{counted(len(reached) + len(missed), 'place')}: {', '.join(reached)}"
        + (f"; not in {', '.join(missed)}. " if missed else ". ")
        + f"Of {len(judged)} statements in the paper's text {held} hold in our runs and {unknown} cannot be judged by "
        f"what has been run. Of the {len(own)} that its own printed numbers can judge, "
        f"{sum(not verdict.holds for verdict in own)} fail."
    )


def _own_accuracies(records: Sequence[Record]) -> list[Record]:
    """List the accuracies of the paper's method that it prints, curves apart."""
    return [r for r in records if r.row in OWN and r.metric == "AC" and r.x is None and r.difference is not None]


def _fails(judged: Sequence[Judged], n_below: int, page: Page) -> str:
    failed = [each for each in judged if each.ours is not None and not each.ours.holds]
    best = [each.where for each in failed if "is the best in all four scores" in each.text]
    text = f"{len(failed)} statements fail in our runs"
    text += f", among them that KTRR is the best in {', '.join(best)}" * bool(best)
    ahead = []
    ours = _accuracies(page)["mean"]
    for panel, column in ours[ours.index.isin(METHODS)].items():
        better = column[column > column.get("KTRR", 100)].sort_values(ascending=False)
        names = ", ".join(f"{row} {value:.1f}" for row, value in better.items())
        ahead += [f"{panel} {names} (KTRR {column['KTRR']:.1f})"] if names else []
    text += f". Ahead of KTRR: {'; '.join(ahead)}" * bool(ahead)
    return f"{text}. {n_below} accuracies are more than a point below the paper. Every one is listed below."


def _status(page: Page) -> Iterator[tuple[object, ...]]:
    for name, (cells, kept, minutes) in page.cells.items():
        earlier = " (the numbers below are of an earlier, smaller run)" if name in page.results and not kept else ""
        yield page.experiments[name].paper or name, cells, f"{kept}{earlier}", cells - kept, f"{minutes:.1f}"


def _claim(each: Judged) -> tuple[str | Cell, ...]:
    def word(verdict: Verdict | None, figures: str = "") -> Cell:
        fails = verdict is not None and not verdict.holds
        return Cell("–" if verdict is None else "fails" if fails else "holds", bold=fails, mark=figures)

    figures = each.ours.figures if each.ours is not None else "cannot be judged by what has been run"
    if not each.tested:
        figures = "no experiment of the paper or ours is about it"
    shown = figures if len(figures) <= LONGEST else figures[:LONGEST].rsplit(" ", 1)[0] + " …"
    own = f": {each.paper.figures[:LONGEST]}" if each.paper is not None and not each.paper.holds else ""
    return each.where, each.text, word(each.paper, own), word(each.ours), shown


def _rows_below(page: Page) -> Iterator[tuple[str, ...]]:
    """Yield rows of tables and bars below the paper with the reason, as far as it is known.

    Reasons are kept by experiment, panel and row, by row, by experiment, or for any.
    """
    reasons = page.words["reasons"]
    for name, records in page.results.items():
        for r in [] if is_curve(records) else _below_paper(records):
            known = (reasons.get(key) for key in (f"{name}, {r.panel}, {r.row}", r.row, name))
            reason = next(filter(None, known), reasons["any"])
            yield f"{page.experiments[name].paper}, {r.panel}", r.row, f"{r.mean:.1f}", f"{r.paper:.1f}", reason


def _below_paper(records: Sequence[Record]) -> list[Record]:
    """List accuracies that are more than a sample below the printed ones."""
    return [r for r in records if r.metric == "AC" and r.difference is not None and r.difference < -BELOW]


def _summary(experiment: Experiment, records: Sequence[Record]) -> tuple[object, ...]:
    """Return one line of the table at a glance; empty where no score is compared."""
    places = _compared(records, (*CLOCKS, RATIO))
    if not places or experiment.printed != "paper":
        return ()
    differences = sorted(found[0].difference or 0.0 for found in places)
    own = _own_accuracies(records)
    ours, paper = (" / ".join(f"{getattr(r, side):.1f}" for r in own) for side in ("mean", "paper"))
    middle = f"{differences[len(differences) // 2]:+.1f}"
    return experiment.paper, len(places), middle, *_agreement(places), ours, paper


def _compared(records: Sequence[Record], skip: Sequence[str]) -> list[list[Record]]:
    """Group the records by places where both have a number, metrics to skip left out: those of all cuts of each."""
    places: dict[object, list[Record]] = {}
    for r in records:
        if r.difference is not None and r.low is not None and r.metric not in skip:
            places.setdefault((r.panel, r.row, r.metric, r.x), []).append(r)
    return list(places.values())


def _agreement(places: Sequence[Sequence[Record]]) -> tuple[int, int]:
    """Count the places that are near the paper, and those where its number is in the range of our runs of all cuts."""
    inside = 0
    for found in places:
        low, high = min(r.low or 0.0 for r in found), max(r.high or 0.0 for r in found)
        inside += low - NEAR <= (found[0].paper or 0.0) <= high + NEAR
    return sum(abs(found[0].difference or 0.0) <= NEAR for found in places), inside


# ------------------------------------------------------------------ sentences about one experiment


def findings(experiment: Experiment, records: Sequence[Record]) -> list[str]:
    """Say what the records of an experiment show; nothing where nothing can be compared."""
    if is_curve(records):
        return list(_about_curves(records))
    if experiment.printed != "paper":
        return list(_about_published(records))
    return list(_about_times(records))


def _about_published(records: Sequence[Record]) -> Iterator[str]:
    """Say how many of the figures that authors published are reached, and name the others."""
    both = [r for r in records if r.metric == "AC" and r.difference is not None]
    short = [f"{r.row} on {r.panel} ({r.mean:.1f}, published {r.paper:.1f})" for r in _below_paper(both)]
    if both:
        text = f"Of {counted(len(both), 'published figure')} {len(both) - len(short)} are reached, to a point, "
        yield text + "some with settings picked for it (see above)" + f"; not {', '.join(short)}" * bool(short) + "."


def _about_curves(records: Sequence[Record]) -> Iterator[str]:
    """Say how many numbers agree, and where they are farthest apart."""
    for panel in distinct(records, "panel"):
        places = _compared([record for record in records if record.panel == panel], CLOCKS)
        if places:
            first = [found[0] for found in places]
            near, inside = _agreement(places)
            far = max(first, key=lambda r: abs(r.difference or 0))
            below = sum((r.difference or 0) < -BELOW for r in first)
            yield (
                f"{panel}: of {counted(len(first), 'number')} {near} are within {NEAR:g} of the paper, {inside} in the "
                f"range of our runs, {below} more than a point below it. Farthest: {far.row} at {far.x:g}, "
                f"{far.metric} {far.mean:.1f} against {far.paper:.1f}."
            )


def _about_times(records: Sequence[Record]) -> Iterator[str]:
    """Say how many times faster than printed, and the outcome of the paper's test of KTRR against TRR."""
    for metric in ("t1", "t2"):
        both = [r for r in records if r.metric == metric and r.mean and r.paper]
        if both:
            gains = sorted((r.paper or 0) / (r.mean or 1) for r in both)
            slower = [f"{r.row} on {r.panel}" for r in both if (r.paper or 0) < (r.mean or 0)]
            text = f"{metric}: the paper's seconds are {gains[0]:.2g} to {gains[-1]:.4g} times ours"
            yield text + f"; ours are longer for {', '.join(slower)}" * bool(slower) + "."
    tests = ", ".join(f"{r.panel} {r.metric} {r.p:.2g}" for r in records if r.row == "TRR" and r.p is not None)
    if tests:
        yield f"KTRR against TRR by the rank-sum test, p: {tests}."
