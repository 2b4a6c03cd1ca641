"""``subspaces cluster``: samples from a file or images from a folder; labels, a report, a sorted folder."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from subspaces import registry
from subspaces.app.cli import _options as options
from subspaces.app.cli import _stream
from subspaces.app.cli._common import as_option, limited_threads, refuse
from subspaces.app.cli._features import Features, features_in_python
from subspaces.app.cli._image import run_image
from subspaces.app.cli._inputs import Inputs
from subspaces.app.cli._known import changed_by, known_labels
from subspaces.app.cli._motion import for_motion, motion_in_python, read_motion
from subspaces.app.cli._options import AUTO, Effort, Reading, Scaling, method, output
from subspaces.app.cli._outputs import Outputs, as_document, say
from subspaces.app.cli._task import Run, Task, check_room, fit
from subspaces.app.description import describe, with_evidence
from subspaces.utils.progress import shown
from subspaces.utils.spelling import counted

ClustersOption = Annotated[
    str | None, method("-k --clusters", "NUMBER", "Number of clusters; left out or auto, it is found.")
]
MethodOption = Annotated[
    str,
    method("--method", "NAME", 'auto (the default: whatever suits the data) or one that "subspaces methods" lists.'),
]
EffortOption = Annotated[
    Effort | None, options.advanced("--effort", "HOW", "How much auto tries: fast, balanced (the default) or thorough.")
]
ScalingOption = Annotated[
    Scaling | None,
    options.advanced(
        "--scaling",
        "RULE",
        "auto, none, unit (points of length 1), max (largest value 1), minmax (features from 0 to 1), standard "
        "(features of variance 1) or log (counts).",
    ),
]
MemoryOption = Annotated[
    str | None,
    options.advanced(
        "--memory",
        "SIZE",
        "Most memory to use, such as 2GB, by the whole command with the libraries it loads (250MB or more): decides "
        "between the dense and the large-scale route, and refuses what cannot fit (all that is free if not given).",
    ),
]
SchedulerOption = Annotated[
    str | None,
    options.advanced(
        "--scheduler",
        "ADDRESS",
        'Let the workers of a Dask cluster read and cluster the file: "local", or an address like '
        "tcp://10.0.0.5:8786 (methods ktrr, ektrr, sssc, slsr, slrr; .npy or .parquet).",
    ),
]
KnownOption = Annotated[
    Path | None,
    method(
        "--known",
        "FILE",
        "Table with the columns id and label: groups that you know of some of the samples; the rest is found. The same "
        "as --label of a column with gaps.",
    ),
]
ImageOption = Annotated[
    bool,
    options.advanced(
        "--image",
        None,
        "FILE is an image with a spectrum in each pixel (.hdr of ENVI, .tif, .npy, .npz or .mat of three dimensions): "
        "cluster its pixels by spectrum and surroundings, write a map.",
    ),
]
MotionOption = Annotated[
    bool,
    options.advanced(
        "--motion",
        None,
        "Rows are tracks of points through a film, x1, y1, x2, y2 and so on (or a .mat of Hopkins155); empty cells are "
        "frames in which a point was not seen.",
    ),
]
OutputOption = Annotated[
    Path | None,
    output(
        "-o --output",
        "FILE",
        "File for the labels and their confidence beside the columns of FILE: .csv, .tsv, .xlsx (its second sheet has "
        "the means of each group), .parquet or .npy (labels only). With "
        "--image for the map: .tif (GeoTIFF), .png or .npy; left out, it is named after the image.",
    ),
]
ReportOption = Annotated[
    list[Path] | None,
    output(
        "--report",
        "FILE",
        "By suffix: .html a page for a browser, whole in one file, with what was done and why, plots, every cluster; "
        ".json the clusters from coarse to fine, each split with its numbers; with --motion, .png the tracks coloured "
        "by cluster. May be given several times.",
    ),
]
SortOption = Annotated[
    Path | None,
    output("--sort-into", "FOLDER", "Copy each image into a folder per cluster, with an index."),
]
SaveOption = Annotated[
    Path | None, output("--save", "FILE", 'The fitted model (.skops), for "subspaces predict" on new files.')
]


@options.reads_files
def cluster(
    file: options.FilesArgument,
    reading: Reading,
    n_clusters: ClustersOption = None,
    method: MethodOption = AUTO,
    known: KnownOption = None,
    effort: EffortOption = None,
    scaling: ScalingOption = None,
    seed: options.SeedOption = None,
    threads: options.ThreadsOption = None,
    memory: MemoryOption = None,
    scheduler: SchedulerOption = None,
    image: ImageOption = False,
    motion: MotionOption = False,
    output: OutputOption = None,
    report: ReportOption = None,
    sort_into: SortOption = None,
    save: SaveOption = None,
    force: options.ForceOption = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Cluster the samples of FILE, or the images in the folder FILE.

    What is not given is chosen from the samples, unless --method names one: that has its own defaults, as in Python.
    The columns of a text file without a header are named 1, 2, 3 and so on.

    Examples: subspaces cluster faces.npz -k 38 --label y -o labels.csv;
    subspaces cluster photos/ --sort-into sorted --report out.html
    """
    most, k = options.size_in_bytes(memory), options.number_of_clusters(n_clusters)
    settings = dict(reading.settings)
    named = (settings.pop(name, None) for name in ("mask", "checkpoint"))
    mask, checkpoint = (None if value is None else Path(str(value)) for value in named)
    link = bool(options.switch(settings, "link"))
    outputs = Outputs(output, tuple(report or ()), sort_into, save, link, force)
    parameters = _parameters({"effort": effort, "scaling": scaling, "random_state": seed}, settings)
    inputs = Inputs.of(file)
    excluded = _checked_kind(inputs, image, motion, scheduler, mask, save)
    features = Features.checked(reading, excluded)
    from subspaces.utils.memory import limited  # takes a second that a wrong option should not wait for

    with limited(most):
        streamed = _stream.wanted(inputs.main, scheduler)
    if checkpoint is not None and not streamed:
        raise refuse(
            "--set", "checkpoint has a meaning only for what is read piece by piece: larger, or with --scheduler"
        )
    chosen = _method(method, parameters, image or streamed, motion)
    if known is not None and (chosen != AUTO or image or motion or streamed):
        raise refuse("--known", "has a meaning only for --method auto, on samples of one table or folder")
    task = Task(inputs, reading, features, chosen, k, parameters, image, motion, mask, known)
    outputs.check(task)
    if streamed and not image:
        _check_streamed(task, outputs)
    with shown(not (quiet or as_json)), limited_threads(threads), limited(most):
        if image:
            run = run_image(task)
        elif streamed:
            run = _stream.run_stream(task, output, scheduler, checkpoint, threads, most)
        else:
            run = _run(task, output)
        written = outputs.write(run)
    if as_json:
        typer.echo(json.dumps(as_document(run), allow_nan=False))
    elif not quiet:
        say(run, written, found=k is None)


