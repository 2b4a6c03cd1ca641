"""Computations of the explorer: the estimator's labels, reusing what a moved slider does not change."""

from __future__ import annotations

import csv
import shlex
from dataclasses import replace

import numpy as np
import openpyxl
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_wine

import subspaces.app.explorer.session as session_module
from cli_data import fails, found, told
from subspaces import KTRR, SC, SubspaceClustering
from subspaces.app.explorer.session import (
    EXPLORED_KERNELS,
    MOST_LEVELS,
    N_CELLS,
    Edits,
    Session,
    Settings,
    image_shape_of,
)
from subspaces.app.features import vectors_of
from subspaces.engine import ridge_routes as routes
from subspaces.engine import stages
from subspaces.inspection.plots.graph import cells_of
from subspaces.inspection.scorers import modularity, separation
from subspaces.spectral.partition import PARTITIONS

TOPICS = ("apple pear cherry plum orchard juice", "engine piston gearbox brake wheel motor")


def fitted(session, settings):
    return KTRR(**vars(settings), n_init=session.n_init, random_state=session.seed).fit(session.X)


def assert_python_repeats(session, view, X):
    names = {"X": X}
    exec(session.python(view), names)
    np.testing.assert_array_equal(names["labels"], view.labels)


# ---------------------------------------------------------------- the same labels as the estimator


@pytest.mark.parametrize("kernel", EXPLORED_KERNELS)
def test_same_labels_for_every_kernel(data, kernel):
    session = Session(data[0])
    settings = Settings(4, kernel=kernel, scaling="unit")
    for reg in (1.0, 0.1, 1.0):  # there and back again: what is kept must not have been overwritten
        view = session.compute(replace(settings, reg=reg))
        expected = fitted(session, replace(settings, reg=reg))
        np.testing.assert_array_equal(view.labels, expected.labels_)
        np.testing.assert_array_equal(view.model.affinity_matrix_.toarray(), expected.affinity_matrix_.toarray())


@pytest.mark.parametrize("assign_labels", PARTITIONS)
@pytest.mark.parametrize(("n_nonzero", "n_clusters"), [(8, 2), (1, 6)])
def test_same_labels_for_every_cut(data, assign_labels, n_nonzero, n_clusters):
    session = Session(data[0])
    session.compute(Settings(4))
    settings = Settings(n_clusters, n_nonzero=n_nonzero, assign_labels=assign_labels)
    np.testing.assert_array_equal(session.compute(settings).labels, fitted(session, settings).labels_)


def test_exported_lines_give_the_same_labels(data):
    session = Session(data[0], seed=3)
    view = session.compute(Settings(4, kernel="quadratic", scaling="unit", reg=0.01))
    merged = session.edited(view, Edits.none(4).merged([0, 2]))
    for shown in (view, session.at_level(view, 6), merged):
        assert_python_repeats(session, shown, data[0])
    model = session.labelled(merged)
    assert (model.n_clusters_, view.model.n_clusters_) == (3, 4)
    np.testing.assert_array_equal(model.predict(data[0]), merged.labels)


def served(*arguments):
    """The session that ``subspaces explore`` serves, and the source of its commands."""
    pytest.importorskip("panel", reason="Panel is not installed: pip install subspaces[explore]")
    import subspaces.app.explorer.server as server

    seen = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(server, "serve", lambda session, source, **_: seen.append((session, source)))
        told("explore", *arguments, "--no-browser")
    return seen[0]


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    file = tmp_path_factory.mktemp("wine") / "wine.csv"
    load_wine(as_frame=True).frame.to_csv(file, index=False)
    return served(file, "--label", "target")


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"kernel": "quadratic", "reg": 1 / 3, "scaling": "unit"},
        {"kernel": "neighbors", "assign_labels": "modularity"},
        {"affine": True, "scaling": None, "assign_labels": "cluster_qr"},
    ],
)
def test_the_command_gives_labels_doubts_scores_and_verdict(explored, changed):
    session, source = explored
    view = session.compute(replace(session.first_settings, **changed))
    document = found(*shlex.split(session.command(view, source))[1:-2])
    assert document["cluster"] == view.labels.tolist()
    assert document["confidence"] == view.confidence.tolist()
    assert document["verdict"] == view.verdict
    assert document["scores"]["accuracy"] == view.quality["accuracy"]


def test_the_page_begins_as_the_command_line_with_nothing_set(explored):
    session, source = explored
    view = session.compute(session.first_settings)
    model = SubspaceClustering().fit(session.X)
    np.testing.assert_array_equal(view.labels, model.labels_)
    assert view.verdict == model.verdict_
    assert session.command(view, source) == f"subspaces cluster {source} --seed 0 -o labels.csv"
    assert_python_repeats(session, view, session.X)


