"""X → C at any n without an n × n matrix: landmarks for the global part, exact small systems for the local part.

Let K ≈ Z Zᵀ with Z from r landmarks (Nyström) and R = K − Z Zᵀ. For a point i with candidates S, T = {i} ∪ S, keep
the residual R inside T only. Then the block of U = (K + λI)⁻¹ that belongs to T is exact by Woodbury,

    U_TT = [R_TT + λ (I − H_T H_Tᵀ)⁻¹]⁻¹ = (B R_TT + λI)⁻¹ B,   B = I − H_T H_Tᵀ,   H = Z (ZᵀZ + λI)^(−1/2),

and the coefficients are c_ji = −U_ji / U_ii as in :mod:`subspaces.representation.ridge`. Exact in both limits: when
the landmarks carry all of K (R = 0), and when T holds all points. One linear system of |T| unknowns per point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans

from subspaces.graphs.truncation import top_columns
from subspaces.kernels import DISTANCE_KERNELS, Kernel, apply_profile, cross, gram
from subspaces.numerics.blocks import map_blocks, row_blocks
from subspaces.numerics.cells import Cells, Score, build_cells, nearest_cell, probed_positions, search
from subspaces.numerics.centroids import first_centres
from subspaces.numerics.decompositions import eigh, solve_systems
from subspaces.numerics.process import one_thread
from subspaces.numerics.types import Array, Labels
from subspaces.representation.coefficients import Coefficients, from_sparse
from subspaces.representation.ridge import above_rounding, penalty

N_LANDMARKS = 256
N_CANDIDATES = 20
_BATCH = 256  # points whose systems are solved together
_SAMPLE = 64  # points per landmark that k-means looks at
_LEADING = 128  # directions of the global part that choose candidates
_ROUNDING = 1e3  # smallest λ in units of the kernel's rounding: R is a difference of two matrices that nearly agree


@dataclass(frozen=True)
class GlobalPart:
    """Landmarks and what turns kernel values to them into rows of H.

    h(x) = k(x, landmarks) ``whitening``;  z(x)ᵀz(y) = Σ_a h_a(x) ``spectrum``_a h_a(y), so Z need not be kept.
    ``effective_dimension`` is Σ_i ‖h_i‖²; at r it says that the landmarks are used up.
    """

    kernel: Kernel
    penalty: float
    landmarks: Array
    whitening: Array
    spectrum: Array
    effective_dimension: float

    def rows(self, X: Array) -> Array:
        """Rows of H for any points."""
        H: Array = cross(X, self.landmarks, self.kernel) @ self.whitening
        return H


def two_scale(
    X: Array,
    *,
    kernel: Kernel,
    reg: float = 1.0,
    n_landmarks: int = N_LANDMARKS,
    n_candidates: int = N_CANDIDATES,
    cells: Cells | None = None,
    model: GlobalPart | None = None,
    seed: int = 0,
) -> Coefficients:
    """Ridge coefficients over each point's nearest candidates, everything else through landmarks.

    Parameters
    ----------
    X : array of shape (n, m)
    kernel : a kernel of distances (:data:`subspaces.kernels.DISTANCE_KERNELS`): its candidates are nearest neighbours
    reg : λ divided by the mean diagonal of K
    n_landmarks : r, landmarks of the global part
    n_candidates : nearest neighbours that get a coefficient
    cells, model : of X, when they are known already

    Returns
    -------
    Coefficients
        Sparse from the start, `n_candidates` entries a column.
    """
    n = len(X)
    n_candidates = min(n_candidates, n - 1)
    model = model or fit_global_part(X, kernel, reg, n_landmarks, seed)
    cells = cells or build_cells(X, seed=seed)
    points = X[cells.order]
    candidates = search(cells, n_candidates, pair_score(points, model))
    values = np.empty((n, n_candidates), dtype=X.dtype)

    def one_block(start: int, stop: int) -> None:
        values[start:stop] = local_coefficients(points, np.arange(start, stop), candidates[start:stop], model)

    with one_thread("blas"):
        map_blocks(one_block, row_blocks(n, 1, _BATCH))
    return sparse_coefficients(cells.order[candidates], values, cells.order, model.penalty)


def sparse_coefficients(candidates: Array, values: Array, order: Labels, penalty: float) -> Coefficients:
    """Coefficients of the points ``order`` over their candidates, as a sparse C in the points' own order."""
    n, s = values.shape
    indices, data = np.empty((n, s), dtype=np.int32), np.empty_like(values)
    indices[order], data[order] = candidates, values
    indptr = np.arange(n + 1, dtype=np.int64) * s
    C = sparse.csc_array((data.ravel(), indices.ravel(), indptr), shape=(n, n))
    C.sort_indices()
    return replace(from_sparse(C), penalty=penalty)


