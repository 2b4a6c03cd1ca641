"""The channel of progress: who is told what, by which names, and what is shown where."""

from __future__ import annotations

import io
import sys
import threading

import numpy as np
import pytest

from cli_data import write_images
from subspaces import EKTRR, KTRR, SubspaceClustering
from subspaces.app.files import read_table
from subspaces.datasets import make_subspaces
from subspaces.utils import progress
from subspaces.utils.blocks import map_blocks
from subspaces.utils.progress import phase, progress_to, shown


@pytest.fixture(scope="module")
def X():
    return make_subspaces(3, dimension=2, ambient=10, n_samples=30, noise=0.01, random_state=0)[0]


def heard(work):
    told = []
    with progress_to(lambda *now: told.append(now)):
        work()
    return told


def names(told):
    return list(dict.fromkeys(name for name, _, _ in told))


def test_whoever_is_inside_a_phase_that_counts_is_not_heard():
    def work():
        with phase("Outer"), phase("Counted", 2) as step:
            step()
            with phase("Inner", 5) as inner:
                inner(5)
            map_blocks(lambda start, stop: None, [(i, i + 1) for i in range(300)])
            step()

    assert heard(work) == [("Outer", 0, None), ("Counted", 0, 2), ("Counted", 1, 2), ("Counted", 2, 2)]


def test_threads_count_together_and_a_total_may_become_known_on_the_way():
    def work():
        with phase("Counted") as step:
            threads = [threading.Thread(target=lambda: [step(of=400) for _ in range(100)]) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    assert heard(work) == [("Counted", 0, None), *(("Counted", done, 400) for done in range(1, 401))]


def test_a_fit_names_its_stages(X):
    told = names(heard(lambda: KTRR(3).fit(X)))
    stages = ["Comparing the points", "Representing each point by others", "Making the graph", "Embedding the graph"]
    assert told == ["Putting the points in order", *stages, "Cutting the graph"]
    sampled = names(heard(lambda: EKTRR(3, n_landmarks=60).fit(X)))
    assert {"Taking a sample", "Labelling the other points"} <= set(sampled)


def test_the_search_counts_its_settings_and_draws(X):
    told = heard(lambda: SubspaceClustering(effort="fast").fit(X))
    totals = {name: total for name, _, total in told}
    last = {name: done for name, done, _ in told}
    for name in ("Trying settings", "Cutting the graphs of all settings"):
        assert last[name] == totals[name] > 2
    noise = np.random.default_rng(0).normal(size=X.shape)  # where the settings do not agree, a test is made
    tests = [(done, total) for name, done, total in heard(lambda: SubspaceClustering().fit(noise)) if "Testing" in name]
    assert 0 < tests[-1][0] <= tests[-1][1]
    assert "Counting the clusters" in totals
    assert "Comparing the points" not in names(told)[:1]


def test_images_are_counted_as_they_are_read(tmp_path):
    write_images(tmp_path, {f"{i}.png": np.full((4, 4), 50 * i) for i in range(3)})
    told = heard(lambda: read_table(tmp_path))
    assert ("Looking at the images", 3, 3) in told
    assert told[-1] == ("Reading the images", 3, 3)


# ------------------------------------------------------------------ what is shown


class Terminal(io.StringIO):
    def isatty(self):
        return True


def two_phases():
    with phase("Reading [b]"):
        pass
    with phase("Copying", 1200) as step:
        step(1200)


def test_a_terminal_has_a_bar_with_counts(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with shown():
        two_phases()
    assert "Copying" in sys.stderr.getvalue()
    assert "1,200 of 1,200" in sys.stderr.getvalue()


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_silence_where_nothing_is_wanted_or_nobody_watches(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream())
    with shown(stream is io.StringIO):
        two_phases()
    assert sys.stderr.getvalue() == ""


@pytest.mark.parametrize("method", [KTRR(3, verbose=True), EKTRR(3, n_landmarks=60, verbose=True)])
def test_verbose_writes_lines_where_there_is_no_terminal(monkeypatch, method, X):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    method.fit(X)
    assert "Cutting the graph (" in sys.stderr.getvalue() or "Labelling the other points" in sys.stderr.getvalue()
    before = sys.stderr.getvalue()
    method.set_params(verbose=False).fit(X)
    assert sys.stderr.getvalue() == before


def test_who_watches_changes_no_key_of_the_cache(X):
    assert KTRR(3, verbose=True).plan(X).key("cut") == KTRR(3).plan(X).key("cut")


def test_lines_for_notebooks_and_logs(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(progress, "EVERY", -1.0)
    with shown(lines=True), shown(lines=True):  # the inner one leaves it to the outer
        two_phases()
    lines = [line.rsplit(" (", 1)[0] for line in sys.stderr.getvalue().splitlines()]
    assert list(dict.fromkeys(lines)) == ["Reading [b]", "Copying: 0 of 1,200", "Copying: 1,200 of 1,200"]
