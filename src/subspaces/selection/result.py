"""What a search found and why: every trial with its criteria, the winner, the number of clusters with a range."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from subspaces.engine.plan import Plan
from subspaces.engine.run import Cache
from subspaces.estimators import answers
from subspaces.estimators.answers import doubtful
from subspaces.kernels import Kernel, KernelLike
from subspaces.selection.candidates import NEIGHBORS
from subspaces.selection.count import ClusterCount
from subspaces.selection.graphs import Candidate
from subspaces.utils.ordering import hash_rows, rows_of
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array, Data, Labels

_AS_GOOD = 0.98  # share of the winner's score from which a runner-up is worth a word
_TIE = 1e-6
_ALIKE = 0.9  # agreement from which clusters are said to differ a little
_PROBABLY = 1.7  # largest number of the range over the smallest, up to which a number is called probable
_UNCLEAR = 4.0  # and from which it is called unclear
TOO_FEW = 8
"""Points below which nothing can be said about groups: one cluster is not tested against more."""


@dataclass(frozen=True)
class Trial:
    """One setting with its cut, and everything that was measured of it.

    Attributes
    ----------
    scaling, kernel, reg, n_nonzero, affine, assign_labels : the setting; the kernel ``"neighbors"`` is the plain
        graph of so many nearest neighbours
    n_communities : communities of largest modularity of the graph, the number of clusters left free
    n_components : connected components of the graph
    modularity, normalized_cut : of the partition on its own graph
    agreement : mean adjusted Rand index with the third of all partitions that is most like it
    excess : how much more than the best of all partitions it leaves to be explained when a subspace of 3, 4 or 6
        dimensions is fitted to each cluster: mean logarithm of the ratio, 0 for the best
    score : agreement − 0.3 × excess; the largest wins
    """

    scaling: str | None
    kernel: str
    reg: float
    n_nonzero: int | None
    affine: bool
    assign_labels: str
    n_communities: int
    n_components: int
    modularity: float
    normalized_cut: float
    agreement: float = float("nan")
    excess: float = float("nan")
    score: float = float("nan")


@dataclass(frozen=True)
class RunnerUp:
    """The best setting whose clusters are others than the winner's.

    Attributes
    ----------
    trial : the setting
    share : exp of the difference of the scores, 1 where they tie
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
        near = "As good" if self.share > 1 - _TIE else "Nearly as good"
        differ = "differ a little" if self.similarity >= _ALIKE else "differ"
        return f"{near}: {described(self.trial)}; its clusters {differ} (agreement {self.similarity:.2f} of 1)."


class Kept(NamedTuple):
    """Graphs of all settings, the partitions of all trials, and which graph each is of."""

    graphs: list[Candidate]
    partitions: list[Labels]
    of_graph: list[int]


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
    n_samples : samples of the data
    searched : rows the search looked at, all of them or a sample
    labels : the winner's clusters of these rows
    stability : agreement of the winner's partition with those of random parts (80 %) of its graph
    consensus : how far the settings most like the winner put each searched sample into the same cluster, 0 to 1
    seconds : time of the search
    partitions : labels of the searched samples, one row for each trial, where they were asked for
    kept : graphs and partitions, where they were asked for
    graph : that of the winner, where all samples were searched; neither it nor what is `kept` is saved
    """

    parameters: dict[str, Any]
    winner: Trial
    trials: tuple[Trial, ...]
    reason: str
    n_samples: int
    searched: Labels
    labels: Labels
    runner_up: RunnerUp | None = None
    n_clusters: ClusterCount | None = None
    stability: float = float("nan")
    consensus: Array | None = None
    seconds: float = float("nan")
    partitions: Labels | None = None
    kept: Kept | None = field(default=None, repr=False, compare=False)
    graph: Candidate | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without graphs."""
        return {**vars(self), "kept": None, "graph": None}

    def reused(self, plan: Plan, X: Data) -> tuple[Plan, Cache | None]:
        """Return the plan of a fit of the winner, and what the search knows of its results on these very samples."""
        if self.graph is None or self.graph.n_components > (plan.n_clusters or len(self.searched)):
            return plan, None  # pieces are tied by all coefficients, of which the search keeps the largest
        own, cache = self.graph.plan, Cache()
        plan = replace(plan, reserve=own.reserve)
        points = rows_of(X, self.searched, pairwise=own.pairwise).astype(np.float64)
        same = (plan.key("graph"), plan.n_clusters, plan.seed, plan.cut)
        if same == (own.key("graph"), own.n_clusters, own.seed, own.cut) and np.array_equal(
            hash_rows(points), hash_rows(self.graph.X)
        ):
            for stage in ("reserve", "graph", "embedding", "cut"):
                if (found := self.graph.cache.find(own.key(stage))) is not None:
                    cache.put(plan.key(stage), found)
        return plan, cache

    @property
    def verdict(self) -> str:
        """One plain sentence on the number of clusters; ``verdict_`` of the estimator also counts doubtful items."""
        k = int(self.labels.max()) + 1
        if self.n_clusters is None:
            return answers.verdict(k, self.n_samples, asked=k)
        return verdict(self.n_clusters, k, self.n_samples, stability=self.stability)

    def as_rows(self) -> list[dict[str, Any]]:
        """Return all trials as dictionaries, best first."""
        order = sorted(self.trials, key=lambda trial: -np.nan_to_num(trial.score, nan=-np.inf))
        return [asdict(trial) for trial in order]

    def to_pandas(self) -> Any:
        """Return all trials as a pandas DataFrame, best first."""
        import pandas as pd

        return pd.DataFrame(self.as_rows())

    def __repr__(self) -> str:
        return f"Selection({len(self.trials)} trials on {len(self.searched)} of {self.n_samples} points: {self.reason})"


