"""Half of the kernel matrix: what the dense route takes in time and memory beside one bare inverse.

    python benchmarks/packed.py                      # the tables; about ten minutes on an idle machine
    python benchmarks/packed.py --write              # and docs/speed/packed.md
    python benchmarks/packed.py --sizes 2000 --large 0

Times: bare LAPACK on a whole matrix and on a packed one, and a fit from data to labels, in turn in one process; the
least of the repeats. Memory: the peak of a fit, in a process of its own, above the level before it. Linux only.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs
from threadpoolctl import threadpool_limits

from _peers.measure import in_child, measured
from single import played, table
from subspaces import KTRR, datasets
from subspaces.utils import memory
from subspaces.utils.packed import packed_copy

PAGE = Path(__file__).parents[1] / "docs" / "speed" / "packed.md"
CLUSTERS = 20
LIMITS = {"cpu_limit": 900, "memory_limit": 20 * 2**30}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[2000, 5000, 10_000])
    parser.add_argument("--features", type=int, nargs="*", default=[64, 1024])
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--large", type=int, default=20_000, help="of the memory alone, once; 0: none")
    parser.add_argument("--repeats", type=int, default=3, help="of the times; one at 10,000 points and more")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--note", default="", help="a sentence about the machine, for the page")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    times, peaks = [], []
    for n in arguments.sizes:
        for threads in arguments.threads:
            cells = {"threads": threads, "repeats": arguments.repeats if n < 10_000 else 1}
            for m in arguments.features:
                times.append({"points": n, "features": m} | in_child(time_fit, {"n": n, "m": m, **cells}, **LIMITS))
                print(times[-1], flush=True)
    for n in [*arguments.sizes, *([arguments.large] if arguments.large else [])]:
        for threads in arguments.threads:
            for m in arguments.features if n != arguments.large else arguments.features[:1]:
                found = in_child(peak_of_fit, {"n": n, "m": m, "threads": threads}, **LIMITS)
                peaks.append({"points": n, "features": m} | found)
                print(peaks[-1], flush=True)
    if arguments.write:
        PAGE.write_text(page(times, peaks, arguments.note))


def points(n: int, m: int) -> np.ndarray:
    return datasets.make_subspaces(CLUSTERS, 5, m, n // CLUSTERS, noise=0.01, random_state=0)[0]


def time_fit(n: int, m: int, threads: int, repeats: int) -> dict[str, Any]:
    """CPU seconds of each way."""
    X, rng = points(n, m), np.random.default_rng(0)
    Z = rng.random((n, 64))
    K = Z @ Z.T / 64 + np.eye(n)
    jobs: dict[str, Callable[[], object]] = {
        "potrf + potri": lambda: whole(K.copy()),
        "pftrf + pftri": lambda: half(packed_copy(K)),
        "data to labels": lambda: KTRR(CLUSTERS, solver="dense").fit(X),
    }
    found: dict[str, Any] = {"threads": threads}
    with threadpool_limits(threads):
        KTRR(CLUSTERS, solver="dense").fit(X[:: n // 400])
        for _ in range(repeats):
            for name, job in jobs.items():
                with measured() as meter:
                    job()
                found[name] = min(found.get(name, np.inf), meter.cpu)
    return found


def whole(A: np.ndarray) -> None:
    potrf, potri = get_lapack_funcs(("potrf", "potri"), (A,))
    potrf(A.T, lower=0, clean=0, overwrite_a=1)
    potri(A.T, lower=0, overwrite_c=1)


def half(A: Any) -> None:
    if not (A.factorise() and A.invert_factor()):
        raise ValueError("not positive definite")


def peak_of_fit(n: int, m: int, threads: int) -> dict[str, Any]:
    """MB of a fit above the level before, and in n × n items, with the copy of the points in order and without."""
    X = points(n, m)
    with threadpool_limits(threads):
        KTRR(CLUSTERS, solver="dense").fit(X[:: n // 400])
        memory.give_back()
        with measured() as meter:
            KTRR(CLUSTERS, solver="dense").fit(X)
    items = meter.mb * 2**20 / (8 * n**2)
    return {"threads": threads, "MB": meter.mb, "all": items, "beside": items - X.nbytes / (8 * n**2)}


def page(times: list[dict[str, Any]], peaks: list[dict[str, Any]], note: str) -> str:
    """The page, of what was measured."""
    head = ["points", "features", "threads"]
    rows = [[*head, *WAYS]]
    for row in times:
        cells = [f"{row[name]:.2f} s = {row[name] / row[WAYS[0]]:.2f} ×" for name in WAYS]
        rows.append([f"{row[name]:,}" for name in head] + cells)
    taken = [[*head, "MB", "n² items", "n² items beside the copy of the points in order"]]
    taken += [
        [*(f"{row[name]:,}" for name in head), f"{row['MB']:.0f}", f"{row['all']:.2f}", f"{row['beside']:.2f}"]
        for row in peaks
    ]
    said = (
        f"Written by `python benchmarks/packed.py --write`, with OpenBLAS as on a {played()}; what it means is in "
        f"[Where the time goes](../speed.md). {note}".rstrip()
    )
    costs = "CPU seconds, and their ratio to `potrf` + `potri` on the whole matrix:"
    most = "The peak of a fit above the level before it, in double precision:"
    return "\n\n".join(["# Half of the kernel matrix", said, costs, table(rows), most, table(taken)]) + "\n"


WAYS = ("potrf + potri", "pftrf + pftri", "data to labels")


if __name__ == "__main__":
    main()
