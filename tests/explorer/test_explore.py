"""What the explorer computes: the estimator's labels, reusing what a moved slider does not change."""

from __future__ import annotations

import csv
import json
import shlex
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_wine

import subspaces.app.explorer.session as session_module
from cli_data import fails, run
from subspaces import KTRR, SC, SubspaceClustering
from subspaces.app.explorer.edits import Edits
from subspaces.app.explorer.saving import labels_file
from subspaces.app.explorer.session import EXPLORED_KERNELS, N_CELLS, Session, Settings
from subspaces.app.explorer.shapes import image_shape_of
from subspaces.engine import stages
from subspaces.engine.plan import STAGES
from subspaces.engine.run import Cache
from subspaces.estimators import ridge as routes
from subspaces.inspection.plots.graph import cells_of
from subspaces.spectral.partition import PARTITIONS


def fitted(session, settings, **more):
    parameters = vars(settings) | {"n_init": session.n_init, "random_state": session.seed} | more
    return KTRR(**parameters).fit(session.X)


# ---------------------------------------------------------------- the same labels as the estimator


@pytest.mark.parametrize("kernel", EXPLORED_KERNELS)
@pytest.mark.parametrize("scaling", [None, "unit"])
def test_same_labels_for_every_kernel(data, kernel, scaling):
    session = Session(data[0])
    settings = Settings(4, kernel=kernel, scaling=scaling)
    for reg in (1.0, 0.1, 1.0):  # there and back again: what is kept must not have been overwritten
        view = session.compute(replace(settings, reg=reg))
        expected = fitted(session, replace(settings, reg=reg))
        np.testing.assert_array_equal(view.labels, expected.labels_)
        np.testing.assert_array_equal(view.model.affinity_matrix_.toarray(), expected.affinity_matrix_.toarray())


@pytest.mark.parametrize("assign_labels", PARTITIONS)
@pytest.mark.parametrize(("n_nonzero", "n_clusters"), [(3, 4), (8, 2), (1, 6)])
def test_same_labels_for_every_cut(data, assign_labels, n_nonzero, n_clusters):
    session = Session(data[0])
    session.compute(Settings(4))
    settings = Settings(n_clusters, n_nonzero=n_nonzero, assign_labels=assign_labels)
    np.testing.assert_array_equal(session.compute(settings).labels, fitted(session, settings).labels_)


def test_exported_line_gives_the_same_labels(data):
    X, _ = data
    session = Session(X, seed=3)
    view = session.compute(Settings(4, kernel="quadratic", scaling="unit", reg=0.01))
    names: dict[str, object] = {"X": X}
    exec(session.python(view), names)
    np.testing.assert_array_equal(names["labels"], view.labels)


