"""How near the memory a fit takes is to what the package says before it allocates, and whether ``--memory`` holds.

    python benchmarks/memory.py                # both tables; a few minutes
    python benchmarks/memory.py fits ktrr ssc  # some routes
    python benchmarks/memory.py limits

Every run is a process of its own with one thread. "said" is the largest demand of a fit when it was made: bytes asked
for plus what was held then; "peak" is what the process really took above the level before the fit. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from subspaces import SubspaceClustering, registry
from subspaces.datasets import make_subspaces
from subspaces.utils import memory

MB = 2**20
N_CLUSTERS = 5
FRONT_DOOR = "SubspaceClustering"
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
CPU_SECONDS, MEMORY = 300, 12 * 2**30
"""What a run may take."""


@dataclass(frozen=True)
class Route:
    """A way to labels: the method, its parameters, and points enough for some hundred megabytes."""

    method: str
    n: int
    m: int = 50
    dtype: str = "float64"
    parameters: dict[str, Any] = field(default_factory=dict)
    predict: int = 0
    """New points to label; 0 measures the fit instead."""


# few iterations where a method takes long: the peak is in the first ones
ENCODER = {"image_shape": (6, 6), "channels": (4,), "pretrain_epochs": 1}
NETWORK = ENCODER | {"epochs": 2}
ROUTES = {
    "ktrr, dense": Route("ktrr", 4000),
    "ktrr, dense, float32": Route("ktrr", 4000, dtype="float32"),
    "ktrr, dense, wide points": Route("ktrr", 2500, m=5000),
    "ktrr, graph of all pairs": Route("ktrr", 1800, parameters={"graph": "row_space"}),
    "ktrr, low rank": Route("ktrr", 6000, m=1000, parameters={"kernel": "linear"}),
    "ktrr, low rank, search": Route("ktrr", 51_000, parameters={"kernel": "linear", "assign_labels": "modularity"}),
    "ktrr, feature map": Route("ktrr", 8000, m=30, parameters={"kernel": "quadratic"}),
    "ktrr, two scales": Route("ktrr", 31_000, m=30, parameters={"solver": "two_scale"}),
    "nothing to set": Route(FRONT_DOOR, 3000, m=2000),
    "trr": Route("trr", 6000, m=1000),
    "lsr1": Route("lsr1", 3000),
    "lsr2": Route("lsr2", 3000),
    "ssc": Route("ssc", 2000),
    "kssc": Route("kssc", 1500),
    "ensc": Route("ensc", 2000),
    "sscomp": Route("sscomp", 10_000, m=500),
    "lrr1": Route("lrr1", 1500),
    "lrr2": Route("lrr2", 1500),
    "latlrr": Route("latlrr", 1500, parameters={"max_iter": 5}),
    "klrr": Route("klrr", 1500, parameters={"max_iter": 5}),
    "smce": Route("smce", 6000),
    "lsa": Route("lsa", 2500),
    "tsc": Route("tsc", 6000, m=1000),
    "sc": Route("sc", 2500),
    "ektrr": Route("ektrr", 50_000, m=100, parameters={"n_landmarks": 3000}),
    "sssc": Route("sssc", 50_000, m=100, parameters={"n_landmarks": 1500}),
    "slsr": Route("slsr", 50_000, m=100, parameters={"n_landmarks": 3000}),
    "slrr": Route("slrr", 50_000, m=100, parameters={"n_landmarks": 1500}),
    "kasp": Route("kasp", 30_000, parameters={"n_landmarks": 2500}),
    "nystrom": Route("nystrom", 30_000, parameters={"n_landmarks": 1500}),
    "sec": Route("sec", 30_000, parameters={"n_landmarks": 1500}),
    "akk": Route("akk", 30_000, parameters={"n_landmarks": 1500}),
    "lsc": Route("lsc", 30_000, parameters={"n_landmarks": 2000}),
    "uspec": Route("uspec", 30_000, parameters={"n_landmarks": 2000}),
    **{
        f"deep, {name}": Route(name, 2500, m=36, dtype="float32", parameters=NETWORK)
        for name in ("dscnet", "dasc", "ktrrnet", "structae")
    },
    "deep, aektrr": Route("aektrr", 4000, m=36, dtype="float32", parameters=ENCODER),
    "deep, aessc": Route("aessc", 2500, m=36, dtype="float32", parameters=ENCODER),
    "ktrr, predict": Route("ktrr", 2000, predict=20_000),
    "ktrr, two scales, predict": Route("ktrr", 5000, parameters={"solver": "two_scale"}, predict=30_000),
    "ektrr, predict": Route("ektrr", 3000, m=200, predict=100_000),
}


def points(n: int, m: int, dtype: str) -> Any:
    X, _ = make_subspaces(N_CLUSTERS, dimension=4, ambient=m, n_samples=-(-n // N_CLUSTERS), noise=0.05, random_state=0)
    return X[np.random.default_rng(0).permutation(len(X))[:n]].astype(dtype)


def run(route: Route) -> dict[str, Any]:
    """One route: what it said and what it took, in MB."""
    warnings.simplefilter("ignore")
    cls = SubspaceClustering if route.method == FRONT_DOOR else registry.load(route.method)
    model = cls(n_clusters=N_CLUSTERS, **route.parameters)
    small = points(400, min(route.m, 50), route.dtype)
    model.fit(small).predict(small[:5])  # imports
    X = points(route.n, route.m, route.dtype)
    if route.predict:
        model.fit(X)
        X = points(route.predict, route.m, route.dtype)
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    before, start = status("VmRSS"), time.process_time()
    with demands() as said:
        model.predict(X) if route.predict else model.fit(X)
    seconds, peak = time.process_time() - start, (status("VmHWM") - before) / 1024
    return {"said": max(said, default=0) / MB, "peak": peak, "cpu": seconds, "solver": getattr(model, "solver_", "")}


def status(name: str) -> int:
    """Return what the kernel knows of this process, in kB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def in_child(route: Route) -> dict[str, Any]:
    """Return what `run` returns in a forked process, or ``{"failed": why}`` where that ends badly."""
    sys.stdout.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            result = run(route)
        except BaseException as error:
            result = {"failed": f"{type(error).__name__}: {error}"[:120]}
        with os.fdopen(writer, "w") as file:
            json.dump(result, file)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        said = file.read()
    _, code = os.waitpid(child, 0)
    return json.loads(said) if code == 0 and said else {"failed": f"stopped: {CPU_SECONDS} CPU s, or memory"}


