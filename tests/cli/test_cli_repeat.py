""" "Repeat it": the command and the lines of Python of a report do again what was done, as they stand."""

from __future__ import annotations

import html
import json
import re
import shlex

import numpy as np
import pytest

from cli_data import COLUMNS, run, write_rings

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")


def repeated(path):
    """The command and the lines of Python of a report."""
    section = path.read_text(encoding="utf-8").partition('<section id="repeat">')[2]
    command, python = re.findall(r"<pre><code>(.*?)</code></pre>", section, flags=re.S)[:2]
    return html.unescape(command), html.unescape(python)


def labels_by(python):
    space = {}
    exec(python, space)
    return space["labels"].tolist()


@pytest.mark.full  # takes seconds: .ci/run has it
@pytest.mark.parametrize("options", [[], ["-k", 3, "--set", "reg=0.5"], ["-k", 3, "--method", "lsr1"]])
def test_tables(tmp_path, options):
    table, out = write_rings(tmp_path), tmp_path / "out.html"
    arguments = ["cluster", table, *COLUMNS, *options, "--report", out, "-o", tmp_path / "labels.json"]
    assert run(*arguments).exit_code == 0
    first = json.loads((tmp_path / "labels.json").read_text())["cluster"]
    command, python = repeated(out)
    words = shlex.split(command)
    assert words[-1] == "--force"
    again = run(*words[1:])
    assert again.exit_code == 0, again.output
    assert json.loads((tmp_path / "labels.json").read_text())["cluster"] == first
    assert shlex.split(repeated(out)[0]) == words  # --force once
    assert labels_by(python) == first


def test_images_in_colour(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    (tmp_path / "it's photos").mkdir()
    for i in range(12):
        pixels = (rng.uniform(size=3) * np.linspace(50, 200, 64).reshape(8, 8, 1)).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / "it's photos" / f"{i}.png")
    out = tmp_path / "out.html"
    result = run(
        "cluster",
        tmp_path / "it's photos",
        "-k",
        3,
        "--set",
        "color=true",
        "--set",
        "image_size=6",
        "--report",
        out,
        "--json",
    )
    assert result.exit_code == 0, result.output
    assert labels_by(repeated(out)[1]) == json.loads(result.stdout)["cluster"]


def test_tracks(tmp_path):
    rng = np.random.default_rng(0)
    shape = rng.normal(size=(2, 12, 4))
    tracks = np.concatenate([part @ rng.normal(size=(4, 12)) for part in shape])
    tracks[3, 4:6] = np.nan
    np.savetxt(tmp_path / "tracks.csv", tracks, delimiter=",")
    out = tmp_path / "out.html"
    result = run("cluster", tmp_path / "tracks.csv", "--motion", "-k", 2, "--report", out, "--json")
    assert result.exit_code == 0, result.output
    assert labels_by(repeated(out)[1]) == json.loads(result.stdout)["cluster"]


def test_images_of_spectra(tmp_path):
    rng = np.random.default_rng(0)
    cube = rng.uniform(size=(2, 5))[np.repeat(np.arange(2), 60)].reshape(12, 10, 5) + 0.01 * rng.normal(
        size=(12, 10, 5)
    )
    np.save(tmp_path / "cube.npy", cube)
    out = tmp_path / "out.html"
    options = ["--image", "-k", 2, "--set", "n_components=3", "--report", out, "-o", tmp_path / "map.npy"]
    result = run("cluster", tmp_path / "cube.npy", *options, "--json")
    assert result.exit_code == 0, result.output
    assert labels_by(repeated(out)[1]) == json.loads(result.stdout)["cluster"]
