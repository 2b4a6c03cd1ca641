"""The session behind the explorer and ``subspaces ask``: what it shows, the steps of a person, and the way back."""

from __future__ import annotations

import csv
import shlex
from dataclasses import replace

import numpy as np
import openpyxl
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_wine

from cli_data import fails, found, told
from subspaces import KTRR, SC, SubspaceClustering
from subspaces.app.explorer import Settings, session_of
from subspaces.app.explorer.answers import read_answers
from subspaces.app.explorer.pictures import image_shape_of
from subspaces.app.features import vectors_of
from subspaces.app.files import FileError
from subspaces.engine import ridge_routes as routes
from subspaces.engine import stages

TOPICS = ("apple pear cherry plum orchard juice", "engine piston gearbox brake wheel motor")


@pytest.fixture
def session(data):
    return session_of(*data, n_clusters=4)


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
def wine(tmp_path_factory):
    file = tmp_path_factory.mktemp("wine") / "wine.csv"
    load_wine(as_frame=True).frame.to_csv(file, index=False)
    return file


@pytest.fixture
def explored(wine):
    return served(wine, "--label", "target")


# ---------------------------------------------------------------- the same numbers as subspaces cluster


def assert_as_the_command_says(session, source):
    document = found(*shlex.split(session.command(source))[1:-2])
    view = session.view
    assert document["cluster"] == view.labels.tolist()
    assert document["confidence"] == view.summary.confidence.tolist()
    assert document["verdict"] == view.verdict
    assert sum(sure < 0.5 for sure in document["confidence"]) == view.n_doubtful


@pytest.mark.parametrize("options", [(), ("-k", "4"), ("--ignore", "proline")])
def test_the_page_begins_as_cluster_with_the_same_options(wine, options):
    session, source = served(wine, "--label", "target", *options)
    assert_as_the_command_says(session, source)
    assert len(session.view.sizes) == (4 if "-k" in options else len(session.view.sizes))
    assert ("proline" in session.columns) == ("--ignore" not in options)


@pytest.mark.parametrize(
    "changed",
    [
        {"kernel": "quadratic", "reg": 1 / 3, "scaling": "unit"},
        {"kernel": "neighbors", "assign_labels": "modularity"},
        {"affine": True, "scaling": None, "assign_labels": "cluster_qr"},
    ],
)
def test_other_settings_are_those_of_the_command(explored, changed):
    session, source = explored
    settings = replace(Settings.of(session.view.fit), **changed)
    session.take(session.fit(settings))
    assert isinstance(session.view.model, SC if settings.kernel == "neighbors" else KTRR)
    assert_as_the_command_says(session, source)


def test_the_first_settings_are_the_first_answer(session):
    first = session.view.model
    session.take(session.fit(replace(Settings.of(first), reg=0.7)))
    assert session.view.model is not first
    assert session.fit(Settings.of(first)).model is first


def test_only_what_changed_is_computed(session, monkeypatch):
    calls: list[str] = []
    ridge, see = routes.ridge, stages.see
    monkeypatch.setattr(routes, "ridge", lambda *args, **kw: calls.append("ridge") or ridge(*args, **kw))
    monkeypatch.setattr(stages, "see", lambda *args: calls.append("kernel") or see(*args))
    settings = Settings()
    for changed in ({}, {"n_nonzero": 3}, {"assign_labels": "cluster_qr"}):
        session.fit(replace(settings, **changed))
    assert calls == ["kernel", "ridge"]
    session.fit(replace(settings, reg=0.3))
    assert calls == ["kernel", "ridge", "ridge"]


def test_lines_of_python_repeat_what_is_shown(data, session):
    def assert_repeats():
        names = {"X": data[0]}
        exec(session.python(), names)
        np.testing.assert_array_equal(names["labels"], session.view.labels)

    assert_repeats()
    session.at_level(6)
    assert_repeats()
    session.answer([(0, 1, False), (0, 60, True)])
    assert_repeats()
    assert session.command("x.csv") == ""  # no command gives that


def test_gaps_can_be_filled(tmp_path):
    """The advice of the error is an option of the command."""
    frame = load_wine(as_frame=True).data
    frame.iloc[3, 2] = np.nan
    frame.to_csv(tmp_path / "wine.csv", index=False)
    session, source = served(tmp_path / "wine.csv", "--missing", "median")
    assert "--missing median" in fails("explore", tmp_path / "wine.csv", "--no-browser")
    assert session.data.X[3, 2] == frame.iloc[:, 2].median()
    assert source.endswith("--missing median")


# ---------------------------------------------------------------- steps and the way back


def test_levels_are_those_of_the_model_and_one_step(session, monkeypatch):
    first = session.view
    for k in (2, 7, 1, 5):
        session.at_level(k)
        np.testing.assert_array_equal(session.view.labels, first.model.labels_at(k))
        assert f"4 groups became {k}" in session.view.told
    session.undo()  # all moves of the slider at once
    assert session.view is first
    session.at_level(5)
    session.at_level(4)
    assert session.view.model is first.model
    assert session.view.verdict == first.verdict


