"""Everything ``subspaces cluster`` writes: checked before the work begins, written when it is done."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from subspaces.cli._common import command_line

if TYPE_CHECKING:
    from subspaces.confidence import Summary
    from subspaces.io import Dataset


@dataclass(frozen=True)
class Run:
    """A finished run; files that workers read piece by piece have neither `data` nor `summary`."""

    document: dict[str, Any]
    estimator: Any
    data: Dataset | None = None
    summary: Summary | None = None


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
        from subspaces.io import FileError, check_output

        if self.labels is not None:
            check_output(self.labels, force=self.force, source=source)
        for path, suffixes, what in (
            (self.report, (".html", ".htm"), "report"),
            (self.tables, (".md", ".tex"), "tables"),
        ):
            if path is not None:
                check_output(path, force=self.force, source=source, suffixes=suffixes, what=what)
        if self.report is not None:
            for name in ("matplotlib", "jinja2"):
                if find_spec(name) is None:
                    raise FileError(self.report, f'a report needs {name}: pip install "subspaces[report]"')
        if self.link and self.folder is None:
            raise typer.BadParameter("has a meaning only with --sort-into", param_hint="--link")
        if self.folder is not None:
            from subspaces.io.sorting import check_target

            if source.exists() and not source.is_dir():
                raise typer.BadParameter("sorts the images of a folder; this is a file", param_hint="--sort-into")
            check_target(self.folder, source=source, force=self.force)

    def write(self, run: Run) -> list[str]:
        """Write everything that was asked for; one line each for people."""
        written = []
        if self.labels is not None:
            self._write_labels(self.labels, run)
            written.append(f"labels written to {self.labels}")
        if run.data is None or run.summary is None:
            return written
        if self.folder is not None:
            from subspaces.io.sorting import sort_into

            names = [str(name) for name in run.data.ids or ()]
            sort_into(self.folder, run.data.source, names, run.summary, link=self.link)
            n_clusters, how = len(run.summary.clusters), "linked" if self.link else "copied"
            written.append(f"{len(run.data.X)} images {how} into {n_clusters} folders in {self.folder}")
        if self.report is not None or self.tables is not None:
            written += self._write_report(run)
        return written

    def _write_labels(self, path: Path, run: Run) -> None:
        from subspaces.io import write_labels

        columns = point_columns(run)
        data = run.data
        for name in ("labels", "ids", "rows"):
            columns.pop(name, None)
        write_labels(
            path,
            run.estimator.labels_,
            ids=None if data is None else data.ids if data.rows is None else data.row_ids,
            columns=columns,
            rows=None if data is None else data.rows,
            n_rows=None if data is None else data.n_rows,
            extra=run.document,
            force=self.force,
        )

    def _write_report(self, run: Run) -> list[str]:
        from subspaces.report import Content, write_report, write_tables

        assert run.data is not None
        assert run.summary is not None
        content = Content.from_dataset(run.estimator, run.data, run.summary, run.document, command=command_line())
        written = []
        if self.report is not None:
            write_report(self.report, content)
            written.append(f"report written to {self.report}; open it in a browser")
        if self.tables is not None:
            write_tables(self.tables, content)
            written.append(f"tables written to {self.tables}")
        return written


def point_columns(run: Run) -> dict[str, Any]:
    """What is known of each point, as lists ready for JSON; rows of the file that were dropped are not among them."""
    columns: dict[str, Any] = {}
    if run.data is not None and run.data.ids is not None:
        columns["ids"] = list(run.data.ids)
    if run.data is not None and run.data.rows is not None:
        columns["rows"] = run.data.rows.tolist()
    columns["labels"] = run.estimator.labels_.tolist()
    if run.summary is not None:
        summary = run.summary
        second = [None if label < 0 else label for label in summary.second_cluster.tolist()]
        columns["confidence"] = summary.confidence.tolist()
        columns["second_cluster"] = second
        columns["margin"] = summary.margin.tolist()
        columns["fits_nowhere"] = summary.fits_nowhere.tolist()
    return columns
