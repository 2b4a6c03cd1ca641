"""Runs that are killed, interrupted and doubled: nothing finished is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import subspaces
from reproduction.cells import read_runs

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
# the last of three cells takes ten times as long as the others: that is where a run is caught
ENDS = {"SIGINT": (130, "interrupted"), "SIGTERM": (143, "terminated"), "SIGHUP": (129, "the terminal was closed")}
ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{Path(subspaces.__file__).parents[1]}:{ROOT}"}
pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


@pytest.fixture
def start(tmp_path):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "tiny.toml").write_text(EXPERIMENT)
    (tmp_path / "parameters.toml").write_text(ROWS)
    command = [sys.executable, "-m", "reproduction", "tiny", "--home", tmp_path, "--output", tmp_path / "out"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": ENVIRONMENT}
    return lambda *options: subprocess.Popen([*map(str, command), *options], **pipes)


@pytest.mark.full  # takes seconds: .ci/run has it
@pytest.mark.parametrize(("name", "jobs"), [("SIGKILL", "2"), ("SIGINT", "1"), ("SIGTERM", "2"), ("SIGHUP", "1")])
def test_stopped_in_mid_run_it_keeps_what_is_finished(start, tmp_path, name, jobs):
    process, runs = start("--jobs", jobs), tmp_path / "out" / "runs" / "tiny.jsonl"
    deadline, workers = time.monotonic() + 600, []
    while len(read_runs(runs)) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        workers = workers or (psutil.Process(process.pid).children(recursive=True) if read_runs(runs) else [])
        time.sleep(0.01)
    process.send_signal(signal.Signals[name])
    _, error = process.communicate(timeout=60)
    if process.returncode == 0:
        pytest.skip("the run was over before it could be stopped")
    assert name == "SIGKILL" or (process.returncode, error.strip()) == ENDS[name]
    assert not psutil.wait_procs(workers, timeout=30)[1], "workers outlive the run"
    with runs.open("a") as file:
        file.write('{"cell": "cut sh')  # as a kill in the middle of a write leaves it
    said, _ = start("--minutes", "0").communicate()
    assert said.startswith("tiny: 0 cells computed, 2 kept, 1 left")
    if name == "SIGKILL":
        assert start().communicate()[0].startswith("tiny: 1 cell computed, 2 kept;")
        assert start().communicate()[0].startswith("tiny: 0 cells computed, 3 kept;")


@pytest.mark.full  # takes seconds: .ci/run has it
def test_two_runs_into_one_folder(start, tmp_path):
    runs = [start() for _ in range(2)]
    assert all(run.communicate() and run.returncode == 0 for run in runs)
    assert len(read_runs(tmp_path / "out" / "runs" / "tiny.jsonl")) == 3


def test_a_wrong_name_and_failing_cells(start, tmp_path):
    wrong = start("tinny")
    assert "there is no experiment 'tinny' (known: tiny)" in wrong.communicate()[1]
    assert wrong.returncode == 2
    (tmp_path / "parameters.toml").write_text(ROWS.replace("0.1", "-1.0"))
    failing = start()
    assert "3 cells failed; the same command tries again" in failing.communicate()[1]
    assert failing.returncode == 1
    assert (tmp_path / "out" / "tiny.md").exists()
