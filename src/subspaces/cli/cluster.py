"""``subspaces cluster``: points from a file, labels to a file."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer

from subspaces.cli import _options as options
from subspaces.cli import _stream
from subspaces.cli._common import limited_threads, one_line, parse_bytes, plain, progress_bar

if TYPE_CHECKING:
    from subspaces.io import Dataset

AUTO = "auto"  # as in subspaces.selection, which would import NumPy
CHOSEN = ("kernel", "reg", "n_nonzero", "scaling", "partition")
"""Options that ktrr and trr choose from the points when they are not given; like the number of clusters."""


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
    memory: options.MemoryOption = None,
    scheduler: options.SchedulerOption = None,
    checkpoint: options.CheckpointOption = None,
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

    What is not given is chosen from the points by ktrr and trr, and left at its default by other methods.

    The columns of a text file without a header are named 1, 2, 3 and so on.

    Example: subspaces cluster faces.npz -k 38 --label y -o labels.csv
    """
    from subspaces._memory import limited
    from subspaces.io import check_output, read_table, write_labels

    if output is not None:
        check_output(output, force=force, source=file)
    settings = {
        "kernel": kernel,
        "bandwidth": _number_or_name(bandwidth),
        "reg": _number(reg, "--reg", float),
        "n_nonzero": _number(n_nonzero, "--n-nonzero", int),
        "scaling": scaling,
        "partition": partition,
        "random_state": seed,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    wanted = _number(n_clusters, "-k", int)
    y = ids = None
    show = not (quiet or as_json)
    with limited_threads(threads), limited(_bytes(memory)):
        if _stream.wanted(file, scheduler, _bytes(memory)):
            _refuse_with_stream({"--label": label, "--id": id_, "--ignore": ignore, "--array": array})
            estimator = build(method, wanted, None, given)
            document = _stream.cluster_stream(estimator, file, scheduler, checkpoint, threads, show)
            document["method"] = method
        else:
            data = read_table(file, label=label, id=id_, ignore=ignore or (), array=array, header=header)
            y, ids = data.y, data.ids
            estimator = build(method, wanted, len(data.X), given)
            start = perf_counter()
            fit(estimator, data, show=show)
            document = describe(method, estimator, data, perf_counter() - start)
    labels = estimator.labels_
    if output is not None:
        write_labels(output, labels, ids=ids, extra=document, force=force)
    if as_json:
        named = {} if ids is None else {"ids": plain(ids)}
        typer.echo(json.dumps({**document, **named, "labels": labels.tolist()}, allow_nan=False))
    elif not quiet:
        _summarise(document, y, labels.tolist(), output, found=wanted in (None, AUTO))


def _refuse_with_stream(given: dict[str, Any]) -> None:
    for option, value in given.items():
        if value:
            problem = "has no meaning for a file that workers read piece by piece; leave the column out of the file"
            raise typer.BadParameter(problem, param_hint=option)


def _bytes(text: str | None) -> int | None:
    try:
        return None if text is None else parse_bytes(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--memory") from None


def _number_or_name(text: str | None) -> float | str | None:
    if text is None or text in ("mean", "rms", "median"):
        return text
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not mean, rms, median or a number", param_hint="--bandwidth") from None


def _number(text: str | None, option: str, kind: type[int] | type[float]) -> float | str | None:
    if text is None or text == AUTO:
        return text
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise typer.BadParameter(f"'{text}' is not {what} or auto", param_hint=option) from None


def build(method: str, n_clusters: Any, n_points: int | None, given: dict[str, Any]) -> Any:
    """Make the estimator called `method` with the options that were given, and check that they go together."""
    from subspaces.methods import METHODS

    if method not in METHODS:
        raise typer.BadParameter(f"'{method}' is not one of {', '.join(METHODS)}", param_hint="--method")
    if isinstance(n_clusters, int) and not 1 <= n_clusters <= (n_points or n_clusters):
        problem = f"{n_clusters} clusters of {n_points} points; ask for {'fewer' if n_clusters > 0 else 'more'}"
        raise typer.BadParameter(problem, param_hint="-k")
    known = METHODS[method]().get_params()
    if _can_choose(METHODS[method], n_points):
        n_clusters = AUTO if n_clusters is None else n_clusters
        given = {**{name: AUTO for name in CHOSEN if name in known}, **given}
    elif AUTO in (n_clusters, *given.values()):
        raise typer.BadParameter(f"auto has no meaning for the method {method} here", param_hint="--method")
    if n_clusters is None and "partition" not in known:
        raise typer.BadParameter(f"the method {method} needs the number of clusters", param_hint="-k")
    if n_clusters is None and given.setdefault("partition", "modularity") != "modularity":
        problem = f"--partition {given['partition']} needs the number of clusters; add -k"
        raise typer.BadParameter(problem, param_hint="-k")
    if given.get("scaling") == "none":
        given["scaling"] = None
    for name in given:
        if name not in known:
            option = "--seed" if name == "random_state" else "--" + name.replace("_", "-")
            raise typer.BadParameter(f"has no meaning for the method {method}", param_hint=option)
    return METHODS[method](n_clusters=n_clusters, **given)


def _can_choose(cls: Any, n_points: int | None) -> bool:
    """Whether the method chooses its parameters from the points; it must have them all in memory for that."""
    from subspaces.estimators.automatic import AutomaticClusterer

    return n_points is not None and issubclass(cls, AutomaticClusterer)


def fit(estimator: Any, data: Dataset, show: bool) -> None:
    """Cluster; a parameter out of its range is the command's fault, anything else the computation's."""
    from sklearn.utils._param_validation import InvalidParameterError

    try:
        with progress_bar(estimator, show, len(data.X)):
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
    selection = getattr(estimator, "selection_", None)
    if selection is not None:
        document["chosen"], document["reason"] = plain(selection.parameters), selection.reason
        if selection.n_clusters is not None:
            document["n_clusters_range"] = [selection.n_clusters.low, selection.n_clusters.high]
    if data.y is not None:
        document["scores"] = plain(clustering_scores(data.y, estimator.labels_))
    return document


def _summarise(document: dict[str, Any], y: Any, labels: list[int], output: Path | None, found: bool) -> None:
    """Tell a person what was done."""
    from subspaces.metrics import score_table

    parameters = {**document["parameters"], **document.get("chosen", {})}
    shown = ("kernel", "bandwidth", "scaling", "reg", "n_nonzero", "partition")
    setting = ", ".join(f"{name} {parameters[name]}" for name in shown if parameters.get(name) is not None)
    name = document["method"].upper()
    typer.echo(one_line(f"{document['source']}: {document['n_points']} points, {document['n_features']} features"))
    typer.echo(f"{name} ({setting}, seed {parameters['random_state']})")
    if "reason" in document:
        typer.echo(f"chosen: {document['reason']}")
    low, high = document.get("n_clusters_range", (0, 0))
    span = f"; {low} to {high} are nearly as good" if low < high else ""
    how = f" (the number was found; -k sets it{span})" if found else ""
    typer.echo(f"{document['n_clusters']} clusters in {document['seconds']:.1f} s{how}, of sizes {_sizes(labels)}")
    if y is not None:
        typer.echo(f"\n{score_table(y, {name: labels})}\n")
    for note in document["notes"]:
        typer.echo(f"note: {one_line(note)}")
    if output is not None:
        typer.echo(f"labels written to {one_line(output)}")
    else:
        typer.echo("no file written; -o labels.csv saves the labels")


def _sizes(labels: list[int], limit: int = 40) -> str:
    sizes = sorted(Counter(labels).values(), reverse=True)
    more = f" and {len(sizes) - limit} smaller" if len(sizes) > limit else ""
    return " ".join(map(str, sizes[:limit])) + more
