""" "Repeat it": the command and the lines of Python of a report do again what was done, as they stand."""

from __future__ import annotations

import html
import re
import shlex

import numpy as np
import pytest

from cli_data import COLUMNS, found, told, write_images


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
def test_tables(table, tmp_path, options):
    out = tmp_path / "out.html"
    told("cluster", table, *COLUMNS, *options, "--report", out, "-o", tmp_path / "labels.npy")
    first = np.load(tmp_path / "labels.npy").tolist()
    command, python = repeated(out)
    words = shlex.split(command)
    assert words[-1] == "--force"
    told(*words[1:])
    assert np.load(tmp_path / "labels.npy").tolist() == first
    assert shlex.split(repeated(out)[0]) == words  # --force once
    assert labels_by(python) == first


def images_in_colour(folder, rng):
    light = rng.uniform(size=(12, 1, 1, 3)) * np.linspace(50, 200, 64).reshape(8, 8, 1)
    write_images(folder / "it's photos", {f"{i}.png": image for i, image in enumerate(light)})
    return folder / "it's photos", "-k", 3, "--set", "color=true", "--set", "image_size=6"


def tracks(folder, rng):
    shape = rng.normal(size=(2, 12, 4))
    tracks = np.concatenate([part @ rng.normal(size=(4, 12)) for part in shape])
    tracks[3, 4:6] = np.nan
    np.savetxt(folder / "tracks.csv", tracks, delimiter=",")
    return folder / "tracks.csv", "--motion", "-k", 2


def images_of_spectra(folder, rng):
    cube = rng.uniform(size=(2, 5))[np.repeat(np.arange(2), 60)].reshape(12, 10, 5)
    np.save(folder / "cube.npy", cube + 0.01 * rng.normal(size=(12, 10, 5)))
    return folder / "cube.npy", "--image", "-k", 2, "--set", "n_components=3", "-o", folder / "map.npy"


@pytest.mark.parametrize("made", [images_in_colour, tracks, images_of_spectra])
def test_python_finds_the_same(tmp_path, made):
    out = tmp_path / "out.html"
    document = found("cluster", *made(tmp_path, np.random.default_rng(0)), "--report", out)
    assert labels_by(repeated(out)[1]) == document["cluster"]
