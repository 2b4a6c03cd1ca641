"""What every estimator checks before it computes, and says of numbers that will not end well."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.utils.validation import validate_data

from subspaces import __version__
from subspaces.utils import memory
from subspaces.utils.blocks import row_blocks
from subspaces.utils.process import warn_caller
from subspaces.utils.types import Array, Data

_FAR_OFF = 1e6  # distance from the origin over the spread of the samples: a linear kernel then sees one direction only
_FAR_OUT = 1e6  # largest value over that of a typical sample
_UNEVEN = 1e8  # ratio of two features' ranges: in squares, nothing of the smaller one is left in float64
_SAMPLE = 256  # samples that show what is typical
_DATES = ("date", "time", "duration", "period", "month_day")  # how the names of such types begin, in every library
_MANY, _FEW = 256, 0.1  # features, and share of the values that are not zero, from which samples are sparse
_SHOWN = 8  # columns that a message names
_CONSTANT = 1e-8  # range of a feature over its size below which it is a constant with rounding


def validated(estimator: Any, X: Any, **rules: Any) -> Data:
    """Scikit-learn's ``validate_data``, with the place of the first NaN or infinity in the message; no dates."""
    if any(map(_is_date, _types(X))):
        dates = [name for name, kind in zip(_names(X), _types(X), strict=False) if _is_date(kind)]
        where = f" in {_listed(dates)}" if dates else ""
        raise TypeError(f"Input X contains dates or durations{where}: numbers of what unit? Convert them first.")
    if np.ma.isMaskedArray(X) and np.ma.is_masked(X):
        raise ValueError("Input X has masked entries, whose values would be used all the same: fill or remove them.")
    try:
        # the sum that scikit-learn looks for NaN with may overflow in both directions: inf − inf is not the user's NaN
        with np.errstate(over="ignore", invalid="ignore"), config_context(array_api_dispatch=False):
            return validate_data(estimator, X, **rules)
    except ValueError as error:
        texts = _text_columns(X) if "could not convert" in str(error) else []
        if texts:
            drop = f"X.drop({'columns=' if hasattr(X, 'iloc') else ''}{texts!r})"
            raise ValueError(
                f"Input X holds text in {_listed(texts)}, and {type(estimator).__name__} needs numbers: use {drop}, or "
                "encode the text as numbers."
            ) from error
        place = _first_not_finite(X) if "contains" in str(error) else None
        if place is None:
            raise
        row, column, value = place
        what, names = "NaN" if np.isnan(value) else "infinity", _names(X)
        where = f"'{names[column]}'" if column < len(names) else str(column)
        raise ValueError(
            f"Input X contains {what} (the first is in row {row}, column {where}). {type(estimator).__name__} needs a "
            "finite number everywhere: remove such rows or columns, or fill them in."
        ) from error


def stored_by_content(X: Data) -> Data:
    """Return X as CSR where it has many features and few of them are not zero, dense otherwise.

    How a caller stores the values must not decide on scaling or route, and so not on the labels.
    """
    if X.shape[1] == 0 or X.shape[0] == 0:
        return X
    n_values, is_sparse = X.shape[0] * X.shape[1], sparse.issparse(X)
    few = X.shape[1] >= _MANY and (X.count_nonzero() if is_sparse else np.count_nonzero(X)) < _FEW * n_values
    if few or few == is_sparse:
        return sparse.csr_array(X) if few else X  # an array also of a SciPy matrix, whose products are others
    memory.require(n_values * X.dtype.itemsize, "the dense form of a sparse X with few zeros", "Fit a part of it.")
    return X.toarray()


def _is_date(kind: Any) -> bool:
    return getattr(kind, "kind", "") in ("M", "m") or str(kind).lower().startswith(_DATES)


def _names(X: Any) -> list[str]:
    """Return names of the columns of a frame (pandas, polars) or table (pyarrow); none of anything else."""
    return [str(name) for name in getattr(X, "column_names", getattr(X, "columns", ()))]


