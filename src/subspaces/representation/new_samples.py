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

from subspaces.utils.decompositions import cholesky, eigh, solve_systems
from subspaces.utils.ordering import hash_rows
from subspaces.utils.process import quiet
from subspaces.utils.ties import largest_per_row
from subspaces.utils.types import Array, Data, Labels, Sparse

RULES = ("residual", "neighbors", "network")

_CANDIDATES = 50  # nearest training samples that a new sample is coded with
_GRAM_SIDE = 3000  # training samples whose Gram matrix is held at a time


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
    to_train: Array,
    gram_of: Callable[[Array], Array] | None,
    penalty: float,
    n_nonzero: int,
    diagonal: Array | None = None,
) -> Sparse:
    """Compute truncated ridge coefficients of new samples over their nearest training samples, CSR of shape (n_new, n).

    Each new sample is coded over the max(50, 4η) training samples of largest kernel value, by a small ridge system; as
    that number grows to n this becomes the code over all samples. The η largest magnitudes of each code are kept.
    Without `gram_of` the kernel values themselves serve as coefficients (their limit for large λ).

    With `diagonal`, the k(x_j, x_j) of the training samples, the code is affine: it sums to one before truncation, and
    the candidates are those at the least distance.
    """
    n_new, n = to_train.shape
    n_candidates = min(n, max(_CANDIDATES, 4 * n_nonzero))
    counts, columns, values = [np.zeros(0, int)], [np.zeros(0, int)], [np.zeros(0, to_train.dtype)]
    step = max(1, _GRAM_SIDE // n_candidates)
    for start in range(0, n_new, step):
        block = to_train[start : start + step]
        far = -block if diagonal is None else diagonal / 2 - block
        candidates = np.sort(np.argpartition(far, n_candidates - 1, axis=1)[:, :n_candidates], axis=1)
        target = np.take_along_axis(block, candidates, axis=1)
        codes = target.copy()
        if gram_of is not None:
            used, position = np.unique(candidates, return_inverse=True)
            position = position.reshape(candidates.shape)
            K = gram_of(used)[position[:, :, None], position[:, None, :]]
            if diagonal is not None:
                K, target, _ = about_mean(K, target)
            K[:, np.arange(n_candidates), np.arange(n_candidates)] += K.dtype.type(max(penalty, _rounding(K)))
            codes = solve_systems(K, target[:, :, None])[:, :, 0]
            if diagonal is not None:
                codes += codes.dtype.type(1 / n_candidates)
        count, place, value = largest_per_row(codes, np.abs(codes), min(n_nonzero, n_candidates))
        row = np.repeat(np.arange(len(count)), count)
        counts.append(count)
        columns.append(candidates[row, place])
        values.append(value)
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return sparse.csr_array((np.concatenate(values), np.concatenate(columns), indptr), shape=(n_new, n))


def nearest_points(X: Data, X_train: Data) -> Labels:
    """Return the index of the training sample nearest to each row of X, the first one on ties."""
    scores = safe_sparse_dot(X, X_train.T, dense_output=True)
    scores = scores - np.asarray((X_train * X_train).sum(axis=1)).ravel() / 2
    return np.asarray(scores.argmax(axis=1), dtype=np.intp)


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
