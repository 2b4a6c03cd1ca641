"""Sample, cluster, classify: cluster a few landmarks and let a classifier label the rest."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from subspaces.estimators.ktrr import KTRR
from subspaces.estimators.large import LargeClusterer
from subspaces.landmarks.samplers import SAMPLERS, Sampler
from subspaces.landmarks.voting import aligned_vote
from subspaces.new_points import fit_network
from subspaces.numerics.types import Array, Labels
from subspaces.scaling import apply_scaling

FRAMEWORK = "Peng, Tang, Zhang, Yi, Xiao: A unified framework for representation-based subspace, TNNLS 27 (2016)"
_MIN_MEMBERS = 5  # parts into which classifiers split their data, class by class


class Draw(NamedTuple):
    """One sample: row numbers of the landmarks, the clusterer fitted on them and a classifier of their labels."""

    landmarks: Labels
    clusterer: Any
    labels: Labels
    classifier: Any


@dataclass(eq=False, repr=False, kw_only=True)
class Sampled(LargeClusterer):
    """Algorithm 2 with any parts. A subclass says which: ``_new_clusterer`` and ``_new_classifier``."""

    n_landmarks: int = 1000
    sampler: str | Sampler = "uniform"
    n_draws: int = 1

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LargeClusterer._parameter_constraints,
        "n_landmarks": [Interval(Integral, 2, None, closed="left")],
        "sampler": [StrOptions(set(SAMPLERS)), callable],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
    }
    _block_bytes: ClassVar[int] = 4 * 2**20  # stays in cache from scaling to label

    def _new_clusterer(self) -> Any:
        raise NotImplementedError

    def _new_classifier(self) -> Any:
        """The unfitted classifier; None is the paper's network."""
        return None

    def _cluster_unscaled(self, X: Array) -> Labels:
        clusterer = self._new_clusterer()
        n_landmarks = self._checked_landmarks(clusterer, len(X))
        n_draws = self.n_draws if n_landmarks < len(X) else 1  # nothing is left to chance
        first_seed = int(self.random_state if isinstance(self.random_state, Integral) else self._seed)
        # one stream per draw, so that the first of several draws is the one of a single draw
        streams = np.random.default_rng(self._seed).spawn(n_draws)
        seeds = [first_seed, *(int(stream.integers(2**31 - 1)) for stream in streams[1:])]
        draws = [self._draw(X, n_landmarks, clusterer, rng, seed) for rng, seed in zip(streams, seeds, strict=True)]

        reference = 0
        self.classifier_ = draws[0].classifier
        if n_draws > 1:
            landmarks = np.unique(np.concatenate([draw.landmarks for draw in draws]))
            points = apply_scaling(X[landmarks], self._scaling)
            self.classifier_ = aligned_vote([draw.classifier for draw in draws], points)
            reference, self.agreement_ = self.classifier_.reference, self.classifier_.agreement
        self.landmarks_, self.clusterer_, labels_of_landmarks, _ = draws[reference]
        if hasattr(self.clusterer_, "n_iter_"):
            self.n_iter_ = self.clusterer_.n_iter_
        if n_landmarks == len(X):
            return labels_of_landmarks
        with self._timed("classify"):
            labels = self._label_blocks(X)
        if n_draws == 1:
            labels[self.landmarks_] = labels_of_landmarks
        return labels

    def _label_new(self, X: Array) -> Labels:
        return np.asarray(self.classifier_.predict(X), dtype=np.intp)

    def _draw(self, X: Array, n_landmarks: int, clusterer: Any, rng: np.random.Generator, seed: int) -> Draw:
        with self._timed("sample"):
            landmarks = self._sample(X, n_landmarks, rng)
            A = apply_scaling(X[landmarks], self._scaling)
        with self._timed("cluster"):
            clusterer = _seeded(clone(clusterer), seed)
            labels = np.asarray(clusterer.fit_predict(A), dtype=np.intp)
        self._warn_if_fewer(clusterer, labels)
        with self._timed("train"):
            known = labels >= 0 if labels.max() >= 0 else labels < 0  # noise teaches nothing
            classifier = _trained(self._new_classifier(), A[known], labels[known], seed)
        return Draw(landmarks, clusterer, labels, classifier)

    def _sample(self, X: Array, n_landmarks: int, rng: np.random.Generator) -> Labels:
        if n_landmarks == len(X):
            return np.arange(len(X), dtype=np.intp)
        if self.sampler == "uniform":  # looks at no point, so none need be scaled
            return SAMPLERS["uniform"](X, n_landmarks, rng, self._order)
        return self._drawn(apply_scaling(X, self._scaling), n_landmarks, rng)

    def _drawn(self, X: Array, n_landmarks: int, rng: np.random.Generator) -> Labels:
        if isinstance(self.sampler, str):
            return SAMPLERS[self.sampler](X, n_landmarks, rng, self._order)
        return _checked_rows(self.sampler(X, n_landmarks, rng), n_landmarks, len(X))

    def _checked_landmarks(self, clusterer: Any, n: int) -> int:
        n_clusters = _asked(clusterer)
        if self.n_landmarks < n_clusters:
            raise ValueError(
                f"n_landmarks={self.n_landmarks} must not be smaller than n_clusters={n_clusters}: "
                "each cluster needs a landmark, better some dozens of them."
            )
        return min(self.n_landmarks, n)

    def _warn_if_fewer_found(self) -> None:
        """Nothing to add: each draw has said so."""

    def _warn_if_fewer(self, clusterer: Any, labels: Labels) -> None:
        asked, found = _asked(clusterer), len(np.unique(labels[labels >= 0]))
        if found < asked:
            warnings.warn(
                f"{type(clusterer).__name__} found {found} clusters among {len(labels)} landmarks instead of "
                f"n_clusters={asked}; a larger n_landmarks may help.",
                ConvergenceWarning,
                stacklevel=6,
            )


