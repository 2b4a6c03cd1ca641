"""Photographs: pixels against the vectors of a network, ours beside k-means and plain neighbours on the same vectors.

    SUBSPACES_DATA=folder OMP_NUM_THREADS=1 python benchmarks/photographs.py        # or names of some sets

Results are kept in ``build/photographs.json``, so that it can be interrupted.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import graspologic_native
import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import normalize

import measured
from subspaces import KTRR, SubspaceClustering
from subspaces.app.cli._features import _CLEARER, _agreement
from subspaces.app.features import vectors_of
from subspaces.metrics import accuracy, normalized_mutual_info

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("SUBSPACES_DATA") or ROOT.parent / "shared" / "data")
KEPT = ROOT / "build" / "photographs.json"
Points = tuple[np.ndarray, np.ndarray]


def stored(name: str) -> Points:
    """Images of a file from 0 to 1, and their classes."""
    with np.load(FOLDER / f"{name}.npz") as file:
        X, y = file["X"].astype(np.float32), file["y"].ravel()
        X *= file.get("scale", 1)
        shape = tuple(file["image_shape"])
    images = X.reshape(len(X), *shape)
    return images / np.float32(255 if images.max() > 1 else 1), y


def digits() -> Points:
    """Scikit-learn's handwritten digits, 8 x 8."""
    X, y = load_digits(return_X_y=True)
    return (X.reshape(-1, 8, 8) / 16).astype(np.float32), y


def shifted(move: int, n: int = 100, seed: int = 0) -> Points:
    """Five garments in outline (shirt, trousers, dress, shoe, bag) of varying size and cloth, moved inside the frame.

    32 x 32 grey values; `move` is how far a garment may lie from the middle, in pixels, to each side.
    """
    rng = np.random.default_rng(seed)
    v, u = np.mgrid[-1:1:32j, -1:1:32j]
    images, y = [], []
    for kind in range(5):
        for _ in range(n):
            du, dv = rng.uniform(-move, move, 2) / 16
            size, wide = rng.uniform(0.5, 0.7), rng.uniform(0.8, 1.2)
            a, b = (u - du) / (size * wide), (v - dv) / size
            cloth = 1 + 0.25 * np.sin(rng.uniform(2, 14) * (a * np.cos(t := rng.uniform(0, 3)) + b * np.sin(t)))
            images.append(np.clip(rng.uniform(0.45, 0.8) * garment(kind, a, b) * cloth, 0, 1))
            y.append(kind)
    noise = rng.normal(0, 0.02, (len(y), 32, 32))
    return np.clip(np.array(images) + noise, 0, 1).astype(np.float32), np.array(y)


