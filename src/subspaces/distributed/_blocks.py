"""Blocks of the graph: coefficients of the samples of a block, and the edges that the graph keeps of them.

A task reads its samples and, mapped from the shards around, those of the cells that its own cells probe. Coefficients
that other blocks need are left for them in files, sorted by block. No task holds many more samples than
:data:`~subspaces.representation.two_scale.AROUND`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse

from subspaces.distributed import _files as files
from subspaces.distributed._shards import Layout, open_layout
from subspaces.graphs.rules import GraphRule, build_graph, largest_per_column
from subspaces.kernels import Kernel
from subspaces.representation.coefficients import from_sparse
from subspaces.representation.nystrom import Frame, GlobalPart, Sums
from subspaces.representation.two_scale import AROUND, coefficients_of_cells
from subspaces.utils.cells import CellTable, nearest_cells
from subspaces.utils.types import Array, Labels, Sparse

_MODEL = ("landmarks", "whitening", "spectrum", "mean")


@dataclass(frozen=True)
class Work:
    """Arguments of all tasks after the shards: where files are, and what the files do not say.

    Attributes
    ----------
    points, graph, cut : folders of the shards, of the coefficients, of the graph and the labels
    kernel : settled
    rule : of the graph
    n_candidates : of each sample
    by_modularity : the cut, otherwise by a spectral embedding
    seed : of what is grouped
    """

    points: Path
    graph: Path
    cut: Path
    kernel: Kernel
    rule: GraphRule
    n_candidates: int
    by_modularity: bool
    seed: int

    @property
    def layout(self) -> Layout:
        """Return the positions of all samples."""
        return open_layout(self.points)


def save_model(model: GlobalPart, path: Path) -> None:
    """Write a model, except its kernel."""
    numbers = np.array([model.penalty, model.effective_dimension, model.n_samples])
    files.save_folder(path, numbers=numbers, **{name: getattr(model, name) for name in _MODEL})


def open_model(work: Work) -> GlobalPart:
    """Read what :func:`save_model` wrote."""
    place = work.graph / "model"
    landmarks, whitening, spectrum, mean = (np.array(files.mapped(place / f"{name}.npy")) for name in _MODEL)
    penalty, dimension, n_samples = files.mapped(place / "numbers.npy").tolist()
    return GlobalPart(work.kernel, penalty, landmarks, whitening, spectrum, dimension, n_samples, mean)


def add_up(work: Work, frame: Frame, place: int) -> None:
    """Sum over the samples of a shard, for the global part (one task)."""
    found = frame.sums(np.asarray(work.layout.shard(place, "points")))
    numbers = np.array([found.diagonal, found.n_samples])
    files.save_folder(work.graph / f"sums-{place}", inner=found.inner, total=found.total, numbers=numbers)


def read_sums(work: Work, n_shards: int) -> Sums:
    """Add up all sums in the order of the shards."""
    inner, total, numbers = (
        [files.mapped(work.graph / f"sums-{place}" / f"{name}.npy") for place in range(n_shards)]
        for name in ("inner", "total", "numbers")
    )
    diagonal, n_samples = (sum(column) for column in np.array(numbers).T.tolist())
    return Sums(np.sum(inner, axis=0), np.sum(total, axis=0), diagonal, int(n_samples))


# ---------------------------------------------------------------- coefficients


def represent(work: Work, number: int) -> None:
    """Compute candidates and coefficients of a block, and those that other blocks need (one task)."""
    layout, model = work.layout, open_model(work)
    place, first, last, start, stop = layout.tasks[number].tolist()
    table = _Table.of(layout, place)
    own = table.first[place] + np.arange(first, last)
    probes = nearest_cells(table.cells.centroids[own], table.cells.centroids)
    candidates, values = coefficients_of_cells(
        table.cells, own, probes, partial(_points_of, layout, table), model, work.n_candidates, AROUND
    )
    candidates = candidates.astype(layout.position_type)
    files.save_folder(
        work.graph / f"rows-{number}",
        candidates=candidates,
        values=values,
        **_outgoing(layout, candidates, values, start, stop),
    )


@dataclass(frozen=True)
class _Table:
    """The cells of the shards around one, the shard of each, and where those of a shard begin."""

    cells: CellTable
    shard: Labels
    first: dict[int, int]

    @staticmethod
    def of(layout: Layout, place: int) -> _Table:
        places = np.unique(np.append(layout.near[place], place))
        bounds = [np.asarray(layout.shard(p, "bounds")) for p in places]
        counts = [len(b) - 1 for b in bounds]
        cells = CellTable(
            np.concatenate([layout.offsets[p] + b[:-1] for p, b in zip(places, bounds, strict=True)]),
            np.concatenate([np.diff(b) for b in bounds]),
            np.concatenate([layout.shard(p, "centroids") for p in places]),
        )
        first = dict(zip(places.tolist(), np.cumsum([0, *counts[:-1]]).tolist(), strict=True))
        return _Table(cells, np.repeat(places, counts), first)


def _points_of(layout: Layout, table: _Table, chosen: Labels) -> Array:
    shards = {int(place): layout.shard(int(place), "points") for place in np.unique(table.shard[chosen])}
    parts = []
    for c in chosen:
        place = int(table.shard[c])
        start = table.cells.starts[c] - layout.offsets[place]
        parts.append(shards[place][start : start + table.cells.sizes[c]])
    return np.concatenate(parts, dtype=np.float64)


def magnitudes(values: Array) -> Array:
    """Return |C| with each column (a row here) divided by its largest entry, as the symmetric graph sees it."""
    found = np.abs(values)
    peaks = found.max(axis=1, keepdims=True)
    return np.asarray(found / np.where(peaks > 0, peaks, 1))


def _outgoing(layout: Layout, candidates: Array, values: Array, start: int, stop: int) -> dict[str, Array]:
    """Return entries whose row belongs to another block, sorted by it."""
    weights, columns = magnitudes(values).ravel(), np.repeat(np.arange(start, stop), candidates.shape[1])
    rows = candidates.ravel()
    kept = np.flatnonzero(((rows < start) | (rows >= stop)) & (weights > 0))
    block = layout.block_of(rows[kept])
    order = np.argsort(block, kind="stable")
    kept, block = kept[order], block[order]
    blocks, first = np.unique(block, return_index=True)
    return {
        "out_rows": rows[kept],
        "out_columns": columns[kept].astype(candidates.dtype),
        "out_weights": weights[kept],
        "out_blocks": blocks,
        "out_bounds": np.append(first, len(kept)),
    }


# ---------------------------------------------------------------- the graph


def edges_of_block(work: Work, number: int) -> None:
    """Compute the columns of T of a block, where W = |T| + |T|ᵀ is the graph (one task)."""
    layout = work.layout
    treated, known = _treated(work, layout, number)
    magnitude = abs(treated)
    files.save_folder(
        work.cut / f"edges-{number}",
        indptr=magnitude.indptr,
        rows=known[magnitude.indices].astype(layout.position_type),
        weights=magnitude.data,
    )


def _treated(work: Work, layout: Layout, number: int) -> tuple[Sparse, Labels]:
    """Return the columns of a block as the rule treats them, over the samples they refer to, and their positions."""
    rule, place = work.rule, work.graph / f"rows-{number}"
    start, stop = layout.span(number)
    candidates, values = (np.array(files.mapped(place / f"{name}.npy")) for name in ("candidates", "values"))
    (n_own, width), positions = candidates.shape, candidates.ravel()
    column = np.repeat(np.arange(n_own), width)
    if rule.name != "symmetric":
        known = np.unique(np.concatenate([positions, np.arange(start, stop)]))
        first = int(np.searchsorted(known, start))
        entries = (values.ravel(), (np.searchsorted(known, positions), first + column))
        C = sparse.csc_array(sparse.coo_array(entries, shape=2 * (len(known),)))
        treated = build_graph(from_sparse(C), rule, keep=False).treated
        return sparse.csc_array(treated)[:, first : first + n_own], known
    rows, columns, weights = _incoming(work, layout, number)
    known = np.unique(np.concatenate([positions, np.arange(start, stop), columns]))
    first, shape = int(np.searchsorted(known, start)), (len(known), n_own)
    scaled, inside = magnitudes(values).ravel(), (positions >= start) & (positions < stop)
    parts = (
        (scaled, (np.searchsorted(known, positions), column)),
        (scaled[inside], (first + column[inside], positions[inside] - start)),
        (weights, (np.searchsorted(known, columns), rows - start)),
    )
    own, mirrored, others = (sparse.csc_array(sparse.coo_array(part, shape=shape)) for part in parts)
    return largest_per_column(own + mirrored + others, layout.n if rule.n_nonzero is None else rule.n_nonzero), known


def _incoming(work: Work, layout: Layout, number: int) -> tuple[Array, Array, Array]:
    """Return entries of other blocks' columns in the rows of this one, in the order of the blocks."""
    parts: list[tuple[Array, ...]] = []
    for other in range(len(layout.tasks)):
        folder = work.graph / f"rows-{other}"
        blocks = files.mapped(folder / "out_blocks.npy")
        at = int(np.searchsorted(blocks, number))
        if at < len(blocks) and blocks[at] == number:
            a, b = files.mapped(folder / "out_bounds.npy")[at : at + 2]
            parts.append(
                tuple(files.mapped(folder / f"out_{name}.npy")[a:b] for name in ("rows", "columns", "weights"))
            )
    if not parts:
        none = np.zeros(0, dtype=layout.position_type)
        return none, none, np.zeros(0, dtype=np.float32)
    rows, columns, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
    return rows, columns, weights


def open_edges(cut: Path, number: int) -> tuple[Array, Array, Array]:
    """Return column pointers, rows (positions) and weights that :func:`edges_of_block` wrote."""
    place = cut / f"edges-{number}"
    indptr, rows, weights = (files.mapped(place / f"{name}.npy") for name in ("indptr", "rows", "weights"))
    return indptr, rows, weights
