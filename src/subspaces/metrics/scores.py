"""How well do the labels of a clustering agree with known classes: every score from one contingency table.

Each score takes ``(labels_true, labels_pred)`` like scikit-learn's: two array-likes of shape (n_samples,)
(arrays, lists, Series) of integers, strings or any hashable labels, and returns a float. The names of the
clusters and the order of the points never matter. A label −1 (noise, for some methods) is a label like
any other: its points form one cluster. The table costs one pass over the points, whatever the scores.

No points, missing labels (NaN, NaT, None) and lengths that differ raise a ValueError. Where a formula
reads 0/0 the score is 1 if both labellings are the same partition (one cluster against one class, a
single point, each point on its own twice) and 0 otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from subspaces.metrics.tables import Contingency, Encoded, encode, match, tabulate, with_new_names
from subspaces.utils import tabular
from subspaces.utils.types import Array

Average: TypeAlias = Literal["max", "arithmetic", "geometric", "min"]

CONSTANT = "constant label"
"""Row of a score table that puts all points into one cluster: what a score gives for no work at all."""


def contingency(labels_true: ArrayLike, labels_pred: ArrayLike) -> Contingency:
    """Count the points that each class and each cluster share.

    The counts are dense up to `DENSE_CELLS` cells and a ``csr_array`` above: O(n) memory in any case.

    Examples
    --------
    >>> table = contingency(["cat", "cat", "dog"], [5, 7, 7])
    >>> table.counts
    array([[1, 1],
           [0, 1]])
    >>> table.classes, table.clusters
    (array(['cat', 'dog'], dtype='<U3'), array([5, 7]))
    """
    return tabulate(encode(labels_true, "labels_true"), encode(labels_pred, "labels_pred"))


def accuracy(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Share of points labelled correctly under the best one-to-one naming of clusters (the paper's AC).

    max over matchings π of Σ_b n_{π(b) b} / n, symmetric. With more clusters than classes, the points of
    the clusters left over count as errors, unlike in `purity`.

    Examples
    --------
    >>> accuracy([0, 0, 1, 1], ["b", "b", "a", "c"])
    0.75
    """
    return _accuracy(contingency(labels_true, labels_pred))


def best_matching(labels_true: ArrayLike, labels_pred: ArrayLike) -> Array:
    """Rename the clusters after the classes that `accuracy` matches them with.

    Returns
    -------
    ndarray of shape (n_samples,)
        `labels_pred` in the names of `labels_true`; the share of equal entries is the accuracy. Clusters
        left over, or matched with a class they share no point with, get new names in the order of their
        old ones: numbers count on from the largest class (as int64 or float64), for other labels
        "unmatched 1", "unmatched 2", …. Without such clusters the dtype of the classes stays.

    Examples
    --------
    >>> best_matching([1, 1, 2, 2, 2], [0, 0, 9, 9, 4])
    array([1, 1, 2, 2, 3])
    """
    true, pred = encode(labels_true, "labels_true"), encode(labels_pred, "labels_pred")
    rows, columns = match(tabulate(true, pred))
    unmatched = np.setdiff1d(np.arange(len(pred.values)), columns)
    names = with_new_names(true.values, unmatched.size)
    name_of = np.empty(len(pred.values), dtype=np.intp)
    name_of[columns], name_of[unmatched] = rows, len(true.values) + np.arange(unmatched.size)
    renamed: Array = names[name_of][pred.codes]
    return renamed


def normalized_mutual_info(labels_true: ArrayLike, labels_pred: ArrayLike, average: Average = "max") -> float:
    """Mutual information of classes and clusters, divided by an average of their two entropies (NMI).

    The default is not scikit-learn's: the field's usual MATLAB routine (Cai's ``MutualInfo``) divides by
    the larger entropy, and the KTRR paper's figures fit that. On the same labels "arithmetic"
    (scikit-learn) and "geometric" (other MATLAB programs) give higher values.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Classes and clusters of the same points; the score is symmetric in them.
    average : {"max", "arithmetic", "geometric", "min"}, default="max"
        Average of the two entropies to divide by.

    Examples
    --------
    >>> round(normalized_mutual_info([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]), 6)
    0.42062
    >>> round(normalized_mutual_info([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2], average="arithmetic"), 6)
    0.515804
    """
    return _normalized_mutual_info(contingency(labels_true, labels_pred), average)