def _listed(names: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"the column {shown}" if len(names) == 1 else f"the columns {shown}{more}"


def _text_columns(X: Any) -> list[str]:
    """Return columns of a frame that cannot be turned into numbers."""
    found = []
    for name in getattr(X, "columns", ()):
        try:
            np.asarray(X[name]).astype(np.float64)
        except (TypeError, ValueError):
            found.append(name)
    return found if all(isinstance(name, str) for name in found) else [str(name) for name in found]


def _types(X: Any) -> list[Any]:
    """Return type of an array or series, or of the columns of a frame (pandas, polars) or table (pyarrow)."""
    kinds: Any = getattr(getattr(X, "schema", None), "types", getattr(X, "dtypes", getattr(X, "dtype", None)))
    return list(kinds) if isinstance(kinds, list) or hasattr(kinds, "tolist") else [kinds]


def _first_not_finite(X: Any) -> tuple[int, int, float] | None:
    """Return row, column and value of the first entry that is no finite number; None if there is none to be found."""
    if sparse.issparse(X):
        X = sparse.coo_array(X)
        bad = np.flatnonzero(~np.isfinite(X.data))
        if len(bad) == 0:
            return None
        first = bad[np.lexsort((X.col[bad], X.row[bad]))[0]]
        return int(X.row[first]), int(X.col[first]), float(X.data[first])
    try:
        frame = hasattr(X, "iloc")  # pandas has missing values that are no floats
        values = X.to_numpy(np.float64, na_value=np.nan) if frame else np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if values.ndim != 2:
        return None
    for start, stop in row_blocks(len(values), 8 * values.shape[1]):
        rows, columns = np.nonzero(~np.isfinite(values[start:stop]))
        if len(rows):
            row, column = int(rows[0]) + start, int(columns[0])
            return row, column, float(values[row, column])
    return None


def check_count(n_clusters: int | None, n: int) -> None:
    """Refuse more clusters than samples."""
    if n_clusters is not None and n_clusters > n:
        raise ValueError(f"n_clusters={n_clusters} must not exceed the number of points, n_samples={n}.")


def all_equal(X: Data, pairwise: bool = False) -> bool:
    """Return whether all rows are equal (all entries of a matrix between samples)."""
    if pairwise:
        return bool(X.min() == X.max())
    low, high = X.min(axis=0), X.max(axis=0)
    return (low.tocsr() != high.tocsr()).nnz == 0 if sparse.issparse(X) else bool((low == high).all())


def warn_of_bad_numbers(X: Data, scaling: str | None) -> None:
    """Warn of features so uneven, or samples so far out or off, that the answer rests on a few digits."""
    low, high = _halves(X.min(axis=0)), _halves(X.max(axis=0))
    size, spread = np.maximum(np.abs(low), np.abs(high)), high - low
    if scaling not in ("standard", "minmax"):
        varying = spread[spread > _CONSTANT * size]
        if len(varying) > 1 and varying.max() / _UNEVEN > varying.min():
            with np.errstate(over="ignore"):
                ratio = varying.max() / varying.min()
            warn_caller(
                f"the ranges of the features differ by a factor of {ratio:.1g}: the large ones decide alone. Consider "
                'scaling="standard" or "minmax".'
            )
        if size.max() / _FAR_OFF > spread.max() > 0:
            warn_caller(
                f"the points are {size.max() / spread.max():.1g} times as far from the origin as from each other: "
                "digits are lost, and linear methods see one direction only. Subtract the mean first."
            )
    if scaling != "unit":
        some = X[np.linspace(0, X.shape[0] - 1, min(X.shape[0], _SAMPLE)).astype(int)]
        typical = float(np.median(_halves(abs(some).max(axis=1))))
        if size.max() / _FAR_OUT > typical > 0:
            warn_caller(
                f"the largest value is {size.max() / typical:.1g} times that of a typical point: beside it the others "
                'are nearly equal. Remove outliers, or scale each point to length 1 (scaling="unit").'
            )


def _halves(values: Any) -> Array:
    """Return the half of a vector in float64: halves of finite numbers can be subtracted without overflow."""
    dense = values.toarray().ravel() if sparse.issparse(values) else values
    return np.asarray(dense, dtype=np.float64) / 2


def within_reach(X: Data, largest: float) -> Data:
    """Return new samples with those shrunk that exceed the largest training value a million times.

    Squares would overflow; so far out only the direction of a sample counts, and that stays.
    """
    if sparse.issparse(X):
        sizes = np.asarray(abs(X).max(axis=1).toarray()).ravel()
    else:
        sizes = np.maximum(X.max(axis=1), -X.min(axis=1))  # no copy of the samples
    far = np.flatnonzero(sizes / _FAR_OUT > largest)
    if len(far) == 0 or largest == 0:
        return X
    X = X.copy()
    X[far] = X[far] / sizes[far, None] * X.dtype.type(min(_FAR_OUT * largest, np.finfo(X.dtype).max / 2))
    who = "1 point exceeds" if len(far) == 1 else f"{len(far)} points exceed"
    warn_caller(f"{who} every training point more than a million times: only the direction decides on the label.")
    return X


class Versioned:
    """A pickle says which version of the package wrote it; another one warns, for attributes may have changed."""

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_subspaces_version": __version__}  # type: ignore[dict-item]

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        version = state.pop("_subspaces_version", None)
        if version != __version__:
            warnings.warn(
                f"this {type(self).__name__} was saved by subspaces {version or '(unknown version)'} and is read by "
                f"{__version__}: if it misbehaves, fit it again.",
                UserWarning,
                stacklevel=2,
            )
        super().__setstate__(state)  # type: ignore[misc]
