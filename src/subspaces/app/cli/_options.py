"""The options of the commands: name, what it takes, what it says of itself in ``--help``, what was typed as a value.

An option that is not given is None: "auto" for the methods that can choose, else the method's own default.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

# The library has these names too (a test compares them), but reading them there would import NumPy.
OfDistance = Literal["rbf", "exponential", "inverse_square", "inverse_distance"]
OfProduct = Literal["linear", "cosine", "quadratic", "cubic", "polynomial"]
Kernel = Literal["auto", OfDistance, OfProduct, "correntropy", "precomputed"]
Effort = Literal["fast", "balanced", "thorough"]
Scaling = Literal["auto", "none", "unit", "max", "minmax", "standard", "log"]
Partition = Literal["auto", "kmeans", "cluster_qr", "discretize", "modularity"]
Missing = Literal["error", "drop", "mean", "median"]
Decimal = Literal[".", ","]

AUTO = "auto"  # as in subspaces.selection, which would import NumPy
MAX_SIDE = 2048
LEAST_MEMORY = 250_000_000
"""What the libraries of a command take alone, rounded up."""


def option(panel: str, names: str, value: str | None, help: str, **more: Any) -> Any:
    """An option of a panel: its names, a word for what it takes (None for a switch) and what it does."""
    return typer.Option(*names.split(), metavar=value, help=help, rich_help_panel=panel, show_default=False, **more)


method = partial(option, "How to cluster")
data = partial(option, "What to read")
output = partial(option, "What to write")

FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="Points, one per row: .csv, .tsv, .txt, .xlsx, .parquet, .npy, .npz or .mat; a folder of images, or "
        "images; several are read together; - is a table from a pipe.",
    ),
]
ClustersOption = Annotated[
    str | None, method("-k --clusters", "NUMBER", "Number of clusters; left out or auto, it is found.")
]
MethodOption = Annotated[
    str,
    method("--method", "NAME", 'auto (the default: whatever suits the data) or one that "subspaces methods" lists.'),
]
EffortOption = Annotated[
    Effort | None, method("--effort", "HOW", "How much auto tries: fast, balanced (the default) or thorough.")
]
KernelOption = Annotated[Kernel | None, method("--kernel", "NAME", "One of " + ", ".join(get_args(Kernel)) + ".")]
BandwidthOption = Annotated[
    str | None, method("--bandwidth", "RULE", "Width of the kernel: mean, rms or median of the distances, or a number.")
]
RegOption = Annotated[
    str | None, method("--reg", "NUMBER", "Weight of the ridge, relative to the kernel's mean diagonal, or auto.")
]
SetOption = Annotated[
    list[str] | None,
    method(
        "--set", "NAME=VALUE", "Any other parameter of the method, such as error_weight=50; may be given several times."
    ),
]
NonzeroOption = Annotated[str | None, method("--n-nonzero", "NUMBER", "Coefficients kept for each point, or auto.")]
ScalingOption = Annotated[
    Scaling | None,
    method(
        "--scaling",
        "RULE",
        "auto, none, unit (points of length 1), max (largest value 1), minmax (features from 0 to 1), standard "
        "(features of variance 1) or log (counts).",
    ),
]
PartitionOption = Annotated[
    Partition | None,
    method("--assign-labels", "NAME", "How the graph is cut: auto, kmeans, qr, discretize or modularity."),
]
SeedOption = Annotated[
    int | None, method("--seed", "NUMBER", "Seed of all random choices (0 if not given).", min=0, max=2**32 - 1)
]
ThreadsOption = Annotated[int | None, method("--threads", "NUMBER", "Most threads to use (all if not given).", min=1)]
MemoryOption = Annotated[
    str | None,
    method(
        "--memory",
        "SIZE",
        "Most memory to use, such as 2GB, by the whole command with the libraries it loads (250MB or more): "
        "decides between the dense and the large-scale route, and refuses what cannot fit (all that is free if not "
        "given).",
    ),
]
SchedulerOption = Annotated[
    str | None,
    method(
        "--scheduler",
        "ADDRESS",
        'Let the workers of a Dask cluster read and cluster the file: "local", or an address like '
        "tcp://10.0.0.5:8786 (methods ktrr, ektrr, sssc, slsr, slrr; .npy, .parquet or .zarr).",
    ),
]
CheckpointOption = Annotated[
    Path | None,
    method(
        "--checkpoint",
        "FOLDER",
        "Where a run on workers keeps its finished pieces; the same command goes on from there.",
    ),
]
LabelOption = Annotated[
    str | None,
    data(
        "--label --truth",
        "NAME",
        "Column or array with the true classes: kept out of the points, used to score the result. Of images: folder, "
        "if each class has its own.",
    ),
]
IdOption = Annotated[
    str | None,
    data("--id", "NAME", "Column or array that names the points: kept out of them, written beside the labels."),
]
IgnoreOption = Annotated[list[str] | None, data("--ignore", "NAME", "Column to leave out; may be given several times.")]
KeepOption = Annotated[
    list[str] | None,
    data("--keep", "NAME", "Column to use although it looks like an id; may be given several times."),
]
ArrayOption = Annotated[
    str | None,
    data(
        "--array --sheet",
        "NAME",
        "Array with the points in a .npz or .mat file (left out, X or the only matrix); sheet of an .xlsx file (left "
        "out, the first that is not empty).",
    ),
]
HeaderOption = Annotated[
    bool | None,
    data(
        "--header/--no-header",
        None,
        "The first line of a text file names its columns, or not; left out, the file decides.",
    ),
]
DecimalOption = Annotated[
    Decimal | None,
    data("--decimal", "SIGN", 'Sign before the decimals in a text file, "." or ","; left out, the file decides.'),
]
MissingOption = Annotated[
    Missing,
    data(
        "--missing",
        "RULE",
        "What to do about missing values: error lists them (the default), drop leaves out their rows, mean or "
        "median fills in that of the column.",
    ),
]
ImageSizeOption = Annotated[
    str | None,
    data(
        "--image-size",
        "SIZE",
        "Pixels that images are brought to: 32, or 40x30 for height and width; left out, small ones of one size "
        "stay as they are and others get about 32x32.",
    ),
]
ColorOption = Annotated[bool, data("--color/--grey", None, "Cluster images by colour or (the default) in grey.")]
TextOption = Annotated[
    str | None,
    data("--text", "COLUMN", "Cluster the texts of this column; the other columns are left out."),
]
FeaturesOption = Annotated[
    str | None,
    data(
        "--features",
        "HOW",
        "What images are compared by: pixels (right for aligned ones), efficientnet (a network, with "
        'pip install "subspaces[images]"), timm:NAME, open_clip:NAME, or a .npy with a vector for each image in the '
        "order of their names. Left out, efficientnet for a folder of images if it is installed, else pixels. Texts: "
        'tfidf (words), or sentences (word vectors for short texts, with pip install "subspaces[text]").',
    ),
]
ImageOption = Annotated[
    bool,
    data(
        "--image",
        None,
        "FILE is an image with a spectrum in each pixel (.hdr of ENVI, .tif, .npy, .npz or .mat of three dimensions): "
        "cluster its pixels by spectrum and surroundings, write a map.",
    ),
]
MaskOption = Annotated[
    Path | None, data("--mask", "FILE", "With --image: an image of one band, zero where pixels are left out.")
]
MotionOption = Annotated[
    bool,
    data(
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
        "File for the labels and their confidence: .csv, .tsv, .xlsx, .parquet, .json or .npy (labels only). With "
        "--image for the map: .hdr (ENVI), .tif (GeoTIFF), .png or .npy; left out, it is named after the image.",
    ),
]
ReportOption = Annotated[
    Path | None,
    output(
        "--report",
        "FILE",
        "Page for a browser (.html), whole in one file: what was done and why, plots, every cluster.",
    ),
]
TablesOption = Annotated[Path | None, output("--tables", "FILE", "The tables of the report for a text: .md or .tex.")]
TreeOption = Annotated[
    Path | None,
    output("--tree", "FILE", "The clusters from coarse to fine, each split with its numbers: .json, or .nwk (Newick)."),
]
OverlayOption = Annotated[
    Path | None,
    output("--overlay", "FILE", "With --motion: the tracks coloured by cluster, .png (all frames) or .gif (a film)."),
]
SaveOption = Annotated[
    Path | None, output("--save", "FILE", 'The fitted model (.skops), for "subspaces predict" on new files.')
]
SortOption = Annotated[
    Path | None,
    output("--sort-into", "FOLDER", "Copy each image into a folder per cluster, with contact sheets and an index."),
]
LinkOption = Annotated[bool, output("--link", None, "With --sort-into: symbolic links instead of copies.")]
FolderOption = Annotated[Path, output("-o --output", "FOLDER", "Folder for the files; left out, demo.")]
ForceOption = Annotated[bool, output("--force", None, "Replace files that exist.")]
JsonOption = Annotated[bool, output("--json", None, "Print one JSON document and nothing else.")]
QuietOption = Annotated[bool, output("--quiet -q", None, "Print only errors and warnings.")]
DebugOption = Annotated[bool, output("--debug", None, "Show the traceback of an error (or set SUBSPACES_DEBUG=1).")]


def parse_bytes(text: str) -> int:
    """A size such as 2GB, 500MB or 1.5GiB in bytes; raises ValueError."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]?)(i?)b?\s*", text, flags=re.IGNORECASE)
    if match is None or float(match[1]) <= 0:
        raise ValueError(f"'{text}' is not a size like 500MB, 2GB or 1.5GiB")
    return int(float(match[1]) * (1024 if match[3] else 1000) ** "_kmgt".index(match[2].lower() or "_"))


