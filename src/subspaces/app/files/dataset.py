"""The request every reader gets, the dataset it returns, and the checks of values that all of them share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.utils.files import FileError, argument, printable, quoted
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array, Data, Labels

MISSING_RULES = ("error", "drop", "mean", "median")
"""Treatments of missing values that a caller may ask for."""

_NUMBER = r"-?(0|[1-9]\d{0,14})(\.\d+)?"  # as which a text loses nothing
_SHOWN = 4  # rows and columns that an error lists


@dataclass(frozen=True)
class Request:
    """Options of a reader; `read_table` documents each field."""

    label: str | None = None
    id: str | None = None
    ignore: tuple[str, ...] = ()
    keep: tuple[str, ...] | None = ()
    array: str | None = None
    header: bool | None = None
    decimal: str | None = None
    max_bytes: int = 2**63 - 1
    missing: str = "error"
    image_size: tuple[int, int] | None = None
    color: bool = False
    columns: tuple[str, ...] | None = None
    min_images: int = 2
    text: str | None = None


@dataclass(frozen=True)
class Original:
    """All columns of a table as they stand in it, before gaps are filled in.

    Attributes
    ----------
    names : names of all columns
    numbers : the features
    places : place of each feature among all columns
    others : cells of the other columns by their places
    """

    names: list[str]
    numbers: Array
    places: list[int]
    others: Mapping[int, Sequence[Any]]

    def cells(self, name: str, j: int) -> Any:
        """Return the cells of a column by its name, best at place `j`; empty cells where there is none."""
        if self.names[j : j + 1] != [name]:
            j = self.names.index(name) if name in self.names else -1
        if j in self.places:
            return self.numbers[:, self.places.index(j)].tolist()
        return self.others.get(j, [None] * len(self.numbers))

    def below(self, others: Sequence[Original], numbers: Array) -> Original:
        """Return these columns with those of more files below, by their names; `numbers` are the features of all."""
        rest = {j: [cell for part in (self, *others) for cell in part.cells(self.names[j], j)] for j in self.others}
        return Original(self.names, numbers, self.places, rest)

    def frame(self) -> Any:
        """Return a pandas.DataFrame; columns without name and content are not in it."""
        import pandas

        found = dict(zip(self.places, self.numbers.T, strict=True))
        for j, cells in self.others.items():
            column = pandas.Series(cells, dtype=object).replace("", None)
            if column.notna().any() or self.names[j]:
                texts = column.dropna().astype(str)
                found[j] = column.astype(float) if texts.str.fullmatch(_NUMBER).all() else column
        frame = pandas.DataFrame({j: found[j] for j in sorted(found)})
        whole = [j for j in frame if frame[j].dtype == float and (frame[j].dropna() % 1 == 0).all()]
        return frame.astype(dict.fromkeys(whole, "Int64")).set_axis([self.names[j] for j in frame], axis=1)


@dataclass(frozen=True)
class Dataset:
    """Samples read from a file.

    Attributes
    ----------
    X : array of shape (n_samples, n_features), rows as in the file; CSR where the file is sparse
    source : the file
    y : class of each sample as an index into `classes`, −1 where its cell is empty; None when no label was named
    classes : the labels as written in the file
    ids : identifier of each sample, when the file has one and it was named
    feature_names : names of the columns of `X`, when the file has names
    notes : remarks for the user about how the file was understood, one sentence each
    image_shape : height and width (and 3 for colour) when each sample is an image, flattened
    skipped : files of a folder that could not be used, each with the reason
    rows : row of the file that each sample is, when rows with missing values were dropped
    row_ids : identifiers of all rows, dropped ones included; None when none were dropped or named
    n_rows : rows of the file, when some were dropped
    pixels : the images, flattened, where `X` holds vectors made of them; None where `X` holds the pixels
    texts : the text of each sample, where vectors are made of texts; `X` has no columns before they are
    features : the extractor that made those vectors (:class:`subspaces.app.features.Extractor`), or None
    lines : line of the file that each row stands on, counted from 1 as editors do (text tables and workbooks)
    left_out : names of columns that were left out unasked, each with its kind: "id", "date" or "row names" or "empty"
    units : unit of a column by its name, where the file has a row of units
    columns : all columns of a table as they stand in the file; `original` shows them
    """

    X: Data
    source: Path
    y: Labels | None = None
    classes: list[str] | None = None
    ids: list[str] | list[int] | None = None
    feature_names: list[str] | None = None
    notes: tuple[str, ...] = field(default=())
    image_shape: tuple[int, ...] | None = None
    skipped: tuple[tuple[str, str], ...] = ()
    rows: Labels | None = None
    row_ids: list[str] | list[int] | None = None
    n_rows: int | None = None
    pixels: Array | None = None
    texts: list[str] | None = None
    features: Any = None
    lines: Labels | None = None
    left_out: tuple[tuple[str, str], ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    columns: Original | None = None

    @property
    def original(self) -> Any:
        """Return all columns and rows of the table in a pandas.DataFrame, those left out included; None of no table."""
        return None if self.columns is None else self.columns.frame()

    @property
    def n_samples(self) -> int:
        """Return the number of samples."""
        return int(self.X.shape[0])

    @property
    def is_image_folder(self) -> bool:
        """Return True if each sample is a file, identified by its path below `source`."""
        return self.image_shape is not None and self.source.is_dir()

    @property
    def names(self) -> list[str] | list[int] | None:
        """Return identifiers, else lines or rows of the file; None if the order says it all."""
        if self.ids is not None:
            return self.ids
        if self.lines is not None:
            return [f"line {line}" for line in self.places["line"]]
        return None if self.rows is None else self.rows.tolist()

    @property
    def places(self) -> dict[str, list[Any]]:
        """Return the column that identifies samples in a label file; empty where the order does."""
        if self.ids is not None:
            return {"id": list(self.ids)}
        if self.lines is not None:
            return {"line": (self.lines if self.rows is None else self.lines[self.rows]).tolist()}
        return {} if self.rows is None else {"row": self.rows.tolist()}

    @property
    def table(self) -> dict[str, Any]:
        """Return the arguments that make `write_labels` write one row for each row of the file."""
        return {"ids": self.row_ids or self.ids, "lines": self.lines, "rows": self.rows, "n_rows": self.n_rows}


def check_there(path: Path) -> None:
    """Refuse a name that is none of a file or folder."""
    if path.exists():
        return
    if not path.parent.is_dir():
        raise FileError(path, "no such file: its folder does not exist; check the name of the folder")
    there = {other.stem.casefold(): other.name for other in path.parent.iterdir() if other.exists()}
    near = get_close_matches(path.stem.casefold(), there, n=1, cutoff=0.7)
    hint = f"; did you mean '{printable(there[near[0]])}'?" if near else "; check the name and the folder"
    raise FileError(path, f"no such file{hint}")


def imported(path: Path, module: str, what: str, extra: str = "app", instead: str = "") -> Any:
    """Import a package that only some files need; say what to install where it is missing."""
    try:
        return import_module(module)
    except ImportError:
        name = module.partition(".")[0].replace("_", "-").replace("PIL", "Pillow")
        raise FileError(path, f'{what} needs {name}: pip install "subspaces[{extra}]"{instead}') from None


@contextmanager
def told_in_one_line(path: Path, otherwise: str, too_large: str = "use fewer rows or columns") -> Iterator[None]:
    """Turn whatever goes wrong while a file is read into one line; `otherwise` says what a damaged one may be."""
    try:
        yield
    except FileError:
        raise
    except MemoryError as error:
        raise FileError(path, f"does not fit in memory; {too_large}") from error
    except Exception as error:  # damaged bytes meet the parsers of many formats in too many ways to list
        if isinstance(error, OSError) and error.strerror:
            raise FileError(path, f"cannot be read: {printable(error.strerror)}") from error
        reason = printable(" ".join(str(error).split()), 120)
        raise FileError(path, f"damaged, cut short or {otherwise} ({reason}); write or fetch it again") from error


def has_gaps(X: Array) -> bool:
    """Return True if any value is NaN or infinite, without a mask of the size of `X`."""
    # Imported late: it loads scikit-learn, and a wrong file name should not wait seconds for its answer.
    from subspaces.utils.blocks import row_blocks

    if X.dtype.kind != "f":
        return False
    blocks = row_blocks(X.shape[0], X.shape[1] * X.itemsize)
    return not all(np.isfinite(X[start:stop]).all() for start, stop in blocks)


def whole_numbers(values: Array) -> Array:
    """Return whole floats as integers: MATLAB stores only floats, but class 3 is not called 3.0."""
    # beyond 2**53 a float does not tell neighbouring whole numbers apart, and at 2**63 integers end
    if values.dtype.kind == "f" and (np.abs(values) <= np.float64(2**53)).all() and (values == np.rint(values)).all():
        return values.astype(np.int64)
    return values


def encode(path: Path, labels: Array, name: str) -> tuple[Labels, list[str]]:
    """Return labels as indices into the sorted list of their names, −1 where there is none (NaN)."""
    labels = labels.reshape(-1)
    known = ~np.isnan(labels) if labels.dtype.kind == "f" else np.ones(len(labels), dtype=bool)
    if not known.any():
        raise FileError(path, "missing label, in every row; fill in some, or name no label", column=name)
    codes = np.full(len(labels), -1, dtype=np.intp)
    classes, codes[known] = np.unique(whole_numbers(labels[known]), return_inverse=True)
    return codes, [str(name) for name in classes.tolist()]


def settle_missing(
    data: Dataset,
    how: str,
    row_name: Callable[[int], str],
    names: Sequence[str],
    cell: str = "",
    can_ignore: bool = True,
) -> Dataset:
    """Return the data without missing values (NaN), or raise one error that locates them.

    `how` is one of `MISSING_RULES`, or ``"keep"``, which changes nothing. For the error, `row_name` names a row
    (``"line 7"``), `names` are the columns, `cell` is the text of the first missing value in the file, and
    `can_ignore` allows the remedy of leaving out columns.
    """
    if not has_gaps(data.X):
        return data
    infinite = np.isinf(data.X)
    if infinite.any():
        i, j = (int(index) for index in np.unravel_index(int(np.argmax(infinite)), infinite.shape))
        problem = f"{row_name(i)}, column '{printable(names[j])}': {data.X[i, j]} is not finite"
        how = f"leave out the row or column ({argument('ignore')})" if can_ignore else "leave out the row"
        raise FileError(data.source, f"{problem}; correct it or {how}")
    if how == "keep":
        return data
    missing = np.isnan(data.X)
    rows, columns = np.flatnonzero(missing.any(axis=1)), np.flatnonzero(missing.any(axis=0))
    if how == "error":
        rule = {"missing": "drop" if 4 * len(rows) <= len(data.X) else "median"}
        or_else = f", or leave out the column ({argument('ignore')})" if can_ignore else ""
        raise FileError(data.source, _report(missing, rows, columns, row_name, names, cell) + or_else, remedy=rule)
    counts = ", ".join(f"'{printable(names[j])}' {int(missing[:, j].sum())}" for j in columns[:_SHOWN])
    more = f" and {counted(len(columns) - _SHOWN, 'more column')}" if len(columns) > _SHOWN else ""
    where = f"{counted(int(missing.sum()), 'value was', 'values were')} missing ({counts}{more})"
    if how == "drop":
        return _drop(data, rows, f"{where}: {counted(len(rows), 'row')} with a gap left out, without a label")
    X, middle = data.X.copy(), np.mean if how == "mean" else np.median
    for j in columns.tolist():
        known = X[~missing[:, j], j]
        if len(known) == 0:
            remedy = f"leave the column out{' with ' + argument('ignore', [names[j]]) if can_ignore else ''}"
            raise FileError(data.source, f"every value is missing; {remedy}", column=names[j])
        X[missing[:, j], j] = middle(known)
    return replace(data, X=X, notes=(*data.notes, f"{where}: the {how} of the column was put in"))


def _report(
    missing: Array, rows: Array, columns: Array, row_name: Callable[[int], str], names: Sequence[str], cell: str
) -> str:
    """Locate missing values and name the remedies."""
    total, i = int(missing.sum()), int(rows[0])
    what = f"{row_name(i)}, column '{printable(names[int(np.argmax(missing[i]))])}': missing value{cell and ' ' + cell}"
    if total > 1:
        named = [(row, [names[int(j)] for j in np.flatnonzero(missing[row])]) for row in rows[:_SHOWN].tolist()]
        listed = "; ".join(f"{row_name(row)}: {quoted(absent, _SHOWN)}" for row, absent in named)
        more = f"; and {counted(len(rows) - _SHOWN, 'more row')}" if len(rows) > _SHOWN else ""
        where = f"{counted(len(rows), 'row')} and {counted(len(columns), 'column')}"
        what += f", the first of {total} in {where} ({listed}{more})"
    left = f", which keeps {missing.shape[0] - len(rows)} of {missing.shape[0]} rows,"
    drop, mean, median = (argument("missing", rule) for rule in ("drop", "mean", "median"))
    return f"{what}; fill it in, use {drop}{left} {mean} or {median}"


def _drop(data: Dataset, rows: Array, note: str) -> Dataset:
    n = len(data.X)
    kept = np.setdiff1d(np.arange(n), rows)
    if len(kept) < 2:
        problem = f"{argument('missing', 'drop')} leaves {len(kept)} of {n} rows"
        remedy = f"use {argument('missing', 'mean')}, or {argument('ignore')} the columns with the missing values"
        raise FileError(data.source, f"{problem}; {remedy}")
    y = None if data.y is None else data.y[kept]
    ids = None if data.ids is None else [data.ids[i] for i in kept]
    notes = (*data.notes, note)
    return replace(data, X=data.X[kept], y=y, ids=ids, rows=kept, row_ids=data.ids, n_rows=n, notes=notes)


def check_not_empty(path: Path, shape: tuple[int, ...], name: str) -> None:
    """Refuse an array without values."""
    if 0 in shape:
        raise FileError(path, f"'{printable(name)}' has the shape {printable(shape)}: there is nothing to cluster")


def check_points(data: Dataset, missing: str, name: str = "X") -> Dataset:
    """Refuse an empty array and infinite values; treat missing values as asked."""
    check_not_empty(data.source, data.X.shape, name)
    columns = [str(j) for j in range(data.X.shape[1])]
    return settle_missing(data, missing, lambda i: f"row {i}", columns, can_ignore=False)
