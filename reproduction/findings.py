"""What the results of an experiment say, in sentences: every number in them is computed here, none is typed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reproduction.choice import Choices
from reproduction.facts import NEAR, compared, reaches
from reproduction.schedule import Experiment, Planned, names_of
from reproduction.statistics import CLOCKS, RATIO, Record, setting_of
from reproduction.tables import distinct, is_curve
from subspaces.spelling import counted

BELOW = 1.0
"""Points of accuracy below the paper that are worth a reason."""

PAPER = "paper"
"""Head of a column of the paper's numbers; any other is of the rivals' own papers."""

AUTOMATIC = "KTRR, automatic"
OWN = ("KTRR", "EKTRR", "exp(−d²/σ²)")
"""The paper's method, whatever a table calls it."""


def findings(experiment: Experiment, records: Sequence[Record]) -> list[str]:
    """Sentences about the records; none where nothing can be compared."""
    if is_curve(records):
        return list(_about_curves(records))
    if experiment.printed != PAPER:
        return list(_about_published(records))
    return [*_about_rows(records), *_about_times(records), *_about_automatic(records)]


def _about_rows(records: Sequence[Record]) -> Iterator[str]:
    """The paper's method among its rivals, and who is below the paper."""
    for panel in distinct(records, "panel"):
        rows = [
            r for r in records if (r.panel, r.metric) == (panel, "AC") and r.mean is not None and r.paper is not None
        ]
        if len(rows) < 2:
            continue
        own = next((r for r in rows if r.row in OWN), rows[0])
        ahead = sorted((r for r in rows if (r.mean or 0) > (own.mean or 0)), key=lambda r: -(r.mean or 0))
        text = f"{panel}: {own.row} has an accuracy of {own.mean:.1f}, the paper {own.paper:.1f}"
        if ahead:
            names = ", ".join(f"{r.row} {r.mean:.1f}" for r in ahead)
            text += f"; {counted(len(ahead), 'of the other rows is', 'of the other rows are')} ahead of it: {names}"
        else:
            text += "; it is ahead of all other rows of the paper"
        short = below_paper(rows)
        if short:
            text += ". Below the paper (ours / printed): " + ", ".join(
                f"{r.row} {r.mean:.1f} / {r.paper:.1f}" for r in short
            )
        yield text + "."


def _about_published(records: Sequence[Record]) -> Iterator[str]:
    """How many of the figures that authors published are reached, and the others."""
    both = [r for r in records if r.metric == "AC" and r.difference is not None]
    short = below_paper(both)
    if both:
        told = ", ".join(f"{r.row} on {r.panel} ({r.mean:.1f}, published {r.paper:.1f})" for r in short)
        text = f"Of {counted(len(both), 'published figure')} {len(both) - len(short)} are reached, to a point, "
        text += "some with settings picked for it (see above)"
        yield text + (f"; not {told}." if short else ".")


def below_paper(records: Sequence[Record]) -> list[Record]:
    """Accuracies that are more than a point below the printed ones."""
    return [r for r in records if r.metric == "AC" and r.difference is not None and r.difference < -BELOW]


def _about_automatic(records: Sequence[Record]) -> Iterator[str]:
    if any(record.row == AUTOMATIC and record.mean is not None for record in records):
        yield (
            f"*{AUTOMATIC}* uses no label here, but its rule was made with the labels of these very data sets, so this "
            "row is no independent test of it; its choice can differ between types of CPU."
        )


def _about_curves(records: Sequence[Record]) -> Iterator[str]:
    """How many numbers agree, and where they are farthest apart."""
    for panel in distinct(records, "panel"):
        places = compared([record for record in records if record.panel == panel], CLOCKS)
        if not places:
            continue
        first = [found[0] for found in places.values()]
        near = sum(abs(r.difference or 0) <= NEAR for r in first)
        inside = sum(reaches(found) for found in places.values())
        far = max(first, key=lambda r: abs(r.difference or 0))
        below = sum((r.difference or 0) < -BELOW for r in first)
        yield (
            f"{panel}: of {counted(len(first), 'number')} {near} are within {NEAR:g} of the paper, {inside} in the "
            f"range of our runs, {below} more than a point below it. Farthest: {far.row} at {far.x:g}, {far.metric} "
            f"{far.mean:.1f} against {far.paper:.1f}."
        )


