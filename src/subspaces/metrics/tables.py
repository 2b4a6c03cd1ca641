"""Labels → contingency table → matching: the counting behind :mod:`subspaces.metrics`."""

from __future__ import annotations

import contextlib
import itertools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from subspaces.utils.blocks import row_blocks
from subspaces.utils.types import Array, Labels

DENSE_CELLS = 2**20
"""Tables of up to this many cells are dense (8 MB); larger ones, mostly zeros, are sparse."""


@dataclass(frozen=True)
class Contingency:
    """Number of points that each class and each cluster share.

    Attributes
    ----------
    counts : ndarray or csr_array of shape (n_classes, n_clusters), int64
        ``counts[a, b]`` points have the class ``classes[a]`` and the cluster ``clusters[b]``.
    classes, clusters : ndarray
        The distinct labels, sorted (in order of appearance if they cannot be compared).
    """

    counts: Any
    classes: Array
    clusters: Array

    def cells(self) -> tuple[Labels, Labels, Array]:
        """Row, column and count of every cell that is not zero."""
        cells = sparse.coo_array(self.counts)
        return cells.row.astype(np.intp), cells.col.astype(np.intp), cells.data


class Encoded(NamedTuple):
    """Labels as codes: point i has the label ``values[codes[i]]``, and every value occurs."""

    values: Array
    codes: Labels
    argument: str


def encode(labels: ArrayLike, argument: str) -> Encoded:
    """Number the distinct labels from 0, in O(n) for all but scattered numbers."""
    array = np.asarray(labels)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{argument} must be one-dimensional and not empty, got shape {array.shape}")
    kind = array.dtype.kind
    # NumPy would make [1, "1"] equal strings, and [2**63, 2**63 + 1, -1] doubles of which two are equal
    exact = list(labels) if isinstance(labels, list | tuple) else None
    if kind in "OUST" or (exact and kind == "f" and not float(abs(array).max()) < 2**53):
        return _encode_objects(exact or array.tolist(), argument)
    if kind in "fcmM" and np.isnan(array).any():
        raise ValueError(_MISSING.format(argument, "NaN"))
    whole = array
    if kind == "b" or (kind == "f" and (array == np.trunc(array)).all() and float(abs(array).max()) <= 2**53):
        whole = array.astype(np.int64)  # MATLAB stores integer labels as doubles
    if whole.dtype.kind not in "iu" or int(whole.max()) - int(whole.min()) > 4 * whole.size + 1024:
        values, codes = np.unique(array, return_inverse=True)
        return Encoded(values, codes, argument)
    # In int64 because differences of int8 overflow; those of unsigned numbers cannot
    wide = whole if whole.dtype.kind == "u" else whole.astype(np.int64, copy=False)
    smallest = wide.min()
    codes = (wide - smallest).astype(np.intp, copy=False)
    present = np.bincount(codes) > 0
    values = (np.flatnonzero(present).astype(wide.dtype) + smallest).astype(array.dtype)
    return Encoded(values, codes if present.all() else (np.cumsum(present) - 1)[codes], argument)


_MISSING = "{} must not hold missing labels, got {}: drop those points or give them a label such as -1"


def _encode_objects(labels: list[Any], argument: str) -> Encoded:
    """Number strings and other objects by hashing: faster than sorting, and they need not be comparable."""
    distinct = list(dict.fromkeys(labels))
    for label in distinct:
        # Only NaN and its like differ from themselves; pandas.NA answers neither True nor False
        if label is None or type(label).__name__ == "NAType" or label != label:
            raise ValueError(_MISSING.format(argument, repr(label)))
    with contextlib.suppress(TypeError):
        distinct.sort()
    values = np.fromiter(distinct, dtype=object, count=len(distinct))
    if all(isinstance(label, str) for label in distinct):
        values = values.astype(np.str_)
    code_of = {label: code for code, label in enumerate(distinct)}
    return Encoded(values, np.fromiter(map(code_of.__getitem__, labels), np.intp, len(labels)), argument)


