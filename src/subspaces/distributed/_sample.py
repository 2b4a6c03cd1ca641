"""One pass over all samples, which draws a subset that depends neither on chunks nor on the order of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from subspaces.distributed._input import opened
from subspaces.distributed._tasks import Workers, results
from subspaces.kernels.scaling import Scaling, apply_scaling, fit_scaling, inverse_deviation
from subspaces.utils.ordering import canonical_order, hash_rows
from subspaces.utils.types import Array

SAMPLE = 2**16
"""Size of the subset that decides on units, bandwidth, landmarks and shards."""

_SHOWN = 5  # rows that an error names
_UNIT = 2**40  # of sums in whole numbers, which do not depend on the order of their terms


class Look(NamedTuple):
    """Result of one pass over the samples: extremes of each feature, and a subset.

    `content` is a number that changes with any value and with the order of the rows. `hashes`, `points` and `rows` are
    those of the subset: what chose them, the samples, and a row that each is found in.
    """

    low: Array
    high: Array
    content: int
    hashes: Array
    points: Array
    rows: Array

    @property
    def largest(self) -> float:
        """Return the largest magnitude."""
        return float(max(np.abs(self.low).max(), np.abs(self.high).max())) or 1.0


def look_at(pieces: Sequence[Any], bounds: Sequence[int], workers: Workers) -> Look:
    """Pass over all samples once; refuse NaN and infinity."""
    found: Look | None = None
    bad: dict[int, Array] = {}
    arguments = [(piece, start, SAMPLE) for piece, start in zip(pieces, bounds, strict=False)]
    for number, (part, rows) in workers.run(look, arguments):
        if len(rows):
            bad[bounds[number]] = rows
        elif part is not None:
            found = part if found is None else _joined(found, part)
    if bad:
        rows = np.concatenate([bad[start] for start in sorted(bad)])
        shown = ", ".join(map(str, rows[:_SHOWN].tolist())) + (", ..." if len(rows) > _SHOWN else "")
        raise ValueError(f"X contains NaN or infinity in its rows {shown}: fill in or drop them first.")
    assert found is not None
    order = canonical_order(found.points, hash_rows(found.points))
    return found._replace(points=found.points[order], hashes=found.hashes[order], rows=found.rows[order])


def look(block: Any, start: int, size: int) -> tuple[Look | None, Array]:
    """Look at some rows; return also which of them are not finite (one task)."""
    X = opened(block)
    if not len(X):
        return None, np.zeros(0, dtype=np.intp)
    low, high = X.min(axis=0), X.max(axis=0)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        return None, start + np.flatnonzero(~np.isfinite(X).all(axis=1))
    row_hashes = hash_rows(X)
    place: Array = mixed(row_hashes) ^ np.arange(start, start + len(X), dtype=np.uint64)
    content = int(mixed(place).sum(dtype=np.uint64))
    hashes = mixed(row_hashes)
    few = np.flatnonzero(hashes <= np.partition(hashes, size)[size]) if len(hashes) > size else np.arange(len(hashes))
    values, first = np.unique(hashes[few], return_index=True)
    if len(values) < size < len(hashes):  # copies took the places of others
        values, few = np.unique(hashes, return_index=True)
        first = np.arange(len(few))
    chosen = few[first[:size]]
    return Look(low, high, content, values[:size], X[chosen], start + chosen), np.zeros(0, dtype=np.intp)


def mixed(values: Array) -> Array:
    """Hash 64-bit integers (the finalizer of SplitMix64)."""
    x: Array = values + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _joined(a: Look, b: Look) -> Look:
    hashes, first = np.unique(np.concatenate([a.hashes, b.hashes]), return_index=True)
    points, rows = (np.concatenate(both)[first[:SAMPLE]] for both in ((a.points, b.points), (a.rows, b.rows)))
    content = (a.content + b.content) % 2**64
    return Look(np.minimum(a.low, b.low), np.maximum(a.high, b.high), content, hashes[:SAMPLE], points, rows)


def settle(found: Look, pieces: Sequence[Any], n: int, rule: str | None, units: bool, workers: Workers) -> Scaling:
    """Fit the scaling of all samples (``fit_scaling``) from their extremes; of counts, from the subset."""
    extremes = np.stack([found.low, found.high])
    if rule == "log":
        fit_scaling(extremes, rule)  # refuses negative ones
        return fit_scaling(found.points, rule)
    if rule != "standard":
        return fit_scaling(extremes, rule, units=units)
    exponent = fit_scaling(extremes, None)
    low, high = np.asarray(apply_scaling(extremes, exponent), dtype=np.float64)
    span = np.where(high > low, high - low, 1.0)
    parts = results(workers, moments, [(piece, exponent, low, span) for piece in pieces])
    first, second = (sum(part[i].astype(object) for part in parts) for i in (0, 1))
    mean = np.array([float(value) for value in first]) / (_UNIT * n)
    variance = np.array([float(value) for value in second]) / (_UNIT * n) - mean**2
    factor = inverse_deviation(np.maximum(variance, 0) * span**2, np.stack([low, high]))
    return Scaling(exponent.exponent, low + mean * span, factor)


def moments(block: Any, exponent: Scaling, low: Array, span: Array) -> tuple[Array, Array]:
    """Sum u and u², u from 0 to 1 within the range of each feature, in integers: the same in any order."""
    u = (np.asarray(apply_scaling(opened(block), exponent), dtype=np.float64) - low) / span
    first, second = (np.rint(part * _UNIT).astype(np.int64).sum(axis=0) for part in (u, u * u))
    return first, second
