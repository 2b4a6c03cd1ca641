"""Texts and other sparse data: docstrings by many methods, and what 200,000 sparse rows take. Prints Markdown.

    python benchmarks/texts.py [--site FOLDER]       docstrings of the packages installed in FOLDER, by module
    python benchmarks/texts.py --words               the words of each cluster, found without any number
    python benchmarks/texts.py --rows 200000         a planted mixture of topics, each method in a process of its own

Docstrings are read, never imported. UMAP is there if it is installed; Leiden is the one this package uses, on a plain
graph of 15 neighbours.
"""

from __future__ import annotations

import argparse
import ast
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import sklearn
from scipy import sparse
from sklearn.cluster import KMeans, MiniBatchKMeans, SpectralClustering
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from subspaces import SubspaceClustering
from subspaces.app.features import vectors_of
from subspaces.app.features.documents import cluster_words, is_installed
from subspaces.metrics import accuracy, adjusted_rand, normalized_mutual_info
from subspaces.spectral.partition import cut_by_modularity

MODULES = (
    *(
        "scipy.stats",
        "scipy.signal",
        "scipy.optimize",
        "scipy.interpolate",
        "scipy.linalg",
        "scipy.spatial",
        "scipy.io",
    ),
    *("sympy.polys", "sympy.physics", "sympy.combinatorics", "sympy.geometry", "sympy.ntheory", "networkx.algorithms"),
    *("torch.nn", "torch.distributed", "torch.onnx", "sklearn.linear_model", "sklearn.metrics", "sklearn.ensemble"),
    *("matplotlib.axes", "pandas.io", "numpy.polynomial"),
)
MOST, FEWEST_WORDS, SKIPPED = 100, 20, ("tests", "testing", "_vendor", "externals")


def docstrings(site: Path, module: str) -> list[str]:
    """Docstrings of public functions and classes of a module, each once."""
    root = site.joinpath(*module.split("."))
    files = sorted(root.rglob("*.py")) if root.is_dir() else [root.with_suffix(".py")]
    found: dict[str, None] = {}
    for file in files:
        if not file.is_file() or any(part in SKIPPED or part.startswith("test_") for part in file.parts):
            continue
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                text = ast.get_docstring(node) or ""
                if len(text.split()) >= FEWEST_WORDS:
                    found[text] = None
    return list(found)


def corpus(site: Path) -> tuple[list[str], np.ndarray]:
    texts, names = [], []
    for module in MODULES:
        own = docstrings(site, module)
        chosen = np.random.default_rng(0).permutation(len(own))[:MOST]
        texts += [own[i] for i in chosen]
        names += [module] * len(chosen)
    return texts, np.unique(names, return_inverse=True)[1]


def first_line(text: str) -> str:
    return " ".join(text.strip().split("\n\n")[0].split())


def neighbours(X: np.ndarray) -> sparse.csr_array:
    W = sparse.csr_array(NearestNeighbors(n_neighbors=15, algorithm="brute").fit(X).kneighbors_graph())
    return sparse.csr_array(W.maximum(W.T))


def umap_kmeans(X: np.ndarray, k: int) -> np.ndarray:
    import umap

    Y = umap.UMAP(n_components=5, n_neighbors=15, min_dist=0.0, metric="cosine", random_state=0).fit_transform(X)
    return KMeans(k, n_init=10, random_state=0).fit_predict(Y)


def methods(k: int) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    found: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "k-means, number given": lambda X: KMeans(k, n_init=10, random_state=0).fit_predict(X),
        "spectral clustering, number given": lambda X: SpectralClustering(
            k, affinity="nearest_neighbors", n_neighbors=15, random_state=0
        ).fit_predict(X),
        "Leiden on 15 neighbours, number given": lambda X: cut_by_modularity(neighbours(X), k),
        "UMAP and k-means, number given": lambda X: umap_kmeans(X, k),
        "**SubspaceClustering**, number given": lambda X: SubspaceClustering(k).fit_predict(X),
        "Leiden on 15 neighbours": lambda X: cut_by_modularity(neighbours(X)),
        "**SubspaceClustering**": lambda X: SubspaceClustering().fit_predict(X),
    }
    if find_spec("umap") is None:
        del found["UMAP and k-means, number given"]
    return found


def compare(title: str, X: np.ndarray, y: np.ndarray, only: str | None = None) -> None:
    print(f"\n{title}\n\n| method | clusters | AC | NMI | ARI | CPU s |\n|---|---|---|---|---|---|", flush=True)
    for name, run in methods(int(y.max()) + 1).items():
        if only is not None and only not in name:
            continue
        start = time.process_time()
        labels = run(X)
        seconds = time.process_time() - start
        scores = [100 * score(y, labels) for score in (accuracy, normalized_mutual_info, adjusted_rand)]
        row = " | ".join(f"{score:.1f}" for score in scores)
        print(f"| {name} | {len(np.unique(labels))} | {row} | {seconds:.1f} |", flush=True)


