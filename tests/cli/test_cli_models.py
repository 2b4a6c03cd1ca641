"""Models in the shell: saved, used on new files; runs compared."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from cli_data import COLUMNS, fails, found, told, write_images, write_rings
from subspaces.app.files import write_labels

pytest.importorskip("skops")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three rings, a model of the first two thirds of each, and the rest as a new table."""
    folder = tmp_path_factory.mktemp("models")
    frame = pd.read_csv(write_rings(folder))
    new = np.arange(90) % 3 == 0
    frame[~new].to_csv(folder / "old.csv", index=False)
    frame[new].to_csv(folder / "new.csv", index=False)
    shown = told("cluster", folder / "old.csv", "-k", 3, *COLUMNS, "--save", folder / "m.skops", "-o", folder / "o.csv")
    assert f"model written to {folder / 'm.skops'}; subspaces predict" in shown
    return folder


def test_new_points_get_the_labels_of_their_kind(folder, tmp_path):
    shown = told("predict", folder / "m.skops", folder / "new.csv", "-o", tmp_path / "labels.csv")
    assert f"{folder / 'new.csv'}: 30 points in 3 clusters" in shown
    assert "points in each cluster: 0: 10, 1: 10, 2: 10" in shown
    labels = pd.read_csv(tmp_path / "labels.csv")
    added = ["cluster", "confidence", "second_cluster", "doubtful", "fits_nowhere"]
    assert list(labels) == ["id", *pd.read_csv(folder / "new.csv").columns, *added]
    assert labels["id"].tolist() == pd.read_csv(folder / "new.csv")["name"].tolist()
    species = pd.read_csv(folder / "new.csv")["species"]
    old = dict(zip(pd.read_csv(folder / "old.csv")["species"], pd.read_csv(folder / "o.csv")["cluster"], strict=True))
    assert labels["cluster"].tolist() == [old[kind] for kind in species]


def test_the_same_columns_in_another_order_are_found_by_name(folder, tmp_path):
    """Also where the file has just as many columns as the model."""
    frame = pd.read_csv(folder / "new.csv").drop(columns=["name", "species"])
    expected = found("predict", folder / "m.skops", folder / "new.csv")["cluster"]
    frame[frame.columns[::-1]].to_csv(tmp_path / "turned.csv", index=False)
    assert found("predict", folder / "m.skops", tmp_path / "turned.csv")["cluster"] == expected
    piped = found("predict", folder / "m.skops", "-", input=(folder / "new.csv").read_bytes())
    assert piped["cluster"] == expected
    renamed = frame.rename(columns={"x1": "X1", "x4": "X4"})
    renamed.to_csv(tmp_path / "renamed.csv", index=False)
    line = fails("predict", folder / "m.skops", tmp_path / "renamed.csv")
    assert "2 columns are missing: 'x1', 'x4', and 'X1', 'X4' are not known" in line
    frame.assign(more=1.0).to_csv(tmp_path / "more.csv", index=False)
    assert "note: not used: 'more'" in told("predict", folder / "m.skops", tmp_path / "more.csv")
    frame.to_csv(tmp_path / "bare.csv", index=False, header=False)
    shown = told("predict", folder / "m.skops", tmp_path / "bare.csv", "-o", tmp_path / "labels.csv")
    assert "note: there are no names of columns: they are taken in the order of the model's" in shown
    assert pd.read_csv(tmp_path / "labels.csv")["cluster"].tolist() == expected


