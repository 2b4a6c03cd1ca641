"""Cutting the graphs of a search: by the engine, with fewer k-means starts and Leiden iterations than a fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from subspaces.engine import stages
from subspaces.engine.plan import Plan
from subspaces.engine.run import Cache, Journey, run_ordered
from subspaces.engine.stages import Evidence
from subspaces.kernels import Linear
from subspaces.numerics.types import Array, Data, Labels, Sparse
from subspaces.scaling import Scaling
from subspaces.selection.graphs import Candidate


def cut(candidate: Candidate, X: Data, method: str, n_clusters: int | None, cache: Cache) -> tuple[Labels, Array]:
    """Partition a graph; also the eigenvalues that were needed for it (none for modularity).

    `n_clusters` None takes the communities of largest modularity as they are.
    """
    plan = plan_of_cut(candidate.plan, method, n_clusters)
    cache.put(plan.key("communities"), candidate.communities)
    found: Journey = run_ordered(plan, X, cache=cache)
    assert found.labels is not None
    return found.labels, np.zeros(0) if found.embedding is None else found.embedding.eigenvalues


def plan_of_cut(plan: Plan, method: str, n_clusters: int | None) -> Plan:
    """The plan of a graph, with a cut; modularity takes the graph as it is, spectral cuts one more eigenvalue."""
    modularity = method == "modularity"
    how = replace(plan.cut, method=method, n_more=0 if modularity else 1)
    return replace(plan, n_clusters=n_clusters, connect=plan.connect and not modularity, cut=how)


def recut(W: Sparse, plan: Plan) -> Labels:
    """Cut a part of a graph the same way."""
    found = stages.graph(W, Evidence(Scaling(), Linear()), plan)
    n_connected = W.shape[0] - len(found.isolated)
    n_clusters = None if plan.n_clusters is None else min(plan.n_clusters, n_connected)
    plan = replace(plan, n_clusters=n_clusters, shape=plan.shape._replace(n=W.shape[0]))
    embedding = None
    if plan.cut.method != "modularity":
        assert n_clusters is not None
        embedding = stages.embed(found.W, n_clusters, plan.cut.n_more)
    return stages.cut(found, embedding, plan)
