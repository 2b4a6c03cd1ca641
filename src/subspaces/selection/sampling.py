"""Which samples a search looks at where there are many: as many from sparse regions as from crowded ones."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from subspaces.kernels.scaling import apply_scaling, fit_scaling
from subspaces.utils.cells import build_cells
from subspaces.utils.types import Data, Labels

_REGIONS = 64


def sample(X: Data, size: int, seed: int, *, pairwise: bool = False) -> Labels:
    """Return rows to look at, ascending: all of them, or `size`.

    A random sample thins small clusters out until nothing is left of them. So the samples are divided into about 64
    regions by k-means, and each region gives the same number of samples, or all it has. Sparse samples, and those of a
    matrix between them (`pairwise`), are drawn at random.
    """
    n = X.shape[0]
    if n <= size:
        return np.arange(n)
    rng = np.random.default_rng(seed)
    if sparse.issparse(X) or pairwise:
        return np.sort(rng.choice(n, size, replace=False))
    points = apply_scaling(X, fit_scaling(X, None))  # a power of two where magnitudes are extreme
    region = build_cells(points, size=-(-n // _REGIONS), seed=seed).labels()
    shuffled = rng.permutation(n)
    by_region = shuffled[np.argsort(region[shuffled], kind="stable")]
    counts = np.bincount(region)
    turn = np.arange(n) - np.repeat(np.cumsum(counts) - counts, counts)  # the first of every region, the second, ...
    return np.sort(by_region[np.argsort(turn, kind="stable")[:size]])
