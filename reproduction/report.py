"""The report on top of the page: what was run, what reproduces and what does not, counted from the results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reproduction.claims import Judged, judge
from reproduction.facts import Results
from reproduction.findings import BELOW, OWN, below_paper, summary_line
from reproduction.schedule import Experiment
from reproduction.statistics import Record
from reproduction.tables import is_curve
from subspaces.spelling import counted

LONGEST = 220
"""Characters of figures in a line of the table of claims."""

_GLANCE = """\
| | compared numbers | median difference (ours − paper) | within 0.3 | inside our spread | AC of KTRR: ours | paper |
|---|---|---|---|---|---|---|
"""
_CLAIMS = "| where | what the paper says | by its own numbers | by ours | our figures |\n|---|---|---|---|---|\n"
_STATUS = "| | cells of the whole protocol | done and kept | left | CPU minutes spent |\n|---|---|---|---|---|\n"


@dataclass(frozen=True)
class Reasons:
    """Why a row is below the paper, as far as is known: by experiment, panel and row, by row, by experiment or ``any``.

    `old` are panels and rows, by experiment, that have not been run with their present setting.
    """

    words: Mapping[str, str]
    old: Mapping[str, set[tuple[str, str]]]

    def of(self, experiment: str, panel: str, row: str) -> str:
        """The reason for one row."""
        if (panel, row) in self.old.get(experiment, set()):
            return "of an earlier setting: not yet run with the one that is set now"
        own = self.words.get(f"{experiment}, {panel}, {row}")
        return own or self.words.get(row) or self.words.get(experiment) or self.words["any"]


def report(
    experiments: Mapping[str, Experiment],
    results: Results,
    status: Mapping[str, tuple[int, int, float]],
    words: Mapping[str, str],
    reasons: Reasons,
) -> str:
    """The report as Markdown; `status` is cells, cells kept and CPU minutes by experiment."""
    judged = judge(results)
    rows = list(_rows_below(experiments, results, reasons))
    parts = [
        "## Report",
        "**What was run.** " + _ran({name: results[name] for name in results if experiments[name].full}, status),
        "**What reproduces.** " + _agrees(judged, experiments, results),
        "**What does not.** " + _fails(judged, rows),
        f"**What the paper leaves open.**\n\n{words['open'].strip()}",
        f"**Try it.**\n\n{words['commands'].strip()}",
        "### Cells run and left\n\n" + _STATUS + "\n".join(_status_lines(experiments, results, status)),
        "### At a glance\n\n"
        + _GLANCE
        + "\n".join(line for name in results if (line := summary_line(experiments[name], results[name]))),
        "### Every claim, judged\n\n" + _CLAIMS + "\n".join(_claim_line(each) for each in judged),
    ]
    if rows:
        head = "| where | row | ours | paper | what is known |\n|---|---|---|---|---|\n"
        parts.append("### Accuracies more than a point below the paper\n\n" + head + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def _ran(results: Results, status: Mapping[str, tuple[int, int, float]]) -> str:
    cells, kept, minutes = (sum(each[i] for each in status.values()) for i in range(3))
    marked = {(name, r.panel, r.row) for name, records in results.items() for r in records if r.mark}
    every = {(name, r.panel, r.row) for name, records in results.items() for r in records if r.mean is not None}
    daggers = sum(record.dagger for records in results.values() for record in records)
    return (
        f"{kept} of {cells} cells of the whole protocol are done and kept, {minutes / 60:.2f} CPU hours. ‡ (less than "
        f"the paper's protocol) is on {len(marked)} of {len(every)} rows and curves, † on {counted(daggers, 'number')}."
    )


def _agrees(judged: Sequence[Judged], experiments: Mapping[str, Experiment], results: Results) -> str:
    held = [each for each in judged if each.ours is not None and each.ours.holds]
    unknown = [each for each in judged if each.ours is None]
    own = [each for each in judged if each.paper is not None]
    broken = [each for each in own if each.paper is not None and not each.paper.holds]
    return (
        f"{_own_accuracy(experiments, results)} Of {len(judged)} statements in the paper's text {len(held)} hold in "
        f"our runs and {len(unknown)} cannot be judged by what has been run. Of the {len(own)} that its own printed "
        f"numbers can judge, {len(broken)} fail."
    )


def _own_accuracy(experiments: Mapping[str, Experiment], results: Results) -> str:
    """Where the paper's method is within a point of its printed accuracy, or above."""
    reached: list[str] = []
    missed: list[str] = []
    for name, records in results.items():
        for r in records:
            if r.row in OWN and r.metric == "AC" and r.x is None and r.difference is not None:
                told = f"{experiments[name].paper} {r.panel} ({r.mean:.1f}, printed {r.paper:.1f})"
                (missed if r.difference < -BELOW else reached).append(told)
    text = f"The paper's method reaches its printed accuracy, or is within a point of it, in {len(reached)} of "
    text += f"{counted(len(reached) + len(missed), 'place')}: {', '.join(reached)}"
    return text + (f"; not in {', '.join(missed)}." if missed else ".")


def _fails(judged: Sequence[Judged], rows: Sequence[str]) -> str:
    failed = [each for each in judged if each.ours is not None and not each.ours.holds]
    best = [each.claim.where for each in failed if "is the best in all four scores" in each.claim.text]
    text = f"{len(failed)} statements fail in our runs"
    if best:
        text += f", among them that KTRR is the best in {', '.join(best)}"
    return f"{text}. {len(rows)} accuracies are more than a point below the paper. Both lists are below."


def _status_lines(
    experiments: Mapping[str, Experiment], results: Results, status: Mapping[str, tuple[int, int, float]]
) -> Iterator[str]:
    for name, (cells, kept, minutes) in status.items():
        title = experiments[name].paper or name
        earlier = " (the numbers below are of an earlier, smaller run)" if name in results and not kept else ""
        yield f"| {title} | {cells} | {kept}{earlier} | {cells - kept} | {minutes:.1f} |"


def _claim_line(each: Judged) -> str:
    def word(verdict: object) -> str:
        return "–" if verdict is None else ("holds" if verdict.holds else "**fails**")  # type: ignore[attr-defined]

    figures = each.ours.figures if each.ours is not None else "cannot be judged by what has been run"
    if each.claim.check is None:
        figures = "no experiment of the paper or ours is about it"
    shown = figures if len(figures) <= LONGEST else figures[:LONGEST].rsplit(" ", 1)[0] + " …"
    own = word(each.paper)
    if each.paper is not None and not each.paper.holds:
        own += f": {each.paper.figures[:LONGEST]}"
    cells = (each.claim.where, each.claim.text, own, word(each.ours), shown)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _rows_below(experiments: Mapping[str, Experiment], results: Results, reasons: Reasons) -> Iterator[str]:
    """Rows of tables and bars below the paper with a reason; curves have a sentence of their own."""
    for name, records in results.items():
        experiment = experiments[name]
        for record in _tabled(records):
            reason = reasons.of(name, record.panel, record.row)
            cells = (
                f"{experiment.paper}, {record.panel}",
                record.row,
                f"{record.mean:.1f}",
                f"{record.paper:.1f}",
                reason,
            )
            yield "| " + " | ".join(cells) + " |"


def _tabled(records: Sequence[Record]) -> list[Record]:
    return [] if is_curve(records) else below_paper(records)
