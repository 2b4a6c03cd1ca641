"""Where labels of many points may go, and what a run leaves alone: the points themselves and files of others."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

from subspaces import EKTRR
from subspaces.app.cli.main import app
from subspaces.distributed import _files, _sampled, _temporary_folder, fit_predict


@pytest.fixture
def X(rng) -> np.ndarray:
    return rng.normal(size=(60, 3)) + 9 * rng.integers(0, 2, size=(60, 1))


@pytest.fixture
def nothing_computed(monkeypatch) -> None:
    monkeypatch.setattr(_sampled, "_run", lambda *_: pytest.fail("computed before the output was refused"))


def cluster(X, output, **more):
    return fit_predict(EKTRR(2), X, client="here", output=output, **more)


@pytest.mark.usefixtures("nothing_computed")
def test_points_are_never_replaced(X, tmp_path):
    zarr = pytest.importorskip("zarr")
    file, other = tmp_path / "X.npy", tmp_path / "link.npy"
    np.save(file, X)
    other.symlink_to(file)
    stored = zarr.create_array(str(tmp_path / "X.zarr"), shape=X.shape, dtype=X.dtype)
    stored[:] = X
    same = [(file, file), (file, other), (other, file), (np.load(file, mmap_mode="r"), file)]
    for points, output in [*same, (stored, "X.zarr/labels.npy")]:
        with pytest.raises(ValueError, match=r"output=.* would replace or join the samples"):
            cluster(points, tmp_path / output)
    np.testing.assert_array_equal(np.load(file), X)
    np.testing.assert_array_equal(stored[:], X)


@pytest.mark.usefixtures("nothing_computed")
def test_what_cannot_be_written_is_refused_first(X, tmp_path, monkeypatch):
    for name in ("labels.npy", "labels.parquet"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine").touch()
        with pytest.raises(IsADirectoryError, match="is a folder, which labels do not replace"):
            cluster(X, tmp_path / name)
        assert (tmp_path / name / "mine").exists()
    monkeypatch.setattr("subspaces.distributed._output.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install pyarrow, or choose"):
        cluster(X, tmp_path / "new.parquet")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match="may not be written to"):
        cluster(X, tmp_path / "new.npy")


@pytest.mark.usefixtures("nothing_computed")
@pytest.mark.parametrize("option", ["--set=decimal=,", "--set=header=false", "--missing=mean", "--ignore=a"])
def test_options_of_reading_that_a_folder_does_not_heed(X, tmp_path, capsys, monkeypatch, option):
    """1.234 with decimal=, is a thousand and more: not read otherwise without a word."""
    monkeypatch.setattr("subspaces.utils.memory.available_bytes", lambda: 1000)  # less than the file
    pd.DataFrame(X, columns=list("abc")).to_parquet(tmp_path / "p.parquet")
    with pytest.raises(SystemExit, match="2"):
        app(["cluster", str(tmp_path), "--method", "ektrr", "-k", "2", option])
    assert "has no meaning for a file that" in " ".join(capsys.readouterr().err.split())


def test_a_task_that_outlives_its_run_leaves_nothing(tmp_path, monkeypatch):
    """Ctrl-C cancels tasks, but one that a worker has begun goes on writing while the folder is removed."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    begun, array = threading.Event(), np.zeros(2**16)

    def outlier(folder):
        with suppress(OSError):
            for number in range(1000):
                _files.save_folder(folder / f"rows-{number}", a=array, b=array)
                begun.set()

    with _temporary_folder() as folder:
        writing = threading.Thread(target=outlier, args=(folder,))
        writing.start()
        assert begun.wait(60)
    writing.join()
    with pytest.raises(FileNotFoundError):
        _files.save_folder(folder / "rows-0", a=array)
    assert not list(tmp_path.iterdir())
