"""Missing entries of a matrix of low rank: alternating ridge regressions, the rank chosen on entries held out.

X ≈ 1μᵀ + UVᵀ. Given μ and V each row of U is a ridge regression over the entries of that row that are there; given U
each column has one with a constant, which gives V and μ (softImpute-ALS: Hastie, Mazumder, Lee, Zadeh, JMLR 16 (2015)
3367-3402, with means). The rank grows one by one, each start from the fit before it, until entries that were held out
are predicted no better. Entries that are there stay as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from subspaces.utils import memory
from subspaces.utils.decompositions import solve_systems, svd
from subspaces.utils.types import Array

HELD_OUT = 0.1  # share of the groups of entries by which the rank is chosen
_RIDGE = 1e-4  # of the mean square of an entry: a row with fewer entries than the rank has no other bound
_ROUNDS = 30  # alternations while the rank is chosen
_LAST_ROUNDS = 200
_PATIENCE = 3  # ranks without a gain after which the search ends
_GAIN = 0.995
_TOL = 1e-7
_COPIES = 12  # arrays of the size of X, those of small systems included, measured


class Completion(NamedTuple):
    """Hold the matrix without gaps, the rank of the estimate about a mean row, and its error.

    That is the root mean square on the entries held out; NaN where nothing was missing or the rank was given.
    """

    X: Array
    rank: int
    error: float


def complete(X: Array, *, rank: int | None = None, group: int = 1, seed: int = 0) -> Completion:
    """Estimate the missing entries (NaN) of a matrix of low rank.

    Parameters
    ----------
    X : array of shape (n, m); every row and every column has an entry
    rank : of X about a mean row; None finds it
    group : neighbouring columns that are missing together, which are then held out together: 2 for x and y of a track
    seed : of the choice of what is held out

    Examples
    --------
    >>> import numpy as np
    >>> X = np.outer([1.0, 2, 3, 4], [1.0, -1, 2, 1, 3])
    >>> X[1, 2] = np.nan
    >>> round(float(complete(X, rank=1).X[1, 2]), 2)
    4.0
    """
    memory.require(_COPIES * X.size * 8, f"the completion of a {len(X)} × {X.shape[1]} matrix", "Take fewer rows.")
    there = ~np.isnan(X)
    if there.all():
        return Completion(X, 0, np.nan)
    for axis, name in ((1, "row"), (0, "column")):
        empty = np.flatnonzero(~there.any(axis=axis))
        if len(empty):
            raise ValueError(f"{name} {int(empty[0])} of X has no entry that is not missing: leave it out.")
    filled = np.where(there, X, 0).astype(np.float64)
    mean = filled.sum(axis=0) / there.sum(axis=0)
    centred = np.where(there, filled - mean, 0)
    size = float(np.sqrt(np.square(centred).sum() / there.sum())) or 1.0
    centred /= size
    error = np.nan
    if rank is None:
        rank, error = _chosen_rank(centred, there, group, seed)
    fit = np.zeros_like(centred)
    for r in range(1, min(rank, *X.shape) + 1):
        last = r == min(rank, *X.shape)
        fit = _alternate(centred, there, fit, r, _LAST_ROUNDS if last else _ROUNDS)
    out = np.where(there, X, (fit * size + mean).astype(X.dtype))
    return Completion(out, rank, error * size)


def _chosen_rank(centred: Array, there: Array, group: int, seed: int) -> tuple[int, float]:
    """Return the rank that predicts held-out entries best, and the root mean square error there."""
    n, m = centred.shape
    rng = np.random.default_rng(seed)
    drawn = np.repeat(rng.random((n, -(-m // group))) < HELD_OUT, group, axis=1)[:, :m]
    seen = there & ~drawn
    seen[~seen.any(axis=1)] = there[~seen.any(axis=1)]
    seen[:, ~seen.any(axis=0)] = there[:, ~seen.any(axis=0)]
    asked = there & ~seen
    if not asked.any():
        return 1, np.nan
    fit = np.zeros_like(centred)
    best, best_error, since = 0, float(np.sqrt(np.square(centred[asked]).mean())), 0
    for rank in range(1, min(n, m) + 1):
        fit = _alternate(centred, seen, fit, rank, _ROUNDS)
        error = float(np.sqrt(np.square((centred - fit)[asked]).mean()))
        since = 0 if error < _GAIN * best_error else since + 1
        if since == 0:
            best, best_error = rank, error
        if since == _PATIENCE:
            break
    return best, best_error


def _alternate(X: Array, there: Array, start: Array, rank: int, rounds: int) -> Array:
    """Fit a matrix of this rank to the known entries by ridge regressions of rows and columns in turn."""
    filled = np.where(there, X, start)
    mean = filled.mean(axis=0)
    _, values, right = svd(filled - mean)
    V = right[:rank].T * np.sqrt(values[:rank])
    weights, before = there.astype(np.float64), np.inf
    X = np.where(there, X, 0)
    for _ in range(rounds):
        U = _regressions(np.where(there, X - mean, 0), weights, V)
        found = _regressions(X.T, weights.T, np.column_stack([U, np.ones(len(U))]))
        V, mean = found[:, :-1], found[:, -1]
        fit = U @ V.T + mean
        loss = float(np.square(np.where(there, X - fit, 0)).sum())
        if loss >= (1 - _TOL) * before:
            break
        before = loss
    return fit


def _regressions(X: Array, weights: Array, V: Array) -> Array:
    """Regress each row of X on the rows of V, over the entries with weight 1."""
    rank = V.shape[1]
    products = (V[:, :, None] * V[:, None, :]).reshape(len(V), rank * rank)
    systems = (weights @ products).reshape(-1, rank, rank)
    systems[:, np.arange(rank), np.arange(rank)] += _RIDGE
    return np.asarray(solve_systems(systems, (X @ V)[:, :, None])[:, :, 0])