def test_ids_are_no_columns_of_a_model(folder, tmp_path):
    """Left out when the model was fitted, and so in every new file, whatever the numbers look like there."""
    frame = pd.read_csv(folder / "old.csv").drop(columns=["name", "species"])
    frame.insert(0, "any", np.arange(len(frame)))
    frame["Ring"] = np.arange(len(frame)) ** 2
    frame["Date"] = "2024-05-03"
    frame.to_csv(tmp_path / "old.csv", index=False)
    saved = ("--save", tmp_path / "m.skops", "-o", tmp_path / "labels.csv")
    shown = told("cluster", tmp_path / "old.csv", "-k", 3, *saved)
    assert "note: left out: any (id), Ring (id), Date (date); --keep any uses it all the same" in shown
    assert "9 features" in shown
    labels = pd.read_csv(tmp_path / "labels.csv")
    assert labels["id"].tolist() == list(range(60))
    frame.assign(any=0.5).to_csv(tmp_path / "new.csv", index=False)
    result = found("predict", tmp_path / "m.skops", tmp_path / "new.csv")
    assert result["cluster"] == labels["cluster"].tolist()
    assert result["id"] == [str(i**2) for i in range(60)]  # the only column there that looks like names
    kept = told("cluster", tmp_path / "old.csv", "-k", 3, "--keep", "any", "--save", tmp_path / "k.skops")
    assert "10 features" in kept
    assert "1 column is missing: 'any'" in fails("predict", tmp_path / "k.skops", folder / "new.csv")


def test_advice_on_new_files_can_be_followed(folder, tmp_path):
    """A column of the model cannot be left out, so nobody is told to; others can."""
    frame = pd.read_csv(folder / "new.csv")
    frame.assign(x2=frame["x2"].where(frame.index > 3)).to_csv(tmp_path / "gaps.csv", index=False)
    line = fails("predict", folder / "m.skops", tmp_path / "gaps.csv")
    assert line.endswith("--missing mean or --missing median")
    told("predict", folder / "m.skops", tmp_path / "gaps.csv", "--missing", "median")
    frame.assign(x2="a").to_csv(tmp_path / "text.csv", index=False)
    assert "'a' is not a number; correct" in fails("predict", folder / "m.skops", tmp_path / "text.csv")
    scored = told("predict", folder / "m.skops", folder / "new.csv", "--label", "species")
    assert re.search(r"^predicted +100\.0 ", scored, flags=re.M)
    assert "'reg' is not one of header" in fails("predict", folder / "m.skops", folder / "new.csv", "--set", "reg=1")


def test_what_does_not_fit_the_model_is_refused(folder, tmp_path):
    frame = pd.read_csv(folder / "new.csv").drop(columns=["x3", "x5"])
    frame.to_csv(tmp_path / "less.csv", index=False)
    assert "2 columns are missing: 'x3', 'x5'" in fails("predict", folder / "m.skops", tmp_path / "less.csv")
    np.save(tmp_path / "x.npy", np.ones((4, 7)))
    line = fails("predict", folder / "m.skops", tmp_path / "x.npy")
    assert "its points have 7 values, those of the model 9; name a file like the one" in line
    assert "not a model" in fails("predict", folder / "new.csv", folder / "new.csv")
    (tmp_path / "labels.csv").write_text("precious")
    assert "--force" in fails("predict", folder / "m.skops", folder / "new.csv", "-o", tmp_path / "labels.csv")


def test_models_are_written_where_they_can_be(folder, tmp_path):
    table = folder / "old.csv"
    assert "choose one of .skops" in fails("cluster", table, *COLUMNS, "--save", tmp_path / "m.pkl")
    assert "the file exists" in fails("cluster", table, *COLUMNS, "--save", folder / "m.skops")
    assert "--save: has no meaning with --motion" in fails("cluster", table, "--motion", "--save", tmp_path / "m.skops")


def test_one_new_image_is_enough(tmp_path):
    rng = np.random.default_rng(0)
    images = {f"{kind}_{i}.png": np.zeros((40, 30, 3)) for kind in range(2) for i in range(8)}
    for name, pixels in images.items():
        pixels[:, :, int(name[0])] = np.linspace(60, 250, 30) + 3 * rng.normal(size=(40, 30))
    photos, model = write_images(tmp_path / "photos", images), tmp_path / "m.skops"
    given = ("--set", "color=true", "--set", "image_size=9x8", "--save", model)
    labels = found("cluster", photos, "-k", 2, *given)["cluster"]
    for name, expected in (("0_3.png", labels[3]), ("1_3.png", labels[11])):
        assert found("predict", model, photos / name)["cluster"] == [expected]
    assert found("predict", model, photos)["cluster"] == labels


