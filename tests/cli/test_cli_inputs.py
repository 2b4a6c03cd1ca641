"""What people name on the command line: several files, patterns, pipes, addresses, phones' folders, workbooks."""

from __future__ import annotations

import shlex

import numpy as np
import openpyxl
import pandas as pd
import pytest

from cli_data import COLUMNS, fails, found, run, told, write_images


def test_text_columns_come_with_a_command_that_works(table, tmp_path):
    frame = pd.read_csv(table)
    frame.insert(2, "the day", np.where(np.arange(90) % 2, "Mon day", "Tue's"))
    frame["ward"] = ["a", "b", "c", "d", "e"] * 18
    frame.to_csv(table, index=False)
    line = fails("cluster", table, "-k", 3)
    assert "3 columns hold text, not numbers ('the day', 'species', 'ward')" in line
    words = shlex.split(line.partition("; try: ")[2])
    assert words[:5] == ["subspaces", "cluster", str(table), "-k", "3"]
    assert words[5:] == ["--label", "species", "--ignore", "the day", "--ignore", "ward"]
    assert "--ignore 'the day'" in line
    shown = told(*words[1:])
    assert "note: left out: name (id)" in shown


def test_several_tables(table, tmp_path):
    frame = pd.read_csv(table)
    for name, part in (("a.csv", frame[:50]), ("b.csv", frame[50:])):
        part.to_csv(tmp_path / name, index=False)
    whole = found("cluster", table, "-k", 3, *COLUMNS)
    parts = found("cluster", tmp_path / "a.csv", tmp_path / "b.csv", "-k", 3, *COLUMNS)
    assert parts["cluster"] == whole["cluster"]
    assert parts["source"] == f"{tmp_path / 'a.csv'} and 1 more file"
    assert found("cluster", str(tmp_path / "[ab].csv"), "-k", 3, *COLUMNS)["cluster"] == whole["cluster"]
    both = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for name in ("a.csv", "b.csv"):
        assert "this is the input file" in fails("cluster", *both, *COLUMNS, "-o", tmp_path / name, "--force")
    for option in (["--image"], ["--motion"], ["--scheduler", "local"]):
        assert f"{option[0]}: takes one file; got 2 files" in fails("cluster", *both, *option)


def test_pipes_and_addresses(table, tmp_path):
    whole = found("cluster", table, "-k", 3, *COLUMNS)
    piped = found("cluster", "-", "-k", 3, *COLUMNS, input=table.read_bytes())
    assert piped["cluster"] == whole["cluster"]
    assert piped["source"] == "standard input"
    for _ in range(2):
        told("cluster", "-", "-k", 3, *COLUMNS, "-o", tmp_path / "y.csv", "--force", input=table.read_bytes())
    result = run("cluster", "-", "-k", 3, input=b"a,b\n1,2\n1\n")
    assert result.stderr.startswith("error: standard input, line 3: 1 cell where the first line has 2")
    assert "cannot be joined with files" in fails("cluster", "-", table)
    line = fails("cluster", "https://example.com/x.csv")
    assert line.endswith("example.com/x.csv: files are not fetched from the net; download it first and name the copy")


def test_headers_and_decimal_commas(table, tmp_path):
    frame = pd.read_csv(table)
    frame.to_csv(tmp_path / "komma.csv", index=False, sep=";", decimal=",")
    rows = [[1, 2, 3], *(np.arange(60).reshape(20, 3) ** 2 % 17).tolist()]
    pd.DataFrame(rows).to_csv(tmp_path / "numbers.csv", index=False, header=False)
    assert found("cluster", tmp_path / "numbers.csv", "-k", 2)["n_samples"] == 21
    assert found("cluster", tmp_path / "numbers.csv", "-k", 2, "--set", "header=true")["n_samples"] == 20
    assert "line 1" in fails("cluster", table, "-k", 3, *("--ignore", "1", "--ignore", "11"), "--set", "header=false")
    shown = told("cluster", tmp_path / "komma.csv", "-k", 3, *COLUMNS)
    assert "note: numbers are written with decimal commas in this file" in shown
    said = found("cluster", tmp_path / "komma.csv", "-k", 3, *COLUMNS, "--set", "decimal=,")
    assert said["cluster"] == found("cluster", table, "-k", 3, *COLUMNS)["cluster"]


