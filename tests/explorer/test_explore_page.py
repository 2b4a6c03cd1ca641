"""Page of the explorer without a browser: the slider, questions, edits, files, looks, texts; and its server."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from types import SimpleNamespace
from urllib.parse import urlsplit

import numpy as np
import psutil
import pytest
from scipy import sparse

import subspaces
from cli_data import environment
from subspaces.app.explorer import session_of
from subspaces.app.features import vectors_of
from subspaces.utils.progress import phase

pytest.importorskip("panel", reason="Panel is not installed: pip install subspaces[explore]")

from subspaces.app.explorer.app import Explorer
from subspaces.app.explorer.cards import badge
from subspaces.app.explorer.work import Work
from subspaces.app.palette import PALETTE

NASTY = "<img src=x onerror=alert(1)>"


@pytest.fixture
def explorer(data):
    ids = [f"<img src=x onerror=alert({i})>" for i in range(120)]
    return Explorer(session_of(*data, n_clusters=4, ids=ids, image_shape=(3, 4)))


def html_of(explorer):
    panes = (explorer.verdict, explorer.question, explorer.gallery, explorer.detail, explorer.code, explorer.error)
    return "".join(pane.object for pane in panes)


def test_slider_moves_the_page_and_undo_brings_it_back(explorer):
    first = explorer.verdict.object
    assert "4 groups, as asked" in first
    assert explorer.undo.disabled
    explorer.number.value = 6
    assert explorer.gallery.object.count("class='card'") == 6
    assert "<b class='clusters'>6 groups</b>" in explorer.verdict.object
    assert len(explorer.groups.options) == 6
    explorer.undo.clicks += 1
    assert explorer.verdict.object == first
    assert explorer.number.value == 4
    assert explorer.gallery.object.count("class='card'") == 4


def test_method_map_and_code_are_made_when_they_are_asked_for(explorer):
    assert not explorer.advanced.visible
    assert not explorer.code.object
    explorer.open.clicks += 1
    assert explorer.map.points.data["cluster"] == [str(k) for k in explorer.session.view.labels]
    explorer.map.points.selected.indices = [0]
    assert explorer.detail.object.count("<tr>") == len(explorer.session.explain(0).points)
    explorer.widgets["kernel"].value, explorer.widgets["reg"].value = "quadratic", 0.1
    explorer.fit.clicks += 1
    assert explorer.session.view.model.kernel == "quadratic"
    assert "kernel=&#x27;quadratic&#x27;" in explorer.code.object
    assert "<img src=x" not in html_of(explorer)


def test_questions_are_answered_and_taken_back(explorer, asks):
    assert not explorer.card.visible
    explorer.ask.clicks += 1
    assert explorer.card.visible
    (pair, shown) = explorer._asked[:2], explorer.question.object
    assert shown.count('class="picture') == 2
    assert "<img src=x" not in shown
    explorer.replies["Different (2)"].clicks += 1
    assert explorer.session.answers == [(*pair, False)]
    assert "1 answer so far" in explorer.asked.object
    assert explorer.question.object != shown
    assert explorer.save_answers.visible
    explorer.undo.clicks += 1
    assert explorer.session.answers == []
    assert explorer._asked[:2] == pair
    explorer.enough.clicks += 1
    assert not explorer.card.visible
    assert explorer.ask.visible


def test_when_nothing_is_left_to_ask():
    explorer = Explorer(session_of(np.ones((5, 3))), asking=True)
    assert "No question" in explorer.question.object
    assert all(button.disabled for button in explorer.replies.values())


def test_groups_are_named_merged_and_split(explorer):
    assert explorer.rename.disabled
    explorer.groups.value = [1]
    explorer.name.value = " <i>cats "
    explorer.rename.clicks += 1
    assert "&lt;i&gt;cats" in explorer.gallery.object
    assert "<i>cats" not in html_of(explorer)
    explorer.groups.value = [1, 3]
    explorer.merge.clicks += 1
    assert len(explorer.groups.options) == 3
    explorer.groups.value = [1]
    explorer.split.clicks += 1
    assert len(explorer.groups.options) == 4


def test_what_fails_is_said_and_can_be_tried_again(explorer, monkeypatch):
    def fail(*_):
        raise ValueError("too <few> samples")

    with monkeypatch.context() as patched:
        for name in ("at_level", "question", "fit", "report_file"):
            patched.setattr(explorer.session, name, fail)
        for act in (explorer._move, explorer._ask, explorer._fit, explorer._make_report):
            explorer.error.object = ""
            act()
            assert "too &lt;few&gt; samples" in explorer.error.object
    for each in (explorer.ask, explorer.fit, explorer.report):
        assert not each.disabled
    explorer.number.value = 3
    assert not explorer.error.object
    assert "3 groups" in explorer.verdict.object


def test_a_window_does_nothing_to_what_another_has_changed(explorer):
    other = Explorer(explorer.session)
    explorer.number.value = 6
    other.groups.value = [0, 1]
    other.merge.clicks += 1
    assert "Another window" in other.error.object
    assert len(explorer.session.view.sizes) == len(other.groups.options) == 6
    other.groups.value = [0, 1]
    other.merge.clicks += 1
    assert len(explorer.session.view.sizes) == 5


def test_report_is_of_what_is_shown(explorer):
    assert not explorer.save_report.visible
    explorer.report.clicks += 1
    assert explorer.save_report.visible
    assert b"4 groups, as asked" in explorer.page.read()
    explorer.number.value = 5  # another view: that report is not of it
    assert not explorer.save_report.visible


def test_rows_of_a_table(data):
    assert type(subspaces.explore(data[0])).__name__ == "Column"
    explorer = Explorer(session_of(data[0], n_clusters=4), max_points=50)
    assert explorer.gallery.object.count("<svg") == 4
    assert "thumb" not in explorer.map.points.data
    assert len(explorer.map.points.data["x"]) == 50
    assert callable(subspaces.explore)  # still the function, after its modules were imported


def test_no_column_of_large_numbers_flattens_the_others(rng):
    X = rng.normal(size=(60, 4)) + np.repeat([[0, 0, 0, 0], [6, 0, 6, 0]], 30, axis=0)
    page = Explorer(session_of(X * [1, 1, 1, 1e5], n_clusters=2)).gallery.object
    heights = [float(pair.split(",")[1]) for pair in page.split('<polyline points="')[1].split('"')[0].split()]
    assert np.ptp(heights[:3]) > 5  # of 60


def test_every_group_up_to_20_has_a_colour_of_its_own():
    assert len(set(PALETTE)) == 20
    assert len({badge(k).replace(f">{k}<", "") for k in range(40)}) == 40  # then stripes


def test_looks(explorer):
    light = explorer.map.figure.background_fill_color
    assert "look-system" in explorer.view.css_classes
    explorer.look.value = "Dark"
    assert "look-dark" in explorer.view.css_classes
    assert explorer.map.figure.background_fill_color != light


def test_texts_and_counts_are_shown_by_their_words(asks):
    texts = [f"{NASTY} no {i}\n" + ("apple pear plum" if i % 2 else "engine brake wheel") for i in range(90)]
    explorer = Explorer(session_of(vectors_of(texts, "tfidf"), n_clusters=2, texts=texts), asking=True)
    assert explorer.gallery.object.count("class='words'") == 2
    assert explorer.question.object.count("engine brake wheel") == 2
    assert "of &lt;two&gt; groups" in explorer.question.object
    assert list(explorer.map.points.data["line"]) == explorer.session.first_lines
    explorer.map.points.selected.indices = [0]
    assert "<img src=x" not in html_of(explorer)
    rng = np.random.default_rng(0)
    counts = rng.poisson(np.repeat([[3.0, 3, 3, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 3, 3, 3]], 30, axis=0))
    genes = [f"<gene {i}>" for i in range(6)]
    explorer = Explorer(session_of(sparse.csr_matrix(counts * 1.0), n_clusters=2, feature_names=genes))
    assert "&lt;gene" in explorer.gallery.object


def test_work_shows_phases_and_counts():
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


# ---------------------------------------------------------------- the server


SERVED = """
import sys, weakref
import numpy as np
import panel as pn
from tornado.ioloop import IOLoop, PeriodicCallback
from subspaces.app.explorer.server import serve
from subspaces.app.explorer import session_of

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

