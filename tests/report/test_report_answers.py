"""What the report answers: what is doubtful, what to do next, where points lie; pictures read in one place."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

from cli_data import FIXED
from subspaces import KTRR, TRR
from subspaces.app.cli.main import app
from subspaces.app.report import Content, _page, _tree, render
from subspaces.app.report import _tables as tables
from subspaces.app.report._doubtful import doubtful_section
from subspaces.app.report._map import map_view
from subspaces.app.report._next import next_steps, other_numbers, parsed
from subspaces.app.report._pictures import Pictures

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
pytest.importorskip("PIL")


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(5)
    return np.kron(np.eye(3), rng.uniform(0.5, 1, size=(16, 4))) + 0.02 * rng.uniform(size=(48, 12))


@pytest.fixture(scope="module")
def content(points):
    return Content.from_estimator(TRR(3).fit(points), points)


def unsure(content, **changed):
    """The same run with these columns of its summary changed: name={point: value}."""
    columns = {name: getattr(content.summary, name).copy() for name in changed}
    for name, values in changed.items():
        for i, value in values.items():
            columns[name][i] = value
    return replace(content, summary=replace(content.summary, **columns))


@pytest.fixture
def no_plots(monkeypatch):
    monkeypatch.setattr(_page, "pictures", lambda _: [])
    monkeypatch.setattr(_page, "drawn", lambda _: [])
    monkeypatch.setattr(_tree, "drawn", lambda _: [])


# ------------------------------------------------------------------ doubtful


def test_doubtful_points_come_in_pairs_the_least_sure_first(content):
    some = unsure(
        content,
        confidence={0: 0.3, 1: 0.499, 20: 0.1, 21: 0.45},
        second_cluster={0: 1, 1: 1, 20: 0, 21: 2},
        margin={0: -0.2, 20: 0.1},
        fits_nowhere={20: True},
    )
    found = doubtful_section(some, None)
    assert found.n_doubtful == 4
    assert found.n_hidden == 0
    (pair, together), (last, alone) = found.groups
    assert (pair, last) == ("Between clusters 0 and 1", "One at a time")
    assert [(item.index, item.second) for item in together] == [(20, 0), (0, 1), (1, 1)]
    assert [item.remark for item in together] == ["fits nowhere", "another cluster suits better", ""]
    assert [item.index for item in alone] == [21]
    assert together[0].values == ", ".join(f"{value:.4g}" for value in some.X[20, :4]) + ", …"
    assert tables.two_digits(together[2].confidence) == "0.49"  # below a half, and shown so


def test_sure_points_are_not_called_doubtful(content):
    found = doubtful_section(unsure(content, margin={3: -0.1}, second_cluster={3: 2}), None)
    assert found.n_doubtful == 0
    assert found.sentence.startswith("No cluster shown is more probably wrong than right")
    assert "1 point is not doubtful, but nearer to another cluster" in found.sentence
    assert sum(len(items) for _, items in found.groups) == 6


def test_one_cluster_has_nothing_doubtful(points, no_plots):
    single = Content.from_estimator(TRR(1).fit(points), points)
    assert doubtful_section(single, None) is None
    page = render(single)
    assert 'id="doubtful"' not in page
    assert "All 48 points are in one group." in page


def test_plain_words_say_how_many_how_sure_and_what_to_look_at(content):
    said = " ".join(tables.plain_words(unsure(content, confidence={0: 0.2}, fits_nowhere={0: True, 1: True})))
    assert said.startswith("The 48 points were put into 3 groups (clusters), each with 16 points.")
    assert "For a typical point the cluster is right with a probability of" in said
    assert "Look first at the 1 point that is doubtful." in said
    assert "2 points fit nowhere" in said


# ------------------------------------------------------------------ what next


def steps_of(content, command):
    return {step.title: step for step in next_steps(replace(content, command=command))}


def test_next_commands_keep_what_was_typed(content):
    command = "subspaces cluster 'my table.csv' --ignore kind -k3 --seed 4 --report out.html --force -q"
    found = steps_of(content, command)
    words = {title: [shlex.split(line) for line in step.commands] for title, step in found.items()}
    kept = ["subspaces", "cluster", "my table.csv", "--ignore", "kind", "-k", "3", "--seed", "4"]
    assert words["Keep the result as a table"] == [[*kept, "-o", "my table-clusters.xlsx"]]
    assert words["Label new points"][0] == [*kept, "--save", "my table.skops"]
    assert words["Label new points"][1][:4] == ["subspaces", "predict", "my table.skops", "NEW"]
    assert words["Try it with your own hands"] == [["subspaces", "explore", "my table.csv", "--ignore", "kind"]]
    (scored,) = words["Compare with what you know"]
    assert "--ignore" not in scored
    assert scored[scored.index("--label") + 1] == "kind"
    assert "Sort the files into folders" not in found


def test_next_commands_only_where_they_make_sense(content):
    assert next_steps(content) == []  # from Python
    assert steps_of(content, "subspaces cluster - -k 3") == {}
    titles = set(steps_of(content, "subspaces cluster cube.hdr --image -o map.hdr -k 3"))
    assert not titles & {"Label new points", "Try it with your own hands", "Keep the result as a table"}
    folder = replace(content, files=["a/b.png"] * 48, ids=["a/b.png"] * 48, image_shape=(3, 4))
    found = steps_of(folder, "subspaces cluster photos --set color=true")
    assert found["Sort the files into folders"].commands == (
        "subspaces cluster photos --set color=true --sort-into photos-sorted",
    )
    assert "--label folder" in found["Compare with your own folders"].commands[0]


def test_other_numbers_are_those_that_may_be_right(points, content):
    model = KTRR("auto", reg="auto").fit(points)
    found = Content.from_estimator(model, points)
    numbers = other_numbers(found)
    assert model.n_clusters_ not in numbers
    assert 1 not in numbers
    assert numbers == sorted(set(numbers))
    if numbers:
        step = steps_of(found, "subspaces cluster x.csv -k auto")["Try another number of clusters"]
        assert step.commands[0] == f"subspaces cluster x.csv -k {numbers[0]} --report x-{numbers[0]}.html"


def test_parsed_understands_every_way_to_write_an_option():
    assert parsed("subspaces cluster a b -k3 --clusters=4 --motion --set a=b") == [
        ("", "a"),
        ("", "b"),
        ("-k", "3"),
        ("--clusters", "4"),
        ("--motion", None),
        ("--set", "a=b"),
    ]


def test_switches_are_those_of_the_command():
    """An option that takes no value would swallow the word behind it."""
    from typer.main import get_command

    from subspaces.app.report import _next

    (cluster,) = [c for name, c in get_command(app).commands.items() if name == "cluster"]
    flags = {
        name
        for parameter in cluster.params
        if getattr(parameter, "is_flag", False)
        for name in [*parameter.opts, *parameter.secondary_opts]
    }
    assert flags - {"--help"} <= _next.SWITCHES | _next.OUTPUT_SWITCHES


def test_commands_of_a_report_run(tmp_path, monkeypatch):
    """From an empty folder: those that write files do it, as they are printed (pages take too long for a test)."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(20, 3)), 9 + rng.normal(size=(20, 3))])
    np.savetxt("x y.csv", rows, delimiter=",", header="a,b,c", comments="")
    first = CliRunner().invoke(app, ["cluster", "x y.csv", "-k", "2", *FIXED, "--report", "r.html"])
    assert first.exit_code == 0, first.output
    page = (tmp_path / "r.html").read_text()
    section = page.partition('<section id="next-steps">')[2].partition("</section>")[0]
    lines = [re.sub("<[^>]+>", "", line) for line in re.findall(r"<code>(.*?)</code>", section)]
    commands = [shlex.split(line.replace("&#39;", "'")) for line in lines]
    wanted = [words for words in commands if words[1] == "cluster" and "--report" not in words]
    assert len(wanted) == 2
    for words in wanted:
        result = CliRunner().invoke(app, words[1:])
        assert result.exit_code == 0, (words, result.output)
    label = next(words for words in commands if words[1] == "predict")
    result = CliRunner().invoke(app, ["x y.csv" if word == "NEW" else word for word in label[1:]])
    assert result.exit_code == 0, result.output


