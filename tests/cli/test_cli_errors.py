"""The command line when something goes wrong: one line, an exit code, and no file."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from cli_data import COLUMNS, fails, run, told
from subspaces import KTRR, SubspaceClustering


def test_file_errors_are_one_line(table, tmp_path):
    line = fails("cluster", table, "-k", 3)
    assert f"{table}, line 2, column 'species': 'ash' is not a number" in line
    assert "--ignore species" in line
    assert line.endswith(f"try: subspaces cluster {table} -k 3 --label species")
    assert fails("ask", table).endswith(f"try: subspaces ask {table} --label species")
    assert "no such file" in fails("cluster", tmp_path / "nothing.csv", "-k", 3)
    assert ".parquet" in fails("cluster", Path(__file__), "-k", 3)
    assert "did you mean 'species'" in fails("cluster", table, "-k", 3, "--label", "specis")
    (tmp_path / "one.csv").write_text("a,b\n1,2\n")
    assert "one.csv: there is one point in it" in fails("cluster", tmp_path / "one.csv")


def test_markup_and_control_characters_do_nothing(tmp_path):
    path = tmp_path / "[red]x.csv"
    path.write_text("a,[bold]b[/bold]\x1b[2J\n1,2\n3,x[/nonsense]\n")
    line = fails("cluster", path, "-k", 2)
    assert "[red]x.csv, line 3, column '[bold]b[/bold]\\x1b[2J': 'x[/nonsense]' is not a number" in line
    path.write_text("a,[bold]b[/bold]\x1b[2J\n" + "".join(f"{i % 5},{i * i % 7}\n" for i in range(20)))
    result = run("cluster", path, "-k", 2)
    assert result.exit_code == 0
    assert "[red]x.csv: 20 points" in result.stdout
    assert "\x1b" not in result.output


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--scaling", "gauss"], "'--scaling': 'gauss' is not one of 'auto', 'none'"),
        (["--method", "magic"], "ktrr, trr"),
        (["--set", "bandwidth=wide"], "'bandwidth' parameter"),
        (["-k", "91"], "91 clusters of 90 points"),
        (["-k", "0"], "-k"),
        (["--method", "trr", "--effort", "fast"], "--effort: has no meaning for the method trr"),
        (["--set", "=3"], "--set: '=3' is not of the form NAME=VALUE"),
        (["--set", "header=maybe"], "--set header: must be true or false; got 'maybe'"),
        (["--set", "decimal=x"], "--set decimal: 'x' is not one of '.', ','"),
        (
            ["--set", "error_weight=50"],
            "--set: 'error_weight' is no parameter of the method auto, which has affine, assign_labels,",
        ),
        (["--method", "ssc", "--set", "n_nonzero=5"], "--set: 'n_nonzero' is no parameter of the method ssc"),
        (["--set", "n_clusters=4"], "--set: the number of clusters is given with -k"),
        (["--set", "random_state=4", "--seed", "3"], "--set: random_state is given by --seed already"),
        (["--set", "reg=4", "--set", "reg=4"], "--set: reg is given twice"),
        (["--set", "reg=-4"], "'reg' parameter of SubspaceClustering"),
        (["--method", "ktrr", "--set", "graph=[1, 2]"], "'graph' parameter of KTRR"),
        (["--method", "ssc", "--scaling", "auto"], "auto has no meaning for the method ssc"),
        (["--threads", "0"], "--threads"),
        (["-o", "labels.ods"], ".csv"),
    ],
)
def test_usage_errors_are_one_line(table, arguments, expected):
    assert expected in fails("cluster", table, "-k", 3, *COLUMNS, *arguments)


def test_kmeans_needs_a_number(table):
    assert "add -k" in fails("cluster", table, *COLUMNS, "--set", "assign_labels=kmeans", "--method", "lsr1")
    assert "the method kasp needs the number" in fails("cluster", table, *COLUMNS, "--method", "kasp")


def test_existing_output_is_kept_without_force(table, tmp_path, monkeypatch):
    out = tmp_path / "labels.csv"
    out.write_text("precious")
    monkeypatch.setattr(KTRR, "fit", lambda *_: pytest.fail("must be refused before computing"))
    assert "--force" in fails("cluster", table, "-k", 3, *COLUMNS, "-o", out)
    assert "input file" in fails("cluster", table, "-k", 3, *COLUMNS, "-o", table, "--force")
    assert out.read_text() == "precious"
    monkeypatch.undo()
    told("cluster", table, "-k", 3, *COLUMNS, "-o", out, "--force")
    assert out.read_text().startswith("id,name,x0,")


@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (ValueError("bad\nnews [red]x[/red] \x1b[31m"), 1, "error: bad news [red]x[/red] \\x1b[31m"),
        (MemoryError("the 9 × 9 matrix needs 1 TiB."), 1, "error: not enough memory; the 9 × 9 matrix needs"),
        (MemoryError(), 1, "error: not enough memory; use fewer points"),
        (np.linalg.LinAlgError("singular"), 1, "error: singular"),
        (RuntimeError(), 1, "error: RuntimeError (--debug shows where)"),
        (ImportError("no module\nnamed x"), 1, "error: no module named x; is the installation complete?"),
        (OSError(28, "No space left on device", "out.csv"), 1, "error: out.csv: No space left on device"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_failures_end_in_one_line_and_no_file(table, tmp_path, monkeypatch, error, code, expected):
    def fit(self, X, y=None):
        raise error

    monkeypatch.setattr(SubspaceClustering, "fit", fit)
    result = run("cluster", table, "-k", 3, *COLUMNS, "-o", tmp_path / "labels.csv")
    assert (result.exit_code, result.stdout) == (code, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(expected)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["rings.csv"]


def test_failed_writing_ends_in_one_line(table, tmp_path, monkeypatch):
    def replace(source, target):
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(os, "replace", replace)
    line = fails("cluster", table, "-k", 3, *COLUMNS, "-o", tmp_path / "labels.csv", code=1)
    assert line.endswith("labels.csv: No space left on device")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["rings.csv"]


def test_debug_shows_the_traceback(table):
    result = run("cluster", table, "-k", 3, "--debug")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: ")


@pytest.mark.filterwarnings("default:did not")  # whatever pytest was told
def test_warnings_are_one_line(table, monkeypatch):
    original = SubspaceClustering.fit

    def fit(self, X, y=None):
        warnings.warn("did not\nconverge [red]", UserWarning, stacklevel=2)
        return original(self, X)

    monkeypatch.setattr(SubspaceClustering, "fit", fit)
    result = run("cluster", table, "-k", 3, *COLUMNS, "--json")
    assert json.loads(result.stdout)["n_clusters"] == 3
    assert result.stderr == "warning: did not converge [red]\n"
