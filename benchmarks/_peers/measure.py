"""One run in a process of its own: scores, wall and CPU seconds, memory above what was there before."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from _peers.data import load
from _peers.methods import METHODS

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


Function = Callable[..., dict[str, Any]]


class Meter:
    """Seconds and memory of a piece of work: filled in when it ends."""

    wall: float
    cpu: float
    mb: float


@contextmanager
def measured() -> Iterator[Meter]:
    """Measure what happens inside; memory is the peak above the level at the start."""
    meter, before = Meter(), _reset_peak()
    wall, cpu = time.perf_counter(), time.process_time()
    yield meter
    meter.wall, meter.cpu = time.perf_counter() - wall, time.process_time() - cpu
    meter.mb = (_peak() - before) / 1024


def _reset_peak() -> int:
    """Resident memory now, in kB; Linux can be told to forget the peak so far, elsewhere the peak itself is taken."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return _peak()
    return _status("VmRSS")


def _peak() -> int:
    if _STATUS.exists():
        return _status("VmHWM")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)


def _status(name: str) -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1])


def run_cell(data: str, method: str, seed: int) -> dict[str, Any]:
    """A method on a data set, after an untimed warm-up on a few hundred of its points (imports, compilation)."""
    from subspaces.metrics import clustering_scores

    warnings.simplefilter("ignore")
    X, y = load(data, seed)
    k = len(np.unique(y))
    chosen = np.random.default_rng(0).choice(len(X), min(len(X), max(300, 5 * k)), replace=False)
    function = METHODS[method].run
    with suppress(Exception):  # what is wrong with a few points need not be wrong with all
        function(X[chosen], k, seed)
    with measured() as meter:
        found = function(X, k, seed)
    legs = {leg: round(seconds, 3) for leg, seconds in getattr(found, "timings_", {}).items()}
    labels = getattr(found, "labels_", found)
    row: dict[str, Any] = {"wall": meter.wall, "cpu": meter.cpu, "mb": meter.mb, "legs": legs, "shape": X.shape, "k": k}
    if labels is not None:
        scores = clustering_scores(y, labels)
        row |= {"ac": 100 * scores["accuracy"], "nmi": 100 * scores["nmi"], "ari": 100 * scores["ari"]}
        row["found"] = len(np.unique(labels))
    return row


def with_threads(n: int) -> None:
    """Start this program again with `n` threads for every library: they look at the environment only once."""
    wanted = dict.fromkeys(_THREADS, str(n))
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | wanted)


def preload() -> None:
    """Import what the methods need, once: each run is a fork of this process and starts at once."""
    for name in sorted(
        {method.needs for method in METHODS.values() if not method.missing()} | {"subspaces.estimators.sampled"}
    ):
        with suppress(Exception):  # a broken peer is reported by its own run
            import_module(name)


def in_child(function: Function, keywords: dict[str, Any], *, cpu_limit: int, memory_limit: int) -> dict[str, Any]:
    """``function(**keywords)`` in a process of its own; ``{"failed": why}`` where it ends badly.

    Parameters
    ----------
    cpu_limit : CPU seconds after which it is stopped
    memory_limit : bytes it may take
    """
    sys.stdout.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_limit, cpu_limit + 5))
        resource.setrlimit(resource.RLIMIT_AS, (memory_limit, memory_limit))
        try:
            result = function(**keywords)
        except BaseException as error:
            result = {"failed": f"{type(error).__name__}: {error}"[:120]}
        with os.fdopen(writer, "w") as file:
            json.dump(result, file)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        said = file.read()
    _, status = os.waitpid(child, 0)
    return json.loads(said) if status == 0 and said else {"failed": f"stopped: {cpu_limit} CPU s, or memory"}


class Store:
    """Finished runs, one JSON line each: an interrupted comparison goes on where it stopped."""

    def __init__(self, file: Path) -> None:
        self.file = file
        lines = file.read_text().splitlines() if file.exists() else []
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def get(self, key: dict[str, Any], compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The stored result of a key, or the computed one, stored."""
        for row in self.rows:
            if row["key"] == key:
                return row["result"]
        row = {"key": key, "result": compute(), "date": time.strftime("%Y-%m-%d %H:%M")}
        self.rows.append(row)
        self.file.parent.mkdir(exist_ok=True)
        with self.file.open("a") as file:
            file.write(json.dumps(row) + "\n")
        return row["result"]

    def forget(self, chosen: Callable[[dict[str, Any]], bool]) -> None:
        """Drop the runs whose key is chosen."""
        self.rows = [row for row in self.rows if not chosen(row["key"])]
        if self.file.exists():
            self.file.write_text("".join(json.dumps(row) + "\n" for row in self.rows))