# ------------------------------------------------------------------ map, table, pictures


def test_map_has_a_place_for_every_point(content):
    view = map_view(content)
    assert view.points.shape == (48, 2)
    assert view.centres.shape == (3, 2)
    assert view.points.min() == 0
    assert view.points.max() == 9999
    assert len(set(view.colors)) == 3


@pytest.mark.parametrize("kind", ["no embedding", "sparse", "one column", "equal", "two"])
def test_map_of_unusual_points(kind, points):
    from sklearn.cluster import KMeans

    X = {"one column": points[:, :1], "equal": np.ones((8, 3)), "two": points[:2]}.get(kind, points)
    X = sparse.csr_array(X) if kind == "sparse" else X
    model = KMeans(1 if kind == "equal" else 2, random_state=0).fit(X)
    found = map_view(Content.from_estimator(model, X))
    assert found.points.shape == (X.shape[0], 2)
    assert found.points.min() >= 0


def test_sparse_points_have_a_report(no_plots, points):
    X = sparse.csr_array(np.where(points > 0.3, points, 0))
    page = render(Content.from_estimator(KTRR(3).fit(X), X, feature_names=[f"word{j}" for j in range(12)]))
    assert "word" in page.partition('<section id="doubtful">')[2]


def test_table_and_map_carry_the_same_names_as_files(content):
    data = _page._points(content, map_view(content), 1.0)
    assert set(data) >= {"id", "cluster", "confidence", "second_cluster", "margin", "fits_nowhere", "x", "y"}
    assert data["named_by"] == "row"
    assert data["id"][:3] == ["0", "1", "2"]
    lines = replace(content, ids=[f"line {i + 2}" for i in range(48)], named_by="line")
    assert _page._points(lines, None, 1.0)["id"][0] == "2"
    assert json.dumps(data)


