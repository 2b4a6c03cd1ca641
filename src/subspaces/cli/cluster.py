"""``subspaces cluster``: points from a file or images from a folder; labels, a report, a sorted folder."""

from __future__ import annotations

import json
from functools import partial
from time import perf_counter
from typing import Any

import typer

from subspaces import registry
from subspaces.cli import _options as options
from subspaces.cli import _stream
from subspaces.cli._common import limited_threads, progress_bar
from subspaces.cli._image import outputs_of, run_image
from subspaces.cli._motion import Motion
from subspaces.cli._outputs import Run, as_document, say
from subspaces.cli._tree_file import check_tree, write_tree
from subspaces.description import describe

POINT_BYTES = 1000
"""What describing and writing the result takes for each point, measured."""

CHOSEN = ("kernel", "reg", "n_nonzero", "scaling", "partition")
"""Options that ktrr and trr choose from the points when they are not given; like the number of clusters."""


def cluster(
    file: options.FileArgument,
    n_clusters: options.ClustersOption = None,
    method: options.MethodOption = options.AUTO,
    effort: options.EffortOption = None,
    kernel: options.KernelOption = None,
    bandwidth: options.BandwidthOption = None,
    reg: options.RegOption = None,
    n_nonzero: options.NonzeroOption = None,
    set_: options.SetOption = None,
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
    missing: options.MissingOption = "error",
    image_size: options.ImageSizeOption = None,
    color: options.ColorOption = False,
    image: options.ImageOption = False,
    mask: options.MaskOption = None,
    motion: options.MotionOption = False,
    output: options.OutputOption = None,
    report: options.ReportOption = None,
    tables: options.TablesOption = None,
    tree: options.TreeOption = None,
    overlay: options.OverlayOption = None,
    sort_into: options.SortOption = None,
    link: options.LinkOption = False,
    force: options.ForceOption = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Cluster the points of FILE, or the images in the folder FILE.

    What is not given is chosen from the points, by the methods auto (the default), ktrr and trr; others have defaults.
    The columns of a text file without a header are named 1, 2, 3 and so on.

    Examples: subspaces cluster faces.npz -k 38 --label y -o labels.csv;
    subspaces cluster photos/ --sort-into sorted --report out.html
    """
    show, most = not (quiet or as_json), options.size_in_bytes(memory)
    files = {"labels": output, "report": report, "tables": tables, "folder": sort_into, "link": link, "force": force}
    outputs = outputs_of(image, mask, scheduler, **files)
    outputs.check(file)
    tracks = Motion.checked(motion, overlay, file, force, _stream.wanted(file, scheduler))
    given = {"kernel": kernel, "bandwidth": bandwidth, "reg": reg, "n_nonzero": n_nonzero, "effort": effort}
    settings = _settings(given | {"scaling": scaling, "partition": partition, "random_state": seed}, set_)
    method = _method(method, settings, image or _stream.wanted(file, scheduler), motion)
    check_tree(tree, method, source=file, labels=output, force=force)
    wanted = options.number(n_clusters, "-k", int)
    columns = {"label": label, "id": id_, "ignore": ignore or (), "array": array}
    looks = {"image_size": options.image_size(image_size), "color": color, "header": header, "missing": missing}
    with limited_threads(threads), _limited(most):
        if image:
            run: Run = run_image(file, mask, columns | looks, method, settings, partial(build, method, wanted), show)
        elif _stream.wanted(file, scheduler):
            _refuse_with_stream({**columns, "report": report, "tables": tables, "sort-into": sort_into, "tree": tree})
            run = _streamed(method, wanted, settings, file, scheduler, checkpoint, threads, most, show)
        else:
            run = _run(file, columns | looks, method, wanted, settings, show, tracks)
        written = outputs.write(run) + write_tree(tree, run) + tracks.write(run.estimator.labels_)
    _tell(run, written, as_json, quiet, found=wanted in (None, options.AUTO))


def _tell(run: Run, written: list[str], as_json: bool, quiet: bool, found: bool) -> None:
    if as_json:
        typer.echo(json.dumps(as_document(run), allow_nan=False))
    elif not quiet:
        say(run, written, found=found)


def _limited(most: int | None) -> Any:
    """A bound on memory; late, because its module takes a second that a wrong option should not wait for."""
    from subspaces.numerics.memory import limited

    return limited(most)


def _streamed(method: str, wanted: Any, settings: tuple[dict[str, Any], dict[str, Any]], *how: Any) -> Run:
    estimator = build(method, wanted, None, *settings)
    return Run(describe(estimator, method=method, **_stream.cluster_stream(estimator, *how)), estimator)


def _settings(typed: dict[str, Any], assigned: list[str] | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters given by options of their own, and those given by ``--set``; none by both."""
    typed["bandwidth"] = options.number_or_name(typed["bandwidth"])
    typed["reg"] = options.number(typed["reg"], "--reg", float)
    typed["n_nonzero"] = options.number(typed["n_nonzero"], "--n-nonzero", int)
    given = {name: value for name, value in typed.items() if value is not None}
    others = options.assignments(assigned or [])
    for name in given.keys() & others.keys():
        raise typer.BadParameter(f"{name} is given by {_option_of(name)} already", param_hint="--set")
    return given, others


def _method(name: str, settings: tuple[dict[str, Any], dict[str, Any]], special: bool, motion: bool) -> str:
    """The method meant: nothing set is the front door; a parameter of KTRR, or data of its own kind, means that.

    What the front door does with tracks has a scaling and a cut of its own.
    """
    given = {**settings[0], **settings[1]}
    own = set(given) - {"random_state", "effort", "out_of_sample"} - (set() if motion else {"scaling", "partition"})
    other_cut = given.get("partition", options.AUTO) not in (options.AUTO, "kmeans", "modularity")
    return "ktrr" if name == options.AUTO and (special or own or other_cut) else name


def _run(
    file: Any,
    reading: dict[str, Any],
    method: str,
    wanted: Any,
    settings: tuple[dict[str, Any], dict[str, Any]],
    show: bool,
    tracks: Motion,
) -> Run:
    """Read, cluster and describe a file that fits in memory; a parameter out of its range is the command's fault."""
    data = tracks.read(file, reading)
    method = tracks.method(method, data.X)
    # late: a wrong file name should not wait seconds for its answer
    from sklearn.utils._param_validation import InvalidParameterError

    from subspaces.confidence import summarize
    from subspaces.numerics.memory import require

    remedy = "Allow more with --memory, or cluster a sample."
    require(POINT_BYTES * len(data.X), f"the confidence and the table of {len(data.X)} points", remedy)
    given = tracks.settings(method, wanted, *settings)
    estimator = build(method, wanted, len(data.X), given, settings[1])
    start = perf_counter()
    try:
        with progress_bar(estimator, show, len(data.X)):
            estimator.fit(data.X)
    except InvalidParameterError as error:
        raise typer.BadParameter(str(error)) from error
    seconds = perf_counter() - start
    summary = summarize(estimator, data.X)
    document = describe(
        estimator,
        source=str(data.source),
        shape=data.X.shape,
        method=method,
        seconds=seconds,
        notes=data.notes,
        y=data.y,
        summary=summary,
        names=data.names,
        skipped=data.skipped,
    )
    return Run(document, estimator, data, summary)


def _refuse_with_stream(given: dict[str, Any]) -> None:
    for option, value in given.items():
        if value:
            problem = "has no meaning for a file that workers read piece by piece"
            raise typer.BadParameter(problem, param_hint=f"--{option}")


def build(method: str, n_clusters: Any, n_points: int | None, given: dict[str, Any], assigned: dict[str, Any]) -> Any:
    """Make the estimator called `method` with the options that were given, and check that they go together.

    `assigned` are the parameters that ``--set`` gave.
    """
    methods = (options.AUTO, *registry.names(*registry.SHALLOW))
    if method not in methods:
        raise typer.BadParameter(f"'{method}' is not one of {', '.join(methods)}", param_hint="--method")
    if isinstance(n_clusters, int) and not 1 <= n_clusters <= (n_points or n_clusters):
        problem = f"{n_clusters} clusters of {n_points} points; ask for {'fewer' if n_clusters > 0 else 'more'}"
        raise typer.BadParameter(problem, param_hint="-k")
    from subspaces.estimators.front_door import SubspaceClustering

    cls = SubspaceClustering if method == options.AUTO else registry.load(method)
    known = cls().get_params()
    for name in assigned:
        if name not in known:
            names = ", ".join(key for key in known if key != "n_clusters")
            problem = f"'{name}' is no parameter of the method {method}, which has {names}"
            raise typer.BadParameter(problem, param_hint="--set")
    given = {**given, **assigned}
    from subspaces.estimators.ktrr import KTRR, TRR

    if given.get("scaling") == "none":
        given["scaling"] = None
    if cls is SubspaceClustering:
        return cls(n_clusters=None if n_clusters == options.AUTO else n_clusters, **given)
    if n_points is not None and issubclass(cls, KTRR | TRR):  # to choose, they must have all points in memory
        n_clusters = options.AUTO if n_clusters is None else n_clusters
        given = {**{name: options.AUTO for name in CHOSEN if name in known}, **given}
    elif options.AUTO in (n_clusters, *given.values()):
        raise typer.BadParameter(f"auto has no meaning for the method {method} here", param_hint="--method")
    if n_clusters is None and "partition" not in known:
        raise typer.BadParameter(f"the method {method} needs the number of clusters", param_hint="-k")
    if n_clusters is None and given.setdefault("partition", "modularity") != "modularity":
        problem = f"--partition {given['partition']} needs the number of clusters; add -k"
        raise typer.BadParameter(problem, param_hint="-k")
    for name in given:
        if name not in known:
            raise typer.BadParameter(f"has no meaning for the method {method}", param_hint=_option_of(name))
    return cls(n_clusters=n_clusters, **given)


def _option_of(name: str) -> str:
    return "--seed" if name == "random_state" else "--" + name.replace("_", "-")