@contextmanager
def demands() -> Iterator[list[float]]:
    """Every demand for memory as the level it leads to above the present one."""
    process, found, require = psutil.Process(), [], memory.require
    before = process.memory_info().rss

    def listen(n_bytes: int, what: str, remedy: str) -> None:
        memory.give_back()
        found.append(process.memory_info().rss - before + n_bytes)
        require(n_bytes, what, remedy)

    memory.require = listen
    try:
        yield found
    finally:
        memory.require = require


def fits(names: list[str]) -> None:
    print(f"{'route':28}{'points':>9}{'features':>9}{'said, MB':>10}{'peak, MB':>10}{'said/peak':>10}{'CPU s':>7}")
    for name, route in ROUTES.items():
        if names and not any(name.startswith(wanted) for wanted in names):
            continue
        row = in_child(route)
        if "failed" in row:
            print(f"{name:28}{row['failed']}")
            continue
        ratio = f"{row['said'] / row['peak']:10.2f}" if row["said"] else f"{'':>10}"
        n = route.predict or route.n
        print(
            f"{name:28}{n:9}{route.m:9}{row['said']:10.0f}{row['peak']:10.0f}{ratio}{row['cpu']:7.1f} {row['solver']}",
            flush=True,
        )


# ---------------------------------------------------------------- --memory

REPORTING = """
import atexit, sys
from pathlib import Path

def peak():
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    Path(PLACE).write_text(line.split()[1])

PLACE = sys.argv.pop(1)
atexit.register(peak)
from subspaces.app.cli.__main__ import main
main()
"""
FIXED = ["--set", "reg=1", "--set", "n_nonzero=5"]
RBF = ["--set", "kernel=rbf", *FIXED]
COMMANDS = {
    "ktrr, dense": (Route("ktrr", 4000), RBF),
    "ktrr, two scales": (Route("ktrr", 12_000, dtype="float32"), RBF),
    "nothing to set": (Route(FRONT_DOOR, 2500, m=500), []),
    "trr, low rank": (Route("trr", 10_000, m=600), FIXED),
    "ssc": (Route("ssc", 2500), []),
    "lsr1, all pairs": (Route("lsr1", 2500), []),
    "kasp": (Route("kasp", 20_000), []),
    "ektrr": (Route("ektrr", 200_000), []),
}


def command(file: Path, route: Route, options: list[str], limit: float | None, places: Path) -> dict[str, Any]:
    """Run ``subspaces cluster``; its exit code, peak in MB and last words."""
    given = ["-k", str(N_CLUSTERS), *options, "-q", "--force", "-o", str(places / "labels.csv")]
    if route.method != FRONT_DOOR:
        given += ["--method", route.method]
    if route.method in ("ktrr", "trr"):
        given += ["--scaling", "none", "--set", "assign_labels=kmeans"]
    if limit is not None:
        given += ["--memory", f"{limit:.0f}"]
    line = [sys.executable, "-c", REPORTING, str(places / "peak"), "cluster", str(file), *given]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    words = done.stderr.strip().splitlines()[-1:] or [""]
    return {"code": done.returncode, "peak": int((places / "peak").read_text()) / 1024, "words": words[0]}


def limits(names: list[str]) -> None:
    """For each route: what it takes unlimited, then the limits between which it must run and must not."""
    print(f"{'route':20}{'unlimited, MB':>14}{'limit, MB':>11}{'':>9}{'peak, MB':>10}{'peak/limit':>12}")
    for name, (route, options) in COMMANDS.items():
        if names and not any(name.startswith(wanted) for wanted in names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "points.npy")
            np.save(file, points(route.n, route.m, route.dtype))
            free = command(file, route, options, None, Path(folder))
            print(f"{name:20}{free['peak']:14.0f}", flush=True)
            for share in (0.85, 1.0, 1.18):
                limit = free["peak"] / share
                found = command(file, route, options, limit * MB, Path(folder))
                done = "runs" if found["code"] == 0 else "refused" if "memory" in found["words"] else found["words"]
                print(f"{'':34}{limit:11.0f}{done:>9}{found['peak']:10.0f}{found['peak'] / limit:12.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["fits", "limits"])
    parser.add_argument("names", nargs="*", help="routes, by the beginnings of their names")
    arguments = parser.parse_args()
    if any(os.environ.get(name) != value for name, value in THREADS.items()):  # libraries look only once: start again
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | THREADS)
    if arguments.what in (None, "fits"):
        fits(arguments.names)
    if arguments.what in (None, "limits"):
        limits(arguments.names)


if __name__ == "__main__":
    main()