def size_in_bytes(text: str | None) -> int | None:
    """A size of memory such as 2GB."""
    try:
        size = None if text is None else parse_bytes(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--memory") from None
    if size is not None and size < LEAST_MEMORY:
        problem = f"{text} is less than what its libraries take alone; allow {LEAST_MEMORY // 10**6}MB or more"
        raise typer.BadParameter(problem, param_hint="--memory")
    return size


def number_or_name(text: str | None) -> float | str | None:
    """A bandwidth: a rule or a number."""
    if text is None or text in ("mean", "rms", "median"):
        return text
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not mean, rms, median or a number", param_hint="--bandwidth") from None


def number(text: str | None, option: str, kind: type[int] | type[float]) -> float | str | None:
    """A number or "auto"."""
    if text is None or text == AUTO:
        return text
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise typer.BadParameter(f"'{text}' is not {what} or auto", param_hint=option) from None


def image_size(text: str | None) -> tuple[int, int] | None:
    """Height and width from 32 or 40x30."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*([0-9]{1,5})\s*(?:[xX×,]\s*([0-9]{1,5})\s*)?", text)
    sides = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not all(1 <= side <= MAX_SIDE for side in sides):
        problem = f"'{text}' is not a size like 32 or 40x30 (height x width), 1 to {MAX_SIDE} each"
        raise typer.BadParameter(problem, param_hint="--image-size")
    return sides


def assignments(texts: Iterable[str]) -> dict[str, Any]:
    """Parameters from NAME=VALUE: numbers, true, false, none, lists as Python writes them, else text."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise typer.BadParameter(f"'{text}' is not of the form NAME=VALUE", param_hint="--set")
        if name == "n_clusters":
            raise typer.BadParameter("the number of clusters is given with -k", param_hint="--set")
        if name in found:
            raise typer.BadParameter(f"{name} is given twice", param_hint="--set")
        words = {"true": True, "false": False, "none": None}
        try:
            found[name] = words[value.lower()] if value.lower() in words else ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            found[name] = value
    return found
