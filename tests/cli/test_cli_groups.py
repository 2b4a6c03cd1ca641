"""What people take away: their own columns with the groups, groups in numbers, known labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from typer.main import get_command

from cli_data import FIXED, fails, found, run, told
from subspaces.app.cli.main import app
from subspaces.app.groups import Groups

pytest.importorskip("openpyxl")
pytest.importorskip("skops")


@pytest.fixture(scope="module")
def wine(tmp_path_factory):
    """A table with a gap, names, and classes; and the same with a class for every fifteenth row only."""
    folder = tmp_path_factory.mktemp("wine")
    data = load_wine(as_frame=True)
    frame = data.data.copy()
    frame.insert(0, "bottle", [f"B{i:03d}" for i in range(len(frame))])
    frame["kind"] = data.target_names[data.target]
    frame.loc[5, "hue"] = frame.loc[15, "ash"] = np.nan
    frame.to_csv(folder / "wine.csv", index=False)
    frame["kind"] = frame["kind"].where(np.arange(len(frame)) % 15 == 0, "")
    frame.to_csv(folder / "some.csv", index=False)
    known = frame.loc[frame["kind"] != "", ["bottle", "kind"]].set_axis(["id", "label"], axis=1)
    known.to_csv(folder / "known.csv", index=False)
    return folder


def test_results_keep_the_persons_columns_and_say_what_sets_groups_apart(wine, tmp_path):
    options = ("-k", 3, "--label", "kind", "--missing", "median", "--scaling", "standard", "--method", "ktrr")
    outputs = ("-o", tmp_path / "out.xlsx", "--report", tmp_path / "out.html")
    shown = told("cluster", wine / "wine.csv", *options, *outputs)
    before = pd.read_csv(wine / "wine.csv")
    book = pd.read_excel(tmp_path / "out.xlsx", sheet_name=None)
    table, groups = book["labels"], book["groups"]
    pd.testing.assert_frame_equal(table[before.columns], before, check_dtype=False)
    added = ["cluster", "confidence", "second_cluster", "doubtful", "margin", "fits_nowhere"]
    assert list(table)[-len(added) :] == added
    assert (table["doubtful"] == (table["confidence"] < 0.5)).all()
    numbers = before.drop(columns=["bottle", "kind"])
    by_cluster = numbers.groupby(table["cluster"])
    assert groups["n"].tolist() == [*by_cluster.size(), len(before)]
    for name in ("proline", "hue"):  # the gap of the latter counts as none
        np.testing.assert_allclose(groups[f"{name} mean"], [*by_cluster.mean()[name], numbers[name].mean()], rtol=1e-4)
        np.testing.assert_allclose(groups[f"{name} sd"], [*by_cluster.std()[name], numbers[name].std()], rtol=1e-4)
    rich = int(by_cluster.mean()["proline"].idxmax())
    said = groups["stands out"][rich]
    assert said.startswith("proline high (")
    assert f"cluster {rich}: {said}" in shown
    page = (tmp_path / "out.html").read_text()
    assert said in page
    assert 'id="groups"' in page


def test_telling_columns_are_those_furthest_from_the_rest_in_any_unit(rng):
    labels = np.repeat([0, 1, 2], [50, 30, 4])
    frame = pd.DataFrame(rng.normal(size=(84, 4)), columns=list("abcd"))
    frame["c"] = frame["c"] * 1e-9 + np.where(labels == 1, 4e-9, 0)
    frame["d"] = frame["d"] * 1e6 - np.where(labels == 1, 2e6, 0)
    frame["same"], frame["text"] = 7.0, "x"
    found = Groups.of(labels, frame, {1: "elm"})
    assert [found.columns[j] for j in found.strongest(1)[:2]] == ["c", "d"]
    own, rest = frame["c"][labels == 1], frame["c"][labels != 1]
    expected = (own.mean() - rest.mean()) / np.sqrt((own.var() + rest.var()) / 2)
    assert found.difference[1, found.columns.index("c")] == pytest.approx(expected)
    assert found.telling(1).startswith(f"c high ({own.mean():.3g}), d low (")
    assert found.names == [0, "1: elm", 2]
    assert "same" not in found.telling(0) + found.telling(1) + found.telling(2)
    order = rng.permutation(84)
    shuffled = Groups.of(labels[order], frame.iloc[order][frame.columns[::-1]])
    assert shuffled.telling(1) == found.telling(1)
    wide = Groups.of(labels, pd.DataFrame(rng.normal(size=(84, 600))))
    assert len(wide.table()[0]) == 3 + 2 * 500, "a sheet has room for some"
    near = Groups.of(np.arange(200) % 2, pd.DataFrame({"a": np.arange(200.0)}))
    assert near.telling(0) == ""
    assert [cell for _, cells in near.compared(5) for cell, _ in cells][-1] == "100 ± 58"
    uneven = Groups.of(np.arange(200) % 2, pd.DataFrame({"a": np.tile([1.0, 4.0], 100) + np.arange(200) % 4 / 4}))
    (cells,) = (cells for _, cells in uneven.compared(5))
    assert len({len(cell) for cell, _ in cells}) == 1, "as many decimals in every group"


def test_new_rows_keep_their_columns_and_those_unlike_all_fit_nowhere(wine, tmp_path):
    told("cluster", wine / "wine.csv", "--ignore", "kind", "--missing", "median", "--save", tmp_path / "m.skops", "-q")
    new = pd.read_csv(wine / "wine.csv").iloc[10::9].reset_index(drop=True)
    new.loc[3, ["alcohol", "proline", "ash"]] = [40.0, 9000.0, 12.0]
    new.to_csv(tmp_path / "new.csv", index=False)
    shown = told("predict", tmp_path / "m.skops", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert "fits nowhere: unlike all points of the model" in shown
    table = pd.read_csv(tmp_path / "out.csv")
    pd.testing.assert_frame_equal(table[new.columns], new, check_dtype=False)
    assert np.flatnonzero(table["fits_nowhere"]).tolist() == [3]
    assert table["confidence"].drop(3).min() > table["confidence"][3]
    assert (table["second_cluster"] != table["cluster"]).all()


# ------------------------------------------------------------------ known labels


@pytest.mark.parametrize("how", ["a column with gaps", "a file"])
def test_known_labels_are_kept_named_and_reported(wine, tmp_path, how):
    given = (wine / "some.csv", "--label", "kind") if how == "a column with gaps" else (wine / "wine.csv",)
    given += () if how == "a column with gaps" else ("--label", "kind", "--known", wine / "known.csv")
    shown = told("cluster", *given, "--missing", "median", "-o", tmp_path / "o.csv", "--report", tmp_path / "o.html")
    assert "12 of 178 rows are labelled: used as known labels; the rest is found" in shown
    assert ("accuracy" in shown) == (how == "a file"), "labels that decide are none to score by"
    table = pd.read_csv(tmp_path / "o.csv")
    known = pd.read_csv(wine / "some.csv")["kind"]
    assert (table["known"] == known.notna()).all()
    assert (table["name"][known.notna()] == known.dropna()).all()
    assert set(table["name"]) >= {"class_0", "class_1", "class_2"}
    page = (tmp_path / "o.html").read_text()
    assert "What you told us" in page
    assert "You gave 12 labels of 3 classes." in page
    assert "of 178 points" in page.partition('id="told"')[2][:400]
    document = found("cluster", *given, "--missing", "drop")
    assert document["told"]["n_known"] == 11, "one of them has a gap"
    assert document["told"]["with"] == document["n_clusters"]
    assert "n_clusters_range" not in document, "the search's range is not that of the hints"


def test_known_labels_that_cannot_be_used_are_refused_in_one_line(wine, tmp_path):
    known = tmp_path / "k.csv"
    known.write_text("id,label\nB000,a\nnobody,b\n")
    assert "1 id is not among the samples, the first 'nobody'" in fails(
        "cluster", wine / "wine.csv", "--known", known, "--ignore", "kind", "--missing", "mean"
    )
    known.write_text("id,label\nB000,a\nB000,b\n")
    rest = ("--ignore", "kind", "--missing", "mean")
    assert "'B000' has two labels, 'a' and 'b'" in fails("cluster", wine / "wine.csv", "--known", known, *rest)
    nameless = pd.read_csv(wine / "wine.csv").drop(columns=["bottle", "kind"])
    nameless.to_csv(tmp_path / "nameless.csv", index=False)
    line = fails("cluster", tmp_path / "nameless.csv", "--known", known, "--missing", "mean")
    assert "nameless.csv has none; name their column with --id" in line, "row numbers are no ids"
    known.write_text("id,label\nB000,a\nB001,a\n")
    assert "two classes or more" in fails("cluster", wine / "wine.csv", "--known", known, *rest)
    assert "--method auto" in fails("cluster", wine / "wine.csv", "--known", known, "--method", "ktrr")
    line = fails(
        "cluster", wine / "some.csv", "--label", "kind", "--missing", "mean", "-k", 3, *FIXED, "--method", "ktrr"
    )
    assert "takes no known labels" in line


# ------------------------------------------------------------------ asked for, and not there


def test_a_number_that_was_asked_for_is_no_evidence_for_groups(tmp_path, rng):
    cloud = pd.DataFrame(rng.normal(size=(200, 6)))
    cloud.to_csv(tmp_path / "cloud.csv", index=False)
    (cloud + np.repeat([[0], [9], [18]], [70, 70, 60], axis=0)).to_csv(tmp_path / "apart.csv", index=False)
    assert (
        "nothing in the data says that there are groups" in found("cluster", tmp_path / "cloud.csv", "-k", 4)["verdict"]
    )
    assert found("cluster", tmp_path / "apart.csv", "-k", 3)["verdict"] == "3 groups, as asked."


def test_every_command_that_reads_files_has_all_options_of_reading():
    commands = get_command(app).commands
    options = {name: {option for each in commands[name].params for option in each.opts} for name in commands}
    shared = {"--label", "--id", "--ignore", "--keep", "--sheet", "--missing", "--text", "--features", "--set"}
    assert all(shared <= options[name] for name in ("cluster", "predict", "explore"))
    shown = [each for each in commands["cluster"].params if getattr(each, "rich_help_panel", None) != "Advanced"]
    assert len(shown) <= 20


def test_help_and_advice_are_as_written(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert "subspaces[images]" in run("cluster", "--help").output
    table = pd.DataFrame({"Observer": ["Jo", "Al"] * 10, "Length": np.arange(20.0), "Width": np.ones(20)})
    table["Species"] = ["ash", "elm", "oak", "fir"] * 5
    table.to_csv(tmp_path / "trees.csv", index=False)
    assert "--label Species --ignore Observer" in fails("cluster", tmp_path / "trees.csv")
