"""KTRR with nothing set beside what a labelled grid, the paper's tuning and other tools reach.

    SUBSPACES_DATA=folder python benchmarks/automatic.py                        # every data set; hours on two cores
    SUBSPACES_DATA=folder python benchmarks/automatic.py --datasets orl digits  # some of them
    python benchmarks/automatic.py --count                                      # the number of clusters of 50 unions
    python benchmarks/automatic.py --labelled                                   # best of a wide grid, with labels
    python benchmarks/automatic.py --cost                                       # search over plain fit at n = 2000

Prints Markdown. The number of clusters is given to every method but HDBSCAN, which has its own; "L found" is what KTRR
finds when it is not. "same grid, labelled" is the best accuracy any trial of the search had: what knowing the labels
would add. Every row is kept in benchmarks/results/automatic.jsonl and not computed again; --fresh forgets them.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans, SpectralClustering
from sklearn.datasets import load_digits

from subspaces import KTRR, datasets
from subspaces.metrics import accuracy, normalized_mutual_info
from subspaces.selection import choose
from subspaces.selection.candidates import Grid
from subspaces.selection.cuts import cut
from subspaces.selection.graphs import candidates_of, search_cache

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
HOME = {"data_home": BESIDE} if BESIDE.is_dir() else {}
STORE = Path(__file__).resolve().parent / "results" / "automatic.jsonl"
AUTO = dict.fromkeys(("kernel", "reg", "n_nonzero", "scaling", "partition"), "auto")
Points = tuple[np.ndarray, np.ndarray]
SETS: dict[str, tuple[Callable[[int], Points], int, str]] = {  # loader by draw, draws, the paper's KTRR AC / NMI
    "yaleb": (lambda draw: datasets.load_yaleb(return_X_y=True, **HOME), 1, "84.8 / 89.5"),
    "coil20": (lambda draw: datasets.load_coil20(return_X_y=True, **HOME), 1, "90.3 / 94.7"),
    "usps": (lambda d: datasets.load_usps(return_X_y=True, per_class=200, random_state=d, **HOME), 10, "81.4 / 78.0"),
    "mnist": (
        lambda d: datasets.load_mnist(return_X_y=True, n_images=10_000, per_class=200, random_state=d, **HOME),
        10,
        "64.0 / 66.8",
    ),
    "orl": (lambda draw: datasets.load_orl(return_X_y=True, **HOME), 1, ""),
    "digits": (lambda draw: load_digits(return_X_y=True), 1, ""),
    "coil100": (lambda draw: datasets.load_coil100(return_X_y=True, **HOME), 1, "about 74 (figure)"),
}


def automatic(X: np.ndarray, y: np.ndarray, k: int) -> dict[str, Any]:
    seed = int(np.random.RandomState(0).randint(2**31 - 1))  # as KTRR(k, **AUTO) draws it: the same search, run once
    selection = choose(X, n_clusters=k, keep_partitions=True, seed=seed)
    model = KTRR(k, **selection.parameters).fit(X)
    found = [accuracy(y[selection.searched], labels) for labels in selection.partitions]
    best = int(np.argmax(found))
    return {
        **scores(y, model.labels_),
        "reason": selection.reason,
        "grid": 100 * found[best],
        "grid_nmi": 100 * normalized_mutual_info(y[selection.searched], selection.partitions[best]),
        "grid_setting": str(selection.trials[best]),
    }


def counted(X: np.ndarray, y: np.ndarray, k: int) -> dict[str, Any]:
    model = KTRR("auto", **AUTO).fit(X)
    count = model.selection_.n_clusters
    return {**scores(y, model.labels_), "found": count.estimate, "low": count.low, "high": count.high}


WIDE = Grid(
    scalings=(None, "unit"),
    kernels=("linear", "rbf", "exponential", "quadratic", "cubic"),
    regs=(0.1, 1.0, 10.0),
    n_nonzeros=(3, 4, 5, 6, 10),
    cuts=("kmeans", "modularity"),
)


def labelled(X: np.ndarray, y: np.ndarray, k: int) -> dict[str, Any]:
    """The best accuracy of a wide grid over both graphs, chosen with the labels: what tuning could reach."""
    best: dict[str, Any] = {"ac": 0.0}
    for graph_rule in ("symmetric", "column"):
        cache = search_cache()
        for candidate in candidates_of(X, WIDE, cache, graph=graph_rule):
            for method in WIDE.cuts:
                found = scores(y, cut(candidate, X, method, k, cache)[0])
                if found["ac"] > best["ac"]:
                    best = {**found, "setting": f"{candidate.setting}, graph {graph_rule}, {method}"}
    return best


def umap(X: np.ndarray, y: np.ndarray, k: int) -> dict[str, Any]:
    from umap import UMAP

    return scores(y, KMeans(k, n_init=10, random_state=0).fit_predict(UMAP(random_state=0).fit_transform(X)))


METHODS: dict[str, Callable[[np.ndarray, np.ndarray, int], dict[str, Any]]] = {
    "automatic KTRR": automatic,
    "automatic KTRR, L found": counted,
    "k-means": lambda X, y, k: scores(y, KMeans(k, n_init=10, random_state=0).fit_predict(X)),
    "spectral clustering": lambda X, y, k: scores(y, SpectralClustering(k, random_state=0).fit_predict(X)),
    "UMAP + k-means": umap,
    "HDBSCAN": lambda X, y, k: scores(y, HDBSCAN(copy=True).fit_predict(X) + 1),
}


def scores(y: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    return {"ac": 100 * accuracy(y, labels), "nmi": 100 * normalized_mutual_info(y, labels)}


def cell(key: dict[str, Any], compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A stored row, or the row computed now and stored."""
    if STORE.exists():
        for line in STORE.read_text().splitlines():
            row = json.loads(line)
            if all(row.get(name) == value for name, value in key.items()):
                return row
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row = {**key, **compute()}
    row["cpu_seconds"] = time.process_time() - start
    STORE.parent.mkdir(exist_ok=True)
    with STORE.open("a") as file:
        file.write(json.dumps(row) + "\n")
    return row


