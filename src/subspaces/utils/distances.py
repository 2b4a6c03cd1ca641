"""Compute distances without cancellation and in blocks; bandwidths and neighbours that follow from them."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.extmath import safe_sparse_dot

from subspaces.utils.blocks import BLOCK_BYTES, map_blocks, row_blocks
from subspaces.utils.ordering import top_columns
from subspaces.utils.types import Array, Data, Sparse

BANDWIDTHS = ("rms", "mean", "median")

_MEDIAN_SAMPLE = 2048  # samples whose pairwise distances give the median; 2 million pairs
_BLIND_SAMPLE = 64  # samples that show whether a bandwidth tells samples apart
_BLIND = 1e3  # times the rounding of 1: closer to 1 a kernel value has fewer than three digits left


def check_bandwidth(bandwidth: float | str) -> None:
    """Refuse a bandwidth that is neither a rule nor a positive number."""
    if isinstance(bandwidth, str):
        if bandwidth not in BANDWIDTHS:
            raise ValueError(unknown_name("bandwidth", bandwidth, BANDWIDTHS))
    elif not (np.isfinite(bandwidth) and bandwidth > 0):
        raise ValueError(f"bandwidth must be a positive finite number or one of {BANDWIDTHS}; got {bandwidth!r}.")


def resolve_bandwidth(X: Data, bandwidth: float | str) -> float:
    """Return σ from a rule (``"rms"``, ``"mean"``, ``"median"``) or a positive number; see :class:`DistanceKernel`."""
    check_bandwidth(bandwidth)
    if not isinstance(bandwidth, str):
        limits, sigma = np.finfo(X.dtype), float(bandwidth)
        if not float(limits.tiny) ** 0.5 < sigma < float(limits.max) ** 0.5:  # σ² or its inverse is no number
            raise ValueError(
                f"bandwidth={sigma:.3g} is out of all proportion to the points: its square has no value in {X.dtype}. "
                "Give it in the units of the data."
            )
        return sigma
    if bandwidth == "rms":
        sigma = float(np.sqrt(2 * _mean_square(X)))
    elif bandwidth == "mean":
        sigma = float(sum(_distance_blocks(X, lambda d, start: d.sum(dtype=np.float64))) / X.shape[0] ** 2)
    else:
        if X.shape[0] > _MEDIAN_SAMPLE:
            X = X[np.linspace(0, X.shape[0] - 1, _MEDIAN_SAMPLE).astype(int)]
        pairs = _distance_blocks(X, lambda d, start: d[np.tri(len(d), d.shape[1], start - 1, bool)])
        sigma = float(np.median(np.concatenate(pairs)))
    if sigma == 0:
        raise ValueError(
            f"bandwidth={bandwidth!r} gave 0: (most) points are equal. Remove duplicates or pass a positive number."
        )
    return sigma


def _mean_square(X: Data) -> float:
    """Return the mean squared distance of the samples from their mean, in blocks of rows."""
    if sparse.issparse(X):
        mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
        return max(float(squared_norms_of(X).mean(dtype=np.float64) - mean @ mean), 0.0)
    origin, squares, total = origin_of(X), 0.0, np.zeros(X.shape[1])
    for start, stop in row_blocks(X.shape[0], X.shape[1] * X.itemsize):
        block = X[start:stop] - origin
        squares += float(squared_norms_of(block).sum(dtype=np.float64))
        total += block.sum(axis=0, dtype=np.float64)
    mean = total / X.shape[0]  # ≈ 0: nothing cancels
    return max(squares / X.shape[0] - float(mean @ mean), 0.0)


def warn_if_blind(X: Data, bandwidth: float, power: int) -> None:
    """Warn where most pairs of samples are so close for a bandwidth that their kernel values are 1 to rounding.

    Near 1 the kernel is 1 − (d/σ)^power, power 1 or 2.
    """
    n = X.shape[0]
    sample = X[np.linspace(0, n - 1, min(n, _BLIND_SAMPLE)).astype(int)]
    sample = sample if sparse.issparse(X) else sample - origin_of(X)
    squares = np.ascontiguousarray(safe_sparse_dot(sample, sample.T, dense_output=True))
    norms = squares.diagonal().copy()
    to_squared_distances(squares, norms[:, None], norms)
    np.fill_diagonal(squares, 0)
    distances = np.sqrt(squares[squares > 0])
    middle = float(np.median(distances)) if len(distances) else bandwidth
    if (middle / bandwidth) ** power < _BLIND * np.finfo(X.dtype).eps:
        warnings.warn(
            f"the bandwidth {bandwidth:.3g} is {bandwidth / middle:.1g} times a typical distance: the kernel takes "
            f'most points for equal in {X.dtype}. Take a smaller one, or bandwidth="median" where outliers spoil it.',
            UserWarning,
            stacklevel=3,
        )


def to_squared_distances(products: Array, row_norms: Array, column_norms: Array) -> None:
    """Turn products into ‖x‖² + ‖y‖² − 2 xᵀy in place, from norms that broadcast; clip rounding below zero."""
    products *= -2
    products += column_norms
    products += row_norms
    np.maximum(products, 0, out=products)


def origin_of(X: Array) -> Array:
    """Return the median of up to 256 evenly spaced rows: near the bulk of the samples even with outliers."""
    middle: Array = np.median(X[np.linspace(0, X.shape[0] - 1, min(X.shape[0], 256)).astype(int)], axis=0)
    return middle.astype(X.dtype, copy=False)


def squared_norms_of(X: Data) -> Array:
    """Return ‖x‖² of each row."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


