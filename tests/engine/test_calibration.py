"""Confidence as a probability: between 0 and 1, not sure of noise or of few points, memberships that sum to one."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from method_data import METHODS
from subspaces import KTRR, LRR1, SubspaceClustering
from subspaces.datasets import make_subspaces
from subspaces.engine.confidence import (
    FEW,
    graph_features,
    memberships,
    probability_right,
    search_features,
    soft_memberships,
    summarize,
    walk_ends,
)
from subspaces.spectral.hierarchy import cluster_tree


@pytest.fixture(scope="module")
def data():
    return make_subspaces(3, 2, 12, 40, noise=0.01, random_state=0)


def test_clear_clusters_are_sure_and_noise_is_not(data, rng):
    clear = SubspaceClustering(3).fit(data[0]).confidence_
    noise = SubspaceClustering(3).fit(rng.random((120, 2))).confidence_
    assert np.median(clear) > 0.85
    assert np.median(noise) < np.median(clear) - 0.1
    assert noise.max() < 0.9


def test_three_points_are_never_certain(rng):
    for model in (SubspaceClustering(), KTRR(3), KTRR(2)):
        assert model.fit(rng.random((3, 50))).confidence_.max() < 0.8


def test_few_points_draw_the_confidence_to_one_half():
    features = np.tile([1.0, 1.0, 1.0, 0.0, 1.0], (2, 1))
    few, many = probability_right(features, np.array([FEW, 10**9]))
    assert few - 0.5 == pytest.approx((many - 0.5) * (1 - np.exp(-1)))


def test_the_search_confirms(data):
    model = SubspaceClustering(3).fit(data[0])
    W, codes = model.affinity_matrix_, model.labels_
    by_graph = graph_features(W, codes, memberships(W, codes), cluster_tree(W, codes))
    agreement = model._agreement()
    both = search_features(by_graph, agreement)
    assert both.shape == (120, 8)
    np.testing.assert_allclose(probability_right(both, np.bincount(codes)[codes]), model.confidence_)
    doubted = search_features(by_graph, agreement._replace(consensus=np.zeros(120), agreement=0.0, stability=np.nan))
    assert (probability_right(doubted, np.bincount(codes)[codes]) < model.confidence_).all()


@pytest.mark.parametrize("name", METHODS)
def test_every_graph_has_confidence_and_memberships(name, data):
    model = METHODS[name](3).fit(data[0])
    if not hasattr(model, "affinity_matrix_"):
        assert not hasattr(model, "confidence_")
        return
    sure, shares = model.confidence_, model.membership_
    assert ((sure >= 0) & (sure <= 1)).all()
    assert shares.shape == (120, model.n_clusters_)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(shares.argmax(axis=1), model.labels_)
    np.testing.assert_allclose(summarize(model).confidence, sure)
    new = model.predict_membership(data[0][::7] + 1e-3)
    np.testing.assert_allclose(new.sum(axis=1), 1)
    assert (new.argmax(axis=1) == model.predict(data[0][::7] + 1e-3)).mean() > 0.8
    assert model.outliers_.dtype == bool
    assert "group" in model.verdict_


def test_no_cluster_is_given_more_than_the_own_one(rng):
    walks, codes = rng.dirichlet(np.full(5, 0.3), 200), rng.integers(0, 5, 200)
    confidence = rng.random(200)
    shares = soft_memberships(walks, codes, confidence)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (shares[np.arange(200), codes] >= shares.max(axis=1) - 1e-9).all()
    assert (soft_memberships(np.ones((4, 1)), np.zeros(4, dtype=int), np.full(4, 0.7)) == 1).all()


def test_walks_end_somewhere(data):
    model = KTRR(3).fit(data[0])
    np.testing.assert_allclose(walk_ends(model.affinity_matrix_, model.labels_).sum(axis=1), 1)


def test_what_can_be_made_again_is_not_saved(data):
    model = SubspaceClustering(3).fit(data[0])
    sure, p_value = model.confidence_, model.tree_.p_value
    again = pickle.loads(pickle.dumps(model))
    assert not {"_tree", "_levels", "_confidence"} & set(vars(again))
    np.testing.assert_array_equal(again.confidence_, sure)
    np.testing.assert_allclose(again.tree_.p_value, p_value)
    for model, name in ((LRR1(3), "coefficients_"), (KTRR(3, assign_labels="modularity"), "embedding_")):
        size = len(pickle.dumps(model.fit(data[0])))
        assert getattr(model, name) is getattr(model, name)
        assert len(pickle.dumps(model)) == size
        other = model.with_labels(model.labels_)
        assert getattr(other, name) is not getattr(model, name)


def test_many_points_are_sampled(data, monkeypatch):
    from subspaces.selection import search

    monkeypatch.setattr(search, "N_SEARCHED", 60)
    model = SubspaceClustering(3).fit(data[0])
    assert len(model.selection_.consensus) == 60
    assert np.isfinite(model.confidence_).all()
