"""Records → Markdown and LaTeX: mean ± sd, the best in bold, a dagger where it is significant, the paper's beside."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from reproduction.plan import Experiment
from reproduction.records import CLOCKS, LEVEL, Record, distinct, is_curve
from subspaces.utils.spelling import counted
from subspaces.utils.tabular import escape, tabular

MISSING = "–"


def markdown(experiment: Experiment, records: Sequence[Record]) -> str:
    """Write one table per panel: every metric with the paper's number and the difference."""
    parts = []
    for panel in distinct(records, "panel"):
        of_panel = [record for record in records if record.panel == panel]
        if is_curve(of_panel):  # the first two columns are one cell here: both have no head
            several = len(distinct(of_panel, "cut")) > 1
            lines = [
                [f"{label}{f', {cut}' * bool(several and cut)} | {metric}".strip(), *cells]
                for label, cut, metric, cells in _curves(of_panel)
            ]
            columns = len(lines[0]) + 1
        else:
            lines = _table(experiment, of_panel)
            columns = len(lines[0])
        rows = [f"| {' | '.join(cells)} |" for cells in lines]
        parts += [f"**{panel}**\n", rows[0], "|---" * columns + "|", *rows[1:], ""]
    return "\n".join([*parts, *_footnotes(experiment, records)]).rstrip() + "\n"


def latex(experiment: Experiment, records: Sequence[Record]) -> str:
    """Write the same as tables in the paper's style; plain ``tabular``, no package is needed."""
    parts = [f"% {experiment.name}: {experiment.title}"]
    for panel in distinct(records, "panel"):
        of_panel = [record for record in records if record.panel == panel]
        body = _curve_latex(of_panel) if is_curve(of_panel) else _table_latex(experiment, of_panel)
        caption = f"{experiment.title}: {panel}. Upright: this package; in italics: the paper."
        notes = " ".join(note.strip() for note in _footnotes(experiment, of_panel))
        title = rf"\caption{{{escape(caption)} {escape(notes)}}}"
        parts += [r"\begin{table}[htbp]\scriptsize", r"\centering", title, body, r"\end{table}", ""]
    return "\n".join(parts)


def _table(experiment: Experiment, records: Sequence[Record]) -> list[list[str]]:
    """Rows are methods; a column for each metric, and for the paper's number and the difference where it has any."""
    header, lines = [""], [[label] for label, _ in _rows(records)]
    for metric in (metric for metric in experiment.metrics if any(record.metric == metric for record in records)):
        compared = any(r.paper is not None for r in records if r.metric == metric)
        beside = [_paper, *[_difference] * (metric not in CLOCKS)] if compared else []
        header += [metric, *[experiment.printed, "Δ"][: len(beside)]]
        for line, (_, of_row) in zip(lines, _rows(records), strict=True):
            record = next((r for r in of_row if r.metric == metric), None)
            line += [_number(record), *(write(record) for write in beside)]
    return [header, *lines]


def _table_latex(experiment: Experiment, records: Sequence[Record]) -> str:
    metrics = [metric for metric in experiment.metrics if any(record.metric == metric for record in records)]
    rows = []
    for label, of_row in _rows(records):
        by_metric = {record.metric: record for record in of_row}
        numbers = (escape(_number(by_metric.get(metric)).replace(" ± ", "±")) for metric in metrics)
        rows.append([escape(label), *(re.sub(r"\*\*(.+)\*\*", r"\\textbf{\1}", number) for number in numbers)])
        if any(record.paper is not None for record in of_row):
            rows.append([r"\quad \textit{paper}", *(_italic(_paper(by_metric.get(metric))) for metric in metrics)])
    return tabular(f"l||{'l' * len(metrics)}", ["Methods", *map(escape, metrics)], rows)