def test_groups_are_merged_split_and_restored(session):
    before = session.view.labels.copy()
    session.merge([1, 3])
    np.testing.assert_array_equal(session.view.labels, np.take([0, 1, 2, 1], before))
    assert session.view.model.n_clusters_ == 3
    assert (session.view.model.predict(session.data.X) == session.view.labels).mean() > 0.95
    session.split(1)
    pairs = set(zip(before.tolist(), session.view.labels.tolist(), strict=True))
    assert len(pairs) == 4  # the tree parts what was merged where it was joined
    for _ in range(5):
        session.undo()
    np.testing.assert_array_equal(session.view.labels, before)


def test_what_nothing_parts_is_not_split():
    session = session_of(np.repeat(np.eye(3), 5, axis=0), n_clusters=3)
    with pytest.raises(ValueError, match="group 1 is not split"):
        session.split(1)
    assert len(session.steps) == 1


def test_names_survive_what_comes_later(session):
    before = session.view.labels.copy()
    session.rename(1, "  tabby \n cats ")
    session.rename(2, "dogs")
    assert session.view.names == ("", "tabby cats", "dogs", "")
    session.at_level(1)
    assert session.view.names == ("",)  # nobody named half of them all
    session.at_level(4)
    session.take(session.fit(replace(Settings.of(session.view.fit), reg=0.5)))
    names = {name: set(np.flatnonzero(session.view.labels == k)) for k, name in enumerate(session.view.names) if name}
    assert len(names["dogs"] & set(np.flatnonzero(before == 2))) > 15
    shown = {name: k for k, name in enumerate(session.view.names)}
    session.merge([shown["dogs"], shown["tabby cats"]])
    assert "tabby cats + dogs" in session.view.names
    joined = session.view.names.index("tabby cats + dogs")
    session.rename(joined, "pets")
    assert session.view.names[joined] == "pets"
    session.rename(joined, "")
    assert not any(session.view.names)


# ---------------------------------------------------------------- questions and answers


def test_answers_are_kept_undone_and_taken_up_again(data, tmp_path, asks):
    X = data[0]
    file = tmp_path / "answers.csv"
    session = session_of(X, n_clusters=None, ids=[f"=p{i}" for i in range(len(X))])
    session.answers_file = file
    for same in (False, True, None):
        session.answer([(*session.question()[:2], same)])
        assert f"{len(session.view.sizes)} groups" in session.view.told
        assert len(file.read_text().splitlines()) == 1 + len(session.answers)
    three, labels = session.answers, session.view.labels
    assert three[-1][2] is None
    assert read_answers(file, session.data) == three
    again = session_of(X, ids=session.ids)
    again.answer(read_answers(file, again.data))
    np.testing.assert_array_equal(again.view.labels, labels)
    again.undo()  # only the last of a file
    assert again.answers == three[:2]
    session.merge([0, 1])
    session.undo()
    assert session.answers == three
    session.undo()
    session.undo()
    assert session.answers == three[:1] == read_answers(file, session.data)
    assert session.question()[:2] == three[1][:2]


def test_answers_count_for_the_search_also_after_other_settings(session):
    session.take(session.fit(Settings(kernel="linear")))
    session.answer([(0, 60, True)])
    assert isinstance(session.view.model, SubspaceClustering)
    assert session.answers == [(0, 60, True)]


def test_questions_are_those_of_the_model_and_not_asked_twice(rng):
    X = rng.normal(size=(90, 2)) + np.repeat([[0, 0], [1.5, 0], [0, 1.5]], 30, axis=0)
    session = session_of(X)
    first = session.question()
    assert first == next(iter(SubspaceClustering().fit(X).questions(1)), None)
    if first is not None:
        session.answer([(first.i, first.j, None)])
        second = session.question()
        assert second is None or {*second[:2]} != {*first[:2]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n", "line 1: its first line must be first_id,second_id,answer"),
        (b"", "it holds nothing"),
        (b"first_id,second_id,answer\np1,p2,maybe\n", "line 2: must name two samples and say same"),
        (b"first_id,second_id,answer\np1,p2\n", "line 2: must name two samples"),
        (b"first_id,second_id,answer\np1,p2,same\np1,\x1bx,same\n", r"line 3: no sample is called \x1bx"),
        (b"first_id,second_id,answer\np1,p1,same\n", "line 2: names p1 twice"),
        (b"\xff\xfe\x00", "not a table of answers in UTF-8"),
        (b"x" * 10_000_001, "larger than 10 MB"),
    ],
)
def test_wrong_files_of_answers(data, tmp_path, content, message):
    session = session_of(data[0], n_clusters=4, ids=[f"p{i}" for i in range(120)])
    file = tmp_path / "answers.csv"
    assert read_answers(file, session.data) == []
    file.write_bytes(content)
    with pytest.raises(FileError) as raised:
        read_answers(file, session.data)
    assert message in str(raised.value)
    assert str(raised.value).isprintable()


def test_samples_of_one_name_are_told_apart_by_rows(data, tmp_path):
    session = session_of(data[0], n_clusters=4, ids=["same"] * 120)
    session.answers_file = tmp_path / "answers.csv"
    session.answer([(3, 70, False)])
    assert session.answers_file.read_text() == "first_row,second_row,answer\n3,70,different\n"


