"""What the search tries: scalings, kernels, penalties and truncations, and the rule for the scaling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from subspaces.kernels import KernelLike, is_precomputed
from subspaces.kernels.profiles import n_monomials
from subspaces.numerics.types import Data
from subspaces.scaling import apply_scaling, fit_scaling

AUTO = "auto"

KERNELS_TRIED = ("rbf", "exponential", "quadratic", "cubic")
REGS_TRIED = (0.01, 0.1, 10.0)
N_NONZERO_TRIED = (3, 5, 8)
CUTS_TRIED = ("modularity", "kmeans")
LARGE = 10_000
"""Points above which only kernels are tried that need no n × n matrix."""

_LEAST_COLUMNS = 4
_DOMINANT_FEATURES = 0.1
_DOMINANT_VARIANCE = 0.9
_SAME_LENGTH = 0.02  # of the squared length


@dataclass(frozen=True)
class Setting:
    """One setting of the journey up to the graph."""

    scaling: str | None
    kernel: KernelLike
    reg: float
    n_nonzero: int | None


@dataclass(frozen=True)
class Grid:
    """The values to try of each parameter; a parameter that was given has one."""

    scalings: tuple[str | None, ...]
    kernels: tuple[Any, ...]
    regs: tuple[float, ...]
    n_nonzeros: tuple[int | None, ...]
    cuts: tuple[str, ...]
    scaling_reason: str = ""

    def kernel_settings(self) -> Iterator[tuple[str | None, Any]]:
        """The pairs (scaling, kernel): one kernel matrix each."""
        for scaling in self.scalings:
            for kernel in self.kernels:
                if is_precomputed(kernel):
                    yield None, kernel
                else:
                    yield scaling, kernel


def make_grid(
    X: Data, *, scaling: Any, kernel: Any, reg: Any, n_nonzero: Any, partition: Any, n_points: int | None = None
) -> Grid:
    """The values to try on these points of every parameter that is ``"auto"``.

    Three penalties and three truncations are enough: between neighbours in this grid partitions hardly change.

    `n_points` is the number of points of the final fit where X is a sample of them.
    """
    n = X.shape[0]
    scalings: tuple[str | None, ...] = (scaling,)
    reason = ""
    if scaling == AUTO:
        scalings, reason = ((None,), "") if is_precomputed(kernel) else scalings_tried(X)
    few = max(2, n // 4)  # more coefficients than a quarter of the points join everything to everything
    sizes = tuple(eta for eta in N_NONZERO_TRIED if eta <= few) or (min(2, n - 1),)
    return Grid(
        scalings=scalings,
        kernels=_kernels_tried(n_points or n, X) if isinstance(kernel, str) and kernel == AUTO else (kernel,),
        regs=REGS_TRIED if reg == AUTO else (float(reg),),
        n_nonzeros=sizes if n_nonzero == AUTO else (n_nonzero,),
        cuts=CUTS_TRIED if partition == AUTO else (partition,),
        scaling_reason=reason,
    )


def neighbouring(grid: Grid, n: int) -> Grid:
    """Settings around given ones, a factor of ten in the penalty and of two in the truncation.

    Where too few settings are tried to agree on a number of clusters, these are asked as well, and only about that.
    """
    sizes = {size for given in grid.n_nonzeros if given is not None for size in (max(2, given // 2), given, 2 * given)}
    return replace(
        grid,
        regs=tuple(sorted({reg * factor for reg in grid.regs for factor in (0.1, 1.0, 10.0)})),
        n_nonzeros=tuple(sorted(size for size in sizes if size < n)) or grid.n_nonzeros,
    )


def _kernels_tried(n_points: int, X: Data) -> tuple[str, ...]:
    """All kernels, or those with a solver that makes no n × n matrix where such a matrix is too large.

    Of sparse points every kernel tried needs that matrix, so there is nothing to choose among.
    """
    if n_points <= LARGE or sparse.issparse(X):
        return KERNELS_TRIED
    degrees = {"quadratic": 2, "cubic": 3}
    return tuple(
        kernel
        for kernel in KERNELS_TRIED
        if kernel not in degrees or 2 * n_monomials(X.shape[1], degrees[kernel]) <= n_points
    )


def scalings_tried(X: Data) -> tuple[tuple[str | None, ...], str]:
    """Scalings worth trying, and the reason in words where only one is.

    A table whose columns have different units is not seen at all by distances and products: the column with the
    largest numbers hides the others, and every setting agrees on it. So when a tenth of four or more features (at
    least one) carries nine tenths of the variance, only ``"standard"`` is tried. Pixels, spectra and coordinates have
    one unit: there it is plain or unit rows.
    """
    X = apply_scaling(X, fit_scaling(X, None))  # a power of two where magnitudes are extreme
    if not sparse.issparse(X) and X.shape[1] >= _LEAST_COLUMNS:
        centred = X - X.mean(axis=0, dtype=np.float64)
        centred /= max(float(np.abs(centred).max()), np.finfo(np.float64).tiny)  # squares must not overflow
        variance = np.sort(np.square(centred).sum(axis=0))[::-1]
        n_few = max(1, int(_DOMINANT_FEATURES * X.shape[1]))
        share = float(variance[:n_few].sum() / max(float(variance.sum()), np.finfo(np.float64).tiny))
        if share > _DOMINANT_VARIANCE:
            what = "1 feature carries" if n_few == 1 else f"{n_few} features carry"
            return ("standard",), f"{what} {100 * share:.0f} % of the variance of all {X.shape[1]}"
    if _all_of_one_length(X):
        return (None,), ""
    return (None, "unit"), ""


def _all_of_one_length(X: Data) -> bool:
    """Whether unit rows would be the same points but for their unit."""
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    return bool(squares.max() - squares.min() <= _SAME_LENGTH * squares.max())
