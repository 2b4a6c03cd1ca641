"""Below the floor of one inverse in float64? What single precision saves on the dense route, and what it costs.

    python benchmarks/single.py --save here.npz                                        # labels on this processor
    OPENBLAS_CORETYPE=Haswell python benchmarks/single.py --against here.npz --write   # on another; the page

Costs: ways to the η largest coefficients in CPU seconds, in turn, in one process. Labels: the fit with U inverted in
float32 and everything else (the kernel, truncation, graph, cut) in float64, beside the plain fit.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl
from scipy.linalg import get_lapack_funcs

from limit import FEATURES
from subspaces import KTRR, datasets
from subspaces.metrics import accuracy
from subspaces.representation import ridge as module
from subspaces.representation.inverse import Inverse
from subspaces.utils.packed import Packed

PAGE = Path(__file__).parents[1] / "docs" / "speed" / "single.md"
SETS = ("mnist", "usps", "coil100", "yaleb")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[5000, 10_000], help="of the costs")
    parser.add_argument("--points", type=int, default=3000, help="of each data set, at most")
    parser.add_argument("--reg", type=float, nargs="*", default=[1e-3, 1e-2, 0.1, 1.0, 10.0])
    parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS)
    parser.add_argument("--save", type=Path, help="keep the labels")
    parser.add_argument("--against", type=Path, help="labels of another processor")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    other = {} if arguments.against is None else dict(np.load(arguments.against))
    found: dict[str, Any] = {"played": np.array(played())}
    head = [
        "data",
        "n",
        "λ",
        "condition",
        "columns of C with the same neighbours, %",
        "labels that differ from float64's",
    ]
    rows = [[*head, f"float64 on {other['played']}", f"float32 on {other['played']}"] if other else head]
    for name in arguments.sets:
        X, k = points_of(name, arguments.points)
        for reg in arguments.reg:
            rows.append(compared(name, X, k, reg, found, other))
            print(*rows[-1], flush=True)
    if arguments.save is not None:
        np.savez(arguments.save, **found)
    costs = [["n", *ways(50)]] if arguments.sizes else []
    for n in arguments.sizes:
        seconds = cost(n)
        floor = seconds["potrf + potri, float64"]
        costs.append([f"{n:,}", *(f"{s:.2f} s = {s / floor:.2f} ×" for s in seconds.values())])
        print(*costs[-1], flush=True)
    if arguments.write:
        text = f"Written by `python benchmarks/single.py`, with OpenBLAS as on a {played()};"
        PAGE.write_text("\n\n".join(["# Single precision on the dense route", *pages(text, rows, costs)]) + "\n")


def pages(text: str, rows: list[list[str]], costs: list[list[str]]) -> list[str]:
    """Paragraphs of the page."""
    said = f"{text} what it means is in [Where the time goes](../speed.md)."
    wide = "Points whose label differs once the clusters are matched, U inverted in float32 and all else in float64:"
    cheap = f"CPU seconds of each way, {FEATURES} features where data are asked for, ratio to the first:"
    return [said, *([cheap, table(costs)] if costs else []), wide, table(rows)]


def played() -> str:
    """The CPU type that OpenBLAS plays."""
    libraries = [library for library in threadpoolctl.threadpool_info() if "architecture" in library]
    return str(libraries[0]["architecture"]) if libraries else "an unknown type"


def points_of(name: str, n: int) -> tuple[np.ndarray, int]:
    """Some points of a data set, the same every time, and the number of their classes."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    rows = np.sort(np.random.default_rng(0).permutation(len(X))[:n])
    return np.ascontiguousarray(X[rows], dtype=np.float64), len(np.unique(y[rows]))


def compared(name: str, X: np.ndarray, k: int, reg: float, found: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """A row: the fit with both inverses, and beside the same fit on another processor."""
    fits = {}
    for dtype, invert in (("float64", PLAIN), ("float32", invert_in_single)):
        module.inverse = invert
        try:
            fits[dtype] = KTRR(k, reg=reg, solver="dense").fit(X)
        finally:
            module.inverse = PLAIN
        found[f"{name} {reg} {dtype}"] = fits[dtype].labels_
    plain, single = fits["float64"], fits["float32"]
    same = np.mean(np.all(neighbours(plain) == neighbours(single), axis=1))
    row = [
        name,
        f"{len(X):,}",
        f"{reg:g}",
        f"{plain.condition_:.0e}",
        f"{100 * same:.2f}",
        differ(plain.labels_, single.labels_),
    ]
    if other:
        row += [differ(fits[dtype].labels_, other[f"{name} {reg} {dtype}"]) for dtype in fits]
    return row


def neighbours(model: KTRR) -> np.ndarray:
    """Points that represent each point, −1 where there are fewer."""
    C = model.coefficients_.tocsc()
    counts = np.diff(C.indptr)
    found = np.full((C.shape[1], counts.max()), -1)
    found[np.repeat(np.arange(C.shape[1]), counts), np.arange(C.nnz) - np.repeat(C.indptr[:-1], counts)] = C.indices
    return np.pad(found, ((0, 0), (0, max(0, 5 - found.shape[1]))), constant_values=-1)


def differ(labels: np.ndarray, others: np.ndarray) -> str:
    return str(round(len(labels) * (1 - accuracy(labels, others))))


def invert_in_single(K: Packed, reg: float, affine: bool, overwrite: bool) -> Inverse:
    """U in float32, its numbers in float64."""
    found = PLAIN(Packed(K.half.astype(np.float32), K.n, K.fill), reg, affine, overwrite)
    return found._replace(U=Packed(found.U.half.astype(np.float64), K.n, K.fill))


PLAIN = module.inverse


def ways(n: int) -> dict[str, Callable[[], object]]:
    """Name → what is timed: bare inverses, the inverse factor with a draft of U, and whole fits."""
    rng = np.random.default_rng(0)
    X = (rng.random((20, FEATURES))[rng.integers(20, size=n)] + 0.5 * rng.random((n, FEATURES))).astype(np.float64)
    Z = rng.random((n, 64))
    K = Z @ Z.T / 64
    K.flat[:: n + 1] += 1
    single = K.astype(np.float32)

    def inverse(A: np.ndarray) -> None:
        potrf, potri = get_lapack_funcs(("potrf", "potri"), (A,))
        A = A.copy()
        potrf(A.T, lower=0, clean=0, overwrite_a=1)
        potri(A.T, lower=0, overwrite_c=1)

    def factor() -> None:
        potrf, trtri = get_lapack_funcs(("potrf", "trtri"), (K,))
        A = K.copy()
        potrf(A.T, lower=0, clean=0, overwrite_a=1)
        trtri(A.T, lower=0, overwrite_c=1)
        draft = A.astype(np.float32)
        get_lapack_funcs(("lauum",), (draft,))[0](draft.T, lower=0, overwrite_c=1)

    return {
        "potrf + potri, float64": lambda: inverse(K),
        "potrf + potri, float32": lambda: inverse(single),
        "potrf + trtri in float64, draft of U in float32": factor,
        "KTRR, data to labels, float64": lambda: KTRR(20).fit(X),
    }


def cost(n: int, repeats: int = 2) -> dict[str, float]:
    """Least CPU seconds of each way, in turn."""
    jobs = ways(n)
    best = dict.fromkeys(jobs, np.inf)
    for _ in range(repeats):
        for name, job in jobs.items():
            start = time.process_time()
            job()
            best[name] = min(best[name], time.process_time() - start)
    return best


def table(rows: list[list[str]]) -> str:
    """Rows as Markdown, the first of them the head."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


if __name__ == "__main__":
    main()
