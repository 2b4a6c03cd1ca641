"""The routes of KTRR, TRR, LSR1 and LSR2 to their coefficients: dense, by a feature map, or in two scales."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from subspaces.engine import stages
from subspaces.engine.plan import DOUBLE, Context, Plan, Shape, require_squares
from subspaces.graphs.affinity import affinity
from subspaces.graphs.rules import truncate_symmetric
from subspaces.kernels import Kernel
from subspaces.representation import ridge_search, two_scale
from subspaces.representation.coefficients import Coefficients
from subspaces.representation.nystrom import N_LANDMARKS
from subspaces.representation.ridge import (
    ridge,
    ridge_low_rank,
    ridge_unconstrained,
    ridge_unconstrained_low_rank,
)
from subspaces.spectral.partition import GRAPH_CUTS
from subspaces.utils import memory
from subspaces.utils.components import N_COMPONENTS, OVERSAMPLING
from subspaces.utils.packed import LARGEST
from subspaces.utils.types import Array, Data, Sparse

PATIENCE = 1.5
"""Times the seconds of two scales that ``solver="auto"`` spends on the exact inverse."""
EXACT_SIZE = 10_000
"""Sparse points up to which it does so at any cost: two scales sees their leading components only."""
COARSE_SIZE = 30_000
"""Points from which ``spectral="auto"`` embeds micro-clusters instead of points."""
_POINTS_PER_CLUSTER = 64
_SQUARES = {True: 0.6, False: 1.1}
"""How many n × n arrays the dense route takes: where half the kernel matrix is made at once, and where it is not."""
_SEARCHED = 5  # copies of candidates and values that a search holds, measured
_WORK = 2**23
"""Bytes of a route's blocks, which do not grow with n."""
_SOURCES = {"dense": "packed", "low_rank": "features", "two_scale": "points"}


def ridge_plan(
    plan: Plan, X: Data, *, reg: float, solver: str, spectral: str, affine: bool = False, constrained: bool = True
) -> Plan:
    """Return a plan with the route to the coefficients, and what is embedded, decided."""
    shape, kernel, n_nonzero = plan.shape, plan.kernel, plan.graph.n_nonzero
    if kernel.features_depend_on_data:  # their number follows from the range of the samples
        points, scaling = stages.scaled(X, plan)
        kernel = kernel.scaled(scaling.exponent).fit(points)
    chosen, reason = choose_solver(solver, kernel, shape)
    if chosen == "two_scale":
        _require_two_scale(plan, n_nonzero, affine)
    elif chosen == "low_rank":
        _require_features(plan, kernel, n_nonzero, affine)
    else:
        _require_dense(plan, kernel)
    plan.graph.require_memory(shape.n, chosen == "two_scale")
    searches = chosen == "low_rank" and shape.n > ridge_search.EXACT_SIZE
    reduced = chosen == "two_scale" and shape.is_sparse
    coarse = plan.cut.method not in GRAPH_CUTS and is_coarse(spectral, plan, chosen)
    draws = "coefficients" if chosen == "two_scale" or searches else "embedding" if coarse else "cut"
    problem: dict[str, Any] = {"reg": reg, "affine": affine}
    return replace(
        plan,
        source=_SOURCES[chosen],
        represent=partial(represent, solver=chosen, n_nonzero=n_nonzero, constrained=constrained, **problem),
        between=partial(between, **problem) if coarse else None,
        n_components=N_COMPONENTS if reduced else None,
        draws="kernel" if reduced else draws,
        solver=chosen,
        solver_reason=reason,
    )


def represent(
    source: Any,
    context: Context,
    *,
    solver: str,
    reg: float,
    n_nonzero: int | None,
    affine: bool = False,
    constrained: bool = True,
) -> Coefficients:
    """Return ridge coefficients by the chosen route."""
    problem: dict[str, Any] = {"reg": reg, "affine": affine}
    drawn: dict[str, Any] = {"n_candidates": two_scale.candidates_for(n_nonzero), "seed": context.seed}
    if solver == "two_scale":
        return two_scale.two_scale(source, kernel=context.kernel, **problem, **drawn)
    if solver == "dense":
        return (ridge if constrained else ridge_unconstrained)(source, overwrite=context.overwrite, **problem)
    if not constrained:
        return ridge_unconstrained_low_rank(source, **problem)
    if source.shape[0] > ridge_search.EXACT_SIZE and n_nonzero is not None and not sparse.issparse(source):
        return ridge_search.ridge_search(source, **problem, **drawn)
    return ridge_low_rank(source, **problem)


def between(centroids: Array, kernel: Kernel, *, reg: float, affine: bool = False) -> Sparse:
    """Return the graph of the same method between the centroids of micro-clusters."""
    K = kernel.packed_gram(centroids.astype(np.float64))
    found = ridge(K, reg=reg, affine=affine, overwrite=True)
    return affinity(truncate_symmetric(found, two_scale.N_CANDIDATES).symmetric)


