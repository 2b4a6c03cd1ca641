"""``subspaces cluster``: points from a file or images from a folder; labels, a report, a sorted folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import typer

from subspaces import registry
from subspaces.app.cli import _options as options
from subspaces.app.cli import _stream
from subspaces.app.cli._common import limited_threads
from subspaces.app.cli._features import Features
from subspaces.app.cli._image import outputs_of, run_image
from subspaces.app.cli._inputs import Inputs
from subspaces.app.cli._models import check_save, save
from subspaces.app.cli._motion import Motion
from subspaces.app.cli._outputs import Outputs, Run, as_document, say
from subspaces.app.cli._tree_file import check_tree, write_tree
from subspaces.app.description import describe
from subspaces.utils.progress import shown
from subspaces.utils.spelling import counted

POINT_BYTES = 1000
"""What describing and writing the result takes for each point, measured."""

TYPED = ("kernel", "bandwidth", "reg", "n_nonzero", "effort", "scaling", "assign_labels")
"""Parameters that have an option of their own."""

CHOSEN = ("kernel", "reg", "n_nonzero", "scaling", "assign_labels")
"""Parameters of KTRR that are chosen from the points when no method was named and others of them are given."""


def cluster(
    file: options.FilesArgument,
    n_clusters: options.ClustersOption = None,
    method: options.MethodOption = options.AUTO,
    effort: options.EffortOption = None,
    kernel: options.KernelOption = None,
    bandwidth: options.BandwidthOption = None,
    reg: options.RegOption = None,
    n_nonzero: options.NonzeroOption = None,
    set_: options.SetOption = None,
    scaling: options.ScalingOption = None,
    assign_labels: options.PartitionOption = None,
    seed: options.SeedOption = None,
    threads: options.ThreadsOption = None,
    memory: options.MemoryOption = None,
    scheduler: options.SchedulerOption = None,
    checkpoint: options.CheckpointOption = None,
    label: options.LabelOption = None,
    id_: options.IdOption = None,
    ignore: options.IgnoreOption = None,
    keep: options.KeepOption = None,
    array: options.ArrayOption = None,
    header: options.HeaderOption = None,
    decimal: options.DecimalOption = None,
    missing: options.MissingOption = "error",
    image_size: options.ImageSizeOption = None,
    color: options.ColorOption = False,
    text: options.TextOption = None,
    features: options.FeaturesOption = None,
    image: options.ImageOption = False,
    mask: options.MaskOption = None,
    motion: options.MotionOption = False,
    output: options.OutputOption = None,
    report: options.ReportOption = None,
    tables: options.TablesOption = None,
    tree: options.TreeOption = None,
    overlay: options.OverlayOption = None,
    sort_into: options.SortOption = None,
    save: options.SaveOption = None,
    link: options.LinkOption = False,
    force: options.ForceOption = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Cluster the points of FILE, or the images in the folder FILE.

    What is not given is chosen from the points, unless --method names one: that has its own defaults, as in Python.
    The columns of a text file without a header are named 1, 2, 3 and so on.

    Examples: subspaces cluster faces.npz -k 38 --label y -o labels.csv;
    subspaces cluster photos/ --sort-into sorted --report out.html
    """
    _cluster(SimpleNamespace(**locals()))


