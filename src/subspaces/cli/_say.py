"""What ``subspaces cluster`` tells a person when it is done."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import typer

from subspaces.cli._common import one_line

if TYPE_CHECKING:
    from subspaces.cli._outputs import Run

SHOWN = ("kernel", "bandwidth", "scaling", "reg", "n_nonzero", "partition")
"""Parameters worth a word."""

UNSURE = 0.2
"""Confidence below which a point is counted as unsure."""


def say(run: Run, written: list[str], found: bool) -> None:
    """Print what was done, how it went and where it is."""
    document, labels = run.document, run.estimator.labels_.tolist()
    parameters = {**document["parameters"], **document.get("chosen", {})}
    setting = ", ".join(f"{name} {parameters[name]}" for name in SHOWN if parameters.get(name) is not None)
    name = document["method"].upper()
    typer.echo(one_line(f"{document['source']}: {document['n_points']} points, {document['n_features']} features"))
    typer.echo(f"{name} ({setting}, seed {parameters['random_state']})")
    if "reason" in document:
        typer.echo(f"chosen: {document['reason']}")
    if "runner_up" in document:
        typer.echo(f"undecided: {document['runner_up']}")
    low, high = document.get("n_clusters_range", (0, 0))
    span = f"; {low} to {high} are nearly as good" if low < high else ""
    how = f" (the number was found; -k sets it{span})" if found else ""
    typer.echo(f"{document['n_clusters']} clusters in {document['seconds']:.1f} s{how}, of sizes {_sizes(labels)}")
    if run.summary is not None:
        typer.echo(_confidence(run.summary))
    if run.data is not None and run.data.y is not None:
        from subspaces.metrics import score_table

        typer.echo(f"\n{score_table(run.data.y, {name: labels})}\n")
    for note in document["notes"]:
        typer.echo(f"note: {one_line(note)}")
    for line in written:
        typer.echo(one_line(line))
    if not written:
        typer.echo("no file written; -o labels.csv saves the labels, --report out.html a page to look at")


def _confidence(summary: Any) -> str:
    from numpy import median

    unsure, nowhere = int((summary.confidence < UNSURE).sum()), int(summary.fits_nowhere.sum())
    text = f"confidence of the labels: median {median(summary.confidence):.2f}; {unsure} points below {UNSURE}"
    return f"{text}; {nowhere} fit nowhere"


def _sizes(labels: list[int], limit: int = 40) -> str:
    sizes = sorted(Counter(labels).values(), reverse=True)
    more = f" and {len(sizes) - limit} smaller" if len(sizes) > limit else ""
    return " ".join(map(str, sizes[:limit])) + more
