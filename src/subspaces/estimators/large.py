"""What the methods for many points share: validation, scaling, seeds, and labels of new points."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from subspaces.engine.validation import Versioned, label_of_most_copies, validated, warn_of_bad_numbers, within_reach
from subspaces.estimators.explain import ExplainMixin
from subspaces.estimators.html_repr import JourneyMixin
from subspaces.kernels import as_kernel
from subspaces.new_points import fingerprints
from subspaces.numerics.blocks import row_blocks
from subspaces.numerics.ordering import canonical_order, inverse_of, rows_of
from subspaces.numerics.types import Array, Labels
from subspaces.scaling import SCALINGS, apply_scaling, fit_scaling
from subspaces.selection import AUTO

_MAX_SEED = 2**31 - 1


@dataclass(eq=False, repr=False)
class LargeClusterer(ExplainMixin, JourneyMixin, ClusterMixin, Versioned, BaseEstimator):
    """Base of the methods whose cost is linear in n.

    A subclass gives ``_cluster`` (scaled points → labels) and ``_label_new`` (scaled new points → labels); everything
    it learns it keeps in attributes that end in an underscore or are listed in ``_state``.
    """

    n_clusters: int = 8
    _: KW_ONLY
    scaling: str | None = None
    random_state: Any = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "scaling": [StrOptions(set(SCALINGS)), None],
        "random_state": ["random_state"],
    }
    _block_bytes: ClassVar[int] = 64 * 2**20
    """Size of the blocks of points that ``predict`` scales and labels at a time."""
    _state: ClassVar[tuple[str, ...]] = ()
    """Private attributes of a fit, forgotten before the next."""
    cost: ClassVar[str]
    """What a fit costs, in a few words; listed by ``subspaces methods`` like `reference`."""
    reference: ClassVar[str]

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, m)
        y : ignored
        """
        self._forget()
        try:
            return self._fit(X)
        except BaseException:  # an error or Ctrl-C leaves an unfitted estimator, not half of one
            self._forget()
            raise

    def _fit(self, X: Any) -> Self:
        X = validated(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        if self.n_clusters is not None and self.n_clusters > len(X):
            raise ValueError(f"n_clusters={self.n_clusters} must not exceed the number of points, n_samples={len(X)}.")
        self._seed = int(check_random_state(self.random_state).randint(_MAX_SEED))
        self.timings_: dict[str, float] = {}
        self._dtype, self._largest = X.dtype, float(max(-X.min(), X.max()))
        self._scaling = fit_scaling(X, self.scaling, units=self._sees_units())
        if self.n_clusters == 1 or _all_equal(X):
            self.labels_ = self._one_cluster(len(X))
        else:
            warn_of_bad_numbers(X, self.scaling)
            prints = fingerprints(X)
            self._order = canonical_order(X, prints)
            found = np.asarray(self._cluster_unscaled(X), dtype=np.intp)
            self.labels_ = label_of_most_copies(found, prints)
            self._moved = _moved(found, self.labels_)
            del self._order
        self.n_clusters_ = int(np.count_nonzero(np.bincount(self.labels_ + 1)[1:]))  # -1 is noise, no cluster
        self._warn_if_fewer_found()
        return self

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> Labels:
        """Cluster the rows of X and return their labels."""
        return self.fit(X).labels_

    def predict(self, X: Any) -> Labels:
        """Label new points, block by block."""
        check_is_fitted(self, "labels_")
        X = validated(self, X, dtype=self._dtype, reset=False, ensure_min_samples=0)
        if self.n_clusters_ <= 1:
            return np.full(len(X), self.labels_.max(), dtype=np.intp)
        labels = self._label_blocks(within_reach(X, self._largest))
        for empty, instead in self._moved.items():
            labels[labels == empty] = instead
        return labels

    def _label_blocks(self, X: Array) -> Labels:
        """Scale and label points block by block, so that no scaled copy of all of them exists."""
        labels = np.empty(len(X), dtype=np.intp)
        for start, stop in row_blocks(len(X), X.shape[1] * X.itemsize, self._block_bytes):
            labels[start:stop] = self._label_new(apply_scaling(X[start:stop], self._scaling))
        return labels

    def _cluster_unscaled(self, X: Array) -> Labels:
        """Cluster all points, scaled and in canonical order; a method that needs only a few of them replaces this."""
        return self._cluster(apply_scaling(rows_of(X, self._order), self._scaling))[inverse_of(self._order)]

    def _cluster(self, X: Array) -> Labels:
        raise NotImplementedError

    def _label_new(self, X: Array) -> Labels:
        raise NotImplementedError

    @contextmanager
    def _timed(self, leg: str) -> Iterator[None]:
        """Add the seconds of a leg to ``timings_``."""
        start = time.perf_counter()
        yield
        self.timings_[leg] = self.timings_.get(leg, 0.0) + time.perf_counter() - start

    def _sees_units(self) -> bool:
        """Whether a common factor of all points matters to the kernel; to none of those that "auto" tries it does."""
        kernel = getattr(self, "kernel", AUTO)
        return not (isinstance(kernel, str) and kernel == AUTO) and as_kernel(kernel).sees_units

    def _forget(self) -> None:
        private = ("_seed", "_dtype", "_largest", "_scaling", "_order", "_moved", *self._state)
        for name in [name for name in vars(self) if name.endswith("_") or name in private]:
            delattr(self, name)

    def _warn_if_fewer_found(self) -> None:
        if self.n_clusters is not None and 1 < self.n_clusters_ < self.n_clusters:
            warnings.warn(
                f"{self.n_clusters_} clusters found instead of n_clusters={self.n_clusters}: too few points differ, or "
                "too few landmarks stand for them.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _one_cluster(self, n: int) -> Labels:
        if self.n_clusters not in (1, None):
            warnings.warn(
                f"all {n} points are equal: 1 cluster found instead of n_clusters={self.n_clusters}.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return np.zeros(n, dtype=np.intp)


def _all_equal(X: Array) -> bool:
    """Whether all rows are equal; ordinary data shows in its first block that they are not."""
    return all((X[0] == X[start:stop]).all() for start, stop in row_blocks(len(X), X.shape[1] * X.itemsize))


def _moved(found: Labels, kept: Labels) -> dict[int, int]:
    """Clusters that consisted of other clusters' copies alone, and where most of these went: ``predict`` follows."""
    empty = np.setdiff1d(found, kept)
    return {int(label): int(np.bincount(kept[found == label] + 1).argmax()) - 1 for label in empty}
