"""Hyperspectral images: SalinasA by many methods in one run, and what large images take. Prints Markdown.

    SUBSPACES_DATA=folder python benchmarks/hyperspectral.py [--runs 3] [--authors] [--map map.png]
    python benchmarks/hyperspectral.py --sizes

As in the literature, the pixels with a known class are clustered, their number of classes is given, and all pixels may
surround others. `--authors` adds EKGCSC, written after its authors' program, with their setting (a minute each).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import PCA
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import minmax_scale, normalize

from subspaces import KTRR, SSC, TRR, cluster_image
from subspaces.applications.cube import Cube, as_cube
from subspaces.datasets import make_cube
from subspaces.metrics import accuracy, adjusted_rand, normalized_mutual_info

FOLDER = Path(os.environ.get("SUBSPACES_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
N_SAMPLE = 1500
"""Pixels that SSC represents; it labels the others."""


def spectral(k: int, seed: int) -> SpectralClustering:
    return SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=10, random_state=seed)


class SampledSSC:
    """SSC on a sample of the pixels, the rest labelled by it."""

    def __init__(self, k: int, seed: int) -> None:
        self.model, self.seed = SSC(k, scaling="unit", random_state=seed), seed

    def fit(self, X: np.ndarray) -> None:
        """Cluster the sample, label all."""
        chosen = np.random.default_rng(self.seed).permutation(len(X))[:N_SAMPLE]
        self.labels_ = self.model.fit(X[chosen]).predict(X)


def pixels(make: Callable[[int, int], object]) -> Callable[[Cube, int, int], np.ndarray]:
    """A clusterer of spectra alone."""

    def run(cube: Cube, k: int, seed: int) -> np.ndarray:
        model = make(k, seed)
        model.fit(cube.values[cube.mask].astype(np.float64))  # type: ignore[attr-defined]
        return model.labels_  # type: ignore[attr-defined]

    return run


def image(make: Callable[[int, int], object], **options: object) -> Callable[[Cube, int, int], np.ndarray]:
    """A clusterer of what `cluster_image` makes of a cube."""
    return lambda cube, k, seed: cluster_image(cube, estimator=make(k, seed), **options).labels[cube.mask]


def ekgcsc(cube: Cube, k: int, seed: int, *, unit: bool = False) -> np.ndarray:
    """EKGCSC with its authors' setting: 4 components in [0, 1], 9 × 9 patches, 30 neighbours, γ 0.2, λ 100, ρ 0.8."""
    rows, columns, bands = cube.shape
    spectra = cube.values.reshape(-1, bands).astype(np.float64)
    components = minmax_scale(PCA(4).fit_transform(normalize(spectra) if unit else spectra)).reshape(rows, columns, 4)
    padded = np.pad(components, ((4, 4), (4, 4), (0, 0)), "reflect")
    X = normalize(np.lib.stride_tricks.sliding_window_view(padded, (9, 9), axis=(0, 1))[cube.mask].reshape(-1, 324))
    n = len(X)
    A = kneighbors_graph(X, 30, include_self=True)
    A = A.multiply(A.T)
    D = sparse.diags_array(np.asarray(A.sum(axis=1)).ravel() ** -0.5)
    squared = np.maximum(2 - 2 * (X @ X.T), 0)
    K = np.exp(-0.2 * squared)
    T = (D @ A @ D).T @ K
    C = np.linalg.solve(T @ K + 100 * np.eye(n), T)
    from subspaces.graphs.postprocessing import dscnet_affinity

    W = dscnet_affinity(C, k, 8, share=0.8, power=18, unit_diagonal=False)
    cut = SpectralClustering(k, affinity="precomputed", assign_labels="discretize", random_state=seed)
    return cut.fit_predict(np.maximum(W, W.T))


METHODS: dict[str, Callable[[Cube, int, int], np.ndarray]] = {
    "k-means, spectra": pixels(lambda k, seed: KMeans(k, n_init=10, random_state=seed)),
    "spectral clustering (10 neighbours), spectra": pixels(spectral),
    f"SSC, unit spectra, {N_SAMPLE} pixels and predict": pixels(SampledSSC),
    "KTRR, spectra": pixels(lambda k, seed: KTRR(k, random_state=seed)),
    "KTRR, unit spectra": pixels(lambda k, seed: KTRR(k, scaling="unit", random_state=seed)),
    "KTRR, unit spectra, η 20": pixels(lambda k, seed: KTRR(k, scaling="unit", n_nonzero=20, random_state=seed)),
    "k-means, weighted patches": image(lambda k, seed: KMeans(k, n_init=10, random_state=seed)),
    "spectral clustering (10 neighbours), weighted patches": image(spectral),
    "TRR, weighted patches, η 20": image(lambda k, seed: TRR(k, n_nonzero=20, random_state=seed)),
    "`cluster_image`, default (KTRR η 20, 7 × 7, 8 components)": image(
        lambda k, seed: KTRR(k, n_nonzero=20, random_state=seed)
    ),
    "same, EGCSC's 9 × 9 and 4 components": image(
        lambda k, seed: KTRR(k, n_nonzero=20, random_state=seed), patch_size=9, n_components=4
    ),
    "same, 9 × 9, 4 components, η 5": image(lambda k, seed: KTRR(k, random_state=seed), patch_size=9, n_components=4),
    "default, exponential kernel": image(
        lambda k, seed: KTRR(k, kernel="exponential", n_nonzero=20, random_state=seed)
    ),
    "default, smoothed over 30 neighbours": image(
        lambda k, seed: KTRR(k, n_nonzero=20, random_state=seed), n_neighbors=30
    ),
    "default, 600 superpixels": image(lambda k, seed: KTRR(k, n_nonzero=20, random_state=seed), n_superpixels=600),
}
AUTHORS: dict[str, Callable[[Cube, int, int], np.ndarray]] = {
    "EKGCSC, authors' setting (published 100.0)": ekgcsc,
    "EKGCSC, authors' setting, unit spectra": lambda cube, k, seed: ekgcsc(cube, k, seed, unit=True),
}


