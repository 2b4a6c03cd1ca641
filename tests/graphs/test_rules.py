"""One choice of graph for every method: each builder is what it says, with its own parameters only."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from method_data import union_of_subspaces
from subspaces import KTRR, LRR2, SSC
from subspaces.graphs.affinity import affinity
from subspaces.graphs.rules import GRAPHS, build_graph
from subspaces.representation.coefficients import from_dense
from subspaces.representation.ridge import ridge


@pytest.fixture
def C(seed):
    X, _ = union_of_subspaces(seed)
    return ridge(X @ X.T, reg=0.1).columns(0, len(X)).T


def test_mass_keeps_the_share_and_scales_columns(C):
    T = build_graph(from_dense(C), "mass", params={"share": 0.8}).toarray()
    A = np.abs(C)
    for i in range(A.shape[1]):
        order = np.argsort(-A[:, i], kind="stable")
        n_kept = int(np.searchsorted(np.cumsum(A[order, i]), 0.8 * A[:, i].sum())) + 1
        expected = np.zeros(len(A))
        expected[order[:n_kept]] = A[order[:n_kept], i] / A[:, i].max()
        assert_allclose(np.abs(T[:, i]), expected, rtol=1e-12)


def test_row_space_is_the_published_affinity(C):
    W = affinity(build_graph(from_dense(C), "row_space")).toarray()
    U, s, _ = np.linalg.svd(C)
    U, s = U[:, s > 1e-4 * s[0]], s[s > 1e-4 * s[0]]
    M = U * np.sqrt(s)
    M /= np.linalg.norm(M, axis=1, keepdims=True)
    expected = (M @ M.T) ** 4
    np.fill_diagonal(expected, 0)
    assert_allclose(W, expected, atol=1e-8)


@pytest.mark.parametrize("graph", GRAPHS)
def test_affinity_is_symmetric_non_negative_and_hollow(graph, C):
    W = affinity(build_graph(from_dense(C), graph, n_nonzero=5, n_clusters=3, params=_dimension(graph)))
    assert abs(W - W.T).max() < 1e-12
    assert W.data.min() > 0
    assert W.diagonal().max() == 0


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("cls", [KTRR, SSC, LRR2])
def test_any_method_with_any_graph(cls, graph, seed):
    from subspaces.metrics import accuracy

    X, y = union_of_subspaces(seed)
    model = cls(3, graph=graph, n_nonzero=8, graph_params=_dimension(graph)).fit(X)
    assert accuracy(y, model.labels_) > 0.9


def test_parameters_of_another_graph_are_refused(C):
    with pytest.raises(ValueError, match=r"graph_params of graph='column' may hold nothing; got \['share'\]"):
        build_graph(from_dense(C), "column", params={"share": 0.5})
    with pytest.raises(ValueError, match=r"dscnet.* needs n_clusters"):
        build_graph(from_dense(C), "dscnet")


def _dimension(graph):
    return {"subspace_dim": 3} if graph == "dscnet" else None
