"""Graphs and cuts of all settings by the plans of their estimators; kernel matrices and inverses are made once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from subspaces.engine import stages
from subspaces.engine.plan import Plan
from subspaces.engine.run import Cache, run_ordered
from subspaces.engine.stages import Evidence
from subspaces.estimators.ktrr import KTRR
from subspaces.estimators.local import SC
from subspaces.graphs.affinity import components
from subspaces.kernels import Linear
from subspaces.kernels.scaling import Scaling
from subspaces.selection.candidates import NEIGHBORS, Setting, Tried
from subspaces.spectral.partition import cut_by_modularity
from subspaces.utils import memory
from subspaces.utils.blocks import map_blocks
from subspaces.utils.choices import Bandwidth, Ranking
from subspaces.utils.progress import phase
from subspaces.utils.types import Array, Data, Labels, Sparse

LEIDEN_ITERATIONS = 3
"""Leiden iterations of the search; a fit makes 10: 0.002 more modularity in three times the time."""
_NATURAL = 1.5
_PAIR = 12  # bytes of an edge in a graph of all pairs


@dataclass(frozen=True)
class Candidate:
    """One setting up to its graph.

    Attributes
    ----------
    setting : what is tried
    plan : of its estimator, as a fit would run it
    W : affinity graph
    communities : those of largest modularity, −1 for samples without edges; of a graph of all pairs, of which
        modularity makes nothing, its connected components
    n_components : of the graph
    X : the samples, in canonical order
    cache : holds the graph, so that a cut does not compute it again
    """

    setting: Setting
    plan: Plan
    W: Sparse
    communities: Labels
    n_components: int
    X: Data
    cache: Cache

    @property
    def n_effective(self) -> float:
        """How many communities there are, tiny components hardly counted: exp of the entropy of their sizes."""
        sizes = np.bincount(self.communities[self.communities >= 0]).astype(np.float64)
        shares = sizes[sizes > 0] / sizes.sum()
        return float(np.exp(-(shares * np.log(shares)).sum()))

    def alone(self, plan: Plan | None = None) -> Candidate:
        """Return the same without kernel matrices and what else only other graphs, or another `plan`, would need."""
        plan, cache = plan or self.plan, Cache(kernel=0, coefficients=0)
        for stage in ("graph", "reserve", "embedding", "cut"):
            if (found := self.cache.find(plan.key(stage))) is not None:
                cache.put(plan.key(stage), found)
        return replace(self, plan=plan, cache=cache)


@dataclass(frozen=True)
class Method:
    """Parameters that all settings share, beside those of a :class:`Setting`."""

    graph: Literal["symmetric", "column"] = "symmetric"
    by: Ranking = "magnitude"
    bandwidth: float | Bandwidth = "rms"
    kernel_params: Mapping[str, Any] | None = None
    connect: bool = True
    seed: int = 0
    n_clusters: int | None = None
    """For the graphs that need it."""
    n_components: int | None = None
    """Leading components that stand for sparse points, where the fit will take the two-scale route."""


def candidates_of(X: Data, tried: Tried, method: Method, *, find: bool = True) -> list[Candidate]:
    """Graphs of every setting, in their order; kernels side by side on as many threads as OpenMP may use.

    Only those whose communities are to be found can be cut or counted.

    A Cholesky inverse for each penalty (n³ operations) is cheaper than one eigendecomposition (9 n³) and a product
    (n³) for each, as long as there are fewer than nine. In double precision whatever the samples have: in single, the
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
            for candidate in _of_kernel(X, kernels[start], method, find):
                found.append(candidate)
                step()
            step(len(kernels[start]) - len(found))
            return found

        parts = map_blocks(one, [(i, i + 1) for i in range(len(kernels))])
    found = {candidate.setting: candidate for part in parts for candidate in part}
    return [found[setting] for setting in tried.settings if setting in found]


def estimator_of(setting: Setting, method: Method, n_clusters: int | None = None, cut: str = "modularity") -> KTRR | SC:
    """Return the estimator that a setting stands for: its plan is what is judged, and its fit what is delivered."""
    shared: dict[str, Any] = {"n_clusters": n_clusters, "assign_labels": cut, "scaling": setting.scaling}
    if setting.kernel == NEIGHBORS:
        return SC(n_neighbors=setting.n_nonzero, bandwidth="local", **shared)
    return KTRR(
        kernel=setting.kernel,
        bandwidth=method.bandwidth,
        kernel_params=method.kernel_params,
        reg=setting.reg,
        n_nonzero=setting.n_nonzero,
        affine=setting.affine,
        by=method.by,
        graph=setting.graph or method.graph,
        graph_params=dict(setting.graph_params) or None,
        connect=method.connect,
        **shared,
    )


