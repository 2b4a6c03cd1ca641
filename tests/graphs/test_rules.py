"""One choice of graph for every method: each builder is what it says, with its own parameters only."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from method_data import union_of_subspaces
from subspaces import KTRR, LRR2, SSC
from subspaces.graphs.affinity import affinity
from subspaces.graphs.rules import GRAPHS, GraphRule, build_graph
from subspaces.representation.coefficients import from_dense
from subspaces.representation.ridge import ridge


@pytest.fixture
def C(seed):
    X, _ = union_of_subspaces(seed)
    return ridge(X @ X.T, reg=0.1).columns(0, len(X)).T


@pytest.mark.parametrize("graph", GRAPHS)
def test_affinity_is_symmetric_non_negative_and_hollow(graph, C):
    W = affinity(build_graph(from_dense(C), GraphRule(graph, 5, params=_dimension(graph)), 3).treated)
    assert abs(W - W.T).max() < 1e-12
    assert W.data.min() > 0
    assert W.diagonal().max() == 0


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("cls", [KTRR, SSC, LRR2])
def test_any_method_with_any_graph(cls, graph, seed):
    from subspaces.metrics import accuracy

    X, y = union_of_subspaces(seed)
    kept = {"n_nonzero": 8} if graph in ("column", "symmetric") and not hasattr(cls, "n_nonzero") else {}
    own = {"n_nonzero": 8} if hasattr(cls, "n_nonzero") else {}
    model = cls(3, graph=graph, **own, graph_params={**_dimension(graph), **kept}).fit(X)
    assert accuracy(y, model.labels_) > 0.9


def test_unit_scales_columns_to_length_one(C):
    C[:, 4] = 0
    found = build_graph(from_dense(C), GraphRule("unit"))
    lengths = np.linalg.norm(C, axis=0)
    assert_allclose(found.treated.toarray(), C / np.where(lengths > 0, lengths, 1), rtol=1e-12)
    assert_allclose(found.coefficients.toarray(), C)


@pytest.mark.parametrize("share", [None, 0.5])
def test_larger_takes_the_larger_of_both_directions(C, share):
    found = build_graph(from_dense(C), GraphRule("larger", params={} if share is None else {"share": share}))
    kept = build_graph(from_dense(C), GraphRule("mass", params={"share": share or 0.95})).coefficients.toarray()
    assert_allclose(found.coefficients.toarray(), kept)
    assert_allclose(affinity(found.treated).toarray(), np.maximum(np.abs(kept), np.abs(kept).T), rtol=1e-12)


@pytest.mark.parametrize("graph", GRAPHS)
def test_what_is_kept_of_the_coefficients_are_entries_of_c(graph, C):
    kept = build_graph(from_dense(C), GraphRule(graph, 5, params=_dimension(graph)), 3).coefficients.toarray()
    assert np.array_equal(kept[kept != 0], C[kept != 0])
    if graph in ("column", "symmetric", "row_space", "dscnet"):
        assert (np.count_nonzero(kept, axis=0) == 5).all()
        least = np.where(kept != 0, np.abs(kept), np.inf).min(axis=0)
        assert (np.where(kept != 0, 0, np.abs(C)).max(axis=0) <= least).all()


def test_graphs_that_join_all_pairs_keep_no_coefficients_without_a_number(C):
    assert build_graph(from_dense(C), GraphRule("row_space")).coefficients is None
    assert build_graph(from_dense(C), GraphRule("dscnet"), 3).coefficients is None


def test_parameters_that_make_no_sense_are_refused():
    for name, options, word in (
        ("column", {"n_nonzero": 0}, "n_nonzero"),
        ("column", {"n_nonzero": 2.5}, "n_nonzero"),
        ("column", {"n_nonzero": 5, "by": "size"}, "by must be one of"),
        ("mass", {"params": {"share": 7}}, "share"),
        ("larger", {"params": {"share": 0}}, "share"),
        ("row_space", {"params": {"power": "two"}}, "power"),
    ):
        with pytest.raises(ValueError, match=word):
            GraphRule(name, **options)


def test_parameters_of_another_graph_are_refused(C):
    with pytest.raises(ValueError, match=r"graph_params of graph='column' may hold nothing; got \['share'\]"):
        GraphRule("column", params={"share": 0.5})
    with pytest.raises(ValueError, match=r"dscnet.* needs n_clusters"):
        build_graph(from_dense(C), GraphRule("dscnet"))


def _dimension(graph):
    return {"subspace_dim": 3} if graph == "dscnet" else {}
