"""``subspaces cluster``: images, missing values, and the files that come out of it."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pandas as pd
import pytest

from cli_data import FIXED, fails, found, told, write_images
from subspaces import KTRR
from subspaces.app.files import read_table, write_labels

COLUMNS = ["cluster", "confidence", "second_cluster", "doubtful", "margin", "fits_nowhere"]


@pytest.fixture
def frame(rng):
    """Two groups of 20 points in five features, with names."""
    X = np.kron(np.eye(2), rng.uniform(1, 2, size=(20, 3)))[:, :5] + 0.01 * rng.normal(size=(40, 5))
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d", "e"])
    frame.insert(0, "name", [f"p{i}" for i in range(40)])
    frame["kind"] = np.repeat(["x", "y"], 20)
    return frame


def save(frame, path):
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def faces(tmp_path, rng):
    """Two kinds of pictures with noise, twelve of each, one broken file."""
    light, noise = rng.uniform(0.5, 1, size=(24, 1, 1)), rng.uniform(0, 20, size=(24, 12, 12))
    images = rng.uniform(0, 200, size=(2, 12, 12))[np.arange(24) % 2] * light + noise
    folder = write_images(tmp_path / "faces", {f"{i}.png": image for i, image in enumerate(images)})
    (folder / "broken.png").write_text("no image")
    return folder


# ------------------------------------------------------------------ missing values


def with_gaps(frame):
    frame = frame.copy()
    frame.loc[[3, 7], "b"] = np.nan
    frame.loc[7, "d"] = np.nan
    return frame


def test_missing_values_are_reported_by_row_and_column(frame, tmp_path):
    path = save(with_gaps(frame), tmp_path / "x.csv")
    line = fails("cluster", path, "-k", 2, "--id", "name", "--label", "kind")
    assert "line 5, column 'b': missing value, the first of 3 in 2 rows and 2 columns" in line
    assert "(line 5: 'b'; line 9: 'b', 'd')" in line
    assert "--missing drop, which keeps 38 of 40 rows, --missing mean or --missing median" in line
    frame.loc[1:, "a"] = np.nan
    line = fails("cluster", save(frame, path), "-k", 2, "--id", "name", "--label", "kind")
    assert "and 35 more rows" in line


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npy"])
def test_dropped_rows_have_an_empty_label(frame, tmp_path, suffix):
    path, out = save(with_gaps(frame), tmp_path / "x.csv"), tmp_path / f"labels{suffix}"
    shown = told("cluster", path, "-k", 2, "--id", "name", "--label", "kind", "--missing", "drop", "-o", out, *FIXED)
    assert "3 values were missing ('b' 2, 'd' 1): 2 rows with a gap left out" in shown
    if suffix == ".npy":
        assert np.flatnonzero(np.load(out) == -1).tolist() == [3, 7]
        return
    written = pd.read_parquet(out) if suffix == ".parquet" else pd.read_csv(out, sep=",\t"[suffix == ".tsv"])
    assert written["id"].tolist() == [f"p{i}" for i in range(40)]
    assert np.flatnonzero(written["cluster"].isna()).tolist() == [3, 7]
    assert list(written) == ["id", *frame.columns, *COLUMNS]
    assert np.flatnonzero(written["confidence"].isna()).tolist() == [3, 7]


@pytest.mark.parametrize(("rule", "function"), [("mean", np.nanmean), ("median", np.nanmedian)])
def test_missing_values_are_filled_in(frame, tmp_path, rule, function):
    numbers = with_gaps(frame)[["a", "b", "c", "d", "e"]]
    path = tmp_path / "x.npy"
    np.save(path, numbers.to_numpy())
    data = read_table(path, missing=rule)
    expected = np.where(np.isnan(numbers), function(numbers, axis=0), numbers)
    np.testing.assert_allclose(data.X, expected)
    assert f"the {rule} of the column was put in" in data.notes[-1]
    assert read_table(path, missing="drop").rows.tolist() == [i for i in range(40) if i not in (3, 7)]


# ------------------------------------------------------------------ result files


def test_spreadsheets_run_no_formula(tmp_path):
    ids = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\tx", "\rx", " =1", "\n=1", "＝1"]
    ids += ["-5", "+1e3", "a=b", "plain"]
    ids += ['a;=HYPERLINK("http://x")', "b,+1+1; @SUM(A1)", 'c;"=1+1"', "d\t-2+3", "e;-5,cmd|' /C calc'!A0", "f;-5"]
    for suffix in (".csv", ".tsv"):
        path = tmp_path / f"labels{suffix}"
        write_labels(path, np.arange(19), ids=ids)
        written = pd.read_csv(path, sep="," if suffix == ".csv" else "\t", dtype=str)["id"].tolist()
        assert [name.replace("'", "") for name in written] == [name.replace("'", "") for name in ids]
        assert [*written[:7], *written[9:13], written[18]] == [*("'" + name for name in ids[:7]), *ids[9:13], ids[18]]
        for delimiter in ",;\t":  # which of them separates cells is a matter of the country
            rows = csv.reader(io.StringIO(path.read_text(), newline=""), delimiter=delimiter)
            cells = [cell.lstrip(' "') for row in rows for cell in row]
            begun = [cell for cell in cells if cell.startswith(tuple("=+-@＝"))]
            assert all(re.fullmatch(r"[-+][\d,\te]+", cell) for cell in begun), (delimiter, begun)
    write_labels(tmp_path / "labels.parquet", np.arange(19), ids=ids)
    assert pd.read_parquet(tmp_path / "labels.parquet")["id"].tolist() == ids


def test_columns_of_the_result(frame, tmp_path):
    path = save(frame, tmp_path / "x.csv")
    arguments = ("cluster", path, "-k", 2, "--id", "name", "--label", "kind", *FIXED)
    assert "confidence of the labels: median" in told(*arguments, "-o", tmp_path / "labels.csv")
    written = pd.read_csv(tmp_path / "labels.csv")
    assert list(written) == ["id", *frame.columns, *COLUMNS]
    assert written["confidence"].between(0, 1).all()
    assert set(written["fits_nowhere"]) <= {0, 1}
    document = found(*arguments)
    assert set(document) >= {"id", "cluster", *COLUMNS[1:], "clusters"}
    np.testing.assert_allclose(written["confidence"], document["confidence"], rtol=1e-5)
    assert [row["size"] for row in document["clusters"]] == [20, 20]
    assert set(document["clusters"][0]["exemplars"]) <= set(frame["name"])


# ------------------------------------------------------------------ images


def test_from_a_folder_to_sorted_images_and_a_report(faces, tmp_path):
    outputs = ("--sort-into", tmp_path / "sorted", "--report", tmp_path / "out.html", "-o", tmp_path / "labels.csv")
    outputs = (*outputs, "--features", "pixels")
    shown = told("cluster", faces, "-k", 2, *FIXED, *outputs)
    assert "24 images, 144 features" in shown
    assert "note: 24 images of 12 x 12 pixels, used as they are" in shown
    assert "note: 1 file skipped: broken.png (not an image of a known format)" in shown
    assert "24 images copied into 2 folders in" in shown
    assert "out.html; open it in a browser" in shown
    labels = pd.read_csv(tmp_path / "labels.csv").set_index("id")["cluster"]
    for name, label in labels.items():
        assert (tmp_path / "sorted" / f"cluster_{label:02d}" / name).is_file()
    assert len({labels[f"{i}.png"] for i in range(0, 24, 2)}) == 1
    page = (tmp_path / "out.html").read_text()
    assert "subspaces cluster" in page
    assert "broken.png" in page
    more = ("--set", "link=true", "--set", "image_size=6x8")
    document = found("cluster", faces, "-k", 2, "--sort-into", tmp_path / "linked", *more)
    assert document["n_features"] == 48
    assert document["skipped"] == [{"file": "broken.png", "reason": "not an image of a known format"}]
    assert (tmp_path / "linked" / "cluster_00").is_dir()


def test_outputs_are_refused_before_computing(faces, frame, tmp_path, monkeypatch):
    monkeypatch.setattr(KTRR, "fit", lambda *_: pytest.fail("must be refused before computing"))
    table = save(frame, tmp_path / "x.csv")
    (tmp_path / "old.html").write_text("precious")
    assert "--force" in fails("cluster", faces, "--report", tmp_path / "old.html")
    assert "report cannot be written to the suffix '.pdf'" in fails("cluster", faces, "--report", tmp_path / "x.pdf")
    assert "sorts the images of a folder" in fails("cluster", table, "--sort-into", tmp_path / "s")
    assert "only with --sort-into" in fails("cluster", faces, "--set", "link=true")
    assert "the images themselves" in fails("cluster", faces, "--sort-into", faces)
    for size in ("0", "3000", "axb", "8x", "-3"):
        assert "is not a size like 32 or 40x30" in fails("cluster", faces, "--set", f"image_size={size}")
    assert "--set image_size has no meaning for a .csv file" in fails("cluster", table, "--set", "image_size=8")
    assert "--set color has no meaning" in fails("cluster", table, "--set", "color=true")
    assert "--missing has no meaning for a folder" in fails("cluster", faces, "--missing", "drop")
    assert (tmp_path / "old.html").read_text() == "precious"
