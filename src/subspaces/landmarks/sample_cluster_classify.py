"""Sample, cluster, classify (Algorithm 2): cluster a few landmarks and let a classifier of their labels label the rest.

The clusterer sees δ samples whatever n is; the rest is one pass over the samples. The clusters of several draws are
matched by the classifiers' votes on all landmarks, and the classifiers vote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning

from subspaces.landmarks.points import Points
from subspaces.landmarks.samplers import SAMPLERS, Sampler
from subspaces.metrics import adjusted_rand
from subspaces.representation.new_samples import fit_network
from subspaces.utils.process import warn_caller
from subspaces.utils.progress import Listener, unwatched
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array, Labels

_MIN_MEMBERS = 5  # parts into which classifiers split their data, class by class


@dataclass(frozen=True)
class SampledModel:
    """Hold the labels of all samples and what was learnt from the landmarks (of the reference draw).

    `agreement` is the mean adjusted Rand index between draws, None with a single one. Of a draw, before the other
    samples are classified, `labels` are those of its landmarks.
    """

    labels: Labels
    landmark_indices: Labels
    clusterer: Any
    classifier: Any
    agreement: float | None = None

    def label(self, X: Array) -> Labels:
        """Classify new samples."""
        return predicted(self.classifier, X)


def sample_cluster_classify(
    points: Points,
    stage: Listener = unwatched,
    *,
    clusterer: Any,
    classifier: Any = None,
    n_landmarks: int,
    sampler: str | Sampler = "uniform",
    n_draws: int = 1,
    seed: int = 0,
    first_seed: int = 0,
) -> SampledModel:
    """Cluster δ = `n_landmarks` of the samples and classify the others, by `n_draws` subsets.

    `clusterer` and `classifier` are unfitted; a classifier of None is the paper's network. `sampler` is a name of
    ``SAMPLERS``, or a function like them. `seed` is that of the draws, `first_seed` that of clusterer and classifier of
    the first draw, where these have none.
    """
    n = points.shape[0]
    n_landmarks = min(n_landmarks, n)
    n_draws = n_draws if n_landmarks < n else 1  # nothing is left to chance
    # one stream per draw, so that the first of several draws is the one of a single draw
    streams = np.random.default_rng(seed).spawn(n_draws)
    seeds = [first_seed, *(int(stream.integers(2**31 - 1)) for stream in streams[1:])]
    draws = []
    for rng, own in zip(streams, seeds, strict=True):
        with stage("sample"):
            landmarks = _sampled(points, n_landmarks, sampler, rng)
            A = points.take(landmarks)
        draws.append(_drawn(A, landmarks, clusterer, classifier, own, stage))
    chosen = draws[0]
    if n_draws > 1:
        everyone = np.unique(np.concatenate([draw.landmark_indices for draw in draws]))
        voting = aligned_vote([draw.classifier for draw in draws], points.take(everyone))
        chosen = replace(draws[voting.reference], classifier=voting, agreement=voting.agreement)
    if n_landmarks == n:
        return chosen
    with stage("classify"):
        labels = points.label(partial(predicted, chosen.classifier))
    if n_draws == 1:
        labels[chosen.landmark_indices] = chosen.labels
    return replace(chosen, labels=labels)


def predicted(classifier: Any, X: Array) -> Labels:
    """Return the labels of a classifier as integers."""
    return np.asarray(classifier.predict(X), dtype=np.intp)


def asked(clusterer: Any) -> int:
    """Return the number of clusters that a clusterer was asked for, 0 if it finds the number itself."""
    n_clusters = getattr(clusterer, "n_clusters", None)
    return int(n_clusters) if isinstance(n_clusters, Integral) else 0


def _sampled(points: Points, n_landmarks: int, sampler: str | Sampler, rng: np.random.Generator) -> Labels:
    """Return the rows that a sampler chose; refuse what a user's own sampler must not return."""
    n = points.shape[0]
    if n_landmarks == n:
        return np.arange(n, dtype=np.intp)
    if sampler == "uniform":  # looks at no sample, so none need be scaled
        return SAMPLERS["uniform"](points.order, n_landmarks, rng, points.order)
    if isinstance(sampler, str):
        return SAMPLERS[sampler](points.whole(), n_landmarks, rng, points.order)
    rows = np.asarray(sampler(points.whole(), n_landmarks, rng))
    valid = rows.shape == (n_landmarks,) and rows.dtype.kind in "iu" and rows.min() >= 0 and rows.max() < n
    if not valid or len(np.unique(rows)) < n_landmarks:
        raise ValueError(
            f"sampler must return n_landmarks={n_landmarks} different row numbers between 0 and {n - 1}; "
            f"got {rows!r} of shape {rows.shape}."
        )
    return rows.astype(np.intp)


