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
from subspaces.representation.inverse import penalty
from subspaces.representation.two_scale import TwoScale, candidates_for
from subspaces.spectral.embedding import unit_rows
from subspaces.utils.ordering import rows_of
from subspaces.utils.process import warn_caller
from subspaces.utils.ties import first_largest
from subspaces.utils.types import Array, Data, Labels, Sparse

_BEYOND = 10.0  # times the largest training value beyond which nothing is known
_CODED = 5  # coefficients of a new sample where the method keeps all
_PREDICT_BYTES = 64 * 2**20  # kernel values between new and training samples held at a time
_TWO_SCALE_ROWS, _SPARSE_ROWS = 8192, 2**16  # sparse training samples are projected anew for each block


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
    two_scale: TwoScale | None = None  #: what represents new samples where the two-scale route was taken
    network: Any = None  #: the classifier of ``rule="network"``
    affine: bool = False  #: coefficients sum to one

    def label(self, X: Data) -> Labels:
        """Return clusters of new samples; training samples keep theirs."""

        def by_rule(points: Data) -> tuple[Array, Array]:
            labels = self._label(points)
            return labels, labels < 0

        return self._of_points(X, self.labels.astype(np.intp, copy=False), by_rule)

    def embed(self, X: Data, Y: Array) -> Array:
        """Return coordinates of new samples in the embedding Y of the training samples."""
        return self._by_codes(X, Y, lambda totals, _: unit_rows(totals))

    def mean(self, X: Data, values: Array) -> Array:
        """Return the mean of what training samples have, weighted by how much of a new sample they represent."""
        tiny = np.finfo(np.float64).tiny
        return self._by_codes(X, values, lambda totals, weight: totals / np.maximum(weight, tiny)[:, None])

    def _by_codes(self, X: Data, values: Array, finish: Callable[[Array, Array], Array]) -> Array:
        """Return what training samples have, summed with the sizes of the coefficients of each new sample."""

        def of_new(points: Data) -> tuple[Array, Array]:
            codes = abs(self.codes(points))
            weight = codes.sum(axis=1)
            return finish(codes @ values, weight), weight == 0

        return self._of_points(X, values, of_new)

    def nearness(self, X: Data, W: Sparse) -> Array:
        """Return how near new samples are to training samples: 1 among them, then falling as one over the distance.

        "Among them" ends at the fence of the lengths of the edges of W, the graph of the training samples, and at ten
        times their largest value, whatever the scaling makes of that.
        """
        if self.X is None:
            return np.ones(X.shape[0])
        train = self._train()
        reach = fence(edge_distances(W, train))

        def by_codes(points: Data) -> tuple[Array, Array]:
            codes = abs(self.codes(points))
            return edge_distances(codes, points, train), codes.sum(axis=1) == 0

        distance = self._of_points(X, np.zeros(train.shape[0]), by_codes, lost=np.inf)
        size = abs(X).max(axis=1)
        size = size.toarray().ravel() if sparse.issparse(size) else size
        with np.errstate(divide="ignore"):
            return np.asarray(np.minimum(1, reach / distance) * np.minimum(1, _BEYOND * self.largest / size))

    def _of_points(
        self, X: Data, known: Array, of_new: Callable[[Data], tuple[Array, Array]], lost: float | None = None
    ) -> Array:
        """Return what is known of training samples; of new ones what `of_new` says, or, where lost to it, `lost`.

        Without that the nearest training sample's, with a warning.
        """
        out = np.zeros((X.shape[0], *known.shape[1:]), dtype=known.dtype)
        n_lost = 0
        for rows, place in self._blocks(X):
            new = rows[place < 0]
            out[rows[place >= 0]] = known[place[place >= 0]]
            if len(new):
                points = self._scaled(X[new])
                out[new], is_lost = of_new(points)
                none = np.flatnonzero(is_lost)
                out[new[none]] = known[self._nearest(points[none])] if lost is None else lost
                n_lost += len(none) if lost is None else 0
        if n_lost:
            who = "1 new point has" if n_lost == 1 else f"{n_lost} new points have"
            warn_caller(
                f"{who} no similarity to any training point: every kernel value is 0. The label is that of the nearest "
                "training point."
            )
        return out

    def codes(self, X: Data) -> Sparse:
        """Return truncated coefficients of scaled new samples over the training samples, CSR of shape (n_new, n)."""
        n_kept = self.n_nonzero or _CODED
        if self.two_scale is not None:
            train = self._train()
            candidates, values = self.two_scale.represent(X, train, 2 * candidates_for(self.n_nonzero))
            strongest = np.argsort(-np.abs(values), axis=1, kind="stable")[:, :n_kept]
            values = np.take_along_axis(values, strongest, axis=1)
            columns = np.take_along_axis(candidates, strongest, axis=1)
            indptr = np.arange(len(values) + 1) * values.shape[1]
            return sparse.csr_array((values.ravel(), columns.ravel(), indptr), shape=(len(values), len(train)))
        if self.X is None:
            return new_samples.neighbor_codes(np.asarray(X), None, self._penalty(), n_kept)
        train = self._train()
        diagonal = self.kernel.diagonal(train) if self.affine else None
        return new_samples.neighbor_codes(self.kernel.cross(X, train), self._gram_of, self._penalty(), n_kept, diagonal)

    def _label(self, X: Data) -> Labels:
        """Return labels by the rule, −1 where it knows none: the sample is similar to no training sample."""
        if self.n_clusters == 1:
            return np.zeros(X.shape[0], dtype=np.intp)
        if self.network is not None:
            return np.asarray(self.network.predict(X), dtype=np.intp)
        if self.rule == "residual" and self.X is not None:
            to_train = self.kernel.cross(X, self._train())
            found = (self.labels, self.n_clusters, self._penalty(), self.affine)
            scores = new_samples.residual_scores(to_train, self._gram_of, *found)
            # about the mean sample a score of any sign says something, unless the sample is out of the kernel's reach
            known = to_train.any(axis=1) | (not self.kernel.of_distances) if self.affine else scores.max(axis=1) > 0
        else:
            scores = new_samples.vote(self.codes(X), self.labels, self.n_clusters)
            known = scores.max(axis=1) > 0
        return np.where(known, first_largest(scores, axis=1), -1).astype(np.intp)

    def _blocks(self, X: Data) -> list[tuple[Array, Labels]]:
        """Return rows of X in blocks of bounded memory, each with the training sample it equals (−1: none)."""
        step = _TWO_SCALE_ROWS if self.scaling.components is None else _SPARSE_ROWS
        if self.two_scale is None:
            step = max(1, _PREDICT_BYTES // (8 * len(self.labels)))
        known = (
            np.full(X.shape[0], -1, dtype=np.intp)
            if self.X is None or self.row_hashes is None
            else new_samples.find_training_points(X, self.X, self.row_hashes)
        )
        bounds = range(0, X.shape[0], step)
        return [(np.arange(start, min(start + step, X.shape[0])), known[start : start + step]) for start in bounds]

    def _scaled(self, X: Data) -> Data:
        """Return new samples scaled like the training samples; none so large that its kernel values overflow."""
        return X if self.X is None else apply_scaling(within_reach(X, self.largest), self.scaling)

    def _nearest(self, X: Data) -> Labels:
        """Return the training sample to follow where no coefficient says which: the nearest, or the most similar."""
        if X.shape[0] == 0:
            return np.zeros(0, dtype=np.intp)
        if self.X is None:
            return np.asarray(X.argmax(axis=1), dtype=np.intp)
        return new_samples.nearest_points(X, self._train())

    def _train(self) -> Data:
        return apply_scaling(self.X, self.scaling)

    def _gram_of(self, members: Array) -> Array:
        assert self.X is not None
        return self.kernel.gram(apply_scaling(self.X[members], self.scaling))

    def _penalty(self) -> float:
        """λ of the training samples' representation; a method without one borrows 0.1 times the mean diagonal of K."""
        if self.penalty is not None or self.X is None:
            return self.penalty or 1.0
        some = np.linspace(0, len(self.labels) - 1, min(len(self.labels), 256)).astype(int)
        return penalty(self._gram_of(some).diagonal(), 0.1)


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
        two_scale=evidence.model,
        network=network,
        affine=bool(plan.settings.get("affine", False)),
    )