def _about_times(records: Sequence[Record]) -> Iterator[str]:
    """How many times faster than printed, and the paper's test of KTRR against TRR."""
    for metric in ("t1", "t2"):
        both = [r for r in records if r.metric == metric and r.mean and r.paper]
        if not both:
            continue
        gains = sorted((r.paper or 0) / (r.mean or 1) for r in both)
        slower = [f"{r.row} on {r.panel}" for r in both if (r.paper or 0) < (r.mean or 0)]
        text = f"{metric}: the paper's seconds are {gains[0]:.2g} to {gains[-1]:.4g} times ours"
        yield text + (f"; ours are longer for {', '.join(slower)}." if slower else ".")
    tests = [r for r in records if r.row == "TRR" and r.p is not None]
    if tests:
        told = ", ".join(f"{r.panel} {r.metric} {r.p:.2g}" for r in tests)
        yield f"KTRR against TRR by the rank-sum test, p: {told}."


def summary_line(experiment: Experiment, records: Sequence[Record]) -> str:
    """One line of the table at a glance; empty where no score is compared."""
    places = compared(records, (*CLOCKS, RATIO))
    if not places or experiment.printed != PAPER:
        return ""
    differences = sorted(found[0].difference or 0.0 for found in places.values())
    near = sum(abs(value) <= NEAR for value in differences)
    inside = sum(reaches(found) for found in places.values())
    own = [r for r in records if r.row in OWN and r.metric == "AC" and r.mean is not None]
    own = [r for r in own if r.paper is not None and r.x is None]
    ours, paper = (" / ".join(f"{getattr(r, side):.1f}" for r in own) for side in ("mean", "paper"))
    middle = differences[len(differences) // 2]
    return f"| {experiment.paper} | {len(differences)} | {middle:+.1f} | {near} | {inside} | {ours} | {paper} |"


def outdated(planned: Sequence[Planned], records: Sequence[Record]) -> set[tuple[str, str]]:
    """Panels and rows whose results are of another setting than the one that would be run now."""
    now = {(item.panel, item.row, item.x): setting_of(item) for item in planned}
    return {(r.panel, r.row) for r in records if r.n and r.setting != now.get((r.panel, r.row, r.x), r.setting)}


def about_settings(
    experiment: Experiment, rows: Mapping[str, Mapping[str, Any]], choices: Choices, old: set[tuple[str, str]]
) -> str:
    """How the settings of a table were chosen, `old` ones apart; empty where no grid chose any."""
    parts = []
    for panel in experiment.panels:
        by_rule: dict[tuple[int, str], list[str]] = {}
        earlier = []
        for name in panel["rows"]:
            found = choices.get(name, {})
            choice = next((found[key] for key in names_of(panel["data"]) if key in found), None)
            if choice is None or panel.get("grid") or panel.get("vary") not in (None, "level"):
                continue
            if choice["tried"] and (panel["name"], rows[name]["label"]) not in old:
                by_rule.setdefault((choice["tried"], choice["on"]), []).append(rows[name]["label"])
            else:
                earlier.append(rows[name]["label"])
        told = [f"best of {tried} by labels on {on}: {', '.join(names)}" for (tried, on), names in by_rule.items()]
        told += [f"still those of an earlier choice by hand and labels: {', '.join(earlier)}"] * bool(earlier)
        parts += [f"{panel['name']}: {'; '.join(told)}."] * bool(told)
    return "Settings. " + " ".join(parts) if parts else ""
