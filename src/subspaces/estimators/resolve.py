"""Parameters that may be ``"auto"``: resolved from the points before a fit is planned."""

from __future__ import annotations

import copy
from inspect import signature
from typing import Any, TypeVar

from sklearn.utils._param_validation import StrOptions

from subspaces.engine.plan import Plan
from subspaces.engine.validation import all_equal
from subspaces.estimators.base import CONSTRAINTS
from subspaces.estimators.ridge import choose_solver, is_coarse, mapped_kernel
from subspaces.selection import AUTO, Selection, choose
from subspaces.utils.types import Data

T = TypeVar("T", bound=Any)

OTHERWISE: dict[str, Any] = {
    "n_clusters": 1,
    "kernel": "rbf",
    "reg": 1.0,
    "n_nonzero": 5,
    "scaling": None,
    "assign_labels": "kmeans",
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
    if "assign_labels" in defaults and estimator.n_clusters is None:
        defaults["assign_labels"] = "modularity"
    if all_equal(X, _checked(estimator, X, defaults).pairwise):
        return _with(estimator, defaults), None
    given = {name: getattr(estimator, name) for name in signature(choose).parameters if hasattr(estimator, name)}
    selection = choose(X, **{"kernel": "linear", **given}, seed=estimator._drawn_seed())
    return _with(estimator, dict(selection.parameters)), selection


def _with(estimator: T, values: dict[str, Any]) -> T:
    resolved = copy.copy(estimator)
    resolved.set_params(**values)
    return resolved


def _checked(estimator: Any, X: Data, defaults: dict[str, Any]) -> Plan:
    """A plan with the defaults: what no choice can make right is refused before the search."""
    one = _with(estimator, {**defaults, "random_state": 0})  # a generator must not be drawn from
    plan: Plan = one._outline(X)
    if "kernel" not in defaults:
        choose_solver(one.solver, mapped_kernel(plan, X), plan.shape)
    if "assign_labels" not in defaults and plan.cut.method != "modularity":
        is_coarse(one.spectral, plan, one.solver)
    return plan


def keep_choice(estimator: Any, resolved: Any) -> None:
    """The values used, given or chosen, as fitted attributes."""
    for name in ("reg", "n_nonzero", "scaling", "assign_labels"):
        if hasattr(resolved, name):  # a graph of neighbours has no penalty
            setattr(estimator, f"{name}_", getattr(resolved, name))
    if estimator.selection_ is not None:
        estimator.timings_ = {"selection": estimator.selection_.seconds, **estimator.timings_}
