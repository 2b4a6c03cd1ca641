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
from reproduction.claims import METHODS, RIVALS, SETS, Judged, Verdict, judge
from reproduction.how import by_labels, made, of_runs, searched, told, values
from reproduction.plan import GRID, SEARCH, Experiment, Rows
from reproduction.records import CLOCKS, RATIO, Record, distinct, from_csv, is_curve
from reproduction.run import Progress, Settings, progress
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
    """What the page is made from: experiments, results, words, cells; the rows."""

    experiments: dict[str, Experiment]
    results: dict[str, list[Record]]
    words: dict[str, Any]
    cells: dict[str, Progress]
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
                compared = _about_times if experiment.printed == "paper" else _about_published
                about = _about_curves if is_curve(results[name]) else compared
                said = [words.get("words", {}).get(name, ""), *about(results[name])]
                said += [EARLIER] * (not cells[name].n_done)
                how = [*made(experiment, rows, settings), *of_runs(experiment, rows, settings)]
                parts.append(_section(page, name, said, how, settings.output.resolve()))
            elif experiment.paper:
                parts.append(f"## {experiment.heading}\n\nNot run yet.\n")
        parts.append(_sentences())
    write_text(path, "\n".join(parts))
    return path


def _sentences() -> str:
    """Write where the sentences of the paper's text stand in the code."""
    found = tomllib.loads((planning.HERE / "sentences.toml").read_text(encoding="utf-8"))["sentences"]
    lines = ["| where | what the paper says | in the code | what to know |", "| --- | --- | --- | --- |"]
    for where, text, names, note in found:
        code = ", ".join(f"`{name}`" for name in names) or "nothing"
        lines.append(f"| {where} | {text.replace('|', '&#124;')} | {code} | {note} |")
    return "\n".join(["## The paper's text, sentence by sentence\n", *lines, ""])


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
    if grid is not None and experiment.style == "table":
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
    parts = [
        "## In five minutes",
        f"**What was run.** {_ran(page)}",
        _listed("What holds", _holds(judged, page)),
        _listed("What does not", _fails(judged, len(below), page)),
        _listed("What to believe about KTRR", [*_believed(page), *page.words.get("believe", [])]),
        _by_set(page),
        f"### What the paper leaves open\n\n{page.words['open'].strip()}",
        f"### Try it\n\n{page.words['commands'].strip()}",
    ]
    if wide := list(_searches(page)):
        head = "where | the paper | reported | its setting | best by labels | its setting | tried | why they differ"
        parts += ["### KTRR at its best", page.words.get("searches", "").strip(), _table(head, wide)]
    parts += [
        "### Cells run and left",
        _table(
            " | cells of the whole protocol | kept | left | CPU minutes | cells by commit and hash of the code",
            _status(page),
        ),
        "### At a glance",
        _table(" | compared numbers | median difference (ours − paper) | within 0.3 | inside our spread", glance),
        "### Every claim, judged",
        _table("where | what the paper says | by its own numbers | by ours | our figures", map(_claim, judged)),
    ]
    if below:
        head = "where | row | ours | paper | what is known"
        parts += ["### Accuracies more than a point below the paper", _table(head, below)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _table(head: str, rows: Iterable[Sequence[object]]) -> str:
    cells = [[cell if isinstance(cell, Cell) else str(cell) for cell in row] for row in rows]
    return Table(head.split(" | "), cells).to_markdown()


def _listed(title: str, items: Iterable[str]) -> str:
    return "\n".join([f"**{title}.**", "", *(f"- {item}" for item in items)])


def _ran(page: Page) -> str:
    cells, kept, minutes = (sum(getattr(each, name) for each in page.cells.values()) for name in Progress._fields[:3])
    whole = [(name, r) for name, records in page.results.items() if page.experiments[name].full for r in records]
    marked = {(name, r.panel, r.row) for name, r in whole if r.mark}
    every = {(name, r.panel, r.row) for name, r in whole if r.mean is not None}
    smaller = f"‡: {len(marked)} of {len(every)} rows and curves have" if marked else "No row has"
    daggers = counted(sum(r.dagger for _, r in whole), "number")
    return (
        f"{kept} of {cells} cells of the whole protocol, in {minutes / 60:.1f} CPU hours. {smaller} fewer runs or "
        f"starts than the paper's. †: the paper's method differs from all rivals in {daggers}."
    )


def _holds(judged: Sequence[Judged], page: Page) -> Iterator[str]:
    """Yield what agrees with the paper."""
    whole = [(page.experiments[name].paper, r) for name, found in page.results.items() for r in found]
    own = [(where, r) for where, r in whole if r.row in OWN and r.metric == "AC" and r.x is None and r.paper and r.mean]
    missed = [f"{where} {r.panel} ({r.mean:.1f}, printed {r.paper:.1f})" for where, r in own if _is_below(r)]
    text = f"KTRR reaches its printed accuracy, to a point, in {len(own) - len(missed)} of {counted(len(own), 'place')}"
    yield text + f"; not in {', '.join(missed)}" * bool(missed) + "."
    for name in ("fig4", "fig3"):
        if places := _compared(page.results.get(name, []), CLOCKS):
            near, inside = _agreement(places)
            text = f"The authors' program as we reconstructed it gives {near} of the {len(places)} numbers of "
            yield f"{text}{page.experiments[name].paper} to {NEAR:g}; {inside} lie in the range of our runs."
    held = sum(each.ours is not None and each.ours.holds for each in judged)
    unknown = sum(each.ours is None for each in judged)
    yield f"Of {len(judged)} statements in the text {held} hold in our runs; {unknown} cannot be judged by them."


def _fails(judged: Sequence[Judged], n_below: int, page: Page) -> Iterator[str]:
    """Yield what does not agree."""
    ours, paper = _accuracies(page)
    ahead = []
    for panel, column in ours[ours.index.isin(METHODS)].items():
        better = column[column > column.get("KTRR", 100)].sort_values(ascending=False)
        names = ", ".join(f"{row} {value:.1f}" for row, value in better.items())
        ahead += [f"{panel} ({names})"] if names else []
    if ahead:
        yield f"KTRR is printed as the best of thirteen methods on every set. Ahead of it, on {'; on '.join(ahead)}."
    gains = (ours - paper)[ours.index.isin(RIVALS)].stack().dropna()
    if len(gains):
        yield (
            f"Its rivals, with twelve settings each to choose from, are in the middle {gains.median():.1f} points "
            f"above what is printed of them, and over 5 points in {(gains > 5).sum()} of {len(gains)} places."
        )
    own = [each.paper for each in judged if each.paper is not None]
    wrong = sum(not verdict.holds for verdict in own)
    failed = sum(each.ours is not None and not each.ours.holds for each in judged)
    yield f"{failed} statements fail in our runs; by the printed numbers {wrong} of the {len(own)} they can judge."
    yield f"{n_below} accuracies are more than a point below the paper; they are listed below, with what is known."


def _believed(page: Page) -> Iterator[str]:
    """Yield how good and how quick KTRR is among the paper's thirteen methods."""
    ours, _ = _accuracies(page)
    if {*METHODS} <= set(ours.index):
        means = ours.loc[list(METHODS)].rank(ascending=False).mean(axis=1).sort_values()
        before = ", ".join(f"{row} {value:.1f}" for row, value in means.items() if value < means["KTRR"])
        yield (
            f"It is accurate: its mean place is {means['KTRR']:.1f} of thirteen"
            + f", after {before}" * bool(before)
            + "."
        )
    times = [r for r in page.results.get("table7", []) if (r.row, r.metric) == ("KTRR", "t2") and r.mean is not None]
    if times:
        yield f"It is quick: the shortest time of the thirteen on {sum(r.best for r in times)} of {len(times)} sets."


def _by_set(page: Page) -> str:
    """Write where KTRR stands on each data set, and what its parts are worth."""
    ours, paper = _accuracies(page)
    if not {*METHODS, *BESIDE} <= set(ours.index):
        return ""
    places = ours.loc[list(METHODS)].rank(ascending=False).loc["KTRR"]
    gained = {"the kernel (over TRR)": ("KTRR", "TRR"), "the truncation (TRR over LSR1)": ("TRR", "LSR1")}
    gained |= {f"{row} (over KTRR)": (row, "KTRR") for row in BESIDE}
    rows = [
        (
            *(panel, f"{ours[panel]['KTRR']:.1f}", f"{paper[panel]['KTRR']:.1f}", f"{places[panel]:.0f}"),
            *(f"{ours[panel][a] - ours[panel][b]:+.1f}" for a, b in gained.values()),
        )
        for panel in SETS
        if panel in ours
    ]
    return _table(" | ".join(["accuracy", "KTRR", "printed", "place of thirteen", *gained]), rows)


def _accuracies(page: Page) -> list[pd.DataFrame]:
    """Return the accuracies of Tables 3 to 6 by row and data set, ours and the paper's."""
    tables = [records for name, records in page.results.items() if page.experiments[name].tested]
    found = [r for records in tables for r in records if r.metric == "AC" and r.panel in SETS and r.mean is not None]
    numbers = pd.DataFrame([vars(r) for r in found], columns=["panel", "row", "mean", "paper"])
    return [numbers.pivot(index="row", columns="panel", values=side) for side in ("mean", "paper")]


def _searches(page: Page) -> Iterator[tuple[object, ...]]:
    """Yield where KTRR is below the paper: what is reported, what a search with labels reaches, why they differ."""
    if SEARCH not in page.results:
        return
    search, found = page.experiments[SEARCH], page.results[SEARCH]
    panels = {panel["name"]: panel for panel in search.panels}
    for best, tried in searched(search, page.rows, found):
        table, panel, row, *x = panels[best.panel]["compared"]
        place = panel, row, x[0] if x else None
        own, *cuts = [r for r in page.results[table] if (r.panel, r.row, r.x, r.metric) == (*place, "AC")]
        if _is_below(own):
            planned = planning.plan(page.experiments[table], page.rows)
            item = next(item for item in planned if (item.panel, item.row, item.x) == place)
            given = values(item)
            why = [
                f"in the {best.n} runs of the search the reported setting has {accuracy:.1f}"
                for varied, accuracy in tried
                if abs(accuracy - (own.mean or 0.0)) >= 0.1 and varied == {name: given[name] for name in varied}
            ]
            why += [f"with the {r.cut} it has {r.mean:.1f}" for r in cuts if r.mean is not None]
            why += [f"the printed mean has a standard error of {own.paper_sd / 10**0.5:.1f}"] if own.paper_sd else []
            beside = [r for r in found if (r.panel, r.metric) == (panels[best.panel].get("beside"), "AC") and r.n]
            why += [f"on {r.panel} it has from {r.low:.1f} to {r.high:.1f}, mean {r.mean:.1f}" for r in beside]
            varied, top = max(tried, key=lambda each: each[1])
            missed = f"no setting reaches the paper{f' with {best.cut}' * bool(cuts)}"
            why += [missed] * (top < (own.paper or 0.0) - BELOW)
            ours = f"{own.mean:.1f}", told({name: given[name] for name in varied}), f"{top:.1f}", told(varied)
            yield best.panel, f"{own.paper:.1f}", *ours, len(tried), "; ".join(why)


def _is_below(r: Record) -> bool:
    """Tell whether it is more than a point below the printed number."""
    return r.difference is not None and r.difference < -BELOW


def _status(page: Page) -> Iterator[tuple[object, ...]]:
    for name, (n_cells, n_done, minutes, codes) in page.cells.items():
        earlier = " (the numbers below are of an earlier, smaller run)" if name in page.results and not n_done else ""
        made_by = "; ".join(f"{code}: {count}" for code, count in sorted(codes.items()))
        done = f"{n_done}{earlier}", n_cells - n_done, f"{minutes:.1f}", made_by
        yield page.experiments[name].paper or name, n_cells, *done


def _claim(each: Judged) -> tuple[str | Cell, ...]:
    def word(verdict: Verdict | None, figures: str = "") -> Cell:
        fails = verdict is not None and not verdict.holds
        return Cell("–" if verdict is None else "fails" if fails else "holds", bold=fails, mark=figures)

    figures = each.ours.figures if each.ours is not None else "nothing that was run can judge it"
    shown = figures if len(figures) <= LONGEST else figures[:LONGEST].rsplit(" ", 1)[0] + " …"
    own = f": {each.paper.figures[:LONGEST]}" if each.paper is not None and not each.paper.holds else ""
    return each.where, each.text, word(each.paper, own), word(each.ours), shown


def _rows_below(page: Page) -> Iterator[tuple[str, ...]]:
    """Yield rows of tables and bars below the paper with the reason, as far as it is known.

    Reasons are kept by experiment, panel and row, by row, by experiment, or for any.
    """
    reasons = page.words["reasons"]
    for name, records in page.results.items():
        for r in [r for r in records if r.metric == "AC" and r.x is None and _is_below(r)]:
            known = (reasons.get(key) for key in (f"{name}, {r.panel}, {r.row}", r.row, name))
            reason = next(filter(None, known), reasons["any"])
            yield f"{page.experiments[name].paper}, {r.panel}", r.row, f"{r.mean:.1f}", f"{r.paper:.1f}", reason


def _summary(experiment: Experiment, records: Sequence[Record]) -> tuple[object, ...]:
    """Return one line of the table at a glance; empty where no score is compared."""
    places = _compared(records, (*CLOCKS, RATIO))
    if not places or experiment.printed != "paper":
        return ()
    differences = sorted(found[0].difference or 0.0 for found in places)
    return experiment.paper, len(places), f"{differences[len(differences) // 2]:+.1f}", *_agreement(places)


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


def _about_published(records: Sequence[Record]) -> Iterator[str]:
    """Say how many of the figures that authors published are reached, and name the others."""
    both = [r for r in records if r.metric == "AC" and r.difference is not None]
    short = [f"{r.row} on {r.panel} ({r.mean:.1f}, published {r.paper:.1f})" for r in both if _is_below(r)]
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
            below = sum(map(_is_below, first))
            yield (
                f"{panel}: of {counted(len(first), 'number')} {near} are within {NEAR:g} of the paper, {inside} in the "
                f"range of our runs, {below} more than a point below it. Farthest: {far.row} at {far.x:g}, "
                f"{far.metric} {far.mean:.1f} against {far.paper:.1f}."
            )


def _about_times(records: Sequence[Record]) -> Iterator[str]:
    """Say how many times faster than printed."""
    for metric in ("t1", "t2"):
        both = [r for r in records if r.metric == metric and r.mean and r.paper]
        if both:
            gains = sorted((r.paper or 0) / (r.mean or 1) for r in both)
            slower = [f"{r.row} on {r.panel}" for r in both if (r.paper or 0) < (r.mean or 0)]
            text = f"{metric}: the paper's seconds are {gains[0]:.2g} to {gains[-1]:.4g} times ours"
            yield text + f"; ours are longer for {', '.join(slower)}" * bool(slower) + "."
