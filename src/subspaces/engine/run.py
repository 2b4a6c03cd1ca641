"""A plan and the samples → a result: the one way from data to labels, for fit, search, explorer, Dask, reproduction."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from subspaces.engine import stages
from subspaces.engine.plan import Plan
from subspaces.engine.stages import Embedding, Evidence, Graph
from subspaces.engine.validation import all_equal, warn_of_bad_numbers
from subspaces.kernels import as_kernel
from subspaces.kernels.scaling import Scaling
from subspaces.representation.coefficients import Factors, PermutedFactors
from subspaces.spectral.partition import GRAPH_CUTS
from subspaces.utils.ordering import (
    Distinct,
    canonical_order,
    distinct_rows,
    hash_rows,
    in_order,
    inverse_of,
    reordered,
    rows_of,
)
from subspaces.utils.process import one_thread_if_busy, warn_caller
from subspaces.utils.progress import Timer, phase
from subspaces.utils.types import Array, Data, Labels


@dataclass(frozen=True)
class FitResult:
    """Everything a run found, in the order in which the samples were given."""

    plan: Plan
    graph: Graph
    order: Labels  #: the different rows, in canonical order
    embedding: Embedding | None = None  #: None where none was needed
    labels: Labels | None = None  #: numbered by the first of their samples; None if the run ended before
    timings: Mapping[str, float] = field(default_factory=dict)  #: seconds of each stage that was computed
    row_hashes: Array | None = None  #: of all rows
    all_equal: bool = False  #: so that there was nothing to compute

    @property
    def n_clusters(self) -> int:
        """Number of clusters found."""
        assert self.labels is not None
        return int(self.labels.max()) + 1


class Cache:
    """Results of stages, for runs on the same samples.

    `limits` say how many results of a stage are kept, the least recently used go first; without one all are.
    """

    def __init__(self, **limits: int) -> None:
        self._kept: dict[str, OrderedDict[Hashable, Any]] = {}
        self._limits = limits

    def keeps(self, stage: str) -> bool:
        """Return whether results of this stage are kept at all."""
        return self._limits.get(stage, 1) > 0

    def find(self, key: tuple[Any, ...]) -> Any:
        """Return a result, or None."""
        kept = self._kept.get(key[0])
        if kept is None or key not in kept:
            return None
        kept.move_to_end(key)
        return kept[key]

    def put(self, key: tuple[Any, ...], value: Any) -> None:
        """Keep a result under the key of its plan and stage."""
        kept = self._kept.setdefault(key[0], OrderedDict())
        kept[key] = value
        while len(kept) > self._limits.get(key[0], len(kept)):
            kept.popitem(last=False)


_reused: ContextVar[Cache | None] = ContextVar("reused", default=None)


@contextmanager
def reusing(cache: Cache) -> Iterator[None]:
    """Let the fits inside use and fill a cache; all must be on the same samples."""
    token = _reused.set(cache)
    try:
        yield
    finally:
        _reused.reset(token)


def run(plan: Plan, X: Data, *, cache: Cache | None = None, until: str = "cut") -> FitResult:
    """Run a plan: from samples to labels.

    Parameters
    ----------
    plan : what is to be done
    X : array of shape (n, m), dense or sparse; (n, n) where the plan's kernel is precomputed
    cache : results of stages to reuse and to keep (or that of :func:`reusing`); all runs with one cache must be on the
        same samples
    until : the last stage: ``"graph"``, ``"embedding"`` or ``"cut"``
    """
    with phase("Putting the points in order"):
        row_hashes = hash_rows(X)
        if all_equal(X, plan.pairwise):
            return replace(_one_cluster(plan), row_hashes=row_hashes)
        order = kept = np.arange(X.shape[0])
        distinct = Distinct(kept, kept)
        if plan.canonical:
            order = canonical_order(X, row_hashes, pairwise=plan.pairwise)
        if plan.canonical and not plan.pairwise:
            distinct = distinct_rows(row_hashes)
            first = np.zeros(len(order), dtype=bool)
            first[distinct.rows] = True
            order = order[first[order]]
            n_clusters = None if plan.n_clusters is None else min(plan.n_clusters, len(order))
            plan = replace(plan, shape=plan.shape._replace(n=len(order)), n_clusters=n_clusters)
        if not plan.pairwise:
            warn_of_bad_numbers(X, plan.scaling)
        points = rows_of(X, order, pairwise=plan.pairwise)
    with one_thread_if_busy():
        found = run_ordered(plan, points, cache=_reused.get() if cache is None else cache, until=until)
    found = as_given(found, distinct.place[order])
    if len(distinct.rows) < len(distinct.place):
        found = _with_copies(found, distinct)
    return replace(found, row_hashes=row_hashes)


def run_ordered(plan: Plan, points: Data, *, cache: Cache | None = None, until: str = "cut") -> FitResult:
    """Run a plan on samples that all differ and are in canonical order."""
    steps = _Run(plan, points, cache, Timer())
    graph, represented = steps.find("graph"), None
    if graph is None:
        represented = steps.represented()
        with steps.timer.stage("graph"):
            graph = steps.keep("graph", stages.graph(*represented, plan))
    if stages.falls_apart(graph, plan):
        assert plan.n_clusters is not None
        C, _ = represented or steps.represented()
        with steps.timer.stage("graph"):
            graph = stages.join(graph, C, plan.n_clusters)
    represented = C = None  # all coefficients, which may take as much memory as the kernel matrix
    n, order = points.shape[0], np.arange(points.shape[0])
    if plan.n_clusters == n and not graph.W.nnz:  # as many clusters as samples, nothing to cut
        return FitResult(plan, graph, order, Embedding(np.eye(n), np.zeros(n)), order, steps.timer.seconds)
    embedding = labels = None
    if until != "graph" and plan.cut.method not in GRAPH_CUTS:
        embedding = steps.find("embedding")
        if embedding is None:
            assert plan.n_clusters is not None
            with steps.timer.stage("embedding"):
                if plan.between is None:
                    embedding = stages.embed(graph.W, plan.n_clusters)
                else:
                    embedding = stages.embed_coarsely(graph.W, steps.scaled()[0], graph.evidence.kernel, plan)
                steps.keep("embedding", embedding)
    if until == "cut":
        labels = steps.find("cut")
        if labels is None:
            with steps.timer.stage("cut"):
                labels = steps.keep("cut", stages.cut(graph, embedding, plan, steps.find("communities")))
        labels = np.unique(labels, return_inverse=True)[1].astype(np.intp)
    return FitResult(plan, graph, order, embedding, labels, steps.timer.seconds)


@dataclass
class _Run:
    """One run; what the cache holds is not computed, nor what only that would need."""

    plan: Plan
    points: Data
    cache: Cache | None
    timer: Timer
    kept: tuple[Data, Scaling] | None = None

    def find(self, stage: str) -> Any:
        """Return the result of a stage from the cache, or None."""
        return None if self.cache is None else self.cache.find(self.plan.key(stage))

    def keep(self, stage: str, found: Any) -> Any:
        """Return the result of a stage, and keep it for other runs."""
        if self.cache is not None:
            self.cache.put(self.plan.key(stage), found)
        return found

    def scaled(self) -> tuple[Data, Scaling]:
        """Return the samples in the units of the method; kept where that costs nothing or they are needed again."""
        found = self.kept or stages.scaled(self.points, self.plan)
        if found[0] is self.points or self.plan.between is not None:
            self.kept = found
        return found

    def represented(self) -> tuple[Any, Evidence]:
        """Return the coefficients that graph and joins may use, or an affinity, and how they were reached."""
        reserves = self.plan.reserve is not None
        found = self.find("reserve") if reserves else None
        if found is not None:
            return found
        found = self.find("coefficients")
        if found is None:
            seen = self.find("kernel")
            if seen is None:
                with self.timer.stage("kernel"):
                    seen = self.keep("kernel", stages.see(*self.scaled(), self.plan))
            with self.timer.stage("coefficients"):
                overwrite = self.cache is None or not self.cache.keeps("kernel")
                found = self.keep("coefficients", stages.represent(seen, self.plan, overwrite))
            del seen  # the kernel matrix
        if reserves:
            with self.timer.stage("graph"):
                found = self.keep("reserve", (stages.strongest(found[0], self.plan), found[1]))
        return found


def as_given(found: FitResult, order: Labels) -> FitResult:
    """Return a result of samples in canonical order, as one of the samples in the order in which they were given."""
    place = inverse_of(order)
    graph, embedding = found.graph, found.embedding
    C, cells = graph.coefficients, graph.evidence.cells
    if isinstance(C, Factors):
        C = PermutedFactors(C, place)
    elif C is not None:
        C = reordered(C, place)
    graph = graph._replace(
        W=reordered(graph.W, place),
        coefficients=C,
        isolated=np.sort(order[graph.isolated]),
        evidence=graph.evidence._replace(cells=None if cells is None else cells.reordered(order)),
    )
    embedding = None if embedding is None else embedding.at(place)
    # clusters are numbered by the first of their samples as they were given
    labels = None if found.labels is None else in_order(found.labels[place])
    return replace(found, graph=graph, embedding=embedding, labels=labels, order=order)


def _with_copies(found: FitResult, distinct: Distinct) -> FitResult:
    """Return a result of the different rows as one of all.

    A copy is represented by the row it equals and tied to it alone; copies of a row without ties have none either.
    """
    rows, place = distinct
    graph, embedding = found.graph, found.embedding
    copies = np.setdiff1d(np.arange(len(place)), rows)
    own = place[copies]
    ties = graph.W.max(axis=1).toarray().ravel()[own]
    size = (len(place), len(place))
    W = graph.W.tocoo()
    i, j = np.concatenate([rows[W.row], rows[own], copies]), np.concatenate([rows[W.col], copies, rows[own]])
    joined = sparse.csr_array((np.concatenate([W.data, ties, ties]).astype(W.dtype), (i, j)), shape=size)
    joined.eliminate_zeros()
    C, cells = graph.coefficients, graph.evidence.cells
    if isinstance(C, PermutedFactors):
        C = C._replace(place=C.place[place])
    elif isinstance(C, sparse.sparray):
        known = C.tocoo()
        at = np.concatenate([rows[known.row], rows[own]]), np.concatenate([rows[known.col], copies])
        C = sparse.csc_array((np.concatenate([known.data, np.ones(len(own))]).astype(C.dtype), at), shape=size)
    evidence = graph.evidence._replace(cells=None if cells is None else cells.reordered(rows))
    isolated = np.flatnonzero(np.isin(place, graph.isolated))
    graph = graph._replace(W=joined, coefficients=C, isolated=isolated, evidence=evidence)
    embedding = None if embedding is None else embedding.at(place)
    labels = None if found.labels is None else in_order(found.labels[place])
    return replace(found, graph=graph, embedding=embedding, labels=labels, order=rows[found.order])


def _one_cluster(plan: Plan) -> FitResult:
    """Return one cluster: all samples are equal, and saying anything else would be an invention."""
    n = plan.shape.n
    if plan.n_clusters not in (1, None):
        warn_caller(
            f"all {n} points are equal: 1 cluster found instead of n_clusters={plan.n_clusters}.", ConvergenceWarning
        )
    C = sparse.csc_array((n, n)) if plan.represent is not None else None
    evidence = Evidence(Scaling(), as_kernel("linear"))
    graph = Graph(sparse.csr_array((n, n)), C, 1, np.zeros(0, dtype=np.intp), evidence)
    labels = np.zeros(n, dtype=np.intp)
    return FitResult(plan, graph, np.arange(n), Embedding(np.ones((n, 1)), np.zeros(1)), labels, all_equal=True)
