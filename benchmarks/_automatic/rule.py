"""The candidates of a set, kept, and the rule applied to them with any constants: how much hangs on each."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from subspaces.metrics import accuracy, adjusted_rand
from subspaces.selection.candidates import CUTS_TRIED, tried_on
from subspaces.selection.criteria import leading_components, subspace_residuals, support
from subspaces.selection.graphs import Method, candidates_of, cut
from subspaces.selection.search import _scaled
from subspaces.spectral.agreement import pairwise_agreement
from subspaces.utils.ordering import canonical_order, hash_rows
from subspaces.utils.process import one_thread, quiet

SEED = int(np.random.RandomState(0).randint(2**31 - 1))
"""As ``SubspaceClustering()`` draws it."""


class Constants(NamedTuple):
    """Of the rule; the defaults are those of the package."""

    natural: float = 1.5
    share: float = 1 / 3
    weight: float = 0.3


DEFAULT = Constants()
GRID = [
    Constants(*values) for values in product((1.2, 1.5, 1.8, 2.2), (0.2, 1 / 3, 0.5, 1.0), (0.0, 0.1, 0.3, 0.5, 1.0))
]


def bank(X: np.ndarray, references: np.ndarray, k: int, store: Path) -> dict[str, Any]:
    """Every candidate of balanced effort, cut in both ways: accuracy, index, agreement, excess; computed once."""
    if store.exists():
        with np.load(store) as arrays:
            return dict(arrays)
    order = canonical_order(X, hash_rows(X))
    X, references = X[order], references[:, order]
    given = dict.fromkeys(("kernel", "reg", "n_nonzero", "scaling", "affine", "assign_labels"), "auto")
    tried = tried_on(X, given, neighbors=True, n_clusters=k)
    cuts = [how if how in tried.cuts else tried.cuts[0] for how in CUTS_TRIED]  # of tracks one is tried
    with quiet(), one_thread("blas"):
        graphs = candidates_of(X, tried, Method(seed=SEED, n_clusters=k))
        labels = [np.unique(cut(g, how, k), return_inverse=True)[1] for g in graphs for how in cuts]
        excess = np.zeros(len(labels))
        if X.shape[1] > 3:
            scalings = dict.fromkeys(setting.scaling for setting in tried.settings)
            points = [leading_components(_scaled(X, scaling)) for scaling in scalings]
            residuals = [np.log(np.maximum(subspace_residuals(P, labels), 1e-9 * np.square(P).sum())) for P in points]
            excess = np.mean(residuals, axis=(0, 2))
    found = {
        "natural": np.array([g.n_effective / k for g in graphs]),
        "agreement": pairwise_agreement(labels),
        "excess": excess,
        "setting": np.array([str(g.setting) for g in graphs]),
        **dict(zip(("ac", "ari"), np.array([scored(references, found, k) for found in labels]).T, strict=True)),
    }
    store.parent.mkdir(parents=True, exist_ok=True)
    np.savez(store, **found)
    return found


def scored(references: np.ndarray, labels: np.ndarray, k: int) -> tuple[float, float]:
    """Accuracy and adjusted Rand index, the best over the references with k classes; noise does not count."""
    rows = [
        (accuracy(y[y > 0], labels[y > 0]), adjusted_rand(y[y > 0], labels[y > 0])) for y in references if y.max() == k
    ]
    return max(ac for ac, _ in rows), max(ari for _, ari in rows)


def chosen(bank: dict[str, Any], constants: Constants = DEFAULT) -> int:
    """The candidate that the rule takes."""
    modularity = bank["natural"] <= constants.natural
    rows = 2 * np.arange(len(modularity)) + ~modularity  # modularity comes first
    agreement = support(bank["agreement"][np.ix_(rows, rows)], constants.share)
    score = agreement - constants.weight * bank["excess"][rows]
    return int(rows[np.argmax(score >= score.max() - 1e-6)])


def share(bank: dict[str, Any], constants: Constants = DEFAULT) -> float:
    """Accuracy of the chosen candidate over that of the best."""
    return float(bank["ac"][chosen(bank, constants)] / bank["ac"].max())


def left_out(banks: list[dict[str, Any]], families: list[str]) -> tuple[np.ndarray, list[Constants]]:
    """Share of the best candidate on each set with constants that the other families chose, and those constants."""
    table = np.array([[share(bank, constants) for constants in GRID] for bank in banks])
    sizes = {family: families.count(family) for family in families}
    weights = np.array([1 / sizes[family] for family in families])
    found, taken = np.zeros(len(banks)), []
    for family in sizes:
        inside = np.array([f == family for f in families])
        best = int(np.argmax(weights[~inside] @ table[~inside]))
        found[inside] = table[inside, best]
        taken.append(GRID[best])
    return found, taken
