"""Drills: data that are one piece, two, or many subspaces, drawn a hundred times each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from _number.nulls import MAKERS
from subspaces import SubspaceClustering
from subspaces.datasets import make_subspaces

ONE = {
    "uniform noise": ("uniform2", "uniform3", "uniform5", "uniform10", "uniform30", "uniform100"),
    "one Gaussian": ("gauss2", "gauss4", "gauss8", "gauss20", "gauss60", "gauss200", "round5", "round20", "round60"),
    "one curved sheet": ("sheet", "roll", "scurve", "sphere"),
    "one subspace": ("subspace2", "subspace4", "subspace8", "noisy3", "noisy6"),
}
UNIONS = "2 to 60 subspaces"
MANY = "10 to 120 subspaces"
FIRST, FIRST_UNION = 10_000, 15_000
"""Seeds of the drills: none of them was seen by a fit, and unions of the first of them were looked at."""


def two_pieces(rng: np.random.Generator, draw: int) -> np.ndarray:
    """Two Gaussians whose centres are eight deviations apart, or two subspaces with little noise."""
    n = rng.integers(40, 250, 2)
    if draw % 2:
        return make_subspaces(2, 3, 20, n.tolist(), noise=0.01, random_state=int(rng.integers(2**31)))[0]
    m = int(rng.choice([2, 5, 20, 60]))
    direction = rng.normal(size=m)
    away = 8 * direction / np.linalg.norm(direction)
    return np.vstack([rng.normal(size=(n[0], m)), rng.normal(size=(n[1], m)) + away])


def many_subspaces(rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Ten to 120 subspaces of two to four dimensions, 20 to 60 points each, with little noise."""
    k, dimension = int(rng.choice([10, 15, 25, 40, 60, 80, 120])), int(rng.integers(2, 5))
    ambient, n, noise = int(rng.choice([30, 60, 120])), int(rng.integers(20, 60)), float(rng.choice([0.01, 0.03, 0.06]))
    return make_subspaces(k, dimension, ambient, n, noise=noise, random_state=int(rng.integers(2**31)))[0], k


def unions(rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Two to 60 subspaces of two to five dimensions, 20 to 70 points each, without noise or with much."""
    k, dimension = int(rng.choice([2, 3, 4, 5, 8, 10, 12, 15, 20, 25, 30, 40, 60])), int(rng.integers(2, 6))
    ambient, n, noise = (
        int(rng.choice([20, 30, 60, 120])),
        int(rng.integers(20, 70)),
        float(rng.choice([0, 0.02, 0.05, 0.1])),
    )
    return make_subspaces(k, dimension, ambient, n, noise=noise, random_state=int(rng.integers(2**31)))[0], k


def drawn(kind: str, n_draws: int) -> Iterator[tuple[np.ndarray, int]]:
    """Points and the number of their clusters."""
    for draw in range(n_draws):
        rng = np.random.default_rng((FIRST_UNION if kind == UNIONS else FIRST) + draw)
        if kind == "two pieces":
            yield two_pieces(rng, draw), 2
        elif kind in (UNIONS, MANY):
            yield unions(rng) if kind == UNIONS else many_subspaces(rng)
        else:
            yield MAKERS[ONE[kind][draw % len(ONE[kind])]](rng, int(rng.choice([60, 120, 250, 500, 900]))), 1


def print_table(n_draws: int, kinds: Sequence[str] = (), say: Callable[[str], None] = print) -> None:
    """How often the right answer is given, nothing set."""
    say("| data | draws | right | found otherwise |\n|---|---|---|---|")
    for kind in kinds or (*ONE, "two pieces", UNIONS, MANY):
        found = [(SubspaceClustering().fit(X).n_clusters_, k) for X, k in drawn(kind, n_draws)]
        wrong = Counter(f"{got}" if kind not in (UNIONS, MANY) else f"{got} of {k}" for got, k in found if got != k)
        others = ", ".join(f"{what}: {count}" for what, count in sorted(wrong.items())) or "none"
        say(f"| {kind} | {n_draws} | {sum(got == k for got, k in found)} | {others} |")
