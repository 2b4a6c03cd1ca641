"""Published treatments of a coefficient matrix, for the coefficients of any method.

Papers often owe a good part of their accuracy to what they do to C before the spectral step; here each such treatment
is one function, so that every method can be given the same one. C may be a dense array, a SciPy sparse array or
`Coefficients`; column i belongs to sample i.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.sparse import csc_array, issparse

from subspaces.representation.coefficients import Coefficients, from_dense
from subspaces.utils.blocks import map_blocks, row_blocks
from subspaces.utils.decompositions import eigh, lanczos
from subspaces.utils.types import Array, Labels, Sparse

Matrix = Array | Sparse | Coefficients
"""Forms of C that the functions here accept."""

DENSE_EIGH_POINTS = 1000
"""Up to this many samples a full eigendecomposition is at most a second and needs no start vector."""

_RANK = 1e-4  # of the largest: singular values up to that count as zero
_SOLVED = 1e-8  # of the largest coefficient: values that iterations leave nearer to each other than this are equal


def keep_column_mass(C: Matrix, share: float, *, until_exceeded: bool = False) -> Sparse:
    """Keep the largest magnitudes of each column until they hold `share` of its ℓ1 norm (SSC's thrC).

    With the magnitudes of column c sorted downwards, s₁ ≥ s₂ ≥ ..., the first t entries stay, t the smallest
    number with s₁ + ... + s_t ≥ share · ‖c‖₁. Equal magnitudes are taken in the order of their rows.

    Parameters
    ----------
    C : (n, n) array, sparse array or Coefficients
    share : float
        ρ in (0, 1]; 1 keeps every entry. SSC used 0.7 for motion and 1 for faces, SMCE 0.95.
    until_exceeded : bool
        Go on until the sum exceeds the share, as DSC-Net's copy of thrC does (the same except for ties).

    Returns
    -------
    coefficients : (n, n) csc_array
        The kept entries with their signs.

    References
    ----------
    Elhamifar & Vidal, "Sparse subspace clustering: algorithm, theory, and applications", TPAMI 2013, and their program.

    Examples
    --------
    >>> import numpy as np
    >>> keep_column_mass(np.array([[0, 3.0, 1], [-2, 0, 1], [1, -1.0, 0]]), 0.6).toarray()
    array([[ 0.,  3.,  1.],
           [-2.,  0.,  1.],
           [ 0.,  0.,  0.]])
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must be in (0, 1], got {share}; 1 keeps every entry.")
    if issparse(C):
        return _keep_mass_sparse(C, share, until_exceeded)
    coefficients = C if isinstance(C, Coefficients) else from_dense(_square(np.asarray(C)))
    n_samples = coefficients.n_samples

    def keep(start: int, stop: int) -> tuple[Array, Array, Array]:
        columns = coefficients.columns(start, stop)
        kept = _mass_mask(np.abs(columns), share, until_exceeded)
        return columns[kept], np.nonzero(kept)[1], np.count_nonzero(kept, axis=1)

    # About six arrays of the block's shape live at once: magnitudes, order, sorted values, sums, masks.
    parts = map_blocks(keep, row_blocks(n_samples, 6 * n_samples * coefficients.dtype.itemsize))
    data, indices, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
    return csc_array((data, indices, np.append(0, np.cumsum(counts))), shape=(n_samples, n_samples))


def _keep_mass_sparse(C: Sparse, share: float, until_exceeded: bool) -> Sparse:
    """Do the same to a sparse matrix, from its stored entries only."""
    kept = csc_array(_square(C), copy=True)
    kept.sum_duplicates()
    counts = np.diff(kept.indptr)
    widest = int(counts.max(initial=0))

    def drop(start: int, stop: int) -> None:
        stored = np.arange(widest) < counts[start:stop, None]
        magnitudes = np.zeros(stored.shape, kept.dtype)
        entries = slice(kept.indptr[start], kept.indptr[stop])
        magnitudes[stored] = np.abs(kept.data[entries])
        kept.data[entries] *= _mass_mask(magnitudes, share, until_exceeded)[stored]

    if widest:
        map_blocks(drop, row_blocks(len(counts), 6 * widest * kept.dtype.itemsize))
    kept.eliminate_zeros()
    return kept


def _mass_mask(magnitudes: Array, share: float, until_exceeded: bool) -> Array:
    """Mark the largest entries of each row whose sum reaches (or exceeds) `share` of the row's sum."""
    if share == 1:  # not by sums: rounding would drop the last entries
        return magnitudes > 0
    order = _descending(magnitudes)
    totals = np.cumsum(np.take_along_axis(magnitudes, order, axis=1), axis=1, dtype=np.float64)
    # An entry stays if the larger ones have not reached the share before it.
    before = np.zeros_like(totals)
    before[:, 1:] = totals[:, :-1]
    goal = share * totals[:, -1:]
    kept = np.empty(magnitudes.shape, bool)
    np.put_along_axis(kept, order, before <= goal if until_exceeded else before < goal, axis=1)
    return kept & (magnitudes > 0)


def _descending(magnitudes: Array) -> Labels:
    """Sort the entries of each row, largest first; those that differ by a solver's error stay in their own order."""
    order = np.argsort(-magnitudes, axis=1, kind="stable")
    ordered = np.take_along_axis(magnitudes, order, axis=1)
    level = np.zeros(order.shape, dtype=np.intp)
    level[:, 1:] = np.cumsum(ordered[:, :-1] - ordered[:, 1:] > _SOLVED * ordered[:, :1], axis=1)
    by_place = np.empty_like(level)
    np.put_along_axis(by_place, order, level, axis=1)
    return np.argsort(by_place, axis=1, kind="stable")


def scale_columns_to_max(C: Matrix) -> Array | Sparse:
    """Divide every column by its largest magnitude (the affinity step of SSC, Elhamifar & Vidal 2013).

    Zero columns stay zero (the authors' programs divide by max + eps). Dense in, dense out; sparse in, csc out.

    Examples
    --------
    >>> import numpy as np
    >>> scale_columns_to_max(np.array([[0, 4.0, 0], [-2, 0, 0], [1, -1.0, 0]]))
    array([[ 0.  ,  1.  ,  0.  ],
           [-1.  ,  0.  ,  0.  ],
           [ 0.5 , -0.25,  0.  ]])
    """
    matrix = _matrix(C)
    if issparse(matrix):
        scaled = csc_array(matrix, copy=True)
        largest = np.abs(scaled).max(axis=0).toarray().ravel()
        scaled.data /= np.repeat(np.where(largest > 0, largest, 1), np.diff(scaled.indptr))
        return scaled
    largest = np.maximum(matrix.max(axis=0), -matrix.min(axis=0))
    return matrix / np.where(largest > 0, largest, 1)


def row_space_affinity(C: Matrix, power: float = 4) -> Array:
    r"""Return LRR's graph: angles between the rows of the weighted left singular vectors of C.

    .. math:: C = U \Sigma V^\top \ (\sigma > 10^{-4}\,\sigma_1), \quad M = U\Sigma^{1/2}
              \text{ with unit rows}, \quad W = |M M^\top|^{\circ\,\text{power}}.

    Parameters
    ----------
    C : (n, n) array, sparse array or Coefficients
        Used as it is, its diagonal included.
    power : float
        Entrywise exponent; 4 in the authors' program, 2 in others.

    Returns
    -------
    affinity : (n, n) array, dense
        Symmetric, in [0, 1], diagonal one as published; a sample whose row of M is zero has no edges.

    References
    ----------
    Liu, Lin, Yan, Sun, Yu & Ma, "Robust recovery of subspace structures by low-rank representation", TPAMI 2013.

    Examples
    --------
    >>> import numpy as np
    >>> row_space_affinity(np.array([[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 0.7]])).round(3)
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    _check_power(power)
    if isinstance(C, Coefficients) and C.factors is not None:
        vectors, singular, _ = C.factors
        dtype = vectors.dtype
    else:
        matrix = _matrix(C)
        # U and Σ from C Cᵀ: several times faster than an SVD of C. Its squared condition costs digits only below
        # σ = 1e-8 σ₁, far under _RANK, in double precision; in single it would not be enough.
        precise: Sparse = matrix.astype(np.float64, copy=False)
        gram = precise @ precise.T
        values, vectors = eigh(gram.toarray() if issparse(gram) else gram)
        singular, dtype = np.sqrt(np.maximum(values, 0)), matrix.dtype
    kept = singular > _RANK * singular.max(initial=0)
    return _angle_affinity(vectors[:, kept], singular[kept], power, dtype, signed=False)


def dscnet_affinity(
    C: Matrix,
    n_clusters: int,
    subspace_dim: int,
    *,
    share: float = 0.04,
    power: float = 8.0,
) -> Array:
    """Return DSC-Net's graph: cut C, take its leading low-rank part, raise the angles to a power.

    1. `keep_column_mass`, going on until the kept sum exceeds `share`;
    2. S = (C + Cᵀ)/2, its diagonal set to one;
    3. S ≈ UΣVᵀ of rank r = subspace_dim · n_clusters + 1 (at most n − 1);
    4. M = UΣ^½ with unit rows;
    5. W = max(MMᵀ, 0)^power, entry by entry (the final division by the maximum divides by one).

    Parameters
    ----------
    C : (n, n) array, sparse array or Coefficients
        Signed coefficients; a zero diagonal is not required.
    n_clusters, subspace_dim : int
        K, and the dimension d given to each cluster.
    share, power : float
        ρ and α. Published (d, ρ, α): COIL 12, 0.04, 8; ORL 3, 0.2, 1; Extended Yale B 10, 0.1 to 0.4, 3.5.

    Returns
    -------
    affinity : (n, n) array, dense
        Symmetric, in [0, 1], diagonal one as published; a sample whose row of M is zero has no edges.

    Notes
    -----
    It is not a safe default; report results with and without it. On COIL20 it lifted KTRR's accuracy from 68.9 to
    92.9 % at λ = 10 and ruined it at λ = 1 (29.0 %).

    References
    ----------
    Ji, Zhang, Li, Salzmann & Reid, "Deep subspace clustering networks", NeurIPS 2017, and their program;
    Haeffele, You & Vidal, "A critique of self-expressive deep subspace clustering", ICLR 2021.

    Examples
    --------
    >>> import numpy as np
    >>> C = np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3))
    >>> dscnet_affinity(C, n_clusters=2, subspace_dim=1, share=1.0)[0].round(2)
    array([1., 1., 1., 0., 0., 0.])
    """
    _check_power(power)
    for name, value in (("n_clusters", n_clusters), ("subspace_dim", subspace_dim)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}.")
    cut = keep_column_mass(C, share, until_exceeded=True)
    symmetric = (cut + cut.T) * cut.dtype.type(0.5)
    symmetric.setdiag(1)  # with zeros there the spectrum would be as much negative as positive
    rank = max(1, min(subspace_dim * n_clusters + 1, cut.shape[0] - 1))
    values, vectors = _leading_eigenpairs(symmetric, rank)
    return _angle_affinity(vectors, np.abs(values), power, cut.dtype, signed=True)


def _leading_eigenpairs(symmetric: Sparse, rank: int) -> tuple[Array, Array]:
    """Return the `rank` eigenpairs of largest magnitude: for a symmetric matrix its leading singular triplets."""
    n_samples = symmetric.shape[0]
    # Lanczos keeps a basis of 2 · rank vectors orthogonal; from a tenth of the spectrum on LAPACK is faster.
    if n_samples > DENSE_EIGH_POINTS and 10 * rank <= n_samples:
        # Its start is not the ones of the original program: on a graph of equal blocks they lie in a small invariant
        # subspace, and Lanczos never leaves it.
        with suppress(LinAlgError):
            return lanczos(symmetric, rank, which="LM")
    values, vectors = eigh(symmetric.toarray())
    leading = np.argsort(-np.abs(values), kind="stable")[:rank]
    return values[leading], vectors[:, leading]


def _angle_affinity(vectors: Array, singular: Array, power: float, dtype: np.dtype[Any], signed: bool) -> Array:
    """Return the power of |cos| (of max(cos, 0) if signed) between the rows of UΣ^½.

    The signs of the singular vectors cancel in M Mᵀ, so the result does not depend on the eigensolver's.
    """
    # Rounding, in the spectrum or in the row of a sample without coefficients, must not become unit vectors. A row
    # below sqrt(eps) of the longest is lost in the rounding of M Mᵀ anyway.
    eps = np.finfo(vectors.dtype).eps
    rows = vectors * np.sqrt(singular * (singular > len(vectors) * eps * singular.max(initial=0)))
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > np.sqrt(eps) * norms.max(initial=0))
    rows = rows.astype(dtype, copy=False)
    affinity = rows @ rows.T
    n_squarings = round(np.log2(power)) if power >= 1 else 0

    def raise_to_power(start: int, stop: int) -> None:
        block = affinity[start:stop]
        np.clip(block if signed else np.abs(block, out=block), 0, 1, out=block)
        if power == 2**n_squarings:  # the published exponents; a general power costs as much as ten products
            for _ in range(n_squarings):
                np.multiply(block, block, out=block)
        else:
            np.power(block, dtype.type(power), out=block)

    map_blocks(raise_to_power, row_blocks(len(affinity), affinity[:1].nbytes))
    return affinity


def _matrix(C: Matrix) -> Array | Sparse:
    """Return C as one square floating-point matrix, dense or sparse."""
    if isinstance(C, Coefficients):
        return C.rows(0, C.n_samples)
    return _square(C if issparse(C) else np.asarray(C))


def _square(C: Array | Sparse) -> Array | Sparse:
    """Refuse what cannot be coefficients; integers become float64."""
    if C.ndim != 2 or C.shape[0] != C.shape[1]:
        raise ValueError(f"C must be a square matrix, one row and one column per sample, got shape {C.shape}.")
    return C if C.dtype.kind == "f" else C.astype(np.float64)


def _check_power(power: float) -> None:
    if power <= 0:
        raise ValueError(f"power must be positive, got {power}; 1 leaves the cosines as they are.")
