"""What the low-rank representations with entrywise errors (LRR1, LatLRR) share: penalties, start and stages."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from subspaces.numerics.decompositions import eigh
from subspaces.numerics.types import Array
from subspaces.representation import _nuclear
from subspaces.representation._nuclear import LowRank, squared_error_match, squared_norm

COEFFICIENT_PENALTY = 3.0
"""Penalty of ADMM for the coefficients.

Coefficients and their multipliers have singular values up to one, so that a penalty near one needs no tuning to the
data: on faces 1 to 4 were all within a fifth of the fewest iterations.
"""

THRESHOLD_SHARE = 1 / 3
"""Entrywise threshold over the root mean square of the data at a penalty of one for the coefficients.

It fixes the ratio of the penalties of errors and coefficients. On faces and on synthetic subspaces with dense, sparse
and gross errors this share was within a few iterations of the best one over a hundredfold range of `reg`, and better
than rules that adapt; a constant penalty keeps the guarantee of convergence.
"""

SINGLE_PRECISION_SIZE = 500_000
"""Entries from which data may be iterated on in single precision: below, there is no time to save."""

STAGE_SHARE = 0.75
"""Share of all directions above which a stage on some of them saves nothing."""

STAGES = ("leading", "turned", "all")
"""Where coefficients are looked for in turn, see `stage_dictionary`."""

SLACK = {"leading": 1.0, "turned": 0.2, "all": 1.0}
"""Multiple of the tolerance at which a stage is done.

Adding directions raises the residuals about fivefold: the stage before the last is solved as much further.
"""


def working_dtype(X: Array, tol: float) -> np.dtype[Any]:
    """Precision to iterate in: single for large data and tolerances a hundred times above its rounding."""
    return np.dtype(np.float32) if X.size >= SINGLE_PRECISION_SIZE and tol >= 1e-4 else X.dtype


def error_penalty(X: Array, reg: float) -> float:
    """Penalty of ADMM for the errors of the data X, in units of that of the coefficients."""
    return reg / (THRESHOLD_SHARE * float(np.sqrt(squared_norm(X) / X.size)))


def entrywise_match(singular_values: Array, reg: float, n_entries: int) -> tuple[Array, Array]:
    r"""The start, in the bases of the data: the solution of `squared_error_match` once more.

    Entrywise errors have heavier tails than one common size has: two to three times the size gave a start with a
    lower objective on faces.

    Returns
    -------
    kept : share of every direction that is kept
    slopes : singular values of the multiplier :math:`\frac{reg}{size} F`, from a formula without cancellation
    """
    _, size = squared_error_match(singular_values**2, reg, n_entries)
    size *= 2.5
    kept = np.maximum(0, 1 - size / (reg * singular_values**2))
    return kept, np.minimum(reg / size * singular_values, 1 / singular_values)


def multipliers_of_errors(errors: Array, threshold: float) -> Array:
    """Scaled multipliers of an l1 norm for errors given without them: plus or minus `threshold`, by sign.

    Errors below a tenth of it are taken for zeros not quite reached, whose multiplier is in between.
    """
    return np.clip(10 * errors, -threshold, threshold)


class Dictionary(NamedTuple):
    """What the coefficients of a stage represent points by.

    ``rotation`` has its directions as columns (None: the leading ones of the data), ``atoms`` the data in them as
    orthogonal columns of lengths ``singular_values``.
    """

    rotation: Array | None
    atoms: Array
    singular_values: Array

    def restrict(self, M: Array) -> Array:
        """A copy of `M`, with one column per direction of the data, in the directions of the stage."""
        return M[:, : len(self.singular_values)].copy() if self.rotation is None else M @ self.rotation

    def extend(self, M: Array, n_directions: int) -> Array:
        """Back to all directions of the data."""
        return np.pad(M, ((0, 0), (0, n_directions - M.shape[1]))) if self.rotation is None else M @ self.rotation.T


def stage_dictionary(stage: str, basis: Array, singular_values: Array, M: Array, n_kept: int) -> Dictionary | None:
    """The part of the dictionary ``basis * singular_values`` a stage works with; None where it would save nothing.

    Coefficients B with one column per direction of the data have a low rank, and a sweep costs as much as there are
    columns. So most of the way is gone on the leading directions of the data, then on the leading right singular
    vectors of `M`, the argument of the next shrinkage, of which `n_kept` are above the threshold; none of those left
    out is near it. The last stage has all directions, hence what is converged to does not depend on the others.
    """
    n_directions, dtype = M.shape[1], M.dtype
    room = 8 + n_kept // (3 if stage == "leading" else 7)  # the leading directions are the coarser guess
    size = n_directions if stage == "all" else max(_nuclear.SMALLEST_LEVEL, n_kept + room)
    if stage != "all" and size > STAGE_SHARE * n_directions:
        return None
    if stage != "turned":
        atoms = basis[:, :size] * singular_values[:size]
        return Dictionary(None, atoms.astype(dtype, copy=False), singular_values[:size].astype(dtype))
    vectors = eigh(M.T @ M)[1]
    directions = vectors[:, -size:].astype(np.float64)
    gram = directions.T @ (singular_values.astype(np.float64)[:, None] ** 2 * directions)
    directions = directions @ eigh(gram)[1][:, ::-1]
    atoms = basis @ (singular_values[:, None] * directions)
    parts = directions, atoms, np.linalg.norm(atoms, axis=0)
    return Dictionary(*(np.ascontiguousarray(part, dtype=dtype) for part in parts))


def refitted(low: LowRank, coefficients: Array, atoms: Dictionary, n_directions: int) -> LowRank:
    """`coefficients`, which meet the constraint, in the right singular vectors of `low`, which has a low rank.

    Of the two halves of an ADMM iterate this has a lower objective than `low`: its leading directions, where the data
    magnify every error, are right. The result is in the directions of the data.
    """
    M = coefficients @ low.right
    squares, rotation = eigh(M.T @ M)
    # rounding in MᵀM moves every eigenvalue by up to some ε of the largest per row
    kept = squares > 4 * len(squares) * np.finfo(M.dtype).eps * squares.max(initial=0)
    rotation = rotation[:, kept]
    right = atoms.extend((low.right @ rotation).T, n_directions).T
    return LowRank(M @ rotation, np.ascontiguousarray(right), np.sqrt(squares[kept]))
