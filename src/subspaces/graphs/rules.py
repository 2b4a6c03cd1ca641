"""The choice of graph builder, the same for every method: from coefficients to the matrix whose |·| + |·|ᵀ is W."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from subspaces.graphs.postprocessing import dscnet_affinity, keep_column_mass, row_space_affinity, scale_columns_to_max
from subspaces.graphs.truncation import truncate
from subspaces.numerics import memory
from subspaces.numerics.blocks import map_blocks, row_blocks
from subspaces.numerics.types import Array, Sparse
from subspaces.representation.coefficients import Coefficients

GRAPHS = ("symmetric", "column", "mass", "row_space", "dscnet")

_SMALL = 2**24  # bytes that any machine has
_COPIES = 4.5  # of the entries of a graph and their indices that exist at once while it is built and used, measured
_PARAMS = {
    "symmetric": (),
    "column": (),
    "mass": ("share",),
    "row_space": ("power",),
    "dscnet": ("subspace_dim", "share", "power"),
}


def build_graph(
    coefficients: Coefficients,
    graph: str,
    *,
    n_nonzero: int | None = None,
    by: str = "magnitude",
    n_clusters: int | None = None,
    params: Mapping[str, Any] | None = None,
) -> Sparse:
    """Treat coefficients the way a published method does; the affinity is |T| + |T|ᵀ of the result T.

    ================ ========================================================================== =================
    graph            treatment                                                                  params
    ================ ========================================================================== =================
    ``"column"``     η largest per column, as printed for KTRR and TRR (LSR: η = None)
    ``"symmetric"``  columns to maximum 1, symmetrised, η largest per column (authors' program)
    ``"mass"``       largest entries until they hold `share` of the column, columns to max. 1   share (1)
                     (SSC)
    ``"row_space"``  cosines between rows of U Σ^½ of C's SVD, to a `power` (LRR)               power (4)
    ``"dscnet"``     mass, rank d·L + 1, row-space cosines to a `power` (DSC-Net)               subspace_dim (12),
                                                                                                share (0.04),
                                                                                                power (8)
    ================ ========================================================================== =================

    `n_nonzero` truncates under the first two only. Under ``"row_space"`` and ``"dscnet"`` nearly every pair of points
    is joined: the result is sparse in form, entries that vanish beside the largest are left out.
    """
    params = dict(params or {})
    unknown = set(params) - set(_PARAMS[graph])
    if unknown:
        allowed = list(_PARAMS[graph]) or "nothing"
        raise ValueError(f"graph_params of graph={graph!r} may hold {allowed}; got {sorted(unknown)}.")
    for name, value in params.items():
        if not isinstance(value, Real):
            raise ValueError(f"{name} in graph_params must be a number; got {value!r}.")
    _require_memory(coefficients, n_nonzero if graph in ("column", "symmetric") else None, graph)
    if graph in ("column", "symmetric"):
        return truncate(coefficients, n_nonzero, graph=graph, by=by)
    if graph == "mass":
        return scale_columns_to_max(keep_column_mass(coefficients, params.get("share", 1.0)))
    if graph == "row_space":
        return _half_sparse(row_space_affinity(coefficients, **params))
    if n_clusters is None:
        raise ValueError('graph="dscnet" needs n_clusters: the rank it keeps follows from it.')
    subspace_dim = params.pop("subspace_dim", 12)
    return _half_sparse(dscnet_affinity(coefficients, n_clusters, subspace_dim, **params))


def _require_memory(coefficients: Coefficients, n_nonzero: int | None, graph: str) -> None:
    """Refuse a graph that does not fit: one that joins (nearly) all pairs is larger than the matrix it comes from."""
    n = coefficients.n_points
    kept = n if n_nonzero is None else min(n_nonzero, n)
    needed = int(_COPIES * n * kept * (coefficients.dtype.itemsize + 4))
    # what is sparse from the start stays so under the first three graphs; how much so only the coefficients know
    grows = graph in ("row_space", "dscnet") or (coefficients.matrix is None and graph != "mass")
    if grows and needed > _SMALL:
        memory.require(
            needed,
            f"the graph of {n} points with up to {kept} edges each",
            "Keep fewer coefficients per point (n_nonzero), or fit a sample and let predict label the rest.",
        )


def _half_sparse(W: Array) -> Sparse:
    """W/2 for a symmetric W, without its diagonal and without what rounding cannot tell from zero; changes W."""
    np.fill_diagonal(W, 0)
    smallest = np.finfo(W.dtype).eps * W.max(initial=0)
    index_type = np.int32 if W.size < 2**31 else np.int64

    def compress(start: int, stop: int) -> tuple[Array, Array, Array]:
        rows = W[start:stop]
        kept = (rows >= smallest) & (rows > 0)
        return rows[kept] / 2, np.nonzero(kept)[1].astype(index_type), np.count_nonzero(kept, axis=1)

    # by rows, which are the columns: SciPy's own conversion sorts all entries
    parts = map_blocks(compress, row_blocks(len(W), W[:1].nbytes))
    data, indices, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
    return sparse.csc_array((data, indices, np.append(0, np.cumsum(counts)).astype(index_type)), shape=W.shape)
