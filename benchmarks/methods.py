"""Every method with its default parameters on data that need no download: docs/measured/small.json, in a minute.

    OMP_NUM_THREADS=1 python benchmarks/methods.py

The number of clusters is given. Then ``python benchmarks/measured.py`` copies the table into the page. The paper's data
sets, with settings chosen from a grid: ``python -m reproduction``.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris, load_wine

import measured
from subspaces import registry
from subspaces.datasets import make_spheres, make_subspaces
from subspaces.metrics import accuracy


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


def main() -> None:
    """Write the accuracy of every method on every set."""
    sets = {name: (X.astype(np.float64), y) for name, (X, y) in small_sets().items()}
    rows = [["one label for all", *(f"{100 * np.bincount(y).max() / len(y):.1f}" for _, y in sets.values())]]
    for method in ("k-means", *registry.names(*registry.SHALLOW)):
        found = []
        for X, y in sets.values():
            k = len(np.unique(y))
            by_kmeans = KMeans(k, n_init=20, random_state=0)
            model = by_kmeans if method == "k-means" else registry.load(method)(n_clusters=k)
            found.append(f"{100 * accuracy(y, model.fit_predict(X)):.1f}")
        rows.append([method if method == "k-means" else registry.entry_of(method).class_name, *found])
        print(*rows[-1], flush=True)
    measured.save("small", ["accuracy, %", *sets], rows, folders=(*measured.LIBRARY, "datasets", "metrics"))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
