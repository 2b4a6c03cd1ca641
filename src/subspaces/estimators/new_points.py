"""``predict`` and ``transform``: how a fitted estimator treats points it has not seen."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from subspaces import new_points
from subspaces.embedding.spectral import unit_rows
from subspaces.engine.validation import validated, within_reach
from subspaces.kernels import Kernel
from subspaces.numerics.ties import first_largest
from subspaces.numerics.types import Array, Data, Labels, Sparse
from subspaces.representation.ridge import penalty
from subspaces.scaling import Scaling, apply_scaling

_PREDICT_BYTES = 64 * 2**20  # kernel values between new and training points held at a time


class NewPointsMixin(TransformerMixin):
    """Labels and coordinates of new points from what ``fit`` kept: the training points and their labels."""

    n_nonzero: int | None
    out_of_sample: str
    labels_: Labels
    n_clusters_: int
    penalty_: float | None
    kernel_: Kernel
    coefficients_: Sparse
    affinity_matrix_: Sparse
    isolated_: Labels
    embedding_: Any
    _X: Data
    _largest: float
    _prints: Array | None
    _scaling: Scaling
    _embedding: Array | None
    _network: Any

    def predict(self, X: Any) -> Labels:
        """Label new points with the rule ``out_of_sample``; training points keep their labels.

        Parameters
        ----------
        X : array-like of shape (n_new, m); kernel values to the training points with ``kernel="precomputed"``
        """
        X = self._validated_new(X)
        labels = np.empty(X.shape[0], dtype=np.intp)
        n_lost = 0
        for rows, known in self._new_blocks(X):
            new = rows[known < 0]
            labels[rows[known >= 0]] = self.labels_[known[known >= 0]]
            if len(new):
                points = self._scaled_new(X[new])
                labels[new] = self._label_new(points)
                lost = np.flatnonzero(labels[new] < 0)
                labels[new[lost]] = self.labels_[self._nearest(points[lost])]
                n_lost += len(lost)
        self._say_lost(n_lost)
        return labels

    def transform(self, X: Any) -> Array:
        """Coordinates in the spectral embedding: a training point's own, a new point's from its neighbours.

        A new point lies at the mean of the training points that represent it, weighted by the size of their
        truncated coefficients, scaled to unit length like all rows of the embedding.
        """
        X = self._validated_new(X)
        Y = self.embedding_
        out = np.zeros((X.shape[0], Y.shape[1]), dtype=Y.dtype)
        n_lost = 0
        for rows, known in self._new_blocks(X):
            new = rows[known < 0]
            out[rows[known >= 0]] = Y[known[known >= 0]]
            if len(new):
                points = self._scaled_new(X[new])
                codes = abs(self._codes(points))
                out[new] = unit_rows(codes @ Y)
                lost = np.flatnonzero(codes.sum(axis=1) == 0)
                out[new[lost]] = Y[self._nearest(points[lost])]
                n_lost += len(lost)
        self._say_lost(n_lost)
        return out

    def _validated_new(self, X: Any) -> Data:
        check_is_fitted(self, "labels_")
        return validated(self, X, accept_sparse="csr", dtype=self._X_dtype(), reset=False, ensure_min_samples=0)

    def _X_dtype(self) -> Any:
        return self.affinity_matrix_.dtype if self._X is None else self._X.dtype

    def _new_blocks(self, X: Data) -> list[tuple[Array, Labels]]:
        """Rows of X in blocks of bounded memory, each with the training point it equals (−1: none)."""
        n = len(self.labels_)
        step = self._rows_at_once(n)
        known = (
            np.full(X.shape[0], -1, dtype=np.intp)
            if self._X is None or self._prints is None
            else new_points.find_training_points(X, self._X, self._prints)
        )
        bounds = range(0, X.shape[0], step)
        return [(np.arange(start, min(start + step, X.shape[0])), known[start : start + step]) for start in bounds]

    def _rows_at_once(self, n: int) -> int:
        return max(1, _PREDICT_BYTES // (8 * n))

    def _scaled_new(self, X: Data) -> Data:
        """New points scaled like the training points; none so large that its kernel values overflow."""
        if self._X is not None:
            X = within_reach(X, self._largest)
        return apply_scaling(X, self._scaling)

    def _nearest(self, X: Data) -> Labels:
        """The training point to follow where no coefficient says which: the nearest, or the most similar."""
        if X.shape[0] == 0:
            return np.zeros(0, dtype=np.intp)
        if self._X is None:
            return np.asarray(X.argmax(axis=1), dtype=np.intp)
        return new_points.nearest_points(X, self._scaled_train())

    def _say_lost(self, n_lost: int) -> None:
        if n_lost:
            who = "1 new point has" if n_lost == 1 else f"{n_lost} new points have"
            warnings.warn(
                f"{who} no similarity to any training point: every kernel value is 0. The label is that of the nearest "
                "training point.",
                UserWarning,
                stacklevel=3,
            )

    def _label_new(self, X: Data) -> Labels:
        """Labels by the rule, −1 where it knows none: the point is similar to no training point."""
        if self.n_clusters_ == 1:
            return np.zeros(X.shape[0], dtype=np.intp)
        if self._network is not None:
            return np.asarray(self._network.predict(X), dtype=np.intp)
        if self.out_of_sample == "residual" and self._X is not None:
            scores = new_points.residual_scores(
                self.kernel_.cross(X, self._scaled_train()),
                self._gram_of,
                self.labels_,
                self.n_clusters_,
                self._penalty(),
            )
        else:
            scores = new_points.vote(self._codes(X), self.labels_, self.n_clusters_)
        return np.where(scores.max(axis=1) > 0, first_largest(scores, axis=1), -1).astype(np.intp)

    def _codes(self, X: Data) -> Sparse:
        gram_of = None if self._X is None else self._gram_of
        to_train = np.asarray(X) if self._X is None else self.kernel_.cross(X, self._scaled_train())
        return new_points.neighbor_codes(to_train, gram_of, self._penalty(), self._n_kept() or 5)

    def _n_kept(self) -> int | None:
        """η as it was used, also where it was chosen."""
        kept: int | None = getattr(self, "n_nonzero_", self.n_nonzero)
        return kept

    def _scaled_train(self) -> Data:
        return apply_scaling(self._X, self._scaling)

    def _gram_of(self, members: Array) -> Array:
        assert self._X is not None
        return self.kernel_.gram(apply_scaling(self._X[members], self._scaling))

    def _penalty(self) -> float:
        """λ of the training points' representation; a method without one lends 0.1 times the mean diagonal of K."""
        if self.penalty_ is not None or self._X is None:
            return self.penalty_ or 1.0
        some = np.linspace(0, len(self.labels_) - 1, min(len(self.labels_), 256)).astype(int)
        return penalty(self._gram_of(some).diagonal(), 0.1)