def table(names: list[str], methods: list[str], draws: int | None) -> None:
    print("| data | n, L | " + " | ".join(methods) + " | same grid, labelled | the paper's KTRR | found L (range) |")
    print("|---" * (len(methods) + 5) + "|")
    for name in names:
        load, n_draws, paper = SETS[name]
        rows: dict[str, list[dict[str, Any]]] = {method: [] for method in methods}
        for draw in range(min(n_draws, draws or n_draws)):
            try:
                X, y = load(draw)
            except FileNotFoundError:
                print(f"| {name} | not at hand: set SUBSPACES_DATA |")
                break
            X, k = np.asarray(X, dtype=np.float64), len(np.unique(y))
            for method in methods:
                key = {"data": name, "draw": draw, "method": method}
                rows[method].append(cell(key, lambda method=method, X=X, y=y, k=k: METHODS[method](X, y, k)))
        else:
            cells = [f"{mean(rows[m], 'ac')} / {mean(rows[m], 'nmi')}" for m in methods]
            auto, found = rows.get("automatic KTRR", []), rows.get("automatic KTRR, L found", [])
            grid = f"{mean(auto, 'grid')} / {mean(auto, 'grid_nmi')}" if auto else ""
            numbers = ", ".join(f"{row['found']} ({row['low']} to {row['high']})" for row in found)
            print(f"| {name} | {len(X)}, {k} | " + " | ".join(cells) + f" | {grid} | {paper} | {numbers} |", flush=True)


def mean(rows: list[dict[str, Any]], name: str) -> str:
    values = [row[name] for row in rows]
    spread = f" ± {np.std(values):.1f}" if len(values) > 1 else ""
    return f"{np.mean(values):.1f}{spread}"


