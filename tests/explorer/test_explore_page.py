"""Page of the explorer without a browser: widgets, levels, edits, files, looks, texts; and its server."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import urlsplit

import numpy as np
import psutil
import pytest
from scipy import sparse

import subspaces
from cli_data import environment
from subspaces.app.explorer.session import Session, Settings
from subspaces.app.features import vectors_of
from subspaces.utils.progress import phase

pytest.importorskip("panel", reason="Panel is not installed: pip install subspaces[explore]")

from subspaces.app.explorer.app import Explorer, Work


@pytest.fixture
def explorer(data):
    ids = [f"<img src=x onerror=alert({i})>" for i in range(120)]
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


def test_what_fails_is_said_and_can_be_tried_again(explorer, monkeypatch):
    def fail(*_):
        raise ValueError("too <few> points")

    with monkeypatch.context() as patched:
        patched.setattr(explorer.session, "compute", fail)
        explorer.widgets["n_clusters"].value = 3
    assert "too &lt;few&gt; points" in explorer.quality.object
    explorer.widgets["n_clusters"].value = 4
    monkeypatch.setattr(explorer.session, "choose", fail)
    explorer.choose.clicks += 1
    assert "too &lt;few&gt; points" in explorer.quality.object
    assert not explorer.choose.disabled
    assert explorer.choose.label == "Choose for me"
    chosen = Settings(5, kernel="cubic", scaling=None, reg=0.123, n_nonzero=9, assign_labels="modularity")
    monkeypatch.setattr(explorer.session, "choose", lambda: chosen)
    explorer.choose.clicks += 1
    assert explorer.settings == explorer.current.settings == chosen


def test_points_that_are_no_images(data):
    assert type(subspaces.explore(data[0])).__name__ == "Column"
    explorer = Explorer(Session(data[0], settings=Settings(4)))
    assert explorer.gallery.object.count("<svg") == len(explorer.current.sizes)
    assert "thumb" not in explorer.map.points.data
    assert callable(subspaces.explore)  # still the function, after its modules were imported


# ---------------------------------------------------------------- names, mergers, pictures, looks


def rename(explorer, cluster, name):
    explorer.naming.clusters.value = [cluster]
    explorer.naming.name.value = name
    explorer.naming.rename.clicks += 1


def test_clusters_are_named_merged_and_restored(explorer):
    before = explorer.current
    naming = explorer.naming
    assert all(button.disabled for button in (naming.rename, naming.merge, naming.undo))
    rename(explorer, 1, " <i>cats ")
    assert explorer.current.names == ("", "<i>cats", "", "")
    assert "&lt;i&gt;cats" in explorer.gallery.object
    assert set(explorer.map.points.data["cluster"]) == {"0", "<i>cats", "2", "3"}
    naming.clusters.value = [1, 3]
    naming.merge.clicks += 1
    assert explorer.current.names == ("", "<i>cats", "")
    np.testing.assert_array_equal(explorer.current.labels, np.take([0, 1, 2, 1], before.labels))
    assert "3 clusters" in explorer.quality.object
    assert "np.take([0, 1, 2, 1], model.labels_)" in explorer.code.object
    naming.undo.clicks += 1
    naming.undo.clicks += 1
    np.testing.assert_array_equal(explorer.current.labels, before.labels)
    assert naming.undo.disabled
    rename(explorer, 0, "dogs")
    explorer.widgets["n_clusters"].value = 3  # other clusters: names were not theirs
    assert not any(explorer.current.names)


def test_report_of_what_is_shown(explorer):
    explorer.naming.clusters.value = [0, 1]
    explorer.naming.merge.clicks += 1
    rename(explorer, 2, "<cats>")
    assert not explorer.taking.report_file.visible
    explorer.taking.report.clicks += 1
    assert explorer.taking.report_file.visible
    page = explorer.taking.page.read().decode()
    assert "clusters were merged by hand" in page
    assert explorer._labels(".csv").read().startswith(b"id,cluster,name,confidence")
    assert "Cluster 2: &lt;cats&gt;" in page
    assert not explorer.work.pane.visible
    explorer.widgets["n_clusters"].value = 5  # another view: that report is not of it
    assert not explorer.taking.report_file.visible


def test_work_shows_phases_counts_and_the_time_left():
    shown: list[str] = []
    pane = SimpleNamespace(param=SimpleNamespace(update=lambda object, visible: shown.append(object)))

    def make():
        with phase("Trying <settings>", 4) as step:
            for _ in range(4):
                step()
        raise ValueError("no")

    taken: list[object] = []
    Work(pane).do(make, taken.append, None)
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
    pixels = np.random.default_rng(0).random((120, 6 * 5))
    explorer = Explorer(Session(data[0], pixels=pixels, image_shape=(6, 5), max_points=100, settings=Settings(4)))
    assert explorer.pictures.pixels.shape == (100, 6, 5)
    with pytest.raises(ValueError, match="must hold the 30 values"):
        Session(data[0], pixels=pixels, image_shape=(3, 4))


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


def test_level_note_tells_the_p_value(explorer):
    tree = explorer.current.tree
    p_value = np.full(len(tree.merges), np.nan)
    p_value[[tree.split(1), tree.split(2)]] = 0.0004, 0.3
    explorer.current.model._tree = replace(tree, p_value=p_value)
    for level, text in ((2, "p &lt; 0.001, real."), (3, "p 0.30, may be chance."), (5, "not tested.")):
        explorer.level.value = level
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


def test_texts_on_the_page_and_in_the_report():
    texts = [f"<b>no {i}</b> " + ("apple pear plum" if i % 2 else "engine brake wheel") for i in range(40)]
    session = Session(vectors_of(texts, "tfidf"), texts=texts, settings=Settings(2))
    explorer = Explorer(session)
    page = explorer.gallery.object
    assert page.count('class="words"') == 2
    assert "&lt;b&gt;" in page
    assert "<svg" not in page
    assert list(explorer.map.points.data["line"]) == session.first_lines
    explorer.map.points.selected.indices = [0]
    assert "&lt;b&gt;no 0&lt;/b&gt;" in explorer.detail.object
    assert "<b>no" not in page + explorer.detail.object
    report = session.report_file(explorer.current, "notes").read().decode()
    assert "words are those that set it apart" in report
    assert "&lt;b&gt;no 3&lt;/b&gt;" in report


def test_counts_with_names_show_them():
    rng = np.random.default_rng(0)
    counts = rng.poisson(np.repeat([[3.0, 3, 3, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 3, 3, 3]], 30, axis=0))
    names = [f"<gene {i}>" for i in range(6)]
    explorer = Explorer(Session(sparse.csr_array(counts * 1.0), feature_names=names, settings=Settings(2)))
    first = {name for words in explorer.current.words for name in words[:1]}
    assert len(first & set(names[:3])) == len(first & set(names[3:])) == 1
    assert "&lt;gene" in explorer.gallery.object
    unnamed = Explorer(Session(sparse.csr_array(counts * 1.0), settings=Settings(2)))
    assert unnamed.gallery.object.count("<svg") == 2


# ---------------------------------------------------------------- the server


SERVED = """
import sys, weakref
import numpy as np
import panel as pn
from tornado.ioloop import IOLoop, PeriodicCallback
from subspaces.app.explorer.server import serve
from subspaces.app.explorer.session import Session, Settings

