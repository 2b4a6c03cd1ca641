"""Parameters that may be ``"auto"``: settled from the points before the journey starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from subspaces.engine.validation import validated
from subspaces.estimators.base import _MAX_SEED
from subspaces.estimators.ridge import RidgeClusterer
from subspaces.selection import AUTO, Selection, choose

_OTHERWISE = {
    "n_clusters": 1,
    "kernel": "rbf",
    "reg": 1.0,
    "n_nonzero": 5,
    "scaling": None,
    "partition": "kmeans",
}
"""What ``"auto"`` means where there is nothing to choose by: all points are equal."""


@dataclass(eq=False, repr=False, kw_only=True)
class AutomaticClusterer(RidgeClusterer):
    """Adds ``"auto"`` to a ridge method; ``selection_`` keeps what was tried and why the winner won."""

    n_clusters: int | str | None = field(default=8, kw_only=False)  # type: ignore[assignment]
    reg: float | str = 1.0  # type: ignore[assignment]
    n_nonzero: int | str | None = 5  # type: ignore[assignment]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RidgeClusterer._parameter_constraints,
        **{
            name: [*RidgeClusterer._parameter_constraints[name], StrOptions({AUTO})]
            for name in ("n_clusters", "reg", "n_nonzero", "scaling", "partition")
        },
    }

    def _fit(self, X: Any) -> Self:
        self.selection_: Selection | None = None
        settled: dict[str, Any] = {}
        if self._asked():
            X = validated(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2)
            partition = "modularity" if self.n_clusters is None else "kmeans"
            with self._settled({name: {**_OTHERWISE, "partition": partition}[name] for name in self._asked()}):
                self._check_clusters(X.shape[0])
            settled = self._choose(X)
        with self._settled(settled):
            super()._fit(X)
            self.reg_, self.n_nonzero_ = self.reg, self.n_nonzero
            self.scaling_, self.partition_ = self.scaling, self.partition
        if self.selection_ is not None:
            self.timings_ = {"selection": self.selection_.seconds, **self.timings_}
        return self

    def _asked(self) -> list[str]:
        """Parameters whose value is ``"auto"``."""
        values = {name: getattr(self, name, None) for name in _OTHERWISE}
        return [name for name, value in values.items() if isinstance(value, str) and value == AUTO]

    def _choose(self, X: Any) -> dict[str, Any]:
        if self._all_equal(X):
            return {name: _OTHERWISE[name] for name in self._asked()}
        self.selection_ = choose(
            X,
            n_clusters=self.n_clusters,
            kernel=getattr(self, "kernel", "linear"),
            reg=self.reg,
            n_nonzero=self.n_nonzero,
            scaling=self.scaling,
            partition=self.partition,
            bandwidth=getattr(self, "bandwidth", "rms"),
            kernel_params=getattr(self, "kernel_params", None),
            graph=self.graph,
            by=self.by,
            connect=self.connect,
            seed=int(check_random_state(self.random_state).randint(_MAX_SEED)),
        )
        return dict(self.selection_.parameters)

    @contextmanager
    def _settled(self, values: dict[str, Any]) -> Iterator[None]:
        """Run the journey with settled values; the parameters are what the user gave again afterwards."""
        given = {name: getattr(self, name) for name in values}
        self.set_params(**values)
        try:
            yield
        finally:
            self.set_params(**given)
