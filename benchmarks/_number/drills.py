"""Drills: data that are one piece, and data that are two, drawn a hundred times each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
FIRST = 10_000
"""Seeds of the drills: none of them was seen by a fit."""


def two_pieces(rng: np.random.Generator, draw: int) -> np.ndarray:
    """Two Gaussians whose centres are eight deviations apart, or two subspaces with little noise."""
    n = rng.integers(40, 250, 2)
    if draw % 2:
        return make_subspaces(2, 3, 20, n.tolist(), noise=0.01, random_state=int(rng.integers(2**31)))[0]
    m = int(rng.choice([2, 5, 20, 60]))
    direction = rng.normal(size=m)
    away = 8 * direction / np.linalg.norm(direction)
    return np.vstack([rng.normal(size=(n[0], m)), rng.normal(size=(n[1], m)) + away])


def drawn(kind: str, n_draws: int) -> Iterator[np.ndarray]:
    for draw in range(n_draws):
        rng = np.random.default_rng(FIRST + draw)
        if kind == "two pieces":
            yield two_pieces(rng, draw)
        else:
            yield MAKERS[ONE[kind][draw % len(ONE[kind])]](rng, int(rng.choice([60, 120, 250, 500, 900])))


def print_table(n_draws: int, say: Callable[[str], None] = print) -> None:
    """How often the right answer is given, nothing set."""
    say("| data | draws | right | found otherwise |\n|---|---|---|---|")
    for kind in (*ONE, "two pieces"):
        found = np.array([SubspaceClustering().fit(X).n_clusters_ for X in drawn(kind, n_draws)])
        right = 2 if kind == "two pieces" else 1
        wrong = np.unique(found[found != right], return_counts=True)
        others = ", ".join(f"{k}: {count}" for k, count in zip(*wrong, strict=True)) or "none"
        say(f"| {kind} | {n_draws} | {int((found == right).sum())} | {others} |")
