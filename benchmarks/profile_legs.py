"""Where the time goes: CPU seconds of every stage beside the least that stage can take, at three sizes.

    OMP_NUM_THREADS=1 python benchmarks/profile_legs.py                  # n = 2,000, 10,000 and 100,000
    OMP_NUM_THREADS=1 python benchmarks/profile_legs.py 2000 --repeats 5

Up to 10,000 points the dense route (20 subspaces of dimension 5 in 1,024 dimensions), above the two-scale one (10 in
30, float32). Fit and floors take turns; best of the repeats. The table goes to docs/speed/legs.md when all sizes ran.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy import sparse
from scipy.linalg import get_lapack_funcs
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans

from subspaces import KTRR
from subspaces.datasets import make_subspaces
from subspaces.engine.ridge_routes import DENSE_SIZE

PAGE = Path(__file__).resolve().parents[1] / "docs" / "speed" / "legs.md"
SIZES = [2_000, 10_000, 100_000]
Floors = dict[str, tuple[str, Callable[[], object]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = ["| n | route | stage | CPU s | share | floor | CPU s | factor |", "|---|---|---|---:|---:|---|---:|---:|"]
    print(*lines, sep="\n", flush=True)
    for n in arguments.sizes:
        for cut in ("kmeans", "modularity"):
            found = profile(n, cut, arguments.repeats)
            print(*found, sep="\n", flush=True)
            lines += found
    if arguments.sizes == SIZES:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text("\n".join(lines) + "\n")


def profile(n: int, cut: str, repeats: int) -> list[str]:
    if n <= DENSE_SIZE:
        X, k = make_subspaces(20, 5, 1024, n // 20, noise=0.02, random_state=0)[0], 20
    else:
        X, k = make_subspaces(10, 5, 30, n // 10, noise=0.01, random_state=0)[0].astype(np.float32), 10
    KTRR(k, assign_labels=cut).fit(X[:: n // 500])
    legs: dict[str, float] = {}
    least: dict[str, float] = {}
    for _ in range(repeats):
        model = KTRR(k, assign_labels=cut)
        with mock.patch("subspaces.utils.progress.time.perf_counter", time.process_time):  # the stages in CPU seconds
            total = seconds(lambda model=model: model.fit(X))
        legs = {leg: min(s, legs.get(leg, np.inf)) for leg, s in model.timings_.items()} | {
            "rest of fit": min(total - sum(model.timings_.values()), legs.get("rest of fit", np.inf))
        }
        floors = bare(X, model, k)
        least = {leg: min(seconds(job), least.get(leg, np.inf)) for leg, (_, job) in floors.items()}
    whole, route = sum(legs.values()), f"{model.solver_}, {cut}"
    lines = []
    for leg, spent in legs.items():
        what, floor, factor = "", "", ""
        if leg in least:
            what, floor, factor = floors[leg][0], f"{least[leg]:.3f}", f"{spent / least[leg]:.2f}"
        lines.append(f"| {n} | {route} | {leg} | {spent:.3f} | {spent / whole:.0%} | {what} | {floor} | {factor} |")
    bound = sum(least.values())
    lines.append(f"| {n} | {route} | **whole** | {whole:.3f} | | all floors | {bound:.3f} | {whole / bound:.2f} |")
    return lines


def bare(X: np.ndarray, model: Any, k: int) -> Floors:
    """What each stage cannot do without, as a bare call of the library that does it."""
    C, W = model.coefficients_, model.affinity_matrix_
    floors: Floors = {"graph": ("abs(C) + abs(C).T", lambda: (abs(C) + abs(C).T).tocsr())}
    if model.solver_ == "dense":
        K = model.kernel_.gram(X)
        floors["kernel"] = ("X @ X.T", lambda: X @ X.T)
        floors["coefficients"] = ("potrf + potri", _inverse(K.copy()))
        floors["graph"] = ("one pass over K, abs(C) + abs(C).T", lambda: (K.max(axis=1), (abs(C) + abs(C).T).tocsr()))
    else:
        floors["coefficients"] = ("faiss HNSW, 20 neighbours", lambda: _search(X))
    if model.assign_labels == "kmeans":
        Y = model.embedding_
        if model.solver_ == "dense" and model.n_components_ < k:
            S = sparse.diags_array(W.sum(axis=1) ** -0.5)
            S = (S @ W @ S).tocsr()
            floors["embedding"] = ("eigsh once, tol 1e-3", lambda: eigsh(S, k=k, which="LA", tol=1e-3))
        floors["cut"] = ("one k-means start", lambda: KMeans(k, n_init=1, random_state=0).fit(Y))
    else:
        floors["cut"] = ("one round of Leiden", lambda: _leiden(W))
    return floors


def _inverse(K: np.ndarray) -> Callable[[], None]:
    K.flat[:: len(K) + 1] += 1

    def run() -> None:
        potrf, potri = get_lapack_funcs(("potrf", "potri"), (K,))
        potrf(K.T, lower=0, clean=0, overwrite_a=1)
        potri(K.T, lower=0, overwrite_c=1)

    return run


def _search(X: np.ndarray) -> None:
    import faiss

    index = faiss.IndexHNSWFlat(X.shape[1], 16)
    index.hnsw.efConstruction, index.hnsw.efSearch = 64, 64
    index.add(X)
    index.search(X, 21)


def _leiden(W: Any) -> None:
    import graspologic_native

    arrays = W.indptr.astype(np.int64), W.indices.astype(np.int32), W.data.astype(np.float64)
    graspologic_native.leiden_csr(*arrays, W.shape[0], resolution=1.0, iterations=1, seed=0)


def seconds(job: Callable[[], object]) -> float:
    start = time.process_time()
    job()
    return time.process_time() - start


if __name__ == "__main__":
    main()
