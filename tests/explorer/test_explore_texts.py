"""Texts and counts in the explorer: words of the clusters, first lines; and the server stops when it is told to."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from urllib.parse import urlsplit

import numpy as np
import pytest
from scipy import sparse

from cli_data import environment
from subspaces.app.explorer.saving import report_file
from subspaces.app.explorer.session import Session, Settings
from subspaces.app.features import vectors_of

NO_PANEL = "Panel is not installed: pip install subspaces[explore]"
TOPICS = ("apple pear cherry plum orchard juice", "engine piston gearbox brake wheel motor")


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    return [f"\n<b>no {i}</b> " + " ".join(rng.choice(TOPICS[i % 2].split(), 9)) + "\nmore" for i in range(60)]


@pytest.fixture(scope="module")
def session(texts):
    return Session(vectors_of(texts, "tfidf"), texts=texts, settings=Settings(2))


def test_words_follow_the_clusters(session, texts):
    view = session.compute(Settings(2))
    for words in view.words:
        assert any(set(words) <= {*topic.split(), "more"} for topic in TOPICS)
    assert {len(words) for words in session.at_level(view, 1).words} == {8}
    assert session.first_lines[3] == " ".join(texts[3].splitlines()[1].split())
    assert len(Session(vectors_of(texts, "tfidf"), texts=texts, max_points=40).texts) == 40
    with pytest.raises(ValueError, match="texts must have one entry"):
        Session(np.eye(60), texts=texts[:-1])


def test_doubtful_are_those_of_little_confidence(session):
    view = session.compute(Settings(4))
    for cluster, rows in enumerate(view.doubtful):
        own = np.flatnonzero((view.labels == cluster) & (view.confidence < 0.5))
        assert len(rows) == min(3, len(own))
        assert set(rows) <= set(own)
        assert np.all(np.diff(view.confidence[rows]) >= 0)


def test_texts_on_the_page(session):
    pytest.importorskip("panel", reason=NO_PANEL)
    from subspaces.app.explorer.app import Explorer

    explorer = Explorer(session)
    page = explorer.gallery.object
    assert page.count('class="words"') == 2
    assert "&lt;b&gt;" in page
    assert "<svg" not in page
    assert list(explorer.map.points.data["line"]) == session.first_lines
    explorer.map.points.selected.indices = [0]
    assert "&lt;b&gt;no 0&lt;/b&gt;" in explorer.detail.object
    assert "<b>no" not in page + explorer.detail.object


def test_report_has_the_words(session):
    pytest.importorskip("jinja2", reason="Jinja2 is not installed: pip install subspaces[app]")
    pytest.importorskip("matplotlib", reason="Matplotlib is not installed: pip install subspaces[app]")
    page = report_file(session, session.compute(Settings(2)), "notes").read().decode()
    assert "words are those that set it apart" in page
    assert "&lt;b&gt;no 3&lt;/b&gt;" in page


def test_counts_with_names_show_them():
    pytest.importorskip("panel", reason=NO_PANEL)
    from subspaces.app.explorer.app import Explorer

    rng = np.random.default_rng(0)
    counts = rng.poisson(np.repeat([[3.0, 3, 3, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 3, 3, 3]], 30, axis=0))
    names = [f"<gene {i}>" for i in range(6)]
    explorer = Explorer(Session(sparse.csr_array(counts * 1.0), feature_names=names, settings=Settings(2)))
    first = {name for words in explorer.current.words for name in words[:1]}
    assert len(first & set(names[:3])) == len(first & set(names[3:])) == 1
    assert "&lt;gene" in explorer.gallery.object
    unnamed = Explorer(Session(sparse.csr_array(counts * 1.0), settings=Settings(2)))
    assert unnamed.gallery.object.count("<svg") == 2


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
    pytest.importorskip("panel", reason=NO_PANEL)
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
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "0.0.0.0"])
def test_server_answers_under_its_own_names_only(host):
    """Another site may give its own name to this machine (DNS rebinding), and would then be of the same origin."""
    pytest.importorskip("panel", reason=NO_PANEL)
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
            assert status(parts.path) == 200
            for name in ("localhost", "127.0.0.1", "[::1]"):
                assert status(parts.path, Host=f"{name}:{port}") == 200, name
            for name in (
                f"evil.example:{port}",
                f"127.0.0.1:{port + 1}",
                "localhost",
                f"127.0.0.1.evil.example:{port}",
            ):
                assert status(parts.path, Host=name) == 404, name
                assert status("/static/js/bokeh.min.js", Host=name) == 404, name
            assert status(parts.path, Host=f"10.1.2.3:{port}") == (200 if host == "0.0.0.0" else 404)
            for origin, expected in ((parts.netloc, 101), (f"evil.example:{port}", 403)):
                assert status(f"{parts.path}/ws", Origin=f"http://{origin}", **UPGRADE) == expected
        finally:
            child.terminate()
