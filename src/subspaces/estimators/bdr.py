"""BDR: block diagonal representation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from sklearn.utils._param_validation import StrOptions

from subspaces.engine.plan import Context, Plan
from subspaces.estimators.base import COUNT, POSITIVE
from subspaces.estimators.graph import GraphClusterer, WithGraph
from subspaces.representation.block_diagonal import VARIANTS, block_diagonal
from subspaces.representation.coefficients import Coefficients
from subspaces.utils.choices import GraphName, Ranking, Scaling
from subspaces.utils.types import Array, Data


@dataclass(eq=False, repr=False, kw_only=True)
class BDR(WithGraph, GraphClusterer):
    """Block diagonal representation (BDR): the coefficients are drawn towards one block for each cluster.

    min ½‖X − XZ‖² + ½λ‖Z − B‖² + γ‖B‖_[k], B symmetric and nonnegative with zero diagonal; ‖B‖_[k] is the sum of the k
    smallest eigenvalues of its Laplacian, zero if the graph of B has k pieces. Not convex; it starts from zero, as the
    authors' program does.

    Parameters
    ----------
    reg : float, default=0.3
        λ divided by ‖X‖²/k, the squared length of the samples of an average cluster together. The authors' λ = 50 for
        unit samples is 0.8 for the 64 faces of each person in Extended Yale B.
    block_weight : float, default=0.02
        γ/λ; the authors' γ = 1 beside λ = 50.
    variant : {"Z", "B"}, default="Z"
        Which of both matrices makes the graph (BDR-Z, BDR-B).
    n_blocks : int or None, default=None
        k; None takes `n_clusters`.
    n_nonzero : int or None, default=5
        η, coefficients kept per sample; None keeps all, as the authors do.
    by : {"magnitude", "value"}, default="magnitude"
        What "largest" means.
    tol, max_iter : float, int
        Largest change of a coefficient in the last step, relative to the largest one, and after how many steps to give
        up.

    Examples
    --------
    >>> from subspaces import BDR
    >>> BDR(n_clusters=2).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    scaling: Scaling | None = "unit"
    reg: float = 0.3
    block_weight: float = 0.02
    variant: Literal["Z", "B"] = "Z"
    n_blocks: int | None = None
    n_nonzero: int | None = 5
    by: Ranking = "magnitude"
    graph: GraphName = "column"
    tol: float = 1e-3
    max_iter: int = 1000

    _constraints: ClassVar[dict[str, list[Any]]] = {
        "block_weight": [POSITIVE],
        "variant": [StrOptions(set(VARIANTS))],
        "n_blocks": [COUNT, None],
    }
    _n_squares = 9
    _cost = "50 to 300 steps, each with some eigenvectors of an n × n matrix, O(n³)"
    _reference = (
        "Lu, Feng, Lin, Mei, Yan: Subspace clustering by block diagonal representation, TPAMI 41 (2019) 487-501"
    )

    def _outline(self, X: Data) -> Plan:
        plan = super()._outline(X)
        n_blocks = self.n_blocks or self.n_clusters
        if n_blocks is None:
            raise ValueError("BDR needs n_clusters or n_blocks: its coefficients depend on the number of blocks.")
        # settings tell which coefficients can be shared: here the number of clusters changes them
        return replace(plan, settings={**plan.settings, "n_blocks": n_blocks})

    def _represent(self, X: Array, context: Context) -> Coefficients:
        n_blocks = self.n_blocks or self.n_clusters
        assert n_blocks is not None
        return block_diagonal(
            X,
            n_blocks=n_blocks,
            reg=self.reg,
            block_weight=self.block_weight,
            variant=self.variant,
            tol=self.tol,
            max_iter=self.max_iter,
        )