def _checked_rows(rows: Any, n_landmarks: int, n: int) -> Labels:
    """What a sampler returned, if it is what a sampler must return."""
    rows = np.asarray(rows)
    valid = rows.shape == (n_landmarks,) and rows.dtype.kind in "iu" and rows.min() >= 0 and rows.max() < n
    if not valid or len(np.unique(rows)) < n_landmarks:
        raise ValueError(
            f"sampler must return n_landmarks={n_landmarks} different row numbers between 0 and {n - 1}; "
            f"got {rows!r} of shape {rows.shape}."
        )
    return rows.astype(np.intp)


def _asked(clusterer: Any) -> int:
    """Clusters a clusterer was asked for, 0 if it finds the number itself."""
    n_clusters = getattr(clusterer, "n_clusters", None)
    return int(n_clusters) if isinstance(n_clusters, Integral) else 0


def _seeded(estimator: Any, seed: int) -> Any:
    """Give every part of an estimator that would draw its seed by chance this one."""
    names = [name for name, value in estimator.get_params().items() if value is None]
    open_seeds = [name for name in names if name == "random_state" or name.endswith("__random_state")]
    return estimator.set_params(**dict.fromkeys(open_seeds, seed))


def _trained(classifier: Any, X: Array, labels: Labels, seed: int) -> Any:
    """Fit a classifier of landmarks; one that needs several points of each class gets tiny classes repeated."""
    classes, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if len(classes) == 1:  # most classifiers refuse a single class
        return DummyClassifier().fit(X, labels)
    if classifier is None:
        return fit_network(X, labels, seed)
    classifier = _seeded(clone(classifier), seed)
    try:
        return classifier.fit(X, labels)
    except ValueError:  # early stopping and calibration split the points of each class
        if sizes.min() >= _MIN_MEMBERS:
            raise
    rows = [np.flatnonzero(codes == code) for code in range(len(classes))]
    repeated = np.concatenate([np.resize(row, max(len(row), _MIN_MEMBERS)) for row in rows])
    return clone(classifier).fit(X[repeated], labels[repeated])


