"""Compare labels with known classes: scores, all from one contingency table; beside it tests and tables.

Each score takes ``(labels_true, labels_pred)`` like scikit-learn's: two array-likes of shape (n_samples,) (arrays,
lists, Series) of integers, strings or other labels that can be sorted, and returns a float. Neither the names of the
clusters nor the order of the samples matter. A label −1 (noise, for some methods) is a label like any other.

No samples, missing labels (NaN, NaT, None) and lengths that differ raise a ValueError. Where a formula reads 0/0 the
score is 1 if both labellings are the same partition (one cluster against one class, a single sample, each sample on its
own twice) and 0 otherwise. ARI and NMI are scikit-learn's up to rounding: numbers of pairs are divided once, as Python
integers, and sums of logarithms do not depend on the order of the labels, so that the same partition scores exactly 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from subspaces.metrics.tables import Table
from subspaces.utils import memory
from subspaces.utils.types import Array, Labels

Average: TypeAlias = Literal["max", "arithmetic", "geometric", "min"]

CONSTANT = "constant label"
"""Row of a score table that puts all samples into one cluster: what a score gives for no work at all."""

_FEW_CELLS = 2**20


class Contingency(NamedTuple):
    """Counts of shape (n_classes, n_clusters), a csr_array, and the distinct labels of both sides, sorted."""

    counts: Any
    classes: Array
    clusters: Array

    def matching(self) -> tuple[Labels, Labels]:
        """Return rows and columns of the one-to-one matching that keeps most samples, without empty cells."""
        k, m = self.counts.shape
        if k * m > _FEW_CELLS:
            memory.require(16 * k * m, f"the matching of {k} classes with {m} clusters", "Score fewer of them.")
        counts = self.counts.toarray()
        rows, columns = linear_sum_assignment(counts, maximize=True)
        shared = counts[rows, columns] > 0
        return rows[shared], columns[shared]


class _Encoded(NamedTuple):
    """Labels as codes: sample i has the label ``values[codes[i]]``, and every value occurs."""

    values: Array
    codes: Labels
    argument: str


def _encode(labels: ArrayLike, argument: str) -> _Encoded:
    """Number the distinct labels from 0."""
    array = np.asarray(labels)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{argument} must be one-dimensional and not empty, got shape {array.shape}")
    for label in labels if isinstance(labels, list | tuple) else array.tolist() if array.dtype.kind in "OfmM" else ():
        # Only NaN and its like differ from themselves; pandas.NA answers neither True nor False
        if label is None or type(label).__name__ == "NAType" or label != label:
            problem = f"{argument} must not hold missing labels, got {label!r}"
            raise ValueError(f"{problem}: drop those samples or give them a label such as -1")
    return _Encoded(*np.unique(array, return_inverse=True), argument)


def _tabulate(true: _Encoded, pred: _Encoded) -> Contingency:
    n_samples, shape = len(true.codes), (len(true.values), len(pred.values))
    if n_samples != len(pred.codes):
        raise ValueError(
            f"{true.argument} and {pred.argument} must label the same samples, "
            f"got lengths {n_samples} and {len(pred.codes)}"
        )
    ones = np.ones(n_samples, dtype=np.int64)
    counts = sparse.coo_array((ones, (true.codes, pred.codes)), shape=shape).tocsr()
    return Contingency(counts, true.values, pred.values)


def contingency(labels_true: ArrayLike, labels_pred: ArrayLike) -> Contingency:
    """Count the samples that each class and each cluster share.

    Examples
    --------
    >>> table = contingency(["cat", "cat", "dog"], [5, 7, 7])
    >>> table.counts.toarray()
    array([[1, 1],
           [0, 1]])
    >>> table.classes, table.clusters
    (array(['cat', 'dog'], dtype='<U3'), array([5, 7]))
    """
    return _tabulate(_encode(labels_true, "labels_true"), _encode(labels_pred, "labels_pred"))


def best_matching(labels_true: ArrayLike, labels_pred: ArrayLike) -> Array:
    """Rename the clusters after the classes that `accuracy` matches them with.

    Returns
    -------
    ndarray of shape (n_samples,)
        `labels_pred` in the names of `labels_true`; the share of equal entries is the accuracy. Clusters
        left over, or matched with a class they share no sample with, get new names in the order of their
        old ones: numbers count on from the largest class, other labels are "unmatched 1", "unmatched 2", ….

    Examples
    --------
    >>> best_matching([1, 1, 2, 2, 2], [0, 0, 9, 9, 4])
    array([1, 1, 2, 2, 3])
    """
    true, pred = _encode(labels_true, "labels_true"), _encode(labels_pred, "labels_pred")
    rows, columns = _tabulate(true, pred).matching()
    unmatched = np.setdiff1d(np.arange(len(pred.values)), columns)
    names = _with_new_names(true.values, unmatched.size)
    name_of = np.empty(len(pred.values), dtype=np.intp)
    name_of[columns], name_of[unmatched] = rows, len(true.values) + np.arange(unmatched.size)
    renamed: Array = names[name_of][pred.codes]
    return renamed


def _with_new_names(classes: Array, n_new: int) -> Array:
    """Append names that no class has: numbers above the largest, or words."""
    if n_new == 0:
        return classes
    if classes.dtype.kind in "biuf":
        return np.concatenate([classes, math.floor(classes.max()) + np.arange(1, n_new + 1)])
    new = np.array([f"unmatched {i + 1}" for i in range(n_new)])
    return np.concatenate([classes, new], dtype=np.str_ if classes.dtype.kind == "U" else np.object_)


def accuracy(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Return the share of samples labelled correctly under the best one-to-one naming of clusters (the paper's AC).

    max over matchings π of Σ_b n_{π(b) b} / n, symmetric. With more clusters than classes, the samples of
    the clusters left over count as errors, unlike in `purity`.

    Examples
    --------
    >>> accuracy([0, 0, 1, 1], ["b", "b", "a", "c"])
    0.75
    """
    return _accuracy(contingency(labels_true, labels_pred))


