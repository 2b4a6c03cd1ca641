"""What a few known labels, or answers about pairs, are worth: accuracy on the samples whose label is not known.

    SUBSPACES_DATA=folder nice python benchmarks/hints.py --draws 20 --most 300 --jobs 2 --write

Each set is searched once; labels are drawn again and again. Beside the automatic answer and the best partition of the
pool stand scikit-learn's LabelSpreading and self-training of nearest neighbours, and PCK-means (Basu et al. 2004),
which is told the right number of classes. Answers are given one by one, all right, or each wrong with probability 0.1;
PCK-means is given the same. ``--plot FILE`` draws the mean over the sets.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import kmeans_plusplus
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

import measured
from subspaces.datasets import make_subspaces
from subspaces.metrics import accuracy
from subspaces.selection.candidates import AUTO
from subspaces.selection.carrying import carried, following
from subspaces.selection.hints import Hints, no_hints, read_hints
from subspaces.selection.pool import pool_of, questions
from subspaces.selection.search import choose
from subspaces.utils.ordering import hash_rows

HERE = Path(__file__).resolve()
FOLDER = Path(os.environ.get("SUBSPACES_DATA", HERE.parents[2] / "shared" / "data"))
IMAGES = ("yaleb_32x32", "coil20_32x32", "coil100_32x32", "orl_32x32", "usps_9298", "mnist_train")
LABELS, ANSWERS, WRONG = (10, 20, 40, 80), (5, 10, 20), 0.1
RIVALS = {"spreading": "LabelSpreading", "training": "self-training", "pck": "PCK-means"}
TABLES, SHAPES = 10, 6


def sets(most: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Family and name, samples and classes of each set: at most so many samples, or six of each class of images."""

    def part(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y, rng = np.unique(y, return_inverse=True)[1], np.random.default_rng(0)
        order = rng.permutation(len(y))
        turn = np.empty(len(y), dtype=int)  # how many of its class come before a sample
        for c in range(y.max() + 1):
            own = order[y[order] == c]
            turn[own] = np.arange(len(own))
        rows = np.sort(order[np.argsort(turn[order], kind="stable")][: max(most, 6 * (int(y.max()) + 1))])
        return X[rows].astype(float), y[rows]

    def drawn(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # keeps the shares of the classes
        rows = np.sort(np.random.default_rng(0).permutation(len(y))[:most])
        return X[rows].astype(float), np.unique(y[rows], return_inverse=True)[1]

    yield "image/digits", *part(*load_digits(return_X_y=True))
    for name in IMAGES:
        with np.load(FOLDER / f"{name}.npz") as arrays:
            X, y = part(arrays["X"], arrays["y"])
        yield f"image/{name.split('_')[0]}", PCA(50, random_state=0).fit_transform(X) if "mnist" in name else X, y
    with np.load(FOLDER / "tables_v1.npz") as arrays:
        names = sorted(name[:-2] for name in arrays.files if name.endswith("/X"))
        for name in names[:: len(names) // TABLES][:TABLES]:
            yield f"table/{name}", *drawn(arrays[f"{name}/X"], arrays[f"{name}/y"])
    with np.load(FOLDER / "gagolews_v1.npz") as arrays:
        names = sorted(name[:-2] for name in arrays.files if name.endswith("/X"))
        for name in names[:: len(names) // SHAPES][:SHAPES]:
            clean = arrays[f"{name}/y0"] > 0
            yield f"shape/{name}", *drawn(arrays[f"{name}/X"][clean], arrays[f"{name}/y0"][clean])
    for k, dimension, noise in ((5, 3, 0.1), (10, 3, 0.2), (30, 2, 0.1)):
        X, y = make_subspaces(
            k, dimension=dimension, ambient=20, n_samples=min(400, most) // k, noise=noise, random_state=k
        )
        yield f"made/{k} subspaces", X, y


class Told:
    """One set, searched once, that hints are given for."""

    def __init__(self, X: np.ndarray, y: np.ndarray) -> None:
        found = choose(X, graph=AUTO, affine=AUTO, neighbors=True, include=np.zeros(0, dtype=np.intp))
        self.X, self.y, self.pool = StandardScaler().fit_transform(X), y, pool_of(found, hash_rows(X), None)
        self.open = found.labels[self.pool.place]
        self.best = max(self.score(labels[self.pool.place]) for labels in self.pool.partitions)

    def score(self, labels: np.ndarray, known: np.ndarray | None = None) -> float:
        """Accuracy in percent on the samples that are not known."""
        rest = np.setdiff1d(np.arange(len(self.y)), [] if known is None else known)
        return 100 * accuracy(self.y[rest], labels[rest])

    def followed(self, hints: Hints) -> np.ndarray:
        """Labels as the front door gives them."""
        pool = self.pool
        labels, graph, own, _ = following(pool, hints, pool.posterior(hints), True)
        return carried(graph.W[pool.place][:, pool.place], labels[pool.place], hints, own)[0]

    def by_labels(self, m: int, draw: int) -> dict[str, float]:
        """Accuracy of everyone with m labels."""
        known = np.random.default_rng(draw).choice(len(self.y), min(m, len(self.y) // 2), replace=False)
        if len(np.unique(self.y[known])) < 2:
            return {}
        given = np.full(len(self.y), -1)
        given[known] = self.y[known]
        knn = SelfTrainingClassifier(KNeighborsClassifier(min(3, len(known)))).fit(self.X, given)
        i, j = known[np.array(np.triu_indices(len(known), 1))]
        found = {
            "open": self.open,
            "told": self.followed(read_hints(given, None, None, len(given))),
            "spreading": LabelSpreading(kernel="knn", n_neighbors=7).fit(self.X, given).transduction_,
            "training": knn.predict(self.X),
            "pck": pck_means(self.X, self.y.max() + 1, i, j, self.y[i] == self.y[j]),
        }
        return {name: self.score(labels, known) for name, labels in found.items()}

    def by_answers(self, wrong: float, seed: int) -> Iterator[tuple[int, dict[str, float]]]:
        """Numbers of answers, each wrong with this probability, and accuracy after them."""
        rng, hints, answers = np.random.default_rng(seed), no_hints(len(self.y)), []
        for m in range(1, max(ANSWERS) + 1):
            for i, j, _ in questions(self.pool, hints.and_answers(answers), 1, answers):
                answers.append((i, j, bool(self.y[i] == self.y[j]) != (rng.random() < wrong)))
            if m in ANSWERS:
                i, j, same = np.array(answers, dtype=int).reshape(-1, 3).T
                pck = pck_means(self.X, self.y.max() + 1, i, j, same.astype(bool))
                told = self.followed(hints.and_answers(answers))
                yield m, {"open": self.score(self.open), "told": self.score(told), "pck": self.score(pck)}


def pck_means(X: np.ndarray, k: int, i: np.ndarray, j: np.ndarray, same: np.ndarray) -> np.ndarray:
    """PCK-means (Basu, Banerjee and Mooney 2004): k-means from the linked groups, wrong pairs cost a mean distance."""
    relation = np.zeros((len(X), len(X)))
    relation[i, j] = relation[j, i] = np.where(same, 1, -1)
    n_groups, group = connected_components(csr_array(relation > 0), directed=False)
    size = np.bincount(group, minlength=n_groups)
    large = np.argsort(-size, kind="stable")[: min(k, np.count_nonzero(size > 1))]
    centres = np.array([X[group == g].mean(axis=0) for g in large]).reshape(-1, X.shape[1])
    centres = np.concatenate([centres, kmeans_plusplus(X, k, random_state=0)[0][len(centres) :]])
    labels = np.full(len(X), -1)
    order = np.random.default_rng(0).permutation(len(X))
    for _ in range(30):
        before = labels.copy()
        distance = euclidean_distances(X, centres, squared=True)
        price = distance.min(axis=1).mean()
        for x in order:
            others = np.flatnonzero(relation[x])
            others = others[labels[others] >= 0]
            together = np.bincount(labels[others], relation[x, others], minlength=k)
            labels[x] = (distance[x] - price * together).argmin()
        centres = np.array([X[labels == c].mean(axis=0) if (labels == c).any() else centres[c] for c in range(k)])
        if np.array_equal(before, labels):
            break
    return labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--most", type=int, default=500, help="samples of a set")
    parser.add_argument("--only", default="", help="sets whose name begins so")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="save the table for the manual")
    parser.add_argument("--plot", help="file for a picture of the means")
    arguments = parser.parse_args()
    heads = [f"{m} labels (open / spreading / self-training / PCK)" for m in LABELS[:3]]
    columns = ["set (classes)", "best", *heads, *(f"{m} answers (1 in 10 wrong)" for m in (10, 20))]
    rows, kept = [], []
    chosen = [(*found, arguments.draws) for found in sets(arguments.most) if found[0].startswith(arguments.only)]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for name, found in pool.map(_of_set, chosen):
            kept += found
            of = {(row["kind"], row["m"]): row for row in found}
            cells = [
                "{told:.0f} ({open:.0f} / {spreading:.0f} / {training:.0f} / {pck:.0f})".format(**of["labels", m])
                for m in LABELS[:3]
            ]
            cells += [f"{of['answers', m]['told']:.0f} ({of['wrong', m]['told']:.0f})" for m in (10, 20)]
            rows.append([name, f"{found[0]['best']:.0f}", *cells])
            print(" | ".join(rows[-1]), flush=True)
    _print_goals(kept)
    if arguments.plot:
        _plot(kept, arguments.plot)
    if arguments.write:
        measured.save("hints", columns, rows, folders=measured.SEARCH)


def _of_set(task: tuple[str, np.ndarray, np.ndarray, int]) -> tuple[str, list[dict]]:
    warnings.simplefilter("ignore")
    name, X, y, draws = task
    one, own = Told(X, y), {}
    for m in LABELS:
        own["labels", m] = _mean([row for draw in range(draws) if (row := one.by_labels(m, draw))])
    own |= {("answers", m): found for m, found in one.by_answers(0.0, 0)}
    wrong = [dict(one.by_answers(WRONG, draw)) for draw in range(max(2, draws // 3))]
    own |= {("wrong", m): _mean([found[m] for found in wrong]) for m in ANSWERS}
    rows = [{"set": name, "kind": kind, "m": m, "best": one.best, **found} for (kind, m), found in own.items()]
    return f"{name.split('/')[-1]} ({y.max() + 1})", rows


def _mean(found: list[dict[str, float]]) -> dict[str, float]:
    names = [name for name in found[0] if name not in ("set", "kind", "m")]
    return {name: float(np.mean([row[name] for row in found])) for name in names}


def _print_goals(kept: list[dict]) -> None:
    for kind, m in dict.fromkeys((row["kind"], row["m"]) for row in kept):
        own = [row for row in kept if (row["kind"], row["m"]) == (kind, m)]
        gain = np.array([row["told"] - row["open"] for row in own])
        families = np.array([row["set"].split("/")[0] for row in own])
        by_family = ", ".join(f"{family} {gain[families == family].mean():+.1f}" for family in dict.fromkeys(families))
        best = np.mean([row["told"] / row["best"] for row in own])
        wins = [
            f"{rival} {np.mean([row['told'] >= row[name] - 0.1 for row in own]):.0%}"
            for name, rival in RIVALS.items()
            if name in own[0]
        ]
        print(
            f"{m} {kind}: {gain.mean():+.1f} points ({by_family}), not below the automatic answer on "
            f"{np.mean(gain >= -0.1):.0%}; {best:.2f} of the best; not below {', '.join(wins)}"
        )


def _plot(kept: list[dict], file: str) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    names = {"told": "SubspaceClustering", **RIVALS}
    for axis, kind, marks in zip(axes, ("labels", "answers"), (LABELS, ANSWERS), strict=True):
        for kind_of, dashes in ((kind, "-"), ("wrong", "--"))[: 1 + (kind == "answers")]:
            of = {m: _mean([row for row in kept if (row["kind"], row["m"]) == (kind_of, m)]) for m in marks}
            for colour, (name, label) in enumerate(names.items()):
                if name in of[marks[0]]:
                    start = [of[marks[0]]["open"]] if name == "told" else []
                    x = [0] * len(start) + list(marks)
                    said = label + ", 1 in 10 wrong" * (kind_of == "wrong")
                    axis.plot(
                        x, start + [of[m][name] for m in marks], dashes, marker="o", color=f"C{colour}", label=said
                    )
        axis.axhline(
            np.mean([row["open"] for row in kept if row["kind"] == kind]), color="grey", lw=1, label="nothing known"
        )
        axis.set(xlabel=f"known {kind}" if kind == "labels" else "answers", xticks=(0, *marks))
        axis.legend(fontsize=7)
    axes[0].set_ylabel("accuracy on the other samples, %")
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
