"""``subspaces compare``: methods on a table, as :func:`subspaces.compare`; or label files with each other."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from subspaces.app.cli import _options as options
from subspaces.app.cli._common import complain, one_line, refuse, tell
from subspaces.app.cli._features import Features
from subspaces.app.cli._inputs import Inputs
from subspaces.app.cli._options import Reading
from subspaces.utils.spelling import counted

if TYPE_CHECKING:
    from subspaces.app.files.label_files import LabelFile

METHODS = 'Method to run, such as ktrr ("subspaces methods" lists them); may be given several times.'
KEPT = "Keep every run here; the same command goes on from there."
MEASURES = {"accuracy": "same", "ari": "ARI", "nmi": "NMI"}
"""Measures of two partitions, by their names in the table."""


@options.reads_files
def compare(
    file: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Label files: .csv, .tsv, .xlsx, .parquet or .npy; with --method a table, then label files.",
        ),
    ],
    reading: Reading,
    method: Annotated[list[str] | None, options.method("--method -m", "NAME", METHODS)] = None,
    runs: Annotated[int, options.method("--runs", "NUMBER", "Runs of each method (10 if not given).", min=1)] = 10,
    jobs: Annotated[int, options.method("--jobs", "NUMBER", "Methods that run beside each other; -1: all cores.")] = 1,
    checkpoint: Annotated[Path | None, options.output("--checkpoint", "FOLDER", KEPT)] = None,
    output: Annotated[Path | None, options.output("--output -o", "FILE", "The tables as .tex, .md or .csv.")] = None,
    force: options.ForceOption = False,
    as_json: options.JsonOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Compare methods on a table with known classes, or two or more files of labels with each other.

    With --method, FILE is a table or a folder: each method is run several times and scored by the column --label,
    beside k-means and one label for all; files of labels that follow are rows of their own.

    Without, samples of label files are matched by the column id (or line, or row), or by their order where files have
    none. The numbers of clusters mean nothing: clusters are matched so that as many samples as possible agree. --label
    is then a column of one of the files, which may hold nothing else.

    Example: subspaces compare monday.csv tuesday.csv
    """
    from subspaces.app.files.label_files import read_labels
    from subspaces.metrics.tables import Table

    reading.no_settings()
    label = reading.given.get("label")
    if method:
        if label is None:
            raise refuse("--label", "is needed with --method: the column with the true classes")
        how = {"n_runs": runs, "n_jobs": jobs, "checkpoint": checkpoint}
        found = _methods(file, reading, method, how, output, force)
        typer.echo(_as_json(found) if as_json else str(found))
        return
    if others := reading.given.keys() - {"label"}:
        raise refuse(min(others), "says how a table is read, which needs --method")
    read = [read_labels(path, label) for path in file]
    truth, found = _truth(read, label), [labels for labels in read if not labels.is_truth]
    if len(found) < (2 if truth is None else 1):
        more = "one and a file with the column --label" if label is None else "--method NAME for a table"
        raise refuse("FILE", f"needs two or more label files, or {more}; got {len(found)}")
    names = [labels.source.name for labels in found]
    if len(set(names)) < len(names):
        names = [str(labels.source) for labels in found]
    every = [*zip(names, found, strict=True), *([] if truth is None else [(str(label), truth)])]
    pairs = [((one, other), *_scores(a, b)) for (one, a), (other, b) in combinations(every, 2)]
    sizes = [{"n_samples": len(each.labels), "n_clusters": len(set(each.labels))} for each in found]
    if as_json:
        document = {
            "files": [{"file": name, **size} for name, size in zip(names, sizes, strict=True)],
            "pairs": [{"files": both, "n_samples": n, **scores} for both, n, scores in pairs],
        }
        typer.echo(json.dumps(document, allow_nan=False))
        return
    for name, size in zip(names, sizes, strict=True):
        tell(f"{name}: {counted(size['n_samples'], 'point')}, {counted(size['n_clusters'], 'cluster')}")
    rows = [
        (one_line(" and ".join(both)), str(n), *(f"{100 * scores[key]:.1f}" for key in MEASURES))
        for both, n, scores in pairs
    ]
    typer.echo(f"\n{Table(('agreement', 'points', *MEASURES.values()), rows)}")
    tell("same: points in matching clusters; ARI: adjusted Rand index; NMI: mutual information; in percent")


