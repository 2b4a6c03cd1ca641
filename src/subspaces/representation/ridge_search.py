"""Find the largest ridge coefficients for K = Z Zᵀ and large n by a search among the rows of H.

With H = Z (ZᵀZ + λI)^(−1/2) the coefficients are c_ji = h_jᵀh_i / (1 − ‖h_i‖²): the largest of column i belong to the
largest inner products of h_i with other rows. Stored rows get one more coordinate, √(max‖h‖² − ‖h_j‖²), and queries a
zero there: then the order of inner products is the order of distances, and only cells near a query need be searched.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from subspaces.representation.coefficients import Coefficients
from subspaces.representation.ridge import whitened
from subspaces.representation.two_scale import N_CANDIDATES, sparse_coefficients
from subspaces.utils.blocks import map_blocks, row_blocks
from subspaces.utils.cells import Cells, build_cells, nearest_cells, search
from subspaces.utils.types import Array, Data, Labels

EXACT_SIZE = 50_000
"""Number of samples up to which all n² products are computed, block by block, and the result is exact."""


def ridge_search(
    Z: Data, *, reg: float = 1.0, affine: bool = False, n_candidates: int = N_CANDIDATES, seed: int = 0
) -> Coefficients:
    """Compute the `n_candidates` coefficients of largest magnitude of each column, nearly all of them found.

    Cells near h and near −h are searched, for positive and negative products. If `affine`, the coefficients are entries
    of columns that sum to one as a whole.
    """
    H, lam = whitened(Z, reg, affine)
    squared_norms = np.einsum("ij,ij->i", H, H)
    stored = np.column_stack([H, np.sqrt(np.maximum(squared_norms.max() - squared_norms, 0))])
    database = build_cells(stored, seed=seed)
    queries = _query_cells(H, database, seed)
    own_rows, stored_rows = H[queries.order], H[database.order]

    both = {
        np.float32: (own_rows.astype(np.float32), stored_rows.astype(np.float32)),
        np.float64: (own_rows, stored_rows),
    }

    def scores(rows: slice, around: Array, dtype: Any) -> tuple[Array, float]:
        own, stored = both[dtype]
        values: Array = np.abs(own[rows] @ stored[around].T)
        values[queries.order[rows, None] == database.order[around]] = -np.inf
        return values, (H.shape[1] + 4) * float(np.finfo(dtype).eps) * float(squared_norms.max())

    def pairs(rows: Labels, columns: Array) -> Array:
        values: Array = np.abs(np.einsum("bcj,bj->bc", stored_rows[columns], own_rows[rows]))
        values[queries.order[rows, None] == database.order[columns]] = -np.inf
        return values

    candidates = database.order[search(queries, min(n_candidates, len(H) - 1), scores, pairs, database=database)]
    values = _products(own_rows, H, candidates)
    values /= np.maximum(1 - squared_norms[queries.order], np.finfo(H.dtype).eps)[:, None]
    return sparse_coefficients(candidates, values, queries.order, lam)


def _query_cells(H: Array, database: Cells, seed: int) -> Cells:
    """Build cells of the queries; each probes the stored cells near its centroid and near the opposite of it."""
    queries = build_cells(H, seed=seed)
    centroids = np.column_stack([queries.centroids, np.zeros(queries.n_cells, dtype=H.dtype)])
    ahead, behind = (nearest_cells(sign * centroids, database.centroids) for sign in (1, -1))
    probes = np.empty((queries.n_cells, 2 * ahead.shape[1]), dtype=ahead.dtype)
    probes[:, ::2], probes[:, 1::2] = ahead, behind
    return replace(queries, probes=_without_repeats(probes))


def _without_repeats(probes: Labels) -> Labels:
    """Remove later repeats from each row, and cut all rows to the shortest length that leaves."""
    order = np.argsort(probes, axis=1, kind="stable")
    ordered = np.take_along_axis(probes, order, axis=1)
    first = np.ones(probes.shape, dtype=bool)
    np.put_along_axis(first, order[:, 1:], ordered[:, 1:] != ordered[:, :-1], axis=1)
    length = int(first.sum(axis=1).min())
    places = np.argsort(~first, axis=1, kind="stable")[:, :length]
    return np.take_along_axis(probes, places, axis=1)


def _products(queries: Array, H: Array, candidates: Array) -> Array:
    """Return the inner products of each query with its candidates."""

    def one_block(start: int, stop: int) -> Array:
        return np.einsum("ij,ikj->ik", queries[start:stop], H[candidates[start:stop]], optimize=True)

    return np.concatenate(map_blocks(one_block, row_blocks(len(queries), candidates.shape[1] * H.shape[1] * 8)))
