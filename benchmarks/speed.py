"""Where people wait: CPU seconds of one thread beside what each step is measured by, alternating in one run.

    python benchmarks/speed.py             # the table and the growth with n: ten minutes
    python benchmarks/speed.py table       # docs/measured/speed.json
    python benchmarks/speed.py growth      # docs/measured/growth.json and results/growth.png
    python benchmarks/speed.py large       # MNIST and Covtype whole, beside EVoC and faiss where they are installed
    python benchmarks/speed.py predict     # new samples of many methods, beside k nearest neighbours

Samples are MNIST's where ``subspaces.datasets`` finds it, else curved pieces of ten. Every time is the best of three
(of one where it takes long). To compare with other code, set PYTHONPATH to it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import lapack
from sklearn.cluster import HDBSCAN, SpectralClustering
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import measured
from subspaces import KTRR, LRR1, SC, SSC, TSC, SubspaceClustering
from subspaces.datasets import load_covtype, load_mnist

THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
SIZES = (500, 2000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
LONG = 20.0
"""CPU seconds of a round after which it is not repeated."""
LONGEST = 60.0
"""CPU seconds of a fit after which a method is not asked for more samples."""
HEAD = ("what", "CPU s", "beside it", "CPU s ", "ratio")
METHODS = {
    "KTRR linear": KTRR(kernel="linear", solver="dense"),
    "KTRR quadratic": KTRR(kernel="quadratic", solver="dense"),
    "low rank": KTRR(kernel="linear", solver="low_rank"),
    "affine": KTRR(affine=True),
    "SC": SC(),
    "TSC": TSC(),
    "SSC": SSC(),
    "LRR1": LRR1(),
}
Row = tuple[str, ...]


@cache
def samples(n: int, m: int = 50) -> tuple[np.ndarray, np.ndarray]:
    """Return n samples of m features and their ten classes."""
    rng = np.random.default_rng(0)
    try:
        X, y = load_mnist(return_X_y=True, dtype=np.float32)
    except FileNotFoundError:
        X, y = np.empty((0, 784), dtype=np.float32), np.empty(0, dtype=int)
    if n <= len(X) and m <= X.shape[1]:
        some = rng.permutation(len(X))[:n]
        return PCA(m, svd_solver="covariance_eigh").fit(X).transform(X[some]).astype(np.float64), y[some]
    y = rng.integers(0, 10, n)
    t = rng.uniform(-1, 1, (n, 3))
    maps, noise = rng.standard_normal((10, 7, m)) / 2, 0.05 * rng.standard_normal((n, m))
    return np.einsum("ni,nij->nj", np.column_stack([t, t**2, np.ones(n)]), maps[y]) + noise, y


def alternating(*calls: Callable[[], Any]) -> list[float]:
    """Return the CPU seconds of each call, the best of three rounds; one round where it takes long."""
    best = [np.inf] * len(calls)
    for _ in range(3):
        for i, call in enumerate(calls):
            start = time.process_time()
            call()
            best[i] = min(best[i], time.process_time() - start)
        if sum(best) > LONG:
            break
    return best


def rows_of(beside: str, steps: dict[str, Callable[[], Any]], yardstick: Callable[[], Any]) -> Iterator[Row]:
    """Yield a row for each step beside one yardstick."""
    own, *found = alternating(yardstick, *steps.values())
    for name, seconds in zip(steps, found, strict=True):
        yield name, f"{seconds:.2f}", beside, f"{own:.2f}", f"{seconds / own:.2f}"


def predict_rows(name: str, model: Any, n: int) -> Iterator[Row]:
    X, _ = samples(4 * n)
    model.set_params(n_clusters=10).fit(X[:n])
    neighbours = KNeighborsClassifier(getattr(model, "n_nonzero", None) or 5).fit(X[:n], model.labels_)
    steps = {
        f"predict, {name}, {n:,} → {3 * n:,}": lambda: model.predict(X[n:]),
        f"its memberships, {name}": lambda: model.predict_membership(X[n:]),
    }
    yield from rows_of("k nearest neighbours, same labels", steps, lambda: neighbours.predict(X[n:]))


def table() -> Iterator[Row]:
    """Yield all rows but those of large sets."""
    for solver in ("dense", "two_scale"):
        yield from predict_rows(solver, KTRR(solver=solver, assign_labels="modularity"), 5000)
    (X, _), (wide, _) = samples(10_001), samples(5000, 1024)

    def fit(n: int, solver: str = "auto") -> Callable[[], Any]:
        return lambda: KTRR(10, solver=solver, assign_labels="modularity").fit(X[:n])

    for n in (3000, 3380, 10_000):
        yield from rows_of("the same in two scales", {f"KTRR, {n:,} × 50": fit(n)}, fit(n, "two_scale"))
    A = np.asfortranarray(wide @ wide.T / 1024 + np.eye(len(wide)))
    steps = {"KTRR, dense, 5,000 × 1,024": lambda: KTRR(10).fit(wide)}
    yield from rows_of("potrf and potri", steps, lambda: lapack.dpotri(lapack.dpotrf(A, lower=1)[0], lower=1))
    for n, m in ((500, 20), (500, 50), (500, 1024), (2000, 20), (2000, 50), (2000, 1024)):
        points, _ = samples(n, m)
        doors = {
            "number given, fast": SubspaceClustering(10, effort="fast"),
            "number given": SubspaceClustering(10),
            "number open": SubspaceClustering(),
        }
        steps = {
            f"front door, {n} × {m}, {how}": lambda door=door, points=points: door.fit(points)
            for how, door in doors.items()
        }
        yield from rows_of("a plain KTRR fit", steps, lambda points=points: KTRR(10).fit(points))
    yield from command_line()


def command_line() -> Iterator[Row]:
    """Yield the help, and a clustering with the start of Python, beside the same in Python."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "wine.csv")
        np.savetxt(file, load_wine().data, delimiter=",", fmt="%.6g")
        plain = f"import numpy, subspaces as s; s.SubspaceClustering().fit(numpy.loadtxt({str(file)!r}, delimiter=','))"
        cli = [sys.executable, "-m", "subspaces.app.cli"]
        commands = {
            "`subspaces --help`": [*cli, "--help"],
            "`subspaces cluster wine.csv`": [*cli, "cluster", str(file), "-q", "--force", "-o", f"{folder}/labels.csv"],
        }
        own = of_process([sys.executable, "-c", plain])
        for name, command in commands.items():
            seconds = of_process(command)
            yield name, f"{seconds:.2f}", "Python: import, read, fit", f"{own:.2f}", f"{seconds / own:.2f}"


