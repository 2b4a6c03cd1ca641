"""``subspaces cluster``: points from a file, labels to a file."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer

from subspaces.cli import _options as options
from subspaces.cli._common import limited_threads, one_line, plain, progress_bar

if TYPE_CHECKING:
    from subspaces.io import Dataset


def cluster(
    file: options.FileArgument,
    n_clusters: options.ClustersOption = None,
    method: options.MethodOption = "ktrr",
    kernel: options.KernelOption = None,
    bandwidth: options.BandwidthOption = None,
    reg: options.RegOption = None,
    n_nonzero: options.NonzeroOption = None,
    scaling: options.ScalingOption = None,
    partition: options.PartitionOption = None,
    seed: options.SeedOption = None,
    threads: options.ThreadsOption = None,
    label: options.LabelOption = None,
    id_: options.IdOption = None,
    ignore: options.IgnoreOption = None,
    array: options.ArrayOption = None,
    header: options.HeaderOption = None,
    output: options.OutputOption = None,
    force: options.ForceOption = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Cluster the points of FILE.

    Options that are not given leave the method its own defaults.

    The columns of a text file without a header are named 1, 2, 3 and so on.

    Example: subspaces cluster faces.npz -k 38 --label y -o labels.csv
    """
    from subspaces.io import check_output, read_table, write_labels

    if output is not None:
        check_output(output, force=force, source=file)
    with limited_threads(threads):
        data = read_table(file, label=label, id=id_, ignore=ignore or (), array=array, header=header)
        settings = {
            "kernel": kernel,
            "bandwidth": _number_or_name(bandwidth),
            "reg": reg,
            "n_nonzero": n_nonzero,
            "scaling": scaling,
            "partition": partition,
            "random_state": seed,
        }
        given = {name: value for name, value in settings.items() if value is not None}
        estimator = build(method, n_clusters, len(data.X), given)
        start = perf_counter()
        fit(estimator, data, show=not (quiet or as_json))
        seconds = perf_counter() - start
        document = describe(method, estimator, data, seconds)
    labels = estimator.labels_
    if output is not None:
        write_labels(output, labels, ids=data.ids, extra=document, force=force)
    if as_json:
        ids = {} if data.ids is None else {"ids": plain(data.ids)}
        typer.echo(json.dumps({**document, **ids, "labels": labels.tolist()}, allow_nan=False))
    elif not quiet:
        _summarise(document, data, labels.tolist(), output, found=n_clusters is None)


def _number_or_name(text: str | None) -> float | str | None:
    if text is None or text in ("mean", "rms", "median"):
        return text
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not mean, rms, median or a number", param_hint="--bandwidth") from None


def build(method: str, n_clusters: int | None, n_points: int, given: dict[str, Any]) -> Any:
    """Make the estimator called `method` with the options that were given, and check that they go together."""
    from subspaces.methods import METHODS

    if method not in METHODS:
        raise typer.BadParameter(f"'{method}' is not one of {', '.join(METHODS)}", param_hint="--method")
    if n_clusters is not None and n_clusters > n_points:
        problem = f"{n_clusters} clusters of {n_points} points; ask for fewer"
        raise typer.BadParameter(problem, param_hint="-k")
    if n_clusters is None and given.setdefault("partition", "modularity") != "modularity":
        problem = f"--partition {given['partition']} needs the number of clusters; add -k"
        raise typer.BadParameter(problem, param_hint="-k")
    if given.get("scaling") == "none":
        given["scaling"] = None
    known = METHODS[method]().get_params()
    for name in given:
        if name not in known:
            option = "--seed" if name == "random_state" else "--" + name.replace("_", "-")
            raise typer.BadParameter(f"has no meaning for the method {method}", param_hint=option)
    return METHODS[method](n_clusters=n_clusters, **given)


def fit(estimator: Any, data: Dataset, show: bool) -> None:
    """Cluster; a parameter out of its range is the command's fault, anything else the computation's."""
    from sklearn.utils._param_validation import InvalidParameterError

    try:
        with progress_bar(estimator, show):
            estimator.fit(data.X)
    except InvalidParameterError as error:
        raise typer.BadParameter(str(error)) from error


def describe(method: str, estimator: Any, data: Dataset, seconds: float) -> dict[str, Any]:
    """Everything about a run but the labels, ready for JSON."""
    from subspaces import __version__
    from subspaces.metrics import clustering_scores

    document = {
        "version": __version__,
        "source": str(data.source),
        "n_points": data.X.shape[0],
        "n_features": data.X.shape[1],
        "method": method,
        "parameters": plain(estimator.get_params()),
        "n_clusters": int(estimator.n_clusters_),
        "n_components": getattr(estimator, "n_components_", None),
        "seconds": seconds,
        "timings": plain(estimator.timings_),
        "notes": list(data.notes),
    }
    if data.y is not None:
        document["scores"] = plain(clustering_scores(data.y, estimator.labels_))
    return document


def _summarise(document: dict[str, Any], data: Dataset, labels: list[int], output: Path | None, found: bool) -> None:
    """Tell a person what was done."""
    from subspaces.metrics import score_table

    parameters = document["parameters"]
    shown = ("kernel", "bandwidth", "scaling", "reg", "n_nonzero", "partition")
    setting = ", ".join(f"{name} {parameters[name]}" for name in shown if parameters.get(name) is not None)
    name = document["method"].upper()
    typer.echo(one_line(f"{data.source}: {document['n_points']} points, {document['n_features']} features"))
    typer.echo(f"{name} ({setting}, seed {parameters['random_state']})")
    how = " (the number was found; -k sets it)" if found else ""
    typer.echo(f"{document['n_clusters']} clusters in {document['seconds']:.1f} s{how}, of sizes {_sizes(labels)}")
    if data.y is not None:
        typer.echo(f"\n{score_table(data.y, {name: labels})}\n")
    for note in data.notes:
        typer.echo(f"note: {one_line(note)}")
    if output is not None:
        typer.echo(f"labels written to {one_line(output)}")
    else:
        typer.echo("no file written; -o labels.csv saves the labels")


def _sizes(labels: list[int], limit: int = 40) -> str:
    sizes = sorted(Counter(labels).values(), reverse=True)
    more = f" and {len(sizes) - limit} smaller" if len(sizes) > limit else ""
    return " ".join(map(str, sizes[:limit])) + more
