"""Motion segmentation: error of every method on the sequences of Hopkins155 that are at hand.

    SUBSPACES_DATA=folder OMP_NUM_THREADS=1 python benchmarks/motion.py        # and docs/measured/motion.json

One setting for all sequences and each method; the number of motions is given. Seconds are those of one processor. The
second table is the evidence for the setting of TRR: each of two halves of the videos (sequences that are parts of one
video stay together) chooses from a grid, and the other half judges. So do they for what the search tries on tracks.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans

import measured
from subspaces import KTRR, LRR2, LSA, LSR1, LSR2, SC, SMCE, SSC, SSCOMP, TRR, EnSC, SubspaceClustering
from subspaces.metrics import accuracy
from subspaces.selection.criteria import support
from subspaces.selection.search import _EXCESS_WEIGHT, _TIE, _excess
from subspaces.selection.trajectories import are_tracks
from subspaces.spectral.agreement import pairwise_agreement

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
FOLDER = Path(os.environ.get("SUBSPACES_DATA") or BESIDE)
RANK = {"graph": "dscnet", "graph_params": {"subspace_dim": 3, "share": 1.0, "power": 6}}
RIDGE = {"affine": True, "scaling": None, "reg": 0.002, **RANK}
AUTHORS = {"affine": True, "error_weight": 800, "scaling": None, "graph_params": {"share": 0.7}}
DIMENSIONS, REGS, POWERS = (3, 4), (0.0005, 0.001, 0.002, 0.004), (4, 5, 6, 7, 8)
SEARCHED = (  # dimensions, λ and powers that a search might try: all combinations of one of each
    ((3,), (4,), (3, 4)),
    ((0.002,), (0.0005, 0.002), (0.001, 0.004), (0.001, 0.002, 0.004), REGS),
    ((6,), (4, 8), (4, 6, 8), (5, 6, 7), POWERS),
)
Setting = tuple[int, float, float]


class Video(NamedTuple):
    """A sequence: its tracks and their motions."""

    name: str
    X: np.ndarray
    y: np.ndarray

    @property
    def n_motions(self) -> int:
        """Number of motions."""
        return len(np.unique(self.y))

    @property
    def source(self) -> str:
        """The video that this is a part of."""
        return re.sub(r"_g\d+$", "", self.name)


def with_constant(X: np.ndarray) -> np.ndarray:
    """Homogeneous coordinates, by which a method of linear subspaces sees affine ones."""
    return np.column_stack([X, np.ones(len(X))])


METHODS: dict[str, tuple[Callable[[int], Any], Callable[[np.ndarray], np.ndarray] | None]] = {
    "SubspaceClustering, nothing but the number": (lambda k: SubspaceClustering(k), None),
    "the same, effort fast": (lambda k: SubspaceClustering(k, effort="fast"), None),
    "the same, effort thorough": (lambda k: SubspaceClustering(k, effort="thorough"), None),
    "TRR, affine, rank 3 a motion": (lambda k: TRR(k, **RIDGE), None),
    "KTRR (linear), the same": (lambda k: KTRR(k, kernel="linear", **RIDGE), None),
    "LSR1, the same": (lambda k: LSR1(k, **RIDGE), None),
    "LSR2, the same": (lambda k: LSR2(k, **RIDGE), None),
    "LSR2, affine, row space": (lambda k: LSR2(k, affine=True, scaling=None, reg=0.002, graph="row_space"), None),
    "TRR, affine, defaults but λ": (lambda k: TRR(k, affine=True, reg=0.01), None),
    "TRR, not affine, the same λ": (lambda k: TRR(k, reg=0.01), None),
    "LRR2, authors' λ and post-processing": (lambda k: LRR2(k, scaling=None, error_weight=4), None),
    "LRR2, the same with a constant": (lambda k: LRR2(k, scaling=None, error_weight=4), with_constant),
    "SSC, authors' setting and program": (lambda k: SSC(k, solver="admm", tol=2e-4, **AUTHORS), None),
    "SSC, authors' setting, at the minimum": (lambda k: SSC(k, **AUTHORS), None),
    "EnSC, with a constant": (lambda k: EnSC(k, error_weight=800), with_constant),
    "SSC-OMP, with a constant": (lambda k: SSCOMP(k, offset=1.0), None),
    "LSA, projected to 4 a motion": (lambda k: LSA(k, rank=4 * k), None),
    "SMCE": (lambda k: SMCE(k), None),
    "spectral clustering": (lambda k: SC(k), None),
    "k-means": (lambda k: KMeans(k, n_init=20, random_state=0), None),
}
"""Estimator for a number of motions, and what is done to the tracks before."""


def main() -> None:
    """Print both tables."""
    warnings.simplefilter("ignore")
    path = FOLDER / "hopkins155_part.npz"
    if not path.exists():
        raise SystemExit(f"{path} is not there: set SUBSPACES_DATA to the folder that holds it")
    with np.load(path) as found:
        names = sorted(name[:-2] for name in found.files if name.endswith("_X"))
        videos = [Video(name, found[f"{name}_X"].astype(np.float64), found[f"{name}_y"]) for name in names]
    print(f"{sum(are_tracks(video.X) for video in videos)} of {len(videos)} videos are recognised.\n")
    with measured.kept("motion", folders=measured.SEARCH):
        print(table(videos))
    found = {setting: labels_of(videos, partial(trr, *setting)) for setting in product(DIMENSIONS, REGS, POWERS)}
    print(judged(videos, found))
    print()
    print(searched(videos, found))


def table(videos: list[Video]) -> str:
    """Mean and median error, error by number of motions, and seconds a sequence, of every method."""
    numbers = np.array([video.n_motions for video in videos])
    heads = [f"{k} motions ({(numbers == k).sum()})" for k in np.unique(numbers)]
    lines = ["| method | mean | median | " + " | ".join(heads) + " | CPU s |", "|---" * (4 + len(heads)) + "|"]
    for name, (make, prepare) in METHODS.items():
        start = process_time()
        wrong = errors(videos, make, prepare)
        seconds = (process_time() - start) / len(videos)
        parts = [wrong.mean(), np.median(wrong), *(wrong[numbers == k].mean() for k in np.unique(numbers))]
        lines.append(f"| {name} | " + " | ".join(f"{part:.2f}" for part in parts) + f" | {seconds:.3f} |")
    return "\n".join(lines)


def errors(
    videos: list[Video], make: Callable[[int], Any], prepare: Callable[[np.ndarray], np.ndarray] | None = None
) -> np.ndarray:
    """Percentage of tracks that are in a wrong cluster, of each video."""
    return wrong_of(videos, labels_of(videos, make, prepare))


def labels_of(
    videos: list[Video], make: Callable[[int], Any], prepare: Callable[[np.ndarray], np.ndarray] | None = None
) -> list[np.ndarray]:
    """Clusters of the tracks of each video."""
    return [make(video.n_motions).fit_predict(video.X if prepare is None else prepare(video.X)) for video in videos]


def wrong_of(videos: list[Video], labels: list[np.ndarray]) -> np.ndarray:
    """Percentage of tracks that are in a wrong cluster, of each video."""
    return np.array([100 * (1 - accuracy(video.y, found)) for video, found in zip(videos, labels, strict=True)])


def first_half(videos: list[Video]) -> np.ndarray:
    """Which sequences are of the first half of the videos."""
    sources = sorted({video.source for video in videos})
    return np.array([sources.index(video.source) % 2 == 0 for video in videos])


def judged(videos: list[Video], labels: dict[Setting, list[np.ndarray]]) -> str:
    """Error of TRR over the dimension of a motion, λ and the power, and on the half that did not choose them."""
    found = {setting: wrong_of(videos, clusters) for setting, clusters in labels.items()}
    lines = ["| dimension, λ \\ power | " + " | ".join(map(str, POWERS)) + " |", "|---" * (1 + len(POWERS)) + "|"]
    for dimension, reg in product(DIMENSIONS, REGS):
        row = [found[dimension, reg, power].mean() for power in POWERS]
        lines.append(f"| {dimension}, {reg:g} | " + " | ".join(f"{value:.2f}" for value in row) + " |")
    for dimensions in (DIMENSIONS[:1], DIMENSIONS):
        settings = list(product(dimensions, REGS, POWERS))
        chosen, wrong = left_out(videos, {setting: found[setting] for setting in settings})
        words = "; ".join(f"dimension {d}, λ {reg:g}, power {power}" for d, reg, power in chosen)
        of = f"{len(settings)} settings of dimension {' or '.join(map(str, dimensions))}"
        lines.append(f"\nChosen by one half from {of} ({words}), judged by the other: {wrong:.2f} %.")
    return "\n".join(lines)


def left_out(videos: list[Video], found: dict[Any, np.ndarray]) -> tuple[list[Any], float]:
    """What each half of the videos would choose, and its mean error on the other half."""
    first, wrong, chosen = first_half(videos), 0.0, []
    for chooses in (first, ~first):
        chosen.append(min(found, key=lambda choice, on=chooses: found[choice][on].mean()))
        wrong += found[chosen[-1]][~chooses].sum() / len(videos)
    return chosen, wrong


def searched(videos: list[Video], labels: dict[Setting, list[np.ndarray]]) -> str:
    """Error of a search whose rule chooses for each video among several settings: how much hangs on which are tried."""
    found = {}
    for tried in product(*SEARCHED):
        settings = list(product(*tried))
        if len(settings) >= 3:
            picked = [by_rule(video, [labels[s][i] for s in settings]) for i, video in enumerate(videos)]
            found[tried] = wrong_of(videos, picked)
    means = np.array([wrong.mean() for wrong in found.values()])
    chosen, wrong = left_out(videos, found)
    first = first_half(videos)
    halves = [found[SEARCHED[0][0], (0.001, 0.002, 0.004), (4, 6, 8)][part].mean() for part in (first, ~first)]
    return (
        f"{len(found)} sets of settings to search in: mean error {means.mean():.2f} %, {means.min():.2f} to "
        f"{means.max():.2f}. Chosen by one half ({'; '.join(map(str, chosen))}), judged by the other: {wrong:.2f} %. "
        f"The package's: {halves[0]:.2f} % on one half and {halves[1]:.2f} % on the other."
    )


def by_rule(video: Video, partitions: list[np.ndarray]) -> np.ndarray:
    """The partition that the search would take."""
    score = support(pairwise_agreement(partitions)) - _EXCESS_WEIGHT * _excess(video.X, partitions)
    return partitions[int(np.argmax(score >= score.max() - _TIE))]


def trr(dimension: int, reg: float, power: float, n_motions: int) -> TRR:
    """TRR with another dimension, λ and power."""
    rank = {"subspace_dim": dimension, "share": 1.0, "power": power}
    return TRR(n_motions, **{**RIDGE, "reg": reg, "graph_params": rank})


if __name__ == "__main__":
    main()