session = session_of(np.random.default_rng(0).normal(size=(30, 4)), n_clusters=2)
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
import numpy as np
from tornado.ioloop import IOLoop
from subspaces.app.explorer.server import serve
from subspaces.app.explorer import session_of

session = session_of(np.random.default_rng(0).normal(size=(30, 36)), n_clusters=2, image_shape=(6, 6))
tell = lambda address: IOLoop.current().call_later(0.3, print, address, flush=True)
serve(session, open_browser=False, announce=tell)
"""
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket"}
UPGRADE |= {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_server_answers_under_its_own_names_only():
    """Another site may give its own name to this machine (DNS rebinding), and would then be of the same origin."""
    command = [sys.executable, "-c", HOSTED]
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
            assert {c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN} == {"127.0.0.1"}
            assert status("/") == 404  # the path is a secret
            assert len(parts.path) > 12
            assert status(parts.path) == 200
            for name in ("localhost", "127.0.0.1"):
                assert status(parts.path, Host=f"{name}:{port}") == 200, name
            assert status(f"{parts.path}/29-160") == 200  # a picture
            for name in ("30-160", "0-161", "99999999999-160", "-1-160", "../x-160"):
                assert status(f"{parts.path}/{name}") == 404, name
            others = ("evil.example", "10.1.2.3", "[::1]", "127.0.0.1.evil.example")
            for name in (*(f"{other}:{port}" for other in others), f"127.0.0.1:{port + 1}", "localhost"):
                assert status(parts.path, Host=name) == 404, name
                assert status(f"{parts.path}/0-160", Host=name) == 404, name
                assert status("/static/js/bokeh.min.js", Host=name) == 404, name
            for origin, expected in ((parts.netloc, 101), (f"evil.example:{port}", 403)):
                assert status(f"{parts.path}/ws", Origin=f"http://{origin}", **UPGRADE) == expected
        finally:
            child.terminate()
