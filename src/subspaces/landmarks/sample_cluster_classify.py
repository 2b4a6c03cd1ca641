"""Sample, cluster, classify (Algorithm 2): cluster a few landmarks and let a classifier of their labels label the rest.

The clusterer sees δ samples whatever n is; the rest is one pass over the samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning

from subspaces.landmarks.points import Points
from subspaces.representation.new_samples import fit_network
from subspaces.utils.process import warn_caller
from subspaces.utils.progress import Listener, unwatched
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array, Labels

_MIN_MEMBERS = 5  # parts into which classifiers split their data, class by class


@dataclass(frozen=True)
class SampledModel:
    """Hold the labels of all samples and what was learnt from the landmarks."""

    labels: Labels
    landmark_indices: Labels
    clusterer: Any
    classifier: Any

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
    seed: int = 0,
    own_seed: int = 0,
) -> SampledModel:
    """Cluster δ = `n_landmarks` of the samples, drawn uniformly, and classify the others.

    `clusterer` and `classifier` are unfitted; a classifier of None is the paper's network. `seed` is that of the draw,
    `own_seed` that of clusterer and classifier where these have none.
    """
    n = points.shape[0]
    with stage("sample"):
        landmarks = np.arange(n, dtype=np.intp)
        if n_landmarks < n:
            (rng,) = np.random.default_rng(seed).spawn(1)
            landmarks = points.order[rng.choice(n, n_landmarks, replace=False)]
        A = points.take(landmarks)
    with stage("cluster"):
        clusterer = _seeded(clone(clusterer), own_seed)
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
        classifier = _trained(classifier, A[known], labels[known], own_seed)
    if n_landmarks < n:
        with stage("classify"):
            every_label = points.label(partial(predicted, classifier))
        every_label[landmarks] = labels
        labels = every_label
    return SampledModel(labels, landmarks, clusterer, classifier)


def predicted(classifier: Any, X: Array) -> Labels:
    """Return the labels of a classifier as integers."""
    return np.asarray(classifier.predict(X), dtype=np.intp)


def asked(clusterer: Any) -> int:
    """Return the number of clusters that a clusterer was asked for, 0 if it finds the number itself."""
    n_clusters = getattr(clusterer, "n_clusters", None)
    return int(n_clusters) if isinstance(n_clusters, Integral) else 0


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
