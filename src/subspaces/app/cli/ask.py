"""``subspaces ask``: questions about pairs of samples, in the terminal; about pictures in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from subspaces.app.cli import _options as options
from subspaces.app.cli._common import limited_threads, one_line, refuse, tell
from subspaces.app.cli._options import Reading
from subspaces.app.cli.cluster import ClustersOption
from subspaces.app.cli.explore import AnswersOption, BrowserOption, open_page, started
from subspaces.utils.progress import shown
from subspaces.utils.spelling import counted

if TYPE_CHECKING:
    from subspaces.app.explorer import Session

KEYS: dict[str, Any] = {"s": True, "d": False, "?": None}
CHOICES = "same (s), different (d), don't know (?), undo (u), quit (q)"
MOST_LETTERS = 1500  # of a text
LABELS = "File for the labels at the end: .csv, .tsv, .xlsx, .parquet or .npy."


@options.reads_files
def ask(
    file: options.FilesArgument,
    reading: Reading,
    n_clusters: ClustersOption = None,
    answers: AnswersOption = None,
    output: Annotated[Path | None, options.output("-o --output", "FILE", LABELS)] = None,
    force: options.ForceOption = False,
    seed: options.SeedOption = None,
    threads: options.ThreadsOption = None,
    browser: BrowserOption = True,
    quiet: options.QuietOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Answer questions about pairs of samples of FILE: are these two of one group? The groups follow.

    Ten answers often decide what is not in the data: how many groups there are, and how fine. Tables and texts are
    asked about here, pictures in the browser.

    Example: subspaces ask wine.csv --answers answers.csv -o labels.csv
    """
    if list(file) == ["-"]:
        raise refuse("FILE", "the answers come from the keyboard, so a table cannot come from a pipe; name a file")
    from subspaces.app.files import check_output

    if output is not None:
        check_output(output, force=force, source=file[0])
        if answers is not None and output.resolve() == answers.resolve():
            raise refuse("--output", "the answers go to this file (--answers); choose another name")
    with limited_threads(threads):
        session, source = started(file, reading, n_clusters, seed, answers, quiet)
        if session.data.image_shape is not None:
            open_page(session, source, open_browser=browser, asking=True)
        else:
            _converse(session, quiet)
            tell("", session.view.verdict)
    if output is not None:
        session.write_labels(output, force=force)
        tell(f"labels written to {output}")
    elif answers is None and session.answers:
        tell("no file written; --answers answers.csv keeps the answers, -o labels.csv the labels")


def _converse(session: Session, quiet: bool) -> None:
    """Ask until there is nothing left to ask, or the person has had enough."""
    tell(session.view.verdict)
    while True:
        with shown(not quiet):
            found = session.question()
        if found is None:
            tell("no question would change the groups any more")
            return
        tell("", f"question {len(session.answers) + 1}: are these two of one group? ({found.reason})")
        typer.echo("\n".join((_rows if session.texts is None else _texts)(session, found.i, found.j)))
        key = _key()
        if key == "q":
            return
        if key == "u":
            tell("the last answer is taken back" if session.answers else "there is no answer to take back")
            session.undo()
        else:
            session.answer([(found.i, found.j, KEYS[key])])
            tell(session.view.told)


def _rows(session: Session, i: int, j: int) -> list[str]:
    """Return two rows as a table, the columns that differ most first and marked."""
    from subspaces.app.explorer.session import CLEAR

    found = session.difference(i, j)
    cells = [("", session.ids[i], session.ids[j])]
    cells += [(each.column, f"{each.one:.6g}", f"{each.other:.6g}") for each in found]
    shown = [[one_line(cell)[:40] for cell in row] for row in cells]
    wide = [max(map(len, column)) for column in zip(*shown, strict=True)]
    marks = ["", *(" <- differ" if each.gap >= CLEAR else "" for each in found)]
    lines = [
        f"  {name:<{wide[0]}}  {one:>{wide[1]}}  {other:>{wide[2]}}{mark}"
        for (name, one, other), mark in zip(shown, marks, strict=False)
    ]
    more = len(session.columns) - len(found)
    return [*lines, *([f"  {counted(more, 'column differs', 'columns differ')} less"] if more else [])]


def _texts(session: Session, i: int, j: int) -> list[str]:
    """Return two texts, one below the other."""
    assert session.texts is not None
    lines = []
    for each in (i, j):
        text = session.texts[each]
        shown = [one_line(line) for line in text[:MOST_LETTERS].splitlines() if line.strip()]
        lines += [f"--- {one_line(session.ids[each])}", *shown, *["..."] * (len(text) > MOST_LETTERS)]
    return [*lines, "---"]


def _key() -> str:
    """Read what a person types until it is an answer; the end of the input is one as well."""
    while True:
        try:
            typed = input(f"{CHOICES}: ").strip().lower()
        except EOFError:
            return "q"
        if typed[:1] in {*KEYS, "u", "q"} and typed:
            return typed[0]
        tell(f"'{one_line(typed)}' is none of {CHOICES}")
