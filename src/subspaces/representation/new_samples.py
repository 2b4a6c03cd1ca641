"""Label new samples from a clustering of the training samples.

Three rules. *Residual*: the cluster that represents the new sample best, by ridge regression in the kernel space.
*Neighbors*: the new sample gets ridge coefficients over its nearest training samples, truncated as in training, and the
clusters vote with them. *Network*: the paper's classifier (Algorithm 2), one hidden layer of 10 units. A training
sample keeps its label under every rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, solve_triangular
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.extmath import safe_sparse_dot

from subspaces.kernels import Kernel
from subspaces.representation.two_scale import small_grams
from subspaces.utils.blocks import map_blocks, row_blocks
from subspaces.utils.cells import Cells, nearest_cell, probed_positions
from subspaces.utils.decompositions import cholesky, eigh, solve_systems
from subspaces.utils.distances import origin_of, squared_norms_of
from subspaces.utils.ordering import hash_rows, largest_of_few, largest_per_row, top_columns
from subspaces.utils.process import one_thread, quiet
from subspaces.utils.types import Array, Data, Labels, Sparse

RULES = ("residual", "neighbors", "network")

_CANDIDATES, _PER_KEPT = 30, 4  # nearest training samples that a new sample is coded with, at least and per one kept
_TOGETHER = 32  # new samples among whose candidates all kernel values are computed, where batches of few are not
_KEY_BYTES = 2 * 2**20  # kernel values between new and training samples held at a time: they stay in cache


def residual_scores(
    to_train: Array,
    gram_of: Callable[[Array], Array],
    labels: Labels,
    n_clusters: int,
    penalty: float,
    affine: bool = False,
) -> Array:
    """Return how well each cluster represents each new sample, shape (n_new, n_clusters); the largest score wins.

    The ridge problem (eq. 3.2) over the samples X_l of one cluster has the optimal value
    ½(k(x, x) − k_lᵀ(K_ll + λI)⁻¹k_l). The first term is the same for all clusters, so the second one is the score.
    If `affine`, coefficients sum to one: k_l and K_ll are centred at the mean μ of the n_l samples, and the score loses
    the squared distance to μ and λ/n_l, the cost of 1ᵀc = 1; it may be negative.

    Parameters
    ----------
    to_train : kernel values between new and training samples, shape (n_new, n)
    gram_of : function from indices of training samples to their Gram matrix
    penalty : λ, not relative
    """
    scores = np.full((to_train.shape[0], n_clusters), -np.inf)
    for label in range(n_clusters):
        members = np.flatnonzero(labels == label)
        if len(members) == 0:
            continue
        K, right, beyond = gram_of(members), to_train[:, members], np.zeros(1)
        if affine:
            K, right, beyond = about_mean(K, right)
        lam = max(penalty, _rounding(K))
        K.flat[:: len(members) + 1] += lam
        half = _half_solution(K, right.T)
        scores[:, label] = np.einsum("ij,ij->j", half, half) - beyond - affine * lam / len(members)
    return scores


def about_mean(K: Array, to_train: Array) -> tuple[Array, Array, Array]:
    """Centre kernel values at the mean μ of the training samples: K (..., n, n) between them, `to_train` (..., n).

    Returns both, and ‖φ(x) − μ‖² − k(x, x) of the new samples.
    """
    means = K.mean(axis=-1)
    mean, own = means.mean(axis=-1, keepdims=True), to_train.mean(axis=-1, keepdims=True)
    centred = K - means[..., :, None] - means[..., None, :] + mean[..., None]
    return centred, to_train - means - own + mean, (mean - 2 * own)[..., 0]


def _half_solution(K: Array, right: Array) -> Array:
    """Return L⁻¹ right for K = LLᵀ; if K is not positive definite, use its positive part."""
    try:
        factor, _ = cholesky(K, largest_jitter=0)
    except LinAlgError:  # no kernel of inner products
        values, vectors = eigh(K)
        kept = values > _rounding(K)
        return np.asarray((vectors[:, kept] / np.sqrt(values[kept])).T @ right)
    return np.asarray(solve_triangular(factor, right, lower=True, check_finite=False))


def _rounding(K: Array) -> float:
    """Return the least λ at which duplicate samples are solvable: the effect of rounding on the eigenvalues of K."""
    return 10 * float(np.finfo(K.dtype).eps) * K.shape[-1] * float(np.abs(K).max(initial=0))


def neighbor_codes(
    X: Data,
    train: Data,
    kernel: Kernel,
    penalty: float,
    n_nonzero: int,
    *,
    affine: bool = False,
    cells: Cells | None = None,
    by_direction: bool = True,
) -> Sparse:
    """Compute truncated ridge coefficients of new samples over their nearest training samples, CSR of shape (n_new, n).

    Each new sample is coded over the max(30, 4η) training samples nearest to it (:func:`nearness`), by a small ridge
    system; as that number grows to n this becomes the code over all samples. The η largest magnitudes of each code are
    kept. A sample without any similarity to them, all of whose kernel values are 0, has an empty row.

    Parameters
    ----------
    X, train : new and training samples, scaled alike
    penalty : λ, not relative
    n_nonzero : η
    affine : the code sums to one before truncation
    cells : cells of the training samples, in which the candidates are looked for; without them all are compared
    by_direction : whether x and −x are alike, as to methods that represent samples by others
    """
    points_of = getattr(kernel, "points", lambda points: points)
    X, train = points_of(X), points_of(train)
    n_new, n = X.shape[0], train.shape[0]
    n_candidates = min(n if cells is None else len(cells.order), max(_CANDIDATES, _PER_KEPT * n_nonzero))

    def keys_to(members: Data) -> Callable[[Data], Array]:
        return nearness(members, kernel, affine or not by_direction)

    candidates = nearest_candidates(X, train, keys_to, n_candidates, cells)
    in_batches = kernel.has_packed_gram(sparse.issparse(train))  # a function of distances or products alone

    def one_block(start: int, stop: int) -> tuple[Array, Array, Array]:
        near = candidates[start:stop]
        if in_batches:
            together = np.concatenate([X[start:stop, None], train[near]], axis=1)
            K = small_grams(together, kernel)
            K, target = K[:, 1:, 1:], K[:, 0, 1:]
        else:
            used, place = np.unique(near, return_inverse=True)
            place = place.reshape(near.shape)
            K = kernel.gram(train[used])[place[:, :, None], place[:, None, :]]
            target = np.take_along_axis(kernel.cross(X[start:stop], train[used]), place, axis=1)
        codes = _ridge_codes(K, target, penalty, affine)
        if affine and kernel.of_distances:  # beyond the kernel's reach nothing but 1ᵀc = 1 would be left
            codes[~target.any(axis=1)] = 0
        return largest_of_few(near, codes, n_nonzero)

    size = 8 * (n_candidates + 1) * max(train.shape[1], n_candidates)
    blocks = row_blocks(n_new, size) if in_batches else row_blocks(n_new, 1, _TOGETHER)
    with one_thread("blas"):
        parts = map_blocks(one_block, blocks)
    counts, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return sparse.csr_array((values, columns, indptr), shape=(n_new, n))


def strongest_values(to_train: Array, n_kept: int) -> Sparse:
    """Return the largest kernel values with training samples, in the place of codes (their limit for large λ)."""
    keys = np.abs(to_train)
    count, column, value = largest_per_row(to_train, keys, n_kept)
    return sparse.csr_array((value, column, np.concatenate([[0], np.cumsum(count)])), shape=to_train.shape)


def _ridge_codes(K: Array, target: Array, penalty: float, affine: bool) -> Array:
    """Solve (K + λI)c = k for a stack of systems; if `affine`, about the mean of the candidates, so that 1ᵀc = 1."""
    n = K.shape[-1]
    if affine:
        K, target, _ = about_mean(K, target)
    diagonal = np.einsum("bii->bi", K)
    diagonal += np.maximum(penalty, 10 * np.finfo(K.dtype).eps * n * np.abs(diagonal).max(axis=1))[:, None]
    codes = solve_systems(K, target[:, :, None])[:, :, 0]
    return codes + affine / n


def nearest_candidates(
    X: Data, train: Data, keys_to: Callable[[Data], Callable[[Data], Array]], k: int, cells: Cells | None
) -> Array:
    """Return the k training samples of largest key for each new one, shape (n_new, k).

    In cells the training samples compared are those around the cell of the new sample.
    """
    candidates = np.empty((X.shape[0], k), dtype=np.intp)
    with one_thread("blas"):
        if cells is None:
            keys = keys_to(train)

            def one_block(start: int, stop: int) -> None:
                candidates[start:stop] = top_columns(keys(X[start:stop]), k)

            map_blocks(one_block, row_blocks(X.shape[0], 8 * train.shape[0], _KEY_BYTES))
        else:
            cell = nearest_cell(X, cells.centroids)
            order = np.argsort(cell, kind="stable")
            bounds = np.searchsorted(cell[order], np.arange(cells.n_cells + 1))

            def one_cell(c: int, _: int) -> None:
                around = np.sort(cells.order[probed_positions(cells, cells.probes[c], k)])  # of ties the first wins
                keys = keys_to(train[around])
                for start, stop in row_blocks(bounds[c + 1] - bounds[c], 8 * len(around), _KEY_BYTES):
                    rows = order[bounds[c] + start : bounds[c] + stop]
                    candidates[rows] = around[top_columns(keys(X[rows]), k)]

            map_blocks(one_cell, [(c, c + 1) for c in np.unique(cell)])
    return candidates


def nearness(train: Data, kernel: Kernel, by_distance: bool) -> Callable[[Data], Array]:
    """Return a function of new samples: how near each training sample is to them, larger is nearer.

    Nearest is the sample at the least distance in the kernel's space or, where the origin counts (not `by_distance`, no
    kernel of distances), the one that alone explains most: x and −x are one direction, and length does not matter.
    """
    if not (kernel.of_distances and kernel.has_packed_gram(sparse.issparse(train))):
        diagonal = kernel.diagonal(train)
        lengths = np.sqrt(np.maximum(diagonal, np.finfo(np.float64).tiny))

        def by_kernel(X: Data) -> Array:
            values = np.asarray(kernel.cross(X, train))
            if by_distance:
                values -= diagonal / 2
            else:
                np.abs(values, out=values)
                values /= lengths
            return values

        return by_kernel
    m, origin = train.shape[1], origin_of(train)
    # 2 xᵀy − ‖x‖² − ‖y‖² as one product: passes over the values would take as long as it does
    right = np.ones((len(train), m + 2))
    np.subtract(train, origin, out=right[:, :m])
    right[:, m] = -squared_norms_of(right[:, :m])

    def keys(X: Data) -> Array:
        left = np.ones((len(X), m + 2))
        np.subtract(X, origin, out=left[:, :m])
        left[:, m + 1] = -squared_norms_of(left[:, :m])
        left[:, :m] *= 2
        return np.asarray(left @ right.T)

    return keys


def nearest_points(X: Data, X_train: Data) -> Labels:
    """Return the index of the training sample nearest to each row of X, the first one on ties."""
    halves, nearest = squared_norms_of(X_train) / 2, np.empty(X.shape[0], dtype=np.intp)
    for start, stop in row_blocks(X.shape[0], 8 * X_train.shape[0], _KEY_BYTES):
        scores = safe_sparse_dot(X[start:stop], X_train.T, dense_output=True) - halves
        nearest[start:stop] = scores.argmax(axis=1)
    return nearest


def vote(codes: Sparse, labels: Labels, n_clusters: int) -> Array:
    """Return the sum of |coefficient| per cluster, shape (n_new, n_clusters)."""
    indicator = sparse.csr_array(
        (np.ones(len(labels)), (np.arange(len(labels)), labels)), shape=(len(labels), n_clusters)
    )
    return np.asarray((abs(codes) @ indicator).toarray())


def fit_network(X: Data, labels: Labels, seed: int) -> Any:
    """Fit the paper's classifier: one hidden layer of 10 units on standardised features.

    Trained on the full batch by L-BFGS, the nearest maintained relative of the conjugate gradients in the toolbox that
    the authors used.
    """
    model = make_pipeline(
        StandardScaler(with_mean=not sparse.issparse(X)),
        MLPClassifier(hidden_layer_sizes=(10,), solver="lbfgs", alpha=1e-2, max_iter=500, random_state=seed),
    )
    with quiet(ConvergenceWarning):  # stopping after 500 steps is the intended end of training, not a fault
        return model.fit(X, labels)


def find_training_points(X: Data, X_train: Data, train_hashes: Array) -> Labels:
    """Return the index of the training row equal to each row of X, −1 if there is none.

    Rows are matched by 64-bit hashes and then compared in full, so a hash collision does no harm.
    """
    order = np.argsort(train_hashes, kind="stable")
    sorted_hashes = train_hashes[order]
    row_hashes = hash_rows(X)
    place = np.searchsorted(sorted_hashes, row_hashes)
    found = np.full(X.shape[0], -1, dtype=np.intp)
    open_rows = np.arange(X.shape[0])
    while True:  # one round unless different training rows share a hash
        open_rows = open_rows[place[open_rows] < len(order)]
        open_rows = open_rows[sorted_hashes[place[open_rows]] == row_hashes[open_rows]]
        if len(open_rows) == 0:
            return found
        index = order[place[open_rows]]
        equal = np.asarray((X[open_rows] != X_train[index]).sum(axis=1)).ravel() == 0
        found[open_rows[equal]] = index[equal]
        open_rows = open_rows[~equal]
        place[open_rows] += 1