# ---------------------------------------------------------------- what is shown


def test_differences_of_rows_do_not_depend_on_units(explored):
    session, _ = explored
    found = session.difference(0, 100)
    assert [each.gap for each in found] == sorted((each.gap for each in found), reverse=True)
    X = session.data.X
    assert found[0].one == X[0, session.columns.index(found[0].column)]
    other = session_of(load_wine(as_frame=True).data * np.array([1e6, *[1] * 12]), n_clusters=3)
    assert [each.column for each in other.difference(0, 100)] == [each.column for each in found]


def test_most_different_members_are_shown_beside_the_typical_ones(rng):
    X = np.concatenate([rng.normal(0, 0.1, (40, 3)), rng.normal(5, 0.1, (40, 3))])
    X[7] += (0.7, 0, 0)
    X[11] -= (0.7, 0, 0)
    session = session_of(X, n_clusters=2)
    typical, different, _ = session.members(session.view, int(session.view.labels[7]))
    assert {7, 11} <= set(different.tolist())
    assert not set(typical) & set(different)
    own = session.view.labels == session.view.labels[7]
    assert own[different].all()


def test_doubtful_members_are_the_least_sure(rng):
    session = session_of(rng.normal(size=(80, 3)), n_clusters=5)
    view = session.view
    shown = [session.members(view, cluster)[2] for cluster in range(5)]
    assert any(len(rows) for rows in shown)
    for cluster, rows in enumerate(shown):
        own = np.sort(view.summary.confidence[(view.labels == cluster) & (view.summary.confidence < 0.5)])
        np.testing.assert_array_equal(view.summary.confidence[rows], own[:3])


def test_words_follow_the_groups(rng):
    texts = [f"\n<b>no {i}</b> " + " ".join(rng.choice(TOPICS[i % 2].split(), 9)) + "\nmore" for i in range(60)]
    session = session_of(vectors_of(texts, "tfidf"), n_clusters=2, texts=texts)
    for words in session.words(session.view):
        assert any(set(words) <= {*topic.split(), "more"} for topic in TOPICS)
    assert session.first_lines[3] == " ".join(texts[3].splitlines()[1].split())


def test_samples_that_represent_one(session):
    found = session.explain(3)
    np.testing.assert_array_equal(found.labels, session.view.labels[found.points])
    assert 3 not in found.points


# ---------------------------------------------------------------- what can be taken away


def test_saved_labels_are_as_the_command_line_writes_them(data):
    session = session_of(data[0], n_clusters=4, ids=["=1+1", *(f"point {i}" for i in range(119))])
    rows = list(csv.DictReader(session.labels_file(".csv").read().decode().splitlines()))
    assert [int(row["cluster"]) for row in rows] == session.view.labels.tolist()
    assert rows[0]["id"] == "'=1+1"  # no spreadsheet computes it
    confidence = [float(row["confidence"]) for row in rows]
    np.testing.assert_allclose(confidence, session.view.model.confidence_, atol=1e-6)
    session.rename(2, "cats")
    sheet = openpyxl.load_workbook(session.labels_file(".xlsx")).active
    rows = list(sheet.iter_rows(values_only=True))
    assert rows[0][:3] == ("id", "cluster", "name")
    assert {row[1]: row[2] for row in rows[1:]}[2] == "cats"


def test_report_has_columns_names_and_what_was_done_by_hand(explored):
    session, source = explored
    assert "proline" in session.report_file(source).read().decode()
    session.rename(1, "<reds>")
    session.merge([0, 2])
    page = session.report_file(source).read().decode()
    assert "groups were changed by hand" in page
    assert "&lt;reds&gt;" in page
    assert "<reds>" not in page


# ---------------------------------------------------------------- what is read


def test_square_pictures_are_recognised(rng):
    digits = load_digits().data[:200]
    colors = np.repeat(digits[:, :, None], 3, axis=2).reshape(200, -1)
    assert (image_shape_of(digits), image_shape_of(colors)) == ((8, 8), (8, 8, 3))
    at = np.linspace(0, 1, 64)
    curves = np.exp(-np.square((at - rng.uniform(0, 1, (200, 1))) / 0.1))  # spectra: as wide as 8 x 8 pixels
    walks = np.cumsum(rng.normal(size=(200, 64)), axis=1)
    for other in (curves, walks, rng.normal(size=(200, 64)), digits[:, rng.permutation(64)], sparse.csr_array(digits)):
        assert image_shape_of(other) is None


def test_wrong_arguments(data, wine):
    with pytest.raises(ValueError, match="y must have one entry for each of the 120 samples; got 3"):
        session_of(data[0], [1, 2, 3])
    with pytest.raises(ValueError, match=r"image_shape=\(5, 5\) must hold the 12 values"):
        session_of(data[0], image_shape=(5, 5))
    pytest.importorskip("panel", reason="Panel is not installed: pip install subspaces[explore]")
    line = fails("explore", wine, "--label", "target", "--image-shape", "5x5")
    assert "5x5 is not the size of rows of 13 values" in line
