"""Weights of splits and of numbers of clusters from labelled sets, and how well they do on families left out."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from _automatic.sets import Set
from subspaces.selection.count import WIDE, _best, _in_order_made, level_features
from subspaces.spectral.hierarchy import Merged

Row = dict[str, Any]
WEIGHTS = {"null": 0.35, "doubtful": 0.3, "binary": 0.5, "motion": 0.4, "plane": 0.7}
"""Of a set in the fit: two classes of patients, or labels that are no groups, say less."""
N_FOLDS = 12
TARGET = 0.86
"""Share of left-out sets whose number the range is to hold."""
INDEX: dict[str, dict[str, str]] = {}
SAME = {"wdbc": "wdbc", "biopsy_wbc": "wdbc", "wines27": "wine"}  # one source under two names


def read_index(folder: Path | None) -> None:
    """Families of the sets in the user's folder, and which labels are doubtful as groups."""
    file = None if folder is None else folder / "INDEX.csv"
    if file is not None and file.exists():
        with file.open() as stream:
            INDEX.update({line["name"]: line for line in csv.DictReader(stream)})


def kind_of(data: Set) -> str:
    head = data.name.split("/")[0]
    if head == "null":
        return head
    entry = INDEX.get(data.name, {})
    return next((mark for mark in ("doubtful", "binary") if entry.get(mark) == "1"), data.kind)


def family_of(row: Row) -> str:
    """Sets that are left out together; the same table in two collections is one."""
    if row["kind"] == "null":
        return "null " + row["name"].split("/")[1].split("-")[0].rstrip("0123456789")
    name = INDEX.get(row["name"], {}).get("family", row["family"])
    name = "coil" if name.startswith("coil") else "iris" if "iris" in name else name
    return SAME.get(name, name)


def split_truth(tree: Merged, pieces: np.ndarray, y: np.ndarray) -> np.ndarray:
    """1 − what the two sides of each split have in common in classes; NaN where one has no class."""
    m, k = len(tree.merges) + 1, int(y.max()) + 1
    counts = np.zeros((2 * m - 1, k))
    np.add.at(counts, (pieces, y), 1.0)
    counts[:, 0] = 0  # noise
    for i, (a, b) in enumerate(tree.merges):
        counts[m + i] = counts[a] + counts[b]
    with np.errstate(invalid="ignore"):
        share = counts / counts.sum(axis=1, keepdims=True)
    return 1 - np.minimum(share[tree.merges[:, 0]], share[tree.merges[:, 1]]).sum(axis=1)


def fit_splits(rows: list[Row]) -> np.ndarray:
    """Logistic regression with soft targets: weights and constant, as in ``SPLIT``."""
    features, target, weight = [], [], []
    for row in rows:
        for true in row["true"]:
            known = np.isfinite(true)
            n = max(1, len(true))
            features.append(row["split"][known])
            target.append(true[known])
            weight.append(np.full(known.sum(), WEIGHTS.get(row["kind"], 1.0) / np.sqrt(n) / len(row["true"])))
    X, t, w = np.vstack(features), np.concatenate(target), np.concatenate(weight)
    scale = X.std(axis=0)
    model = LogisticRegression(C=1.0, max_iter=5000)
    both = np.concatenate([np.ones(len(t)), np.zeros(len(t))])
    model.fit(np.vstack([X, X]) / scale, both, sample_weight=np.concatenate([w * t, w * (1 - t)]) + 1e-12)
    return np.concatenate([model.coef_[0] / scale, model.intercept_])


def levels_of(row: Row, split: np.ndarray) -> np.ndarray:
    tree = Merged(row["merges"], row["sizes"], np.zeros(0), np.zeros(0))
    probability = 1 / (1 + np.exp(-(row["split"] @ split[:-1] + split[-1])))
    made = _in_order_made(tree, probability) if len(probability) else probability
    return level_features(row["candidates"], row["agreement"], row["separation"], row["border"], made)


def target_of(row: Row) -> np.ndarray:
    """Numbers near a true one are nearly right."""
    apart = np.abs(np.log(row["candidates"][:, None] / row["numbers"])).min(axis=1)
    near = np.exp(-((apart / 0.1) ** 2) / 2)
    if near.max() < 1e-3:
        near = (np.arange(len(apart)) == apart.argmin()).astype(float)
    return near / near.sum()


def fit_levels(rows: list[Row], levels: list[np.ndarray], penalty: float = 0.02) -> np.ndarray:
    """Conditional logit over the numbers of each set, ridge on standardised features: ``LEVEL``."""
    scale = np.vstack(levels).std(axis=0)
    parts = [(z / scale, target_of(row), WEIGHTS.get(row["kind"], 1.0)) for row, z in zip(rows, levels, strict=True)]

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        total, gradient = penalty * len(parts) * theta @ theta / 2, penalty * len(parts) * theta
        for z, t, w in parts:
            u = z @ theta
            u -= u.max()
            e = np.exp(u)
            total -= w * (t @ (u - np.log(e.sum())))
            gradient -= w * (z.T @ (t - e / e.sum()))
        return total, gradient

    return minimize(loss, np.zeros(len(scale)), jac=True, method="L-BFGS-B").x / scale