def test_exported_line_of_a_sample_says_so(data):
    session = Session(data[0], max_points=50)
    assert "50 sampled rows" in session.python(session.compute(Settings(3)))


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    """The session of ``subspaces explore wine.csv``, and the source of its commands."""
    pytest.importorskip("panel", reason="Panel is not installed: pip install subspaces[explore]")
    import subspaces.app.explorer.server as server

    folder, seen = tmp_path_factory.mktemp("wine"), []
    load_wine(as_frame=True).frame.to_csv(folder / "wine.csv", index=False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(server, "serve", lambda session, source, **_: seen.append((session, source)))
        result = run("explore", folder / "wine.csv", "--label", "target", "--no-browser")
    assert result.exit_code == 0, result.output
    return seen[0]


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"n_clusters": 5},
        {"kernel": "quadratic", "reg": 1 / 3, "scaling": "unit"},
        {"kernel": "neighbors", "assign_labels": "modularity"},
        {"affine": True, "scaling": None, "assign_labels": "cluster_qr"},
    ],
)
def test_the_command_gives_labels_doubts_scores_and_verdict(explored, changed):
    session, source = explored
    view = session.compute(replace(session.first_settings, **changed))
    result = run(*shlex.split(session.command(view, source))[1:-2], "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
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
    names: dict[str, object] = {"X": session.X}
    exec(session.python(view), names)
    np.testing.assert_array_equal(names["labels"], view.labels)


def test_where_no_command_does_it_there_is_none(data):
    session = Session(data[0])
    view = session.compute(Settings(4))
    assert session.command(session.at_level(view, 2), "x.csv") == ""
    assert session.command(session.edited(view, Edits.none(4).merged([0, 1])), "x.csv") == ""
    sample = Session(data[0], max_points=50)
    assert sample.command(sample.compute(Settings(3)), "x.csv") == ""


def test_gaps_can_be_filled(tmp_path, monkeypatch):
    """The advice of the error is an option of the command."""
    pytest.importorskip("panel", reason="Panel is not installed: pip install subspaces[explore]")
    server = pytest.importorskip("subspaces.app.explorer.server")
    seen = []
    monkeypatch.setattr(server, "serve", lambda session, source, **_: seen.append((session, source)))
    frame = load_wine(as_frame=True).data
    frame.iloc[3, 2] = np.nan
    frame.to_csv(tmp_path / "wine.csv", index=False)
    assert "--missing median" in fails("explore", tmp_path / "wine.csv", "--no-browser")
    result = run("explore", tmp_path / "wine.csv", "--no-browser", "--missing", "median")
    assert result.exit_code == 0, result.output
    ((session, source),) = seen
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


def test_the_cache_forgets_the_oldest():
    cache = Cache(kernel=2, cut=0)
    made = []

    def get(key):
        found = cache.find(("kernel", key))
        if found is None:
            made.append(key)
            cache.put(("kernel", key), key)
        return found or key

    for key in "aabaca":  # c pushes b out, not a
        assert get(key) == key
    get("b")
    assert made == ["a", "b", "c", "b"]
    assert cache.keeps("kernel")
    assert cache.keeps("graph")
    assert not cache.keeps("cut")


def test_a_session_keeps_as_many_matrices_as_fit(data, monkeypatch):
    n = len(data[0])
    for squares, kept in ((0, 1), (40, 5), (10**6, 6)):
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
    assert set(view.seconds) >= {*STAGES, "prepare"}


def test_starts_with_the_choice_of_the_front_door(data):
    session = Session(*data, max_points=60)  # the choice is made from all points
    winner = SubspaceClustering().fit(data[0])
    assert session.first_settings == Settings.of(winner.estimator_)
    assert session.first_settings.n_clusters == winner.n_clusters_ == 4
    assert "accuracy" not in Session(data[0]).compute(Settings(4)).quality


def test_settings_of_neighbours_are_those_of_sc(data):
    settings = Settings(4, kernel="neighbors", scaling="unit", n_nonzero=9)
    assert Settings.of(settings.estimator()) == settings
    session = Session(data[0])
    view = session.compute(settings)
    expected = SC(4, n_neighbors=9, bandwidth="local", scaling="unit", n_init=session.n_init).fit(data[0])
    np.testing.assert_array_equal(view.labels, expected.labels_)
    assert session.explain(view, 3).n_representers > 0  # its neighbours
    names: dict[str, object] = {"X": data[0]}
    exec(session.python(view), names)
    np.testing.assert_array_equal(names["labels"], view.labels)


def test_representers_are_the_column(data):
    session = Session(data[0])
    view = session.compute(Settings(4))
    found = session.explain(view, 7)
    column = view.model.coefficients_.toarray()[:, 7]
    np.testing.assert_array_equal(found.coefficients, column[found.points])


def saved_rows(session, view, suffix=".csv"):
    return list(csv.DictReader(labels_file(session, view, suffix).read().decode().splitlines()))


def test_saved_labels_are_as_the_command_line_writes_them(data):
    names = ["=1+1", *(f"point {i}" for i in range(119))]
    session = Session(data[0], ids=names)
    view = session.compute(Settings(4))
    rows = saved_rows(session, view)
    assert [int(row["cluster"]) for row in rows] == view.labels.tolist()
    assert rows[0]["id"] == "'=1+1"  # no spreadsheet computes it
    assert list(rows[5]) == ["id", "cluster", "confidence", "second_cluster", "margin", "fits_nowhere"]
    np.testing.assert_allclose([float(row["confidence"]) for row in rows], view.model.confidence_, atol=1e-6)


def test_saved_labels_of_a_sample_leave_the_others_empty(data):
    session = Session(data[0], max_points=50)
    view = session.compute(Settings(3))
    rows = saved_rows(session, view)
    assert len(rows) == 120
    assert [row["row"] for row in rows if row["cluster"]] == [str(row) for row in session.rows]


def test_workbook_has_the_given_names(data, tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed: pip install subspaces[app]")
    session = Session(data[0])
    view = session.edited(session.compute(Settings(4)), Edits.none(4).renamed(2, "cats"))
    sheet = openpyxl.load_workbook(labels_file(session, view, ".xlsx")).active
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
    again = Session(X, max_points=60)
    np.testing.assert_array_equal(again.rows, session.rows)


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


# ---------------------------------------------------------------- the page, without a browser


def test_square_pictures_are_recognised(rng):
    from sklearn.datasets import load_digits

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