def salinas(runs: int, authors: bool, picture: Path | None) -> None:
    path = FOLDER / "salinas_a.npz"
    if not path.exists():
        print(f"salinas_a: not found in {FOLDER}, left out (set SUBSPACES_DATA)")
        return
    with np.load(path) as archive:
        truth = archive["labels"]
        cube = as_cube(archive["cube"], truth > 0)
    y = truth[cube.mask]
    k = len(np.unique(y))
    print(f"SalinasA: {len(y)} pixels of {truth.shape[0]} × {truth.shape[1]}, {cube.shape[2]} bands, {k} classes\n")
    print("| method | accuracy | NMI | ARI | seconds |\n|---|---:|---:|---:|---:|")
    for name, method in {**METHODS, **(AUTHORS if authors else {})}.items():
        found, seconds = [], []
        for seed in range(1 if name.startswith("EKGCSC") else runs):
            start = time.perf_counter()
            labels = method(cube, k, seed)
            seconds.append(time.perf_counter() - start)
            found.append([accuracy(y, labels), normalized_mutual_info(y, labels), adjusted_rand(y, labels)])
        mean, spread = 100 * np.mean(found, axis=0), 100 * np.std(found, axis=0)
        scores = " | ".join(f"{m:.1f} ± {s:.1f}" for m, s in zip(mean, spread, strict=True))
        print(f"| {name} | {scores} | {np.mean(seconds):.1f} |", flush=True)
    if picture is not None:
        from subspaces.inspection.plots.images import map_png

        picture.write_bytes(map_png(cluster_image(cube, k).labels, "SalinasA"))


CHILD = """
import resource, sys, time
import numpy as np
from subspaces import cluster_image
from subspaces.app.files import read_cube
from subspaces.metrics import accuracy
cube = read_cube(sys.argv[1])
start = time.perf_counter()
found = cluster_image(cube, int(sys.argv[3]))
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
truth = np.load(sys.argv[2])
points = "every pixel" if found.segments is None else f"{len(found.X):,} superpixels"
score = 100 * accuracy(truth.ravel(), found.labels.ravel())
print(f"{points} | {score:.1f} | {seconds:.1f} | {peak / 1e6:.2f}")
"""


def sizes() -> None:
    """Time and peak memory of made images in processes of their own with two threads; the cube stays on disk."""
    print("| image | points | accuracy | seconds | peak GB of the process |\n|---|---|---:|---:|---:|")
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "2")
    with tempfile.TemporaryDirectory() as folder:
        for side, copies, k in ((145, 1, 16), (250, 1, 16), (250, 4, 16)):
            values, truth, _ = make_cube((side, side), 200, k, random_state=0)
            n = side * copies
            cube, labels = Path(folder) / "cube.npy", Path(folder) / "truth.npy"
            stored = np.lib.format.open_memmap(cube, mode="w+", dtype=np.int16, shape=(n, n, 200))
            rng = np.random.default_rng(0)
            for i in range(copies):  # tiles of one scene, mirrored and each with noise of its own
                for j in range(copies):
                    tile = values[:: 1 - 2 * (i % 2), :: 1 - 2 * (j % 2)]
                    noise = rng.normal(scale=10, size=tile.shape).astype(np.float32)
                    stored[i * side : (i + 1) * side, j * side : (j + 1) * side] = 1e4 * tile + noise
            stored.flush()
            row = [
                np.hstack([truth[:: 1 - 2 * (i % 2), :: 1 - 2 * (j % 2)] for j in range(copies)]) for i in range(copies)
            ]
            np.save(labels, np.vstack(row))
            del stored, values
            command = [sys.executable, "-c", CHILD, str(cube), str(labels), str(k)]
            done = subprocess.run(command, env={**os.environ, **threads}, capture_output=True, text=True, check=True)
            print(f"| {n} × {n} × 200 (int16) | {done.stdout.strip()} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--authors", action="store_true")
    parser.add_argument("--map", type=Path)
    parser.add_argument("--sizes", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.sizes:
        sizes()
    else:
        salinas(options.runs, options.authors, options.map)


if __name__ == "__main__":
    main()