def fitted(rows: list[Row]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights of splits, of numbers in points of few features and of many.

    Those of splits for the second fit come from folds, as they will be on unseen sets.
    """
    split = fit_splits(rows)
    folds, levels = folds_of(rows), {}
    for fold in range(N_FOLDS):
        of_others = fit_splits([row for row, f in zip(rows, folds, strict=True) if f != fold])
        levels |= {i: levels_of(rows[i], of_others) for i in range(len(rows)) if folds[i] == fold}
    used = [i for i, row in enumerate(rows) if row["kind"] not in ("null", "doubtful") and row["numbers"].max() > 1]
    parts = [[i for i in used if is_wide(rows[i]) == wide] for wide in (False, True)]
    narrow, wide = (fit_levels([rows[i] for i in part], [levels[i] for i in part]) for part in parts)
    return split, narrow, wide


def is_wide(row: Row) -> bool:
    return bool(len(row["split"]) and row["split"][0, -1] >= np.log(WIDE))


def folds_of(rows: list[Row]) -> np.ndarray:
    families = sorted({family_of(row) for row in rows})
    np.random.default_rng(0).shuffle(families)
    fold = {family: i % N_FOLDS for i, family in enumerate(families)}
    return np.array([fold[family_of(row)] for row in rows])


def left_out(rows: list[Row]) -> list[Row]:
    """Probabilities of every number for each set, by weights that saw nothing of its family."""
    folds, found = folds_of(rows), []
    for fold in range(N_FOLDS):
        split, narrow, wide = fitted([row for row, f in zip(rows, folds, strict=True) if f != fold])
        for row, f in zip(rows, folds, strict=True):
            if f == fold and row["kind"] != "null":
                u = levels_of(row, split) @ (wide if is_wide(row) else narrow)
                e = np.exp(u - u.max())
                best = int(row["candidates"][_best(row["candidates"], e)])
                found.append(row | {"probability": e / e.sum(), "estimate": best})
    return found


def range_of(row: Row, mass: float) -> tuple[int, int]:
    order = np.argsort(-row["probability"], kind="stable")
    kept = row["candidates"][order[: int(np.searchsorted(np.cumsum(row["probability"][order]), mass)) + 1]]
    return int(min(kept.min(), row["estimate"])), int(max(kept.max(), row["estimate"]))


def holds(row: Row, mass: float) -> bool:
    low, high = range_of(row, mass)
    return bool(((row["numbers"] >= low) & (row["numbers"] <= high)).any())


def mass_for(rows: list[Row]) -> float:
    """Smallest probability of a range that holds the number in enough of the left-out sets of real data."""
    real = [row for row in rows if row["kind"] not in ("made", "plane", "doubtful", "null")]
    for mass in np.arange(0.5, 0.995, 0.01):
        if np.mean([holds(row, mass) for row in real]) >= TARGET:
            return round(float(mass), 2)
    return 0.99


def within(row: Row, share: float, estimate: float | None = None) -> bool:
    k = row["estimate"] if estimate is None else estimate
    return bool((np.abs(k - row["numbers"]) <= share * row["numbers"] + 1e-9).any())


def print_table(rows: list[Row]) -> None:
    mass = mass_for(rows)
    print(
        "| kind of data | sets | within 10 % | within 30 % | range holds it | median range, high / low |\n"
        + "|---" * 6
        + "|"
    )
    for kind in dict.fromkeys(["images, spectra, genes", "table", "binary", "doubtful", "plane", "motion", "made"]):
        part = [row for row in rows if row["kind"] == kind]
        if part:
            wide = np.median([np.divide(*range_of(row, mass)[::-1]) for row in part])
            shares = [np.mean([within(row, share) for row in part]) for share in (0.1, 0.3)]
            print(f"| {kind} | {len(part)} | {shares[0]:.0%} | {shares[1]:.0%} | "
                  f"{np.mean([holds(row, mass) for row in part]):.0%} | {wide:.1f} |")  # fmt: skip
    print(f"\nRange: {mass:.2f} of the probability.\n")
    for row in sorted(rows, key=lambda row: (row["kind"], row["name"])):
        low, high = range_of(row, mass)
        print(f"{row['kind']}: {row['name']} {row['estimate']} ({low} to {high}) of {row['numbers'].tolist()}")


def as_module(split: np.ndarray, narrow: np.ndarray, wide: np.ndarray, mass: float) -> str:
    """The text of ``subspaces/selection/fitted.py``."""
    numbers = [", ".join(f"{value:.4g}" for value in weights) for weights in (split, narrow, wide)]
    return f'''"""Weights that labelled data sets gave, written by ``benchmarks/number.py``."""

from __future__ import annotations

SPLIT = ({numbers[0]})
"""Of a split: log cut, return, log of the smaller side, log of both, kept together, log of the features; constant."""

NARROW = ({numbers[1]})
"""Of a number of clusters k, where points have few features: score over the best, agreement over more and over fewer
clusters, jump of the border to more and from fewer, log k, (log k)², log p of the weakest split made, log (1 − p) of
the strongest not made."""

WIDE = ({numbers[2]})
"""The same where points have many: images, spectra, expression."""

MASS = {mass}
"""Probability of the range."""
'''
