"""Outputs of ``subspaces cluster``: files, checked before the work begins, and what it tells a person."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from subspaces import registry
from subspaces.app.cli._common import refuse, repeated_command, tell
from subspaces.app.cli._image import check_map, image_content, write_map
from subspaces.app.cli._motion import draw_tracks
from subspaces.app.cli._options import AUTO
from subspaces.app.cli._stream import LEFT
from subspaces.app.cli._task import Run, Task
from subspaces.utils.progress import phase
from subspaces.utils.spelling import counted

if TYPE_CHECKING:
    from subspaces.app.report import Content

KINDS = {
    **dict.fromkeys((".html", ".htm"), "page"),
    ".json": "tree",
    ".png": "tracks",
}
"""What ``--report`` writes, by the suffix of its file."""

WRITTEN = {
    "page": "report written to {}; open it in a browser",
    "tree": "tree written to {}",
    "tracks": "tracks drawn in {}",
}

SHOWN = ("kernel", "bandwidth", "scaling", "reg", "n_nonzero", "assign_labels")
"""Parameters worth a word."""

N_WORDS, MOST_LINES = 5, 20  # words of a cluster of texts, and clusters, that are told


@dataclass(frozen=True)
class Outputs:
    """Where results go; None is nowhere."""

    labels: Path | None
    reports: tuple[Path, ...]
    folder: Path | None
    model: Path | None
    link: bool
    force: bool

    def check(self, task: Task) -> None:
        """Refuse what could not be written, before hours are spent computing it."""
        from subspaces.app.files import check_output

        if self.link and self.folder is None:
            raise refuse("link", "has a meaning only with --sort-into")
        main, force = task.inputs.main, self.force
        for source in (main, *task.inputs.tables[1:]):
            if task.is_image:
                check_map(self.labels, source, force)
            elif self.labels is not None:
                check_output(self.labels, force=force, source=source)
            for path in self.reports:
                check_output(path, force=force, source=source, suffixes=tuple(KINDS), what="report")
                self._check_report(path, task)
        if self.folder is not None:
            from subspaces.app.files.sorting import check_target

            if task.is_image or (main.exists() and not main.is_dir()):
                this = "not the pixels of one" if task.is_image else "this is a file"
                raise refuse("--sort-into", f"sorts the images of a folder, {this}")
            check_target(self.folder, source=main)
        if self.model is not None:
            from subspaces.app.files.models import SUFFIX, check_features, check_model_library

            check_output(self.model, force=force, source=main, suffixes=(SUFFIX,), what="model")
            check_model_library(self.model)
            if task.features.extractor is not None:
                check_features(self.model, task.features.extractor)

    def _check_report(self, path: Path, task: Task) -> None:
        kind = KINDS[path.suffix.lower()]
        if kind == "tree" and task.method in registry.names("large"):
            problem = f"the method {task.method} makes no graph between the points, so it has no tree"
            raise refuse("--report", f"{problem}; choose another --method")
        if kind == "tracks" and not task.is_motion:
            raise refuse("--report", f"{path.suffix.lower()} draws tracks; add --motion")

    def write(self, run: Run) -> list[str]:
        """Write everything that was asked for; return one line each for people."""
        written = write_map(self.labels, run) if run.image is not None else self._write_labels(run)
        if self.folder is not None and run.data is not None and run.summary is not None:
            from subspaces.app.files.sorting import sort_into

            data = run.data
            sort_into(self.folder, data.source, [str(name) for name in data.ids or ()], run.summary, link=self.link)
            folders, how = counted(len(run.summary.clusters), "folder"), "linked" if self.link else "copied"
            written.append(f"{counted(data.n_samples, 'image')} {how} into {folders} in {self.folder}")
        written += self._write_reports(run)
        if self.model is not None and run.data is not None:
            from subspaces.app.files.models import Reading, save_model

            save_model(self.model, run.estimator, Reading.of(run.data))
            written.append(f"model written to {self.model}; subspaces predict {self.model} NEW labels new points")
        return written

    def _write_labels(self, run: Run) -> list[str]:
        """Write the labels; those of a stream may be there already."""
        from subspaces.app.files import write_labels
        from subspaces.app.groups import table_of

        if self.labels is None:
            return []
        if run.data is not None or self.labels.suffix not in LEFT:
            table: dict[str, Any] = {"columns": run.columns(), "force": self.force}
            table |= {} if run.data is None else table_of(run.data, run.groups)
            with phase("Writing the labels"):
                write_labels(self.labels, run.estimator.labels_, **table)
        return [f"labels written to {self.labels}"]

    def _write_reports(self, run: Run) -> list[str]:
        kinds = [KINDS[path.suffix.lower()] for path in self.reports]
        for path, kind in zip(self.reports, kinds, strict=True):
            with phase("Writing the report"):
                if kind == "page":
                    from subspaces.app.report import write_report

                    write_report(path, _content(run))
                elif kind == "tree":
                    _write_tree(path, run)
                else:
                    draw_tracks(path, run.tracks, run.estimator.labels_)
        return [WRITTEN[kind].format(path) for path, kind in zip(self.reports, kinds, strict=True)]


def _content(run: Run) -> Content:
    if run.image is not None:
        return image_content(run)
    from subspaces.app.report import Content

    assert run.data is not None
    assert run.summary is not None
    more = {"command": repeated_command(), "reading": run.reading, "groups": run.groups}
    return Content.from_dataset(run.estimator, run.data, run.summary, run.document, **more)


def _write_tree(path: Path, run: Run) -> None:
    """Write the clusters from coarse to fine and name the samples by their names, lines or rows."""
    from subspaces.utils.atomic import write_text

    tree = run.estimator.tree_
    places = {} if run.data is None else run.data.places
    write_text(path, json.dumps({**json.loads(tree.to_json()), **places}, default=str) + "\n")


# ------------------------------------------------------------------ what a person or a program is told


def as_document(run: Run) -> dict[str, Any]:
    """Return everything about a run, ready for JSON; rows of the file that were dropped are not among the samples."""
    places = {} if run.data is None else run.data.places
    return {**run.document, **places, "cluster": run.estimator.labels_.tolist(), **run.columns()}


def say(run: Run, written: list[str], found: bool) -> None:
    """Print what was found, then how, then where it is."""
    document, labels = run.document, run.estimator.labels_.tolist()
    name = document.get("winner", document["method"]).upper()
    if document.get("verdict"):
        tell(document["verdict"])
    noun = "image" if run.data is not None and run.data.is_image_folder else "point"
    shape = f"{counted(document['n_samples'], noun)}, {counted(document['n_features'], 'feature')}"
    tell(f"{document['source']}: {shape}, clustered in {document['seconds']:.1f} s")
    how = " (the number was found; -k sets it)" if found else ""
    sizes = f"; points in each cluster: {sizes_of(labels)}" if document["n_clusters"] > 1 else ""
    tell(f"{counted(document['n_clusters'], 'cluster')}{'' if sizes else ' of all points'}{how}{sizes}")
    if run.summary is not None and document["n_clusters"] > 1:
        tell(_confidence(run.summary))
    tell(*_words(document))
    if run.data is not None and run.data.y is not None:
        from subspaces.metrics import score_table

        typer.echo(f"\n{score_table(run.data.y, {name: labels})}\n")
    tell(*_how(document, name), *(f"note: {note}" for note in document["notes"]))
    tell(*written or ["no file written; -o labels.csv saves the labels, --report out.html a page to look at"])


def _words(document: dict[str, Any]) -> list[str]:
    """Return what sets each cluster apart: columns, or the first words of a cluster of texts."""
    names = document.get("told", {}).get("names", {})
    found = [
        (f"cluster {row['cluster']}{', ' * (key in names)}{names.get(key, '')}", text)
        for row in sorted(document.get("clusters", ()), key=lambda row: -row["size"])
        if (text := ", ".join(row.get("words", ())[:N_WORDS]) or row.get("stands_out"))
        for key in [str(row["cluster"])]
    ]
    more = [f"and {len(found) - MOST_LINES} more clusters"] if len(found) > MOST_LINES else []
    return [f"{title}: {text}" for title, text in found[:MOST_LINES]] + more


def _how(document: dict[str, Any], name: str) -> list[str]:
    """Return how the answer came about: the reason, a second answer, the method's parameters."""
    lines = []
    for title, key in (("how this was chosen: ", "reason"), ("", "runner_up")):
        if text := document.get(key):
            lines.append(f"{title}{text[0].lower()}{text[1:]}")
    settled = {**document["parameters"], **document.get("chosen", {})}
    unused = ("bandwidth", "reg") if settled.get("kernel") == "neighbors" else ()
    shown = {key: settled[key] for key in SHOWN if key not in unused and settled.get(key) not in (None, AUTO)}
    setting = ", ".join(f"{key} {value}" for key, value in {**shown, "seed": settled["random_state"]}.items())
    return [*lines, f"method: {name} ({setting})"]


def _confidence(summary: Any) -> str:
    """Return how probable it is that labels are right."""
    from numpy import median

    from subspaces.engine.confidence import UNSURE

    unsure, nowhere = int((summary.confidence < UNSURE).sum()), int(summary.fits_nowhere.sum())
    text = f"confidence of the labels: median {median(summary.confidence):.2f} of 1"
    below = f"{counted(unsure, 'point is', 'points are')} below {UNSURE}"
    return f"{text}; {below}; {counted(nowhere, 'fits', 'fit')} nowhere"


def sizes_of(labels: list[int], limit: int = 40) -> str:
    """Return the numbers of the clusters with their sizes, the largest first.

    Examples
    --------
    >>> sizes_of([0, 1, 1, 2, 1, 2])
    '1: 3, 2: 2, 0: 1'
    """
    sizes = sorted(Counter(labels).items(), key=lambda entry: (-entry[1], entry[0]))
    more = f", and {len(sizes) - limit} more" if len(sizes) > limit else ""
    return ", ".join(f"{label}: {size}" for label, size in sizes[:limit]) + more
