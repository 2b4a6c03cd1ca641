"""Sort samples into shards of neighbours, through files: chunks are split by shard, then shards are gathered.

Shards are the cells of k-means on the subset. Inside a shard the samples come in canonical order and are sorted into
cells as in memory, so that neither chunks nor the order of the rows matter from here on. A position counts the
samples in the order of shards and cells: neighbouring positions are neighbouring samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.distributed import _files as files
from subspaces.distributed._input import opened
from subspaces.kernels.scaling import Scaling, apply_scaling
from subspaces.utils.blocks import row_blocks
from subspaces.utils.cells import build_cells, nearest_cells
from subspaces.utils.ordering import canonical_order, hash_rows
from subspaces.utils.types import Array, Labels

SHARD = 2**17
"""Samples of a shard, about."""
BLOCK = 2**16
"""Samples whose rows of the graph one task computes, about."""

_LAYOUT = ("shards", "offsets", "near", "tasks")
_TIE = 1e-10  # of the squares that make a score: far above rounding in double precision


def shard_centres(sample: Array, n: int, seed: int) -> Array:
    """Return the centres of the shards of n samples, from a subset of them."""
    size = max(1, round(SHARD * len(sample) / n))
    return build_cells(sample, size=size, seed=seed).centroids.astype(np.float64)


def nearest_centre(X: Array, centres: Array) -> Labels:
    """Return the nearest centre, the first of ties; in double precision, so that rounding moves no sample."""
    half = np.einsum("ij,ij->i", centres, centres) / 2
    out = np.empty(len(X), dtype=np.intp)
    for start, stop in row_blocks(len(X), 8 * len(centres), 2**22):
        points = X[start:stop].astype(np.float64)
        scores = points @ centres.T - half
        tie = _TIE * (np.einsum("ij,ij->i", points, points) + half.max())
        out[start:stop] = (scores >= (scores.max(axis=1) - tie)[:, None]).argmax(axis=1)
    return out


def split(block: Any, start: int, target: Path, scaling: Scaling) -> None:
    """Scale the samples of a chunk and sort them by shard (one task)."""
    given = opened(block)
    X = np.asarray(apply_scaling(given, scaling)).astype(given.dtype, copy=False)  # kept in the precision they came in
    centres = files.mapped(target.parent / "centres.npy")
    shard = nearest_centre(X, centres)
    order = np.argsort(shard, kind="stable")
    bounds = np.searchsorted(shard[order], np.arange(len(centres) + 1))
    files.save_folder(target, points=X[order], rows=start + order, bounds=bounds)


def gather(folder: Path, splits: list[Path], shard: int, seed: int) -> None:
    """Gather the samples of a shard, in canonical order and sorted into cells (one task)."""
    points, rows = [], []
    for place in splits:
        first, last = files.mapped(place / "bounds.npy")[shard : shard + 2]
        if first < last:
            points.append(files.mapped(place / "points.npy")[first:last])
            rows.append(files.mapped(place / "rows.npy")[first:last])
    X, row = np.concatenate(points), np.concatenate(rows)
    del points
    row_hashes = hash_rows(X)
    order = canonical_order(X, row_hashes)
    X, row, row_hashes = X[order], row[order], row_hashes[order]
    cells = build_cells(X, seed=seed)
    files.save_folder(
        folder / f"shard-{shard}",
        points=X[cells.order],
        rows=row[cells.order],
        row_hashes=row_hashes[cells.order],
        bounds=cells.bounds,
        centroids=cells.centroids,
    )


@dataclass(frozen=True)
class Layout:
    """Positions of all samples in the files of the shards.

    `shards` holds the numbers of the shards in which there are samples, `offsets` the position of the first sample of
    each of these, and the number of samples; `near` for each the nearest ones, by their place in `shards`; `tasks` the
    place of the shard, the first and last cell, the first and last position of each block of the graph.
    """

    folder: Path
    shards: Labels
    offsets: Labels
    near: Labels
    tasks: Labels

    @property
    def n(self) -> int:
        """Return the number of samples."""
        return int(self.offsets[-1])

    @property
    def starts(self) -> Labels:
        """Return the first position of each block, and the number of samples."""
        return np.append(self.tasks[:, 3], self.n)

    @property
    def position_type(self) -> Any:
        """Return the smallest type that holds positions."""
        return np.int32 if self.n < 2**31 else np.int64

    def shard(self, place: int, name: str) -> Array:
        """Map an array of a shard."""
        return files.mapped(self.folder / f"shard-{self.shards[place]}" / f"{name}.npy")

    def span(self, number: int) -> tuple[int, int]:
        """Return the first position of a block and the one after its last."""
        start, stop = self.tasks[number, 3:].tolist()
        return start, stop

    def points(self, number: int) -> Array:
        """Return the samples of a block."""
        place, (start, stop) = self.tasks[number, 0], self.span(number)
        return self.shard(place, "points")[start - self.offsets[place] : stop - self.offsets[place]]

    def cells(self, number: int) -> Labels:
        """Return the cell of each sample of a block, counted from its first one."""
        place, first, last = self.tasks[number, :3]
        return np.repeat(np.arange(last - first), np.diff(self.shard(place, "bounds")[first : last + 1]))

    def block_of(self, positions: Array) -> Labels:
        """Return the block of each position."""
        return np.searchsorted(self.starts, positions, side="right") - 1


def make_layout(folder: Path, counts: Labels, centres: Array, n_near: int) -> Layout:
    """Make the layout of the shards: each is cut into blocks of whole cells."""
    shards = np.flatnonzero(counts)
    offsets = np.concatenate([[0], np.cumsum(counts[shards])])
    near = nearest_cells(centres[shards], centres[shards])[:, :n_near]
    tasks = []
    for place, shard in enumerate(shards):
        bounds = np.asarray(files.mapped(folder / f"shard-{shard}" / "bounds.npy"))
        n_blocks = -(-int(bounds[-1]) // BLOCK)
        ends = np.searchsorted(bounds, np.arange(1, n_blocks + 1) * (bounds[-1] / n_blocks))  # of about one size
        cells = np.unique(np.concatenate([[0], np.minimum(ends, len(bounds) - 1)]))
        for first, last in pairwise(cells.tolist()):
            tasks.append((place, first, last, offsets[place] + bounds[first], offsets[place] + bounds[last]))
    return Layout(folder, shards, offsets, near, np.array(tasks, dtype=np.int64))


def save_layout(layout: Layout) -> None:
    """Write a layout for all tasks to read."""
    files.save_folder(layout.folder / "layout", **{name: getattr(layout, name) for name in _LAYOUT})


@lru_cache(maxsize=2)
def open_layout(folder: Path) -> Layout:
    """Read what :func:`save_layout` wrote; the folder's name stands for its content."""
    shards, offsets, near, tasks = (np.array(files.mapped(folder / "layout" / f"{name}.npy")) for name in _LAYOUT)
    return Layout(folder, shards, offsets, near, tasks)
