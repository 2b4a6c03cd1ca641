"""Parts of the command line one by one: sizes, JSON, bars for people who watch, and errors that are rare."""

from __future__ import annotations

import numpy as np
import pytest
import typer

from cli_data import run
from subspaces.app.cli import _common, _options, _outputs, _stream
from subspaces.app.description import plain


def refusal(*arguments):
    found = run(*arguments)
    assert found.exit_code == 2, found.output
    assert found.stdout == ""
    return found.stderr


@pytest.mark.parametrize(
    ("text", "size"),
    [("500MB", 500_000_000), ("2gb", 2 * 10**9), ("1.5GiB", 3 * 2**29), ("7", 7), (" .5k ", 500), ("1TB", 10**12)],
)
def test_sizes(text, size):
    assert _options.parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "0MB", "2 XB", "1e3", "inf"])
def test_what_is_no_size(text):
    with pytest.raises(ValueError, match=r"is not a size like 500MB, 2GB or 1\.5GiB"):
        _options.parse_bytes(text)


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
    spelled = [
        ("label", None),
        ("label", "c"),
        ("image_size", None),
        ("header", False),
        ("ignore", ["a", "b"]),
        ("force", True),
    ]
    options = ["--label", "--label c", "--set image_size", "--set header=false", "--ignore a --ignore b", "--force"]
    assert [_common.as_option(*argument) for argument in spelled] == options
    (tmp_path / "x.csv").write_text("a,s\n1,cat\n")
    problem = "'cat' is not a number; use --label s, --id s or --ignore s to keep the column out of the points"
    assert problem in refusal("cluster", tmp_path / "x.csv")


def test_whatever_a_result_holds_becomes_json():
    value = {1: [np.float32(0.5), np.int64(3)], "a": (np.array([1.0, np.nan]), float("inf"), None, True), "b": int}
    assert plain(value) == {"1": [0.5, 3], "a": [[1.0, None], None, None, True], "b": "<class 'int'>"}


def test_rare_errors_are_one_line(capsys):
    assert _common._report(ImportError("no module\nnamed x")) == 1
    assert _common._report(OSError(28, "No space left on device", "out.csv")) == 1
    assert _common._report(MemoryError()) == 1
    assert _common._report(RuntimeError()) == 1
    assert _common._report(typer.Abort()) == 130
    assert capsys.readouterr().err.splitlines() == [
        "error: no module named x; is the installation complete?",
        "error: out.csv: No space left on device",
        "error: not enough memory; use fewer points",
        "error: RuntimeError (--debug shows where)",
    ]


# ------------------------------------------------------------------ files that workers read


def test_which_files_workers_read(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", np.ones((100, 100)))
    (tmp_path / "x.csv").write_text("1,2\n" * 3)
    (tmp_path / "x.zarr").mkdir()
    assert not _stream.wanted(tmp_path / "x.csv", None)
    assert not _stream.wanted(tmp_path / "x.npy", None)
    assert _stream.wanted(tmp_path / "x.npy", "local")
    assert _stream.wanted(tmp_path / "x.zarr", None)
    monkeypatch.setattr("subspaces.utils.memory.available_bytes", lambda: 50_000)  # less than the file
    assert _stream.wanted(tmp_path / "x.npy", None)


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_a_file_too_large_is_read_here_piece_by_piece(tmp_path, rng, monkeypatch, suffix):
    pytest.importorskip("pyarrow")
    X = np.concatenate([rng.normal(size=(60, 3)), rng.normal(size=(60, 3)) + 20])
    np.save(tmp_path / "x.npy", X)
    monkeypatch.setattr(_stream, "wanted", lambda *_: True)
    out = tmp_path / f"labels{suffix}"
    result = run("cluster", tmp_path / "x.npy", "-k", 2, "-o", out, "--memory", "2GB")
    assert result.exit_code == 0, result.output
    assert "read piece by piece by this process" in result.output
    if suffix == ".npy":
        labels = np.load(out)
    else:
        pd = pytest.importorskip("pandas")
        table = pd.read_csv(out) if suffix == ".csv" else pd.read_parquet(out)
        assert list(table.columns) == ["row", "cluster"]
        labels = table["cluster"].to_numpy()
    np.testing.assert_array_equal(labels, np.repeat([0, 1], 60))


def test_folders_of_tables_are_streamed(tmp_path):
    (tmp_path / "parts").mkdir()
    assert not _stream.wanted(tmp_path / "parts", None)
    (tmp_path / "parts" / "a.csv").write_text("1,2\n" * 3)
    assert _stream.wanted(tmp_path / "parts", None)
    (tmp_path / "parts" / "b.png").write_bytes(b"")
    assert not _stream.wanted(tmp_path / "parts", None)


def test_workers_do_not_read_text_nor_write_reports(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((10, 3)))
    (tmp_path / "x.csv").write_text("1,2\n" * 3)
    assert "needs a file of .npy, .parquet, .zarr, or a folder of .parquet or .csv files; got x.csv" in refusal(
        "cluster", tmp_path / "x.csv", "--scheduler", "local", "-k", "2"
    )
    told = refusal("cluster", tmp_path / "x.npy", "--scheduler", "local", "-k", "2", "--report", tmp_path / "t.md")
    assert "--report" in told
    assert "has no meaning for a file that workers read piece by piece" in told


# ------------------------------------------------------------------ outputs


def test_report_names_what_it_needs(tmp_path, monkeypatch):
    (tmp_path / "x.csv").write_text("1,2\n" * 3)
    monkeypatch.setattr(_outputs, "find_spec", lambda name: None)
    told = refusal("cluster", tmp_path / "x.csv", "-k", "2", "--report", tmp_path / "r.html")
    assert 'a report needs matplotlib: pip install "subspaces[app]"' in told


@pytest.mark.parametrize("text", ["32", "32x", "0x4", "3x3x4", "axb", "-3x4"])
def test_shapes_of_images_are_checked_before_a_file_is_read(text):
    assert "--image-shape: must be HEIGHTxWIDTH" in refusal("explore", "nothing.npz", "--image-shape", text)
