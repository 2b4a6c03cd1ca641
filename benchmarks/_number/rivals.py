"""Other ways to find the number of clusters, on the same sets."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_score
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import StandardScaler

from _automatic.sets import Set
from _number.fit import Row, within
from subspaces.selection.candidates import scalings_tried
from subspaces.spectral.embedding import spectral_embedding
from subspaces.spectral.partition import cut_by_modularity

MOST_POINTS, MOST_COMPONENTS, N_REFERENCES = 1000, 50, 3


def points_of(data: Set) -> np.ndarray:
    """Standardised where columns differ in unit, else as they are; at most 50 components of 1,000 points."""
    X = data.X
    if len(X) > MOST_POINTS:
        X = X[np.sort(np.random.default_rng(0).choice(len(X), MOST_POINTS, replace=False))]
    if "standard" in scalings_tried(data.X)[0]:
        X = StandardScaler().fit_transform(X)
    return PCA(min(MOST_COMPONENTS, *X.shape), random_state=0).fit_transform(X)


def numbers_for(n: int) -> list[int]:
    return [k for k in [*range(2, 21), 25, 30, 35, 40, 50, 60, 80, 100] if k <= n // 4]


def graph_of(X: np.ndarray, n_neighbors: int) -> sparse.csr_array:
    A = kneighbors_graph(X, min(n_neighbors, len(X) - 1))
    return sparse.csr_array(A.maximum(A.T))


def eigengap(X: np.ndarray) -> int:
    values = spectral_embedding(graph_of(X, 10), min(61, len(X) // 2)).eigenvalues
    return int(np.diff(values).argmax()) + 1


def hdbscan(X: np.ndarray) -> int:
    return max(1, int(HDBSCAN(min_cluster_size=min(10, len(X) // 4)).fit(X).labels_.max()) + 1)


def leiden(X: np.ndarray) -> int:
    return int(cut_by_modularity(graph_of(X, 15)).max()) + 1


def by_kmeans(X: np.ndarray) -> dict[str, int]:
    """Largest silhouette; Tibshirani's gap statistic, the first k within a deviation of the next."""
    rng, numbers = np.random.default_rng(0), numbers_for(len(X))
    low, high = X.min(axis=0), X.max(axis=0)
    boxes = [low + rng.random(X.shape) * (high - low) for _ in range(N_REFERENCES)]

    def spread(points: np.ndarray, k: int) -> tuple[float, np.ndarray]:
        model = KMeans(k, n_init=1, random_state=0).fit(points)
        return float(np.log(max(model.inertia_, 1e-300))), model.labels_

    scores, gaps, errors = [], [], []
    for k in (1, *numbers):
        own, labels = spread(X, k)
        others = [spread(box, k)[0] for box in boxes]
        gaps.append(np.mean(others) - own)
        errors.append(np.std(others) * np.sqrt(1 + 1 / N_REFERENCES))
        scores.append(silhouette_score(X, labels) if k > 1 else -1.0)
    every = (1, *numbers)
    first = [k for i, k in enumerate(every[:-1]) if gaps[i] >= gaps[i + 1] - errors[i + 1]]
    return {"silhouette, k-means": every[int(np.argmax(scores))], "gap statistic": first[0] if first else every[-1]}


def found_by(data: Set, store: Path) -> dict[str, int]:
    file = store / f"{data.name.replace('/', '__')}.json"
    if not file.exists():
        X = points_of(data)
        found = {"eigengap": eigengap(X), "HDBSCAN": hdbscan(X), "Leiden, modularity": leiden(X)}
        file.write_text(json.dumps(found | by_kmeans(X)))
    return json.loads(file.read_text())


def print_table(data: list[Set], rows: list[Row], store: Path) -> None:
    """Share of the sets whose number each way finds, by kind; ours left out."""
    by_name = {one.name: one for one in data}
    kinds = ["images, spectra, genes", "table", "binary", "plane", "motion", "made"]
    others = {row["name"]: found_by(by_name[row["name"]], store) for row in rows}
    names = ["**SubspaceClustering, left out**", *next(iter(others.values()))]
    print("\n| within 10 %, within 30 % | " + " | ".join(kinds) + " | all |\n" + "|---" * (len(kinds) + 2) + "|")
    for name in names:
        cells = []
        for kind in (*kinds, None):
            part = [row for row in rows if row["kind"] == kind or (kind is None and row["kind"] in kinds)]
            hits = [[within(row, s, others[row["name"]].get(name)) for s in (0.1, 0.3)] for row in part]
            cells.append(", ".join(f"{share:.0%}" for share in np.mean(hits, axis=0)))
        print(f"| {name} | " + " | ".join(cells) + " |")
