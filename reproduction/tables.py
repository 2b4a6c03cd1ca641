"""Records → Markdown: mean ± sd, the best in bold, a dagger where it is significant, the paper's beside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reproduction.plan import Experiment
from reproduction.records import CLOCKS, Record, distinct, is_curve
from subspaces.metrics.significance import LEVEL
from subspaces.metrics.tables import Cell, Row, Table
from subspaces.utils.spelling import counted


def markdown(
    experiment: Experiment, records: Sequence[Record], tried: Mapping[tuple[str, str], tuple[str, str]] | None = None
) -> str:
    """Write one table per panel: every metric with the paper's number and the difference; notes on all at the end.

    `tried` are the best and the median accuracy of the grid of rows, by panel and row.
    """
    parts = []
    for panel in distinct(records, "panel"):
        of_panel = [record for record in records if record.panel == panel]
        header, *rows = _curves(of_panel) if is_curve(of_panel) else _by_metric(experiment, of_panel, tried or {})
        parts.append(Table(header, rows, panel).to_markdown() + "\n")
    return "\n".join([*parts, *(f"{note}  " for note in _footnotes(experiment, records))]).rstrip() + "\n"


def _by_metric(
    experiment: Experiment, records: Sequence[Record], tried: Mapping[tuple[str, str], tuple[str, str]]
) -> list[list[str | Cell]]:
    """Return a table whose rows are methods.

    A column for each metric, and for the paper's number and the difference where it has any.
    """
    header: list[str | Cell] = [""]
    lines: list[list[str | Cell]] = [[label] for label, _ in _rows(records)]
    for metric in (metric for metric in experiment.metrics if any(record.metric == metric for record in records)):
        compared = any(r.paper is not None for r in records if r.metric == metric)
        beside = [_paper, *[_difference] * (metric not in CLOCKS)] if compared else []
        header += [metric, *[experiment.printed, "Δ"][: len(beside)]]
        for line, (_, of_row) in zip(lines, _rows(records), strict=True):
            record = next((r for r in of_row if r.metric == metric), None)
            line += [_number(record), *(write(record) for write in beside)]
        if metric == "AC" and tried.keys() & {(record.panel, record.row) for record in records}:
            header += ["best by labels", "median of its grid"]
            for line, (_, of_row) in zip(lines, _rows(records), strict=True):
                line += tried.get((of_row[0].panel, of_row[0].row), ("", ""))
    return [header, *lines]


def _curves(records: Sequence[Record]) -> Iterator[Row]:
    """Yield a header, then label, metric and numbers along the axis of every row and cut, the paper's below.

    The metrics are those the paper has numbers of; all of them where it has none. The CSV file always has all.
    """
    places = sorted({record.x for record in records if record.x is not None})
    yield ["", "", *(f"{x:g}" for x in places)]
    printed = [record for record in records if record.paper is not None]
    several = len(distinct(records, "cut")) > 1
    for metric in [m for m in distinct(records, "metric") if m in distinct(printed, "metric") or not printed]:
        for label, of_row in _rows([record for record in records if record.metric == metric]):
            by_cut = {cut: {r.x: r for r in of_row if r.cut == cut} for cut in distinct(of_row, "cut")}
            for cut, by_place in by_cut.items():
                name = f"{label}, {cut}" if several and cut else label
                yield [name, metric, *(_number(by_place.get(x), short=True) for x in places)]
            if any(record.paper is not None for record in of_row):
                first = next(iter(by_cut.values()))
                yield [Cell("paper", italic=True), "", *(_paper(first.get(x), short=True) for x in places)]
                delta = Cell("Δ", italic=True, mark=" of the first")
                yield [delta, "", *(_difference(first.get(x)) for x in places)]


def _rows(records: Sequence[Record]) -> list[tuple[str, list[Record]]]:
    """Return the records of each row under its label, which carries a ‡ where the protocol is smaller."""
    rows = [[record for record in records if record.row == row] for row in distinct(records, "row")]
    return [(found[0].row + " ‡" * bool(found[0].mark), found) for found in rows]


def _number(record: Record | None, *, short: bool = False) -> Cell:
    if record is None or record.mean is None:
        return Cell("–")
    if short:
        return Cell(f"{record.mean:.1f}")
    text = f"{record.mean:.2f} ± {record.sd:.2f}" if record.n > 1 else f"{record.mean:.2f}"
    return Cell(text, bold=record.best, mark="†" * record.dagger)


def _paper(record: Record | None, *, short: bool = False) -> str:
    if record is None or record.paper is None:
        return ""
    if short or record.paper_sd is None:
        return f"{record.paper:.{1 if short else 2}f}"
    return f"{record.paper:.2f} ± {record.paper_sd:.2f}"


def _difference(record: Record | None) -> str:
    return "" if record is None or record.difference is None else f"{record.difference:+.1f}"


def _footnotes(experiment: Experiment, records: Sequence[Record]) -> list[str]:
    marks: dict[str, dict[str, None]] = {}
    for record in records:
        if record.mark:
            marks.setdefault(record.mark, {})[record.row] = None
    notes = [f"‡ smaller than the paper's protocol: {mark} ({'; '.join(rows)})." for mark, rows in marks.items()]
    if any(record.dagger for record in records):
        notes.append("† different from every rival of the paper at 0.05 by Wilcoxon's rank-sum test.")
    for panel in distinct(records, "panel"):  # metrics with the same outcome of the paper's test together
        outcomes: dict[str, list[str]] = {}
        for metric in experiment.tested:
            printed = [r for r in records if (r.panel, r.metric) == (panel, metric) and r.paper is not None]
            if len(printed) > 1 and printed[0].distinct:
                outcomes.setdefault(_outcome(*printed), []).append(metric)
        notes += [f"Test, {panel}, {', '.join(tested)}: {said}." for said, tested in outcomes.items()]
    return notes


def _outcome(own: Record, *rivals: Record) -> str:
    """Say from which rivals the paper's method differs, from which not, and of which nothing can be said."""
    untested = [r.row for r in rivals if r.p is None]
    if len(untested) == len(rivals):
        return f"the runs are too few, or too many of them the same, to tell {own.row} from any rival"
    alike = [f"{r.row} (p = {r.p:.2g})" for r in rivals if r.p is not None and r.p >= LEVEL]
    n_different = len(rivals) - len(untested) - len(alike)
    parts = [f"different from {n_different} of {counted(len(rivals), 'rival')}"]
    parts += [f"not from {', '.join(alike)}"] * bool(alike)
    parts += [f"too few different runs to tell from {', '.join(untested)}"] * bool(untested)
    return f"{own.row} is {'; '.join(parts)}"
