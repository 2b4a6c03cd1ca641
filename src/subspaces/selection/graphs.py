"""The graphs of all settings by the engine: each kernel matrix once, each truncation a prefix of the longest one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from subspaces.engine.plan import Context, Cut, Plan, Shape
from subspaces.engine.run import Cache, run_ordered
from subspaces.graphs.affinity import components
from subspaces.graphs.local import heat_kernel_graph
from subspaces.graphs.rules import GraphRule
from subspaces.kernels import DistanceKernel, DotKernel, Kernel, Linear, Precomputed, as_kernel
from subspaces.kernels.scaling import apply_scaling, fit_components, fit_scaling
from subspaces.representation.coefficients import Coefficients
from subspaces.representation.ridge import ridge
from subspaces.selection.candidates import NEIGHBORS, Setting, Tried
from subspaces.spectral.partition import cut_by_modularity
from subspaces.utils import memory
from subspaces.utils.blocks import map_blocks
from subspaces.utils.packed import Packed
from subspaces.utils.progress import phase
from subspaces.utils.types import Array, Data, Labels, Sparse

LEIDEN_ITERATIONS = 3
"""Leiden iterations while searching; a fit uses more."""
_PAIR = 12  # bytes of an edge in a graph of all pairs


@dataclass(frozen=True)
class Candidate:
    """One setting up to its graph.

    ``communities`` are those of largest modularity, −1 for points without edges; of a graph of all pairs, of which
    modularity makes nothing, its connected components. ``cache`` holds the graph, so that a cut needs no more of the
    ``points`` than their number.
    """

    setting: Setting
    plan: Plan
    W: Sparse
    communities: Labels
    n_components: int
    points: Data
    cache: Cache

    @property
    def n_effective(self) -> float:
        """How many communities there are, tiny components hardly counted: exp of the entropy of their sizes."""
        sizes = np.bincount(self.communities[self.communities >= 0]).astype(np.float64)
        shares = sizes[sizes > 0] / sizes.sum()
        return float(np.exp(-(shares * np.log(shares)).sum()))


@dataclass(frozen=True)
class Method:
    """What is the same for all settings: parameters of the method beside those of a :class:`Setting`."""

    graph: str = "symmetric"
    by: str = "magnitude"
    bandwidth: float | str = "rms"
    kernel_params: Mapping[str, Any] | None = None
    connect: bool = True
    seed: int = 0
    n_clusters: int | None = None
    """For the graphs that need it."""
    n_components: int | None = None
    """Leading components that stand for sparse points, where the fit will take the two-scale route."""


def candidates_of(X: Data, tried: Tried, method: Method) -> list[Candidate]:
    """Graphs of every setting, in their order; kernels side by side on as many threads as OpenMP may use.

    A Cholesky inverse for each penalty (n³ operations) is cheaper than one eigendecomposition (9 n³) and a product
    (n³) for each, as long as there are fewer than nine. In double precision whatever the points have: in single, the
    inverse is right to three digits at small λ, and another processor ranks other coefficients first.
    """
    X = X.astype(np.float64, copy=False)
    kernels = tried.by_kernel()
    n_full = sum(setting.graph is not None for setting in tried.settings)
    what = f"the search with {n_full} graphs of all pairs of {X.shape[0]} points"
    memory.require(n_full * _PAIR * X.shape[0] ** 2, what, "Give effort='fast', which makes fewer, or fit a sample.")

    with phase("Trying settings", len(tried.settings)) as step:

        def one(start: int, stop: int) -> list[Candidate]:
            found = []
            for candidate in _of_kernel(X, kernels[start], method):
                found.append(candidate)
                step()
            step(len(kernels[start]) - len(found))
            return found

        parts = map_blocks(one, [(i, i + 1) for i in range(len(kernels))])
    found = {candidate.setting: candidate for part in parts for candidate in part}
    return [found[setting] for setting in tried.settings if setting in found]


def _of_kernel(X: Data, settings: Sequence[Setting], method: Method) -> Iterator[Candidate]:
    """Graphs of the settings with one kernel; none where it has no finite values on these points."""
    first = settings[0]
    plain = first.kernel == NEIGHBORS
    kernel = Linear() if plain else as_kernel(first.kernel, method.bandwidth, method.kernel_params)
    try:
        points, kernel = _seen(X, first.scaling, kernel, method)
    except ValueError:  # counts that are none
        return
    n_inverses = len({(setting.reg, setting.affine) for setting in settings})
    shared = int(any(setting.graph for setting in settings))  # one inverse, several graphs that are no prefixes
    cache = Cache(kernel=int(n_inverses > 1), coefficients=shared, embedding=0, cut=0)
    for setting in settings:
        plan = Plan(
            method="search",
            shape=Shape.of(points),
            n_clusters=method.n_clusters if setting.graph else None,
            kernel=kernel,
            source="points" if plain else "packed",
            represent=None if plain else partial(_represent, reg=setting.reg, affine=setting.affine),
            affinity=partial(_neighbors, n_neighbors=setting.n_nonzero) if plain else None,
            graph=GraphRule(setting.graph or method.graph, setting.n_nonzero, method.by, dict(setting.graph_params)),
            reserve=None if plain or setting.graph else _longest(setting, settings),
            connect=method.connect and not plain,
            cut=Cut("modularity", iterations=LEIDEN_ITERATIONS),
            seed=method.seed,
            settings={field.name: getattr(setting, field.name) for field in fields(setting)},
        )
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                found = run_ordered(plan, points, cache=cache, until="graph").graph
        except ValueError:  # no finite kernel values, or not invertible: no candidate
            return
        if found.W.nnz and np.isfinite(found.W.data).all():
            communities = components(found.W)[1] if setting.graph else communities_of(found.W, method.seed)
            # joining pieces of a graph of all pairs needs all coefficients again
            again = points if setting.graph else X
            yield Candidate(setting, plan, found.W, communities, found.n_components, again, cache)


def _represent(K: Packed, context: Context, *, reg: float, affine: bool) -> Coefficients:
    """The closed form; refuses a kernel matrix without finite values before LAPACK sees it."""
    if not (np.isfinite(K.half.min()) and np.isfinite(K.half.max()) and np.any(K.half)):
        raise ValueError("the kernel has no finite values on these points.")
    return ridge(K, reg=reg, affine=affine, overwrite=context.overwrite)


def _neighbors(points: Array, exponent: int, *, n_neighbors: int | None) -> Array | Sparse:
    return heat_kernel_graph(points, bandwidth="local", n_neighbors=n_neighbors)


def communities_of(W: Sparse, seed: int) -> Labels:
    """Communities of largest modularity; −1 for points without edges, which are in none."""
    labels = np.full(W.shape[0], -1, dtype=np.intp)
    connected = np.asarray(W.sum(axis=1)).ravel() > 0
    labels[connected] = cut_by_modularity(part_of(W, connected), seed=seed, iterations=LEIDEN_ITERATIONS)
    return labels


def part_of(W: Sparse, kept: Array) -> Sparse:
    """The graph between some of its points."""
    return W if kept.all() else W[kept][:, kept]


def _longest(setting: Setting, settings: Sequence[Setting]) -> int | None:
    """The largest truncation of the same coefficients."""
    own = (setting.reg, setting.affine, setting.graph)
    same = [other for other in settings if (other.reg, other.affine, other.graph) == own]
    sizes = [other.n_nonzero for other in same]
    return None if None in sizes else max(size for size in sizes if size is not None)


def _seen(X: Data, scaling: str | None, kernel: Kernel, method: Method) -> tuple[Data, Kernel]:
    """Scaled points, of norm about 1 where a kernel does not see that: powers of large numbers overflow."""
    if isinstance(kernel, Precomputed):
        return X, kernel
    rule = fit_components(X, fit_scaling(X, scaling, units=kernel.sees_units), method.n_components, method.seed)
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
