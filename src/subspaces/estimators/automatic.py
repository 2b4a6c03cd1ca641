"""Parameters that may be ``"auto"``: settled from the points before a fit is planned."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from sklearn.utils._param_validation import StrOptions

from subspaces.engine.plan import check_clusters
from subspaces.engine.validation import all_equal
from subspaces.estimators.base import CONSTRAINTS
from subspaces.kernels import is_precomputed
from subspaces.numerics.types import Data
from subspaces.selection import AUTO, Selection, choose

T = TypeVar("T", bound=Any)

OTHERWISE: dict[str, Any] = {
    "n_clusters": 1,
    "kernel": "rbf",
    "reg": 1.0,
    "n_nonzero": 5,
    "scaling": None,
    "partition": "kmeans",
}
"""What ``"auto"`` means where there is nothing to choose by: all points are equal."""

AUTOMATIC = {name: [*CONSTRAINTS[name], StrOptions({AUTO})] for name in OTHERWISE}
"""What these parameters may be in a method that chooses them."""


def settle(estimator: T, X: Data) -> tuple[T, Selection | None]:
    """A copy of the estimator with values in place of every ``"auto"``, and what was tried for them."""
    values = {name: getattr(estimator, name, None) for name in OTHERWISE}
    asked = [name for name, value in values.items() if isinstance(value, str) and value == AUTO]
    if not asked:
        return estimator, None
    defaults = {name: OTHERWISE[name] for name in asked}
    if "partition" in defaults and estimator.n_clusters is None:
        defaults["partition"] = "modularity"
    pairwise = is_precomputed(values["kernel"])
    given = {**values, **defaults}
    check_clusters(given["n_clusters"], given["partition"], given["scaling"], X.shape[0], pairwise)
    if all_equal(X, pairwise):
        return _with(estimator, defaults), None
    selection = choose(
        X,
        n_clusters=estimator.n_clusters,
        kernel=getattr(estimator, "kernel", "linear"),
        reg=estimator.reg,
        n_nonzero=estimator.n_nonzero,
        scaling=estimator.scaling,
        partition=estimator.partition,
        bandwidth=getattr(estimator, "bandwidth", "rms"),
        kernel_params=getattr(estimator, "kernel_params", None),
        graph=estimator.graph,
        by=estimator.by,
        connect=estimator.connect,
        seed=estimator._drawn_seed(),
    )
    return _with(estimator, dict(selection.parameters)), selection


def _with(estimator: T, values: dict[str, Any]) -> T:
    settled = copy.copy(estimator)
    settled.set_params(**values)
    return settled


def keep_choice(estimator: Any, settled: Any, selection: Selection | None) -> None:
    """The values used, given or chosen, as fitted attributes."""
    for name in ("reg", "n_nonzero", "scaling", "partition"):
        setattr(estimator, f"{name}_", getattr(settled, name))
    estimator.selection_ = selection
    if selection is not None:
        estimator.timings_ = {"selection": selection.seconds, **estimator.timings_}
