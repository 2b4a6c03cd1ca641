"""How the tests of the command line call it, and on what."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

import subspaces
from subspaces.app.cli.main import app

COLUMNS = ("--id", "name", "--label", "species")
KTRR_OPTIONS = "--set kernel=rbf --set reg=1 --set n_nonzero=5 --scaling none --set assign_labels="
FIXED = f"{KTRR_OPTIONS}kmeans".split()
"""KTRR without a search, for tests that are not about it."""


def run(*arguments, **options):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="subspaces", **options)


def told(*arguments, **options):
    """What a command that does its work prints to standard output."""
    result = run(*arguments, **options)
    assert result.exit_code == 0, result.output
    return result.stdout


def found(*arguments, **options):
    """The JSON document of a command that does its work."""
    return json.loads(told(*arguments, "--json", **options))


def environment(**more):
    source = str(Path(subspaces.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **more}


def fails(*arguments, code=2):
    """The one line on standard error with which a command refuses."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert line.isprintable()
    return line


def write_rings(folder):
    """Three rings in three dimensions, as a CSV with names, classes and an odd column name."""
    rng = np.random.default_rng(5)
    angle = rng.uniform(0, 2 * np.pi, size=(3, 30))
    planes = np.linalg.qr(rng.normal(size=(3, 9, 2)))[0]
    X = np.concatenate([np.c_[np.cos(a), np.sin(a)] @ p.T for a, p in zip(angle, planes, strict=True)])
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(8)] + ["[bold]x8[/bold]"])
    frame.insert(0, "name", [f"p{i}" for i in range(90)])
    frame["species"] = np.repeat(["ash", "elm", "oak"], 30)
    path = folder / "rings.csv"
    frame.to_csv(path, index=False)
    return path


def write_images(folder, images):
    """Pictures as PNG files, by name."""
    from PIL import Image

    for name, pixels in images.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / name, format="PNG")
    return folder
