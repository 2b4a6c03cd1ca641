"""Many points: Covtype and MNIST whole, and how near the large routes come to the dense one.

    python benchmarks/scale.py covtype --seeds 5     # EKTRR, the seven rivals, the whole graph, a bare HNSW search
    python benchmarks/scale.py mnist --seeds 3
    python benchmarks/scale.py fidelity              # recall, coefficient error, label agreement against dense

Every run is a process of its own, so that its peak memory is its own; each finished run is a line of
``results/scale.jsonl`` and is not repeated. Tables print the mean ± sd over the seeds.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "scale.jsonl"

LARGE = ("ektrr", "sssc", "slsr", "slrr", "kasp", "nystrom", "sec", "akk", "lsc", "uspec", "ktrr")
COVTYPE: dict[str, dict[str, Any]] = {
    "constant": {},
    "kmeans": {"n_init": 10},
    "hnsw": {},
    **{method: {"scaling": "minmax"} for method in LARGE},
}
MNIST: dict[str, dict[str, Any]] = {  # on 50 principal components, or on pixels where it says so
    "kmeans-pixels": {"n_init": 10},
    "kmeans": {"n_init": 10},
    "minibatch": {},
    "lsc": {},
    "uspec": {},
    "ktrr": {"assign_labels": "modularity"},
    "ktrr-10": {"assign_labels": "modularity", "n_nonzero": 10},
    "ktrr-kmeans": {},
    "neighbours": {"assign_labels": "modularity", "n_nonzero": 5},
    "neighbours-10": {"assign_labels": "modularity", "n_nonzero": 10},
}


def load(name: str) -> tuple[np.ndarray, np.ndarray, int]:
    from subspaces.datasets import load_covtype, load_mnist

    if name == "covtype":
        X, y = load_covtype(return_X_y=True, dtype=np.float32)
        return X, y, 7
    X, y = load_mnist(return_X_y=True, dtype=np.float32)
    X /= 255
    return X, y, 10


def reduced(X: np.ndarray) -> np.ndarray:
    """MNIST's pixels to 50 principal components; its time counts for every method that uses it."""
    from sklearn.decomposition import PCA

    return PCA(50, svd_solver="covariance_eigh").fit_transform(X).astype(np.float32)


def cluster(method: str, params: dict[str, Any], X: np.ndarray, k: int, seed: int) -> Any:
    from sklearn.cluster import KMeans, MiniBatchKMeans

    from subspaces import registry

    name = method.split("-")[0]
    if X.shape[1] == 784 and not method.endswith("-pixels"):
        X = reduced(X)
    if name == "constant":
        return np.zeros(len(X), dtype=int)
    if name == "hnsw":
        return _hnsw(X)
    if name == "kmeans":
        return KMeans(k, random_state=seed, **params).fit_predict(_minmax(X) if X.shape[1] == 54 else X)
    if name == "minibatch":
        return MiniBatchKMeans(k, random_state=seed, n_init=10).fit_predict(X)
    if name == "neighbours":
        return _plain_graph(X, k, seed, params["n_nonzero"])
    model = registry.load(name)(n_clusters=k, random_state=seed, **params).fit(X)
    return model.labels_, {key: round(value, 2) for key, value in model.timings_.items()}


def _minmax(X: np.ndarray) -> np.ndarray:
    from subspaces.kernels.scaling import apply_scaling, fit_scaling

    return apply_scaling(X, fit_scaling(X, "minmax"))


def _hnsw(X: np.ndarray) -> np.ndarray:
    """The yardstick: build and query a navigable graph, 30 neighbours of every point, nothing else."""
    import faiss

    X = _minmax(X)
    index = faiss.IndexHNSWFlat(X.shape[1], 16)
    index.hnsw.efConstruction, index.hnsw.efSearch = 64, 64
    index.add(X)
    index.search(X, 31)
    return np.zeros(len(X), dtype=int)


def _plain_graph(X: np.ndarray, k: int, seed: int, n_neighbors: int) -> np.ndarray:
    """The same journey on a plain neighbour graph: cells, nearest points, equal weights, modularity."""
    from scipy import sparse

    from subspaces.graphs.affinity import affinity
    from subspaces.spectral.partition import cut_by_modularity
    from subspaces.utils.cells import build_cells, search

    cells = build_cells(X, seed=seed)
    points = X[cells.order]
    norms = np.einsum("ij,ij->i", points, points)

    def scores(rows: slice, around: np.ndarray, dtype: Any) -> tuple[np.ndarray, float]:
        values = 2 * points[rows] @ points[around].T - norms[around]
        values[np.arange(rows.start, rows.stop)[:, None] == around] = -np.inf
        return values, 0.0

    found = cells.order[search(cells, n_neighbors, scores)]
    columns = np.repeat(cells.order, n_neighbors)
    C = sparse.csc_array((np.ones(found.size, dtype=np.float32), (found.ravel(), columns)), shape=(len(X), len(X)))
    return cut_by_modularity(affinity(C), k, seed=seed)


