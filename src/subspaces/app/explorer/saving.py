"""What can be taken away from the page: a table of labels by the command line's writer, and the report."""

from __future__ import annotations

import io
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from subspaces.app.description import describe
from subspaces.app.explorer.session import Session, View
from subspaces.app.files import write_labels
from subspaces.engine.confidence import summarize
from subspaces.utils.progress import phase


def labels_file(session: Session, view: View, suffix: str = ".csv") -> io.BytesIO:
    """The clusters that are shown, as ``subspaces cluster -o`` writes them; points outside the sample have none.

    Where a cluster was given a name, a column ``name`` has it.
    """
    summary = summarize(session.labelled(view), session.X)
    columns: dict[str, Any] = dict(summary.columns())
    if any(view.names):
        columns = {"name": np.array([view.name_of(k) for k in view.labels.tolist()], dtype=object), **columns}
    sampled = len(session.rows) < session.n_given
    rows = {"rows": session.rows, "n_rows": session.n_given} if sampled else {}
    with TemporaryDirectory() as folder:
        file = Path(folder, f"labels{suffix}")
        write_labels(file, view.labels, ids=session.given_ids, lines=session.lines, columns=columns, **rows)
        return io.BytesIO(file.read_bytes())


def report_file(session: Session, view: View, title: str, command: str = "") -> io.BytesIO:
    """The report of what is shown, one page of HTML; `command` repeats it in a shell, where one does."""
    from subspaces.app.report import Content, write_report

    model = session.labelled(view)
    summary = summarize(model, session.X)
    classes, codes = (None, None) if session.y is None else np.unique(session.y, return_inverse=True)
    notes = [f"made in the explorer of {len(session.rows)} of {session.n_given} points"]
    notes += ["clusters were merged by hand"] if view.has_merged else []
    known: dict[str, Any] = {"summary": summary, "names": session.ids, "notes": notes, "texts": session.texts}
    document = describe(model, source=title, shape=session.X.shape, y=codes, **known)
    of_vectors: dict[str, Any] = {} if session.pixels is None else {"pixels": session.pixels}
    content = Content(
        model,
        session.X,
        summary,
        document,
        ids=session.ids,
        y=codes,
        classes=None if classes is None else [str(name) for name in classes],
        image_shape=session.image_shape,
        texts=session.texts,
        command=command,
        cluster_names=dict(enumerate(view.names)),
        **of_vectors,
    )
    with TemporaryDirectory() as folder, phase("Writing the report"):
        file = Path(folder, "report.html")
        write_report(file, content)
        return io.BytesIO(file.read_bytes())


def can_write_reports() -> bool:
    """Whether what a report needs is installed."""
    return all(find_spec(name) is not None for name in ("matplotlib", "jinja2"))


def can_write_workbooks() -> bool:
    """Whether what a workbook needs is installed."""
    return find_spec("openpyxl") is not None
