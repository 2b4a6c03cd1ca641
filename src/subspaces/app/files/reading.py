"""`read_table`: find the reader of a file by its suffix, of a folder by its content."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from subspaces.app.files.arrays import read_mat, read_npy, read_npz
from subspaces.app.files.dataset import MISSING_RULES, Dataset, Request, check_there, told_in_one_line
from subspaces.app.files.excel import read_xlsx
from subspaces.app.files.image_files import belongs, files_below, is_text, read_images, read_texts
from subspaces.app.files.parquet import read_parquet
from subspaces.app.files.several import are_images, common_folder, expand, read_several, read_stream
from subspaces.app.files.tables import DECIMALS, read_text
from subspaces.utils.files import FileError, argument, check_regular, printable
from subspaces.utils.memory import available_bytes
from subspaces.utils.progress import phase

Source: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]] | BinaryIO
"""A file or folder, several, or a pipe."""

Reader: TypeAlias = Callable[[Path, Request], Dataset]

READERS: dict[str, Reader] = {
    ".csv": read_text,
    ".csv.gz": read_text,
    ".tsv": read_text,
    ".tsv.gz": read_text,
    ".txt": read_text,
    ".txt.gz": read_text,
    ".xlsx": read_xlsx,
    ".xlsm": read_xlsx,
    ".ods": read_xlsx,
    ".parquet": read_parquet,
    ".npy": read_npy,
    ".npz": read_npz,
    ".mat": read_mat,
}
"""Reader of each suffix."""

_TEXT = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")
_BOOKS, _ARRAYS = (".xlsx", ".xlsm", ".ods"), (".npz", ".mat")
_TABLES = (*_TEXT, *_BOOKS, ".parquet")
_FOLDER, _WRITINGS = "folder of images", "folder of texts"
_FOLDERS: dict[str, Reader] = {_FOLDER: read_images, _WRITINGS: read_texts}
_OPTIONS = {
    "array": (*_ARRAYS, *_BOOKS),
    **dict.fromkeys(("header", "decimal"), (*_TEXT, *_BOOKS)),
    **dict.fromkeys(("ignore", "keep", "columns", "text"), _TABLES),
    "label": (*_TABLES, *_ARRAYS, _FOLDER, _WRITINGS),
    "id": (*_TABLES, *_ARRAYS),
    "missing": (*_TABLES, ".npy", *_ARRAYS),
    **dict.fromkeys(("image_size", "color", "min_images"), (_FOLDER,)),
}
"""Formats for which an option of `read_table` has a meaning; elsewhere it is refused, never silently dropped."""

_ADVICE = {
    **dict.fromkeys((".xls", ".xlsb", ".numbers"), "an old kind of workbook; save the table as .xlsx or .csv"),
    ".h5ad": "cells are clustered in Python, by subspaces.applications.anndata.cluster(anndata.read_h5ad(path))",
    ".mtx": "in Python, scipy.sparse.save_npz(new_path, scipy.io.mmread(path).tocsr()) makes an .npz, which is read",
}
"""What to do with files that are not read."""


def read_table(
    path: Source,
    *,
    label: str | None = None,
    id: str | None = None,
    ignore: Sequence[str] = (),
    keep: Sequence[str] | None = (),
    array: str | None = None,
    header: bool | None = None,
    decimal: str | None = None,
    max_bytes: int | None = None,
    missing: str = "error",
    image_size: tuple[int, int] | None = None,
    color: bool = False,
    columns: Sequence[str] | None = None,
    min_images: int = 2,
    text: str | None = None,
    sheet: str | None = None,
) -> Dataset:
    """Read samples, one per row, from a table, a workbook, an array or a folder of images or texts.

    Nothing is unpickled, and sizes that a header announces are compared with `max_bytes` before memory is taken.

    Parameters
    ----------
    path : path-like, list of them, or binary stream
        The file; its suffix (in any case) gives the format: ``.csv``, ``.tsv``, ``.txt`` (also packed, ``.csv.gz``),
        ``.xlsx``, ``.ods``, ``.parquet``, ``.npy``, ``.npz`` (also SciPy's sparse ones), ``.mat``. A folder is one of
        images (PNG, JPEG, TIFF, BMP, WebP, GIF), of texts (``.txt``, ``.md``) or of tables.
        Patterns (``"photos/*.png"``) are filled in. Several tables with the same columns become one; several images
        and folders of images, too. A stream (``sys.stdin.buffer``) is a table, whose first bytes tell its format.
    label : column (tables) or array (``.npz``, ``.mat``) with the true classes: kept out of `X`, returned as `y`
        ``"folder"`` for images and texts: the folder of each is its class. In a text file without a header the columns
        are named ``"1"``, ``"2"``, ...
    id : column or array with an identifier of each sample: kept out of `X` and returned as `ids`
    ignore : columns to leave out
    keep : columns to use although they look like identifiers, which are left out and noted; None: all that are numbers
    array : array with the samples in a ``.npz`` or ``.mat`` file
        By default ``X``, else the only array with two or more dimensions, else ``fea`` or ``data``. Further
        dimensions (images) are flattened.
    header : True if the first line of a text file holds the names of the columns; by default found from two lines
    decimal : {".", ","}, the sign before the decimals in a text file; by default found from the first lines
    max_bytes : the most memory the values may take; by default the memory that is free now
    missing : {"error", "drop", "mean", "median"}, default="error"
        Treatment of missing values: name them in an error, leave out their rows (``rows`` then lists those that
        are left), or put in the mean or median of the column.
    image_size : (height, width) of images; by default small ones of one size stay, others get about 32 x 32 pixels
    color : keep the colours of images (three values per pixel)
    columns : columns of a table to take, in this order; by default all that are left
    min_images : fewest images that are enough
    text : column of a table with a text for each sample; the other columns are left out, and
        `X` has no columns until vectors are made of ``texts`` (:mod:`subspaces.app.features`)
    sheet : sheet of a workbook (as `array` is); by default the first that holds many numbers

    Returns
    -------
    Dataset

    Raises
    ------
    FileError
        If the file cannot be used. The text is one line that names the file, the place and the remedy.
    """
    request = Request(
        label=label,
        id=id,
        ignore=tuple(ignore),
        keep=None if keep is None else tuple(keep),
        array=sheet if array is None else array,
        header=header,
        decimal=decimal,
        max_bytes=available_bytes() if max_bytes is None else max_bytes,
        missing=missing,
        image_size=image_size,
        color=color,
        columns=None if columns is None else tuple(columns),
        min_images=min_images,
        text=text,
    )
    if request.missing not in MISSING_RULES:
        raise ValueError(f"missing must be one of {', '.join(MISSING_RULES)}; got {request.missing!r}.")
    if request.decimal not in (None, *DECIMALS):
        raise ValueError(f"decimal must be '.' or ','; got {request.decimal!r}.")
    if isinstance(path, str | PathLike):
        files = expand([path])
    elif isinstance(path, Sequence):
        files = expand(path)
    else:
        return read_stream(path, request, read_file)
    if not files:
        raise ValueError("path is an empty list; name a file.")
    for file in files:
        check_there(file)
    if len(files) == 1 and files[0].is_dir():
        files = _tables_in(files[0]) or files
    if len(files) == 1 and not belongs(files[0].name):
        return read_file(files[0], request)
    if not are_images(files):
        return read_several(files, request, read_file)
    return read_file(common_folder(files), request, partial(read_images, given=files))


def read_file(file: Path, request: Request, reader: Reader | None = None) -> Dataset:
    """Find the reader, check that it has a use for what was asked, and turn whatever goes wrong into one line.

    `reader` takes the place of the one that belongs to the suffix.
    """
    if file.is_dir():
        what = suffix = _kind_of_folder(file) if reader is None else _FOLDER
    else:
        check_regular(file)
        suffix = suffix_of(file)
        what = f"{suffix} file"
    reader = reader or _FOLDERS.get(suffix) or READERS.get(suffix)
    if reader is None:
        raise _unknown(file, suffix)
    for option, suffixes in _OPTIONS.items():
        if getattr(request, option) != getattr(Request(), option) and suffix not in suffixes:
            raise FileError(file, f"{argument(option)} has no meaning for a {what} (only for {', '.join(suffixes)})")
    with told_in_one_line(file, f"not a {what}"), phase(f"Reading {printable(file.name, 40)}"):
        try:
            return reader(file, request)
        except FileError as error:
            raise _tried(error, file, request, reader) from None


def _tried(error: FileError, file: Path, request: Request, reader: Reader) -> FileError:
    """Return the error with a remedy under which the file is read; what else it needs is added to it."""
    found, remedy, given = dict[str, Any](), dict[str, Any](), error.remedy
    while given and not given.keys() & (remedy.keys() - {"ignore"}) and error.path == file:
        remedy |= {**given, "ignore": [*remedy.get("ignore", ()), *given.get("ignore", ())]}
        given = {}
        try:
            reader(file, replace(request, **{**remedy, "ignore": (*request.ignore, *remedy["ignore"])}))
        except FileError as other:
            given = other.remedy
        except Exception:  # the file is damaged further below
            break
        else:
            found = {name: value for name, value in remedy.items() if value}
    return FileError(error.path, error.problem, line=error.line, column=error.column, remedy=found)


def _kind_of_folder(folder: Path) -> str:
    """Classify a folder: images; texts, where there is no image."""
    return _WRITINGS if files_below(folder, is_text) and not files_below(folder, belongs) else _FOLDER


def _tables_in(folder: Path) -> list[Path]:
    """Return the tables in a folder that is none of images or texts."""
    if _kind_of_folder(folder) != _FOLDER or files_below(folder, belongs):
        return []
    if any(folder.glob("matrix.mtx*")):
        raise FileError(folder, _ADVICE[".h5ad"])
    return sorted(file for file in folder.iterdir() if suffix_of(file) in READERS and file.name[0] not in ".~")


def has_columns(file: Path) -> bool:
    """Return True if a file of this kind names its columns."""
    return suffix_of(file) in _OPTIONS["columns"]


def _unknown(file: Path, suffix: str) -> FileError:
    if suffix.removesuffix(".gz") in _ADVICE:
        return FileError(file, _ADVICE[suffix.removesuffix(".gz")])
    found = f"the suffix '{printable(file.suffix)}' is" if file.suffix else "a name without a suffix is"
    return FileError(file, f"{found} not one of the known formats: {', '.join(READERS)}")


def suffix_of(path: Path) -> str:
    """Return the suffix that decides the format, in lower case; two parts for packed files."""
    name = path.name.lower()
    if name.endswith(".gz"):
        return "".join(Path(name).suffixes[-2:])
    return Path(name).suffix