def _drawn(A: Array, landmarks: Labels, clusterer: Any, classifier: Any, seed: int, stage: Listener) -> SampledModel:
    """Cluster the landmarks A and train a classifier of what was found."""
    with stage("cluster"):
        clusterer = _seeded(clone(clusterer), seed)
        labels = np.asarray(clusterer.fit_predict(A), dtype=np.intp)
    found = len(np.unique(labels[labels >= 0]))
    if found < asked(clusterer):
        warn_caller(
            f"{type(clusterer).__name__} found {counted(found, 'cluster')} among {len(labels)} landmarks instead of "
            f"n_clusters={asked(clusterer)}; a larger n_landmarks may help.",
            ConvergenceWarning,
        )
    with stage("train"):
        known = labels >= 0 if labels.max() >= 0 else labels < 0  # noise teaches nothing
        classifier = _trained(classifier, A[known], labels[known], seed)
    return SampledModel(labels, landmarks, clusterer, classifier)


def _seeded(estimator: Any, seed: int) -> Any:
    """Set the seed of every part of an estimator that has none."""
    names = [name for name, value in estimator.get_params().items() if value is None]
    open_seeds = [name for name in names if name == "random_state" or name.endswith("__random_state")]
    return estimator.set_params(**dict.fromkeys(open_seeds, seed))


def _trained(classifier: Any, X: Array, labels: Labels, seed: int) -> Any:
    """Fit a classifier of landmarks; one that needs several samples of each class gets tiny classes repeated."""
    classes, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if len(classes) == 1:  # most classifiers refuse a single class
        return DummyClassifier().fit(X, labels)
    if classifier is None:
        return fit_network(X, labels, seed)
    classifier = _seeded(clone(classifier), seed)
    try:
        return classifier.fit(X, labels)
    except ValueError:  # early stopping and calibration split the samples of each class
        if sizes.min() >= _MIN_MEMBERS:
            raise
    rows = [np.flatnonzero(codes == code) for code in range(len(classes))]
    repeated = np.concatenate([np.resize(row, max(len(row), _MIN_MEMBERS)) for row in rows])
    return clone(classifier).fit(X[repeated], labels[repeated])


@dataclass(frozen=True)
class AlignedVote:
    """Let classifiers vote that were trained on different clusterings.

    `names` gives, for each classifier, the final cluster of each of its classes; the final clusters have the labels
    `classes_` of the classifier `reference`. `agreement` is the mean adjusted Rand index between two classifiers.
    """

    classifiers: tuple[Any, ...]
    names: tuple[Labels, ...]
    classes_: Array
    reference: int
    agreement: float

    def predict(self, X: Array) -> Array:
        """Return the label of the cluster with most votes for each row of X."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def predict_proba(self, X: Array) -> Array:
        """Average the probabilities of the classifiers, or the plain choices of those that give none."""
        votes = np.zeros((len(X), len(self.classes_)))
        for classifier, names in zip(self.classifiers, self.names, strict=True):
            votes += class_votes(classifier, X) @ np.eye(len(self.classes_))[names]
        return votes / len(self.classifiers)


def aligned_vote(classifiers: Sequence[Any], points: Array) -> AlignedVote:
    """Match the classes of all classifiers by their votes on common samples.

    The reference is the classifier that agrees most with the others (mean adjusted Rand index) among those with most
    classes; the classes of each other one are matched to its.
    """
    votes = [class_votes(classifier, points) for classifier in classifiers]
    labels = [vote.argmax(axis=1) for vote in votes]
    n_classes = np.array([vote.shape[1] for vote in votes])
    rand = np.array([[adjusted_rand(a, b) for b in labels] for a in labels])
    reference = int(np.where(n_classes == n_classes.max(), rand.sum(axis=1), -np.inf).argmax())
    target: Array = np.eye(n_classes[reference])[labels[reference]]
    names = tuple(matched_names(vote, target) for vote in votes)
    agreement = float(rand[~np.eye(len(rand), dtype=bool)].mean())
    return AlignedVote(tuple(classifiers), names, classifiers[reference].classes_, reference, agreement)


def matched_names(votes: Array, target: Array) -> Labels:
    """Return the column of `target` that each column of `votes` is: the matching with most samples in common.

    Columns left over, because `votes` has more, go to the column they share most samples with.
    """
    shared = votes.T @ target
    names = shared.argmax(axis=1)
    rows, columns = linear_sum_assignment(shared, maximize=True)
    names[rows] = columns
    return names.astype(np.intp)


def class_votes(classifier: Any, X: Array) -> Array:
    """Return probabilities of the classes, or indicators of the predicted class if the classifier has none."""
    if hasattr(classifier, "predict_proba"):
        return np.asarray(classifier.predict_proba(X))
    codes = np.searchsorted(classifier.classes_, classifier.predict(X))
    return np.eye(len(classifier.classes_))[codes]