def test_where_no_command_does_it_there_is_none(data):
    session = Session(data[0])
    view = session.compute(Settings(4))
    assert session.command(session.at_level(view, 2), "x.csv") == ""
    assert session.command(session.edited(view, Edits.none(4).merged([0, 1])), "x.csv") == ""
    subset = Session(data[0], max_points=50)
    assert subset.command(subset.compute(Settings(3)), "x.csv") == ""
    assert "50 sampled rows" in subset.python(subset.compute(Settings(3)))


def test_gaps_can_be_filled(tmp_path):
    """The advice of the error is an option of the command."""
    frame = load_wine(as_frame=True).data
    frame.iloc[3, 2] = np.nan
    frame.to_csv(tmp_path / "wine.csv", index=False)
    session, source = served(tmp_path / "wine.csv", "--missing", "median")
    assert "--missing median" in fails("explore", tmp_path / "wine.csv", "--no-browser")
    assert session.X[3, 2] == frame.iloc[:, 2].median()
    assert source.endswith("--missing median")


# ---------------------------------------------------------------- what is kept


def test_only_what_changed_is_computed(data, monkeypatch):
    calls: list[str] = []
    ridge, see = routes.ridge, stages.see
    monkeypatch.setattr(routes, "ridge", lambda *args, **kw: calls.append("ridge") or ridge(*args, **kw))
    monkeypatch.setattr(stages, "see", lambda *args: calls.append("kernel") or see(*args))
    session = Session(data[0])
    settings = Settings(4)
    for changed in ({}, {"n_nonzero": 3}, {"n_clusters": 5}, {"assign_labels": "cluster_qr"}):
        session.compute(replace(settings, **changed))
    assert calls == ["kernel", "ridge"]
    session.compute(replace(settings, reg=0.3))
    assert calls == ["kernel", "ridge", "ridge"]
    session.compute(settings)
    assert len(calls) == 3
    session.compute(replace(settings, kernel="exponential"))
    assert calls[3:] == ["kernel", "ridge"]


def test_a_session_keeps_as_many_matrices_as_fit(data, monkeypatch):
    n = len(data[0])
    for squares, kept in ((0, 1), (40, 5)):
        monkeypatch.setattr(session_module, "available_bytes", lambda squares=squares: squares * 8 * n**2)
        session, made = Session(data[0]), []
        see = stages.see
        with monkeypatch.context() as patched:
            patched.setattr(stages, "see", lambda *args, see=see, made=made: made.append(1) or see(*args))
            for _ in range(2):
                for kernel in EXPLORED_KERNELS[:kept]:
                    session.compute(Settings(4, kernel=kernel))
            assert len(made) == kept
            for kernel in EXPLORED_KERNELS[: kept + 1]:
                session.compute(Settings(4, kernel=kernel, reg=0.3))
        assert len(made) > kept


def test_callers_arrays_stay_as_they_are(data):
    X = data[0].copy()
    session = Session(X)
    session.compute(Settings(4))
    session.compute(Settings(4, scaling="standard", kernel="linear"))
    np.testing.assert_array_equal(X, data[0])


# ---------------------------------------------------------------- what is shown


def test_view_is_of_one_piece(data):
    X, y = data
    session = Session(X, y, settings=Settings(4))
    view = session.compute(session.first_settings)
    assert view.confidence.shape == (len(X),)
    assert ((view.confidence > 0) & (view.confidence <= 1)).all()
    assert view.sizes.sum() == len(X)
    assert view.points.shape == (len(X), 2)
    assert view.centres.shape == (4, 2)
    np.testing.assert_array_equal(view.cells, cells_of(view.model.affinity_matrix_, view.labels, N_CELLS))
    for cluster, members in enumerate(view.members):
        assert (view.labels[members] == cluster).all()
    assert set(view.quality) == {"separation", "modularity", "components", "accuracy", "nmi"}
    assert view.quality["separation"] == separation(view.model, None)
    assert view.quality["modularity"] == modularity(view.model, None)


def test_settings_of_neighbours_are_those_of_sc(data):
    settings = Settings(4, kernel="neighbors", scaling="unit", n_nonzero=9)
    assert Settings.of(settings.estimator()) == settings
    session = Session(data[0])
    view = session.compute(settings)
    expected = SC(4, n_neighbors=9, bandwidth="local", scaling="unit", n_init=session.n_init).fit(data[0])
    np.testing.assert_array_equal(view.labels, expected.labels_)
    why = session.explain(view, 3)  # its neighbours
    np.testing.assert_array_equal(why.coefficients, view.model.affinity_matrix_.toarray()[why.points, 3])
    assert_python_repeats(session, view, data[0])


def saved_rows(session, view):
    return list(csv.DictReader(session.labels_file(view).read().decode().splitlines()))


