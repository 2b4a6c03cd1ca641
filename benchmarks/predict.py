"""Seconds and accuracy of ``predict`` beside k nearest neighbours with the same labels of a part of the samples.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/predict.py digits
    python benchmarks/predict.py usps=/data/usps_9298.npz mnist=/data/mnist_train.npz

A file has the arrays X and y; more than 300 features become 50 principal components. CPU seconds, alternating, the best
of three; as many neighbours as coefficients are kept (η). To compare with older code, set PYTHONPATH to it.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from subspaces import KTRR, LRR1, SC, SSC, TSC

_ROWS, _TRAIN, _SLOW = 20_000, 3_000, 600  # samples in all, to train with, and for methods with many steps
METHODS = {
    "KTRR": KTRR(),
    "KTRR linear": KTRR(kernel="linear", solver="dense"),
    "KTRR quadratic": KTRR(kernel="quadratic", solver="dense"),
    "low rank": KTRR(kernel="linear", solver="low_rank"),
    "two scales": KTRR(solver="two_scale"),
    "affine": KTRR(affine=True),
    "SC": SC(),
    "TSC": TSC(),
    "SSC": SSC(),
    "LRR1": LRR1(),
}


def read(source: str) -> tuple[str, Any, Any]:
    """Return name, samples and classes of a set."""
    name, _, path = source.partition("=")
    if not path:
        return name, *load_digits(return_X_y=True)
    with np.load(path) as file:
        X, y = (file[key] for key in list(file)[:2])
    y = np.unique(y, return_inverse=True)[1].ravel()[:_ROWS]
    X = X.reshape(len(X), -1)[:_ROWS].astype(np.float64)
    return name, PCA(50, random_state=0).fit_transform(X) if X.shape[1] > 300 else X, y


def timed(function: Callable[[Any], Any], X: Any) -> tuple[float, Any]:
    """Return CPU seconds of a call and its result."""
    start = time.process_time()
    result = function(X)
    return time.process_time() - start, result


def main() -> None:
    """Print one line for each method and set."""
    warnings.simplefilter("ignore")
    print("| set, method | samples → new | predict, s | membership, s | kNN, s | right, % | kNN right, % |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, X, y in map(read, sys.argv[1:] or ["digits"]):
        order, k = np.random.default_rng(0).permutation(len(X)), len(np.unique(y))
        for method, model in METHODS.items():
            n = min(len(X) // 2, _SLOW if method in ("SSC", "LRR1") else _TRAIN)
            train, new = order[:n], order[n:]
            labels = model.set_params(n_clusters=k).fit(X[train]).labels_
            counts = np.zeros((k, k))
            np.add.at(counts, (labels, y[train]), 1)
            names = linear_sum_assignment(-counts)[1]
            neighbours = KNeighborsClassifier(getattr(model, "n_nonzero", None) or 5)
            calls = (model.predict, model.predict_membership, neighbours.fit(X[train], labels).predict)
            runs = [[timed(call, X[new]) for call in calls] for _ in range(3)]
            seconds = [f"{min(run[i][0] for run in runs):.2f}" for i in range(3)]
            right = [f"{100 * (names[runs[0][i][1]] == y[new]).mean():.2f}" for i in (0, 2)]
            print("|", " | ".join([f"{name}, {method}", f"{n} → {len(new)}", *seconds, *right]), "|", flush=True)


if __name__ == "__main__":
    main()
