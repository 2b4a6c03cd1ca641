"""What a search found and why: every trial with its criteria, the winner, the number of clusters with a range."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from subspaces.kernels import Kernel, KernelLike
from subspaces.numerics.types import Array, Labels

_AS_GOOD = 0.98  # share of the winner's score from which a runner-up is worth a word
_TIE = 1e-6


@dataclass(frozen=True)
class Trial:
    """One setting with its cut, and everything that was measured of it.

    Attributes
    ----------
    scaling, kernel, reg, n_nonzero, partition : the setting
    n_communities : communities of largest modularity of the graph, the number of clusters left free
    n_components : connected components of the graph
    eigengap : step of the Laplacian's eigenvalues after the n_clusters-th (nan where none were computed)
    leave_one_out : mean squared error of a point's representation by the others, divided by the mean diagonal of K
    modularity, normalized_cut : of the partition on its own graph
    ceiling : the modularity of these clusters without any edge between them
    agreement : mean adjusted Rand index with the most similar partitions of other settings (nan for a cut that was
        dropped because the other cut of the same graph was better)
    score : agreement² × modularity / ceiling (at least 0.3); the largest wins
    """

    scaling: str | None
    kernel: str
    reg: float
    n_nonzero: int | None
    partition: str
    n_communities: int
    n_components: int
    eigengap: float
    leave_one_out: float
    modularity: float
    ceiling: float
    normalized_cut: float
    agreement: float = float("nan")
    score: float = float("nan")


@dataclass(frozen=True)
class ClusterCount:
    """The number of clusters read off the graphs of all settings.

    Attributes
    ----------
    estimate, low, high : the number and its range
    candidates : numbers looked at
    agreement : how well the settings agree when all are cut into that many clusters, one value per candidate
    score : agreement × (1 − normalised cut); the largest gives the estimate
    communities : number of communities of largest modularity, one value per graph
    eigenvalues : smallest eigenvalues of the normalised Laplacian of the graph that decided
    """

    estimate: int
    low: int
    high: int
    candidates: Labels
    agreement: Array
    score: Array
    communities: Labels
    eigenvalues: Array


@dataclass(frozen=True)
class RunnerUp:
    """The best setting whose clusters are others than the winner's.

    Attributes
    ----------
    trial : the setting
    share : its score divided by the winner's
    similarity : adjusted Rand index between the two partitions
    """

    trial: Trial
    share: float
    similarity: float

    @property
    def is_as_good(self) -> bool:
        """Whether the scores are so near that either could be the answer."""
        return self.share >= _AS_GOOD

    def __str__(self) -> str:
        near = (
            "As good" if self.share > 1 - _TIE else f"Nearly as good (score {100 * self.share:.1f} % of the winner's)"
        )
        other = f"It finds other clusters: adjusted Rand index {self.similarity:.2f} with these."
        return f"{near}: {described(self.trial)}. {other}"


@dataclass(frozen=True)
class Selection:
    """Result of :func:`subspaces.selection.choose`.

    Attributes
    ----------
    parameters : settled value of every parameter that was ``"auto"``
    winner : the winning :class:`Trial`
    trials : all of them, in the order tried
    reason : one sentence why the winner won
    runner_up : the best setting with other clusters, None where all settings agree; ``runner_up.is_as_good`` says that
        the data does not decide between the two
    n_clusters : how the number of clusters was found, or None where it was given
    n_points : points of the data
    searched : rows the search looked at, all of them or a sample
    stability : agreement of the winner's partition with those of random parts (80 %) of its graph
    seconds : time of the search
    partitions : labels of the searched points, one row for each trial, where they were asked for
    """

    parameters: dict[str, Any]
    winner: Trial
    trials: tuple[Trial, ...]
    reason: str
    n_points: int
    searched: Labels
    runner_up: RunnerUp | None = None
    n_clusters: ClusterCount | None = None
    stability: float = float("nan")
    seconds: float = float("nan")
    partitions: Labels | None = None

    def as_rows(self) -> list[dict[str, Any]]:
        """All trials as dictionaries, best first, those that were dropped last."""
        order = sorted(self.trials, key=lambda trial: -np.nan_to_num(trial.score, nan=-1.0))
        return [asdict(trial) for trial in order]

    def to_pandas(self) -> Any:
        """All trials as a pandas DataFrame, best first."""
        import pandas as pd

        return pd.DataFrame(self.as_rows())

    def __repr__(self) -> str:
        return f"Selection({len(self.trials)} trials on {len(self.searched)} of {self.n_points} points: {self.reason})"


def name_of(kernel: KernelLike) -> str:
    """Name of a kernel for tables."""
    if isinstance(kernel, Kernel):
        return kernel.name
    return kernel if isinstance(kernel, str) else str(getattr(kernel, "__name__", "callable"))


def described(trial: Trial) -> str:
    """A setting in words."""
    scaling = {None: "the data as it is", "unit": "unit rows", "standard": "standardised features"}.get(
        trial.scaling, f"{trial.scaling} scaling"
    )
    cut = {"modularity": "modularity", "kmeans": "k-means on eigenvectors"}.get(trial.partition, trial.partition)
    kept = "all" if trial.n_nonzero is None else trial.n_nonzero
    return f"{trial.kernel} kernel on {scaling}, reg {trial.reg:g}, {kept} coefficients per point, cut by {cut}"


def sentence(winner: Trial, n_settings: int, scaling_reason: str) -> str:
    """Why the winner won, for people."""
    what = described(winner)
    if n_settings == 1:
        return f"{what}: the only setting there was to try."
    why = (
        f"of {n_settings} settings, this one's partition is best confirmed by the others (adjusted Rand index "
        f"{winner.agreement:.2f} with those most like it) and fits its graph (modularity {winner.modularity:.2f})"
    )
    extra = f"; features were standardised because {scaling_reason}" if scaling_reason else ""
    return f"{what}: {why}{extra}."