def represent_new(X: Array, train: Array, cells: Cells, model: GlobalPart, k: int) -> tuple[Array, Array]:
    """Nearest training points of new points and the coefficients over them, both of shape (n_new, k)."""
    k = min(k, len(train))
    candidates, values = np.empty((len(X), k), dtype=np.intp), np.empty((len(X), k), dtype=X.dtype)
    cell = nearest_cell(X, cells.centroids)
    for c in np.unique(cell):
        rows = np.flatnonzero(cell == c)
        around = cells.order[probed_positions(cells, cells.probes[c], k)]
        database = train[around]
        nearness = 2 * (X[rows] @ database.T) - np.einsum("ij,ij->i", database, database)
        candidates[rows] = around[top_columns(nearness, k)]

    def one_block(start: int, stop: int) -> None:
        used, position = np.unique(candidates[start:stop], return_inverse=True)
        points = np.concatenate([X[start:stop], train[used]])
        places = stop - start + position.reshape(stop - start, k)
        values[start:stop] = new_coefficients(points, np.arange(stop - start), places, model)

    with one_thread("blas"):
        map_blocks(one_block, row_blocks(len(X), 1, _BATCH))
    return candidates, values


def fit_global_part(X: Array, kernel: Kernel, reg: float, n_landmarks: int = N_LANDMARKS, seed: int = 0) -> GlobalPart:
    """Landmarks by k-means and the whitening of their Nyström features; two passes over X in blocks, O(n r²)."""
    landmarks = _landmarks(X, n_landmarks, seed)
    eigenvalues, vectors = eigh(gram(landmarks, kernel).astype(np.float64))
    kept = eigenvalues > np.finfo(X.dtype).eps * eigenvalues[-1]
    to_features = vectors[:, kept] / np.sqrt(eigenvalues[kept])

    def inner_products(start: int, stop: int) -> tuple[Array, float]:
        Z = cross(X[start:stop], landmarks, kernel) @ to_features.astype(X.dtype)
        return (Z.T @ Z).astype(np.float64), float(diagonal(X[start:stop], kernel).sum(dtype=np.float64))

    with one_thread("blas"):
        parts = map_blocks(inner_products, row_blocks(len(X), len(landmarks) * X.itemsize))
    mean_diagonal = sum(part[1] for part in parts) / len(X)
    lam = above_rounding(penalty(np.array([mean_diagonal], dtype=X.dtype), reg), mean_diagonal, X.dtype, _ROUNDING)
    spectrum, rotation = eigh(np.sum([part[0] for part in parts], axis=0))
    spectrum = np.maximum(spectrum, 0)
    whitening = (to_features @ rotation) / np.sqrt(spectrum + lam)
    return GlobalPart(
        kernel,
        lam,
        landmarks,
        whitening.astype(X.dtype),
        (spectrum + lam).astype(X.dtype),
        float((spectrum / (spectrum + lam)).sum()),
    )


def local_coefficients(points: Array, rows: Labels, candidates: Array, model: GlobalPart) -> Array:
    """Coefficients of the points `rows` over their candidates: one small system each, solved together.

    Parameters
    ----------
    points : array of shape (n, m)
    rows : positions of the points to be represented, shape (b,)
    candidates : positions of what represents them, shape (b, s)
    """
    overlap, residual = _small_systems(points, np.concatenate([rows[:, None], candidates], axis=1), model)
    B = np.eye(overlap.shape[1], dtype=points.dtype) - overlap
    U = solve_systems(_plus_penalty(B @ residual, model), B[:, :, :1])[:, :, 0]
    # the diagonal of an inverse is at least the inverse of the diagonal, which rounding at small λ forgets
    least = 1 / (diagonal(points[rows], model.kernel) + points.dtype.type(model.penalty))
    coefficients: Array = -U[:, 1:] / np.maximum(U[:, :1], least[:, None])
    return coefficients


def new_coefficients(points: Array, rows: Labels, candidates: Array, model: GlobalPart) -> Array:
    """The same for points that the global part has not seen, over candidates that it has.

    Such a point x cancels in the Schur complement of T = {x} ∪ S: c = (B_S R_SS + λI)⁻¹ (B_S R_Sx + λ H_S h_x), which
    is the ridge code of x over the training points where the landmarks carry all of K or S holds all of them.
    """
    overlap, residual = _small_systems(points, np.concatenate([rows[:, None], candidates], axis=1), model)
    B = np.eye(candidates.shape[1], dtype=points.dtype) - overlap[:, 1:, 1:]
    right = B @ residual[:, 1:, :1] + points.dtype.type(model.penalty) * overlap[:, 1:, :1]
    coefficients: Array = solve_systems(_plus_penalty(B @ residual[:, 1:, 1:], model), right)[:, :, 0]
    return coefficients


