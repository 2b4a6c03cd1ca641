"""How far from the lower bound: kernel against a bare GEMM, K → truncated graph against bare potrf + potri.

    python benchmarks/limit.py                 # n = 2414, 5000, 10000, float64 and float32
    python benchmarks/limit.py 2414 --repeats 5

Everything on one line is measured in the same run, interleaved, best of a few repeats; read the ratios, not the
seconds.
"extra" is the peak of traced allocations from K to graph in units of one n × n array (K itself is overwritten).
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from scipy.linalg import get_lapack_funcs

from subspaces.graphs.affinity import affinity
from subspaces.graphs.rules import GraphRule, build_graph
from subspaces.kernels import as_kernel
from subspaces.representation.ridge import ridge

FEATURES = 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=int, nargs="*", default=[2414, 5000, 10000])
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    print(
        f"{'n':>6} {'dtype':8} {'GEMM':>7} {'kernel':>7} {'ratio':>6} | {'LAPACK':>7} {'column':>7} {'ratio':>6}",
        end="",
    )
    print(f" {'symm.':>7} {'ratio':>6} | {'extra':>6}")
    for n in arguments.sizes:
        for dtype in (np.float64, np.float32):
            print(measure(n, dtype, arguments.repeats), flush=True)


def measure(n: int, dtype: type, repeats: int) -> str:
    X = np.random.default_rng(0).random((n, FEATURES)).astype(dtype)
    kernel = as_kernel("rbf").fit(X)
    K, half = kernel.gram(X), kernel.packed_gram(X)
    work, packed = K.copy(), half.copy()

    def graph(rule: str) -> Callable[[], object]:
        return lambda: affinity(build_graph(ridge(packed, reg=1.0, overwrite=True), GraphRule(rule, 5)).treated)

    def refill() -> None:
        work[:] = K
        packed.half[:] = half.half

    jobs: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "gemm": (lambda: None, lambda: X @ X.T),
        "kernel": (lambda: None, lambda: kernel.packed_gram(X)),
        "lapack": (refill, lambda: bare_inverse(work)),
        "column": (refill, graph("column")),
        "symmetric": (refill, graph("symmetric")),
    }
    best = dict.fromkeys(jobs, np.inf)
    for _ in range(repeats):
        for name, (prepare, job) in jobs.items():
            prepare()
            start = time.perf_counter()
            job()
            best[name] = min(best[name], time.perf_counter() - start)
    refill()
    tracemalloc.start()
    graph("symmetric")()
    extra = tracemalloc.get_traced_memory()[1] / K.nbytes
    tracemalloc.stop()
    floor, lapack = best["gemm"], best["lapack"]
    return (
        f"{n:6d} {np.dtype(dtype).name:8} {floor:7.3f} {best['kernel']:7.3f} {best['kernel'] / floor:6.2f} | "
        f"{lapack:7.3f} {best['column']:7.3f} {best['column'] / lapack:6.2f} {best['symmetric']:7.3f} "
        f"{best['symmetric'] / lapack:6.2f} | {extra:6.2f}"
    )


def bare_inverse(K: np.ndarray) -> None:
    """The lower bound: add λ to the diagonal, factorise, invert; one triangle only."""
    K.flat[:: K.shape[0] + 1] += 1
    potrf, potri = get_lapack_funcs(("potrf", "potri"), (K,))
    potrf(K.T, lower=0, clean=0, overwrite_a=1)
    potri(K.T, lower=0, overwrite_c=1)


if __name__ == "__main__":
    main()