def of_process(command: list[str]) -> float:
    """Return the CPU seconds of a process, the best of three."""
    found = []
    for _ in range(3):
        before = os.times()
        subprocess.run(command, check=True, capture_output=True)
        after = os.times()
        found.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(found)


def growth() -> Iterator[Row]:
    """Yield CPU seconds and adjusted Rand index of whole fits for more and more samples; draw them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    methods: dict[str, Callable[[], Any]] = {
        "KTRR, number open": lambda: KTRR(None, assign_labels="modularity"),
        "SubspaceClustering, number open": SubspaceClustering,
        "scikit-learn's spectral, number given": lambda: SpectralClustering(10, affinity="nearest_neighbors"),
        "scikit-learn's HDBSCAN": lambda: HDBSCAN(copy=True),
    }
    with suppress(ImportError):
        import umap

        methods["UMAP, then HDBSCAN"] = lambda: make_pipeline(umap.UMAP(n_jobs=1), HDBSCAN(copy=True))
    with suppress(ImportError):
        import evoc

        methods["EVoC"] = evoc.EVoC
    for method in [*methods.values()][4:]:  # Numba compiles at the first call
        method().fit(samples(500)[0].astype(np.float32))
    figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
    for name, method in methods.items():
        times: list[float] = []
        for n in SIZES:
            if times and times[-1] > LONGEST:
                break
            X, y = samples(n)
            start = time.process_time()
            labels = method().fit_predict(X.astype(np.float32) if name == "EVoC" else X)
            times.append(time.process_time() - start)
            yield name, f"{n:,}", f"{times[-1]:.2f}", f"{adjusted_rand_score(y, labels):.3f}", str(labels.max() + 1)
        axis.loglog(SIZES[: len(times)], times, "o-", label=name)
    axis.set(xlabel="samples", ylabel="CPU seconds, one thread")
    axis.grid(alpha=0.3)
    axis.legend()
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    figure.savefig(folder / "growth.png", dpi=120)


def large() -> Iterator[Row]:
    """Yield rows of whole sets; nothing where a set or a rival is missing."""
    open_number = KTRR(None, assign_labels="modularity")
    try:
        import evoc

        X, _ = samples(60_000)
        evoc.EVoC().fit_predict(X[:3000].astype(np.float32))  # Numba compiles at the first call
        steps = {"KTRR, number open": lambda: open_number.fit(X), "front door": lambda: SubspaceClustering().fit(X)}
        yield from rows_of("EVoC, MNIST", steps, lambda: evoc.EVoC().fit_predict(X.astype(np.float32)))
    except ImportError:
        print("EVoC is not installed", file=sys.stderr)
    try:
        import faiss

        C = load_covtype(return_X_y=True, dtype=np.float32)[0]
        C = np.ascontiguousarray((C - C.min(axis=0)) / np.maximum(np.ptp(C, axis=0), 1))

        def navigable() -> None:
            index = faiss.IndexHNSWFlat(C.shape[1], 16)
            index.hnsw.efConstruction, index.hnsw.efSearch = 64, 64
            index.add(C)
            index.search(C, 31)

        fit = KTRR(7, assign_labels="modularity")
        yield from rows_of("faiss, HNSW graph and query", {"KTRR, Covtype": lambda: fit.fit(C)}, navigable)
    except ImportError:
        print("faiss is not installed", file=sys.stderr)


def predictions() -> Iterator[Row]:
    """Yield new samples of many methods; few of those that take many steps."""
    for name, model in METHODS.items():
        yield from predict_rows(name, model, 600 if name in ("SSC", "LRR1") else 3000)


def main() -> None:
    """Print what is asked for as it comes, and keep it for the pages."""
    warnings.simplefilter("ignore")
    parts = {
        "table": ("speed", table, HEAD),
        "growth": ("growth", growth, ("method", "samples", "CPU s", "ARI", "clusters")),
        "large": ("speed_large", large, HEAD),
        "predict": ("speed_predict", predictions, HEAD),
    }
    for part in sys.argv[1:] or ("table", "growth"):
        name, rows, head = parts[part]
        found = []
        for row in rows():
            print("| " + " | ".join(row) + " |", flush=True)
            found.append(row)
        if found:
            measured.save(name, head, found, folders=measured.SEARCH)


if __name__ == "__main__":
    if any(os.environ.get(name) != value for name, value in THREADS.items()):  # libraries look only once: start again
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | THREADS)
    main()