def _of_kernel(X: Data, settings: Sequence[Setting], method: Method, find: bool) -> Iterator[Candidate]:
    """Yield the graphs of the settings with one kernel; none where it has no finite values on these samples."""
    n_inverses = len({(setting.reg, setting.affine) for setting in settings})
    shared = int(any(setting.graph for setting in settings))  # one inverse, several graphs that are no prefixes
    cache = Cache(kernel=int(n_inverses > 1), coefficients=shared)
    for setting in settings:
        plain = setting.kernel == NEIGHBORS
        try:
            k, cut = (method.n_clusters, "kmeans") if setting.graph else (None, "modularity")
            plan = replace(
                estimator_of(setting, method, k, cut)._plan(X),
                reserve=None if plain or setting.graph else _longest(setting, settings),
                n_components=method.n_components,
                seed=method.seed,
            )
            with np.errstate(over="ignore", invalid="ignore"):
                found = run_ordered(plan, X, cache=cache, until="graph").graph
        except ValueError:  # no counts, no finite kernel values, or not invertible: no candidate
            return
        if found.W.nnz and np.isfinite(found.W.data).all():
            own = setting.graph is None and find
            communities = communities_of(found.W, method.seed) if own else components(found.W)[1]
            yield Candidate(setting, plan, found.W, communities, found.n_components, X, cache)


def suitable_cut(candidate: Candidate, n_clusters: int | None, cuts: tuple[str, ...]) -> str:
    """Return modularity where the graph has about as many communities by itself, else k-means on eigenvectors.

    Modularity has a resolution of its own. Near it (up to 1.5 times as many communities as clusters are wanted) it
    misplaces fewer samples than k-means, which splits some clusters and joins others. Far from it communities must be
    merged, and modularity merges them to equal sizes whatever the data says.
    """
    if len(cuts) == 1:
        return cuts[0]
    natural = n_clusters is None or candidate.n_effective <= _NATURAL * n_clusters
    return "modularity" if natural else "kmeans"


def cut(candidate: Candidate, method: str, n_clusters: int | None) -> Labels:
    """Cut a graph as a fit would, with fewer rounds; `n_clusters` None takes the communities of largest modularity."""
    plan = plan_of_cut(candidate.plan, method, n_clusters)
    if method == "modularity":
        plan = replace(plan, cut=replace(plan.cut, iterations=LEIDEN_ITERATIONS))
    candidate.cache.put(plan.key("communities"), candidate.communities)
    labels = run_ordered(plan, candidate.X, cache=candidate.cache).labels
    assert labels is not None
    return labels


def plan_of_cut(plan: Plan, method: str, n_clusters: int | None) -> Plan:
    """Return the plan of a graph with a cut."""
    return replace(plan, n_clusters=n_clusters, cut=replace(plan.cut, method=method))


def recut(W: Sparse, plan: Plan) -> Labels:
    """Cut a part of a graph the same way."""
    found = stages.graph(W, Evidence(Scaling(), Linear()), plan)
    n_connected = W.shape[0] - len(found.isolated)
    n_clusters = None if plan.n_clusters is None else min(plan.n_clusters, n_connected)
    plan = replace(plan, n_clusters=n_clusters, shape=plan.shape._replace(n=W.shape[0]))
    embedding = None
    if plan.cut.method != "modularity":
        assert n_clusters is not None
        embedding = stages.embed(found.W, n_clusters)
    return stages.cut(found, embedding, plan)


def communities_of(W: Sparse, seed: int) -> Labels:
    """Return communities of largest modularity; −1 for samples without edges, which are in none."""
    labels = np.full(W.shape[0], -1, dtype=np.intp)
    connected = np.asarray(W.sum(axis=1)).ravel() > 0
    labels[connected] = cut_by_modularity(part_of(W, connected), seed=seed, iterations=LEIDEN_ITERATIONS)
    return labels


def part_of(W: Sparse, kept: Array) -> Sparse:
    """Return the graph between some of its samples."""
    return W if kept.all() else W[kept][:, kept]


def _longest(setting: Setting, settings: Sequence[Setting]) -> int | None:
    """Return the largest truncation of the same coefficients."""
    own = (setting.reg, setting.affine, setting.graph)
    same = [other for other in settings if (other.reg, other.affine, other.graph) == own]
    sizes = [other.n_nonzero for other in same]
    return None if None in sizes else max(size for size in sizes if size is not None)