def show_words(texts: list[str], y: np.ndarray) -> None:
    names = sorted(MODULES)
    labels = SubspaceClustering(features="tfidf").fit_predict(texts)
    print("\n| cluster | texts | most are of | its words |\n|---|---|---|---|")
    sizes = np.bincount(labels)
    words = cluster_words(texts, labels, 7)
    for c in np.argsort(-sizes, kind="stable"):
        counts = np.bincount(y[labels == c], minlength=len(names))
        share = f"{names[counts.argmax()]} ({100 * counts.max() / sizes[c]:.0f} %)"
        print(f"| {c} | {sizes[c]} | {share} | {', '.join(words[c])} |")


# ---------------------------------------------------------------- many sparse rows


def planted(n: int, m: int = 20_000, k: int = 20, share: float = 0.25) -> tuple[sparse.csr_array, np.ndarray]:
    """Counts of words; a quarter of them of the topic's own 400 words, the rest of all, both by Zipf's law."""
    rng = np.random.default_rng(0)
    y = rng.choice(k, n, p=rng.dirichlet(np.full(k, 5.0)))
    own = np.array([rng.choice(m, 400, replace=False) for _ in range(k)])
    rows = np.repeat(np.arange(n), rng.poisson(80, n))
    ours = rng.random(len(rows)) < share
    zipf = {size: 1 / np.arange(1, size + 1) / np.sum(1 / np.arange(1, size + 1)) for size in (400, m)}
    columns = rng.permutation(m)[rng.choice(m, len(rows), p=zipf[m])]
    columns[ours] = own[y[rows[ours]], rng.choice(400, int(ours.sum()), p=zipf[400])]
    places = rows.astype(np.int32), columns.astype(np.int32)
    return sparse.coo_array((np.ones(len(rows)), places), shape=(n, m)).tocsr(), y


def reduced(X: sparse.csr_array) -> np.ndarray:
    return normalize(TruncatedSVD(100, random_state=0).fit_transform(X)).astype(np.float32)


SPARSE: dict[str, Callable[[sparse.csr_array, int], np.ndarray]] = {
    "nothing but the data": lambda X, k: np.zeros(X.shape[0], dtype=int),
    "MiniBatchKMeans, number given": lambda X, k: MiniBatchKMeans(k, n_init=5, random_state=0).fit_predict(X),
    "Leiden on 15 neighbours of SVD-100, number given": lambda X, k: cut_by_modularity(neighbours(reduced(X)), k),
    "**SubspaceClustering**, number given": lambda X, k: SubspaceClustering(k).fit_predict(X),
    "**SubspaceClustering**": lambda X, k: SubspaceClustering().fit_predict(X),
    "**SubspaceClustering** on the counts themselves": lambda X, k: SubspaceClustering().fit_predict(X),
}


def one(name: str, n: int) -> None:
    X, y = planted(n)
    X = X if "counts" in name else sparse.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(X))
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    start = time.process_time()
    labels = SPARSE[name](X, int(y.max()) + 1)
    found = {"seconds": time.process_time() - start, "k": len(np.unique(labels)), "sparse": size, "shape": X.shape}
    scores = {"AC": accuracy(y, labels), "NMI": normalized_mutual_info(y, labels), "ARI": adjusted_rand(y, labels)}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({**found, **scores, "peak": peak}))


def many(n: int, only: str | None) -> None:
    head = "| method | clusters | AC | NMI | ARI | CPU s | peak memory |\n|---|---|---|---|---|---|---|"
    for name in SPARSE:
        if only is not None and only not in name:
            continue
        run = [sys.executable, __file__, "--one", name, "--rows", str(n)]
        found = json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
        if head:
            rows, columns = found["shape"]
            dense, stored = 8 * rows * columns / 1e9, found["sparse"] / 1e9
            print(f"\n{rows:,} x {columns:,}: {stored:.2f} GB sparse, {dense:.1f} GB dense\n\n{head}")
            head = ""
        scores = " | ".join(f"{100 * found[score]:.1f}" for score in ("AC", "NMI", "ARI"))
        end = f"{found['seconds']:.0f} | {found['peak'] / 1e9:.2f} GB"
        print(f"| {name} | {found['k']} | {scores} | {end} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", type=Path, default=Path(sklearn.__file__).parents[1])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--words", action="store_true")
    parser.add_argument("--one")
    parser.add_argument("--only", help="methods whose name holds this")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.one is not None:
        one(given.one, given.rows)
    elif given.rows is not None:
        many(given.rows, given.only)
    else:
        texts, y = corpus(given.site)
        print(f"{len(texts)} docstrings of {int(y.max()) + 1} modules")
        if given.words:
            show_words(texts, y)
            return
        compare("Whole docstrings, TF-IDF", vectors_of(texts, "tfidf"), y, given.only)
        short = [first_line(text) for text in texts]
        if is_installed():
            compare("Whole docstrings, word vectors", vectors_of(texts, "sentences"), y, given.only)
            compare("First paragraphs, word vectors", vectors_of(short, "sentences"), y, given.only)
        compare("First paragraphs, TF-IDF", vectors_of(short, "tfidf"), y, given.only)


if __name__ == "__main__":
    main()
