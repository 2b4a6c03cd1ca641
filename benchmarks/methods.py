"""Every method on the paper's data: best of a small labelled grid and its defaults, beside the paper's row.

    SUBSPACES_DATA=folder python benchmarks/methods.py                 # everything, resumes where it stopped
    python benchmarks/methods.py --data yaleb10 --methods ktrr ssc     # a part
    python benchmarks/methods.py --table                               # docs/measured/methods.json of what has been run
    python benchmarks/methods.py --small                               # docs/measured/small.json: a minute, no download

The grid is chosen by accuracy, as the paper did, which favours methods with larger grids: the result of the defaults
stands beside it. Each finished cell is a line of ``results/methods.jsonl``; seconds are CPU time of one fit: run it
with ``OMP_NUM_THREADS=1``. Then ``python benchmarks/measured.py`` copies the tables into the pages.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris, load_wine

import measured
from subspaces import registry
from subspaces.datasets import make_spheres, make_subspaces
from subspaces.metrics import clustering_scores

FOLDER = Path(os.environ.get("SUBSPACES_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
RESULTS = Path("results/methods.jsonl")
DATA = ("yaleb10", "coil20", "usps", "mnist", "yaleb")


def combinations(**choices: list[Any]) -> list[dict[str, Any]]:
    return [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]


GRID: dict[str, list[dict[str, Any]]] = {
    "ktrr": combinations(scaling=["unit"], reg=[0.1, 1, 10, 100], n_nonzero=[3, 4, 5, 6, 10]),
    "trr": combinations(scaling=["unit"], reg=[0.01, 0.1, 1, 10], n_nonzero=[4, 6]),
    "lsr1": combinations(reg=[1e-3, 1e-2, 0.1, 1]),
    "lsr2": combinations(reg=[1e-3, 1e-2, 0.1, 1]),
    "ssc": combinations(error_weight=[5, 20, 50]),
    "kssc": combinations(scaling=["unit"], error_weight=[2, 5, 10, 20, 50]),
    "ensc": combinations(scaling=["unit", None], error_weight=[10, 50]),
    "sscomp": combinations(scaling=["unit", None], n_nonzero=[3, 5, 10]),
    "tsc": combinations(n_nonzero=[5, 10, 20]),
    "lrr1": combinations(error_weight=[0.01, 0.1, 1], graph=["row_space", "column"]),
    "lrr2": combinations(error_weight=[0.1, 1, 10], graph=["row_space", "column"]),
    "latlrr": combinations(error_weight=[0.01, 0.1, 1]),
    "klrr": [
        *combinations(scaling=["unit"], error=["fro"], error_weight=[0.1, 1, 10, 100]),
        *combinations(scaling=["unit"], error=["l21"], error_weight=[0.1, 1]),
    ],
    "smce": combinations(scaling=["unit"], reg=[1, 10, 100], n_neighbors=[10, 20]),
    "lsa": combinations(n_neighbors=[4, 6, 10, 20], subspace_dim=[2, 3, 5]),
    "sc": combinations(scaling=["unit"], bandwidth=[0.14, 0.28, 0.57, 1.13]),
}
PAPER = {  # AC of Tables 3 to 6, then t2 of Table 7 in seconds
    "ktrr": {"yaleb": (84.8, 47.6), "coil20": (90.3, 11.7), "usps": (81.4, 27.8), "mnist": (64.0, 34.0)},
    "trr": {"yaleb": (67.0, 48.8), "coil20": (84.1, 12.8), "usps": (68.0, 22.7), "mnist": (54.1, 32.4)},
    "lsr1": {"yaleb": (55.6, 91.2), "coil20": (67.9, 14.5), "usps": (61.8, 16.3), "mnist": (50.9, 17.5)},
    "lsr2": {"yaleb": (51.1, 88.4), "coil20": (67.2, 14.4), "usps": (62.5, 14.8), "mnist": (46.8, 19.1)},
    "klrr": {"yaleb": (52.3, 71.3), "coil20": (68.7, 25.6), "usps": (70.7, 39.9), "mnist": (61.3, 44.6)},
    "kssc": {"yaleb": (58.4, 5543), "coil20": (79.4, 1472), "usps": (75.2, 2763), "mnist": (57.1, 5753)},
    "latlrr": {"yaleb": (51.4, 806), "coil20": (68.0, 584), "usps": (71.0, 59.0), "mnist": (14.5, 270)},
    "lrr1": {"yaleb": (50.3, 287), "coil20": (67.9, 437), "usps": (70.2, 51.9), "mnist": (18.1, 167)},
    "lrr2": {"yaleb": (49.8, 311), "coil20": (66.6, 460), "usps": (70.9, 58.9), "mnist": (18.5, 187)},
    "ssc": {"yaleb": (52.9, 2313), "coil20": (69.4, 127), "usps": (26.9, 98.8), "mnist": (22.0, 153)},
    "smce": {"yaleb": (48.9, 45.2), "coil20": (76.5, 10.1), "usps": (73.8, 76.5), "mnist": (61.7, 25.5)},
    "lsa": {"yaleb": (34.0, 229), "coil20": (72.9, 66.0), "usps": (68.5, 120), "mnist": (63.0, 155)},
    "sc": {"yaleb": (19.7, 124), "coil20": (69.2, 7.6), "usps": (70.8, 11.7), "mnist": (55.1, 14.7)},
}


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    file = {"yaleb": "yaleb_32x32", "yaleb10": "yaleb_32x32", "coil20": "coil20_32x32"}
    archive = np.load(FOLDER / f"{file.get(name, {'usps': 'usps_9298', 'mnist': 'mnist_train'}.get(name))}.npz")
    X, y = archive["X"], archive["y"]
    if name == "yaleb10":
        chosen = np.isin(y, np.unique(y)[:10])
        X, y = X[chosen], y[chosen]
    elif name in ("usps", "mnist"):
        X, y = (X[:10_000], y[:10_000]) if name == "mnist" else (X, y)
        rng = np.random.default_rng(0)
        rows = np.concatenate([rng.choice(np.flatnonzero(y == c), 200, replace=False) for c in np.unique(y)])
        X, y = X[rows], y[rows]
    return X.astype(np.float64), y


def run(data: str, X: np.ndarray, y: np.ndarray, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
    k = len(np.unique(y))
    if method == "k-means":
        model: Any = KMeans(k, n_init=20, random_state=0)
    else:
        model = registry.load(method)(n_clusters=k, **parameters)
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        labels = model.fit(X).labels_
    seconds = time.process_time() - start
    scores = {name: round(100 * value, 2) for name, value in clustering_scores(y, labels).items()}
    return {
        "data": data,
        "method": method,
        "parameters": parameters,
        **{name: scores[name] for name in ("accuracy", "nmi", "ari", "f_score")},
        "seconds": round(seconds, 3),
        "timings": {stage: round(value, 3) for stage, value in getattr(model, "timings_", {}).items()},
        "warnings": sorted({str(w.message)[:120] for w in caught}),
    }


def finished() -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    return {key(row["data"], row["method"], row["parameters"]): row for row in rows}


def key(data: str, method: str, parameters: dict[str, Any]) -> str:
    return json.dumps([data, method, parameters], sort_keys=True)


COLUMNS = (
    "data",
    "method",
    "best AC / NMI / ARI / F",
    "paper AC",
    "setting",
    "defaults AC / NMI",
    "s",
    "× KTRR",
    "paper ×",
)


def table(rows: list[dict[str, Any]]) -> list[list[str]]:
    found = []
    for data in DATA:
        of_data = [row for row in rows if row["data"] == data]
        ktrr = [row["seconds"] for row in of_data if row["method"] == "ktrr"]
        for method in ["k-means", *GRID]:
            of_method = [row for row in of_data if row["method"] == method]
            if not of_method:
                continue
            best = max(of_method, key=lambda row: row["accuracy"])
            default = next((row for row in of_method if not row["parameters"]), None)
            setting = ", ".join(f"{name} {value}" for name, value in best["parameters"].items()) or "defaults"
            ratio = f"{best['seconds'] / np.median(ktrr):.1f}" if ktrr else ""
            scores = " / ".join(f"{best[name]:.1f}" for name in ("accuracy", "nmi", "ari", "f_score"))
            plain = f"{default['accuracy']:.1f} / {default['nmi']:.1f}" if default else ""
            paper = PAPER.get(method, {}).get(data)
            paper_ac = f"{paper[0]:.1f}" if paper else ""
            paper_ratio = f"{paper[1] / PAPER['ktrr'][data][1]:.1f}" if paper else ""
            found.append([data, method, scores, paper_ac, setting, plain, f"{best['seconds']:.2f}", ratio, paper_ratio])
    return found


def small_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    digits = load_digits(return_X_y=True)
    return {
        "iris": load_iris(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "digits": (digits[0][::3], digits[1][::3]),
        "unions": make_subspaces(5, dimension=4, ambient=30, n_samples=60, noise=0.02, random_state=0),
        "crossing": make_subspaces(3, dimension=4, ambient=6, n_samples=100, random_state=0),
        "spheres": make_spheres(2, dimension=2, n_samples=150, random_state=0),
    }


def small() -> None:
    """Write the accuracy of every method with its defaults on sets that need no download."""
    sets = small_sets()
    constant = ["one label for all", *(f"{100 * np.bincount(y).max() / len(y):.1f}" for _, y in sets.values())]
    rows = [constant]
    for method in ("k-means", *registry.names(*registry.SHALLOW)):
        name = method if method == "k-means" else registry.entry_of(method).class_name
        rows.append([name, *(f"{run(data, X, y, method, {})['accuracy']:.1f}" for data, (X, y) in sets.items())])
        print(*rows[-1], flush=True)
    measured.save("small", ["accuracy, %", *sets], rows, folders=(*measured.LIBRARY, "datasets", "metrics"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", default=list(DATA))
    parser.add_argument("--methods", nargs="*", default=["k-means", *GRID])
    parser.add_argument("--defaults", action="store_true", help="leave the grid out")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    if arguments.small:
        return small()
    done = finished()
    if arguments.table:
        measured.save("methods", COLUMNS, table(list(done.values())))
        return
    RESULTS.parent.mkdir(exist_ok=True)
    for data in arguments.data:
        X, y = load(data)
        for method in arguments.methods:
            for parameters in [{}, *([] if arguments.defaults else GRID.get(method, []))]:
                if key(data, method, parameters) in done:
                    continue
                row = run(data, X, y, method, parameters)
                with RESULTS.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                shown = [row[name] for name in ("accuracy", "nmi", "seconds", "warnings")]
                print(data, method, parameters, *shown, flush=True)


if __name__ == "__main__":
    main()
