"""Sample, cluster, classify on chunks: landmarks come to the driver, the fitted model goes to the workers."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from dask.delayed import delayed
from sklearn.utils import check_random_state

from subspaces.distributed._files import digest, load, save
from subspaces.distributed._tasks import Workers, replaced
from subspaces.estimators.large import _MAX_SEED
from subspaces.estimators.sampled import Sampled
from subspaces.new_points import fingerprints
from subspaces.numerics.blocks import row_blocks
from subspaces.numerics.ordering import order_of_keys, row_keys
from subspaces.numerics.types import Array, Labels
from subspaces.scaling import Scaling, _inverse_deviation, apply_scaling, fit_scaling

TASK_BYTES = 64 * 2**20
"""Points that one task labels, about."""


class Rows:
    """Rows of a dask array, fetched when they are asked for; looks like an array to a sampler.

    The array is cut into blocks that do not depend on its chunks: whole multiples of the block that the estimator
    labels at a time in memory, because the rounding of a matrix product depends on its size.
    """

    def __init__(self, array: Any, block_rows: int, workers: Workers, scaling: Scaling | None = None) -> None:
        self.shape: tuple[int, int] = array.shape
        self.dtype = array.dtype
        self.bounds = [*range(0, len(array), block_rows), len(array)]
        self.blocks = list(array.rechunk((block_rows, -1), method="tasks").to_delayed().ravel())
        self.workers = workers
        self.scaling = scaling or Scaling()
        self._last: tuple[int, Array] | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def scaled(self, scaling: Scaling) -> Rows:
        """The same rows, scaled when they are fetched."""
        other = copy.copy(self)
        other.scaling, other._last = scaling, None
        return other

    def __getitem__(self, rows: Any) -> Array:
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            blocks = range(self._block_of(start), self._block_of(max(start, stop - 1)) + 1)
            parts = [self._block(b)[max(0, start - self.bounds[b]) : stop - self.bounds[b]] for b in blocks]
            return np.concatenate(parts)
        rows = np.asarray(rows)
        block = np.searchsorted(self.bounds, rows, side="right") - 1
        needed = np.unique(block)
        places = [np.flatnonzero(block == b) for b in needed]
        tasks = [
            delayed(_take)(self.blocks[b], rows[place] - self.bounds[b])
            for b, place in zip(needed, places, strict=True)
        ]
        out = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
        for number, found in self.workers.as_they_come(tasks):
            out[places[number]] = found
        return np.asarray(apply_scaling(out, self.scaling))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self[:], dtype=dtype)

    def _block_of(self, row: int) -> int:
        return max(0, min(int(np.searchsorted(self.bounds, row, side="right")) - 1, len(self.blocks) - 1))

    def _block(self, number: int) -> Array:
        """One whole block; the last one is kept, because those who read slices read them in order."""
        if self._last is None or self._last[0] != number:
            (block,) = self.workers.compute([self.blocks[number]])
            self._last = number, np.asarray(apply_scaling(block, self.scaling))
        return self._last[1]


def fit_sampled(estimator: Sampled, array: Any, workers: Workers, folder: Path | None) -> None:
    """Run the estimator's own fit, with its three legs that look at all points replaced: scale, sample, classify."""
    n, m = array.shape
    bytes_per_row = m * array.dtype.itemsize
    at_once = row_blocks(n, bytes_per_row, estimator._block_bytes)[0][1]
    points = Rows(array, at_once * max(1, TASK_BYTES // (at_once * bytes_per_row)), workers)

    def fit(_: Any) -> Sampled:
        if estimator.n_clusters is not None and estimator.n_clusters > n:
            raise ValueError(f"n_clusters={estimator.n_clusters} must not exceed the number of points, n_samples={n}.")
        estimator.n_features_in_ = m
        estimator._seed = int(check_random_state(estimator.random_state).randint(_MAX_SEED))
        estimator.timings_ = {}
        estimator._dtype = points.dtype
        extremes = _extremes(points)
        estimator._largest = float(np.abs(extremes).max()) or 1.0
        estimator._moved = {}  # copies are left to the classifier
        estimator._scaling = settle_scaling(points, extremes, estimator.scaling, estimator._sees_units())
        if (extremes[0] == extremes[1]).all():
            estimator.labels_ = estimator._one_cluster(n)
        else:
            estimator._order = _order(points, estimator._largest)
            estimator.labels_ = np.asarray(estimator._cluster_unscaled(points), dtype=np.intp)  # type: ignore[arg-type]
            del estimator._order
        estimator.n_clusters_ = int(np.count_nonzero(np.bincount(estimator.labels_ + 1)[1:]))
        return estimator

    def sample(X: Rows, n_landmarks: int, rng: np.random.Generator) -> Labels:
        if n_landmarks == n or estimator.sampler == "uniform":
            return Sampled._sample(estimator, X, n_landmarks, rng)  # type: ignore[arg-type]
        return estimator._drawn(X.scaled(estimator._scaling), n_landmarks, rng)  # type: ignore[arg-type]

    def label(X: Rows) -> Labels:
        labels = np.empty(n, dtype=np.intp)
        for number, found in _label_on_workers(estimator, X, folder):
            labels[X.bounds[number] : X.bounds[number + 1]] = found
        return labels

    with replaced(estimator, _fit=fit, _sample=sample, _label_blocks=label):
        estimator.fit(None)


def settle_scaling(points: Rows, extremes: Array, rule: str | None, units: bool = False) -> Scaling:
    """:func:`~subspaces.scaling.fit_scaling` of all points, which but for one rule needs their extremes only."""
    if rule != "standard":
        return fit_scaling(extremes, rule, units=units)
    exponent = fit_scaling(extremes, None)
    points = points.scaled(exponent)
    mean = _total(points, None) / len(points)
    variance = _total(points, mean) / len(points)
    return Scaling(exponent.exponent, mean, _inverse_deviation(variance, apply_scaling(extremes, exponent)))


def _extremes(points: Rows) -> Array:
    """Smallest and largest value of each feature, as two points."""
    found = points.workers.compute([delayed(_range)(block) for block in points.blocks])
    for number, values in enumerate(found):
        if not np.isfinite(values).all():
            first, last = points.bounds[number], points.bounds[number + 1] - 1
            raise ValueError(f"X contains NaN or infinity in its rows {first} to {last}: fill in or drop them first.")
    return np.stack([np.min([low for low, _ in found], axis=0), np.max([high for _, high in found], axis=0)])


def _order(points: Rows, largest: float) -> Labels:
    """:func:`~subspaces.numerics.ordering.canonical_order` of all points, from a key and a fingerprint of each."""
    found = points.workers.compute([delayed(_keys)(block, largest) for block in points.blocks])
    keys, prints = (np.concatenate(part) for part in zip(*found, strict=True))
    return order_of_keys(keys, prints)


def _total(points: Rows, mean: Array | None) -> Array:
    """Sum over all points of each feature, or of its squared distance from the mean.

    Handed from block to block in the order of the rows, as NumPy sums one array (of two columns or more): the same
    digits, and the blocks are still read in parallel.
    """
    total = np.zeros(points.shape[1])
    for block in points.blocks:
        total = delayed(_add)(total, block, mean, points.scaling)
    (found,) = points.workers.compute([total])
    return np.asarray(found)


def _label_on_workers(estimator: Sampled, X: Rows, folder: Path | None) -> Iterator[tuple[int, Labels]]:
    model: Any = copy.copy(estimator)
    for name in ("_fit", "_sample", "_label_blocks", "clusterer_"):  # what labels no point need not travel
        vars(model).pop(name, None)
    name = joblib.hash((model.classifier_, model._scaling, model._dtype)) if folder is not None else ""
    sent = X.workers.keep(model)
    place = None if folder is None else str(folder)
    tasks = [delayed(label_block)(sent, block, place, name) for block in X.blocks]
    return X.workers.as_they_come(tasks, announce=True)


def label_block(model: Sampled, block: Array, folder: str | None, model_name: str) -> Labels:
    """Labels of some points, on a worker: read if the same model labelled the same points before."""
    if folder is None:
        return model._label_blocks(block)
    path = Path(folder) / f"labels-{model_name}-{digest(block)}.npy"
    known = load(path)
    if known is not None and known.shape == (len(block),):
        return known
    labels = model._label_blocks(block)
    save(path, labels)
    return labels


def _take(block: Array, rows: Labels) -> Array:
    return block[rows]


def _range(block: Array) -> tuple[Array, Array]:
    return block.min(axis=0), block.max(axis=0)


def _keys(block: Array, largest: float) -> tuple[Array, Array]:
    return row_keys(block, largest), fingerprints(block)


def _add(total: Array, block: Array, mean: Array | None, scaling: Scaling) -> Array:
    values = np.asarray(apply_scaling(block, scaling))
    values = values.astype(np.float64) if mean is None else np.square(values - mean)
    return np.add.reduce(np.concatenate([total[None], values]), axis=0)
