"""The graphs of all settings by the engine: each kernel matrix once, each truncation a prefix of the longest one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from subspaces.engine.plan import Context, Cut, Plan, Shape
from subspaces.engine.run import Cache, run_ordered
from subspaces.graphs.rules import GraphRule
from subspaces.kernels import DistanceKernel, DotKernel, Kernel, Precomputed, as_kernel
from subspaces.numerics.types import Array, Data, Labels, Sparse
from subspaces.partition import cut_by_modularity
from subspaces.representation.coefficients import Coefficients
from subspaces.representation.ridge import from_inverse, inverse
from subspaces.scaling import apply_scaling, fit_scaling
from subspaces.selection.candidates import Grid, Setting
from subspaces.selection.criteria import leave_one_out_error

LEIDEN_ITERATIONS = 3
"""Leiden iterations while searching; the final fit uses more."""
N_INIT = 3
"""Starts of k-means while searching, where the QR cut cannot give one."""


@dataclass(frozen=True)
class Candidate:
    """One setting up to its graph.

    ``communities`` are those of largest modularity, −1 for points without edges.
    """

    setting: Setting
    plan: Plan
    W: Sparse
    communities: Labels
    n_components: int
    leave_one_out: float


def search_cache() -> Cache:
    """One kernel matrix at a time, no inverse, and the graphs of all settings."""
    return Cache(kernel=1, coefficients=0, embedding=0, cut=0)


def candidates_of(
    X: Data,
    grid: Grid,
    cache: Cache,
    *,
    graph: str = "symmetric",
    by: str = "magnitude",
    bandwidth: float | str = "rms",
    kernel_params: Mapping[str, Any] | None = None,
    connect: bool = True,
    seed: int = 0,
) -> Iterator[Candidate]:
    """Graphs of every setting of the grid, one after the other.

    A Cholesky inverse for each penalty (n³ operations) is cheaper than one eigendecomposition (9 n³) and a product
    (n³) for each, as long as there are fewer than nine. In double precision whatever the points have: in single, the
    inverse is right to three digits at small λ, and another processor ranks other coefficients first.
    """
    for scaling, name in grid.kernel_settings():
        points, kernel = _seen(X, scaling, as_kernel(name, bandwidth, kernel_params))
        for reg in grid.regs:
            for n_nonzero in grid.n_nonzeros:
                setting = Setting(scaling, name, reg, n_nonzero)
                plan = Plan(
                    method="search",
                    shape=Shape.of(points),
                    n_clusters=None,
                    kernel=kernel,
                    source="gram",
                    represent=partial(_represent, reg=reg),
                    graph=GraphRule(graph, n_nonzero, by),
                    reserve=_longest(grid.n_nonzeros),
                    connect=connect,
                    cut=Cut("modularity", N_INIT, "qr", LEIDEN_ITERATIONS),
                    seed=seed,
                    settings={"scaling": scaling, "kernel": name, "reg": reg, "n_nonzero": n_nonzero},
                )
                try:
                    with np.errstate(over="ignore", invalid="ignore"):
                        found = run_ordered(plan, points, cache=cache, until="graph").graph
                except ValueError:  # no finite kernel values, or not invertible: no candidate
                    break
                if found.W.nnz and np.isfinite(found.W.data).all():
                    error = found.evidence.leave_one_out
                    assert error is not None
                    communities = communities_of(found.W, seed)
                    yield Candidate(setting, plan, found.W, communities, found.n_components, error)


def _represent(K: Array, context: Context, *, reg: float) -> Coefficients:
    """The closed form with its leave-one-out error."""
    if not (np.isfinite(K.min()) and np.isfinite(K.max()) and np.any(K)):
        raise ValueError("the kernel has no finite values on these points.")
    size = float(np.mean(K.diagonal(), dtype=np.float64)) or 1.0
    U, penalty = inverse(K, reg, overwrite=context.overwrite)
    error = leave_one_out_error(U, penalty) / size
    return replace(from_inverse(U, penalty), leave_one_out=error)


def communities_of(W: Sparse, seed: int) -> Labels:
    """Communities of largest modularity; −1 for points without edges, which are in none."""
    labels = np.full(W.shape[0], -1, dtype=np.intp)
    connected = np.asarray(W.sum(axis=1)).ravel() > 0
    labels[connected] = cut_by_modularity(part_of(W, connected), seed=seed, iterations=LEIDEN_ITERATIONS)
    return labels


def part_of(W: Sparse, kept: Array) -> Sparse:
    """The graph between some of its points."""
    return W if kept.all() else W[kept][:, kept]


def _longest(n_nonzeros: tuple[int | None, ...]) -> int | None:
    return None if None in n_nonzeros else max(size for size in n_nonzeros if size is not None)


def _seen(X: Data, scaling: str | None, kernel: Kernel) -> tuple[Data, Kernel]:
    """Scaled points, of norm about 1 where a kernel does not see that: powers of large numbers overflow."""
    X = X.astype(np.float64, copy=False)
    if isinstance(kernel, Precomputed):
        return X, kernel
    rule = fit_scaling(X, scaling, units=kernel.sees_units)
    kernel, points = kernel.scaled(rule.exponent), apply_scaling(X, rule)
    if isinstance(kernel, DistanceKernel | DotKernel) and not kernel.sees_units:
        norm = _root_mean_square_norm(points)
        kernel, points = _divided(kernel, norm), points / norm
    return points, kernel


def _divided(kernel: Kernel, norm: float) -> Kernel:
    """The kernel for points divided by a number: so is a bandwidth that is one."""
    if kernel.bandwidth is None or isinstance(kernel.bandwidth, str):
        return kernel
    return replace(kernel, bandwidth=kernel.bandwidth / norm)


def _root_mean_square_norm(X: Data) -> float:
    squares = X.multiply(X).sum() if sparse.issparse(X) else np.vdot(X, X)
    return float(np.sqrt(squares / X.shape[0])) or 1.0