def test_workbooks_in_and_out(table, tmp_path):
    frame = pd.read_csv(table)
    with pd.ExcelWriter(tmp_path / "book.xlsx") as book:
        pd.DataFrame({"a": [1]}).to_excel(book, sheet_name="Cover", index=False)
        frame.to_excel(book, sheet_name="Rings", index=False)
    out = tmp_path / "labels.xlsx"
    shown = told("cluster", tmp_path / "book.xlsx", "--sheet", "Rings", "-k", 3, *COLUMNS, "-o", out)
    assert "--sheet Cover would read another" in shown
    sheet = openpyxl.load_workbook(out).active
    rows = list(sheet.values)
    assert rows[0][:3] == ("id", "cluster", "confidence")
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == ("A2", f"A1:F{len(rows)}")
    (tinted,) = sheet.conditional_formatting  # one colour for each cluster, whatever the order of the rows
    assert str(tinted.sqref) == f"A2:F{len(rows)}"
    assert all("$B2" in rule.formula[0] for rule in tinted.rules)
    assert [row[1] for row in rows[1:]] == found("cluster", table, "-k", 3, *COLUMNS)["cluster"]


@pytest.fixture
def photos(tmp_path):
    slope, noise = np.linspace(0, 60, 64).reshape(8, 8), np.random.default_rng(0).normal(size=(16, 8, 8))
    images = {f"dark/{i}.png": 40 + slope + noise[i] for i in range(8)}
    images |= {f"light/{i}.png": 180 + slope.T + noise[8 + i] for i in range(8)}
    return write_images(tmp_path / "photos", images)


def test_folders_score_images_and_phones_are_understood(photos, monkeypatch):
    monkeypatch.setattr("subspaces.app.files.image_files.reads_heif", lambda: False)
    (photos / "IMG_1.HEIC").write_bytes(b"phone")
    shown = told("cluster", photos, "-k", 2, "--label", "folder")
    assert "accuracy" in shown
    assert "1 file skipped: IMG_1.HEIC (HEIC, which pillow-heif reads: pip install pillow-heif)" in shown
    assert "note: the images are in 2 folders: --label folder scores" in told("cluster", photos, "-k", 2)


def test_images_by_name(photos, tmp_path):
    files = sorted((photos / "dark").glob("*.png")) + sorted((photos / "light").glob("*.png"))
    told("cluster", *files, "-k", 2, "--sort-into", tmp_path / "sorted", "-o", tmp_path / "labels.csv")
    assert pd.read_csv(tmp_path / "labels.csv")["id"].tolist()[0] == "dark/0.png"
    assert len(list((tmp_path / "sorted").glob("cluster_*/*.png"))) == 16


def test_one_is_one(photos, tmp_path):
    shown = told("cluster", photos, "-k", 1, "--sort-into", tmp_path / "sorted")
    assert "\n1 cluster of all points\n" in shown
    assert f"16 images copied into 1 folder in {tmp_path / 'sorted'}" in shown
    np.savetxt(tmp_path / "x.csv", np.random.default_rng(0).normal(size=(20, 1)), delimiter=",")
    shown = told("cluster", tmp_path / "x.csv", "-k", 2)
    assert "x.csv: 20 points, 1 feature, clustered in " in shown


def test_equal_rows_are_said_to_be(tmp_path):
    """Nothing was chosen, so no "auto" is shown; nothing is known, so nothing fits nowhere."""
    (tmp_path / "x.csv").write_text("a,b\n" + "1,2\n" * 4)
    shown = told("cluster", tmp_path / "x.csv", "-o", tmp_path / "y.csv")
    assert shown.startswith("No groups: nothing tells the samples apart.\n")
    assert "auto" not in shown
    assert "nowhere" not in shown
    assert pd.read_csv(tmp_path / "y.csv")["fits_nowhere"].sum() == 0
    assert (tmp_path / "y.csv").read_text().splitlines()[1].startswith("2,0,")  # line 2 of the file
