"""Confidence that is a probability: weights fitted to labelled sets, judged on families of sets that were left out.

    SUBSPACES_DATA=folder python benchmarks/confidence.py --more folder            # features, fit, table, weights
    python benchmarks/confidence.py --more folder --part 0/2                       # only features of every second set

The weights printed, fitted to all sets, are `BY_GRAPH` and `BY_SEARCH` of subspaces/engine/confidence.py.

A label is right if the point has the class that most points of its cluster have. Every second set is clustered with
its number of classes given, the others with the number found. Points that are one piece, cut into 2 to 8, have classes
drawn at random: nothing is right there but by chance.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.linear_model import LogisticRegression

import measured
from _automatic.sets import Set, all_sets
from _number.sets import family_of, noise
from subspaces import SubspaceClustering
from subspaces.engine import confidence
from subspaces.engine.confidence import graph_features, memberships, probability_right, search_features

HERE = Path(__file__).resolve()
FOLDER = Path(os.environ.get("SUBSPACES_DATA", HERE.parents[2] / "shared" / "data"))
STORE = HERE.parent / "results" / "confidence"
MOST = 400
"""Points of a set that count, so that large sets do not decide alone."""
WEIGHTS = {"null": 0.35, "motion": 0.4, "plane": 0.7}
"""Of a set in the fit, by its kind; 1 for others."""
N_FOLDS = 12


def features_of(data: Set, i: int) -> dict[str, Any] | None:
    """What is known of the labels of one set, and which are right; kept in a file."""
    file = STORE / f"{data.name.replace('/', '__')}.npz"
    if not file.exists():
        rng = np.random.default_rng(i)
        y, k = data.references[0], data.numbers[0]
        null = data.name.startswith("null/")
        if null:
            k = (2, 3, 5, 8)[i % 4]
            y = rng.integers(1, k + 1, len(data.X))
        model = SubspaceClustering(k if null or i % 2 else None).fit(data.X)
        codes, agreement = model.labels_, model._agreement()
        STORE.mkdir(parents=True, exist_ok=True)
        if agreement is None:  # one cluster: there is nothing to be sure of
            np.savez_compressed(
                file, features=np.zeros((0, 8)), right=np.zeros(0, bool), sizes=np.zeros(0), n_clusters=1
            )
            return None
        by_graph = graph_features(
            model.affinity_matrix_, codes, memberships(model.affinity_matrix_, codes), model.tree_
        )
        features = search_features(by_graph, agreement)
        most = np.array([np.bincount(y[(codes == c) & (y > 0)], minlength=1).argmax() for c in range(codes.max() + 1)])
        kept = rng.permutation(np.flatnonzero(y > 0))[:MOST]
        right = (y == most[codes])[kept]
        np.savez_compressed(
            file,
            features=features[kept],
            right=right,
            sizes=np.bincount(codes)[codes][kept],
            n_clusters=codes.max() + 1,
        )
    with np.load(file) as arrays:
        if not len(arrays["right"]):
            return None
        null = data.name.startswith("null/")
        kind, family = ("null", data.name.split("-")[0]) if null else (data.kind, family_of(data))
        return {**arrays, "name": data.name, "kind": kind, "family": family}


def weights_of(rows: list[dict[str, Any]], n_columns: int) -> np.ndarray:
    """Logistic regression, every set with the same weight."""
    X = np.vstack([row["features"][:, :n_columns] for row in rows])
    y = np.concatenate([row["right"] for row in rows])
    w = np.concatenate([np.full(len(row["right"]), WEIGHTS.get(row["kind"], 1.0) / len(row["right"])) for row in rows])
    scale = X.std(axis=0)
    model = LogisticRegression(C=10.0, max_iter=5000).fit(X / scale, y, sample_weight=w * len(y) / w.sum())
    return np.concatenate([model.coef_[0] / scale, model.intercept_])


def by_weights(row: dict[str, Any], weights: np.ndarray) -> np.ndarray:
    name = "BY_GRAPH" if len(weights) == 6 else "BY_SEARCH"
    with patch.object(confidence, name, tuple(weights)):
        return probability_right(row["features"][:, : len(weights) - 1], row["sizes"])


def folds_of(rows: list[dict[str, Any]]) -> np.ndarray:
    """Fold of every set; those of one family are left out together."""
    families = sorted({row["family"] for row in rows})
    np.random.default_rng(0).shuffle(families)
    fold = {family: i % N_FOLDS for i, family in enumerate(families)}
    return np.array([fold[row["family"]] for row in rows])


def left_out(rows: list[dict[str, Any]], n_columns: int) -> list[np.ndarray]:
    folds, found = folds_of(rows), [np.zeros(0)] * len(rows)
    for fold in range(N_FOLDS):
        weights = weights_of([row for row, f in zip(rows, folds, strict=True) if f != fold], n_columns)
        for i in np.flatnonzero(folds == fold):
            found[i] = by_weights(rows[i], weights)
    return found


def calibration_error(p: np.ndarray, right: np.ndarray, w: np.ndarray) -> float:
    """Expected calibration error, ten bins of equal width."""
    place = np.minimum((10 * p).astype(int), 9)
    return sum(abs(np.sum(w[place == b] * (p - right)[place == b])) for b in range(10)) / w.sum()


def print_table(rows: list[dict[str, Any]]) -> None:
    real = [i for i, row in enumerate(rows) if row["kind"] not in ("null", "doubtful")]
    none = [i for i, row in enumerate(rows) if row["kind"] == "null"]
    right = [row["right"].astype(float) for row in rows]
    print("| confidence from | expected calibration error | mean confidence | right | on one piece: mean, right |")
    print("|---|---|---|---|---|")
    for title, n_columns in (("the graph alone", 5), ("graph and search", 8)):
        p = left_out(rows, n_columns)
        P, R = np.concatenate([p[i] for i in real]), np.concatenate([right[i] for i in real])
        W = np.concatenate([np.full(len(p[i]), 1 / len(p[i])) for i in real])
        chance = np.mean([p[i].mean() for i in none]), np.mean([right[i].mean() for i in none])
        means = f"{np.average(P, weights=W):.2f} | {np.average(R, weights=W):.2f} | {chance[0]:.2f}, {chance[1]:.2f}"
        print(f"| {title} | {calibration_error(P, R, W):.3f} | {means} |")
        far = sorted(real, key=lambda i: -abs(p[i].mean() - right[i].mean()))[:8]
        told = "; ".join(f"{rows[i]['name']} {p[i].mean():.2f} of {right[i].mean():.2f}" for i in far)
        print(f"<!-- farthest: {told} -->")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--more", type=Path, help="folder of NAME.npz with X and y")
    parser.add_argument(
        "--part", default="0/1", help="i/n: only features of every n-th set, for processes side by side"
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    number, parts = map(int, arguments.part.split("/"))
    data = list(enumerate([*all_sets(FOLDER, arguments.more), *(data for _, data in noise(2))]))
    found = [features_of(one, i) for i, one in data if i % parts == number]
    rows = [row for row in found if row is not None]
    if parts == 1:
        with measured.kept("confidence", folders=measured.SEARCH):
            print_table(rows)
        for name, n_columns in (("BY_GRAPH", 5), ("BY_SEARCH", 8)):
            print(f"{name} = ({', '.join(f'{value:.4g}' for value in weights_of(rows, n_columns))})")


if __name__ == "__main__":
    main()
