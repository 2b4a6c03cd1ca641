"""What ``subspaces cluster`` leaves behind: files, checked before the work begins, and what it tells a person."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from subspaces.app.cli._common import one_line, repeated_command
from subspaces.app.cli._options import AUTO
from subspaces.app.cli._stream import LEFT
from subspaces.utils.progress import phase
from subspaces.utils.spelling import counted

if TYPE_CHECKING:
    from subspaces.app.files import Dataset
    from subspaces.engine.confidence import Summary

SHOWN = ("kernel", "bandwidth", "scaling", "reg", "n_nonzero", "assign_labels")
"""Parameters worth a word."""

N_WORDS, MOST_LINES = 5, 20
"""Words of a cluster of texts, and clusters, that are told."""


@dataclass(frozen=True)
class Run:
    """A finished run; files that workers read piece by piece have neither `data` nor `summary`."""

    document: dict[str, Any]
    estimator: Any
    data: Dataset | None = None
    summary: Summary | None = None
    reading: str = ""  # lines of Python that read the points


@dataclass(frozen=True)
class Outputs:
    """Where results go; None is nowhere."""

    labels: Path | None
    report: Path | None
    tables: Path | None
    folder: Path | None
    link: bool
    force: bool

    def check(self, source: Path) -> None:
        """Refuse what could not be written, before hours are spent computing it."""
        from subspaces.app.files import check_output

        if self.labels is not None:
            check_output(self.labels, force=self.force, source=source)
        self.check_pages(source)
        if self.link and self.folder is None:
            raise typer.BadParameter("has a meaning only with --sort-into", param_hint="--link")
        if self.folder is not None:
            from subspaces.app.files.sorting import check_target

            if source.exists() and not source.is_dir():
                raise typer.BadParameter("sorts the images of a folder; this is a file", param_hint="--sort-into")
            check_target(self.folder, source=source, force=self.force)

    def check_pages(self, source: Path) -> None:
        """Refuse a report or tables that could not be written."""
        from subspaces.app.files import FileError, check_output

        if self.report is not None:
            check_output(self.report, force=self.force, source=source, suffixes=(".html", ".htm"), what="report")
        if self.tables is not None:
            check_output(self.tables, force=self.force, source=source, suffixes=(".md", ".tex"), what="tables")
        if self.report is not None:
            for name in ("matplotlib", "jinja2"):
                if find_spec(name) is None:
                    raise FileError(self.report, f'a report needs {name}: pip install "subspaces[app]"')

    def write(self, run: Run) -> list[str]:
        """Write everything that was asked for; one line each for people. Labels of a stream may be there already."""
        from subspaces.app.files import write_labels

        written, data, summary = [], run.data, run.summary
        if self.labels is not None:
            table: dict[str, Any] = {} if data is None else data.table
            labels, columns = run.estimator.labels_, {} if summary is None else summary.columns()
            if data is not None or self.labels.suffix not in LEFT:
                with phase("Writing the labels"):
                    write_labels(self.labels, labels, columns=columns, extra=run.document, force=self.force, **table)
            written.append(f"labels written to {self.labels}")
        if data is None or summary is None:
            return written
        if self.folder is not None:
            from subspaces.app.files.sorting import sort_into

            sort_into(self.folder, data.source, [str(name) for name in data.ids or ()], summary, link=self.link)
            folders, how = counted(len(summary.clusters), "folder"), "linked" if self.link else "copied"
            written.append(f"{counted(data.n_samples, 'image')} {how} into {folders} in {self.folder}")
        if self.report is None and self.tables is None:
            return written
        from subspaces.app.report import Content, write_report, write_tables

        with phase("Preparing the report"):
            content = Content.from_dataset(
                run.estimator, data, summary, run.document, command=repeated_command(), reading=run.reading
            )
        if self.report is not None:
            with phase("Writing the report"):
                write_report(self.report, content)
            written.append(f"report written to {self.report}; open it in a browser")
        if self.tables is not None:
            write_tables(self.tables, content)
            written.append(f"tables written to {self.tables}")
        return written


def as_document(run: Run) -> dict[str, Any]:
    """Everything about a run, ready for JSON; rows of the file that were dropped are not among the points."""
    places = {} if run.data is None else run.data.places
    columns = {} if run.summary is None else run.summary.columns()
    return {**run.document, **places, "cluster": run.estimator.labels_.tolist(), **columns}


def say(run: Run, written: list[str], found: bool) -> None:
    """Print what was found, then how, then where it is."""
    document, labels = run.document, run.estimator.labels_.tolist()
    name = document.get("winner", document["method"]).upper()
    if document.get("verdict"):
        typer.echo(one_line(document["verdict"]))
    noun = "image" if run.data is not None and run.data.is_image_folder else "point"
    shape = f"{counted(document['n_samples'], noun)}, {counted(document['n_features'], 'feature')}"
    typer.echo(one_line(f"{document['source']}: {shape}, clustered in {document['seconds']:.1f} s"))
    how = " (the number was found; -k sets it)" if found else ""
    sizes = f"; points in each cluster: {sizes_of(labels)}" if document["n_clusters"] > 1 else ""
    typer.echo(f"{counted(document['n_clusters'], 'cluster')}{'' if sizes else ' of all points'}{how}{sizes}")
    if run.summary is not None and document["n_clusters"] > 1:
        typer.echo(_confidence(run.summary))
    for line in _words(document):
        typer.echo(one_line(line))
    if run.data is not None and run.data.y is not None:
        from subspaces.metrics import score_table

        typer.echo(f"\n{score_table(run.data.y, {name: labels})}\n")
    for line in _how(document, name):
        typer.echo(line)
    for note in document["notes"]:
        typer.echo(f"note: {one_line(note)}")
    for line in written:
        typer.echo(one_line(line))
    if not written:
        typer.echo("no file written; -o labels.csv saves the labels, --report out.html a page to look at")


def _words(document: dict[str, Any]) -> list[str]:
    """The first words that make each cluster of texts, largest cluster first."""
    rows = sorted((row for row in document.get("clusters", ()) if row.get("words")), key=lambda row: -row["size"])
    lines = [f"cluster {row['cluster']}: {', '.join(row['words'][:N_WORDS])}" for row in rows[:MOST_LINES]]
    return [*lines, *([f"and {len(rows) - MOST_LINES} more clusters"] if len(rows) > MOST_LINES else [])]


def _how(document: dict[str, Any], name: str) -> list[str]:
    """How the answer came about, for those who want to know: a reason, a second answer, the method's parameters."""
    lines = []
    for title, key in (("how this was chosen: ", "reason"), ("", "runner_up")):
        if text := document.get(key):
            lines.append(f"{title}{text[0].lower()}{text[1:]}")
    settled = {**document["parameters"], **document.get("chosen", {})}
    shown = {key: settled[key] for key in SHOWN if settled.get(key) not in (None, AUTO)}
    setting = ", ".join(f"{key} {value}" for key, value in {**shown, "seed": settled["random_state"]}.items())
    return [*lines, f"method: {name} ({setting})"]


def _confidence(summary: Any) -> str:
    """How probable it is that labels are right."""
    from numpy import median

    from subspaces.engine.confidence import UNSURE

    unsure, nowhere = int((summary.confidence < UNSURE).sum()), int(summary.fits_nowhere.sum())
    text = f"confidence of the labels: median {median(summary.confidence):.2f} of 1"
    return (
        f"{text}; {counted(unsure, 'point is', 'points are')} below {UNSURE}; {counted(nowhere, 'fits', 'fit')} nowhere"
    )


def sizes_of(labels: list[int], limit: int = 40) -> str:
    """Numbers of the clusters with their points, the largest first.

    Examples
    --------
    >>> sizes_of([0, 1, 1, 2, 1, 2])
    '1: 3, 2: 2, 0: 1'
    """
    sizes = sorted(Counter(labels).items(), key=lambda entry: (-entry[1], entry[0]))
    more = f", and {len(sizes) - limit} more" if len(sizes) > limit else ""
    return ", ".join(f"{label}: {size}" for label, size in sizes[:limit]) + more
