"""Runs that are killed, interrupted and doubled: nothing finished is lost, nothing is done twice."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import subspaces
from reproduction.cells import run_cells
from subspaces.io import writing

ROWS = """
[ktrr]
label = "KTRR"
method = "ktrr"
common = { reg = 0.1 }
"""
EXPERIMENT = """
title = "η on the digits"
paper = "Fig. 0"
style = "table"
metrics = ["AC"]

[[panels]]
name = "fast"
data = { name = "digits" }
rows = ["ktrr"]
vary = "n_nonzero"
values = [3, 4]

[[panels]]
name = "slow"
data = { name = "digits" }
rows = ["ktrr"]
vary = "n_nonzero"
values = [5]
protocol = { cuts = [{ name = "k-means", restarts = 5, runs = 600 }] }

[protocol]
cuts = [{ name = "k-means", restarts = 5, runs = 1 }]
"""
N_CELLS = 3  # the last takes ten times as long as the others: that is where a run is caught
WORDS = {
    "SIGINT": (130, "interrupted"),
    "SIGTERM": (143, "terminated"),
    "SIGHUP": (129, "the terminal was closed"),
}
ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{Path(subspaces.__file__).parents[1]}:{ROOT}"}
pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


@pytest.fixture
def command(tmp_path):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "tiny.toml").write_text(EXPERIMENT)
    (tmp_path / "parameters.toml").write_text(ROWS)
    places = ["--home", tmp_path, "--output", tmp_path / "out", "--cache", tmp_path / "cells"]
    return [sys.executable, "-m", "reproduction", "tiny", *map(str, places)]


def start(command, *options):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*command, *options], text=True, env=ENVIRONMENT, **pipes)


def finished(folder: Path):
    return sorted(folder.glob("*.json"))


def wait_for_cells(folder: Path, number: int, process) -> list[psutil.Process]:
    """Wait until so many cells are there; returns the workers, looked up before, since that takes a while."""
    deadline, workers = time.monotonic() + 600, []
    while len(finished(folder)) < number:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        if finished(folder) and not workers:
            workers = psutil.Process(process.pid).children(recursive=True)
        time.sleep(0.01)
    return workers


def report(command):
    """How many cells a run computed and found."""
    run = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=True)
    return tuple(map(int, re.match(r"tiny: (\d+) cells? computed, (\d+) from the cache", run.stdout).groups()))


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_killed_in_mid_run_only_the_unfinished_is_done_again(command, tmp_path, jobs):
    process = start(command, "--jobs", jobs)
    children = wait_for_cells(tmp_path / "cells", 2, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not alive, "workers outlive the run"
    before = {path: path.stat().st_mtime_ns for path in finished(tmp_path / "cells")}
    if len(before) == N_CELLS:
        pytest.skip("the run was over before it could be killed")
    found = report(command)
    assert found == (N_CELLS - len(before), len(before))
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in before.items())
    assert len(finished(tmp_path / "cells")) == N_CELLS
    assert report(command) == (0, N_CELLS)


@pytest.mark.parametrize(("name", "jobs"), [("SIGINT", "1"), ("SIGINT", "2"), ("SIGTERM", "2"), ("SIGHUP", "1")])
def test_interrupted_it_leaves_at_once_and_cleanly(command, tmp_path, name, jobs):
    code, words = WORDS[name]
    process = start(command, "--jobs", jobs)
    children = wait_for_cells(tmp_path / "cells", 2, process)
    process.send_signal(signal.Signals[name])
    _, error = process.communicate(timeout=60)
    if process.returncode == 0:
        pytest.skip("the run was over before it could be interrupted")
    assert process.returncode == code
    assert error.strip().splitlines() == [words]
    assert not psutil.wait_procs(children, timeout=30)[1]
    assert not list((tmp_path / "cells").glob(".*")), "half-written files"


def test_a_worker_that_is_stopped_while_it_writes_leaves_nothing(tmp_path):
    """Its half-written cell is removed by the run that stopped it."""

    def stop(done, total):
        half = tmp_path / f".half.json.{writing._host()}-{stopped.pid}-abcdef.tmp"
        half.touch()
        raise KeyboardInterrupt

    stopped = subprocess.Popen([sys.executable, "-c", "pass"])
    stopped.wait()
    cells = [{"points": {"name": "none"}, "method": "none", "parameters": {}, "number": i} for i in range(2)]
    with pytest.raises(KeyboardInterrupt):
        run_cells(cells, tmp_path, jobs=2, listener=stop)
    assert not list(tmp_path.iterdir())


def test_two_runs_on_one_cache(command, tmp_path):
    runs = [start(command) for _ in range(2)]
    assert all(run.communicate() and run.returncode == 0 for run in runs)
    assert len(finished(tmp_path / "cells")) == N_CELLS


def test_wrong_name_and_failing_cell(command, tmp_path):
    wrong = subprocess.run([*command, "tinny"], capture_output=True, text=True, env=ENVIRONMENT)
    assert wrong.returncode == 2
    assert "there is no experiment 'tinny' (known: tiny)" in wrong.stderr
    assert "Traceback" not in wrong.stderr
    (tmp_path / "parameters.toml").write_text(ROWS.replace("0.1", "-1.0"))
    failing = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    assert failing.returncode == 1
    assert f"{N_CELLS} cells failed; the same command tries again" in failing.stderr
    assert (tmp_path / "out" / "tiny.md").exists()