def _distance_blocks(X: Data, reduce: Callable[[Array, int], Any]) -> list[Any]:
    """Return ``reduce(distances, start)`` of the rows from `start` on, block by block."""
    if not sparse.issparse(X):
        X = X - origin_of(X)  # distances do not change, and cancellation in ‖x‖² + ‖y‖² − 2xᵀy becomes harmless
    norms = squared_norms_of(X)

    def block_value(start: int, stop: int) -> Any:
        products = np.ascontiguousarray(safe_sparse_dot(X[start:stop], X.T, dense_output=True))
        to_squared_distances(products, norms[start:stop, None], norms)
        products[np.arange(stop - start), np.arange(start, stop)] = 0
        return reduce(np.sqrt(products, out=products), start)

    return [block_value(*rows) for rows in row_blocks(X.shape[0], X.shape[0] * X.dtype.itemsize, 64 * 2**20)]


def unknown_name(argument: str, value: str, known: tuple[str, ...]) -> str:
    """Return the message for an unknown option, with the nearest known one."""
    close = difflib.get_close_matches(str(value), known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"{argument}={value!r} is not known; choose one of {list(known)}.{hint}"


def nearest_neighbors(X: Array, k: int) -> tuple[Array, Array]:
    """Return distances and indices of the k nearest other samples of each, nearest first, both of shape (n, k).

    All pairs, block by block: scikit-learn's search takes those of equally far samples that rounding prefers. Found by
    ‖x‖² − 2xᵀy + ‖y‖², the distances themselves come from differences, which lose no digits of near samples.
    """
    centred = X - X.mean(axis=0)
    squares = np.einsum("ij,ij->i", centred, centred)

    def search(start: int, stop: int) -> tuple[Array, Array]:
        keys = 2 * (centred[start:stop] @ centred.T)
        keys -= squares
        keys -= squares[start:stop, None]
        keys[np.arange(stop - start), np.arange(start, stop)] = -np.inf
        found = top_columns(keys, k)
        distances = np.stack(
            [np.linalg.norm(centred[start:stop] - centred[column], axis=1) for column in found.T], axis=1
        )
        order = np.argsort(distances, axis=1, kind="stable")
        return np.take_along_axis(distances, order, axis=1), np.take_along_axis(found, order, axis=1)

    parts = map_blocks(search, row_blocks(len(X), len(X) * X.itemsize, 8 * BLOCK_BYTES))
    distances, indices = zip(*parts, strict=True)
    return np.concatenate(distances), np.concatenate(indices)


def check_points(X: Array, n_neighbors: int | None) -> Array:
    """Return X as floats, float32 kept; refuse more neighbours than there are other samples."""
    points: Array = check_array(X, dtype=[np.float64, np.float32], ensure_min_samples=2)
    largest = len(points) - 1  # a sample is never its own neighbour
    if n_neighbors is not None and not 1 <= n_neighbors <= largest:
        raise ValueError(f"n_neighbors must be from 1 to n_samples - 1 = {largest}, got {n_neighbors}.")
    return points


def columns_to_sparse(indices: Array, values: Array) -> Sparse:
    """Build a square sparse matrix whose column i holds ``values[i]`` at the rows ``indices[i]``; drop zeros."""
    n_samples, per_column = indices.shape
    indptr = np.arange(0, n_samples * per_column + 1, per_column)
    # flatten copies: what is sorted below are not the caller's arrays
    matrix = sparse.csc_array((values.flatten(), indices.flatten(), indptr), shape=(n_samples, n_samples))
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix
