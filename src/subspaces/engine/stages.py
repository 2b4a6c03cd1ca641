"""The stages from samples to labels, each a pure function; :mod:`subspaces.engine.run` runs them in order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from subspaces.engine.plan import Context, Cut, Plan, Shape, require_dense_points
from subspaces.graphs.affinity import affinity, components, join_components
from subspaces.graphs.rules import build_graph, largest_per_column
from subspaces.kernels import Kernel
from subspaces.kernels.scaling import Scaling, apply_scaling, fit_components, fit_scaling
from subspaces.representation.coefficients import Coefficients, Factors, PermutedFactors, Trace, from_sparse
from subspaces.spectral.assign import cut_embedding
from subspaces.spectral.coarse import coarse_embedding, smooth_labels
from subspaces.spectral.embedding import spectral_embedding, unit_rows
from subspaces.spectral.hierarchy import cut_agglomeratively
from subspaces.spectral.partition import cut_by_modularity, distinct_communities
from subspaces.utils.cells import Cells, build_cells
from subspaces.utils.process import warn_caller
from subspaces.utils.types import Array, Data, Labels, Sparse

_MICRO_CLUSTERS = 2000


class KernelInput(NamedTuple):
    """The samples as the representation sees them; scaling and kernel are settled on them."""

    scaling: Scaling
    kernel: Kernel
    source: Any  #: the scaled samples, their kernel matrix (or half of it) or its feature map


class Evidence(NamedTuple):
    """What is known of the coefficients (:class:`~subspaces.representation.coefficients.Coefficients`) once gone."""

    scaling: Scaling
    kernel: Kernel
    penalty: float | None = None
    condition: float | None = None
    residual: float | None = None
    trace: Trace | None = None
    cells: Cells | None = None  #: of the samples, where the two-scale route was taken


class Graph(NamedTuple):
    """The affinity graph W, sparse (n, n) and symmetric, and the coefficients it is made of."""

    W: Sparse
    coefficients: Sparse | Factors | PermutedFactors | None  #: C (eq. 3.9) truncated, with sign; factors at low rank
    n_components: int  #: before any repair
    isolated: Labels  #: samples without any edge
    evidence: Evidence


class Embedding(NamedTuple):
    """Spectral embedding: a unit row for each sample, or for each micro-cluster where there are `groups`."""

    rows: Array
    eigenvalues: Array  #: of the normalised Laplacian, ascending
    groups: Labels | None = None  #: micro-cluster of each sample

    def at(self, place: Labels) -> Embedding:
        """Return the embedding of samples that stand at these places of the present ones."""
        if self.groups is None:
            return self._replace(rows=self.rows[place])
        return self._replace(groups=self.groups[place])

    def of_points(self, dtype: Any) -> Array:
        """Return a row for each sample."""
        return self.rows if self.groups is None else self.rows[self.groups].astype(dtype)


def scaled(X: Data, plan: Plan) -> tuple[Data, Scaling]:
    """Scale X to the units the method sees; return also what does the same to new samples."""
    if plan.pairwise:
        return X, Scaling()
    scaling = fit_scaling(X, plan.scaling, units=plan.kernel.sees_units)
    scaling = fit_components(X, scaling, plan.n_components, plan.seed)
    return apply_scaling(X, scaling), scaling


def see(points: Data, scaling: Scaling, plan: Plan) -> KernelInput:
    """Return what the representation starts from (K of eq. 3.8, its feature map, or the samples)."""
    kernel = plan.kernel.scaled(scaling.exponent).fit(points)
    if plan.source == "packed":
        return KernelInput(scaling, kernel, kernel.packed_gram(points))
    if plan.source == "gram":
        return KernelInput(scaling, kernel, kernel.gram(points))
    if plan.source == "features":
        return KernelInput(scaling, kernel, kernel.features(points))
    require_dense_points(Shape.of(points))
    return KernelInput(scaling, kernel, points.toarray() if sparse.issparse(points) else np.asarray(points))


def represent(seen: KernelInput, plan: Plan, overwrite: bool) -> tuple[Coefficients | Array | Sparse, Evidence]:
    """Return the coefficients (eq. 3.9), or the affinity of a method that has none, and how they were reached."""
    if plan.represent is None:
        assert plan.affinity is not None
        return plan.affinity(seen.source, seen.scaling.exponent), Evidence(seen.scaling, seen.kernel)
    found = plan.represent(seen.source, Context(seen.kernel, plan.seed, overwrite))
    of_solution = found.penalty, found.condition, found.residual, found.trace, found.cells
    return found, Evidence(seen.scaling, seen.kernel, *of_solution)


def strongest(coefficients: Coefficients, plan: Plan) -> Coefficients:
    """Return the coefficients that take part in graph and joins: all, or the `reserve` largest of each sample."""
    if plan.reserve is None:
        return coefficients
    built = build_graph(coefficients, replace(plan.graph, n_nonzero=plan.reserve), plan.n_clusters)
    return replace(from_sparse(built.treated), signed=built.coefficients)


def graph(found: Coefficients | Array | Sparse, evidence: Evidence, plan: Plan) -> Graph:
    """Build the affinity graph W (eq. 3.11 to 3.13) from coefficients, or from an affinity."""
    if isinstance(found, Coefficients):
        # the η largest of the reserve's entries are those of all coefficients, treated already
        rule = plan.graph if plan.reserve is None else replace(plan.graph, name="column")
        built = build_graph(found, rule, plan.n_clusters)
        W, coefficients = affinity(built.treated), built.coefficients
        if found.signed is not None and plan.graph.name == "symmetric":
            assert plan.graph.n_nonzero is not None
            coefficients = largest_per_column(found.signed, plan.graph.n_nonzero)
    else:
        W, coefficients = sparse.csr_array(found), None
        W.eliminate_zeros()
    n_components, labels = components(W)
    return Graph(W, coefficients, n_components, np.flatnonzero(labels < 0), evidence)


def falls_apart(found: Graph, plan: Plan) -> bool:
    """Return whether a graph has more pieces than clusters and is to be tied; micro-clusters tie them themselves."""
    if plan.cut.method == "agglomerative":  # merges pieces without edges by itself, the smallest last of all
        return False
    connects = plan.connect and plan.represent is not None and (plan.between is None or plan.cut.method == "modularity")
    return connects and plan.n_clusters is not None and found.n_components > plan.n_clusters


def join(found: Graph, coefficients: Coefficients, n_clusters: int) -> Graph:
    """Return the graph with its smallest pieces tied to the rest by their strongest coefficients."""
    W = join_components(found.W, coefficients, n_clusters)
    return found._replace(W=W, isolated=np.flatnonzero(components(W)[1] < 0))


def embed(W: Sparse, n_vectors: int) -> Embedding:
    """Embed W: rows of the leading eigenvectors of its normalised Laplacian, scaled to unit length."""
    n = W.shape[0]
    if n_vectors == 1:  # one cluster needs no eigenvector, nor even an edge
        return Embedding(np.ones((n, 1), dtype=W.dtype), np.zeros(1, dtype=W.dtype))
    if n_vectors == n and W.nnz == 0:  # nor do as many clusters as samples
        return Embedding(np.eye(n, dtype=W.dtype), np.zeros(n, dtype=W.dtype))
    found = spectral_embedding(W, n_vectors)
    if found.n_components > n_vectors:
        warn_caller(
            f"the graph has {found.n_components} connected components, more than the {n_vectors} clusters asked "
            "for: which of them share a label is arbitrary. Use connect=True or a larger n_nonzero."
        )
    return Embedding(unit_rows(found.vectors), found.eigenvalues)


def embed_coarsely(W: Sparse, points: Array, kernel: Kernel, plan: Plan) -> Embedding:
    """Embed about 2000 micro-clusters of the samples (:mod:`subspaces.spectral.coarse`)."""
    assert plan.n_clusters is not None
    assert plan.between is not None
    cells = build_cells(points, size=max(32, len(points) // _MICRO_CLUSTERS), seed=plan.seed)
    groups = cells.labels()
    found = coarse_embedding(W, groups, cells.centroids, plan.n_clusters, plan.between(cells.centroids, kernel))
    return Embedding(found.rows, found.eigenvalues, groups)


def cut(found: Graph, embedding: Embedding | None, plan: Plan, communities: Labels | None = None) -> Labels:
    """Cut the graph or the embedding; a sample without any edge joins the largest cluster.

    `communities` are those of largest modularity (−1: a sample in none), where they are known already.
    """
    n, k, how = plan.shape.n, plan.n_clusters, plan.cut
    if k in (1, n):
        return np.arange(n, dtype=np.intp) * (k == n)
    if embedding is not None and embedding.groups is not None:
        assert k is not None
        labels = cut_rows(embedding.rows, k, how, plan.seed)
        return smooth_labels(found.W, labels[embedding.groups], k)
    connected = np.ones(n, dtype=bool)
    connected[found.isolated] = False
    if embedding is None:
        W = found.W if connected.all() else found.W[connected][:, connected]
        if how.method == "agglomerative":
            assert k is not None
            labels = cut_agglomeratively(W, k, seed=plan.seed)
        else:
            known = None if communities is None else communities[connected]
            labels = cut_by_modularity(W, k, seed=plan.seed, iterations=how.iterations, communities=known)
            labels = distinct_communities(W, labels) if k is None else labels
    else:
        assert k is not None
        labels = cut_rows(embedding.rows[connected], min(k, int(connected.sum())), how, plan.seed)
    out = np.full(n, np.bincount(labels).argmax(), dtype=np.intp)  # of the others nothing is known
    out[connected] = labels
    return out


def cut_rows(Y: Array, n_clusters: int, how: Cut, seed: int) -> Labels:
    """Cut the rows of an embedding."""
    return cut_embedding(Y, n_clusters, method=how.method, n_init=how.n_init, init=how.init, seed=seed)
