"""Names that parameters may have, as types for checkers and as sets for the checks of a fit."""

from __future__ import annotations

from typing import Any, Literal, get_args

from sklearn.utils._param_validation import StrOptions

AssignLabels = Literal["kmeans", "cluster_qr", "discretize", "modularity", "agglomerative"]
Scaling = Literal["unit", "max", "minmax", "standard", "log"]
Bandwidth = Literal["rms", "mean", "median"]
Ranking = Literal["magnitude", "value"]
GraphName = Literal["symmetric", "column", "mass", "unit", "larger", "row_space", "dscnet"]
Init = Literal["k-means++", "random"]
OutOfSample = Literal["neighbors", "residual", "network"]
Solver = Literal["auto", "dense", "low_rank", "two_scale"]
Spectral = Literal["auto", "full", "coarse"]
Effort = Literal["fast", "balanced", "thorough"]


def options(choice: Any, *more: str) -> StrOptions:
    """Return the check that a parameter is one of these names."""
    return StrOptions({*get_args(choice), *more})
