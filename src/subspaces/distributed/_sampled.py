"""Sample, cluster, classify on chunks: landmarks come to the caller, the fitted model goes to the workers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from subspaces.distributed._files import load, save
from subspaces.distributed._input import Source, opened
from subspaces.distributed._output import Output
from subspaces.distributed._tasks import Workers, results
from subspaces.engine.landmark_run import Outcome, one_cluster, run_points
from subspaces.estimators.sampled import Sampled
from subspaces.kernels.scaling import Scaling, apply_scaling, fit_scaling, inverse_deviation
from subspaces.landmarks.points import Points, label_blocks
from subspaces.utils.blocks import row_blocks
from subspaces.utils.ordering import Units, first_keys, hash_rows, order_of_keys, second_keys
from subspaces.utils.types import Array, Labels

TASK_BYTES = 64 * 2**20
"""Bytes of samples that one task labels, about."""


class Rows(Points):
    """Samples that stay where they are, fetched when they are asked for.

    They are cut into blocks that do not depend on their chunks: whole multiples of the block that the estimator
    labels at a time in memory (`block_bytes`), because the rounding of a matrix product depends on its size. Labels of
    blocks are kept in a `folder`, if there is one.
    """

    def __init__(self, source: Source, block_bytes: int, workers: Workers, folder: Path | None = None) -> None:
        super().__init__(source, Scaling(), np.zeros(0, dtype=np.intp), block_bytes)
        self.workers, self.folder = workers, folder
        n, m = self.shape
        row_bytes = m * source.dtype.itemsize
        at_once = row_blocks(n, row_bytes, block_bytes)[0][1]
        per_task = at_once * max(1, TASK_BYTES // (at_once * row_bytes))
        self.bounds, self.blocks = source.pieces(per_task)

    def __len__(self) -> int:
        return self.shape[0]

    def scaled(self, scaling: Scaling, order: Labels | None = None) -> Rows:
        """Return the same rows, scaled when they are fetched."""
        other = copy.copy(self)
        other.scaling = scaling
        other.order = self.order if order is None else order
        return other

    def take(self, rows: Labels) -> Array:
        """Fetch some rows."""
        block = np.searchsorted(self.bounds, rows, side="right") - 1
        needed = np.unique(block)
        places = [np.flatnonzero(block == b) for b in needed]
        tasks = [(self.blocks[b], rows[place] - self.bounds[b]) for b, place in zip(needed, places, strict=True)]
        out = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
        for number, found in self.workers.run(_rows, tasks):
            out[places[number]] = found
        return np.asarray(apply_scaling(out, self.scaling))

    def label(self, function: Callable[[Array], Labels]) -> Labels:
        """Apply a function to all rows, block by block, on the workers."""
        name = joblib.hash((function, self.scaling, self.dtype)) if self.folder is not None else ""
        place = None if self.folder is None else str(self.folder)
        sent = self.workers.keep((self.scaling, function, self.block_bytes))
        tasks = [(block, sent, place, name) for block in self.blocks]
        labels = np.empty(len(self), dtype=np.intp)
        for number, found in self.workers.run(label_block, tasks, announce=True):
            labels[self.bounds[number] : self.bounds[number + 1]] = found
        return labels


def fit_sampled(estimator: Sampled, source: Source, workers: Workers, folder: Path | None, output: Output) -> None:
    """Fit an estimator as its own ``fit`` does, with samples that stay where they are."""
    estimator._validate_params()
    with estimator._fitting():
        found = _run(estimator, Rows(source, estimator._block_bytes, workers, folder))
        estimator.n_features_in_ = source.shape[1]
        estimator._keep(found)
        output.keep(estimator)


def _run(estimator: Sampled, points: Rows) -> Outcome:
    """Do the work of ``run_landmarks`` on chunks; copies of a sample are left to the classifier."""
    n = len(points)
    solve = estimator._solve(n)
    extremes = _extremes(points)
    if estimator.n_clusters == 1 or (extremes[0] == extremes[1]).all():
        return one_cluster(n, points.dtype, estimator.n_clusters)
    largest = float(np.abs(extremes).max()) or 1.0
    scaling = settle_scaling(points, extremes, estimator.scaling, estimator._sees_units())
    return run_points(points.scaled(scaling, _order(points, Units.between(*extremes))), solve, largest)


def settle_scaling(points: Rows, extremes: Array, rule: str | None, units: bool = False) -> Scaling:
    """Do the work of ``fit_scaling`` on all samples; only the rule "standard" needs more than their extremes."""
    if rule == "log":
        raise ValueError(
            'scaling="log" needs the total of every row before the first one is scaled: take logarithms first.'
        )
    if rule != "standard":
        return fit_scaling(extremes, rule, units=units)
    exponent = fit_scaling(extremes, None)
    points = points.scaled(exponent)
    mean = _total(points, None) / len(points)
    variance = _total(points, mean) / len(points)
    return Scaling(exponent.exponent, mean, inverse_deviation(variance, apply_scaling(extremes, exponent)))


def _extremes(points: Rows) -> Array:
    """Return the smallest and largest value of each feature."""
    found = results(points.workers, _range, [(block,) for block in points.blocks])
    for number, values in enumerate(found):
        if not np.isfinite(values).all():
            first, last = points.bounds[number], points.bounds[number + 1] - 1
            raise ValueError(f"X contains NaN or infinity in its rows {first} to {last}: fill in or drop them first.")
    return np.stack([np.min([low for low, _ in found], axis=0), np.max([high for _, high in found], axis=0)])


def _order(points: Rows, units: Units) -> Labels:
    """Return the ``canonical_order`` of all samples, from keys and a hash of each."""
    found = results(points.workers, _keys, [(block, units) for block in points.blocks])
    first, sums, row_hashes = zip(*found, strict=True)
    weights = np.sum(sums, axis=0) / len(points)
    second = results(points.workers, _second_keys, [(block, units, weights) for block in points.blocks])
    return order_of_keys(np.column_stack([np.concatenate(first), np.concatenate(second)]), np.concatenate(row_hashes))


def _total(points: Rows, mean: Array | None) -> Array:
    """Sum each feature, or its squared distance from the mean, over all samples.

    Handed from block to block in the order of the rows, as NumPy sums one array (of two columns or more): the same
    digits.
    """
    total = np.zeros(points.shape[1])
    for block in points.blocks:
        (total,) = results(points.workers, _add, [(total, block, mean, points.scaling)])
    return total


def label_block(
    block: Any, how: tuple[Scaling, Callable[[Array], Labels], int], folder: str | None, name: str
) -> Labels:
    """Label a block on a worker; read the labels if the same model labelled the same samples before."""
    scaling, function, block_bytes = how
    block = opened(block)
    if folder is None:
        return label_blocks(block, scaling, function, block_bytes)
    path = Path(folder) / f"labels-{name}-{joblib.hash(block)}.npy"
    known = load(path)
    if known is not None and known.shape == (len(block),):
        return known
    labels = label_blocks(block, scaling, function, block_bytes)
    save(path, labels)
    return labels


def _range(block: Any) -> tuple[Array, Array]:
    X = opened(block)
    return X.min(axis=0), X.max(axis=0)


def _rows(block: Any, rows: Labels) -> Array:
    return opened(block)[rows]


def _keys(block: Any, units: Units) -> tuple[Array, Array, Array]:
    X = opened(block)
    return *first_keys(X, units), hash_rows(X)


def _second_keys(block: Any, units: Units, weights: Array) -> Array:
    return second_keys(opened(block), units, weights)


def _add(total: Array, block: Any, mean: Array | None, scaling: Scaling) -> Array:
    values = np.asarray(apply_scaling(opened(block), scaling))
    values = values.astype(np.float64) if mean is None else np.square(values - mean)
    return np.asarray(np.add.reduce(np.concatenate([total[None], values]), axis=0))
