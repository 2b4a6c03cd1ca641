"""Cutting the graphs of a search: by the engine, each graph by the cut that suits it."""

from __future__ import annotations

from dataclasses import replace

from subspaces.engine import stages
from subspaces.engine.plan import Plan
from subspaces.engine.run import FitResult, run_ordered
from subspaces.engine.stages import Evidence
from subspaces.kernels import Linear
from subspaces.kernels.scaling import Scaling
from subspaces.selection.graphs import Candidate
from subspaces.utils.types import Labels, Sparse

N_INIT = 20
"""Starts of k-means, as many as a fit has: what is judged is what will be delivered."""
_NATURAL = 1.5


def suitable_cut(candidate: Candidate, n_clusters: int | None, cuts: tuple[str, ...]) -> str:
    """Modularity where the graph falls into about so many communities by itself, k-means on eigenvectors otherwise.

    Modularity has a resolution of its own. Near it (up to 1.5 times as many communities as clusters are wanted) it
    misplaces fewer points than k-means, which splits some clusters and joins others. Far from it communities must be
    merged, and modularity merges them to equal sizes whatever the data says.
    """
    if len(cuts) == 1:
        return cuts[0]
    natural = n_clusters is None or candidate.n_effective <= _NATURAL * n_clusters
    return "modularity" if natural else "kmeans"


def cut(candidate: Candidate, method: str, n_clusters: int | None) -> Labels:
    """Partition a graph; `n_clusters` None takes the communities of largest modularity as they are."""
    plan = plan_of_cut(candidate.plan, method, n_clusters)
    candidate.cache.put(plan.key("communities"), candidate.communities)
    found: FitResult = run_ordered(plan, candidate.points, cache=candidate.cache)
    assert found.labels is not None
    return found.labels


def plan_of_cut(plan: Plan, method: str, n_clusters: int | None) -> Plan:
    """The plan of a graph, with a cut; modularity takes the graph as it is."""
    how = replace(plan.cut, method=method, n_init=N_INIT)
    return replace(plan, n_clusters=n_clusters, connect=plan.connect and method != "modularity", cut=how)


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
