"""Group the samples of each block, cut the graph between groups, and label all samples.

Groups are what one block knows to belong together: small communities of its own graph where modularity cuts, cells of
k-means where the spectral embedding does, as in memory. Only the graph between them is seen by the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse

from subspaces.distributed import _files as files
from subspaces.distributed._blocks import Work, magnitudes, open_edges
from subspaces.distributed._shards import Layout
from subspaces.engine.plan import Plan
from subspaces.engine.stages import cut_rows
from subspaces.graphs.affinity import affinity, components, join_components
from subspaces.kernels import Kernel
from subspaces.representation.coefficients import from_sparse
from subspaces.spectral.coarse import embed_contracted, smooth_labels
from subspaces.spectral.partition import cut_by_modularity, cut_to_number, distinct_communities
from subspaces.utils.cells import build_cells
from subspaces.utils.ordering import label_of_most_copies
from subspaces.utils.types import Array, Labels, Sparse

MICRO_CLUSTERS = 2000
"""Groups of the spectral cut, about, unless there are more blocks."""
RESOLUTION = 16.0
"""Of a block's own communities: finer than any that the whole graph can have."""
_BLOCKS = 64  # above, the resolution falls
_SMALLEST = 32  # samples of such a group, about
_ROUNDS, _CUT_ROUNDS = 2, 10  # of Leiden within a block, and between all groups
_TOGETHER = 16  # blocks whose edges between groups are added up at a time


