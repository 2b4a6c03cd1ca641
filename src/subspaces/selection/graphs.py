"""The graphs of all settings, each kernel matrix computed once, each truncation a prefix of the longest one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from subspaces.graphs.affinity import affinity, components
from subspaces.graphs.truncation import truncate
from subspaces.kernels import DistanceKernel, DotKernel, Kernel, as_kernel, is_precomputed
from subspaces.numerics.types import Array, Data, Labels, Sparse
from subspaces.partition import cut_by_modularity
from subspaces.representation.coefficients import Coefficients, from_sparse
from subspaces.representation.ridge import from_inverse, inverse
from subspaces.scaling import apply_scaling, fit_scaling
from subspaces.selection.candidates import Grid, Setting
from subspaces.selection.criteria import leave_one_out_error

LEIDEN_ITERATIONS = 3
"""Leiden iterations while searching; the final fit uses more."""


@dataclass(frozen=True)
class Graph:
    """The affinity graph of one setting.

    ``strongest`` holds the longest truncation of the same coefficients: components of the graph are joined by it.
    ``communities`` are those of largest modularity, −1 for points without edges.
    """

    setting: Setting
    W: Sparse
    strongest: Coefficients
    communities: Labels
    n_components: int
    leave_one_out: float


def graphs_of(
    X: Data,
    grid: Grid,
    *,
    graph: str = "symmetric",
    by: str = "magnitude",
    bandwidth: float | str = "rms",
    kernel_params: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Iterator[Graph]:
    """Graphs of every setting of the grid, one after the other.

    A Cholesky inverse for each penalty (n³ operations) is cheaper than one eigendecomposition (9 n³) and a product
    (n³) for each, as long as there are fewer than nine. In double precision whatever the points have: in single, the
    inverse is right to three digits at small λ, and another processor ranks other coefficients first.
    """
    for scaling, kernel in grid.kernel_settings():
        K = _kernel_matrix(X, scaling, kernel, bandwidth, kernel_params)
        if K is None:
            continue
        size = float(np.mean(K.diagonal(), dtype=np.float64)) or 1.0
        for reg in grid.regs:
            try:
                U, penalty = inverse(K, reg, overwrite=reg == grid.regs[-1])
            except ValueError:  # not invertible: no candidate
                continue
            error = leave_one_out_error(U, penalty) / size
            strongest = from_sparse(truncate(from_inverse(U, penalty), _longest(grid.n_nonzeros), graph=graph, by=by))
            for n_nonzero in grid.n_nonzeros:
                W = affinity(truncate(strongest, n_nonzero, graph="column", by=by))
                if W.nnz and np.isfinite(W.data).all():
                    setting = Setting(scaling, kernel, reg, n_nonzero)
                    yield Graph(setting, W, strongest, communities_of(W, seed), components(W)[0], error)


def communities_of(W: Sparse, seed: int) -> Labels:
    """Communities of largest modularity; −1 for points without edges, which are in none."""
    labels = np.full(W.shape[0], -1, dtype=np.intp)
    connected = np.asarray(W.sum(axis=1)).ravel() > 0
    labels[connected] = cut_by_modularity(_part(W, connected), seed=seed, iterations=LEIDEN_ITERATIONS)
    return labels


def _part(W: Sparse, kept: Array) -> Sparse:
    return W if kept.all() else W[kept][:, kept]


def _longest(n_nonzeros: tuple[int | None, ...]) -> int | None:
    return None if None in n_nonzeros else max(size for size in n_nonzeros if size is not None)


def _kernel_matrix(
    X: Data, scaling: str | None, kernel: Any, bandwidth: float | str, params: Mapping[str, Any] | None
) -> Array | None:
    """K, or None where the kernel has no finite values on these points."""
    X = X.astype(np.float64, copy=False)
    settled, points = as_kernel(kernel, bandwidth, params), X
    rule = None if is_precomputed(kernel) else fit_scaling(X, scaling, units=settled.sees_units)
    try:
        if rule is not None:
            settled, points = settled.scaled(rule.exponent), apply_scaling(X, rule)
            if isinstance(settled, DistanceKernel | DotKernel) and not settled.sees_units:
                norm = _root_mean_square_norm(points)  # powers of large numbers overflow; these kernels do not see it
                settled, points = _divided(settled, norm), points / norm
        with np.errstate(over="ignore", invalid="ignore"):
            K = settled.fit(points).gram(points)
    except ValueError:
        return None
    return K if np.isfinite(K).all() and np.any(K) else None


def _divided(kernel: Kernel, norm: float) -> Kernel:
    """The kernel for points divided by a number: so is a bandwidth that is one."""
    if kernel.bandwidth is None or isinstance(kernel.bandwidth, str):
        return kernel
    return replace(kernel, bandwidth=kernel.bandwidth / norm)


def _root_mean_square_norm(X: Data) -> float:
    squares = X.multiply(X).sum() if sparse.issparse(X) else np.vdot(X, X)
    return float(np.sqrt(squares / X.shape[0])) or 1.0
