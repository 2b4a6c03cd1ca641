"""Several clusterings of the same kind of points → one: match the names of their clusters, then vote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from subspaces.metrics import adjusted_rand
from subspaces.numerics.types import Array, Labels


@dataclass(frozen=True)
class AlignedVote:
    """Classifiers that were trained on different clusterings, and what each calls the clusters of one of them.

    Attributes
    ----------
    classifiers : fitted, each with its own ``classes_``
    names : for each classifier, the final cluster of each of its classes
    classes_ : the final clusters' labels
    reference : which classifier gave its names to all
    agreement : mean adjusted Rand index between two of them
    """

    classifiers: tuple[Any, ...]
    names: tuple[Labels, ...]
    classes_: Array
    reference: int
    agreement: float

    def predict(self, X: Array) -> Array:
        """Label of the cluster with most votes for each row of X."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def predict_proba(self, X: Array) -> Array:
        """Mean over the classifiers of the probabilities, or of the plain choices where one gives none."""
        votes = np.zeros((len(X), len(self.classes_)))
        for classifier, names in zip(self.classifiers, self.names, strict=True):
            votes += class_votes(classifier, X) @ np.eye(len(self.classes_))[names]
        return votes / len(self.classifiers)


def aligned_vote(classifiers: Sequence[Any], points: Array) -> AlignedVote:
    """Match the classes of all classifiers by their votes on common points.

    The reference is the classifier that agrees most with the others (mean adjusted Rand index) among those with most
    classes; the classes of each other one are matched to its.
    """
    votes = [class_votes(classifier, points) for classifier in classifiers]
    labels = [vote.argmax(axis=1) for vote in votes]
    n_classes = np.array([vote.shape[1] for vote in votes])
    rand = np.array([[adjusted_rand(a, b) for b in labels] for a in labels])
    reference = int(np.where(n_classes == n_classes.max(), rand.sum(axis=1), -np.inf).argmax())
    target: Array = np.eye(n_classes[reference])[labels[reference]]
    return AlignedVote(
        classifiers=tuple(classifiers),
        names=tuple(matched_names(vote, target) for vote in votes),
        classes_=classifiers[reference].classes_,
        reference=reference,
        agreement=float(rand[~np.eye(len(rand), dtype=bool)].mean()),
    )


def matched_names(votes: Array, target: Array) -> Labels:
    """Column of `target` that each column of `votes` is: the one-to-one matching with most points in common.

    Columns left over, because `votes` has more, go to the column they share most points with.
    """
    shared = votes.T @ target
    names = shared.argmax(axis=1)
    rows, columns = linear_sum_assignment(shared, maximize=True)
    names[rows] = columns
    return names.astype(np.intp)


def class_votes(classifier: Any, X: Array) -> Array:
    """Probabilities of the classes; 1 for the predicted class and 0 for the others if the classifier has none."""
    if hasattr(classifier, "predict_proba"):
        return np.asarray(classifier.predict_proba(X))
    codes = np.searchsorted(classifier.classes_, classifier.predict(X))
    return np.eye(len(classifier.classes_))[codes]
