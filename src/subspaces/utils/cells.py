"""Search many samples by a tree of k-means cells: every sample of a cell against all samples around that cell.

Queries are the samples themselves, so whole cells are compared with whole cells: each comparison is one matrix product,
of distances, of inner products or of any score made of them. Several times cheaper than building and querying a
navigable graph (HNSW), the same result for every number of threads and type of processor, and no dependency.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from subspaces.utils.blocks import map_blocks, row_blocks
from subspaces.utils.centroids import first_centres
from subspaces.utils.ordering import first_smallest, top_columns
from subspaces.utils.process import one_thread
from subspaces.utils.types import Array, Labels

Scores = Callable[[slice, Array, Any], tuple[Array, float]]
Pairs = Callable[[Labels, Array], Array]

CELL_SIZE = 128
"""Samples of a cell, about: a product of 128 × 4096 samples stays in cache."""
PROBED_POINTS = 32 * CELL_SIZE
"""Samples that the samples of a cell are compared with: those of the nearest cells, its own first."""
_BRANCHES = 64  # cells that one cell is split into, at most
_SAMPLE = 64  # samples per branch that decide where its centre lies
_MAX_PROBES = 256  # cells around a cell whose distances are kept
_SPARE = 8  # of the best by a draft, more than are wanted: those from which exact scores choose


@dataclass(frozen=True)
class Cells:
    """Hold samples sorted into cells.

    ``order[bounds[c]:bounds[c + 1]]`` are the samples of cell c. All positions below count in this order: neighbouring
    positions are neighbouring samples, which keeps every later step in cache.
    """

    order: Labels
    bounds: Labels
    centroids: Array
    probes: Labels
    """Nearest cells of each cell, itself first."""

    @property
    def n_cells(self) -> int:
        """Return the number of cells."""
        return len(self.bounds) - 1

    def reordered(self, order: Labels) -> Cells:
        """Return the same cells of samples of which the i-th is now number ``order[i]``."""
        return replace(self, order=order[self.order])

    def labels(self) -> Labels:
        """Return the cell of each sample, in the samples' own order."""
        out = np.empty(len(self.order), dtype=np.intp)
        out[self.order] = np.repeat(np.arange(self.n_cells), np.diff(self.bounds))
        return out


@dataclass(frozen=True)
class CellTable:
    """Describe cells of samples that may be elsewhere: first position, size and centroid of each."""

    starts: Labels
    sizes: Labels
    centroids: Array

    def needed(self, probes: Labels, at_least: int) -> Labels:
        """Count the cells in each row of `probes` that together hold enough samples."""
        sizes = self.sizes[probes]
        enough = (np.cumsum(sizes, axis=1) < max(PROBED_POINTS, at_least)).sum(axis=1) + 1
        return np.minimum(enough, probes.shape[1])

    def ranges(self, own: Labels, probes: Labels, needed: Labels, limit: int) -> list[tuple[int, int]]:
        """Return ranges of the cells `own` whose samples, with those around, do not exceed the limit."""
        ranges, first, total = [], 0, 0
        seen = np.zeros(len(self.sizes), dtype=bool)
        for i in range(len(own)):
            cells = np.append(probes[i, : needed[i]], own[i])
            new = np.unique(cells[~seen[cells]])
            if total + self.sizes[new].sum() > limit and i > first:
                ranges.append((first, i))
                first, total = i, 0
                seen[:] = False
                new = np.unique(cells)
            seen[new] = True
            total += int(self.sizes[new].sum())
        return [*ranges, (first, len(own))]

    def positions(self, cells: Labels) -> Labels:
        """Return positions of the samples of some cells."""
        return np.concatenate([np.arange(self.starts[c], self.starts[c] + self.sizes[c]) for c in cells])


