"""Many vectors to clusters, beside EVoC on the same vectors: CPU seconds on one thread, and the adjusted Rand index.

    pip install evoc
    OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/embeddings.py        # MNIST's 60,000 digits, 50 components

All programs take turns in one process, after a run on a few points that compiles what is compiled when first used. EVoC
finds the number of clusters and leaves points out; what it leaves out counts as a cluster of its own, and in the last
column not at all. The table goes to docs/speed/embeddings.md.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

from subspaces import KTRR
from subspaces.datasets import load_mnist

PAGE = Path(__file__).resolve().parents[1] / "docs" / "speed" / "embeddings.md"
BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
TITLE = [
    "# Embeddings, beside EVoC",
    "",
    "Written by `python benchmarks/embeddings.py`; what it means is in [Where the time goes](../speed.md).",
]
Programs = dict[str, Callable[[int], Any]]


def programs() -> Programs:
    from evoc import EVoC

    def ktrr(n_clusters: int | None) -> Callable[[int], Any]:
        settings: dict[str, Any] = {"n_nonzero": 10, "scaling": "unit", "assign_labels": "modularity"}
        return lambda seed: KTRR(n_clusters, **settings, random_state=seed)

    return {
        "EVoC": lambda seed: EVoC(random_state=seed),
        "KTRR, η = 10, 10 clusters given": ktrr(10),
        "KTRR, η = 10, number found": ktrr(None),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--points", type=int, default=60_000)
    arguments = parser.parse_args()
    X, y = load_mnist(return_X_y=True, dtype=np.float32, **({"data_home": BESIDE} if BESIDE.is_dir() else {}))
    Z = PCA(50, svd_solver="covariance_eigh").fit_transform(X / 255).astype(np.float32)
    Z, y = Z[: arguments.points], y[: arguments.points]
    found: dict[str, list[tuple[float, Any]]] = {name: [] for name in programs()}
    for make in programs().values():
        make(0).fit(Z[:2000])
    for seed in range(arguments.repeats):
        for name, make in programs().items():
            start = time.process_time()
            labels = np.asarray(make(seed).fit(Z).labels_)
            found[name].append((time.process_time() - start, labels))
            print(
                f"{seed} {name}: {found[name][-1][0]:.2f} CPU s, ARI {adjusted_rand_score(y, labels):.3f}", flush=True
            )
    table = rows(found, y)
    print(*table, sep="\n")
    if arguments.points == 60_000:
        PAGE.write_text("\n".join([*TITLE, "", *table]) + "\n", encoding="utf-8")


def rows(found: dict[str, list[tuple[float, Any]]], y: Any) -> list[str]:
    lines = ["| program | CPU s, median | least | clusters | left out, % | ARI | of those not left out |"]
    lines.append("|---|---:|---:|---:|---:|---:|---:|")
    for name, runs in found.items():
        seconds, labels = [run[0] for run in runs], [run[1] for run in runs]
        counts = sorted({int(each.max()) + 1 for each in labels})
        left_out = 100 * statistics.mean(float((each < 0).mean()) for each in labels)
        score = statistics.mean(adjusted_rand_score(y, each) for each in labels)
        kept = statistics.mean(adjusted_rand_score(y[each >= 0], each[each >= 0]) for each in labels)
        number = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        timing = f"{statistics.median(seconds):.1f} | {min(seconds):.1f}"
        lines.append(f"| {name} | {timing} | {number} | {left_out:.1f} | {score:.3f} | {kept:.3f} |")
    return lines


if __name__ == "__main__":
    main()