def _cluster(typed: Any) -> None:
    """Do what the options say; every wrong one is refused before a file is read, every file before it is computed."""
    show, most = not (typed.quiet or typed.as_json), options.size_in_bytes(typed.memory)
    names = {"labels": "output", "folder": "sort_into"}
    files = {name: getattr(typed, names.get(name, name)) for name in ("labels", "report", "tables", "folder")}
    outputs = outputs_of(typed.image, typed.mask, typed.scheduler, **files, link=typed.link, force=typed.force)
    settings = _settings({**{name: getattr(typed, name) for name in TYPED}, "random_state": typed.seed}, typed.set_)
    reading = {name: getattr(typed, name) for name in ("label", "array", "header", "decimal", "color", "missing")}
    reading |= {
        "text": typed.text,
        "id": typed.id_,
        "ignore": typed.ignore or (),
        "keep": typed.keep or (),
        "image_size": options.image_size(typed.image_size),
    }
    wanted = options.number(typed.n_clusters, "-k", int)
    looked_at = {name: reading[name] for name in ("image_size", "color")}
    looked_at |= {name: getattr(typed, name) for name in ("image", "motion", "scheduler")}
    features = Features.checked(typed.features, looked_at)
    inputs = _checked_inputs(typed, outputs)
    main = inputs.main
    with _limited(most):
        streamed = _stream.wanted(main, typed.scheduler)
    tracks = Motion.checked(typed.motion, typed.overlay, main, typed.force, streamed)
    method = _method(typed.method, settings, typed.image or streamed, typed.motion)
    make = partial(build, chooses=typed.method == options.AUTO or typed.image or typed.motion)
    check_tree(typed.tree, method, [main, *inputs.tables[1:]], typed.output, typed.force)
    with shown(show), limited_threads(typed.threads), _limited(most):
        if typed.image:
            run: Run = run_image(main, typed.mask, reading, method, settings, partial(make, method, wanted), show)
        elif streamed:
            unread = {name: reading[name] for name in ("label", "id", "ignore", "keep", "array", "decimal")}
            _refuse_with_stream({**unread, "header": typed.header is not None, "missing": typed.missing != "error"})
            given = {name: getattr(typed, name.replace("-", "_")) for name in ("report", "tables", "sort-into", "tree")}
            _refuse_with_stream(given)
            estimator = build(method, wanted, None, *settings)
            how = (typed.scheduler, typed.checkpoint, typed.threads, most, show, typed.output)
            run = _streamed(estimator, method, main, *how)
        else:
            run = _run(inputs, reading, method, wanted, settings, make, tracks, typed.output, features)
        written = outputs.write(run) + write_tree(typed.tree, run)
        written += tracks.write(run.estimator.labels_) + save(typed.save, run)
    if typed.as_json or not typed.quiet:
        _tell(run, written, typed.as_json, found=wanted in (None, options.AUTO))


def _checked_inputs(typed: Any, outputs: Outputs) -> Inputs:
    """The files that are meant; refuses outputs that would replace them or that cannot be written."""
    inputs = Inputs.of(typed.file)
    for option, given in (("--image", typed.image), ("--motion", typed.motion), ("--scheduler", typed.scheduler)):
        if given:
            inputs.only(option)
            if typed.save is not None:
                raise typer.BadParameter(f"has no meaning with {option}", param_hint="--save")
    for source in (inputs.main, *inputs.tables[1:]):
        outputs.check(source)
    check_save(typed.save, inputs.main, typed.force, typed.features)
    return inputs


def _tell(run: Run, written: list[str], as_json: bool, found: bool) -> None:
    if as_json:
        typer.echo(json.dumps(as_document(run), allow_nan=False))
    else:
        say(run, written, found=found)


def _limited(most: int | None) -> Any:
    """A bound on memory; late, because its module takes a second that a wrong option should not wait for."""
    from subspaces.utils.memory import limited

    return limited(most)


def _streamed(estimator: Any, method: str, *how: Any) -> Run:
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
    own = set(given) & {"scaling", "assign_labels"} if motion else set()
    other_cut = given.get("assign_labels", options.AUTO) not in (options.AUTO, "kmeans", "modularity")
    return "ktrr" if name == options.AUTO and (special or own or other_cut) else name


