"""What a few known labels, or answers about pairs, are worth: accuracy on the samples whose label is not known.

    SUBSPACES_DATA=folder python benchmarks/hints.py --draws 5 --most 600 --write

Beside the automatic answer, the best partition of the pool, and scikit-learn's LabelSpreading and self-training of
nearest neighbours with the same labels. Of 10 answers, one column has all of them right, the other each wrong with
probability 0.1; they are asked one by one.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

import measured
from subspaces.metrics import accuracy
from subspaces.selection.candidates import AUTO
from subspaces.selection.hints import Pool, carried, no_hints, pool_of, questions, read_hints, with_own_cuts
from subspaces.selection.search import choose
from subspaces.utils.ordering import hash_rows

HERE = Path(__file__).resolve()
FOLDER = Path(os.environ.get("SUBSPACES_DATA", HERE.parents[2] / "shared" / "data"))
IMAGES = ("yaleb_32x32", "coil20_32x32", "coil100_32x32", "orl_32x32", "usps_9298", "mnist_train")
LABELS = (10, 20, 40)
N_ANSWERS, WRONG = 10, 0.1
TABLES = 10


def sets(most: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, samples and classes of each set, at most so many samples, of every class about as many."""

    def part(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y, rng = np.unique(y, return_inverse=True)[1], np.random.default_rng(0)
        order = rng.permutation(len(y))
        turn = np.empty(len(y), dtype=int)  # how many of its class come before a sample
        for c in range(y.max() + 1):
            own = order[y[order] == c]
            turn[own] = np.arange(len(own))
        rows = np.sort(order[np.argsort(turn[order], kind="stable")][:most])
        return X[rows].astype(float), y[rows]

    yield "digits", *part(*load_digits(return_X_y=True))
    for name in IMAGES:
        with np.load(FOLDER / f"{name}.npz") as arrays:
            X, y = part(arrays["X"], arrays["y"])
        yield name.split("_")[0], PCA(50, random_state=0).fit_transform(X) if name == "mnist_train" else X, y
    with np.load(FOLDER / "tables_v1.npz") as arrays:
        names = sorted(name[:-2] for name in arrays.files if name.endswith("/X"))
        for name in names[:: len(names) // TABLES][:TABLES]:
            rng, (X, y) = np.random.default_rng(0), (arrays[f"{name}/X"], arrays[f"{name}/y"])
            rows = np.sort(rng.permutation(len(y))[:most])  # tables keep the shares of their classes
            yield name, X[rows].astype(float), np.unique(y[rows], return_inverse=True)[1]


class Told:
    """One set, searched once, that hints are given for."""

    def __init__(self, X: np.ndarray, y: np.ndarray) -> None:
        found = choose(X, graph=AUTO, affine=AUTO, neighbors=True, include=np.zeros(0, dtype=np.intp))
        self.X, self.y, self.pool = X, y, pool_of(found, hash_rows(X), None)
        self.open = found.labels[self.pool.place]
        self.pools: dict[int, Pool] = {}
        self.best = max(self.score(labels[self.pool.place]) for labels in self.pool.partitions)

    def score(self, labels: np.ndarray, known: np.ndarray | None = None) -> float:
        """Accuracy in percent on the samples that are not known."""
        rest = np.setdiff1d(np.arange(len(self.y)), [] if known is None else known)
        return 100 * accuracy(self.y[rest], labels[rest])

    def by_labels(self, known: np.ndarray) -> dict[str, float]:
        """Accuracy of everyone with these labels."""
        given = np.full(len(self.y), -1)
        given[known] = self.y[known]
        hints = read_hints(given, None, None, len(given))
        k = int(self.pool.sizes[self.pool.posterior(hints).argmax()])
        pool = self.pools.setdefault(k, with_own_cuts(self.pool, k))
        row = int(pool.posterior(hints).argmax())
        W = pool.graphs[pool.of_graph[row]].W[pool.place][:, pool.place]
        labels = carried(W, pool.partitions[row][pool.place], hints)[0]
        X = StandardScaler().fit_transform(self.X)
        knn = KNeighborsClassifier(min(3, len(known)))
        return {
            "open": self.score(self.open, known),
            "told": self.score(labels, known),
            "spreading": self.score(_spread(X, given), known),
            "training": self.score(SelfTrainingClassifier(knn).fit(X, given).predict(X), known),
        }

    def by_answers(self, wrong: float, seed: int) -> float:
        """Accuracy after ten answers, each wrong with this probability."""
        rng, hints, answers = np.random.default_rng(seed), no_hints(len(self.y)), []
        for _ in range(N_ANSWERS):
            asked = questions(self.pool, hints.and_answers(answers), 1, answers)
            if not asked:
                break
            i, j, _ = asked[0]
            answers.append((i, j, bool(self.y[i] == self.y[j]) != (rng.random() < wrong)))
        row = int(self.pool.posterior(hints.and_answers(answers)).argmax())
        return self.score(self.pool.partitions[row][self.pool.place])


def _spread(X: np.ndarray, given: np.ndarray) -> np.ndarray:
    """LabelSpreading by nearest neighbours, which does better than its default kernel."""
    return LabelSpreading(kernel="knn", n_neighbors=7).fit(X, given).transduction_


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--most", type=int, default=600, help="samples of a set")
    parser.add_argument("--write", action="store_true", help="save the table for the manual")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = [f"{m} labels (open / spreading / self-training)" for m in LABELS]
    columns = ["set (classes)", "best", *heads, "10 answers (1 in 10 wrong)"]
    rows, kept = [], []
    for name, X, y in sets(arguments.most):
        one, cells = Told(X, y), []
        for m in LABELS:
            found = []
            for draw in range(arguments.draws):
                known = np.random.default_rng(draw).choice(len(y), min(m, len(y) // 2), replace=False)
                if len(np.unique(y[known])) > 1:
                    found.append(one.by_labels(known))
            mean = {key: float(np.mean([row[key] for row in found])) for key in found[0]}
            kept.append({"set": name, "m": m, "best": one.best, "classes": len(np.unique(y)), **mean})
            cells.append("{told:.0f} ({open:.0f} / {spreading:.0f} / {training:.0f})".format(**mean))
        right = one.by_answers(0.0, 0)
        errs = float(np.mean([one.by_answers(WRONG, draw) for draw in range(arguments.draws)]))
        kept.append({"set": name, "m": 0, "open": one.score(one.open), "told": right, "errs": errs})
        rows.append([f"{name} ({len(np.unique(y))})", f"{one.best:.0f}", *cells, f"{right:.0f} ({errs:.0f})"])
        print(" | ".join(rows[-1]), flush=True)
        _print_goals(kept)
    if arguments.write:
        measured.save("hints", columns, rows, folders=measured.SEARCH)


def _print_goals(kept: list[dict]) -> None:
    for m in LABELS:
        own = [row for row in kept if row["m"] == m]
        gain = np.array([row["told"] - row["open"] for row in own])
        many = gain[[row["classes"] >= 20 for row in own]]
        best = np.mean([row["told"] / row["best"] for row in own])
        wins = [np.mean([row["told"] >= row[rival] for row in own]) for rival in ("spreading", "training")]
        print(
            f"  {m} labels: {gain.mean():+.1f} points, not below the automatic answer on {np.mean(gain >= -0.1):.0%}; "
            f"20 classes or more {many.mean() if len(many) else np.nan:+.1f}; {best:.2f} of the best; "
            f"not below LabelSpreading on {wins[0]:.0%}, self-training on {wins[1]:.0%}"
        )
    own = [row for row in kept if row["m"] == 0]
    gains = [np.mean([row[key] - row["open"] for row in own]) for key in ("told", "errs")]
    print(f"  10 answers: {gains[0]:+.1f} points, 1 in 10 wrong {gains[1]:+.1f}", flush=True)


if __name__ == "__main__":
    main()
