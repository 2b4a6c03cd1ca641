"""``subspaces ask``: questions in the terminal, answers that outlive it, pictures in the browser."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from sklearn.datasets import load_wine

from cli_data import fails, found, run, told, write_images
from subspaces.app.explorer import Session
from subspaces.datasets import make_subspaces
from subspaces.selection.hints import Question


@pytest.fixture
def asks(monkeypatch):
    """Ask about these pairs, whichever the search would ask about."""
    pairs = ((0, 60), (5, 6), (1, 80), (70, 20))

    def question(session):
        over = {answer[:2] for answer in session.answers}
        return next((Question(*pair, "why") for pair in pairs if pair not in over), None)

    monkeypatch.setattr(Session, "question", question)


@pytest.fixture(scope="module")
def wine(tmp_path_factory):
    file = tmp_path_factory.mktemp("wine") / "wine.csv"
    load_wine(as_frame=True).frame.iloc[::2].to_csv(file, index=False)
    return file, "--label", "target"


def test_answers_are_kept_after_each_and_the_same_command_goes_on(wine, tmp_path, asks):
    file = tmp_path / "answers.csv"
    first = told("ask", *wine, "--answers", file, input="s\nx\nd\n?\nu\n")  # the input ends: as if it was killed
    rows = list(csv.reader(file.open()))
    assert rows[0] == ["first_line", "second_line", "answer"]
    assert [row[2] for row in rows[1:]] == ["same", "different"]
    assert "'x' is none of same (s)" in first
    assert "question 3" in first
    assert first.count("<- differ") > 3
    assert any(text in first for text in ("as before", "became"))
    pairs = {frozenset(row[:2]) for row in rows[1:]}
    second = told("ask", *wine, "--answers", file, "-o", tmp_path / "labels.csv", input="s\nq\n")
    rows = list(csv.reader(file.open()))
    assert [row[2] for row in rows[1:]] == ["same", "different", "same"]
    assert frozenset(rows[3][:2]) not in pairs  # what was answered is not asked again
    assert "question 1" not in second
    assert "3 answers" in second.splitlines()[-2]
    labels = [row["cluster"] for row in csv.DictReader((tmp_path / "labels.csv").open())]
    assert len(labels) == 89
    third = told("ask", *wine, "--answers", file, "-o", tmp_path / "again.csv", input="u\nu\nu\nu\nq\n")
    assert third.count("taken back") == 3
    assert "there is no answer to take back" in third
    assert file.read_text() == "first_line,second_line,answer\n"
    again = [row["cluster"] for row in csv.DictReader((tmp_path / "again.csv").open())]
    assert again == [str(label) for label in found("cluster", *wine)["cluster"]]


def test_texts_are_shown_whole_and_harmless(tmp_path, rng, asks):
    topics = ("apple pear cherry plum orchard", "engine piston gearbox brake wheel")
    lines = [" ".join(rng.choice(topics[i % 2].split(), 9)) for i in range(90)]
    rows = [("text",), *((f"first {i}\x1b[31m\n{line}",) for i, line in enumerate(lines))]
    with (tmp_path / "notes.csv").open("w", newline="") as stream:
        csv.writer(stream, quoting=csv.QUOTE_ALL).writerows(rows)
    text = told("ask", tmp_path / "notes.csv", "--text", "text", input="d\nq\n")
    assert "\x1b" not in text
    assert sum(line in text for line in lines) >= 2
    assert "--answers answers.csv keeps the answers" in text


def test_pictures_are_asked_about_in_the_browser(tmp_path, monkeypatch):
    pytest.importorskip("panel", reason="Panel is not installed: pip install subspaces[explore]")
    import subspaces.app.explorer.server as server

    seen = []
    monkeypatch.setattr(server, "serve", lambda session, **more: seen.append((session, more)))
    X = make_subspaces(2, 2, 64, 12, noise=0.01, random_state=0)[0].reshape(-1, 8, 8)
    pictures = {f"{i}.png": 255 * (x - X.min()) / np.ptp(X) for i, x in enumerate(X)}
    folder = write_images(tmp_path / "photos", pictures)
    told("ask", folder, "--features", "pixels", "-o", tmp_path / "labels.csv", "--no-browser")
    ((session, more),) = seen
    assert (more["asking"], more["open_browser"]) == (True, False)
    assert session.data.n_samples == 24
    assert (tmp_path / "labels.csv").exists()  # once the page is closed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--answers", "{}/answers.txt"), "answers cannot be written to the suffix '.txt'"),
        (("--answers", "{}/no/answers.csv"), "its folder does not exist"),
        (("--answers", "{}/other.csv"), "its first line must be first_line,second_line,answer"),
        (("--answers", "{}/a.csv", "-o", "{}/a.csv"), "the answers go to this file"),
        (("-o", "{}/other.csv"), "the file exists"),
        (("--set", "reg=1"), "'reg' is not one of"),
        (("-k", "many"), "'many' is not a whole number"),
    ],
)
def test_what_ask_refuses(wine, tmp_path, arguments, message):
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    assert message in fails("ask", *wine, *(text.format(tmp_path) for text in arguments))
    assert (tmp_path / "other.csv").read_text() == "a,b\n1,2\n"


def test_ask_takes_no_table_from_a_pipe():
    result = run("ask", "-", input="1,2\n")
    assert result.exit_code == 2
    assert "the answers come from the keyboard" in result.output