def build_cells(X: Array, *, size: int = CELL_SIZE, seed: int = 0) -> Cells:
    """Split samples into cells of at most 1.5 × `size` by k-means in double precision, again and again.

    Equal samples, which k-means cannot part, are split by their index.
    """
    rng = np.random.default_rng(seed)
    waiting, found = [np.arange(len(X))], []
    with one_thread("openmp"), one_thread("blas"):  # k-means sums in the order of its threads: one thread, one result
        while waiting:
            members = waiting.pop()
            if len(members) <= 1.5 * size:
                found.append(members)
                continue
            parts = _split(X, members, min(_BRANCHES, -(-len(members) // size)), rng)
            if len(parts) == 1:
                found += np.array_split(members, -(-len(members) // size))
            else:
                waiting += parts
    centroids = np.array([X[members].mean(axis=0, dtype=np.float64) for members in found])
    bounds = np.cumsum([0, *map(len, found)])
    return Cells(np.concatenate(found), bounds, centroids, nearest_cells(centroids, centroids))


def search(cells: Cells, k: int, scores: Scores, pairs: Pairs | None = None, *, database: Cells | None = None) -> Array:
    """Return positions of the k best samples for each sample of `cells`, shape (n, k), int32, increasing.

    ``scores(rows, around, dtype)`` compares the samples at positions ``rows`` (a slice, one cell) with those at
    positions ``around`` (an array) in single or double precision, and says how far it may be from the truth; larger is
    better, −inf excludes. ``pairs(rows, columns)``, positions of shapes (b,) and (b, c), gives some scores in double
    precision: with it most of the search is done in single precision, and the result is that of double precision all
    the same. `database` are the cells of other samples that are searched; the probes of `cells` then are those of its
    cells that lie around.
    """
    database = database or cells
    out = np.empty((len(cells.order), k), dtype=np.int32)

    def one_block(first: int, last: int) -> None:
        for cell in range(first, last):
            rows = slice(cells.bounds[cell], cells.bounds[cell + 1])
            around = probed_positions(database, cells.probes[cell], k + 1)
            best = None if pairs is None else _best_by_draft(rows, around, k, scores, pairs)
            if best is None:
                best = top_columns(scores(rows, around, np.float64)[0], k)
            out[rows] = around[best]

    with one_thread("blas"):  # many small products: threads over the blocks, not inside them
        map_blocks(one_block, row_blocks(cells.n_cells, 1, 16))
    return np.sort(out, axis=1)


def _best_by_draft(rows: slice, around: Labels, k: int, scores: Scores, pairs: Pairs) -> Labels | None:
    """Return columns of the k best for each row by scores in single precision, None where these cannot tell.

    Where the k-th and the next are further apart than the error can reach, they are the k best. Elsewhere double
    precision chooses among some more, if these must hold the k best: many copies of a sample may tie.
    """
    found, error = scores(rows, around, np.float32)
    wide = top_columns(found, min(k + _SPARE, len(around)))
    found = np.take_along_axis(found, wide, axis=1)
    order = np.argsort(-found, axis=1, kind="stable")
    best, falling = np.take_along_axis(wide, order[:, :k], axis=1), np.take_along_axis(found, order, axis=1)
    if wide.shape[1] == k:
        return best
    least = falling[:, k - 1].astype(np.float64) - 2 * error
    if wide.shape[1] < len(around) and (falling[:, -1] >= least).any():
        return None
    unsure = np.flatnonzero(falling[:, k] >= least)
    if len(unsure):
        some = wide[unsure]
        places = first_smallest(-pairs(rows.start + unsure, around[some]), k)
        best[unsure] = np.take_along_axis(some, places, axis=1)
    return best


def probed_positions(cells: Cells, probes: Labels, at_least: int) -> Labels:
    """Return positions of the samples in the cells `probes`, in order, until :data:`PROBED_POINTS` are reached."""
    sizes = np.diff(cells.bounds)[probes]
    enough = int(np.searchsorted(np.cumsum(sizes), max(PROBED_POINTS, at_least))) + 1
    chosen = probes[:enough]
    if sizes[:enough].sum() < at_least:  # tiny components of cells only: look everywhere rather than return too few
        chosen = np.r_[chosen, np.setdiff1d(np.arange(cells.n_cells), chosen)]
    return np.concatenate([np.arange(cells.bounds[c], cells.bounds[c + 1]) for c in chosen])


def stacked(rows: Array, positions: Labels) -> Array:
    """Return rows at positions that come in runs, as those of cells do: run by run, thrice as fast as one by one."""
    ends = np.flatnonzero(np.diff(positions) != 1) + 1
    firsts, lasts = np.r_[0, ends], np.r_[ends, len(positions)] - 1
    return np.concatenate([rows[positions[a] : positions[b] + 1] for a, b in zip(firsts, lasts, strict=True)])


def nearest_cell(X: Array, centroids: Array) -> Labels:
    """Return the cell whose centroid is nearest to each row of X, block by block."""
    squared_norms = np.einsum("ij,ij->i", centroids, centroids)
    out = np.empty(len(X), dtype=np.intp)
    for start, stop in row_blocks(len(X), 4 * len(centroids), 16 * 2**20):
        block = X[start:stop].astype(centroids.dtype, copy=False)
        out[start:stop] = (squared_norms - 2 * (block @ centroids.T)).argmin(axis=1)
    return out


def _split(X: Array, members: Labels, n_parts: int, rng: np.random.Generator) -> list[Labels]:
    """Split members by the nearest of `n_parts` centres that k-means finds on a subset of them."""
    sample = members
    if len(members) > _SAMPLE * n_parts:
        sample = np.sort(rng.choice(members, _SAMPLE * n_parts, replace=False))
    n_parts = min(n_parts, len(np.unique(X[sample], axis=0)))
    if n_parts == 1:
        return [members]
    points = X[sample].astype(np.float64, copy=False)
    model = KMeans(n_parts, init=first_centres(points, n_parts, rng, spread_out=False), n_init=1, max_iter=10)
    labels = nearest_cell(X[members], model.fit(points).cluster_centers_)
    order = np.argsort(labels, kind="stable")
    edges = np.searchsorted(labels[order], np.arange(n_parts + 1))
    parts = [members[order[start:stop]] for start, stop in pairwise(edges)]
    return [part for part in parts if len(part)]


def nearest_cells(queries: Array, centroids: Array) -> Labels:
    """Return for each query (a centroid or a sample) the cells around it, nearest centroid first."""
    k = min(len(centroids), _MAX_PROBES)
    squared_norms = np.einsum("ij,ij->i", centroids, centroids)
    out: Labels = np.empty((len(queries), k), dtype=np.intp)
    for start, stop in row_blocks(len(queries), 4 * len(centroids), 16 * 2**20):
        distances = squared_norms - 2 * (queries[start:stop] @ centroids.T)
        nearest = np.argpartition(distances, k - 1, axis=1)[:, :k]
        order = np.argsort(np.take_along_axis(distances, nearest, axis=1), axis=1, kind="stable")
        out[start:stop] = np.take_along_axis(nearest, order, axis=1)
    return out