def tabulate(true: Encoded, pred: Encoded) -> Contingency:
    """How many points each class shares with each cluster."""
    n_samples, shape = len(true.codes), (len(true.values), len(pred.values))
    if n_samples != len(pred.codes):
        raise ValueError(
            f"{true.argument} and {pred.argument} must label the same points, "
            f"got lengths {n_samples} and {len(pred.codes)}"
        )
    if shape[0] * shape[1] <= DENSE_CELLS:
        counts: Any = np.zeros(shape[0] * shape[1], dtype=np.int64)
        for start, stop in row_blocks(n_samples, bytes_per_row=8):
            cell = true.codes[start:stop] * shape[1] + pred.codes[start:stop]
            counts += np.bincount(cell, minlength=counts.size)
        counts = counts.reshape(shape)
    else:
        ones = np.ones(n_samples, dtype=np.int64)
        counts = sparse.coo_array((ones, (true.codes, pred.codes)), shape=shape).tocsr()
    return Contingency(counts, true.values, pred.values)


def with_new_names(classes: Array, n_new: int) -> Array:
    """Append names that no class has: numbers above the largest where they stay exact, words otherwise."""
    kind = classes.dtype.kind
    if n_new == 0:
        return classes
    if kind in "biuf" and abs(float(classes.max())) + n_new < (2**53 if kind == "f" else 2**62):
        dtype = np.float64 if kind == "f" else np.int64
        numbers = math.floor(classes.max()) + np.arange(1, n_new + 1, dtype=dtype)
        return np.concatenate([classes.astype(dtype), numbers])
    taken = set(classes.tolist())
    words = (word for i in itertools.count(1) if (word := f"unmatched {i}") not in taken)
    new = np.array(list(itertools.islice(words, n_new)))
    return np.concatenate([classes, new], dtype=np.str_ if kind == "U" else np.object_)


def match(table: Contingency) -> tuple[Labels, Labels]:
    """Rows and columns of the one-to-one matching that keeps most points, without empty cells."""
    if isinstance(table.counts, np.ndarray):
        rows, columns = linear_sum_assignment(table.counts, maximize=True)
        shared = table.counts[rows, columns] > 0
        return rows[shared], columns[shared]
    rows, columns, counts = table.cells()
    matched: list[tuple[Labels, Labels]] = []
    while counts.size:
        # A cell is in a best matching if it outweighs the two cells that it could displace. Taking those
        # first leaves SciPy, whose time grows with the square of the table, only the doubtful rest.
        certain = np.flatnonzero(counts >= _largest_other(rows, counts) + _largest_other(columns, counts))
        certain = certain[np.unique(rows[certain], return_index=True)[1]]
        certain = certain[np.unique(columns[certain], return_index=True)[1]]
        matched.append((rows[certain], columns[certain]))
        rest = ~(np.isin(rows, rows[certain]) | np.isin(columns, columns[certain]))
        rows, columns, counts = rows[rest], columns[rest], counts[rest]
        if counts.size and 100 * certain.size <= counts.size:
            matched.append(_match_sparse(rows, columns, counts))
            break
    return np.concatenate([r for r, _ in matched]), np.concatenate([c for _, c in matched])


def _largest_other(groups: Labels, counts: Array) -> Array:
    """For each cell the largest count among the other cells of its group (row or column), 0 if alone."""
    order = np.lexsort((counts, groups))
    groups, counts = groups[order], counts[order]
    last = np.flatnonzero(np.append(groups[1:] != groups[:-1], True))
    sizes = np.diff(last, prepend=-1)
    others = np.repeat(counts[last], sizes)
    others[last] = np.where(sizes > 1, counts[last - 1], 0)
    result = np.empty_like(others)
    result[order] = others
    return result


def _match_sparse(rows: Labels, columns: Labels, counts: Array) -> tuple[Labels, Labels]:
    (row_names, rows), (column_names, columns) = (np.unique(x, return_inverse=True) for x in (rows, columns))
    if len(row_names) > len(column_names):
        by_column = _match_sparse(column_names[columns], row_names[rows], counts)
        return by_column[1], by_column[0]
    # SciPy wants every row matched: a private spare column for each row says "unmatched". One more on every
    # cell, spare or not, changes no comparison and keeps the spare ones from being zeros, which are no edges.
    n_rows, n_columns = len(row_names), len(column_names)
    spare = np.arange(n_rows)
    weights = np.append(counts + 1.0, np.ones(n_rows))
    cells: Any = (weights, (np.append(rows, spare), np.append(columns, n_columns + spare)))
    graph = sparse.coo_array(cells, shape=(n_rows, n_columns + n_rows)).tocsr()
    row, column = min_weight_full_bipartite_matching(graph, maximize=True)
    real = column < n_columns
    return row_names[row[real]], column_names[column[real]]
