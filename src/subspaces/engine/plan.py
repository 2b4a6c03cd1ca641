"""Parameters and the shape of the samples → a plan: everything checked and decided before any arithmetic."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from subspaces.graphs.rules import GraphRule
from subspaces.kernels import Kernel, Precomputed
from subspaces.representation.coefficients import Coefficients
from subspaces.utils import memory
from subspaces.utils.types import Array, Data, Sparse

DOUBLE = 8
"""Bytes of a number: everything is computed in double precision (:mod:`subspaces.kernels.scaling`)."""
STAGES = ("kernel", "coefficients", "graph", "embedding", "cut")
"""The stages of a run, in order; what comes before them (canonical order, hashes) takes no parameter."""

_PARAMETERS = {
    "kernel": ("scaling", "kernel", "bandwidth", "kernel_params"),
    "graph": ("n_nonzero", "by", "graph", "graph_params"),
    "embedding": ("n_clusters", "connect", "spectral"),
    "cut": ("assign_labels", "n_init", "init", "random_state", "out_of_sample"),
    "none": ("verbose",),
}
"""The first stage that a parameter changes; all others belong to the coefficients."""
_STAGE_OF = {name: stage for stage, names in _PARAMETERS.items() for name in names}


class Shape(NamedTuple):
    """What is known of the samples before one is looked at."""

    n: int
    m: int
    is_sparse: bool

    @classmethod
    def of(cls, X: Data) -> Shape:
        """Shape of an array, dense or sparse."""
        return cls(X.shape[0], X.shape[1], sparse.issparse(X))


class Context(NamedTuple):
    """What a representation may need besides the samples or their kernel matrix."""

    kernel: Kernel  #: fitted
    seed: int
    overwrite: bool  #: the kernel matrix may be: nobody else reads it


@dataclass(frozen=True)
class Cut:
    """How an embedding or a graph becomes labels; see :mod:`subspaces.spectral.partition`."""

    method: str
    n_init: int  #: starts of k-means
    init: str
    iterations: int | None = None  #: of Leiden; None lets the number of samples decide


@dataclass(frozen=True)
class Plan:
    """Everything a run will do."""

    method: str  #: its name, for messages
    shape: Shape
    n_clusters: int | None  #: L; None lets the modularity cut find it
    kernel: Kernel  #: not yet fitted; the linear one for methods that see the samples themselves
    represent: Callable[[Any, Context], Coefficients] | None  #: of the source; None for a method without coefficients
    graph: GraphRule  #: what is done to the coefficients
    scaling: str | None
    source: str  #: "gram" (kernel matrix), "packed" (half of it), "features" (its map) or "points"
    affinity: Callable[[Array, int], Array | Sparse] | None
    """Scaled samples and the exponent of their scaling → W, where no sample is represented by others."""
    connect: bool  #: tie a graph that falls into more pieces than clusters
    cut: Cut
    seed: int
    settings: Mapping[str, Any]  #: the estimator's parameters, for the cache
    reserve: int | None = None  #: coefficients per sample kept for joining pieces of the graph; None: all of them
    between: Callable[[Array, Kernel], Sparse] | None = None
    """Centroids of micro-clusters → the graph between them, which is embedded then; None embeds samples."""
    draws: str = "cut"  #: the first stage that draws anything: what comes before it is the same for every seed
    n_components: int | None = None  #: leading components that stand for sparse samples; None: the samples themselves
    solver: str = ""  #: the route to the coefficients
    solver_reason: str = ""
    canonical: bool = True
    """Whether the run sees the different samples in canonical order; otherwise all, copies too, as they are given."""

    @property
    def pairwise(self) -> bool:
        """Whether X is a matrix between the samples, not the samples themselves."""
        return isinstance(self.kernel, Precomputed)

    @property
    def input_bytes(self) -> int:
        """Copies of dense samples beside those given: in canonical order, and scaled or in double precision."""
        n_copies = int(self.canonical) + (self.scaling is not None)
        return 0 if self.shape.is_sparse else n_copies * self.shape.n * self.shape.m * DOUBLE

    def key(self, stage: str) -> tuple[Any, ...]:
        """Return what the result of a stage depends on: two plans with the same key may share it.

        ``"reserve"`` are the coefficients kept for several truncations (`reserve`), ``"communities"`` those of Leiden.
        """
        last = {"reserve": "coefficients", "communities": "graph"}.get(stage, stage)
        upto = STAGES[: STAGES.index(last) + 1]
        chosen = {name: value for name, value in self.settings.items() if _STAGE_OF.get(name, "coefficients") in upto}
        own: tuple[Any, ...] = ()
        if stage == "reserve":
            own = (self.reserve, self.graph.name, self.graph.by)
        if "graph" in upto:
            own = (self.reserve, self.n_clusters if self.graph.name == "dscnet" else None)
        if "embedding" in upto:
            own = (*own, self.n_clusters, self.connect)
        if "cut" in upto:
            own = (*own, self.cut)
        if self.draws in upto:
            own = (*own, self.seed)
        return (stage, self.method, self.solver, _named(chosen), own)


def _named(value: Any) -> str:
    """Return a setting in full: the repr of a long array shows only its ends."""
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        digest = hashlib.sha256(np.ascontiguousarray(value).data).hexdigest()
        return f"{value.dtype.str} {value.shape} {digest}"
    if isinstance(value, np.ndarray):
        return _named(value.tolist())
    if isinstance(value, list | tuple):
        return repr([_named(item) for item in value])
    if isinstance(value, Mapping):
        return repr(sorted((str(name), _named(item)) for name, item in value.items()))
    return f"{value!r} {_named(vars(value))}" if isinstance(value, Kernel) else repr(value)


def require_squares(plan: Plan, n_squares: float, n_copies: float = 0) -> None:
    """Refuse before allocating `n_squares` n × n arrays, or copies of X, that do not fit."""
    n, m, is_sparse = plan.shape
    what = f"{n} × {n} matrix" if n_squares else f"{n} × {m} copies"
    copies = 0 if is_sparse else n_copies * n * m  # of sparse samples the dense copy is asked for
    memory.require(
        int((n_squares * n**2 + copies) * DOUBLE) + plan.input_bytes,
        f"the {what} of {plan.method}",
        "Fit a sample and let predict label the rest; or use TRR, or KTRR with a linear, cosine, polynomial or "
        'correntropy kernel and solver="low_rank", which make no such matrix.',
    )


def require_dense_points(shape: Shape) -> None:
    """Refuse sparse samples that do not fit as a dense array, where a method needs one."""
    if shape.is_sparse:
        memory.require(
            shape.n * shape.m * DOUBLE,
            f"the {shape.n} × {shape.m} points as a dense array",
            "Use a method that takes sparse points as they are (TRR, KTRR), or fewer features.",
        )
