"""What every reader returns, what every reader is asked, and the one error they all raise."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.utils.files import FileError
from subspaces.utils.types import Array, Data, Labels


@dataclass(frozen=True)
class Request:
    """What is wanted from a file; see `read_table` for the meaning of each field."""

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
class Dataset:
    """Points read from a file.

    Attributes
    ----------
    X : array of shape (n_samples, n_features), the points, rows as in the file; CSR where the file is sparse
    source : the file
    y : class of each point as an index into `classes`; None when no label was named
    classes : the labels as they stand in the file
    ids : identifier of each point, when the file has one and it was named
    feature_names : names of the columns of `X`, when the file has names
    notes : what a person should know about how the file was understood, one sentence each
    image_shape : height and width (and 3 for colour) when each point is an image, flattened
    skipped : files of a folder that could not be used, each with the reason
    rows : row of the file that each point is, when rows with missing values were dropped
    row_ids : identifiers of all rows, the dropped ones included; None when none were dropped or named
    n_rows : rows of the file, when some were dropped
    texts : the text of each point, where vectors are made of texts; `X` has no columns before they are
    pixels : the images, flattened, where `X` holds vectors made of them; None where `X` holds the pixels
    features : what made those vectors (:class:`subspaces.app.features.Extractor`), None where nothing did
    left_out : names of columns that were left out unasked, each with what it holds: "id", "date" or "row names"
    lines : line of the file that each of its rows stands on, counted from 1 as editors and spreadsheets do; text tables
        and workbooks have them
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

    @property
    def n_samples(self) -> int:
        """How many points there are."""
        return int(self.X.shape[0])

    @property
    def is_image_folder(self) -> bool:
        """Whether each point is a file: its identifier is then its path below `source`."""
        return self.image_shape is not None and self.source.is_dir()

    @property
    def names(self) -> list[str] | list[int] | None:
        """What to call the points: identifiers, else lines or rows of the file; None if it has just these rows."""
        if self.ids is not None:
            return self.ids
        if self.lines is not None:
            return [f"line {line}" for line in self.places["line"]]
        return None if self.rows is None else self.rows.tolist()

    @property
    def places(self) -> dict[str, list[Any]]:
        """The column that tells whose cluster is whose, as label files name it; empty where that is the order."""
        if self.ids is not None:
            return {"id": list(self.ids)}
        if self.lines is not None:
            return {"line": (self.lines if self.rows is None else self.lines[self.rows]).tolist()}
        return {} if self.rows is None else {"row": self.rows.tolist()}

    @property
    def table(self) -> dict[str, Any]:
        """What `subspaces.app.files.write_labels` is to know of the file: a row of it for each row of the labels."""
        return {"ids": self.row_ids or self.ids, "lines": self.lines, "rows": self.rows, "n_rows": self.n_rows}


def first_not_finite(X: Array) -> tuple[int, int] | None:
    """Row and column of the first NaN or infinity, without a mask of the size of `X`."""
    # Imported late: it loads scikit-learn, and a wrong file name should not wait seconds for its answer.
    from subspaces.utils.blocks import row_blocks

    if X.dtype.kind != "f":
        return None
    for start, stop in row_blocks(X.shape[0], X.shape[1] * X.itemsize):
        finite = np.isfinite(X[start:stop])
        if not finite.all():
            row, column = np.unravel_index(int(np.argmin(finite)), finite.shape)
            return start + int(row), int(column)
    return None


def whole_numbers(values: Array) -> Array:
    """Floats that are all whole as integers: MATLAB has no other numbers, but class 3 is not called 3.0."""
    # beyond 2**53 a float does not tell neighbouring whole numbers apart, and at 2**63 integers end
    if values.dtype.kind == "f" and (np.abs(values) <= np.float64(2**53)).all() and (values == np.rint(values)).all():
        return values.astype(np.int64)
    return values


def encode(path: Path, labels: Array, name: str) -> tuple[Labels, list[str]]:
    """Any labels as indices into the sorted list of their names."""
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        problem = f"the label of row {int(np.argmax(np.isnan(labels)))} is missing (NaN); fill it in or name no label"
        raise FileError(path, problem, column=name)
    classes, codes = np.unique(whole_numbers(labels), return_inverse=True)
    return codes.reshape(-1).astype(np.intp, copy=False), [str(name) for name in classes.tolist()]
