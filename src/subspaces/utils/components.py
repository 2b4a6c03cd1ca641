"""Find the leading components of sparse samples, without a dense copy."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from subspaces.utils.blocks import row_blocks
from subspaces.utils.decompositions import eigh
from subspaces.utils.process import one_thread
from subspaces.utils.types import Array, Data, Sparse

N_COMPONENTS = 100
"""Components that stand for sparse points where there are many."""

OVERSAMPLING = 10
"""Directions that are followed beside those asked for: the last of these would else be found badly."""

_PASSES = 4
_BLOCK_BYTES = 2**25


def leading_directions(X: Sparse, n_components: int = N_COMPONENTS, seed: int = 0) -> Array:
    """Return the first right singular vectors of sparse samples as columns (m, r), each with a positive largest entry.

    Subspace iteration with XᵀX (Halko, Martinsson and Tropp 2011, algorithm 4.4) from random directions. X is read
    in blocks of rows, so that besides X there is memory for three m × r arrays only. r is `n_components`, or as many
    as there are features or samples.

    Examples
    --------
    >>> from scipy import sparse
    >>> X = sparse.csr_array(np.diag([3.0, 2.0, 1.0]))
    >>> leading_directions(X, 2).round(6).T.tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    n, m = X.shape
    rank = min(n_components, m, n)
    width = min(rank + OVERSAMPLING, m)
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((m, width)))[0]
    with one_thread("blas"):  # one thread, one result
        for _ in range(_PASSES):
            Q = np.linalg.qr(_times_gram(X, Q))[0]
        inner = Q.T @ _times_gram(X, Q)
        directions: Array = Q @ eigh((inner + inner.T) / 2)[1][:, ::-1][:, :rank]
    largest = directions[np.abs(directions).argmax(axis=0), np.arange(rank)]
    return np.asarray(directions * np.where(largest < 0, -1.0, 1.0)).astype(X.dtype, copy=False)


def _times_gram(X: Sparse, Q: Array) -> Array:
    """Return XᵀX Q, block by block of rows, in double precision."""
    out = np.zeros(Q.shape)
    for start, stop in row_blocks(X.shape[0], 8 * Q.shape[1], _BLOCK_BYTES):
        rows = X[start:stop]
        out += rows.T @ (rows @ Q)
    return out


def dense_rows(X: Data) -> Array:
    """Return a few samples as a dense array."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X)


def mean_and_deviation(X: Data) -> tuple[Array, Array]:
    """Return mean and standard deviation of each feature, dense or sparse."""
    mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
    if not sparse.issparse(X):
        return mean, np.asarray(X.std(axis=0), dtype=np.float64)
    squares = np.asarray(X.multiply(X).mean(axis=0), dtype=np.float64).ravel()
    return mean, np.sqrt(np.maximum(squares - mean**2, 0))