def _small_systems(points: Array, together: Array, model: GlobalPart) -> tuple[Array, Array]:
    """H_T H_Tᵀ and R_TT of many small groups T, given by positions, shape (b, t)."""
    used, position = np.unique(together, return_inverse=True)
    H = model.rows(points[used])[position.reshape(together.shape)]
    transposed = H.transpose(0, 2, 1)
    residual = _small_grams(points[together], model.kernel)
    residual -= (H * model.spectrum) @ transposed
    return H @ transposed, residual


def _plus_penalty(systems: Array, model: GlobalPart) -> Array:
    diagonal_of = np.arange(systems.shape[1])
    systems[:, diagonal_of, diagonal_of] += systems.dtype.type(model.penalty)
    return systems


def pair_score(points: Array, model: GlobalPart, known: tuple[Array, Array] | None = None) -> Score:
    """Coefficient of a point over one other alone, up to its column's factor: what candidates are chosen by.

    With T = {i, j} and small ‖h‖ the system of the module reads c_ji ∝ R_ij + λ h_iᵀh_j, and R_ij + λ h_iᵀh_j =
    k_ij − Σ_a (spectrum_a − λ) h_ia h_ja. Far more of the largest true coefficients are among its largest than among
    the nearest neighbours (Covtype, 20 candidates: 99 against 76 % of the five largest). Only the leading directions
    enter. `known` are the points' :func:`score_parts`, when they were computed before.
    """
    features, squared_norms = known or score_parts(points, model)

    def score(rows: slice, around: Array) -> Array:
        values: Array = points[rows] @ points[around].T
        values *= -2
        values += squared_norms[around]
        values += squared_norms[rows, None]
        np.maximum(values, 0, out=values)
        apply_profile(values, model.kernel)
        values -= features[rows] @ features[around].T
        values[np.arange(rows.start, rows.stop)[:, None] == around] = -np.inf
        return values

    return score


def score_parts(points: Array, model: GlobalPart) -> tuple[Array, Array]:
    """What :func:`pair_score` needs of each point: the leading features √(spectrum − λ) h and the squared norm."""
    weights = np.sqrt(np.maximum(model.spectrum - points.dtype.type(model.penalty), 0))
    leading = slice(-min(_LEADING, len(weights)), None)
    features = _in_blocks(points, lambda block: model.rows(block)[:, leading] * weights[leading])
    return features, np.einsum("ij,ij->i", points, points)


def diagonal(X: Array, kernel: Kernel) -> Array:
    """k(x, x) of each row."""
    if kernel.name in DISTANCE_KERNELS:
        return np.ones(len(X), dtype=X.dtype)
    squared: Array = np.einsum("ij,ij->i", X, X)[:, None]
    apply_profile(squared, kernel)
    return squared[:, 0]


def _small_grams(groups: Array, kernel: Kernel) -> Array:
    """Gram matrices of many small groups of points, shape (b, t, m) → (b, t, t)."""
    if kernel.name in DISTANCE_KERNELS:
        groups = groups - groups[:, :1]  # near the origin no digits are lost
    products: Array = groups @ groups.transpose(0, 2, 1)
    if kernel.name in DISTANCE_KERNELS:
        squared_norms = np.einsum("bii->bi", products).copy()
        products *= -2
        products += squared_norms[:, :, None]
        products += squared_norms[:, None, :]
        np.maximum(products, 0, out=products)
    apply_profile(products, kernel)
    return products


def _in_blocks(X: Array, function: Callable[[Array], Array]) -> Array:
    """A function of rows applied block by block, in threads."""
    with one_thread("blas"):
        return np.concatenate(
            map_blocks(lambda start, stop: function(X[start:stop]), row_blocks(len(X), 4 * N_LANDMARKS * X.itemsize))
        )


def _landmarks(X: Array, n_landmarks: int, seed: int) -> Array:
    if len(X) <= n_landmarks:
        return X
    rng = np.random.default_rng(seed)
    sample = X[np.sort(rng.choice(len(X), min(len(X), _SAMPLE * n_landmarks), replace=False))]
    n_landmarks = min(n_landmarks, len(np.unique(sample, axis=0)))
    with one_thread("openmp"), one_thread("blas"):  # one thread, one result
        starts = first_centres(sample, n_landmarks, rng, spread_out=True)
        model = KMeans(n_landmarks, init=starts, n_init=1, max_iter=10)
        return np.asarray(model.fit(sample).cluster_centers_, dtype=X.dtype)