@dataclass(eq=False, repr=False, kw_only=True)
class SampledClusterer(Sampled):
    """Sample, cluster, classify: makes any clusterer linear in n.

    Some points, the landmarks, are clustered; a classifier learns their labels and gives all other points theirs. Time
    and memory of the clusterer depend on `n_landmarks` alone, the rest is one pass over the points.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters, handed to the clusterer. None leaves the clusterer as it is.
    clusterer : scikit-learn clusterer or None, default=None
        Anything with ``fit_predict``; it is cloned. None is :class:`~subspaces.KTRR`. Landmarks it calls noise (−1)
        stay noise and do not train the classifier.
    classifier : scikit-learn classifier or None, default=None
        Anything with ``fit`` and ``predict``; it is cloned. None is the paper's network with 10 hidden units.
    n_landmarks : int, default=1000
        δ, points that are clustered. With as many as there are points the labels are the clusterer's own.
    sampler : {"uniform", "kmeans++", "leverage", "exemplars"} or callable, default="uniform"
        How landmarks are chosen (:mod:`subspaces.landmarks.samplers`); a callable takes X, `n_landmarks` and a
        :class:`numpy.random.Generator` and returns row numbers.
    n_draws : int, default=1
        Samples drawn. With several, each is clustered and classified, the names of the clusters are matched to those
        of the draw that agrees most with the others, and the classifiers vote with their probabilities.
    scaling : {None, "unit", "max", "minmax", "standard"}, default=None
        Scaling of the input, settled on all points, seen by clusterer and classifier.
    random_state : int, RandomState or None, default=0
        Seed of the sample, and of clusterer and classifier where these have none of their own.

    Attributes
    ----------
    labels_ : array of shape (n,)
        The landmarks' labels are the clusterer's; with several draws every label is the vote's.
    n_clusters_ : number of clusters found
    landmarks_ : row numbers of the landmarks (of the reference draw)
    clusterer_ : the clusterer fitted on them
    classifier_ : what labels new points
    agreement_ : mean adjusted Rand index between draws, only with several
        How much the result depends on chance: near 0, a vote has nothing to agree on and other parameters are needed.
    timings_ : seconds of sampling, clustering, training and classifying

    Examples
    --------
    >>> from sklearn.cluster import SpectralClustering
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from subspaces.estimators.sampled import SampledClusterer
    >>> X, y = make_moons(20_000, noise=0.05, random_state=0)
    >>> clusterer = SpectralClustering(2, gamma=20)
    >>> model = SampledClusterer(clusterer=clusterer, classifier=KNeighborsClassifier()).fit(X)
    >>> max((model.labels_ == y).mean(), (model.labels_ != y).mean()) > 0.99
    np.True_
    """

    n_clusters: int | None = field(default=None, kw_only=False)  # type: ignore[assignment]
    clusterer: Any = None
    classifier: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Sampled._parameter_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "clusterer": [HasMethods("fit_predict"), None],
        "classifier": [HasMethods(["fit", "predict"]), None],
    }
    cost: ClassVar[str] = "the clusterer on n_landmarks points, the classifier on all"
    reference: ClassVar[str] = FRAMEWORK

    def _new_clusterer(self) -> Any:
        clusterer = KTRR(random_state=None) if self.clusterer is None else clone(self.clusterer)
        if self.n_clusters is None:
            return clusterer
        if "n_clusters" not in clusterer.get_params(deep=False):
            raise ValueError(
                f"n_clusters={self.n_clusters} needs a clusterer with a parameter of that name, which "
                f"{type(clusterer).__name__} has not: set the number there and leave n_clusters=None."
            )
        return clusterer.set_params(n_clusters=self.n_clusters)

    def _new_classifier(self) -> Any:
        return self.classifier
