"""Which graph and which cut: KTRR's choices side by side on real and synthetic data, everything else at its default.

    SUBSPACES_DATA=folder python benchmarks/choices.py      # prints the Markdown table of docs/measurements.md

One run per cell (seed 0), so read differences below 2 points as noise. Data sets that are not at hand are left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits

from subspaces import KTRR, datasets
from subspaces.metrics import accuracy

Loader = Callable[[], tuple[np.ndarray, np.ndarray]]
BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
HOME = {"data_home": BESIDE} if BESIDE.is_dir() else {}
REAL: dict[str, Loader] = {
    "digits": lambda: load_digits(return_X_y=True),
    "Extended Yale B": lambda: datasets.load_yaleb(return_X_y=True, **HOME),
    "COIL20": lambda: datasets.load_coil20(return_X_y=True, **HOME),
    "USPS, 200 a class": lambda: datasets.load_usps(return_X_y=True, per_class=200, random_state=0, **HOME),
    "MNIST, 200 a class": lambda: datasets.load_mnist(
        return_X_y=True, n_images=10_000, per_class=200, random_state=0, **HOME
    ),
    "ORL": lambda: datasets.load_orl(return_X_y=True, **HOME),
}
SYNTHETIC: dict[str, tuple[Loader, dict[str, object]]] = {
    "hard2000": (
        lambda: datasets.make_benchmark("hard2000", random_state=0),
        {"kernel": "quadratic", "reg": 0.001, "n_nonzero": 20},
    ),
    "uos2000": (lambda: datasets.make_benchmark("uos2000", random_state=0), {}),
    "sizes 20 to 800": (
        lambda: datasets.make_subspaces(5, 4, 30, [20, 50, 100, 300, 800], noise=0.02, random_state=0),
        {},
    ),
    "two circles": (lambda: datasets.make_circles_union(random_state=0), {}),
    "three curves": (lambda: datasets.make_three_curves(100, noise=0.01, random_state=0), {"n_nonzero": 10}),
    "three spheres": (lambda: datasets.make_spheres(3, noise=0.01, random_state=0), {}),
}
GRAPHS = ("column", "symmetric")
CUTS = ("kmeans", "modularity")


def main() -> None:
    warnings.simplefilter("ignore")
    print("| data | k-means | spectral | scaling |" + "".join(f" {g} + {c} |" for g in GRAPHS for c in CUTS))
    print("|---" * (4 + len(GRAPHS) * len(CUTS)) + "|")
    for name, load in REAL.items():
        try:
            X, y = load()
        except FileNotFoundError:
            print(f"| {name} | not at hand: set SUBSPACES_DATA |")
            continue
        for scaling in (None, "unit"):
            print(row(name, X, y, scaling, {}), flush=True)
    for name, (load, parameters) in SYNTHETIC.items():
        X, y = load()
        print(row(name, X, y, None, parameters), flush=True)


def row(name: str, X: np.ndarray, y: np.ndarray, scaling: str | None, parameters: dict[str, object]) -> str:
    k = len(np.unique(y))
    cells = []
    if scaling is None:
        spectral = SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=10, random_state=0)
        cells = [KMeans(k, n_init=10, random_state=0).fit_predict(X), spectral.fit_predict(X)]
    shown = [f"{100 * accuracy(y, labels):.1f}" for labels in cells] or ["", ""]
    shown.append(str(scaling))
    for graph in GRAPHS:
        for cut in CUTS:
            model = KTRR(k, scaling=scaling, graph=graph, assign_labels=cut, **parameters)
            shown.append(f"{100 * accuracy(y, model.fit_predict(X)):.1f}")
    return f"| {name} | " + " | ".join(shown) + " |"


if __name__ == "__main__":
    main()