def _accuracy(table: Contingency) -> float:
    return int(table.counts[table.matching()].sum()) / int(table.counts.sum())


def purity(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Return the share of samples that belong to the largest class of their cluster; not symmetric.

    It grows with the number of clusters, up to 1 when each sample is its own: never read it as accuracy.

    Examples
    --------
    >>> purity([0, 0, 1, 1], [0, 1, 2, 3]), accuracy([0, 0, 1, 1], [0, 1, 2, 3])
    (1.0, 0.5)
    """
    return _purity(contingency(labels_true, labels_pred))


def _purity(table: Contingency) -> float:
    return int(table.counts.max(axis=0).sum()) / int(table.counts.sum())


def adjusted_rand(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Return the Rand index adjusted for chance (ARI, Hubert and Arabie 1985).

    1 for the same partition, 0 on average for random labels, possibly negative; symmetric.
    """
    return _pair_scores(contingency(labels_true, labels_pred))["ari"]


def pairwise_f_score(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Return the harmonic mean of `pairwise_precision` and `pairwise_recall` (the paper's F-score); symmetric.

    Not adjusted for chance: a constant label on L large balanced classes scores about 2 / (L + 1).
    """
    return _pair_scores(contingency(labels_true, labels_pred))["f_score"]


def pairwise_precision(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Return the share of the pairs within clusters that also lie within a class."""
    return _pair_scores(contingency(labels_true, labels_pred))["precision"]


def pairwise_recall(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Return the share of the pairs within classes that also lie within a cluster."""
    return _pair_scores(contingency(labels_true, labels_pred))["recall"]


def _pair_scores(table: Contingency) -> dict[str, float]:
    """Return scores from scikit-learn's ``pair_confusion_matrix``: ordered pairs of samples together in both, in one.

    In Python integers, because products of numbers of pairs exceed int64 from 10^5 samples on.
    """
    counts, n = table.counts, int(table.counts.sum())
    squares = int((counts.data**2).sum())
    both = squares - n
    only_class, only_cluster = (int((counts.sum(axis=axis) ** 2).sum()) - squares for axis in (1, 0))
    neither = n * n - n - both - only_class - only_cluster
    if only_class == only_cluster == 0:
        return dict.fromkeys(("ari", "f_score", "precision", "recall"), 1.0)
    in_classes, in_clusters = both + only_class, both + only_cluster
    span = in_classes * (only_class + neither) + in_clusters * (only_cluster + neither)
    return {
        "ari": 2 * (both * neither - only_class * only_cluster) / span,
        "f_score": 2 * both / (in_classes + in_clusters),
        "precision": both / in_clusters if in_clusters else 0.0,
        "recall": both / in_classes if in_classes else 0.0,
    }


def normalized_mutual_info(labels_true: ArrayLike, labels_pred: ArrayLike, average: Average = "max") -> float:
    """Return the mutual information of classes and clusters, divided by an average of their two entropies (NMI).

    The default is not scikit-learn's: the field's usual MATLAB routine (Cai's ``MutualInfo``) divides by
    the larger entropy, and the KTRR paper's figures fit that. On the same labels "arithmetic"
    (scikit-learn) and "geometric" (other MATLAB programs) give higher values.

    Examples
    --------
    >>> round(normalized_mutual_info([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]), 6)
    0.42062
    >>> round(normalized_mutual_info([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2], average="arithmetic"), 6)
    0.515804
    """
    return _normalized_mutual_info(contingency(labels_true, labels_pred), average)


def _normalized_mutual_info(table: Contingency, average: Average) -> float:
    cells = sparse.coo_array(table.counts)
    n_samples = float(cells.sum())
    classes, clusters = (table.counts.sum(axis=axis).astype(np.float64) for axis in (1, 0))
    # fsum: the result does not depend on the order of the labels, and the same partition gives exactly 1
    ratio = cells.data * n_samples / (classes[cells.row] * clusters[cells.col])
    information = math.fsum((cells.data / n_samples * np.log(ratio)).tolist())
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


class Score(NamedTuple):
    """A score: its key in `clustering_scores`, title, function and the KTRR paper's abbreviation, where it has one.

    Of every score here, more is better and 1 is perfect.
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


def clustering_scores(labels_true: ArrayLike, labels_pred: ArrayLike) -> dict[str, float]:
    """Compute all scores of one labelling from one table; NMI is divided by the larger entropy.

    Examples
    --------
    >>> list(clustering_scores([0, 0, 1, 1], [1, 1, 0, 0]))
    ['accuracy', 'nmi', 'ari', 'f_score', 'precision', 'recall', 'purity']
    """
    return _scores(contingency(labels_true, labels_pred))


def _scores(table: Contingency) -> dict[str, float]:
    scores = {"accuracy": _accuracy(table), "nmi": _normalized_mutual_info(table, "max"), "purity": _purity(table)}
    scores |= _pair_scores(table)
    return {score.name: scores[score.name] for score in SCORES}


@dataclass(frozen=True)
class ScoreTable:
    """Scores of several labellings: `rows` as fractions, ``str(table)`` as plain text in percent."""

    rows: dict[str, dict[str, float]]

    def __str__(self) -> str:
        # "z" prints a tiny negative ARI as 0.0, not -0.0
        rows = [[name, *(f"{100 * s:z.1f}" for s in scores.values())] for name, scores in self.rows.items()]
        return str(Table(["%", *self.rows[CONSTANT]], rows))


def score_table(labels_true: ArrayLike, labels_pred: ArrayLike | Mapping[str, ArrayLike]) -> ScoreTable:
    """Compare labellings with the classes, and with putting all samples into one cluster (last row).

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
    true = _encode(labels_true, "labels_true")
    rows = {}
    for name, labels in {**named, CONSTANT: np.zeros_like(true.codes)}.items():
        pred = _encode(labels, "labels_pred" if single else f"labels_pred[{name!r}]")
        rows[str(name)] = _scores(_tabulate(true, pred))
    return ScoreTable(rows)