def labelled_table(names: list[str], draws: int | None) -> None:
    print("| data | best of the wide grid, labelled: AC / NMI | settings |\n|---|---|---|")
    for name in names:
        load, n_draws, _ = SETS[name]
        rows = []
        for draw in range(min(n_draws, draws or n_draws)):
            X, y = load(draw)
            X = np.asarray(X, dtype=np.float64)
            key = {"data": name, "draw": draw, "method": "labelled"}
            rows.append(cell(key, lambda X=X, y=y: labelled(X, y, len(np.unique(y)))))
        settings = "; ".join(row["setting"] for row in rows)
        print(f"| {name} | {mean(rows, 'ac')} / {mean(rows, 'nmi')} | {settings} |", flush=True)


def union(i: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Union number i: 2 to 40 subspaces of dimension 2 to 5, every third with sizes from 20 to 200, noise 0 to 0.3.

    The noise is the length of the noise vector of a point; points on the subspaces have length 1.
    """
    rng = np.random.default_rng(1000 + i)
    n_subspaces, dimension = int(rng.integers(2, 41)), int(rng.integers(2, 6))
    ambient, noise = int(rng.integers(max(12, 2 * dimension), 50)), rng.uniform(0, 0.3)
    sizes = rng.integers(25, 50, n_subspaces) if i % 3 else (20 * 10 ** rng.uniform(0, 1, n_subspaces)).astype(int)
    if sizes.sum() > 1600:
        sizes = np.maximum(15, sizes * 1600 // sizes.sum())
    X, y = datasets.make_subspaces(
        n_subspaces, dimension, ambient, sizes.tolist(), noise=noise / np.sqrt(ambient), random_state=i
    )
    return X, y, noise


def count_table(n_unions: int) -> None:
    hits, equal, unequal = [], [], []
    for i in range(n_unions):
        X, y, noise = union(i)
        key = {"data": "union", "draw": i, "method": "count"}
        row = cell(key, lambda X=X, y=y: counted(X, y, 0))
        true = len(np.unique(y))
        hit = abs(row["found"] - true) <= max(0.5, 0.1 * true)
        hits.append(hit)
        (equal if i % 3 else unequal).append(hit)
        print(f"union {i}: n {len(y)}, noise {noise:.2f}, {true} subspaces, found {row['found']} "
              f"({row['low']} to {row['high']}), AC {row['ac']:.1f}", flush=True)  # fmt: skip
    print(f"within 10 %: {100 * np.mean(hits):.0f} % of {len(hits)}; equal sizes {100 * np.mean(equal):.0f} %, "
          f"sizes 20 to 200 {100 * np.mean(unequal):.0f} %")  # fmt: skip


def cost() -> None:
    X, _ = datasets.load_mnist(return_X_y=True, n_images=10_000, per_class=200, random_state=0, **HOME)
    X = np.asarray(X, dtype=np.float64)
    KTRR(10).fit(X)
    for name, clock in (("wall", time.perf_counter), ("CPU", time.process_time)):
        plain = min(timed(clock, lambda: KTRR(10).fit(X)) for _ in range(3))
        search = timed(clock, lambda: KTRR(10, **AUTO).fit(X))
        whole = timed(clock, lambda: KTRR("auto", **AUTO).fit(X))
        print(f"{name}: plain fit {plain:.2f} s, automatic {search:.1f} s ({search / plain:.1f} ×), "
              f"number of clusters too {whole:.1f} s ({whole / plain:.1f} ×)")  # fmt: skip


def timed(clock: Callable[[], float], call: Callable[[], Any]) -> float:
    start = clock()
    call()
    return clock() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--draws", type=int, help="of the digit sets; 10 if not given")
    parser.add_argument("--count", action="store_true", help="number of clusters on synthetic unions")
    parser.add_argument("--unions", type=int, default=50)
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--labelled", action="store_true", help="best of a wide grid, chosen with the labels")
    parser.add_argument("--fresh", action="store_true", help="forget what is stored")
    arguments = parser.parse_args()
    if arguments.fresh:
        STORE.unlink(missing_ok=True)
    if arguments.count:
        count_table(arguments.unions)
    elif arguments.cost:
        cost()
    elif arguments.labelled:
        labelled_table(arguments.datasets, arguments.draws)
    else:
        table(arguments.datasets, arguments.methods, arguments.draws)


if __name__ == "__main__":
    main()
