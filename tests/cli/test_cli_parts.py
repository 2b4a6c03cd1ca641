"""Parts of the command line one by one: sizes, settings, JSON, and which files workers read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cli_data import fails, told
from subspaces.app.cli import _common, _options, _stream
from subspaces.app.description import plain


def test_sizes(tmp_path):
    for text, size in [("500MB", 500_000_000), ("2gb", 2 * 10**9), ("1.5GiB", 3 * 2**29), (" .5 tB ", 500 * 10**9)]:
        assert _options.size_in_bytes(text) == size
    for text in ("", "GB", "-1GB", "0MB", "2 XB", "1e3", "inf"):
        assert f"'{text}' is not a size like 500MB, 2GB or 1.5GiB" in fails("cluster", "x.csv", "--memory", text)
    assert ".5k is less than what its libraries take alone" in fails("cluster", "x.csv", "--memory", ".5k")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=3", 3),
        ("a=0.5", 0.5),
        ("a=true", True),
        ("a=False", False),
        ("a=none", None),
        ("a=kmeans++", "kmeans++"),
        ("a='3'", "3"),
        ("a=[1, 2.5]", [1, 2.5]),
        ("a={'degree': 3}", {"degree": 3}),
        ("a=b=c", "b=c"),
        ("a=__import__('os')", "__import__('os')"),
        ("a={[]: 1}", "{[]: 1}"),
        ("a=[1,", "[1,"),
        ("a=" + 10_000 * "(", 10_000 * "("),
    ],
)
def test_assignments(text, value):
    (found,) = _options.assignments([text]).values()
    assert found == value
    assert type(found) is type(value)


def test_arguments_are_spelled_as_options(tmp_path):
    spelled = {
        "--label": ("label", None),
        "--label c": ("label", "c"),
        "--set image_size": ("image_size", None),
        "--set header=false": ("header", False),
        "--ignore a --ignore b": ("ignore", ["a", "b"]),
        "--force": ("force", True),
    }
    assert [_common.as_option(*argument) for argument in spelled.values()] == list(spelled)
    (tmp_path / "x.csv").write_text("a,s\n1,cat\n")
    problem = "'cat' is not a number; use --label s, --id s or --ignore s to keep the column out of the points"
    assert problem in fails("cluster", tmp_path / "x.csv")


def test_whatever_a_result_holds_becomes_json():
    value = {1: [np.float32(0.5), np.int64(3)], "a": (np.array([1.0, np.nan]), float("inf"), None, True), "b": int}
    assert plain(value) == {"1": [0.5, 3], "a": [[1.0, None], None, None, True], "b": "<class 'int'>"}


@pytest.mark.parametrize("text", ["32", "32x", "0x4", "3x3x4", "axb", "-3x4"])
def test_shapes_of_images_are_checked_before_a_file_is_read(text):
    assert "--image-shape: must be HEIGHTxWIDTH" in fails("explore", "nothing.npz", "--image-shape", text)


# ------------------------------------------------------------------ files that workers read


def test_which_files_workers_read(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", np.ones((100, 100)))
    (tmp_path / "x.csv").write_text("1,2\n" * 3)
    (tmp_path / "parts").mkdir()
    for name in ("x.csv", "x.npy", "parts"):
        assert not _stream.wanted(tmp_path / name, None)
    assert _stream.wanted(tmp_path / "x.npy", "local")
    (tmp_path / "parts" / "a.csv").write_text("1,2\n" * 30_000)
    assert not _stream.wanted(tmp_path / "parts", None)  # one table like any other
    assert _stream.wanted(tmp_path / "parts", "local")
    (tmp_path / "parts" / "b.png").write_bytes(b"")
    monkeypatch.setattr("subspaces.utils.memory.available_bytes", lambda: 50_000)  # less than the file
    assert _stream.wanted(tmp_path / "x.npy", None)
    assert not _stream.wanted(tmp_path / "parts", None)
    (tmp_path / "parts" / "b.png").unlink()
    assert _stream.wanted(tmp_path / "parts", None)


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_a_file_too_large_is_read_here_piece_by_piece(tmp_path, rng, monkeypatch, suffix):
    X = np.concatenate([rng.normal(size=(60, 3)), rng.normal(size=(60, 3)) + 20])
    np.save(tmp_path / "x.npy", X)
    monkeypatch.setattr(_stream, "wanted", lambda *_: True)
    out = tmp_path / f"labels{suffix}"
    shown = told("cluster", tmp_path / "x.npy", "-k", 2, "-o", out, "--memory", "2GB")
    assert "read piece by piece by this process" in shown
    labels = np.load(out) if suffix == ".npy" else pd.read_parquet(out, columns=["row", "cluster"])["cluster"]
    np.testing.assert_array_equal(labels, np.repeat([0, 1], 60))


def test_workers_do_not_read_text_nor_write_reports(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((10, 3)))
    (tmp_path / "x.csv").write_text("1,2\n" * 3)
    line = fails("cluster", tmp_path / "x.csv", "--scheduler", "local", "-k", "2")
    assert "needs a file of .npy, .parquet, or a folder of .parquet or .csv files; got x.csv" in line
    line = fails("cluster", tmp_path / "x.npy", "-k", "2", "--set", f"checkpoint={tmp_path / 'c'}")
    assert "checkpoint has a meaning only for what is read piece by piece" in line
    line = fails("cluster", tmp_path / "x.npy", "--scheduler", "local", "-k", "2", "--report", tmp_path / "t.md")
    assert "--report: has no meaning for a file that workers read piece by piece" in line
