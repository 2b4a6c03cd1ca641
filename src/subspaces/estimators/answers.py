"""What a fitted graph says beside its labels: tree, confidence, memberships, outliers and the verdict, when asked."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from subspaces.engine.confidence import (
    UNSURE,
    Agreement,
    certain,
    confidence_in_one,
    graph_confidence,
    memberships,
    soft_memberships,
    summarize,
    walk_ends,
)
from subspaces.engine.predict import ByTrainingPoints
from subspaces.engine.run import run_ordered
from subspaces.kernels.scaling import apply_scaling
from subspaces.spectral.hierarchy import ClusterTree, cluster_tree
from subspaces.spectral.splits import with_p_values, with_stability
from subspaces.utils.choices import OutOfSample
from subspaces.utils.ordering import Distinct, canonical_order, distinct_rows, inverse_of
from subspaces.utils.process import one_thread, quiet
from subspaces.utils.progress import shown
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array, Data, Labels, Sparse

T = TypeVar("T")

MADE_AGAIN = ("_tree", "_levels", "_confidence", "_membership", "_all_coefficients", "_embedding_again")
"""What is made when first asked for, and not saved with a model."""


class Answers:
    """What an estimator with a graph can be asked; a mixin, whose base gives what is named here."""

    n_clusters: Any
    verbose: bool
    out_of_sample: OutOfSample
    labels_: Labels
    n_clusters_: int
    affinity_matrix_: Sparse
    _predictor: ByTrainingPoints
    _validated_new: Callable[[Any], Data]
    _drawn_seed: Callable[[], int]

    _labels_given: bool = False  # by with_labels, so that a search knows nothing of them
    _is_quick: ClassVar[bool] = False
    """Whether a hundred graphs of 200 points take a second or two."""

    @property
    def tree_(self) -> ClusterTree:
        """The clusters from coarse to fine, each split with its p-value and stability; computed when first read.

        P-values are there where the method is quick (``_is_quick``) and was given samples, not a kernel matrix: some
        hundred graphs of at most 400 samples are made.
        """
        check_is_fitted(self, "labels_")
        return self._once("_tree", self._tested_tree if self._is_quick else self._bare_tree)

    def _tested_tree(self) -> ClusterTree:
        """Return the tree with p-value and stability of each split down to the clusters, and of one split more."""
        W, points = self.affinity_matrix_, self._predictor.X
        tree = with_stability(self._bare_tree(), W)
        if points is None:
            return tree
        used, scaling = self._used(), self._predictor.scaling
        rows, order = self._distinct().rows, self._order_of_distinct()

        def graphs_of(drawn: Array) -> list[Sparse]:
            few = {} if used.n_clusters is None else {"n_clusters": min(used.n_clusters, len(drawn))}
            plan = replace(clone(used).set_params(**few)._plan(drawn), scaling=None)
            found = run_ordered(plan, drawn, until="graph").graph.W
            return [found] if found.nnz else []

        scaled, few = apply_scaling(points, scaling)[rows], tree.of_points(tree.leaves[rows])
        with shown(self.verbose, lines=True), quiet(), one_thread("blas"):
            tested = with_p_values(few, W[rows][:, rows], scaled, graphs_of, order=order, seed=self._drawn_seed())
        return replace(tree, p_value=tested.p_value)

    def _bare_tree(self) -> ClusterTree:
        """Return the tree without tests; the same for any order of the samples."""

        def made() -> ClusterTree:
            distinct, place = self._distinct(), self._order_of_distinct()
            order = distinct.rows[place]
            tree = cluster_tree(self.affinity_matrix_[order][:, order], self.labels_[order])
            leaves = np.empty(len(order), dtype=np.intp)
            leaves[place] = tree.leaves
            return tree.of_points(leaves[distinct.place])

        return self._once("_levels", made)

    def _once(self, name: str, make: Callable[[], T]) -> T:
        """Something that is made when first asked for; it is not saved with the model."""
        if name not in vars(self):
            setattr(self, name, make())
        kept: T = vars(self)[name]
        return kept

    def _order(self) -> Labels:
        """Return the samples in an order that does not depend on that of the rows."""
        points, row_hashes = self._predictor.X, self._predictor.row_hashes
        if points is None or row_hashes is None:
            return np.arange(len(self.labels_))
        return canonical_order(points, row_hashes)

    def _distinct(self) -> Distinct:
        """Return the different rows, which the fit looked at."""
        row_hashes = self._predictor.row_hashes
        return distinct_rows(np.arange(len(self.labels_)) if row_hashes is None else row_hashes)

    def _order_of_distinct(self) -> Labels:
        """Return these rows, by their place among themselves, in the order of :meth:`_order`."""
        return np.argsort(inverse_of(self._order())[self._distinct().rows])

    def _used(self) -> Any:
        """Return the estimator with the parameters of the fit: what was ``"auto"`` is settled."""
        return getattr(self, "estimator_", self)

    def labels_at(self, n_clusters: int) -> Labels:
        """Return labels of another level of ``tree_``: coarser or finer clusters without another fit."""
        check_is_fitted(self, "labels_")
        return self._bare_tree().labels_at(n_clusters)

    def with_labels(self, labels: Any) -> Self:
        """Return the same fit with other labels of its samples, such as merged clusters.

        What depends on them is made anew.

        Parameters
        ----------
        labels : array of shape (n,), any values; clusters are numbered by them, in their order
        """
        check_is_fitted(self, "labels_")
        if len(labels) != len(self.labels_):
            raise ValueError(f"labels must have one entry for each of {len(self.labels_)} points; got {len(labels)}.")
        if self.out_of_sample == "network":
            raise ValueError('out_of_sample="network" has learnt the labels of the fit; fit with "neighbors" instead.')
        other = copy(self)  # without what is made again
        codes = np.unique(np.asarray(labels), return_inverse=True)[1].astype(np.intp)
        other.labels_, other.n_clusters_ = codes, int(codes.max()) + 1
        other._labels_given = True
        other._predictor = replace(self._predictor, labels=codes, n_clusters=other.n_clusters_)
        return other

    @property
    def confidence_(self) -> Array:
        """Probability that each label is right: that the sample has the class its cluster stands for."""
        check_is_fitted(self, "labels_")

        def made() -> Array:
            W, codes = self.affinity_matrix_, np.unique(self.labels_, return_inverse=True)[1]
            rows, place = self._distinct()
            if self.n_clusters_ == 1 and (p_value := self._p_value_of_one()) is not None:
                return np.full(len(codes), confidence_in_one(p_value))
            if 1 < len(rows) == self.n_clusters_:  # all that is equal, and nothing else, is together
                return certain(np.bincount(codes)[codes])
            search = None if self._labels_given else self._agreement()
            found = graph_confidence(W, codes, memberships(W, codes), self._bare_tree(), search)
            return found[rows][place]

        return self._once("_confidence", made)

    @property
    def probabilities_(self) -> Array:
        """``confidence_`` by the name that HDBSCAN gave such numbers: BERTopic and others look for it."""
        return self.confidence_

    def _agreement(self) -> Agreement | None:
        """Return what a search knows of the labels; None without one."""
        return None

    def _p_value_of_one(self) -> float | None:
        """Return the p-value of "all samples are one piece", where a search tested it."""
        return None

    @property
    def membership_(self) -> Array:
        """Probability of every cluster for every sample, shape (n, k); the label is the most probable one."""
        check_is_fitted(self, "labels_")

        def made() -> Array:
            codes = np.unique(self.labels_, return_inverse=True)[1]
            return soft_memberships(walk_ends(self.affinity_matrix_, codes), codes, self.confidence_)

        return self._once("_membership", made)

    def predict_membership(self, X: Any) -> Array:
        """Return the probability of every cluster for new samples, shape (n_new, k).

        It is the mean of those of the samples that represent them; far from all training samples every cluster is
        equally probable.
        """
        points = self._validated_new(X)
        return self._predictor.memberships(points, self.membership_, self.affinity_matrix_)

    @property
    def outliers_(self) -> Array:
        """Samples that fit nowhere: tied to no cluster, or far from all they are tied to."""
        check_is_fitted(self, "labels_")
        return summarize(self).fits_nowhere

    @property
    def verdict_(self) -> str:
        """One plain sentence: how many groups, how sure, how many items are doubtful, or that there are none."""
        check_is_fitted(self, "labels_")
        asked = int(self.n_clusters) if isinstance(self.n_clusters, Integral) else None
        if self._labels_given:
            asked = self.n_clusters_
        if asked is None and 1 < len(self._distinct().rows) == self.n_clusters_:
            return f"{self.n_clusters_} groups: the rows are of {self.n_clusters_} kinds."
        return self._verdict(asked, int((self.confidence_ < UNSURE).sum()) if self.n_clusters_ > 1 else 0)

    def _verdict(self, asked: int | None, n_doubtful: int) -> str:
        """Return the verdict where there are not as many groups as different rows."""
        return verdict(self.n_clusters_, len(self.labels_), n_doubtful, asked=asked)


def verdict(n_clusters: int, n_samples: int = 0, n_doubtful: int = 0, *, asked: int | None = None) -> str:
    """Say in plain words what a fit found.

    Parameters
    ----------
    n_clusters : clusters of the answer
    n_samples, n_doubtful : items, and those whose label is more probably wrong than right
    asked : the number that was given, None where it was left open

    Examples
    --------
    >>> verdict(3, 150, 1, asked=3)
    '3 groups, as asked; 1 of 150 items is doubtful.'
    >>> verdict(3, asked=5)
    '3 groups, where 5 were asked for.'
    >>> verdict(1)
    'No groups: nothing tells the samples apart.'
    """
    groups, doubt = counted(n_clusters, "group"), doubtful(n_doubtful, n_samples)
    if asked is None:
        return f"{groups} found{doubt}." if n_clusters > 1 else "No groups: nothing tells the samples apart."
    return f"{groups}, {'as asked' if asked == n_clusters else f'where {asked} were asked for'}{doubt}."


def doubtful(n_doubtful: int, n_samples: int) -> str:
    """Return the part of a verdict that counts doubtful items."""
    if not n_doubtful:
        return ""
    return f"; {n_doubtful} of {n_samples} items {'is' if n_doubtful == 1 else 'are'} doubtful"
