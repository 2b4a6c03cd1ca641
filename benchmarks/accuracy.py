"""The foundation's figures on real data: KTRR beside a constant label, k-means and plain spectral clustering.

    SUBSPACES_DATA=folder python benchmarks/accuracy.py [--runs 10]

Mean ± standard deviation over `--runs` seeds of every cut; data sets that are not in the folder are left out with a
word.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits

from subspaces import KTRR, TRR
from subspaces.metrics import clustering_scores

FOLDER = Path(os.environ.get("SUBSPACES_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
METHODS = {  # data set → what is run on it, by name
    "yaleb_32x32": {
        "KTRR Gaussian reg 0.1 η 5": lambda k, seed: KTRR(k, reg=0.1, n_nonzero=5, random_state=seed),
        "same, unit rows": lambda k, seed: KTRR(k, reg=0.1, n_nonzero=5, scaling="unit", random_state=seed),
        "same, printed graph": lambda k, seed: KTRR(k, reg=0.1, n_nonzero=5, graph="column", random_state=seed),
        "TRR reg 0.1 η 6": lambda k, seed: TRR(k, reg=0.1, n_nonzero=6, graph="column", random_state=seed),
        "KTRR quadratic reg 0.1 η 5": lambda k, seed: KTRR(
            k, kernel="quadratic", reg=0.1, n_nonzero=5, graph="column", random_state=seed
        ),
    },
    "coil20_32x32": {
        "KTRR Gaussian unit reg 10 η 4": lambda k, seed: KTRR(
            k, scaling="unit", reg=10, n_nonzero=4, n_init=50, random_state=seed
        ),
        "same, printed graph": lambda k, seed: KTRR(
            k, scaling="unit", reg=10, n_nonzero=4, graph="column", n_init=50, random_state=seed
        ),
        "same, modularity": lambda k, seed: KTRR(
            k, scaling="unit", reg=10, n_nonzero=4, assign_labels="modularity", random_state=seed
        ),
    },
    "digits": {
        "KTRR defaults": lambda k, seed: KTRR(k, random_state=seed),
        "KTRR unit reg 1 η 10, modularity": lambda k, seed: KTRR(
            k, scaling="unit", n_nonzero=10, assign_labels="modularity", random_state=seed
        ),
    },
}


def load(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    if name == "digits":
        return load_digits(return_X_y=True)
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        print(f"{name}: not found in {FOLDER}, left out (set SUBSPACES_DATA)")
        return None
    with np.load(path) as archive:
        return archive["X"].astype(np.float64), archive["y"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    for name, methods in METHODS.items():
        data = load(name)
        if data is None:
            continue
        X, y = data
        k = len(np.unique(y))
        print(f"\n{name}: {X.shape[0]} points, {X.shape[1]} features, {k} classes; {runs} runs")
        print(f"{'':34} {'AC':>13} {'NMI (max)':>13} {'ARI':>13} {'F':>13} {'seconds':>8}")
        everything = {
            "constant label": lambda k, seed: None,
            "k-means": lambda k, seed: KMeans(k, n_init=10, random_state=seed),
            "spectral clustering, 10 neighbours": lambda k, seed: SpectralClustering(
                k, affinity="nearest_neighbors", n_neighbors=10, random_state=seed
            ),
            **methods,
        }
        for method, make in everything.items():
            print(row(method, make, X, y, k, runs), flush=True)


def row(method: str, make, X: np.ndarray, y: np.ndarray, k: int, runs: int) -> str:
    found, seconds = [], []
    for seed in range(runs):
        model = make(k, seed)
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn warns that neighbour graphs fall apart
            labels = np.zeros(len(y), dtype=int) if model is None else model.fit(X).labels_
        seconds.append(time.perf_counter() - start)
        scores = clustering_scores(y, labels)
        found.append([100 * scores[s] for s in ("accuracy", "nmi", "ari", "f_score")])
    mean, spread = np.mean(found, axis=0), np.std(found, axis=0)
    cells = " ".join(f"{m:6.1f} ± {s:4.1f}" for m, s in zip(mean, spread, strict=True))
    return f"{method:34} {cells} {np.mean(seconds):8.2f}"


if __name__ == "__main__":
    main()
