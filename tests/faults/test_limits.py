"""Case 60, measured: what the package says it needs is what it takes, and ``--memory`` holds (docs/trust.md)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from fault_data import ENVIRONMENT
from typer.testing import CliRunner

from subspaces.app.cli import _stream
from subspaces.app.cli._options import LEAST_MEMORY
from subspaces.app.cli.main import app
from subspaces.utils import memory

linux = pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="needs Linux: peaks of memory")
MB = 2**20

# one process that imports everything once; every fit is a fork of it
MEASURE = """
    import json, os, sys, warnings
    from pathlib import Path
    import numpy as np
    from subspaces.utils import memory
    from subspaces import registry

    def status(name):
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])

    def points(n, m, dtype):
        rng = np.random.default_rng(0)
        bases = rng.standard_normal((4, 3, m))
        codes, noise = rng.standard_normal((n, 1, 3)), rng.standard_normal((n, m))
        return ((codes @ bases[np.arange(n) % 4])[:, 0] + 0.05 * noise).astype(dtype)

    def measure(method, n, m, dtype, parameters):
        warnings.simplefilter("ignore")
        small = points(300, min(m, 40), dtype)
        registry.load(method)(n_clusters=4, **parameters).fit(small)
        large = np.ones((4000, 700))
        large.T @ large  # what BLAS packs matrices into is the library's, not the route's: 26 MB on AVX-512
        del large
        X, said, require = points(n, m, dtype), [], memory.require

        def listen(n_bytes, *words):
            said.append(status("VmRSS") - before + n_bytes)
            require(n_bytes, *words)

        memory.require = listen
        Path("/proc/self/clear_refs").write_text("5")
        before = status("VmRSS")
        registry.load(method)(n_clusters=4, **parameters).fit(X)
        return {"said": max(said), "peak": status("VmHWM") - before}

    for job in json.loads(sys.argv[1]):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writer, json.dumps(measure(*job)).encode())
            os._exit(0)
        os.close(writer)
        print(os.fdopen(reader).read(), flush=True)
        os.waitpid(child, 0)
"""
ROUTES = {
    "dense": ("ktrr", 2500, 30, "float64", {}),
    "dense, float32": ("ktrr", 3000, 30, "float32", {}),
    "low rank": ("trr", 4000, 600, "float64", {}),
    "feature map": ("ktrr", 5000, 30, "float64", {"kernel": "quadratic"}),
    "two scales": ("ktrr", 10_000, 30, "float64", {"solver": "two_scale", "assign_labels": "modularity"}),
    "all pairs": ("lsr1", 1500, 30, "float64", {}),
    "ssc": ("ssc", 1500, 30, "float64", {}),
    "lrr2": ("lrr2", 1000, 30, "float64", {}),
    "kasp": ("kasp", 8000, 10, "float64", {"n_landmarks": 1200}),
    "lsc": ("lsc", 8000, 10, "float64", {"n_landmarks": 1200}),
    "nystrom": ("nystrom", 8000, 10, "float64", {"n_landmarks": 800}),
    "sec": ("sec", 8000, 10, "float64", {"n_landmarks": 1500}),
}


@pytest.mark.full  # takes seconds: .ci/run has it
@linux
def test_case_60_what_is_said_is_what_is_taken():
    """60: before it allocates, every route asks for what it will take: within a fifth, or 8 MB of blocks and chance."""
    command = [sys.executable, "-c", textwrap.dedent(MEASURE), json.dumps(list(ROUTES.values()))]
    run = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=600, check=True)
    found = dict(zip(ROUTES, map(json.loads, run.stdout.splitlines()), strict=True))
    table = {name: (round(row["said"] / MB), round(row["peak"] / MB)) for name, row in found.items()}
    wrong = {
        name: table[name]
        for name, row in found.items()
        if not 0.8 * row["peak"] - 8 * MB < row["said"] < 1.2 * row["peak"] + 8 * MB
    }
    assert not wrong, table


PEAK = """
    import atexit, sys
    from pathlib import Path

    place = Path(sys.argv.pop(1))
    atexit.register(lambda: place.write_text(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]))
    from subspaces.app.cli.__main__ import main
    main()