def _curve_latex(records: Sequence[Record]) -> str:
    header, *rows = _curves(records)
    lines = []
    for label, cut, metric, cells in rows:
        if cut:
            lines.append([escape(f"{label}, {cut}"), escape(metric), *map(escape, cells)])
        elif label == "*paper*":
            lines.append([r"\quad \textit{paper}", "", *map(_italic, cells)])
    return tabular(f"ll||{'l' * len(header[-1])}", ["", "", *header[-1]], lines)


def _curves(records: Sequence[Record]) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield label, cut, metric and numbers along the axis of every row and cut, the paper's and the difference below.

    The metrics are those the paper has numbers of; all of them where it has none. The CSV file always has all.
    """
    places = sorted({record.x for record in records if record.x is not None})
    yield "", "", "", [f"{x:g}" for x in places]
    printed = [record for record in records if record.paper is not None]
    for metric in [m for m in distinct(records, "metric") if m in distinct(printed, "metric") or not printed]:
        for label, of_row in _rows([record for record in records if record.metric == metric]):
            by_cut = {cut: {r.x: r for r in of_row if r.cut == cut} for cut in distinct(of_row, "cut")}
            for cut, by_place in by_cut.items():
                yield label, cut, metric, [_number(by_place.get(x), short=True) for x in places]
            if any(record.paper is not None for record in of_row):
                first = next(iter(by_cut.values()))
                yield "*paper*", "", "", [_paper(first.get(x), short=True) for x in places]
                yield "*Δ* of the first", "", "", [_difference(first.get(x)) for x in places]


def _rows(records: Sequence[Record]) -> list[tuple[str, list[Record]]]:
    """Return the records of each row under its label, which carries a ‡ where the protocol is smaller."""
    rows = [[record for record in records if record.row == row] for row in distinct(records, "row")]
    return [(found[0].row + " ‡" * bool(found[0].mark), found) for found in rows]


def _number(record: Record | None, *, short: bool = False) -> str:
    if record is None or record.mean is None:
        return MISSING
    if short:
        return f"{record.mean:.1f}"
    text = f"{record.mean:.2f} ± {record.sd:.2f}" if record.n > 1 else f"{record.mean:.2f}"
    return (f"**{text}**" if record.best else text) + "†" * record.dagger


def _paper(record: Record | None, *, short: bool = False) -> str:
    if record is None or record.paper is None:
        return ""
    if short or record.paper_sd is None:
        return f"{record.paper:.{1 if short else 2}f}"
    return f"{record.paper:.2f} ± {record.paper_sd:.2f}"


def _difference(record: Record | None) -> str:
    return "" if record is None or record.difference is None else f"{record.difference:+.1f}"


def _italic(text: str) -> str:
    return rf"\textit{{{escape(text)}}}" if text else ""


def _footnotes(experiment: Experiment, records: Sequence[Record]) -> list[str]:
    marks: dict[str, dict[str, None]] = {}
    for record in records:
        if record.mark:
            marks.setdefault(record.mark, {})[record.row] = None
    notes = [f"‡ smaller than the paper's protocol: {mark} ({'; '.join(rows)})." for mark, rows in marks.items()]
    if any(record.dagger for record in records):
        notes.append("† different from every rival of the paper at 0.05 by Wilcoxon's rank-sum test.")
    return [note + "  " for note in [*notes, *_tests(records, experiment.tested)]]


def _tests(records: Sequence[Record], metrics: Sequence[str]) -> Iterator[str]:
    """Say the outcome of the paper's test for every panel; metrics with the same outcome together."""
    for panel in distinct(records, "panel"):
        outcomes: dict[str, list[str]] = {}
        for metric in metrics:
            printed = [r for r in records if (r.panel, r.metric) == (panel, metric) and r.paper is not None]
            if len(printed) > 1 and printed[0].distinct:
                outcomes.setdefault(_outcome(*printed), []).append(metric)
        yield from (f"Test, {panel}, {', '.join(tested)}: {said}." for said, tested in outcomes.items())


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