def name_of(kernel: KernelLike) -> str:
    """Return the name of a kernel for tables."""
    if isinstance(kernel, Kernel):
        return kernel.name
    return kernel if isinstance(kernel, str) else str(getattr(kernel, "__name__", "callable"))


def described(trial: Trial) -> str:
    """Return a setting in words."""
    scaling = {
        None: "the data as it is",
        "unit": "unit rows",
        "standard": "standardised features",
        "log": "logarithms of the counts",
    }.get(trial.scaling, f"{trial.scaling} scaling")
    cut = {
        "modularity": "modularity",
        "kmeans": "k-means on eigenvectors",
        "agglomerative": "the strength of ties",
    }.get(trial.assign_labels, trial.assign_labels)
    if trial.kernel == NEIGHBORS:
        return f"graph of the {trial.n_nonzero} nearest neighbours on {scaling}, cut by {cut}"
    kernel = {"rbf": "Gaussian (rbf)"}.get(trial.kernel, trial.kernel)
    kept = "all coefficients" if trial.n_nonzero is None else counted(trial.n_nonzero, "coefficient")
    affine = "affine " if trial.affine else ""
    return f"{affine}{kernel} kernel on {scaling}, reg {trial.reg:g}, {kept} per point, cut by {cut}"


def sentence(winner: Trial, n_settings: int, scaling_reason: str) -> str:
    """Why the winner won, for people; the setting itself, which says more to those who know it, comes last."""
    done = "seen by their logarithms" if winner.scaling == "log" else "standardised"
    extra = f"; features were {done} because {scaling_reason}" if scaling_reason else ""
    setting = f"The setting: {described(winner)}."
    if n_settings == 1:
        return f"There was only one setting to try{extra}. {setting}"
    why = f"Of {n_settings} settings tried, this one came out best, by how its clusters agree with those of the others "
    why += f"({winner.agreement:.2f} of 1)"
    if np.isfinite(winner.excess):
        left = 100 * (np.exp(winner.excess) - 1)
        why += f" and by how subspaces fit them ({'best of all' if left < 1 else f'within {left:.0f} % of the best'})"
    return f"{why}{extra}. {setting}"


def verdict(
    count: ClusterCount, n_clusters: int, n_samples: int = 0, n_doubtful: int = 0, *, stability: float = float("nan")
) -> str:
    """Say in plain words what a search with the number left open found.

    Parameters
    ----------
    count : how the number was found
    n_clusters : clusters of the answer
    n_samples, n_doubtful : items, and those whose label is more probably wrong than right
    stability : agreement of the answer with those for random parts of the graph, NaN where it is not known
    """
    doubt, groups = doubtful(n_doubtful, n_samples), counted(n_clusters, "group")
    if count.untested:
        return f"{counted(n_samples, 'item is', 'items are')} too few to tell whether there are groups."
    if count.otherwise is not None:
        return f"Perhaps no groups: the data look much like one cloud. If there are any, perhaps {count.otherwise}."
    if n_clusters == 1:
        return "No groups: the data look like one cloud."
    if count.evidence == "steady":
        agreed, of = (stability, "over resamples") if np.isfinite(stability) else (count.agreed, "between settings")
        parts = f"its steadiest division has {n_clusters} parts (agreement {agreed:.2f} {of})"
        return f"No gap between groups: one continuous cloud; {parts}{doubt}."
    span = f" ({count.low} to {count.high})" if count.low < count.high else ""
    if count.high > _UNCLEAR * count.low:
        coarse, fine = count.low, count.high
        return f"Groups exist, but their number is not clear: {coarse} coarse, {fine} fine; shown are {groups}{doubt}."
    how = "Probably" if count.high <= _PROBABLY * count.low else "Perhaps"
    return f"{how} {groups}{span}{doubt}."
