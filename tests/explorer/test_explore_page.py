"""The page of the explorer: widgets, edits, saving, the report, looks."""

from __future__ import annotations

import numpy as np
import pytest

from subspaces.app.explorer.edits import Edits
from subspaces.app.explorer.saving import labels_file
from subspaces.app.explorer.session import Session, Settings

NO_PANEL = "Panel is not installed: pip install subspaces[explore]"


@pytest.fixture
def explorer(data):
    pytest.importorskip("panel", reason=NO_PANEL)
    from subspaces.app.explorer.app import Explorer

    ids = ["<img src=x onerror=alert(1)>", *(f"p{i}" for i in range(119))]
    return Explorer(Session(*data, ids=ids, image_shape=(3, 4), settings=Settings(4)))


def test_widgets_move_the_page(explorer):
    before = explorer.current
    explorer.widgets["n_clusters"].value = 6
    assert len(explorer.current.sizes) == 6
    assert "6 clusters" in explorer.quality.object
    assert "6 groups, as asked" in explorer.quality.object
    assert explorer.gallery.object.count('class="card"') == 6
    assert explorer.map.points.data["label"].tolist() == explorer.current.labels.tolist()
    assert len(explorer.graph.frames.data["start"]) == 6
    assert explorer.current is not before
    explorer.widgets["scaling"].value = "unit"
    assert explorer.current.settings.scaling == "unit"
    assert "scaling=&#x27;unit&#x27;" in explorer.code.object


def test_click_shows_representers(explorer):
    explorer.map.points.selected.indices = [0]
    found = explorer.session.explain(explorer.current, 0)
    assert explorer.detail.object.count("<tr>") == len(found.points)
    assert len(explorer.map.links.data["x1"]) == len(found.points)
    assert "&lt;img src=x onerror" in explorer.detail.object
    assert "<img src=x" not in explorer.detail.object + explorer.gallery.object
    explorer.widgets["n_nonzero"].value = 2  # the point stays chosen
    assert len(explorer.map.links.data["x1"]) == len(explorer.session.explain(explorer.current, 0).points)


def test_choice_moves_the_widgets(explorer):
    chosen = Settings(5, kernel="cubic", scaling=None, reg=0.123, n_nonzero=9, assign_labels="modularity")
    explorer._take(chosen)
    assert explorer.settings == chosen
    assert explorer.current.settings == chosen


def test_what_cannot_be_computed_is_said(explorer, monkeypatch):
    def fail(settings):
        raise ValueError("no <b>such</b> thing")

    monkeypatch.setattr(explorer.session, "compute", fail)
    explorer.widgets["n_clusters"].value = 3
    assert "no &lt;b&gt;such" in explorer.quality.object


def test_choice_that_fails_is_said_and_can_be_made_again(explorer, monkeypatch):
    def fail():
        raise ValueError("too <few> points")

    monkeypatch.setattr(explorer.session, "choose", fail)
    explorer.choose.clicks += 1
    assert "too &lt;few&gt; points" in explorer.quality.object
    assert not explorer.choose.disabled
    assert explorer.choose.label == "Choose for me"
    monkeypatch.setattr(explorer.session, "choose", lambda: Settings(5, n_nonzero=9))
    explorer.choose.clicks += 1
    assert explorer.settings == Settings(5, n_nonzero=9)


def test_points_that_are_no_images(data):
    pytest.importorskip("panel", reason=NO_PANEL)
    import subspaces

    page = subspaces.explore(data[0])
    assert type(page).__name__ == "Column"
    from subspaces.app.explorer.app import Explorer

    explorer = Explorer(Session(data[0], settings=Settings(4)))
    assert explorer.gallery.object.count("<svg") == len(explorer.current.sizes)
    assert "thumb" not in explorer.map.points.data
    assert callable(subspaces.explore)  # still the function, after its modules were imported


def test_labels_are_saved(explorer):
    saved = explorer._labels(".csv").read()
    assert saved == labels_file(explorer.session, explorer.current).read()
    assert saved.startswith(b"id,cluster,confidence")


# ---------------------------------------------------------------- names, mergers, pictures, looks