"""


def command(folder: Path, *options: str, file: Path | None = None) -> tuple[int, float, dict[str, object] | str]:
    """Exit code, peak in MB, and the document or the last words of a command."""
    given = ["cluster", str(file or folder / "x.npy"), "-k", "4", "--json", *options]
    line = [sys.executable, "-c", textwrap.dedent(PEAK), str(folder / "peak"), *given]
    run = subprocess.run(line, env=ENVIRONMENT, capture_output=True, text=True, timeout=600)
    answer = json.loads(run.stdout) if run.returncode == 0 else run.stderr
    return run.returncode, int((folder / "peak").read_text()) / 1024, answer


@pytest.mark.full  # takes seconds: .ci/run has it
@linux
def test_case_60_memory_is_honoured(tmp_path, rng):
    """60: the whole process stays within SIZE and 15 %; the route that fits is taken; what cannot fit is refused."""
    np.save(tmp_path / "x.npy", rng.standard_normal((4000, 20)))
    ktrr = [
        "--set",
        "kernel=rbf",
        "--set",
        "reg=1",
        "--set",
        "n_nonzero=5",
        "--scaling",
        "none",
        "--set",
        "assign_labels=modularity",
    ]
    for method, limit, code in (("ktrr", 600, 0), ("ktrr", 280, 0), ("lsr1", 600, 1)):
        found, peak, answer = command(
            tmp_path, "--method", method, "--memory", f"{limit}MiB", *(ktrr if method == "ktrr" else [])
        )
        assert found == code, answer
        assert peak < 1.15 * limit
        if code == 0:
            assert len(answer["cluster"]) == 4000
        else:
            assert answer.startswith("error: not enough memory; ")
            assert len(answer.splitlines()) == 1


@pytest.mark.full  # takes seconds: .ci/run has it
@linux
def test_case_60_memory_is_honoured_with_text_and_report(tmp_path, rng):
    """60: reading a table and drawing the report count as well."""
    pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
    table, report, limit = tmp_path / "x.csv", tmp_path / "report.html", 320
    np.savetxt(table, rng.standard_normal((3000, 20)), delimiter=",")
    options = ["--method", "sscomp", "--report", str(report), "--memory", f"{limit}MiB"]
    code, peak, answer = command(tmp_path, *options, file=table)
    assert code == 0, answer
    assert peak < 1.15 * limit
    assert len(answer["cluster"]) == 3000
    assert report.read_text().rstrip().endswith("</html>")


def test_case_60_a_limit_that_no_command_can_keep():
    """60: below what the libraries take there is nothing to promise."""
    result = CliRunner().invoke(app, ["cluster", "x.npy", "-k", "3", "--memory", "100MB"])
    assert result.exit_code == 2
    assert "100MB is less than what its libraries take alone; allow 250MB or more" in result.stderr


def test_case_60_workers_share_what_is_left(monkeypatch):
    """60: workers on this machine get their shares of --memory, this process keeps one; too little is refused."""
    share = _stream.WORKER_BYTES
    monkeypatch.setattr(memory, "available_bytes", lambda: 4 * share)
    assert _stream._workers(8, LEAST_MEMORY) == {"n_workers": 3, "memory": 3 * share}
    assert _stream._workers(1, LEAST_MEMORY) == {"n_workers": 1, "memory": 2 * share}
    assert _stream._workers(5, None) == {"n_workers": 5}
    monkeypatch.setattr(memory, "available_bytes", lambda: share)
    with pytest.raises(MemoryError, match=r"by one worker at least, needs .* --memory"):
        _stream._workers(2, LEAST_MEMORY)
