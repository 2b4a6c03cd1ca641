"""The explorer's slider through the tree: the model's own levels, at once, and back to the fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from subspaces.app.explorer.session import MOST_LEVELS, N_CELLS, Session, Settings
from subspaces.datasets import make_subspaces
from subspaces.inspection.plots.graph import cells_of
from subspaces.inspection.scorers import modularity, separation


@pytest.fixture(scope="module")
def data():
    return make_subspaces(4, 2, 12, 30, noise=0.05, random_state=0)


@pytest.fixture
def explorer(data):
    pytest.importorskip("panel", reason="Panel is not installed: pip install subspaces[explore]")
    from subspaces.app.explorer.app import Explorer

    return Explorer(Session(*data, image_shape=(3, 4), settings=Settings(4)))


def test_levels_are_those_of_the_model_without_another_fit(data, monkeypatch):
    session = Session(*data)
    fit = session.compute(Settings(4))
    monkeypatch.setattr(session, "_fit", lambda *_, **__: pytest.fail("fitted again"))
    assert fit.level is None
    assert 4 < fit.n_levels <= MOST_LEVELS
    for k in range(1, fit.n_levels + 1):
        view = session.at_level(fit, k)
        np.testing.assert_array_equal(view.labels, fit.model.labels_at(k))
        assert (view.level, len(view.sizes), len(view.members), len(view.centres)) == (k, k, k, k)
        assert view.points is fit.points  # nothing moves
        assert (view.labels[[np.flatnonzero((fit.points == c).all(axis=1))[0] for c in view.centres]] == range(k)).all()
        for cluster, members in enumerate(view.members):
            assert (view.labels[members] == cluster).all()
        np.testing.assert_array_equal(view.cells, cells_of(view.model.affinity_matrix_, view.labels, N_CELLS))
    same = session.at_level(session.at_level(fit, 2), 4)
    assert same.quality == fit.quality


def test_quality_is_that_of_the_scorers(data):
    view = Session(data[0]).compute(Settings(4))
    assert view.quality["separation"] == separation(view.model, None)
    assert view.quality["modularity"] == modularity(view.model, None)


def test_exported_lines_give_the_level(data):
    session = Session(data[0])
    view = session.at_level(session.compute(Settings(4)), 6)
    names: dict[str, object] = {"X": data[0]}
    exec(session.python(view), names)
    np.testing.assert_array_equal(names["labels"], view.labels)


def test_representers_have_the_clusters_that_are_shown(data):
    session = Session(data[0])
    view = session.at_level(session.compute(Settings(4)), 1)
    assert set(session.explain(view, 7).labels) == {0}


def test_tests_come_with_the_models_tree(data):
    session = Session(data[0])
    fit = session.compute(Settings(4))
    tree = replace(fit.tree, p_value=np.linspace(0, 1, len(fit.tree.merges)))
    fit.model._tree = tree
    tested = session.tested(session.at_level(fit, 3))
    assert not fit.is_tested
    assert tested.is_tested
    assert tested.tree is tree
    assert session.at_level(tested, 5).is_tested  # and stays so
    fit.model._tree = replace(tree, merges=tree.merges[::-1])  # of another graph
    assert session.tested(fit).tree is fit.tree


def test_level_slider_moves_the_page_and_others_bring_it_back(explorer):
    fit = explorer.current
    assert explorer.level.value == 4
    assert explorer.level.end == fit.n_levels
    assert "The clusters of the fit" in explorer.level_note.object
    explorer.map.points.selected.indices = [0]
    explorer.level.value = 7
    assert explorer.current.level == 7
    assert explorer.current.model is fit.model
    assert explorer.gallery.object.count('class="card"') == 7
    assert explorer.map.points.data["label"].tolist() == fit.model.labels_at(7).tolist()
    assert "<b>Level 7</b>" in explorer.level_note.object
    assert "stand out" not in explorer.level_note.object  # nobody tested that
    assert "7 groups, as asked" in explorer.quality.object
    assert "labels_at(7)" in explorer.code.object
    explorer.level.value = 1
    assert "1 cluster<" in explorer.quality.object
    assert "all points together" in explorer.level_note.object
    explorer.widgets["n_nonzero"].value = 7
    assert explorer.current.level is None
    assert explorer.level.value == len(explorer.current.sizes) == 4
    np.testing.assert_array_equal(explorer.current.labels, explorer.current.model.labels_)


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.0004, "p &lt; 0.001, real."), (0.3, "p 0.30, may be chance."), (float("nan"), "not tested.")],
)
def test_level_note_tells_the_p_value(explorer, p, text):
    tree = explorer.current.tree
    explorer.current.model._tree = replace(tree, p_value=np.full(len(tree.merges), p))
    assert "testing" not in explorer.level_note.object
    explorer.level.value = 3
    assert text in explorer.level_note.object


def test_page_does_without_p_values(explorer, monkeypatch):
    def fail(view):
        raise MemoryError("no room")

    monkeypatch.setattr(explorer.session, "tested", fail)
    explorer.level.value = 5
    assert "not tested." in explorer.level_note.object
    assert explorer.current.is_tested  # and is not tried again


def test_tests_that_come_late_change_nothing(explorer):
    old = explorer.session.at_level(explorer.current, 2)
    explorer.widgets["n_clusters"].value = 5
    shown = explorer.current
    explorer._note(old, explorer._tested(old))
    assert explorer.current is shown
    assert not explorer._tested(old).is_tested  # its model is gone, so nothing was computed