def test_saved_labels_are_as_the_command_line_writes_them(data):
    names = ["=1+1", *(f"point {i}" for i in range(119))]
    session = Session(data[0], ids=names)
    view = session.compute(Settings(4))
    rows = saved_rows(session, view)
    assert [int(row["cluster"]) for row in rows] == view.labels.tolist()
    assert rows[0]["id"] == "'=1+1"  # no spreadsheet computes it
    assert list(rows[5]) == ["id", "cluster", "confidence", "second_cluster", "margin", "fits_nowhere"]
    np.testing.assert_allclose([float(row["confidence"]) for row in rows], view.model.confidence_, atol=1e-6)


def test_workbook_has_the_given_names(data):
    session = Session(data[0])
    view = session.edited(session.compute(Settings(4)), Edits.none(4).renamed(2, "cats"))
    sheet = openpyxl.load_workbook(session.labels_file(view, ".xlsx")).active
    rows = list(sheet.iter_rows(values_only=True))
    assert rows[0][:3] == ("row", "cluster", "name")
    assert {row[1]: row[2] for row in rows[1:]}[2] == "cats"


def test_more_points_than_the_page_can_follow(data):
    X, y = data
    session = Session(X, y, ids=[f"p{i}" for i in range(120)], max_points=60)
    assert session.X.shape == (60, 12)
    np.testing.assert_array_equal(session.X, X[session.rows])
    np.testing.assert_array_equal(session.y, y[session.rows])
    assert session.ids == [f"p{i}" for i in session.rows]
    np.testing.assert_array_equal(Session(X, max_points=60).rows, session.rows)
    rows = saved_rows(session, session.compute(Settings(3)))
    assert len(rows) == 120
    assert [row["id"] for row in rows if row["cluster"]] == session.ids


def test_warnings_come_with_the_view(data):
    twice = np.vstack([data[0], data[0] * (1 + 1e-14)])  # a singular kernel matrix
    view = Session(twice).compute(Settings(4, reg=1e-17))
    assert any("λ" in message for message in view.messages)


def test_sparse_points(data):
    X = np.where(np.abs(data[0]) < 0.1, 0, data[0])
    view = Session(sparse.csr_array(X)).compute(Settings(4))
    np.testing.assert_array_equal(view.labels, Session(X).compute(Settings(4)).labels)


def test_wrong_arguments(data):
    with pytest.raises(ValueError, match="y must have one entry for each of the 120 points; got 3"):
        Session(data[0], [1, 2, 3])
    with pytest.raises(ValueError, match="image_shape"):
        Session(data[0], image_shape=(5, 5))


# ---------------------------------------------------------------- images, texts, levels


def test_square_pictures_are_recognised(rng):
    digits = load_digits().data[:200]
    assert Session(digits).image_shape == (8, 8)
    assert Session(digits, image_shape=(4, 16)).image_shape == (4, 16)
    colors = np.repeat(digits[:, :, None], 3, axis=2).reshape(200, -1)
    assert image_shape_of(colors) == (8, 8, 3)
    at = np.linspace(0, 1, 64)
    curves = np.exp(-np.square((at - rng.uniform(0, 1, (200, 1))) / 0.1))  # spectra: as wide as 8 x 8 pixels
    walks = np.cumsum(rng.normal(size=(200, 64)), axis=1)
    for other in (curves, walks, rng.normal(size=(200, 64)), digits[:, rng.permutation(64)], sparse.csr_array(digits)):
        assert image_shape_of(other) is None


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
        np.testing.assert_array_equal(view.cells, cells_of(view.model.affinity_matrix_, view.labels, N_CELLS))
    same = session.at_level(session.at_level(fit, 2), 4)
    assert same.quality == fit.quality


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


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    return [f"\n<b>no {i}</b> " + " ".join(rng.choice(TOPICS[i % 2].split(), 9)) + "\nmore" for i in range(60)]


@pytest.fixture(scope="module")
def written(texts):
    return Session(vectors_of(texts, "tfidf"), texts=texts, settings=Settings(2))


def test_words_follow_the_clusters(written, texts):
    view = written.compute(Settings(2))
    for words in view.words:
        assert any(set(words) <= {*topic.split(), "more"} for topic in TOPICS)
    assert {len(words) for words in written.at_level(view, 1).words} == {8}
    assert written.first_lines[3] == " ".join(texts[3].splitlines()[1].split())
    assert len(Session(vectors_of(texts, "tfidf"), texts=texts, max_points=40).texts) == 40
    with pytest.raises(ValueError, match="texts must have one entry"):
        Session(np.eye(60), texts=texts[:-1])


def test_doubtful_are_those_of_little_confidence(written):
    view = written.compute(Settings(4))
    for cluster, rows in enumerate(view.doubtful):
        own = np.flatnonzero((view.labels == cluster) & (view.confidence < 0.5))
        assert len(rows) == min(3, len(own))
        assert set(rows) <= set(own)
        assert np.all(np.diff(view.confidence[rows]) >= 0)
