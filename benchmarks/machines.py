"""The same labels on every machine: CPU types that OpenBLAS can play, one thread and two, shuffled rows.

    SUBSPACES_DATA=folder python benchmarks/machines.py                    # all types against Haswell, one thread
    SUBSPACES_DATA=folder python benchmarks/machines.py --types Nehalem    # some of them
    SUBSPACES_DATA=folder python benchmarks/machines.py --shuffles 10      # rows in another order, against the first
    python benchmarks/machines.py --datasets digits                        # what scikit-learn carries

Prints Markdown: share of points with the label (after matching) they have under the first type, for each data set and
way to cut. A type that this processor cannot run is listed as such. Rows are kept in benchmarks/results/machines.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from automatic import AUTO, SETS, Points
from subspaces import KTRR
from subspaces.metrics import accuracy

TYPES = ("Haswell", "Zen", "Sandybridge", "Nehalem", "Prescott", "SkylakeX", "Cooperlake", "Sapphirerapids")
BEFORE_AVX = ("Nehalem", "Prescott")  # NumPy's own loops leave the newer instructions out as well there
STORE = Path(__file__).resolve().parent / "results" / "machines"
DATASETS = ("digits", "coil20", "yaleb", "orl", "usps", "mnist")
WAYS: dict[str, Callable[[int], Any]] = {
    "plain": lambda k: KTRR(k),
    "modularity": lambda k: KTRR(k, assign_labels="modularity"),
    "automatic": lambda k: KTRR(k, **AUTO),
    "two-scale": lambda k: KTRR(k, solver="two_scale"),
}


def labels_of(name: str, way: str, order: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Labels and truth; of shuffled rows in the order of the unshuffled ones."""
    X, y = load(name)
    rows = np.arange(len(X)) if order is None else order
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = WAYS[way](len(np.unique(y))).fit(X[rows]).labels_
    labels = np.empty_like(found)
    labels[rows] = found
    return labels, y


def load(name: str) -> Points:
    return SETS[name][0](0)


def environment(cpu: str, threads: int) -> dict[str, str]:
    n = str(threads)
    out = {**os.environ, "OPENBLAS_CORETYPE": cpu, "OPENBLAS_NUM_THREADS": n, "OMP_NUM_THREADS": n}
    if cpu in BEFORE_AVX:
        out["NPY_DISABLE_CPU_FEATURES"] = "X86_V3"
    return out


def runs_here(cpu: str) -> bool:
    """Whether a matrix product under this type ends, and not by an illegal instruction."""
    test = "import numpy as np; a = np.ones((300, 300)); a @ a"
    return subprocess.run([sys.executable, "-c", test], env=environment(cpu, 1), capture_output=True).returncode == 0


def run(cpu: str, threads: int, datasets: list[str]) -> dict[str, list[int]] | None:
    """Labels under a CPU type, from a process of its own or an earlier run; None where it cannot be played."""
    if not runs_here(cpu):
        return None
    STORE.mkdir(parents=True, exist_ok=True)
    path = STORE / f"{cpu}-{threads}.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    missing = [f"{name}/{way}" for name in datasets for way in WAYS if f"{name}/{way}" not in known]
    if missing:
        command = [sys.executable, __file__, "--labels", *missing]
        done = subprocess.run(command, env=environment(cpu, threads), capture_output=True, text=True, check=True)
        known.update(json.loads(done.stdout))
        path.write_text(json.dumps(known))
    return known


def same(labels: list[int], first: list[int]) -> str:
    return f"{100 * accuracy(np.array(first), np.array(labels)):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=list(SETS))
    parser.add_argument("--types", nargs="+", default=list(TYPES))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--shuffles", type=int, default=0)
    parser.add_argument("--labels", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.labels:
        found = {case: labels_of(*case.split("/"))[0].tolist() for case in asked.labels}
        print(json.dumps(found))
    elif asked.shuffles:
        shuffled(asked.datasets, asked.shuffles)
    else:
        compared(asked.types, asked.threads, asked.datasets)


def compared(types: list[str], threads: list[int], datasets: list[str]) -> None:
    cases = [f"{name}/{way}" for name in datasets for way in WAYS]
    first = run(types[0], threads[0], datasets)
    assert first is not None, f"{types[0]} cannot be played here"
    print(f"| CPU type, threads | {' | '.join(cases)} |\n|{'---|' * (len(cases) + 1)}")
    truth = {name: load(name)[1] for name in datasets}
    scores = [f"{100 * accuracy(truth[case.split('/')[0]], np.array(first[case])):.1f}" for case in cases]
    print(f"| accuracy of {types[0]}, {threads[0]} | {' | '.join(scores)} |", flush=True)
    for cpu in types:
        for n in threads:
            found = run(cpu, n, datasets)
            row = ["cannot be run here"] if found is None else [same(found[case], first[case]) for case in cases]
            print(f"| {cpu}, {n} | {' | '.join(row)} |", flush=True)


def shuffled(datasets: list[str], times: int) -> None:
    print(f"| data | way | accuracy | smallest adjusted Rand index of {times} shuffles |\n|---|---|---|---|")
    for name in datasets:
        for way in WAYS:
            first, y = labels_of(name, way)
            rng = np.random.default_rng(0)
            found = [adjusted_rand_score(first, labels_of(name, way, rng.permutation(len(y)))[0]) for _ in range(times)]
            print(f"| {name} | {way} | {100 * accuracy(y, first):.1f} | {min(found):.4f} |", flush=True)


if __name__ == "__main__":
    main()