def test_clusters_are_named_merged_and_restored(explorer):
    before = explorer.current
    assert (explorer.naming.rename.disabled, explorer.naming.merge.disabled, explorer.naming.undo.disabled) == (
        True,
        True,
        True,
    )
    explorer.naming.clusters.value = [1]
    explorer.naming.name.value = " <i>cats "
    explorer.naming.rename.clicks += 1
    assert explorer.current.names == ("", "<i>cats", "", "")
    assert "&lt;i&gt;cats" in explorer.gallery.object
    assert set(explorer.map.points.data["cluster"]) == {"0", "<i>cats", "2", "3"}
    explorer.naming.clusters.value = [1, 3]
    explorer.naming.merge.clicks += 1
    assert explorer.current.names == ("", "<i>cats", "")
    np.testing.assert_array_equal(explorer.current.labels, np.take([0, 1, 2, 1], before.labels))
    assert "3 clusters" in explorer.quality.object
    assert "np.take([0, 1, 2, 1], model.labels_)" in explorer.code.object
    explorer.naming.undo.clicks += 1
    explorer.naming.undo.clicks += 1
    np.testing.assert_array_equal(explorer.current.labels, before.labels)
    assert explorer.naming.undo.disabled
    explorer.naming.clusters.value = [0]
    explorer.naming.name.value = "dogs"
    explorer.naming.rename.clicks += 1
    explorer.widgets["n_clusters"].value = 3  # other clusters: names were not theirs
    assert not any(explorer.current.names)


def test_merged_labels_can_be_repeated_in_python(data):
    session = Session(data[0])
    view = session.edited(session.compute(Settings(4)), Edits.none(4).merged([0, 2]))
    names: dict[str, object] = {"X": data[0]}
    exec(session.python(view), names)
    np.testing.assert_array_equal(names["labels"], view.labels)
    model = session.labelled(view)
    assert (model.n_clusters_, view.model.n_clusters_) == (3, 4)
    np.testing.assert_array_equal(model.predict(data[0]), view.labels)


def test_report_of_what_is_shown(explorer):
    pytest.importorskip("jinja2", reason="Jinja2 is not installed: pip install subspaces[app]")
    pytest.importorskip("matplotlib", reason="Matplotlib is not installed: pip install subspaces[app]")
    explorer.naming.clusters.value = [0, 1]
    explorer.naming.merge.clicks += 1
    explorer.naming.clusters.value = [2]
    explorer.naming.name.value = "<cats>"
    explorer.naming.rename.clicks += 1
    assert not explorer.taking.report_file.visible
    explorer.taking.report.clicks += 1
    assert explorer.taking.report_file.visible
    page = explorer.taking.page.read().decode()
    assert "Cluster 2: &lt;cats&gt;" in page
    assert not explorer.work.pane.visible
    explorer.widgets["n_clusters"].value = 5  # another view: that report is not of it
    assert not explorer.taking.report_file.visible


def test_work_shows_phases_counts_and_the_time_left():
    from types import SimpleNamespace

    from subspaces.app.explorer import work
    from subspaces.utils.progress import phase

    shown: list[str] = []
    pane = SimpleNamespace(param=SimpleNamespace(update=lambda object, visible: shown.append(object)))

    def make():
        with phase("Trying <settings>", 4) as step:
            for _ in range(4):
                step()
        raise ValueError("no")

    taken: list[object] = []
    work.Work(pane).do(make, taken.append, None)
    assert taken == ["no"]
    assert "<b>Trying &lt;settings&gt;</b> <progress value='0' max='4'></progress> 0 of 4" in shown[1]
    assert "4 of 4" in shown[-2]
    assert shown[-1] == ""


def test_looks(explorer):
    light = explorer.map.figure.background_fill_color
    assert "look-system" in explorer.view.css_classes
    explorer.look.value = "Dark"
    assert explorer.is_dark
    assert "look-dark" in explorer.view.css_classes
    assert explorer.map.figure.background_fill_color != light
    explorer.look.value = "Light"
    assert explorer.map.figure.background_fill_color == light


def test_vectors_of_images_show_the_images(data):
    pytest.importorskip("panel", reason=NO_PANEL)
    from subspaces.app.explorer.app import Explorer

    pixels = np.random.default_rng(0).random((120, 6 * 5))
    explorer = Explorer(Session(data[0], pixels=pixels, image_shape=(6, 5), max_points=100, settings=Settings(4)))
    assert explorer.pictures.pixels.shape == (100, 6, 5)
    with pytest.raises(ValueError, match="must hold the 30 values"):
        Session(data[0], pixels=pixels, image_shape=(3, 4))