class Thing: pass

def busy(reference=None):  # nearly always inside a callback of a weak reference, where an exception would be ignored
    if reference is None:
        thing = Thing()
        kept = weakref.ref(thing, busy)
        del thing
    else:
        sum(range(200_000))

def announce(address):
    PeriodicCallback(busy, 1).start()
    IOLoop.current().call_later(0.3, print, address, flush=True)

session = Session(np.random.default_rng(0).normal(size=(30, 4)), settings=Settings(2))
serve(session, open_browser=False, announce=announce)
print("ended")
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_server_stops_when_told(number):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a script
    try:
        child = subprocess.Popen(
            [sys.executable, "-c", SERVED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), text=True
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert child.stdout is not None
    assert child.stdout.readline().startswith("http")
    child.send_signal(number)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out, err) == (0, "ended\n", "")


HOSTED = """
import sys
from urllib.parse import urlsplit
import numpy as np
from tornado.ioloop import IOLoop
from subspaces.app.explorer.server import serve
from subspaces.app.explorer.session import Session, Settings

session = Session(np.random.default_rng(0).normal(size=(30, 4)), settings=Settings(2))
tell = lambda address: IOLoop.current().call_later(0.3, print, address, flush=True)
serve(session, host=sys.argv[1], open_browser=False, announce=tell)
"""
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket"}
UPGRADE |= {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "0.0.0.0"])
def test_server_answers_under_its_own_names_only(host):
    """Another site may give its own name to this machine (DNS rebinding), and would then be of the same origin."""
    command = [sys.executable, "-c", HOSTED, host]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(), text=True
    ) as child:
        assert child.stdout is not None
        parts = urlsplit(child.stdout.readline().strip())
        port = parts.port

        def status(path, **headers):
            connection = http.client.HTTPConnection(parts.netloc, timeout=20)
            connection.request("GET", path, headers=headers)
            return connection.getresponse().status

        try:
            connections = psutil.Process(child.pid).net_connections()
            assert {c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN} == {host}
            assert status("/") == 404  # the path is a secret
            assert len(parts.path) > 12
            assert status(parts.path) == 200
            for name in ("localhost", "127.0.0.1", "[::1]"):
                assert status(parts.path, Host=f"{name}:{port}") == 200, name
            others = (f"evil.example:{port}", f"127.0.0.1:{port + 1}", "localhost", f"127.0.0.1.evil.example:{port}")
            for name in others:
                assert status(parts.path, Host=name) == 404, name
                assert status("/static/js/bokeh.min.js", Host=name) == 404, name
            assert status(parts.path, Host=f"10.1.2.3:{port}") == (200 if host == "0.0.0.0" else 404)
            for origin, expected in ((parts.netloc, 101), (f"evil.example:{port}", 403)):
                assert status(f"{parts.path}/ws", Origin=f"http://{origin}", **UPGRADE) == expected
        finally:
            child.terminate()