# ------------------------------------------------------------------ compare

LABELS = np.array([0, 0, 0, 1, 1, 1, 2, 2])


@pytest.fixture
def runs(tmp_path):
    """Two files of labels with names, the second in another order and with one point elsewhere."""
    ids, order = [f"p{i}" for i in range(8)], [7, 1, 2, 3, 4, 5, 6, 0]
    write_labels(tmp_path / "a.csv", LABELS, ids=ids)
    other = (LABELS + 1) % 3
    other[4] = 0
    write_labels(tmp_path / "b.csv", other[order], ids=[ids[i] for i in order])
    pd.DataFrame({"id": ids, "species": list("xxxyyyzz")}).to_csv(tmp_path / "truth.csv", index=False)
    return tmp_path


def test_two_runs(runs):
    shown = told("compare", runs / "a.csv", runs / "b.csv")
    assert "a.csv: 8 points, 3 clusters" in shown
    (line,) = [line for line in shown.splitlines() if line.startswith("a.csv and b.csv")]
    assert line.split()[3:5] == ["8", "87.5"]


def test_runs_against_the_truth(runs):
    files = [runs / f"{name}.csv" for name in ("a", "b", "truth")]
    document = found("compare", *files, "--label", "species")
    agreed = [(*pair["files"], pair["accuracy"]) for pair in document["pairs"]]
    assert agreed == [("a.csv", "b.csv", 0.875), ("a.csv", "species", 1.0), ("b.csv", "species", 0.875)]
    shown = told("compare", runs / "a.csv", runs / "truth.csv", "--truth", "species")
    assert "\na.csv and species       8  100.0" in shown
    assert "no file has a column 'kind'" in fails("compare", runs / "a.csv", runs / "b.csv", "--label", "kind")


@pytest.mark.parametrize("suffix", [".tsv", ".npy", ".parquet", ".xlsx"])
def test_all_formats_of_labels(tmp_path, suffix):
    rows = {"rows": np.arange(8), "n_rows": 9}
    write_labels(tmp_path / "a.csv", LABELS, **rows)
    write_labels(tmp_path / f"b{suffix}", LABELS, **rows)
    (pair,) = found("compare", tmp_path / "a.csv", tmp_path / f"b{suffix}")["pairs"]
    assert pair == {"files": ["a.csv", f"b{suffix}"], "n_samples": 8, "accuracy": 1.0, "ari": 1.0, "nmi": 1.0}


def test_label_files_that_cannot_be_compared(runs, tmp_path):
    for file, given, told_so in [
        ("a.csv", [], "needs two or more label files, or one and a file with the column --label; got 1"),
        ("truth.csv", ["--label", "species"], "needs two or more label files, or --method NAME for a table"),
        ("a.csv", [runs / "b.csv", "--missing", "drop"], "--missing: says how a table is read, which needs --method"),
    ]:
        assert told_so in fails("compare", runs / file, *given)
    np.save(tmp_path / "short.npy", LABELS[:5])
    write_labels(tmp_path / "few.csv", LABELS[:3], ids=["q1", "q2", "p0"])
    for name, content, told_so in [
        ("x.csv", "x,y\n1,2\n", "no column is called 'cluster', 'label', 'labels'; the columns are 'x', 'y'"),
        ("short.npy", None, "5 labels, and a.csv has 8; files without ids"),
        ("few.csv", None, "it shares 1 id with a.csv; 2 are needed"),
        ("twice.csv", "id,label\np0,1\np0,2\n", "an id stands there twice"),
        ("empty.csv", "label\n", "it holds no labels"),
        ("g.pkl", "", "labels are not read from '.pkl'"),
        ("nothing.csv", None, "no such file"),
    ]:
        if content is not None:
            (tmp_path / name).write_text(content)
        assert told_so in fails("compare", runs / "a.csv", tmp_path / name)
