"""Run a function in a process of its own, and measure its seconds and its memory."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Meter:
    """Seconds and megabytes of a piece of work: filled in when it ends."""

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
    """Return the resident memory in kB; Linux can be told to forget the peak so far, elsewhere the peak is taken."""
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


def with_threads(n: int) -> None:
    """Start this program again with `n` threads for every library: they look at the environment only once."""
    wanted = dict.fromkeys(_THREADS, str(n))
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | wanted)


def in_child(
    function: Callable[..., dict[str, Any]], keywords: dict[str, Any], *, cpu_limit: int, memory_limit: int
) -> dict[str, Any]:
    """Return ``function(**keywords)`` of a forked process, or ``{"failed": why}`` where it ends badly.

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