def garment(kind: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where a garment is, in coordinates of its own."""
    inside = np.abs(b) < 1
    if kind == 0:  # shirt: a body and two sleeves
        return inside & ((np.abs(a) < 0.5) | ((b < -0.3) & (np.abs(a) < 1.0 - 0.3 * (b + 1))))
    if kind == 1:  # trousers: two legs
        return inside & (np.abs(a) < 0.5) & ((np.abs(a) > 0.12) | (b < -0.6))
    if kind == 2:  # dress: wider below
        return inside & (np.abs(a) < 0.3 + 0.25 * (b + 1))
    if kind == 3:  # shoe: a sole, a shaft behind
        return (np.abs(a) < 1) & (b > 0.1) & (b < 0.7) & ((a < -0.2) | (b > 0.3)) | (
            (a > -1) & (a < -0.4) & (np.abs(b) < 0.7)
        )
    handle = (np.abs(np.hypot(a, b + 0.2) - 0.55) < 0.1) & (b < -0.2)
    return ((np.abs(a) < 0.9) & (b > -0.2) & (b < 0.8)) | handle  # bag


SETS: dict[str, Callable[[], Points]] = {
    "COIL20": lambda: stored("coil20_32x32"),
    "COIL100": lambda: stored("coil100_32x32"),
    "ORL": lambda: stored("orl_32x32"),
    "Extended Yale B": lambda: stored("yaleb_32x32"),
    "digits": digits,
    "garments, centred": lambda: shifted(0),
    "garments, moved": lambda: shifted(6),
}


def leiden(X: np.ndarray, k: int | None, seed: int = 0) -> np.ndarray:
    """Communities of the graph of 5 nearest neighbours."""
    graph = kneighbors_graph(X, 5, mode="connectivity")
    graph = graph.maximum(graph.T).tocoo()
    edges = [(str(i), str(j), 1.0) for i, j in zip(graph.row, graph.col, strict=True) if i < j]
    found = graspologic_native.leiden(edges, seed=seed)[1]
    return np.array([found[str(i)] for i in range(len(X))])


def spectral(X: np.ndarray, k: int | None) -> np.ndarray:
    graph = kneighbors_graph(X, 5, mode="connectivity", include_self=False)
    model = SpectralClustering(k, affinity="precomputed", assign_labels="cluster_qr", random_state=0)
    return model.fit_predict(0.5 * (graph + graph.T))


def kmeans(X: np.ndarray, k: int | None) -> np.ndarray:
    return KMeans(k, n_init=10, random_state=0).fit_predict(X)


def ktrr(X: np.ndarray, k: int | None) -> np.ndarray:
    return KTRR(k, assign_labels="modularity").fit_predict(X)


def front_door(X: np.ndarray, k: int | None) -> tuple[np.ndarray, dict[str, float]]:
    model = SubspaceClustering(k).fit(X)
    return model.labels_, {"agreement": _agreement(model.selection_)}


METHODS: dict[str, tuple[Callable[[np.ndarray, int | None], Any], bool, bool]] = {
    # name: function, whether it takes the number, whether it finds it
    "k-means": (kmeans, True, False),
    "5 neighbours, spectral": (spectral, True, False),
    "5 neighbours, Leiden": (leiden, False, True),
    "KTRR, modularity": (ktrr, True, True),
    "SubspaceClustering": (front_door, True, True),
}


CHOOSES = "SubspaceClustering"
"""Gets the vectors as they are and chooses their scaling; the others get unit rows."""


def rows() -> Iterator[tuple[str, str, str, bool]]:
    for name in SETS:
        for features in ("pixels", "efficientnet"):
            for method, (_, takes, finds) in METHODS.items():
                for known in (True, False):
                    if takes if known else finds:
                        yield name, features, method, known


def scores(only: list[str]) -> dict[str, Any]:
    """Everything that was measured, now or before."""
    found: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    KEPT.parent.mkdir(exist_ok=True)
    points: dict[tuple[str, str], Any] = {}
    for name, features, method, known in rows():
        key = f"{name}|{features}|{method}|{known}"
        if key in found or (only and name not in only):
            continue
        if (name, features) not in points:
            images, y = SETS[name]()
            points = {(name, features): (vectors_of(images, features), y)}
        X, y = points[name, features]
        X = X if method == CHOOSES else normalize(X)
        start = time.process_time()
        answer = METHODS[method][0](X, len(np.unique(y)) if known else None)
        labels, more = answer if isinstance(answer, tuple) else (answer, {})
        scores = {
            "AC": accuracy(y, labels),
            "NMI": normalized_mutual_info(y, labels),
            "ARI": adjusted_rand_score(y, labels),
            "found": len(np.unique(labels)),
            "seconds": time.process_time() - start,
            "n": len(y),
            "k": len(np.unique(y)),
        }
        found[key] = {**scores, **more}
        print(key, {name: round(value, 3) for name, value in found[key].items()}, flush=True)
        KEPT.write_text(json.dumps(found, indent=1))
    return found


def table(found: dict[str, Any]) -> str:
    """A row for each set, vectors and method; AC / NMI / ARI with the number given and not given."""
    lines = [
        "| images | compared by | method | number given | number found by itself | found |",
        "|---|---|---|---|---|---|",
    ]
    for name in SETS:
        for features, what in (("pixels", "pixels"), ("efficientnet", "network")):
            for method in METHODS:
                cells = [found.get(f"{name}|{features}|{method}|{known}") for known in (True, False)]
                if not any(cells):
                    continue
                first = next(cell for cell in cells if cell)
                shown = [
                    " / ".join(f"{100 * cell[score]:.1f}" for score in ("AC", "NMI", "ARI")) if cell else "–"
                    for cell in cells
                ]
                number = f"{cells[1]['found']} of {first['k']}" if cells[1] else "–"
                lines.append(f"| {name} ({first['n']}) | {what} | {method} | {shown[0]} | {shown[1]} | {number} |")
    return "\n".join(lines)


def rule(found: dict[str, Any]) -> str:
    """Whether the agreement of the settings, which needs no labels, takes the better of pixels and network."""
    lines = ["| images | AC, pixels / network | agreement | taken | |", "|---|---|---|---|---|"]
    for name in SETS:
        a, b = (found.get(f"{name}|{features}|SubspaceClustering|False") for features in ("pixels", "efficientnet"))
        if a and b:
            by_pixels = a["agreement"] > b["agreement"] + _CLEARER
            scores = f"{100 * a['AC']:.0f} / {100 * b['AC']:.0f} | {a['agreement']:.2f} / {b['agreement']:.2f}"
            right = "right" if by_pixels == (a["AC"] > b["AC"]) else "wrong"
            lines.append(f"| {name} | {scores} | {'pixels' if by_pixels else 'network'} | {right} |")
    return "\n".join(lines)


def main() -> None:
    found = scores(sys.argv[1:])
    folders = (*measured.SEARCH, "app/features")
    with measured.kept("photographs", folders=folders):
        print(table(found))
    with measured.kept("photographs_rule", folders=folders):
        print(rule(found))


if __name__ == "__main__":
    main()