def adjusted_rand(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Rand index adjusted for chance (ARI, Hubert and Arabie 1985).

    1 for the same partition, 0 on average for random labels, possibly negative; symmetric.

    Examples
    --------
    >>> round(adjusted_rand([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]), 6)
    0.242424
    """
    return _pair_scores(contingency(labels_true, labels_pred))["ari"]


def pairwise_f_score(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Harmonic mean of `pairwise_precision` and `pairwise_recall` (the paper's F-score); symmetric.

    Not adjusted for chance: a constant label on L large balanced classes scores about 2 / (L + 1).

    Examples
    --------
    >>> round(pairwise_f_score([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]), 6)
    0.444444
    """
    return _pair_scores(contingency(labels_true, labels_pred))["f_score"]


def pairwise_precision(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Share of the pairs within clusters that also lie within a class.

    Examples
    --------
    >>> round(pairwise_precision([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]), 6)
    0.666667
    """
    return _pair_scores(contingency(labels_true, labels_pred))["precision"]


def pairwise_recall(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Share of the pairs within classes that also lie within a cluster.

    Examples
    --------
    >>> round(pairwise_recall([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]), 6)
    0.333333
    """
    return _pair_scores(contingency(labels_true, labels_pred))["recall"]


def purity(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Share of points that belong to the largest class of their cluster; not symmetric.

    It grows with the number of clusters, up to 1 when each point is its own: never read it as accuracy.

    Examples
    --------
    >>> purity([0, 0, 1, 1], [0, 1, 2, 3]), accuracy([0, 0, 1, 1], [0, 1, 2, 3])
    (1.0, 0.5)
    """
    return _purity(contingency(labels_true, labels_pred))


def clustering_scores(labels_true: ArrayLike, labels_pred: ArrayLike) -> dict[str, float]:
    """All scores of one labelling from one table; NMI is divided by the larger entropy.

    Examples
    --------
    >>> list(clustering_scores([0, 0, 1, 1], [1, 1, 0, 0]))
    ['accuracy', 'nmi', 'ari', 'f_score', 'precision', 'recall', 'purity']
    """
    return _scores(contingency(labels_true, labels_pred))


@dataclass(frozen=True)
class ScoreTable:
    """Scores of several labellings: `rows` as fractions, ``str(table)`` as plain text in percent."""

    rows: dict[str, dict[str, float]]

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return a copy of the rows, as fractions."""
        return {name: dict(scores) for name, scores in self.rows.items()}

    def to_markdown(self) -> str:
        """Return the table as Markdown, in percent."""
        header, *body = self._cells()
        return tabular.markdown(header, body)

    def to_latex(self) -> str:
        """Return the table as LaTeX, in percent; plain ``tabular``, no package is needed."""
        cells = [[tabular.escape(cell) for cell in row] for row in self._cells()]
        return tabular.tabular(f"l||{'r' * (len(cells[0]) - 1)}", cells[0], cells[1:])

    def to_pandas(self) -> Any:
        """Return the table as a DataFrame, as fractions: rows are labellings, columns scores."""
        return tabular.pandas().DataFrame.from_dict(self.rows, orient="index")

    def __str__(self) -> str:
        return tabular.aligned(self._cells())

    def _cells(self) -> list[list[str]]:
        # "z" prints a tiny negative ARI as 0.0, not -0.0
        body = [[name, *(f"{100 * s:z.1f}" for s in scores.values())] for name, scores in self.rows.items()]
        return [["%", *self.rows[CONSTANT]], *body]


def score_table(labels_true: ArrayLike, labels_pred: ArrayLike | Mapping[str, ArrayLike]) -> ScoreTable:
    """Compare labellings with the classes, and with putting all points into one cluster (last row).

    `labels_pred` maps names to labellings; a single labelling gets the name "labels".

    Examples
    --------
    >>> print(score_table([0, 0, 1, 1], {"halves": [1, 1, 0, 0]}))
    %               accuracy    nmi    ari  f_score  precision  recall  purity
    halves             100.0  100.0  100.0    100.0      100.0   100.0   100.0
    constant label      50.0    0.0    0.0     50.0       33.3   100.0    50.0
    """
    single = not isinstance(labels_pred, Mapping)
    named: Any = {"labels": labels_pred} if single else labels_pred
    if CONSTANT in named:
        raise ValueError(f"labels_pred must not name a row {CONSTANT!r}, every table adds its own: rename it")
    true = encode(labels_true, "labels_true")
    tables = {}
    for name, labels in named.items():
        argument = "labels_pred" if single else f"labels_pred[{name!r}]"
        tables[str(name)] = tabulate(true, encode(labels, argument))
    tables[CONSTANT] = tabulate(true, Encoded(np.zeros(1, np.intp), np.zeros_like(true.codes), CONSTANT))
    return ScoreTable({name: _scores(table) for name, table in tables.items()})


def _accuracy(table: Contingency) -> float:
    return int(table.counts[match(table)].sum()) / int(table.counts.sum())


def _purity(table: Contingency) -> float:
    return int(table.counts.max(axis=0).sum()) / int(table.counts.sum())


def _pair_scores(table: Contingency) -> dict[str, float]:
    """Scores from the pairs of points that lie together in both labellings, only in one, in neither."""
    counts = table.counts
    both = _n_pairs(table.cells()[2])
    in_classes, in_clusters = _n_pairs(counts.sum(axis=1)), _n_pairs(counts.sum(axis=0))
    n_samples = int(counts.sum())
    all_pairs = n_samples * (n_samples - 1) // 2
    if both == in_classes == in_clusters:
        return dict.fromkeys(("ari", "f_score", "precision", "recall"), 1.0)
    # (both − expected) / (mean − expected), expected = in_classes in_clusters / all_pairs, in whole numbers
    expected = in_classes * in_clusters
    return {
        "ari": 2 * (both * all_pairs - expected) / ((in_classes + in_clusters) * all_pairs - 2 * expected),
        "f_score": 2 * both / (in_classes + in_clusters),
        "precision": both / in_clusters if in_clusters else 0.0,
        "recall": both / in_classes if in_classes else 0.0,
    }


def _n_pairs(sizes: Array) -> int:
    """Σ s (s − 1) / 2 as a Python integer: products of pair counts exceed int64 from n = 10^5 on."""
    exact = sizes.astype(object if sizes.sum() >= 2**31 else np.int64)  # below, the squares fit int64
    return int((exact * (exact - 1)).sum()) // 2


def _normalized_mutual_info(table: Contingency, average: Average) -> float:
    rows, columns, counts = table.cells()
    n_samples = float(table.counts.sum())
    classes, clusters = (table.counts.sum(axis=axis).astype(np.float64) for axis in (1, 0))
    # fsum: the result does not depend on the order of the labels, and the same partition gives exactly 1
    ratio = counts * n_samples / (classes[rows] * clusters[columns])
    information = math.fsum((counts / n_samples * np.log(ratio)).tolist())
    entropies = [math.fsum((sizes / n_samples * np.log(n_samples / sizes)).tolist()) for sizes in (classes, clusters)]
    averages = {
        "max": max(entropies),
        "arithmetic": sum(entropies) / 2,
        "geometric": math.sqrt(entropies[0] * entropies[1]),
        "min": min(entropies),
    }
    if average not in averages:
        raise ValueError(f"average must be one of {', '.join(averages)}, got {average!r}")
    if len(classes) == len(clusters) == 1:
        return 1.0
    return min(1.0, max(0.0, information) / averages[average]) if min(entropies) > 0 else 0.0


def _scores(table: Contingency) -> dict[str, float]:
    scores = {"accuracy": _accuracy(table), "nmi": _normalized_mutual_info(table, "max")}
    scores |= _pair_scores(table) | {"purity": _purity(table)}
    return {score.name: scores[score.name] for score in SCORES}


@dataclass(frozen=True)
class Score:
    """A score and its names; of every score here, more is better and 1 is perfect.

    Attributes
    ----------
    name : key in `clustering_scores`
    title : as printed
    function : of ``(labels_true, labels_pred)``
    paper : the KTRR paper's abbreviation, where it has the score
    """

    name: str
    title: str
    function: Callable[[ArrayLike, ArrayLike], float]
    paper: str = ""


SCORES = (
    Score("accuracy", "accuracy", accuracy, "AC"),
    Score("nmi", "NMI", normalized_mutual_info, "NMI"),
    Score("ari", "ARI", adjusted_rand, "ARI"),
    Score("f_score", "f-score", pairwise_f_score, "F"),
    Score("precision", "precision", pairwise_precision),
    Score("recall", "recall", pairwise_recall),
    Score("purity", "purity", purity),
)
"""Every score against known classes, in the order of all tables."""

PAPER_SCORES = {score.paper: score.name for score in SCORES if score.paper}
"""The scores of the KTRR paper's tables: abbreviation and name."""
