"""Case 64: two processes at once on one cache, one checkpoint, one output; and clocks that jump."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import textwrap
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from fault_data import ENVIRONMENT, planes

from reproduction.cells import read_runs
from subspaces.datasets import loaders
from subspaces.datasets._formats import Points, points_of, read_arrays

TOGETHER = """
    import sys, time
    print("ready", flush=True)
    sys.stdin.readline()  # so that all begin at the same moment
"""


def at_once(program: str, *arguments: object, n: int = 2) -> list[str]:
    """What `n` processes print that run the same program at the same time; all must end well."""
    code = textwrap.dedent(program).replace("# begin\n", textwrap.dedent(TOGETHER))
    command = [sys.executable, "-c", code, *map(str, arguments)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    children = [subprocess.Popen(command, env=ENVIRONMENT, text=True, **pipes) for _ in range(n)]
    for child in children:
        assert child.stdout.readline() == "ready\n", child.stderr.read()
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    ends = [child.communicate(timeout=300) for child in children]
    assert [child.returncode for child in children] == [0] * n, ends
    return [out for out, _ in ends]


FETCHING = """
    import sys, time
    from pathlib import Path
    import numpy as np
    from subspaces.datasets import loaders
    from subspaces.datasets._formats import points_of, read_arrays

    def fetch(folder):
        (folder / "raw").write_bytes(b"x" * 1000)
        time.sleep(0.02)
        rng = np.random.default_rng(0)
        return points_of(rng.random((200, 9)), rng.integers(0, 3, 200))

    dataset = loaders.DataSet("Noise", {"noise.npz": read_arrays}, 9, "", "nowhere", fetch=fetch)
    # begin
    home = Path(sys.argv[1])
    total = 0.0
    for turn in range(20):
        points, path = loaders.find(dataset, home / str(turn), True)
        again, _ = loaders.find(dataset, home / str(turn), False)
        total += points.X.sum() - again.X.sum() + again.y.sum()
    print(total)
"""


@pytest.mark.full  # takes seconds: .ci/run has it
def test_case_64_one_data_cache(tmp_path):
    """63, 64: two processes fetch the same data sets: both get them, the cache holds each once and nothing else."""
    first, second = at_once(FETCHING, tmp_path)
    assert first == second
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["noise.npz"] * 20


CELLS = """
    import sys
    from pathlib import Path
    from reproduction.cells import add_run, read_runs
    # begin
    path = Path(sys.argv[1]) / "runs.jsonl"
    for turn in range(100):
        add_run(path, f"{turn}", {"found": list(range(2000)), "turn": turn})
    print(all(each == {"found": list(range(2000)), "turn": int(key)} for key, each in read_runs(path).items()))
"""


def test_case_64_one_folder_of_cells(tmp_path):
    """64: two processes keep cells in the same file at once: none is lost."""
    assert at_once(CELLS, tmp_path) == ["True\n", "True\n"]
    assert len(read_runs(tmp_path / "runs.jsonl")) == 100


DEEP = """
    import sys, warnings
    warnings.simplefilter("ignore")
    import numpy as np
    from subspaces.deep import KTRRNet

    X = np.random.default_rng(0).random((40, 36)).astype(np.float32)
    model = KTRRNet(3, image_shape=(6, 6), channels=(3,), epochs=12, pretrain_epochs=8, tol=None, save_every=1,
                    checkpoints=sys.argv[1])
    # begin
    for turn in range(3):
        labels = model.fit_predict(X)
    print(labels.tolist())
"""


def test_case_64_one_checkpoint_of_a_network(tmp_path):
    """64: two processes train the same network into one folder, saving after every epoch: both get the same labels."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    first, second = at_once(DEEP, tmp_path)
    assert first == second
    assert {path.suffix for path in tmp_path.iterdir()} == {".pt"}
    assert at_once(DEEP, tmp_path, n=1) == [first]


OUTPUT = """
    import sys
    from subspaces.app.cli.main import app
    sys.argv[1:] = ["cluster", sys.argv[1], "-k", "3", "--method", "sscomp", "-o", sys.argv[2], "--force", "-q"]
    import subspaces.estimators.ssc, subspaces.app.files
    # begin
    app()
"""


@pytest.mark.full  # takes seconds: .ci/run has it
def test_case_64_one_output(tmp_path, seed):
    """61, 64: two commands write the same file: it is the whole result of one of them."""
    X, _ = planes(seed)
    np.save(tmp_path / "x.npy", X)
    at_once(OUTPUT, tmp_path / "x.npy", tmp_path / "labels.csv", n=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.csv", "x.npy"]
    assert len((tmp_path / "labels.csv").read_text().splitlines()) == len(X) + 1


# ---------------------------------------------------------------- clocks


def test_clocks_and_impossible_dates_lose_no_data_set(tmp_path, monkeypatch):
    """63, 64: a data set fetched while the clock jumps a year at every look is found again, whatever its dates say."""
    real, looks = time.time, itertools.count()
    monkeypatch.setattr(time, "time", lambda: real() - 365 * 86_400 * next(looks))
    calls = []

    def fetch(folder: Path) -> Points:
        calls.append(folder)
        return points_of(np.arange(40.0).reshape(10, 4), np.repeat([1, 2], 5))

    dataset = loaders.DataSet("Noise", {"noise.npz": read_arrays}, 4, "", "nowhere", fetch=fetch)
    points, path = loaders.find(dataset, tmp_path, True)
    with zipfile.ZipFile(path) as archive:
        content = path.read_bytes()
        for info in archive.infolist():  # month 0 of 1980, which is no date
            content = content.replace(info.FileHeader()[10:14], bytes(4))
    path.write_bytes(content)
    os.utime(path, (0, 0))
    again, _ = loaders.find(dataset, tmp_path, True)
    np.testing.assert_array_equal(points.X, again.X)
    assert len(calls) == 1