def test_of_too_many_points_the_least_sure_and_an_even_part_are_listed(content, monkeypatch):
    monkeypatch.setattr(_page, "TABLE_BYTES", 1300)
    least = np.argsort(content.summary.confidence, kind="stable")
    listed = _page._listed(content, 1300.0)
    assert 10 < len(listed) < 30
    assert set(least[: len(listed) // 2].tolist()) <= set(listed.tolist())
    assert listed.max() > 40


def test_pixels_beside_the_points_are_the_pictures(content):
    rng = np.random.default_rng(0)
    pixels = rng.uniform(size=(48, 30))
    beside = replace(content, image_shape=(5, 6), pixels=pixels)
    whole = replace(content, X=pixels, image_shape=(5, 6))
    assert Pictures(beside).uri(7) == Pictures(whole).uri(7)


def test_pictures_are_as_large_as_there_is_room():
    X = np.random.default_rng(0).uniform(size=(20, 40_000))
    model = TRR(2).fit(X[:, :30])
    pictures = Pictures(Content.from_estimator(model, X, image_shape=(200, 200)))
    assert pictures.fitting_side(10**9) == 256
    assert pictures.fitting_side(1) == 64


def test_one_cluster_has_no_range_beside_it(points):
    """ "1 to 10 may be right" beside "nothing speaks for splitting them" says nothing."""
    single = Content.from_estimator(TRR(1).fit(points), points)
    single.document["n_clusters_range"] = (1, 10)
    assert tables.key_figures(single)[1] == ("1", "cluster", "")
