"""The options of the commands: name, what it takes and what it says of itself in ``--help``.

An option that is not given is None: "auto" for the methods that can choose, else the method's own default.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

METHOD, DATA, OUTPUT = "How to cluster", "What to read", "What to write"

# The library has these names too (a test compares them), but reading them there would import NumPy.
Kernel = Literal[
    "auto",
    "rbf",
    "exponential",
    "inverse_square",
    "inverse_distance",
    "linear",
    "cosine",
    "quadratic",
    "cubic",
    "polynomial",
    "correntropy",
    "precomputed",
]
Scaling = Literal["auto", "none", "unit", "max", "minmax", "standard"]
Partition = Literal["auto", "kmeans", "qr", "discretize", "modularity"]
Missing = Literal["error", "drop", "mean", "median"]


def _option(*names: str, value: str | None = None, panel: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, metavar=value, help=help, rich_help_panel=panel, show_default=False, **more)


FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="Points, one per row: .csv, .tsv, .parquet, .npy, .npz or .mat; or a folder of images."
    ),
]
ClustersOption = Annotated[
    str | None,
    _option(
        "-k",
        "--clusters",
        value="NUMBER",
        panel=METHOD,
        help="Number of clusters; left out or auto, it is found.",
    ),
]
MethodOption = Annotated[
    str,
    _option(
        "--method", value="NAME", panel=METHOD, help='ktrr (the default) or another that "subspaces methods" lists.'
    ),
]
KernelOption = Annotated[
    Kernel | None,
    _option("--kernel", value="NAME", panel=METHOD, help="One of " + ", ".join(get_args(Kernel)) + "."),
]
BandwidthOption = Annotated[
    str | None,
    _option(
        "--bandwidth",
        value="RULE",
        panel=METHOD,
        help="Width of the kernel: mean, rms or median of the distances, or a number.",
    ),
]
RegOption = Annotated[
    str | None,
    _option(
        "--reg",
        value="NUMBER",
        panel=METHOD,
        help="Weight of the ridge, relative to the kernel's mean diagonal, or auto.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    _option(
        "--set",
        value="NAME=VALUE",
        panel=METHOD,
        help="Any other parameter of the method, such as alpha=50; may be given several times.",
    ),
]
NonzeroOption = Annotated[
    str | None,
    _option("--n-nonzero", value="NUMBER", panel=METHOD, help="Coefficients kept for each point, or auto."),
]
ScalingOption = Annotated[
    Scaling | None,
    _option(
        "--scaling",
        value="RULE",
        panel=METHOD,
        help="auto, none, unit (points of length 1), max (largest value 1), minmax (features from 0 to 1) or standard "
        "(features of variance 1).",
    ),
]
PartitionOption = Annotated[
    Partition | None,
    _option(
        "--partition",
        value="NAME",
        panel=METHOD,
        help="How the graph is cut: auto, kmeans, qr, discretize or modularity.",
    ),
]
SeedOption = Annotated[
    int | None,
    _option(
        "--seed",
        value="NUMBER",
        panel=METHOD,
        help="Seed of all random choices (0 if not given).",
        min=0,
        max=2**32 - 1,
    ),
]
ThreadsOption = Annotated[
    int | None,
    _option("--threads", value="NUMBER", panel=METHOD, help="Most threads to use (all if not given).", min=1),
]
MemoryOption = Annotated[
    str | None,
    _option(
        "--memory",
        value="SIZE",
        panel=METHOD,
        help="Most memory to use, such as 2GB, by the whole command with the libraries it loads (250MB or more): "
        "decides between the dense and the large-scale route, and refuses what cannot fit (all that is free if not "
        "given).",
    ),
]
SchedulerOption = Annotated[
    str | None,
    _option(
        "--scheduler",
        value="ADDRESS",
        panel=METHOD,
        help='Let the workers of a Dask cluster read and cluster the file: "local", or an address like '
        "tcp://10.0.0.5:8786 (methods ktrr, ektrr, sssc, slsr, slrr; .npy, .parquet or .zarr).",
    ),
]
CheckpointOption = Annotated[
    Path | None,
    _option(
        "--checkpoint",
        value="FOLDER",
        panel=METHOD,
        help="Where a run on workers keeps its finished pieces; the same command goes on from there.",
    ),
]
LabelOption = Annotated[
    str | None,
    _option(
        "--label",
        value="NAME",
        panel=DATA,
        help="Column or array with the true classes: kept out of the points, used to score the result.",
    ),
]
IdOption = Annotated[
    str | None,
    _option(
        "--id",
        value="NAME",
        panel=DATA,
        help="Column or array that names the points: kept out of them, written beside the labels.",
    ),
]
IgnoreOption = Annotated[
    list[str] | None,
    _option("--ignore", value="NAME", panel=DATA, help="Column to leave out; may be given several times."),
]
ArrayOption = Annotated[
    str | None,
    _option(
        "--array",
        value="NAME",
        panel=DATA,
        help="Array with the points in a .npz or .mat file; left out, X or the only matrix.",
    ),
]
HeaderOption = Annotated[
    bool | None,
    _option(
        "--header/--no-header",
        panel=DATA,
        help="The first line of a text file names its columns, or not; left out, the file decides.",
    ),
]
MissingOption = Annotated[
    Missing,
    _option(
        "--missing",
        value="RULE",
        panel=DATA,
        help="What to do about missing values: error lists them (the default), drop leaves out their rows, mean or "
        "median fills in that of the column.",
    ),
]
ImageSizeOption = Annotated[
    str | None,
    _option(
        "--image-size",
        value="SIZE",
        panel=DATA,
        help="Pixels that images are brought to: 32, or 40x30 for height and width; left out, small ones of one size "
        "stay as they are and others get about 32x32.",
    ),
]
ColorOption = Annotated[
    bool, _option("--color/--grey", panel=DATA, help="Cluster images by colour or (the default) in grey.")
]
OutputOption = Annotated[
    Path | None,
    _option(
        "-o",
        "--output",
        value="FILE",
        panel=OUTPUT,
        help="File for the labels and their confidence: .csv, .tsv, .parquet, .json or .npy (labels only).",
    ),
]
ReportOption = Annotated[
    Path | None,
    _option(
        "--report",
        value="FILE",
        panel=OUTPUT,
        help="Page for a browser (.html), whole in one file: what was done and why, plots, every cluster.",
    ),
]
TablesOption = Annotated[
    Path | None,
    _option("--tables", value="FILE", panel=OUTPUT, help="The tables of the report for a text: .md or .tex."),
]
SortOption = Annotated[
    Path | None,
    _option(
        "--sort-into",
        value="FOLDER",
        panel=OUTPUT,
        help="Copy each image into a folder per cluster, with contact sheets and an index.",
    ),
]
LinkOption = Annotated[
    bool, _option("--link", panel=OUTPUT, help="With --sort-into: symbolic links instead of copies.")
]
FolderOption = Annotated[
    Path, _option("-o", "--output", value="FOLDER", panel=OUTPUT, help="Folder for the files; left out, demo.")
]
ForceOption = Annotated[bool, _option("--force", panel=OUTPUT, help="Replace files that exist.")]
JsonOption = Annotated[bool, _option("--json", panel=OUTPUT, help="Print one JSON document and nothing else.")]
QuietOption = Annotated[bool, _option("--quiet", "-q", panel=OUTPUT, help="Print only errors and warnings.")]
DebugOption = Annotated[
    bool, _option("--debug", panel=OUTPUT, help="Show the traceback of an error (or set SUBSPACES_DEBUG=1).")
]
