"""X, Y → X Yᵀ: the products that kernels of distances and of products start from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.linalg import get_blas_funcs
from sklearn.utils.extmath import safe_sparse_dot

from subspaces.numerics.blocks import map_blocks, row_blocks
from subspaces.numerics.types import Array, Data

_PRODUCT_COLUMNS = 256  # features whose products are summed at once


def lower_products(X: Data, origin: Array | None = None) -> Array:
    """(X − origin)(X − origin)ᵀ with its lower triangle filled (BLAS syrk: half the work of a full product).

    Some columns at a time, so that only they exist a second time; as many as BLAS takes at once itself: no slower.
    """
    if sparse.issparse(X):
        return np.ascontiguousarray((X @ X.T).toarray())
    if origin is None:
        parts = iter([np.ascontiguousarray(X)])
    else:
        starts = range(0, X.shape[1], _PRODUCT_COLUMNS)
        parts = (X[:, i : i + _PRODUCT_COLUMNS] - origin[i : i + _PRODUCT_COLUMNS] for i in starts)
    K: Array = np.zeros((X.shape[0], X.shape[0]), dtype=X.dtype)
    syrk = get_blas_funcs("syrk", (X,))
    for part in parts:
        # K.T is K's memory in Fortran's order: upper there is lower here
        syrk(1.0, np.ascontiguousarray(part).T, beta=1.0, c=K.T, trans=1, lower=0, overwrite_c=1)
    return K


def cross_products(X: Data, Y: Data, transform: Callable[[Array, slice], None]) -> Array:
    """X Yᵀ, changed in place by ``transform(block, rows)``, block of rows by block of rows."""
    K: Array = np.ascontiguousarray(safe_sparse_dot(X, Y.T, dense_output=True))

    def apply(start: int, stop: int) -> None:
        transform(K[start:stop], slice(start, stop))

    map_blocks(apply, row_blocks(K.shape[0], K.shape[1] * K.itemsize))
    return K
