"""Case 61: disks that are full, small or read-only: one line names the file, nothing is half-written, the old stays."""

from __future__ import annotations

import errno
import gc
import importlib
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from fault_data import write_photos
from typer.testing import CliRunner

from reproduction.cells import digest, read_runs, run_cells
from subspaces.app.cli.main import app
from subspaces.app.files import FileError, write_labels
from subspaces.datasets import loaders
from subspaces.datasets._formats import points_of

resource = pytest.importorskip("resource", reason="limits of POSIX")
NO_SPACE = (errno.ENOSPC, errno.EFBIG)
N = 20_000
CELL = {"points": {"name": "digits"}, "method": "ktrr", "parameters": {}}


@pytest.fixture
def tiny_disk(tmp_path):
    """A disk of 64 kB; needs the right to mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if sys.platform != "linux" or subprocess.run(options, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a small disk (root on Linux)")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def read_only_disk(tiny_disk):
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    return tiny_disk


@contextmanager
def files_of_at_most(n_bytes: int):
    """No file of this process may grow beyond so many bytes: fails like a full disk, for any user."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


# ---------------------------------------------------------------- every writer of the library


def labels(suffix: str):
    def write(folder: Path) -> Path:
        pytest.importorskip({".parquet": "pyarrow", ".xlsx": "openpyxl"}.get(suffix, "csv"))
        path = folder / f"labels{suffix}"
        rng = np.random.default_rng(0)
        write_labels(path, rng.integers(0, 9, N), columns={"confidence": rng.random(N)}, force=True)
        return path

    return write


def data_set(folder: Path) -> Path:
    """What a loader keeps of a download."""
    rng = np.random.default_rng(0)
    dataset = loaders.DataSet("Noise", {"noise.npz": lambda path: None}, 99, "", "nowhere")
    loaders.fetch_to(dataset, lambda _: points_of(rng.random((N // 50, 99)), rng.integers(0, 3, N // 50)), folder)
    return folder / "noise.npz"


def piece(name: str):
    def write(folder: Path) -> Path:
        pytest.importorskip("distributed", reason="Dask is not installed")
        files = importlib.import_module("subspaces.distributed._files")
        path, array = folder / name, np.random.default_rng(0).random((N, 2))
        if name == "rows.npy":
            output = importlib.import_module("subspaces.distributed._output").Output(path)
            output.take(SimpleNamespace(), (np.arange(i, i + 500) for i in range(0, N, 500)), N)
        else:
            files.save(path, array)
        return path

    return write


def network(folder: Path) -> Path:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from subspaces.deep.training import Checkpoint

    checkpoint = Checkpoint(folder, "KTRRNet", {"seed": "0"})
    checkpoint.save({"module": {"weights": torch.arange(N, dtype=torch.float64)}})
    return checkpoint.path


WRITERS = {
    **{f"labels{suffix}": labels(suffix) for suffix in (".csv", ".npy", ".parquet", ".xlsx")},
    "data set": data_set,
    **{name: piece(name) for name in ("piece.npy", "rows.npy")},
    "network": network,
}


def check_refused(write, folder: Path) -> None:
    """The error names the file and the reason; the folder is what it was, and nothing complains later."""
    before, later = {path: path.read_bytes() for path in folder.iterdir()}, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "unraisablehook", later.append)
        with pytest.raises(OSError) as caught:
            write(folder)
        assert caught.value.errno in NO_SPACE, repr(caught.value)
        assert Path(caught.value.filename).parent == folder
        assert not Path(caught.value.filename).name.startswith(".")
        del caught
        gc.collect()
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert later == []


@pytest.mark.parametrize("n_bytes", [0, 4096])
@pytest.mark.parametrize("name", list(WRITERS))
def test_case_61_a_file_that_cannot_grow(name, n_bytes, tmp_path):
    """61: writing fails after so many bytes."""
    target = WRITERS[name](tmp_path)
    target.write_bytes(b"old")
    with files_of_at_most(n_bytes):
        check_refused(WRITERS[name], tmp_path)
        target.unlink()
        check_refused(WRITERS[name], tmp_path)


@pytest.mark.parametrize("name", list(WRITERS))
def test_case_61_a_full_disk(name, tiny_disk):
    """61: a real disk without space."""
    check_refused(WRITERS[name], tiny_disk)


@pytest.mark.parametrize("name", list(WRITERS))
def test_case_61_a_read_only_disk(name, read_only_disk):
    """61: a disk that nobody may write to, not even root."""
    with pytest.raises((OSError, FileError)) as caught:
        WRITERS[name](read_only_disk)
    assert "Read-only" in str(caught.value) or "may not be written" in str(caught.value)
    assert not list(read_only_disk.iterdir())


def test_case_61_a_full_cache_ends_a_reproduction(tiny_disk, monkeypatch):
    """61: cells that fit are kept, the first that does not ends the run; what is there is whole."""
    monkeypatch.setattr("reproduction.compute.compute", lambda cell, _: {"found": [cell["size"]] * cell["size"]})
    cells = [{**CELL, "size": size} for size in (10, 100, N)]
    with pytest.raises(OSError, match="No space left on device") as caught:
        run_cells(cells, tiny_disk / "runs.jsonl")
    assert caught.value.filename == str(tiny_disk / "runs.jsonl")
    assert list(read_runs(tiny_disk / "runs.jsonl")) == [digest(cell) for cell in cells[:2]]


# ---------------------------------------------------------------- commands


@pytest.fixture
def photos(tmp_path, rng):
    return write_photos(tmp_path / "photos", rng, 40)


def cluster(photos, *options, code=1):
    arguments = ["cluster", str(photos), "-k", "2", "--method", "sscomp", "-q", *map(str, options)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    ("option", "name", "room"), [("--report", "r.html", 40), ("--sort-into", "sorted", 24), ("-o", "l.csv", 0)]
)
def test_case_61_commands_on_a_full_disk(option, name, room, photos, tiny_disk):
    """61: one line with the file and the reason, exit code 1, and the disk as it was."""
    (tiny_disk / "filling").write_bytes(bytes(1024 * (64 - room)))
    assert cluster(photos, option, tiny_disk / name).startswith(f"error: {tiny_disk / name}: No space left on device")
    assert [path.name for path in tiny_disk.iterdir()] == ["filling"]


@pytest.mark.parametrize("option", ["-o", "--report", "--sort-into"])
def test_case_61_read_only_targets_are_refused_at_once(option, photos, read_only_disk, monkeypatch):
    """61: nobody computes for hours to find out that the result cannot be kept: exit code 2."""
    monkeypatch.setattr("subspaces.app.files.read_table", lambda *_, **__: pytest.fail("the work began"))
    suffix = {"-o": ".csv", "--report": ".html", "--sort-into": ""}[option]
    for folder in (read_only_disk, Path("/proc") if sys.platform == "linux" else read_only_disk):
        line = cluster(photos, option, folder / f"x{suffix}", code=2)
        assert line.startswith(f"error: {folder / 'x'}{suffix}: ")
        assert "written" in line


def test_case_61_a_name_that_is_too_long(photos, tmp_path):
    """61: found out before the work, not after."""
    assert "cannot be written (File name too long)" in cluster(photos, "-o", tmp_path / f"{'x' * 250}.csv", code=2)
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]