def choose_solver(solver: str, kernel: Kernel, shape: Shape) -> tuple[str, str]:
    """Return the route, and why; refuses one that the kernel does not allow."""
    n = shape.n
    r = kernel.n_features_out(shape.m, shape.is_sparse)
    if solver == "low_rank" and r is None:
        raise ValueError(
            f'solver="low_rank" needs a kernel with an explicit feature map (linear, cosine, polynomial, '
            f"correntropy); got {kernel.name!r}."
        )
    if solver == "two_scale" and not kernel.of_distances:
        raise ValueError(
            f'solver="two_scale" needs a kernel of distances (rbf, exponential, inverse_square, inverse_distance, or '
            f"your own); got the kernel {kernel.name!r}."
        )
    if solver != "auto":
        return solver, "as asked"
    if r is not None and 2 * r <= n:
        return "low_rank", f"the kernel has an exact map of {r} features, fewer than half of {n} points"
    needed, free = int(_dense_squares(kernel, shape) * n * n * DOUBLE), memory.available_bytes()
    by = f"; sparse points by their {min(N_COMPONENTS, shape.m)} leading components" if shape.is_sparse else ""
    dense, two_scales = _seconds(shape)
    slow = n > EXACT_SIZE if shape.is_sparse else dense > PATIENCE * two_scales
    if kernel.of_distances and slow:
        return "two_scale", f"of {n} points a dense inverse takes about {dense / two_scales:.2g} times as long{by}"
    if kernel.of_distances and needed > free:
        return "two_scale", f"a dense inverse needs {needed / 2**30:.3g} GiB and {free / 2**30:.3g} GiB are free{by}"
    return "dense", f"the {n} × {n} kernel matrix fits"


def _seconds(shape: Shape) -> tuple[float, float]:
    """Estimate the seconds of a thread for the dense route and for two scales, on the machine of benchmarks/speed.py.

    Only their ratio counts. n² products of n + m numbers; systems of some hundred samples each, and distances.
    """
    n, m, _ = shape
    return 2e-11 * n**2 * (n + m), n * (1.2e-4 + 7e-7 * m)


def is_coarse(spectral: str, plan: Plan, solver: str) -> bool:
    """Return whether micro-clusters are embedded instead of samples; refuses it where they cannot be."""
    shape, n_clusters = plan.shape, plan.n_clusters
    has_points = not plan.pairwise and (not shape.is_sparse or solver == "two_scale")
    if spectral == "coarse" and not has_points:
        raise ValueError('spectral="coarse" needs dense points or solver="two_scale", no precomputed kernel.')
    if spectral == "coarse" and shape.n < _POINTS_PER_CLUSTER * (n_clusters or 1):
        raise ValueError(
            f'spectral="coarse" needs {_POINTS_PER_CLUSTER} points per cluster or more, for it cuts groups of 32; '
            f'got {shape.n} points and n_clusters={n_clusters}. Use spectral="full".'
        )
    if spectral != "auto":
        return spectral == "coarse"
    return shape.n >= COARSE_SIZE and has_points


def _dense_squares(kernel: Kernel, shape: Shape) -> float:
    """Return how many n × n arrays the dense route takes."""
    return _SQUARES[kernel.has_packed_gram(shape.is_sparse)]


def _require_dense(plan: Plan, kernel: Kernel) -> None:
    """Refuse a kernel matrix that does not fit, or that LAPACK cannot count."""
    if plan.shape.n > LARGEST:
        raise ValueError(
            f'solver="dense" takes at most {LARGEST} points; got {plan.shape.n}. Use solver="two_scale" or "low_rank", '
            "or fit a sample and let predict label the rest."
        )
    require_squares(plan, _dense_squares(kernel, plan.shape))


def _require_features(plan: Plan, kernel: Kernel, n_nonzero: int | None, affine: bool) -> None:
    """Refuse before allocating a feature map that does not fit; that of a linear kernel is the samples.

    Beside the map there are H, as large, its copy in single precision, and r × r arrays; with `affine` the map about
    its mean, or H without its last column, too.
    """
    shape = plan.shape
    n, size, r = shape.n, DOUBLE, kernel.n_features_out(shape.m, shape.is_sparse) or 0
    n_copies = (kernel.name not in ("linear", "cosine")) + 1.5 + affine
    searched = n > ridge_search.EXACT_SIZE
    per_point = _SEARCHED * two_scale.candidates_for(n_nonzero) * (size + 4) if searched else 0
    memory.require(
        int(n_copies * n * r * size + n * per_point + 32 * r**2 + _WORK) + plan.input_bytes,
        f"the feature map of the {kernel.name} kernel, {n} × {r},",
        'Use solver="dense", fewer features, or fit a sample and let predict label the rest.',
    )


def _require_two_scale(plan: Plan, n_nonzero: int | None, affine: bool) -> None:
    """Refuse what is linear in n and still does not fit: candidates, and features of some points at a time."""
    shape, size = plan.shape, DOUBLE
    width = min(N_COMPONENTS, shape.m) if shape.is_sparse else shape.m
    directions = 3 * 8 * shape.m * (N_COMPONENTS + OVERSAMPLING) if shape.is_sparse else 0
    found = 2 * two_scale.candidates_for(n_nonzero) * (size + 4)
    r = N_LANDMARKS if affine else two_scale.LEADING
    at_a_time = min(shape.n, two_scale.AROUND) * (width + r * 3 // 2) * size
    memory.require(
        shape.n * (width * shape.is_sparse * size + found) + at_a_time + directions + _WORK + plan.input_bytes,
        f"the two-scale graph of {shape.n} points",
        "Let EKTRR cluster a sample and label the rest.",
    )
