"""``subspaces cluster --report tree.json``, and the verdict that comes before all else."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from cli_data import FIXED, fails, told
from subspaces import KTRR
from subspaces.app.cli import cluster as command
from subspaces.app.cli._outputs import say
from subspaces.app.cli._task import Run
from subspaces.app.files import read_table


@pytest.fixture
def expected(table):
    return KTRR(3).fit(read_table(table, id="name", label="species").X).tree_


def points_of(piece):
    return piece["points"] if "points" in piece else [i for child in piece["children"] for i in points_of(child)]


def test_tree_as_json(table, expected, tmp_path):
    out = tmp_path / "tree.json"
    shown = told("cluster", table, "-k", 3, "--id", "name", "--label", "species", *FIXED, "--report", out)
    assert f"tree written to {out}" in shown
    assert "no file written" not in shown
    found = json.loads(out.read_text())
    assert found["n_clusters"] == 3
    assert found["tree"] == json.loads(expected.to_json())["tree"]
    assert found["id"] == [f"p{i}" for i in range(90)]
    assert sorted(points_of(found["tree"])) == list(range(90))


def test_tree_names_the_rows_that_were_kept(table, tmp_path):
    frame = pd.read_csv(table)
    frame.loc[[3, 40], "x1"] = np.nan
    frame.to_csv(table, index=False)
    out = tmp_path / "tree.json"
    options = ("--ignore", "name", "--label", "species", "--missing", "drop")
    told("cluster", table, "-k", 3, *options, *FIXED, "--report", out)
    found = json.loads(out.read_text())
    assert found["line"] == [i + 2 for i in range(90) if i not in (3, 40)]
    assert len(points_of(found["tree"])) == 88


def test_wrong_trees_are_refused_before_the_work(table, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "_run", lambda *_: pytest.fail("it began to work"))
    given = ("cluster", table, "-k", 3)
    assert "report cannot be written to the suffix '.txt'; choose one of .html" in fails(
        *given, "--report", tmp_path / "tree.txt"
    )
    assert "a name without a suffix" in fails(*given, "--report", tmp_path / "tree")
    assert "its folder does not exist" in fails(*given, "--report", tmp_path / "none" / "tree.json")
    (tmp_path / "tree.json").write_text("old")
    assert "the file exists" in fails(*given, "--report", tmp_path / "tree.json")
    line = fails(*given, "--method", "kasp", "--report", tmp_path / "new.json")
    assert "the method kasp makes no graph between the points, so it has no tree; choose another --method" in line
    assert (tmp_path / "tree.json").read_text() == "old"


def test_verdict_is_the_first_line(table, capsys):
    data = read_table(table, id="name", label="species")
    model = KTRR(3).fit(data.X)
    from subspaces.app.description import describe

    plain = describe(model, source="rings", shape=data.X.shape)
    plain.pop("verdict", None)
    say(Run(plain, model), [], found=False)
    without = capsys.readouterr().out.splitlines()
    say(Run({**plain, "verdict": "Three clusters,\nfor \x1b sure."}, model), [], found=False)
    first, *others = capsys.readouterr().out.splitlines()
    assert first == r"Three clusters, for \x1b sure."
    assert others == without
