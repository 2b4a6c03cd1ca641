"""Cases 61 and 64 on workers: the scheduler is lost, two runs share a checkpoint, the disk is full, Ctrl-C."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed", reason="Dask is not installed: pip install subspaces[dask]")
pytest.importorskip("dask.dataframe", reason="Dask DataFrames are not installed: pip install subspaces[dask]")


import subspaces
from distributed_routes.rings_data import ektrr, ktrr, three_rings, watched
from subspaces.distributed import _files, _sampled, _sharded, _shards, connect, fit_predict

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(Path(subspaces.__file__).parents[1]),
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


@pytest.fixture
def rings(rng, tmp_path) -> Path:
    np.save(tmp_path / "rings.npy", three_rings(rng, 2000))
    return tmp_path / "rings.npy"


@pytest.fixture
def small_tasks(monkeypatch) -> None:
    monkeypatch.setattr(_sharded, "IN_MEMORY", 500)
    monkeypatch.setattr(_shards, "SHARD", 800)
    monkeypatch.setattr(_shards, "BLOCK", 256)
    monkeypatch.setattr(_sampled, "TASK_BYTES", 2**12)


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and a worker, each a process of its own; the scheduler's process and address."""
    file, module = tmp_path / "scheduler.json", [sys.executable, "-m"]
    options = {"env": ENVIRONMENT, "stderr": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    place = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    scheduler = subprocess.Popen([*module, "distributed.cli.dask_scheduler", *place], **options)
    while not (file.exists() and file.read_text()):
        assert scheduler.poll() is None
        time.sleep(0.05)
    address = json.loads(file.read_text())["address"]
    alone = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(tmp_path / "worker")]
    worker = subprocess.Popen([*module, "distributed.cli.dask_worker", address, *alone], **options)
    yield scheduler, address
    for process in (worker, scheduler):
        process.kill()
        process.wait()


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("make", [ktrr, ektrr])
def test_case_64_the_scheduler_is_lost(make, cluster, rings, tmp_path):
    """64: an error that says so, soon; the same call goes on from what was finished, with the same labels."""
    scheduler, address = cluster
    seen: list[int] = []
    killed: list[float] = []

    def kill(done: int, total: int) -> None:
        seen.append(total)
        if done == 3:
            scheduler.kill()
            killed.append(time.monotonic())

    folder = tmp_path / "checkpoint"
    with connect(address) as client:
        client.wait_for_workers(1, timeout=120)
        lost = r"scheduler at tcp://127.0.0.1:\d+ was lost .* is kept there"
        with watched(kill), pytest.raises(ConnectionError, match=lost):
            fit_predict(make(), rings, client=client, checkpoint=folder)
        assert time.monotonic() - killed[0] < 60
    assert not list(folder.rglob(".*"))
    left: list[int] = []
    with connect(n_workers=1) as client, watched(lambda done, total: left.append(total)):
        labels = fit_predict(make(), rings, client=client, checkpoint=folder)
    alone = fit_predict(make(), rings, client="here")
    np.testing.assert_array_equal(labels, alone if make is ktrr else make().fit_predict(np.load(rings)))
    if make is ktrr:
        assert set(left) <= set(range(seen[0] - 2))


RUN = """
    import sys
    from subspaces import KTRR
    from subspaces.distributed import _sharded, _shards, connect, fit_predict
    import dask.array as da, numpy as np

    if __name__ == "__main__":
        _sharded.IN_MEMORY, _shards.SHARD, _shards.BLOCK = 500, 800, 256
        estimator = KTRR(n_clusters=3, solver="two_scale", assign_labels="modularity")
        with connect(n_workers=1) as client:
            print("ready", flush=True)
            sys.stdin.readline()
            X = da.from_array(np.load(sys.argv[1]), chunks=(int(sys.argv[3]), 4))
            labels = fit_predict(estimator, X, client=client, checkpoint=sys.argv[2])
        print(labels.tolist())
"""


@pytest.mark.usefixtures("small_tasks")
def test_case_64_two_runs_on_one_checkpoint(rings, tmp_path):
    """64: two runs begin at the same moment; neither removes what the other is writing; both have the right labels."""
    script = tmp_path / "run.py"
    script.write_text(textwrap.dedent(RUN), encoding="utf-8")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, str(script), str(rings), str(tmp_path / "checkpoint")]
    runs = [subprocess.Popen([*command, chunk], text=True, env=ENVIRONMENT, **pipes) for chunk in ("300", "700")]
    for run in runs:
        assert run.stdout.readline() == "ready\n"
    for run in runs:
        run.stdin.write("\n")
        run.stdin.flush()
    ends = [run.communicate(timeout=600) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], ends
    expected = fit_predict(ktrr(), rings, client="here").tolist()
    assert [json.loads(out.splitlines()[-1]) for out, _ in ends] == [expected, expected]
    assert not list((tmp_path / "checkpoint").rglob(".*"))
    for kind in ("points", "graph", "cut"):
        assert len(list((tmp_path / "checkpoint").glob(f"{kind}-*"))) == 1


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("where", ["points", "sums", "weights", "labels"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_case_61_writing_fails(error, where, rings, tmp_path, monkeypatch):
    """59, 61: an interruption or a full disk in any phase leaves nothing half done, and the same call goes on."""
    folder, save_folder = tmp_path / "checkpoint", _files.save_folder
    failed: list[Path] = []

    def fails(path, **arrays):
        if not failed and (where in arrays or where in path.name) and "1" in path.name[-5:]:
            failed.append(path)
            raise error
        save_folder(path, **arrays)

    monkeypatch.setattr(_files, "save_folder", fails)
    estimator = ktrr()
    with pytest.raises(type(error) if isinstance(error, OSError) else error):
        fit_predict(estimator, rings, client="here", checkpoint=folder)
    assert not hasattr(estimator, "labels_")
    assert not list(folder.rglob(".*"))
    labels = fit_predict(ktrr(), rings, client="here", checkpoint=folder)
    np.testing.assert_array_equal(labels, fit_predict(ktrr(), rings, client="here"))