def _methods(
    files: list[Path], reading: Reading, methods: list[str], how: dict[str, Any], output: Path | None, force: bool
) -> Any:
    """Run methods on the first file or folder, with the other files' labels beside, and write the tables."""
    from subspaces.app.files import FileError, check_output, read_table
    from subspaces.app.files.label_files import read_labels
    from subspaces.inspection.citations import name_of
    from subspaces.inspection.comparison import compare as compare_methods
    from subspaces.utils.atomic import write_text

    if output is not None:
        check_output(output, force=force, source=files[0], suffixes=(".tex", ".md", ".csv"), what="table")
    try:
        rows: dict[str, Any] = {name: name_of(name) for name in methods}
    except ValueError as error:
        raise refuse("--method", str(error)) from None
    features = Features.checked(reading)
    data = features.of(read_table(Inputs.of([str(files[0])]).source, **reading.given))
    if data.y is not None and (data.y < 0).any():
        raise refuse("--label", "the column has gaps, and every point is scored by it; fill them in")
    for note in data.notes:
        complain(note)
    places = {name: [str(place) for place in column] for name, column in data.places.items()}
    for path in files[1:]:
        given = read_labels(path)
        if given.ids is not None and given.ids != places.get(given.named_by or "", given.ids):
            raise FileError(path, f"its rows are not those of {files[0].name} in the same order; sort them by it")
        rows[path.name] = given.labels
    found = compare_methods(rows, {files[0].name: (data.X, data.y)}, **how)
    if output is not None:
        kind = output.suffix.lower()
        tables = {".tex": found.to_latex, ".md": found.to_markdown}
        write_text(output, tables[kind]() if kind in tables else found.to_pandas(runs=True).to_csv())
    return found


def _as_json(found: Any) -> str:
    """Return the scores of all runs of a comparison on one data set; null where a method failed."""
    import numpy as np

    scores = {name: np.where(np.isfinite(values[:, 0]), values[:, 0], None) for name, values in found.scores.items()}
    by_method = {
        method: {name: values[i].tolist() for name, values in scores.items()} for i, method in enumerate(found.methods)
    }
    gaps = {method: error for (method, _), error in found.gaps.items()}
    return json.dumps({"file": found.datasets[0], "methods": by_method, "gaps": gaps}, allow_nan=False)


def _truth(found: list[LabelFile], label: str | None) -> LabelFile | None:
    """Return the known classes, as if they were labels."""
    if label is None:
        return None
    from subspaces.app.files.label_files import LabelFile

    known = next((file for file in found if file.truth is not None), None)
    if known is None or known.truth is None:
        raise refuse("--label", f"no file has a column '{one_line(label)}'")
    return LabelFile(known.source, known.truth, known.ids, known.named_by, is_truth=True)


def _scores(a: LabelFile, b: LabelFile) -> tuple[int, dict[str, float]]:
    """Return the number of samples that both files have, and how far their labels agree."""
    from subspaces.app.files import FileError
    from subspaces.metrics import clustering_scores

    first, second = a.labels, b.labels
    if a.ids is not None and b.ids is not None and a.named_by == b.named_by and a.ids != b.ids:
        for file in (a, b):
            if len(set(file.ids or ())) < len(file.ids or ()):
                raise FileError(file.source, "an id stands there twice; ids must differ to match points by them")
        places = {name: i for i, name in enumerate(b.ids)}
        shared = [(i, places[name]) for i, name in enumerate(a.ids) if name in places]
        if len(shared) < 2:
            raise FileError(b.source, f"it shares {counted(len(shared), 'id')} with {a.source.name}; 2 are needed")
        first, second = [a.labels[i] for i, _ in shared], [b.labels[j] for _, j in shared]
    elif len(first) != len(second):
        sizes = f"{counted(len(second), 'label')}, and {a.source.name} has {len(first)}"
        raise FileError(b.source, f"{sizes}; files without ids must have one for each point, in the same order")
    scores = clustering_scores(first, second)
    return len(first), {name: float(scores[name]) for name in MEASURES}