def one(data: str, method: str, params: dict[str, Any], seed: int) -> dict[str, Any]:
    """A single run: scores, seconds, peak memory."""
    from subspaces.metrics import clustering_scores

    X, y, k = load(data)
    X = np.ascontiguousarray(X)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    found = cluster(method, params, X, k, seed)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    labels, legs = found if isinstance(found, tuple) else (found, {})
    scores = {key: 100 * value for key, value in clustering_scores(y, labels).items()}
    return {"wall": wall, "cpu": cpu, "peak_mb": peak / 1024, "data_mb": before / 1024, "legs": legs, **scores}


def run(data: str, method: str, params: dict[str, Any], seed: int) -> dict[str, Any]:
    """A single run in a process of its own, or what an earlier one left."""
    key = {"data": data, "method": method, "params": params, "seed": seed}
    RESULTS.parent.mkdir(exist_ok=True)
    if RESULTS.exists():
        for line in RESULTS.read_text().splitlines():
            row = json.loads(line)
            if row["key"] == key:
                return row["result"]
    command = [sys.executable, __file__, "one", "--key", json.dumps(key)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{data} {method} {seed}: failed\n{done.stderr[-800:]}", file=sys.stderr)
        return {}
    result = json.loads(done.stdout.splitlines()[-1])
    with RESULTS.open("a") as file:
        file.write(json.dumps({"key": key, "result": result}) + "\n")
    return result


def table(data: str, methods: dict[str, dict[str, Any]], seeds: int) -> None:
    print("| method | AC | NMI | ARI | wall s | CPU s | peak MB (data MB) |\n|---|---|---|---|---|---|---|")
    rows: dict[str, list[dict[str, Any]]] = {method: [] for method in methods}
    for seed in range(seeds):  # interleaved: what else the machine does hits all alike
        for method, params in methods.items():
            if seed == 0 or method not in ("constant", "hnsw"):
                rows[method].append(run(data, method, params, seed))
    for method, found in rows.items():
        found = [row for row in found if row]
        if found:
            cells = [
                f"{np.mean([row[key] for row in found]):.1f} ± {np.std([row[key] for row in found]):.1f}"
                for key in ("accuracy", "nmi", "ari", "wall", "cpu")
            ]
            memory = f"{max(row['peak_mb'] for row in found):.0f} ({found[0]['data_mb']:.0f})"
            print(f"| {method} | {' | '.join(cells)} | {memory} |", flush=True)


def fidelity() -> None:
    from scipy import sparse
    from sklearn.datasets import load_digits
    from sklearn.metrics import adjusted_rand_score

    from subspaces.graphs.affinity import affinity
    from subspaces.graphs.rules import truncate_symmetric
    from subspaces.kernels import as_kernel
    from subspaces.representation import two_scale as two
    from subspaces.representation.coefficients import from_dense, from_sparse
    from subspaces.representation.ridge import ridge
    from subspaces.spectral.partition import cut_by_modularity

    covtype, _, _ = load("covtype")
    rng = np.random.default_rng(0)
    mnist = reduced(load("mnist")[0])
    sets = {
        "digits": load_digits().data.astype(np.float32) / 16,
        "Covtype, 5000": _minmax(covtype)[rng.choice(len(covtype), 5000, replace=False)],
        "MNIST (PCA 50), 5000": mnist[rng.choice(len(mnist), 5000, replace=False)],
    }
    print("| data | reg | landmarks | candidates | recall@5 | recall@10 | median error | ARI of labels |")
    print("|---|---|---|---|---|---|---|---|")
    for name, X in sets.items():
        for reg in (1.0, 10.0):
            kernel = as_kernel("rbf").fit(X)
            D = ridge(kernel.packed_gram(X.astype(np.float64)), reg=reg).columns(0, len(X))
            best = np.argsort(-np.abs(D), axis=1)[:, :10]
            dense = cut_by_modularity(affinity(truncate_symmetric(from_dense(D.T), 5, keep=False).symmetric), 10)
            for r, s in ((64, 20), (128, 20), (256, 20), (512, 50)):
                C = two.two_scale(X, kernel=kernel, reg=reg, n_landmarks=r, n_candidates=s).matrix.T.toarray()
                mine = np.argsort(-np.abs(C), axis=1)[:, :10]
                recall = [
                    np.mean([len(set(a[:e]) & set(b[:e])) / e for a, b in zip(mine, best, strict=True)])
                    for e in (5, 10)
                ]
                error = np.median(np.abs(C - D)[C != 0]) / np.median(np.abs(D).max(axis=1))
                W = affinity(truncate_symmetric(from_sparse(sparse.csc_array(C.T)), 5, keep=False).symmetric)
                agreement = adjusted_rand_score(dense, cut_by_modularity(W, 10))
                cells = (*recall, error, agreement)
                print(f"| {name} | {reg:g} | {r} | {s} | " + " | ".join(f"{x:.3f}" for x in cells) + " |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["covtype", "mnist", "fidelity", "one"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", nargs="*")
    parser.add_argument("--key")
    arguments = parser.parse_args()
    if arguments.what == "one":
        print(json.dumps(one(**json.loads(arguments.key))))
    elif arguments.what in ("covtype", "mnist"):
        methods = COVTYPE if arguments.what == "covtype" else MNIST
        chosen = arguments.methods or list(methods)
        table(arguments.what, {name: methods[name] for name in chosen}, arguments.seeds)
    else:
        fidelity()
