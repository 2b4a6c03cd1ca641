"""Records → Markdown and LaTeX: mean ± sd, the best in bold, a dagger where it is significant, the paper's beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reproduction.schedule import Experiment
from reproduction.statistics import CLOCKS, Record
from subspaces.significance import LEVEL
from subspaces.spelling import counted
from subspaces.tabular import escape, tabular

ByPlace = dict[float | None, Record]
MISSING = "–"


def distinct(records: Sequence[Record], name: str) -> list[str]:
    """Every panel, row, cut or metric of the records once, in order."""
    return list(dict.fromkeys(getattr(record, name) for record in records))


def is_curve(records: Sequence[Record]) -> bool:
    """Whether the records lie along an axis."""
    return any(record.x is not None for record in records)


def markdown(experiment: Experiment, records: Sequence[Record]) -> str:
    """One table per panel: every metric with the paper's number and the difference."""
    parts = []
    for panel in distinct(records, "panel"):
        of_panel = [record for record in records if record.panel == panel]
        parts.append(f"**{panel}**\n")
        parts += [_curve_markdown(of_panel) if is_curve(of_panel) else _table_markdown(experiment, of_panel), ""]
    return "\n".join([*parts, *_footnotes(experiment, records)]).rstrip() + "\n"


def _table_markdown(experiment: Experiment, records: Sequence[Record]) -> str:
    """Rows are methods; a column for each metric, and for the paper's number and the difference where it has any."""
    metrics = [metric for metric in experiment.metrics if any(record.metric == metric for record in records)]
    compared = {metric: any(r.paper is not None for r in records if r.metric == metric) for metric in metrics}
    header = [""]
    for metric in metrics:
        beside = [experiment.printed, *["Δ"] * (metric not in CLOCKS)]
        header += [metric, *(beside if compared[metric] else [])]
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    for label, of_row in _rows(records):
        cells = [label]
        for metric in metrics:
            record = next((r for r in of_row if r.metric == metric), None)
            cells.append(_number(record) if record else MISSING)
            if compared[metric]:
                cells += [_paper(record), *[_difference(record)] * (metric not in CLOCKS)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _curve_markdown(records: Sequence[Record]) -> str:
    """Rows are methods and cuts, columns the places along the axis; ours, the paper's and the difference."""
    places = sorted({record.x for record in records if record.x is not None})
    lines = ["| | | " + " | ".join(f"{x:g}" for x in places) + " |", "|---" * (len(places) + 2) + "|"]
    several = len(distinct(records, "cut")) > 1
    for metric, label, by_cut, printed in _curves(records):
        for cut, by_place in by_cut.items():
            name = f"{label}, {cut}" if several else label
            cells = [_number(by_place[x], short=True) if x in by_place else MISSING for x in places]
            lines.append(f"| {name} | {metric} | " + " | ".join(cells) + " |")
        if printed:
            lines.append("| *paper* | | " + " | ".join(_paper(printed.get(x), short=True) for x in places) + " |")
            lines.append("| *Δ* of the first | | " + " | ".join(_difference(printed.get(x)) for x in places) + " |")
    return "\n".join(lines)


def _curves(records: Sequence[Record]) -> Iterator[tuple[str, str, dict[str, ByPlace], ByPlace]]:
    """Metric and label of every curve, its records by cut and place, and those with the paper's numbers, if any."""
    for metric in _compared_metrics(records):
        for label, of_row in _rows([record for record in records if record.metric == metric]):
            by_cut = {cut: {r.x: r for r in of_row if r.cut == cut} for cut in distinct(of_row, "cut")}
            has_paper = any(record.paper is not None for record in of_row)
            yield metric, label, by_cut, next(iter(by_cut.values())) if has_paper else {}


def _compared_metrics(records: Sequence[Record]) -> list[str]:
    """The metrics the paper has numbers of; all of them where it has none. The CSV file always has all."""
    metrics = distinct(records, "metric")
    printed = {record.metric for record in records if record.paper is not None}
    return [metric for metric in metrics if metric in printed] or metrics


def _rows(records: Sequence[Record]) -> list[tuple[str, list[Record]]]:
    """Records of each row under its label, which carries a ‡ where the protocol is smaller."""
    rows = [[record for record in records if record.row == row] for row in distinct(records, "row")]
    return [(found[0].row + (" ‡" if found[0].mark else ""), found) for found in rows]


def _number(record: Record, *, short: bool = False) -> str:
    if record.mean is None:
        return MISSING
    digits = 1 if short else 2
    text = f"{record.mean:.{digits}f}"
    if record.n > 1 and not short:
        text += f" ± {record.sd:.{digits}f}"
    if record.best and not short:
        text = f"**{text}**"
    return text + ("†" if record.dagger and not short else "")


def _paper(record: Record | None, *, short: bool = False) -> str:
    if record is None or record.paper is None:
        return ""
    if short or record.paper_sd is None:
        return f"{record.paper:.{1 if short else 2}f}"
    return f"{record.paper:.2f} ± {record.paper_sd:.2f}"


def _difference(record: Record | None) -> str:
    return "" if record is None or record.difference is None else f"{record.difference:+.1f}"


def _footnotes(experiment: Experiment, records: Sequence[Record]) -> list[str]:
    marks: dict[str, list[str]] = {}
    for record in records:
        if record.mark and record.row not in marks.setdefault(record.mark, []):
            marks[record.mark].append(record.row)
    notes = [f"‡ smaller than the paper's protocol: {mark} ({'; '.join(rows)})." for mark, rows in marks.items()]
    if any(record.dagger for record in records):
        notes.append("† different from every rival of the paper at 0.05 by Wilcoxon's rank-sum test.")
    return [note + "  " for note in [*notes, *_tests(records, experiment.tested)]]


def _tests(records: Sequence[Record], metrics: Sequence[str]) -> Iterator[str]:
    """The outcome of the paper's test in words, for every panel; metrics with the same outcome together."""
    for panel in distinct(records, "panel"):
        outcomes: dict[str, list[str]] = {}
        for metric in metrics:
            printed = [r for r in records if (r.panel, r.metric) == (panel, metric) and r.paper is not None]
            if len(printed) > 1 and printed[0].distinct:
                outcomes.setdefault(_outcome(*printed), []).append(metric)
        yield from (f"Test, {panel}, {', '.join(tested)}: {said}." for said, tested in outcomes.items())


def _outcome(own: Record, *rivals: Record) -> str:
    """From which rivals the paper's method differs, from which not, and of which nothing can be said."""
    untested = [r.row for r in rivals if r.p is None]
    if len(untested) == len(rivals):
        return f"the runs are too few, or too many of them the same, to tell {own.row} from any rival"
    differ = [r for r in rivals if r.p is not None and r.p < LEVEL]
    alike = [f"{r.row} (p = {r.p:.2g})" for r in rivals if r.p is not None and r.p >= LEVEL]
    parts = [f"different from {len(differ)} of {counted(len(rivals), 'rival')}"]
    parts += [f"not from {', '.join(alike)}"] * bool(alike)
    parts += [f"too few different runs to tell from {', '.join(untested)}"] * bool(untested)
    return f"{own.row} is {'; '.join(parts)}"


# ------------------------------------------------------------------ LaTeX


def latex(experiment: Experiment, records: Sequence[Record]) -> str:
    """The same as tables in the paper's style; plain ``tabular``, no package is needed."""
    parts = [f"% {experiment.name}: {experiment.title}"]
    for panel in distinct(records, "panel"):
        of_panel = [record for record in records if record.panel == panel]
        body = _curve_latex(of_panel) if is_curve(of_panel) else _table_latex(experiment, of_panel)
        caption = f"{experiment.title}: {panel}. Upright: this package; in italics: the paper."
        notes = " ".join(note.strip() for note in _footnotes(experiment, of_panel))
        title = rf"\caption{{{escape(caption)} {escape(notes)}}}"
        parts += [r"\begin{table}[htbp]\scriptsize", r"\centering", title, body, r"\end{table}", ""]
    return "\n".join(parts)


def _table_latex(experiment: Experiment, records: Sequence[Record]) -> str:
    metrics = [metric for metric in experiment.metrics if any(record.metric == metric for record in records)]
    rows = []
    for label, of_row in _rows(records):
        by_metric = {record.metric: record for record in of_row}
        rows.append([escape(label), *(_tex_number(by_metric.get(metric)) for metric in metrics)])
        if any(record.paper is not None for record in of_row):
            rows.append([r"\quad \textit{paper}", *(_italic(_paper(by_metric.get(metric))) for metric in metrics)])
    return tabular(f"l||{'l' * len(metrics)}", ["Methods", *map(escape, metrics)], rows)


def _curve_latex(records: Sequence[Record]) -> str:
    places = sorted({record.x for record in records if record.x is not None})
    rows = []
    for metric, label, by_cut, printed in _curves(records):
        for cut, by_place in by_cut.items():
            cells = [escape(_number(by_place[x], short=True)) if x in by_place else "--" for x in places]
            rows.append([escape(f"{label}, {cut}"), escape(metric), *cells])
        if printed:
            rows.append([r"\quad \textit{paper}", "", *(_italic(_paper(printed.get(x), short=True)) for x in places)])
    return tabular(f"ll||{'l' * len(places)}", ["", "", *(f"{x:g}" for x in places)], rows)


def _italic(text: str) -> str:
    return rf"\textit{{{escape(text)}}}" if text else ""


def _tex_number(record: Record | None) -> str:
    if record is None or record.mean is None:
        return "--"
    text = f"{record.mean:.2f}" + (rf"$\pm${record.sd:.2f}" if record.n > 1 else "")
    if record.best:
        text = rf"\textbf{{{text}}}"
    return text + (r"$\dagger$" if record.dagger else "")