def _checked_kind(
    inputs: Inputs, image: bool, motion: bool, scheduler: str | None, mask: Path | None, save: Path | None
) -> str | None:
    """Return the option that makes the file one of its own kind; refuse those that do not go with it."""
    if mask is not None and not image:
        raise refuse("mask", "leaves out pixels of an image of spectra; add --image")
    if image and scheduler:
        raise refuse("--scheduler", "has no meaning for an image of spectra")
    kinds = {"--image": image, "--motion": motion, "--scheduler": scheduler}
    option = next((name for name, given in kinds.items() if given), None)
    if option is not None and len(inputs.files) != 1:
        given = counted(len(inputs.files), "file") if inputs.files else "a pipe"
        raise refuse(option, f"takes one file; got {given}")
    if option is not None and save is not None:
        raise refuse("--save", f"has no meaning with {option}")
    return option


def _check_streamed(task: Task, outputs: Outputs) -> None:
    """Refuse what needs all samples at once."""
    written = {"--motion": task.is_motion, "--report": outputs.reports, "--sort-into": outputs.folder}
    given = task.reading.given.keys() - {"text", "image_size", "color"}
    for name in (*(option for option, value in written.items() if value), *given):
        raise refuse(name, "has no meaning for a file that workers read piece by piece")


def _parameters(typed: dict[str, Any], assigned: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters given by options of their own and by ``--set``; none by both."""
    given = {name: value for name, value in typed.items() if value is not None}
    for name in given.keys() & assigned.keys():
        raise refuse("--set", f"{name} is given by {as_option(name)} already")
    return given | assigned


def _method(name: str, given: dict[str, Any], special: bool, motion: bool) -> str:
    """Return the method, checked: auto, unless the data are of a kind of their own.

    The automatic choice has a scaling and a cut of its own for trajectories.
    """
    methods = (AUTO, *registry.names(*registry.SHALLOW))
    if name not in methods:
        raise refuse("--method", f"'{name}' is not one of {', '.join(methods)}")
    own = set(given) - {"random_state", "effort", "out_of_sample"} if motion else set()
    other_cut = given.get("assign_labels", AUTO) not in (AUTO, "kmeans", "modularity")
    return "ktrr" if name == AUTO and (special or own or other_cut) else name


def _run(task: Task, labels: Path | None) -> Run:
    """Read, cluster and describe a file that fits in memory."""
    from subspaces.app.files import FileError, read_table
    from subspaces.app.files.writing import check_n_rows

    inputs, arguments, tracks = task.inputs, task.reading.given, None
    if task.is_motion:
        read, tracks = read_motion(inputs, arguments)
    else:
        read = read_table(inputs.source, **arguments)
    data = task.features.of(read)
    if data.n_samples < 2:
        raise FileError(inputs.title, "there is one point in it; clusters are found among two or more")
    if labels is not None:
        check_n_rows(labels, data.n_rows or data.n_samples)
    # late: a wrong file name should not wait seconds for its answer
    from subspaces.engine.confidence import summarize
    from subspaces.selection.result import TOO_FEW

    check_room(data.n_samples)
    task = for_motion(task, data.X) if task.is_motion else task
    data, y = known_labels(data, task.known, arguments.get("label"))
    if y is not None and task.method != AUTO:
        raise refuse(
            "--label", f"the column has gaps, and the method {task.method} takes no known labels; leave it out"
        )
    estimator = task.estimator(data.n_samples)
    start = perf_counter()
    chosen = None
    if task.method == AUTO:
        data, chosen = task.features.better(read, data, estimator.choose)
    if y is not None:
        fit(estimator, data.X, y)
    else:
        fit(estimator, data.X) if chosen is None else estimator.fit_chosen(data.X, chosen)
    seconds = perf_counter() - start
    summary = summarize(estimator, data.X)
    n, n_clusters, notes = data.n_samples, len(summary.clusters), data.notes
    if n < TOO_FEW or 1 < n == n_clusters:
        few = counted(n, "point is", "points are")
        notes = (*notes, f"{few} too few to find clusters among them; do not rely on this result")
    document = describe(
        estimator,
        source=inputs.title,
        shape=data.X.shape,
        method=task.method,
        seconds=seconds,
        notes=notes,
        y=data.y,
        summary=summary,
        names=data.names,
        skipped=data.skipped,
        texts=data.texts,
    )
    if y is not None:
        document["told"] = changed_by(estimator, y)
    elif task.n_clusters is not None and "verdict" in document:
        document["verdict"] = with_evidence(document["verdict"], estimator)
    lines = motion_in_python(inputs, arguments) if task.is_motion else inputs.in_python(arguments)
    lines = features_in_python(lines, data)
    if y is not None:
        told = {i: name for i, name in enumerate(y) if name}
        lines += f"\ny = [None] * len(X)\nfor row, name in {told}.items():\n    y[row] = name"
    run = Run(document, estimator, data, summary, lines, tracks=tracks)
    for i, row in enumerate(document["clusters"] if n_clusters > 1 else ()):
        row["stands_out"] = "" if run.groups is None else run.groups.telling(i)
    return run
