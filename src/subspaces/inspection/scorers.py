"""Scores for scikit-learn's searches that need no classes: how well the clusters fit the graph they were cut from.

Any of them goes into ``scoring=``, alone or by name; `whole` is the split to search with, since labels of a clustering
belong to the samples it was fitted on.

Examples
--------
>>> from sklearn.model_selection import GridSearchCV
>>> from subspaces import KTRR
>>> from subspaces.datasets import make_subspaces
>>> from subspaces.inspection.scorers import separation, whole
>>> X, y = make_subspaces(3, 2, 9, 30, random_state=0)
>>> grid = {"kernel": ["rbf", "quadratic"], "n_nonzero": [3, 5]}
>>> search = GridSearchCV(KTRR(3), grid, scoring=separation, cv=whole(X)).fit(X)
>>> sorted(search.best_params_)
['kernel', 'n_nonzero']

With classes at hand the scores of :mod:`subspaces.metrics` do the same:

>>> from sklearn.metrics import make_scorer
>>> from subspaces.metrics import accuracy
>>> search = GridSearchCV(KTRR(3), grid, scoring=make_scorer(accuracy), cv=whole(X)).fit(X, y)
>>> float(search.best_score_) > 0.9
True
"""

from __future__ import annotations

from typing import Any

import numpy as np

from subspaces.inspection.plots.parts import part_of
from subspaces.selection.criteria import modularity_ceiling, normalized_cut
from subspaces.spectral.partition import modularity as _modularity
from subspaces.utils.types import Labels


def whole(X: Any) -> list[tuple[Labels, Labels]]:
    """Return one split that fits and scores all samples, for the argument ``cv``."""
    everything = np.arange(X.shape[0] if hasattr(X, "shape") else len(X))
    return [(everything, everything)]


def modularity(estimator: Any, X: Any, y: Any = None) -> float:
    """Return the modularity of the clusters on the graph they were cut from, divided by the most they could have."""
    W, labels, _ = part_of(estimator, "affinity_matrix_")
    ceiling = modularity_ceiling(W, labels)
    return min(1.0, _modularity(W, labels) / ceiling) if ceiling > 0 else 0.0


def separation(estimator: Any, X: Any, y: Any = None) -> float:
    """Return 1 − normalised cut: the share of a cluster's edge weight that stays inside, mean over clusters."""
    W, labels, _ = part_of(estimator, "affinity_matrix_")
    return 1 - normalized_cut(W, labels)
