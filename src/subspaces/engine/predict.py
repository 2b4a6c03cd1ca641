"""What a run leaves for new samples: their labels and coordinates, from the training samples or from landmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from subspaces.engine.run import FitResult
from subspaces.engine.validation import within_reach
from subspaces.graphs.affinity import edge_distances, fence
from subspaces.kernels import Kernel
from subspaces.kernels.scaling import Scaling, apply_scaling
from subspaces.landmarks.points import BLOCK_BYTES, label_blocks
from subspaces.representation import new_samples
from subspaces.representation.ridge import penalty
from subspaces.spectral.embedding import unit_rows
from subspaces.utils.blocks import row_blocks
from subspaces.utils.cells import Cells
from subspaces.utils.ordering import distinct_rows, first_largest, rows_of
from subspaces.utils.process import warn_caller
from subspaces.utils.types import Array, Data, Labels, Sparse

_BEYOND = 10.0  # times the largest training value beyond which nothing is known
_CODED = 5  # coefficients of a new sample where the method keeps all
_PREDICT_BYTES = 64 * 2**20  # new samples, or their kernel values with the training samples, held at a time
_WIDTH = 128  # numbers held per new sample, at least: its candidates, its code, the values of a sparse one


class Model(Protocol):
    """What a method that looks at all samples through landmarks has learnt."""

    labels: Labels
    """Clusters of the points it was fitted on."""

    def label(self, X: Array) -> Labels:
        """Return clusters of other samples, in the same units."""


@dataclass(frozen=True)
class ByModel:
    """New samples of a method with landmarks.

    `moved` are clusters that were left empty, and where their samples went.
    """

    dtype: Any
    largest: float
    scaling: Scaling
    model: Model | None
    moved: dict[int, int]
    only: int = 0
    block_bytes: int = BLOCK_BYTES

    def label(self, X: Array) -> Labels:
        """Return clusters of new samples, block by block."""
        if self.model is None:
            return np.full(len(X), self.only, dtype=np.intp)
        labels = label_blocks(within_reach(X, self.largest), self.scaling, self.model.label, self.block_bytes)
        for empty, instead in self.moved.items():
            labels[labels == empty] = instead
        return labels


@dataclass(frozen=True)
class ByTrainingPoints:
    """New samples of a method with a graph: training samples keep what they have, others follow those near them."""

    X: Data | None  #: the training samples; None where only their kernel matrix was given
    row_hashes: Array | None
    dtype: Any
    largest: float
    scaling: Scaling
    kernel: Kernel
    penalty: float | None
    labels: Labels
    n_clusters: int
    n_nonzero: int | None  #: η
    rule: str  #: a name in ``subspaces.representation.new_samples.RULES``
    cells: Cells | None = None  #: in which nearest training samples are looked for; None where all are compared
    network: Any = None  #: the classifier of ``rule="network"``
    affine: bool = False  #: coefficients sum to one

    def label(self, X: Data) -> Labels:
        """Return clusters of new samples; training samples keep theirs."""
        return self._of_points(X, self.labels.astype(np.intp, copy=False), self._label)

    def embed(self, X: Data, Y: Array) -> Array:
        """Return coordinates of new samples in the embedding Y of the training samples."""
        return self._of_points(X, Y, lambda points, train: unit_rows(abs(self.codes(points, train)) @ Y))

    def memberships(self, X: Data, known: Array, W: Sparse) -> Array:
        """Return the mean of the `known` memberships of the training samples that represent each new one.

        Weighted by the sizes of their coefficients, and the less of it the further these training samples are: all of
        it within the fence of the lengths of the edges of W, the graph of the training samples, and ten times their
        largest value, whatever the scaling makes of that; then falling as one over the distance, to all clusters alike.
        """
        train = self._train()
        reach = np.inf if train is None else fence(edge_distances(W, train))

        def of_new(points: Data, train: Data) -> Array:
            codes = abs(self.codes(points, train))
            mean = (codes @ known) / codes.sum(axis=1)[:, None]
            if train is None:
                return mean
            with np.errstate(divide="ignore"):
                near = np.minimum(1, reach / edge_distances(codes, points, train))[:, None]
            return near * mean + (1 - near) / self.n_clusters

        found = self._of_points(X, known, of_new)
        if train is None:
            return found
        size = np.concatenate([_sizes(X[start:stop]) for start, stop in row_blocks(X.shape[0], 8 * X.shape[1])])
        with np.errstate(divide="ignore"):
            near = np.minimum(1, _BEYOND * self.largest / size)[:, None]
        found *= near
        found += (1 - near) / self.n_clusters
        return found

    def _of_points(self, X: Data, known: Array, of_new: Callable[[Data, Data], Array]) -> Array:
        """Return what is known of training samples; of new ones what `of_new` says, some rows at a time."""
        out = np.zeros((X.shape[0], *known.shape[1:]), dtype=known.dtype)
        train = self._train()
        place = np.full(X.shape[0], -1, dtype=np.intp)
        if self.X is not None and self.row_hashes is not None:
            place = new_samples.find_training_points(X, self.X, self.row_hashes)
        out[place >= 0] = known[place[place >= 0]]
        width = _WIDTH if sparse.issparse(X) else max(_WIDTH, X.shape[1])
        new = np.flatnonzero(place < 0)
        for start, stop in row_blocks(len(new), 8 * width, _PREDICT_BYTES):
            points = X[new[start:stop]]
            if train is not None:  # none so large that its kernel values overflow
                points = apply_scaling(within_reach(points, self.largest), self.scaling)
            out[new[start:stop]] = of_new(points, train)
        return out

    def codes(self, X: Data, train: Data) -> Sparse:
        """Return truncated coefficients of scaled new samples over the training samples, CSR of shape (n_new, n).

        Where these are all zero, the nearest (or most similar) training sample stands for the new one.
        """
        n_kept, n = self.n_nonzero or _CODED, len(self.labels)
        if train is None:
            codes = new_samples.strongest_values(np.asarray(X), n_kept)
        else:
            # copies would take the places of other candidates; the cells have none
            hashes = self.row_hashes if self.cells is None else None
            rows = np.arange(n) if hashes is None else distinct_rows(hashes).rows
            codes = new_samples.neighbor_codes(
                X,
                train if len(rows) == n else train[rows],
                self.kernel,
                self._penalty(),
                n_kept,
                affine=self.affine,
                cells=self.cells,
                by_direction=self.penalty is not None,
            )
            codes = sparse.csr_array((codes.data, rows[codes.indices], codes.indptr), shape=(X.shape[0], n))
        lost = np.flatnonzero(np.diff(codes.indptr) == 0)
        if len(lost) == 0:
            return codes
        nearest = self._nearest(X[lost], train)
        return codes + sparse.csr_array((np.ones(len(lost)), (lost, nearest)), shape=(X.shape[0], n))

    def _label(self, X: Data, train: Data) -> Labels:
        """Return labels by the rule."""
        if self.n_clusters == 1:
            return np.zeros(X.shape[0], dtype=np.intp)
        if self.network is not None:
            return np.asarray(self.network.predict(X), dtype=np.intp)
        if self.rule == "residual" and train is not None:
            blocks = row_blocks(X.shape[0], 8 * len(self.labels), _PREDICT_BYTES)
            return np.concatenate([self._by_residual(X[start:stop], train) for start, stop in blocks])
        return first_largest(new_samples.vote(self.codes(X, train), self.labels, self.n_clusters), axis=1)

    def _by_residual(self, X: Data, train: Data) -> Labels:
        """Return the cluster that represents each new sample best; the nearest sample's where none does at all."""
        to_train = self.kernel.cross(X, train)
        found = (self.labels, self.n_clusters, self._penalty(), self.affine)
        scores = new_samples.residual_scores(to_train, lambda members: self.kernel.gram(train[members]), *found)
        # about the mean sample a score of any sign says something, unless the sample is out of the kernel's reach
        known = to_train.any(axis=1) | (not self.kernel.of_distances) if self.affine else scores.max(axis=1) > 0
        labels: Labels = first_largest(scores, axis=1)
        lost = np.flatnonzero(~known)
        if len(lost):
            labels[lost] = self.labels[self._nearest(X[lost], train)]
        return labels

    def _nearest(self, X: Data, train: Data) -> Labels:
        """Return the training sample to follow where nothing says which: the nearest, or the most similar one."""
        who = "1 new point has" if X.shape[0] == 1 else f"{X.shape[0]} new points have"
        warn_caller(
            f"{who} no similarity to any training point: every kernel value is 0. The label is that of the nearest "
            "training point."
        )
        return np.asarray(X.argmax(axis=1)) if train is None else new_samples.nearest_points(X, train)

    def _train(self) -> Data | None:
        return None if self.X is None else apply_scaling(self.X, self.scaling)

    def _penalty(self) -> float:
        """λ of the training samples' representation; a method without one borrows 0.1 times the mean diagonal of K."""
        if self.penalty is not None or self.X is None:
            return self.penalty or 1.0
        some = np.linspace(0, len(self.labels) - 1, min(len(self.labels), 256)).astype(int)
        return penalty(self.kernel.diagonal(apply_scaling(self.X[some], self.scaling)), 0.1)


def _sizes(X: Data) -> Array:
    """Return the largest magnitude of each row."""
    size = abs(X).max(axis=1)
    return size.toarray().ravel() if sparse.issparse(size) else np.asarray(size)


def by_training_points(result: FitResult, X: Data, rule: str) -> ByTrainingPoints:
    """Return what a run on the samples X leaves for new ones."""
    plan, evidence, labels = result.plan, result.graph.evidence, result.labels
    assert labels is not None
    network = None
    if rule == "network" and not plan.pairwise and result.n_clusters > 1:
        points = apply_scaling(rows_of(X, result.order), evidence.scaling)
        network = new_samples.fit_network(points, labels[result.order], plan.seed)
    return ByTrainingPoints(
        X=None if plan.pairwise else X,
        row_hashes=None if plan.pairwise else result.row_hashes,
        dtype=X.dtype.type,
        largest=max(float(X.max()), -float(X.min())),
        scaling=evidence.scaling,
        kernel=evidence.kernel,
        penalty=evidence.penalty,
        labels=labels,
        n_clusters=result.n_clusters,
        n_nonzero=plan.graph.n_nonzero,
        rule=rule,
        cells=evidence.cells,
        network=network,
        affine=bool(plan.settings.get("affine", False)),
    )
