"""LSR1 and LSR2: ridge self-representation without truncation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from subspaces.engine.plan import Plan
from subspaces.estimators.graph import GraphClusterer
from subspaces.estimators.ridge import ROUTES, ridge_plan
from subspaces.numerics.types import Data

_REFERENCE = "Lu, Min, Zhao, Zhu, Huang, Yan: Robust and efficient subspace segmentation via least squares, ECCV 2012"


@dataclass(eq=False, repr=False, kw_only=True)
class LSR1(GraphClusterer):
    """Least squares regression with a zero diagonal (LSR1): TRR that keeps every coefficient.

    min ‖X − XZ‖² + λ‖Z‖², diag(Z) = 0, in closed form. Assumes linear subspaces and little noise: every pair of points
    is joined, so weak coefficients between subspaces add up.

    Parameters
    ----------
    reg : float, default=0.1
        λ divided by the mean squared length of a point.
    n_clusters, scaling, n_nonzero, by, graph, graph_params, solver, partition, n_init, init, connect
        As in :class:`~subspaces.KTRR`; ``n_nonzero=None`` and ``graph="column"`` keep all coefficients.
    out_of_sample, random_state
        As in :class:`~subspaces.KTRR`.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces import LSR1
    >>> X = np.kron(np.eye(2), np.random.default_rng(0).normal(size=(20, 3)))
    >>> labels = LSR1(n_clusters=2).fit_predict(X)
    >>> len(set(labels[:20])), len(set(labels[20:]))
    (1, 1)
    """

    scaling: str | None = "unit"
    reg: float = 0.1
    n_nonzero: int | None = None
    by: str = "magnitude"
    graph: str = "column"
    graph_params: Mapping[str, Any] | None = None
    connect: bool = True
    solver: str = "auto"
    spectral: str = "auto"

    _constraints: ClassVar[dict[str, list[Any]]] = ROUTES
    cost: ClassVar[str] = "one inverse, O(n³); O(n² m) with few features"
    reference: ClassVar[str] = _REFERENCE

    def _plan(self, X: Data) -> Plan:
        return ridge_plan(self._outline(X), X, reg=self.reg, solver=self.solver, spectral=self.spectral)


@dataclass(eq=False, repr=False, kw_only=True)
class LSR2(GraphClusterer):
    """Least squares regression without the diagonal constraint (LSR2): Z = (XᵀX + λI)⁻¹XᵀX.

    As :class:`LSR1`, but a point may represent itself; its diagonal grows with small λ and then hides the rest.

    Parameters
    ----------
    reg : float, default=0.1
        λ divided by the mean squared length of a point.
    n_clusters, scaling, n_nonzero, by, graph, graph_params, solver, partition, n_init, init, connect
        As in :class:`LSR1`.
    out_of_sample, random_state
        As in :class:`~subspaces.KTRR`.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces import LSR2
    >>> X = np.kron(np.eye(2), np.random.default_rng(0).normal(size=(20, 3)))
    >>> labels = LSR2(n_clusters=2).fit_predict(X)
    >>> len(set(labels[:20])), len(set(labels[20:]))
    (1, 1)
    """

    scaling: str | None = "unit"
    reg: float = 0.1
    n_nonzero: int | None = None
    by: str = "magnitude"
    graph: str = "column"
    graph_params: Mapping[str, Any] | None = None
    connect: bool = True
    solver: str = "auto"
    spectral: str = "auto"

    _constraints: ClassVar[dict[str, list[Any]]] = ROUTES
    cost: ClassVar[str] = "one inverse, O(n³); O(n² m) with few features"
    reference: ClassVar[str] = _REFERENCE

    def _plan(self, X: Data) -> Plan:
        return ridge_plan(
            self._outline(X), X, reg=self.reg, solver=self.solver, spectral=self.spectral, constrained=False
        )
