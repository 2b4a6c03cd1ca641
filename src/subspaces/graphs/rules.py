"""Choose what a published method does to its coefficients, for any method: C → T with W = |T| + |T|ᵀ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from subspaces.graphs.postprocessing import dscnet_affinity, keep_column_mass, row_space_affinity, scale_columns_to_max
from subspaces.graphs.truncation import RANKINGS, truncate, truncate_symmetric
from subspaces.representation.coefficients import Coefficients, Factors
from subspaces.utils import memory
from subspaces.utils.blocks import map_blocks, row_blocks
from subspaces.utils.types import Array, Sparse

_SMALL = 2**24  # bytes that any machine has
_COPIES = 4.5  # of the entries of a graph and their indices that exist at once while it is built and used, measured
_PARAMS = {
    "symmetric": (),
    "column": (),
    "mass": ("share",),
    "row_space": ("power",),
    "dscnet": ("subspace_dim", "share", "power"),
    "unit": (),
    "larger": ("share",),
}

GRAPHS = tuple(_PARAMS)


@dataclass(frozen=True)
class GraphRule:
    """Describe a treatment of coefficients.

    ================ ========================================================================== =================
    name             treatment                                                                  params
    ================ ========================================================================== =================
    ``"column"``     η largest per column, as printed for KTRR and TRR (LSR: η = None)
    ``"symmetric"``  columns to maximum 1, symmetrised, η largest per column (authors' program)
    ``"mass"``       largest entries until they hold `share` of the column, columns to max. 1   share (1)
                     (SSC)
    ``"row_space"``  cosines between rows of U Σ^½ of C's SVD, to a `power` (LRR)               power (4)
    ``"dscnet"``     mass, rank d·L + 1, row-space cosines to a `power` (DSC-Net)               subspace_dim (12),
                                                                                                share (0.04),
                                                                                                power (8)
    ``"unit"``       columns to length 1 (EnSC, SSC-OMP)
    ``"larger"``     mass, then the larger of c_ij and c_ji (SMCE)                              share (0.95)
    ================ ========================================================================== =================

    `n_nonzero` (η) and `by` matter to the first two only.
    """

    name: str = "symmetric"
    n_nonzero: int | None = None
    by: str = "magnitude"
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse parameters that the treatment does not have, or that make no sense."""
        unknown = set(self.params) - set(_PARAMS[self.name])
        if unknown:
            allowed = list(_PARAMS[self.name]) or "nothing"
            raise ValueError(f"graph_params of graph={self.name!r} may hold {allowed}; got {sorted(unknown)}.")
        for name, value in self.params.items():
            if not isinstance(value, Real):
                raise ValueError(f"{name} in graph_params must be a number; got {value!r}.")
        if self.n_nonzero is not None and (not isinstance(self.n_nonzero, Integral) or self.n_nonzero < 1):
            raise ValueError(f"n_nonzero must be a positive integer or None; got {self.n_nonzero!r}.")
        if self.by not in RANKINGS:
            raise ValueError(f"by must be one of {list(RANKINGS)}; got {self.by!r}.")
        share = self.params.get("share", 1)
        if not 0 < share <= 1:
            raise ValueError(f"share must be in (0, 1], got {share}; 1 keeps every entry.")

    def check_number(self, n_clusters: int | None) -> None:
        """Refuse a treatment that needs the number of clusters where it is not known."""
        if self.name == "dscnet" and n_clusters is None:
            raise ValueError('graph="dscnet" needs n_clusters: the rank it keeps follows from it.')

    def require_memory(self, n: int, is_sparse: bool) -> None:
        """Refuse a graph that does not fit: one that joins (nearly) all pairs is larger than the matrix it comes from.

        Sparse coefficients stay sparse under the rules that keep single entries.
        """
        truncates = self.name in ("column", "symmetric")
        kept = min(self.n_nonzero, n) if truncates and self.n_nonzero is not None else n
        needed = int(_COPIES * n * kept * (8 + 4))
        grows = self.name in ("row_space", "dscnet") or (truncates and not is_sparse)
        if grows and needed > _SMALL:
            memory.require(
                needed,
                f"the graph of {n} points with up to {kept} edges each",
                "Keep fewer coefficients per point (n_nonzero), or fit a sample and let predict label the rest.",
            )

    def with_nonzero(self, n_nonzero: int | None) -> GraphRule:
        """Return the same treatment with another η."""
        return replace(self, n_nonzero=n_nonzero)

    def of_prefix(self) -> GraphRule:
        """Return the treatment that makes of a graph with a larger η what this one makes of all coefficients."""
        return replace(self, name="column")


class Built(NamedTuple):
    """Hold what a rule made of coefficients: sparse T, whose affinity is |T| + |T|ᵀ, and what was kept of C.

    `coefficients` are the entries of C that were kept, with sign; the factors of C where it is of low rank; or None.
    """

    treated: Sparse
    coefficients: Sparse | Factors | None


def build_graph(
    coefficients: Coefficients, rule: GraphRule, n_clusters: int | None = None, *, keep: bool = True
) -> Built:
    """Treat coefficients the way a published method does; `keep` the truncated coefficients themselves as well.

    Under ``"row_space"`` and ``"dscnet"`` nearly every pair of samples is joined: the result is sparse in form, entries
    that vanish beside the largest are left out.
    """
    rule.check_number(n_clusters)
    params = dict(rule.params)
    if rule.name == "column":
        C = truncate(coefficients, rule.n_nonzero, by=rule.by)
        return Built(C, C)
    if rule.name == "symmetric":
        return Built(*truncate_symmetric(coefficients, rule.n_nonzero, keep=keep))
    if rule.name == "mass":
        C = keep_column_mass(coefficients, params.get("share", 1.0))
        return Built(scale_columns_to_max(C), C)
    if rule.name == "unit":
        C = coefficients.sparse()
        return Built(normalize(C, axis=0).astype(np.result_type(C.dtype, np.float32)), C)
    if rule.name == "larger":
        C = keep_column_mass(coefficients.sparse(), params.get("share", 0.95))
        half = abs(C).maximum(abs(C).T).tocsc(copy=True)
        half.data /= 2  # the affinity adds the transpose
        return Built(half, C)
    kept: Sparse | Factors | None = coefficients.factors
    if kept is None and rule.n_nonzero is not None:
        kept = truncate(coefficients, rule.n_nonzero, by=rule.by)
    if rule.name == "row_space":
        return Built(_half_sparse(row_space_affinity(coefficients, **params)), kept)
    assert n_clusters is not None
    subspace_dim = params.pop("subspace_dim", 12)
    return Built(_half_sparse(dscnet_affinity(coefficients, n_clusters, subspace_dim, **params)), kept)


def _half_sparse(W: Array) -> Sparse:
    """Return W/2 of a symmetric W, without its diagonal and what rounding cannot tell from zero; change W."""
    np.fill_diagonal(W, 0)
    smallest = np.finfo(W.dtype).eps * W.max(initial=0)
    index_type = np.int32 if W.size < 2**31 else np.int64

    def compress(start: int, stop: int) -> tuple[Array, Array, Array]:
        rows = W[start:stop]
        kept = (rows >= smallest) & (rows > 0)
        return rows[kept] / 2, np.nonzero(kept)[1].astype(index_type), np.count_nonzero(kept, axis=1)

    # by rows, which are the columns: SciPy's own conversion sorts all entries
    parts = map_blocks(compress, row_blocks(len(W), W[:1].nbytes))
    data, indices, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
    return sparse.csc_array((data, indices, np.append(0, np.cumsum(counts)).astype(index_type)), shape=W.shape)