def group(work: Work, number: int) -> None:
    """Group the samples of a block (one task)."""
    layout, points = work.layout, work.layout.points(number)
    if work.by_modularity:
        codes = _communities(work, layout, number)
    else:
        size = max(_SMALLEST, layout.n // MICRO_CLUSTERS)
        codes = build_cells(np.asarray(points), size=size, seed=work.seed).labels()
    sizes = np.bincount(codes)
    indicator = sparse.csr_array((np.ones(len(codes)), (codes, np.arange(len(codes)))))
    centroids = (indicator @ points.astype(np.float64)) / sizes[:, None]
    files.save_folder(work.cut / f"groups-{number}", codes=codes.astype(np.int32), sizes=sizes, centroids=centroids)


def _communities(work: Work, layout: Layout, number: int) -> Labels:
    """Find small communities of a block's own graph; samples without an edge inside join the largest of their cell."""
    start, stop = layout.span(number)
    indptr, rows, weights = open_edges(work.cut, number)
    column = np.repeat(np.arange(stop - start), np.diff(indptr))
    inside = (rows >= start) & (rows < stop)
    T = sparse.csc_array((weights[inside], (rows[inside] - start, column[inside])), shape=2 * (stop - start,))
    cells = layout.cells(number)
    if not T.nnz:
        return cells
    # of many blocks fewer groups each, so that all of them stay about 10⁵
    resolution = max(1.0, RESOLUTION * min(1.0, _BLOCKS / len(layout.tasks)))
    codes = cut_by_modularity(affinity(T), resolution=resolution, seed=work.seed, iterations=_ROUNDS)
    sizes = np.bincount(codes)
    largest = np.zeros(cells.max() + 1, dtype=np.intp)
    order = np.lexsort((-codes, sizes[codes], cells))  # the last of each cell is written: the largest, first number
    largest[cells[order]] = codes[order]
    codes = np.where(sizes[codes] == 1, largest[cells], codes)  # each as a group of its own would be too many
    return np.unique(codes, return_inverse=True)[1].astype(np.intp)


def contract(work: Work, number: int) -> None:
    """Sum the weights of a block's edges between groups, in the graph and before it was truncated (one task)."""
    layout, place = work.layout, work.graph / f"rows-{number}"
    offsets = files.mapped(work.cut / "groups.npy")
    indptr, rows, weights = open_edges(work.cut, number)
    rows_of_all = files.mapped(place / "candidates.npy")
    scaled = magnitudes(np.asarray(files.mapped(place / "values.npy")))
    own = offsets[number] + np.asarray(files.mapped(work.cut / f"groups-{number}" / "codes.npy"), dtype=np.int64)
    found: dict[str, Array] = {}
    kinds = {
        "kept": (np.asarray(rows), np.repeat(own, np.diff(indptr)), weights),
        "all": (rows_of_all.ravel(), np.repeat(own, rows_of_all.shape[1]), scaled.ravel()),
    }
    for kind, (positions, column, values) in kinds.items():
        pairs, place_of = np.unique(_groups(work, layout, positions) * offsets[-1] + column, return_inverse=True)
        found[kind] = pairs
        found[f"{kind}_weights"] = np.bincount(place_of, weights=values, minlength=len(pairs))
    files.save_folder(work.cut / f"contracted-{number}", **found)


def _groups(work: Work, layout: Layout, positions: Array) -> Labels:
    """Return the groups of samples at any positions, from the files of their blocks."""
    where, inverse = np.unique(positions, return_inverse=True)
    offsets, starts, blocks = files.mapped(work.cut / "groups.npy"), layout.starts, layout.block_of(where)
    out = np.empty(len(where), dtype=np.int64)
    for number in np.unique(blocks):
        some = blocks == number
        codes = files.mapped(work.cut / f"groups-{number}" / "codes.npy")
        out[some] = offsets[number] + codes[where[some] - starts[number]]
    return out[inverse]


def contracted(cut: Path, n_blocks: int, n_groups: int, kind: str) -> Sparse:
    """Sum all blocks' contractions to the graph between groups, |T| + |T|ᵀ.

    Added up above the diagonal, where an edge stands once: the caller's memory is that of this graph.
    """
    upper = sparse.csr_array((n_groups, n_groups), dtype=np.float64)
    for first in range(0, n_blocks, _TOGETHER):
        places = [cut / f"contracted-{b}" for b in range(first, min(first + _TOGETHER, n_blocks))]
        row, column = np.divmod(np.concatenate([files.mapped(place / f"{kind}.npy") for place in places]), n_groups)
        weights = np.concatenate([files.mapped(place / f"{kind}_weights.npy") for place in places])
        low, high = np.minimum(row, column), np.maximum(row, column)
        upper = upper + sparse.csr_array((weights, (low, high)), shape=upper.shape)
    return sparse.csr_array(upper + upper.T)


def cut_groups(
    plan: Plan, kernel: Kernel, coarse: Sparse, reserve: Callable[[], Sparse], sizes: Array, centroids: Array
) -> Labels:
    """Label the groups by the graph between them; `reserve` makes the larger graph of all coefficients."""
    if plan.n_clusters == 1:
        return np.zeros(len(sizes), dtype=np.intp)
    if plan.cut.method == "modularity":
        return _cut_by_modularity(plan, coarse, reserve, sizes)
    assert plan.n_clusters is not None
    assert plan.between is not None
    coarse = coarse.copy()
    coarse.setdiag(0)
    coarse.eliminate_zeros()
    found = embed_contracted(coarse, sizes, centroids, plan.n_clusters, plan.between(centroids, kernel))
    return cut_rows(found.rows, plan.n_clusters, plan.cut, plan.seed)


def _cut_by_modularity(plan: Plan, coarse: Sparse, reserve: Callable[[], Sparse], sizes: Array) -> Labels:
    """Cut as in memory: a group without any edge joins the largest cluster; pieces are tied by what was truncated."""
    if plan.connect and plan.n_clusters is not None and components(coarse)[0] > plan.n_clusters:
        others = reserve().tocsc()
        others.setdiag(0)
        others.eliminate_zeros()
        coarse = join_components(coarse, from_sparse(others), plan.n_clusters)
    loose = np.asarray(coarse.sum(axis=1)).ravel() == 0
    kept = np.flatnonzero(~loose)
    inner = coarse[kept][:, kept] if loose.any() else coarse
    tied, k = with_pendants(inner), plan.n_clusters

    def communities(resolution: float, rounds: int) -> Labels:
        both = cut_by_modularity(tied, resolution=resolution, seed=plan.seed, iterations=rounds)
        return np.unique(both[: len(kept)], return_inverse=True)[1].astype(np.intp)

    rounds = plan.cut.iterations or _CUT_ROUNDS
    found = communities(1.0, rounds)
    if k is None:
        found = distinct_communities(inner, found)
    else:
        found = cut_to_number(inner, found, k, communities, iterations=rounds, seed=plan.seed, sizes=sizes[kept])
    labels = np.full(len(sizes), np.bincount(found, weights=sizes[kept]).argmax(), dtype=np.intp)
    labels[kept] = found
    return labels


def with_pendants(W: Sparse) -> Sparse:
    """Move the weight inside each node to an edge to a pendant node.

    Leiden's library counts a loop in the total only. An edge to a node that has no other adds the same to degree and
    total.
    """
    n, inside = W.shape[0], W.diagonal() / 2
    has = np.flatnonzero(inside)
    own = W.indices == np.repeat(np.arange(n, dtype=W.indices.dtype), np.diff(W.indptr))
    columns, weights = W.indices.copy(), W.data.copy()
    columns[own] += n
    weights[own] /= 2
    arrays = (
        np.concatenate([weights, inside[has]]),
        np.concatenate([columns, has.astype(columns.dtype)]),
        np.append(W.indptr, W.indptr[-1] + np.cumsum(inside != 0)),
    )
    both = sparse.csr_array(arrays, shape=(2 * n, 2 * n))
    both.eliminate_zeros()
    both.sort_indices()
    return both


# ---------------------------------------------------------------- labels of samples


def smooth(work: Work, number: int) -> None:
    """Label the samples of a block, by their groups and then by their neighbours (one task).

    Samples of other blocks keep the labels of their groups meanwhile: no labels are exchanged between sweeps.
    """
    layout, of_groups = work.layout, files.mapped(work.cut / "labels.npy")
    start, stop = layout.span(number)
    indptr, rows, weights = open_edges(work.cut, number)
    known = np.unique(np.concatenate([np.asarray(rows), np.arange(start, stop)]))
    present, labels = np.unique(of_groups[_groups(work, layout, known)], return_inverse=True)
    first, n_own = int(np.searchsorted(known, start)), stop - start
    before = labels[first : first + n_own]
    after = before
    if len(present) > 1:
        column = first + np.repeat(np.arange(n_own), np.diff(indptr))
        T = sparse.csc_array((weights, (np.searchsorted(known, rows), column)), shape=(len(known), len(known)))
        fixed = np.ones(len(known), dtype=bool)
        fixed[first : first + n_own] = False
        after = smooth_labels(affinity(T), labels, len(present), fixed)[first : first + n_own]
    codes, groups = present[after].astype(np.int32), present[before].astype(np.int32)
    files.save_folder(work.cut / f"labels-{number}", codes=codes, groups=groups)


def finish(work: Work, n_clusters: int, lost: tuple[int, ...], shard: int) -> tuple[Array, Array]:
    """Sort the labels of a shard by row number; return the size of each cluster and its first row (one task).

    Copies of a sample get one label. Clusters that smoothing left without any sample anywhere, `lost`, keep theirs.
    """
    layout = work.layout
    blocks = [work.cut / f"labels-{b}" for b in np.flatnonzero(layout.tasks[:, 0] == shard)]
    labels = np.concatenate([files.mapped(place / "codes.npy") for place in blocks]).astype(np.intp)
    if lost:
        before = np.concatenate([files.mapped(place / "groups.npy") for place in blocks])
        labels = np.where(np.isin(before, lost), before, labels).astype(np.intp)
    labels = label_of_most_copies(labels, np.asarray(layout.shard(shard, "row_hashes")))
    rows = np.asarray(layout.shard(shard, "rows"))
    order = np.argsort(rows)
    rows, labels = rows[order], labels[order]
    first = np.full(n_clusters, layout.n, dtype=np.int64)
    present, at = np.unique(labels, return_index=True)
    first[present] = rows[at]
    files.save_folder(_sorted_path(work, lost, shard), rows=rows, labels=labels.astype(np.int32))
    return np.bincount(labels, minlength=n_clusters), first


def _sorted_path(work: Work, lost: tuple[int, ...], shard: int) -> Path:
    """Return the folder of a shard's labels; another one with `lost`, because an existing folder is not replaced."""
    return work.cut / f"{'kept' if lost else 'sorted'}-labels-{shard}"


def deliver(work: Work, lost: tuple[int, ...], names: Array, start: int, stop: int) -> None:
    """Write the labels of some rows in the order given, from all shards (one task)."""
    out = np.empty(stop - start, dtype=np.int32)
    for shard in range(len(work.layout.shards)):
        found = _sorted_path(work, lost, shard)
        rows = files.mapped(found / "rows.npy")
        a, b = np.searchsorted(rows, [start, stop])
        out[rows[a:b] - start] = names[files.mapped(found / "labels.npy")[a:b]]
    files.save(delivered_path(work, start), out)


def delivered_path(work: Work, start: int) -> Path:
    """Return the file of the labels from a row on."""
    return work.cut / f"given-labels-{start}.npy"