def _run(
    inputs: Inputs,
    reading: dict[str, Any],
    method: str,
    wanted: Any,
    settings: tuple[dict[str, Any], dict[str, Any]],
    make: Callable[..., Any],
    tracks: Motion,
    labels: Path | None,
    features: Features,
) -> Run:
    """Read, cluster and describe a file that fits in memory; a parameter out of its range is the command's fault."""
    read = tracks.read(inputs.source, reading)
    data = features.of(read)
    if data.n_samples < 2:
        from subspaces.app.files import FileError

        raise FileError(inputs.title, "there is one point in it; clusters are found among two or more")
    method = tracks.method(method, data.X)
    if labels is not None:
        from subspaces.app.files.writing import check_n_rows

        check_n_rows(labels, data.n_rows or data.n_samples)
    # late: a wrong file name should not wait seconds for its answer
    from sklearn.utils._param_validation import InvalidParameterError

    from subspaces.engine.confidence import summarize
    from subspaces.utils.memory import require

    remedy = "Allow more with --memory, or cluster a sample."
    require(POINT_BYTES * data.n_samples, f"the confidence and the table of {data.n_samples} points", remedy)
    given = tracks.settings(method, wanted, *settings)
    estimator = make(method, wanted, data.n_samples, given, settings[1])
    start = perf_counter()
    try:
        chosen = None
        if method == options.AUTO:
            data, chosen = features.better(read, data, estimator.choose)
        estimator.fit(data.X) if chosen is None else estimator.fit_chosen(data.X, chosen)
    except InvalidParameterError as error:
        raise typer.BadParameter(str(error)) from error
    seconds = perf_counter() - start
    summary = summarize(estimator, data.X)
    document = describe(
        estimator,
        source=inputs.title,
        shape=data.X.shape,
        method=method,
        seconds=seconds,
        notes=(*data.notes, *_remarks(estimator.labels_)),
        y=data.y,
        summary=summary,
        names=data.names,
        skipped=data.skipped,
        texts=data.texts,
    )
    return Run(document, estimator, data, summary, features.in_python(tracks.in_python(inputs, reading), data))


def _remarks(labels: Any) -> list[str]:
    """What a person should know of a result that says nothing."""
    from subspaces.selection.result import TOO_FEW

    n, n_clusters = len(labels), len(set(labels.tolist()))
    if n < TOO_FEW or 1 < n == n_clusters:
        few = counted(n, "point is", "points are")
        return [f"{few} too few to find clusters among them; do not rely on this result"]
    return []


def _refuse_with_stream(given: dict[str, Any]) -> None:
    for option, value in given.items():
        if value:
            problem = "has no meaning for a file that workers read piece by piece"
            raise typer.BadParameter(problem, param_hint=f"--{option}")


def build(
    method: str,
    n_clusters: Any,
    n_samples: int | None,
    given: dict[str, Any],
    assigned: dict[str, Any],
    *,
    chooses: bool = False,
) -> Any:
    """Make the estimator called `method` with the options that were given, and check that they go together.

    `assigned` are the parameters that ``--set`` gave. Where `chooses`, KTRR chooses the others from the points; else
    they are the defaults of the class, and nobody is surprised who uses the same class in Python.
    """
    methods = (options.AUTO, *registry.names(*registry.SHALLOW))
    if method not in methods:
        raise typer.BadParameter(f"'{method}' is not one of {', '.join(methods)}", param_hint="--method")
    if isinstance(n_clusters, int) and not 1 <= n_clusters <= (n_samples or n_clusters):
        found = f"{counted(n_clusters, 'cluster')} of {counted(n_samples or 0, 'point')}"
        problem = f"{found}; ask for {'fewer' if n_clusters > 0 else 'more'}"
        raise typer.BadParameter(problem, param_hint="-k")
    from subspaces.selection.auto import SubspaceClustering

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
    can_choose = n_samples is not None and issubclass(cls, KTRR | TRR)  # that needs all points in memory
    if chooses and can_choose:
        n_clusters = options.AUTO if n_clusters is None else n_clusters
        given = {**{name: options.AUTO for name in CHOSEN if name in known}, **given}
    elif options.AUTO in (n_clusters, *given.values()) and not can_choose:
        raise typer.BadParameter(f"auto has no meaning for the method {method} here", param_hint="--method")
    if n_clusters is None and "assign_labels" not in known:
        raise typer.BadParameter(f"the method {method} needs the number of clusters", param_hint="-k")
    if n_clusters is None and given.setdefault("assign_labels", "modularity") != "modularity":
        problem = f"--assign-labels {given['assign_labels']} needs the number of clusters; add -k"
        raise typer.BadParameter(problem, param_hint="-k")
    for name in given:
        if name not in known:
            raise typer.BadParameter(f"has no meaning for the method {method}", param_hint=_option_of(name))
    return cls(n_clusters=n_clusters, **given)


def _option_of(name: str) -> str:
    return "--seed" if name == "random_state" else "--" + name.replace("_", "-")
