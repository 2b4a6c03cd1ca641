"""Every command of the README runs as it stands, with all extras; with none it says what to install."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_wine

from cli_data import environment, told, write_images

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONSOLE = re.findall(r"^```console\n(.*?)^```$", README, flags=re.M | re.S)
SESSIONS = [re.findall(r"^\$ (.*)$", block, flags=re.M) for block in CONSOLE]
PYTHON = re.findall(r"^```python\n(.*?)^```$", README, flags=re.M | re.S)
EXTRAS = "typer rich pandas pyarrow openpyxl python_calamine PIL matplotlib jinja2 skops torch dask panel bokeh"
WITHOUT = f"""
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS.split()}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Nothing())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in {EXTRAS.split()} else found(name, *rest)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of the project as far as people type its names, with photographs and texts of their own."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    digits = load_digits()
    write_images(tmp_path / "photos", {f"{i}.png": image * 16 for i, image in enumerate(digits.images[:40])})
    (tmp_path / "notes").mkdir()
    for i in range(24):
        words = ("wine grape barrel cellar", "engine wheel brake gear")[i % 2].split()
        (tmp_path / "notes" / f"{i}.txt").write_text(" ".join((words[i % 3 :] + words) * 3))
    monkeypatch.chdir(tmp_path)


def test_the_table_of_the_readme_is_that_of_scikit_learn():
    wine, table = load_wine(as_frame=True), pd.read_csv(ROOT / "examples" / "wine.csv")
    pd.testing.assert_frame_equal(table[wine.data.columns], wine.data)
    assert table["kind"].tolist() == wine.target_names[wine.target].tolist()
    assert "examples/wine.csv" in README


@pytest.mark.full
@pytest.mark.parametrize("commands", SESSIONS)
def test_commands_of_the_readme_run(folder, commands, monkeypatch):
    for extra in ("skops", "panel", "jinja2", "openpyxl"):
        pytest.importorskip(extra)
    monkeypatch.setattr("subspaces.app.explorer.server.serve", lambda *_, **__: None)
    for command in commands:
        told(*shlex.split(command)[1:])


@pytest.mark.full
def test_lines_of_python_of_the_readme_run(folder):
    plots = pytest.importorskip("matplotlib.pyplot")
    digits = load_digits()
    X, truth = digits.data[:300], digits.target[:300]
    from subspaces import KTRR

    names = {"X": X, "new": X[:3], "truth": truth, "mine": KTRR(10), "faces": np.repeat(X, 16, axis=1)}
    for lines in PYTHON:
        exec(lines, names)
    plots.close("all")


def test_without_extras_the_library_works_and_the_command_says_what_to_install(folder):
    def python(lines):
        command = [sys.executable, "-c", WITHOUT + lines]
        return subprocess.run(command, env=environment(), capture_output=True, text=True)

    first = python(f"import numpy as np\nX = new = np.random.default_rng(0).normal(size=(60, 4))\n{PYTHON[0]}")
    assert first.returncode == 0, first.stderr
    for commands in SESSIONS:
        argv = shlex.split(commands[0])
        found = python(f"sys.argv = {argv!r}\nfrom subspaces.app.cli.__main__ import main\nmain()")
        assert found.returncode != 0
        (line,) = found.stderr.splitlines()
        assert 'install with pip install "subspaces[app]"' in line
