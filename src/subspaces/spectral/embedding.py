"""Embed a graph W by eigenvectors Y of the normalised Laplacian, component by component.

A good self-expression graph is made of disconnected pieces, so the eigenvalue 0 of L = I − D^(−1/2) W D^(−1/2)
(eq. 3.14) is repeated once per piece. A Lanczos solver sees a repeated eigenvalue only through rounding and silently
returns others instead: 19 of 38 vectors were missed on a perfect graph of 38 blocks. Therefore the null vectors are
not computed but written down (D^(1/2) 1 on each component), and each component is solved by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError
from scipy.sparse.linalg import LinearOperator
from sklearn.exceptions import ConvergenceWarning

from subspaces.graphs.affinity import components
from subspaces.utils.decompositions import Pairs, block_pairs, eigh, lanczos, largest_eigenpairs
from subspaces.utils.ordering import tolerance
from subspaces.utils.process import warn_caller
from subspaces.utils.types import Array, Labels, Sparse

DENSE_SIZE = 600
"""Components up to this size go to LAPACK: nothing can be missed there, and it is fast enough."""
FULL_GRAPH_SIZE = 4000
"""Graphs up to this size that join more than a tenth of all pairs go there too: products with them are dense anyway."""

_RESTARTS = 300  # of Lanczos, some 40 products with S each, before a slower solver takes over
_RESIDUAL = {np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-6}
_EQUAL = {np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-6}  # relative, of entries and lengths


@dataclass(frozen=True)
class Embedding:
    """Hold eigenvectors Y (n × k) of L for its k smallest eigenvalues, with the evidence."""

    vectors: Array  #: orthonormal columns, rows not yet scaled
    eigenvalues: Array  #: of L, ascending
    residuals: Array  #: ‖Ly − μy‖ of each pair
    n_components: int  #: connected components with at least one edge
    components: Labels  #: of each sample, −1 for a sample without edges


def spectral_embedding(W: Sparse, n_vectors: int) -> Embedding:
    """Compute eigenvectors of L = I − D^(−1/2) W D^(−1/2) (eq. 3.14) for its `n_vectors` smallest eigenvalues.

    W is symmetric, non-negative and sparse. Zero eigenvalues are included: the paper says "smallest nonzero
    eigenvalues", but its figures need the zero ones (without them COIL20 falls from 90.6 to 51.4 % accuracy), and so
    does theory: they are the components.

    With more components than `n_vectors` the null space is larger than asked for and no choice within it is better
    than another: then all its vectors are returned, one per component.
    """
    W = sparse.csr_array(W)
    n_components, labels = components(W)
    if n_components == 0:
        raise ValueError(
            "the affinity graph has no edge: every coefficient is zero. The points may be orthogonal to each other (or "
            "zero), the bandwidth of the kernel too small, or reg or error_weight far off."
        )
    degree = np.asarray(W.sum(axis=1)).ravel()
    with np.errstate(divide="ignore"):
        inverse_root = np.where(degree > 0, 1 / np.sqrt(degree), 0).astype(W.dtype)
    S = W.copy()
    S.data *= inverse_root[S.indices]
    S.data *= np.repeat(inverse_root, np.diff(S.indptr))
    n_vectors = min(n_vectors, int((labels >= 0).sum()))
    vectors = np.zeros((W.shape[0], max(n_vectors, n_components)), dtype=W.dtype)
    root = np.sqrt(degree).astype(W.dtype)
    known = labels >= 0
    vectors[known, labels[known]] = root[known]
    vectors[:, :n_components] /= np.linalg.norm(vectors[:, :n_components], axis=0)
    values = np.ones(vectors.shape[1], dtype=W.dtype)
    if n_vectors > n_components:
        found_values, found = _remaining_vectors(S, labels, n_components, root, n_vectors - n_components)
        values[n_components:], vectors[:, n_components:] = found_values, found
    residuals = np.linalg.norm(S @ vectors - vectors * values, axis=0)
    expected = _RESIDUAL[residuals.dtype]
    if residuals.max(initial=0) > expected:
        warn_caller(
            f"the largest residual of the {len(residuals)} eigenvectors is {residuals.max():.1g} "
            f"(expected below {expected:.0e}): labels may depend on the eigensolver.",
            ConvergenceWarning,
        )
    # an eigenvector's sign is arbitrary: its (first) entry of largest magnitude is made positive
    sizes = np.abs(vectors)
    largest = (sizes >= (1 - _EQUAL[vectors.dtype]) * sizes.max(axis=0)).argmax(axis=0)
    vectors *= np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return Embedding(vectors, 1 - values, residuals, n_components, labels)


def unit_rows(Y: Array) -> Array:
    """Scale each row to length 1 (Ng, Jordan, Weiss); rows of zeros stay zero."""
    norms = np.linalg.norm(Y, axis=1, keepdims=True)
    return Y / np.where(norms > 0, norms, 1)


def _remaining_vectors(S: Sparse, labels: Labels, n_components: int, root: Array, n_vectors: int) -> Pairs:
    """Gather the largest eigenpairs of S apart from the known ones over the components."""
    order = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[order], np.arange(n_components + 1))
    every_value: list[float] = []
    every_vector: list[tuple[Labels, Array]] = []
    for component in range(n_components):
        members = order[bounds[component] : bounds[component + 1]]
        wanted = min(n_vectors, len(members) - 1)
        if wanted == 0:
            continue
        block = S if len(members) == S.shape[0] else S[members][:, members]
        null = root[members] / np.linalg.norm(root[members])
        values, vectors = leading_pairs(block, null, wanted)
        every_value += values.tolist()
        every_vector += zip(repeat(members), vectors.T)
    # of equal values those of the first component come first, whatever rounding says
    found = np.array(every_value)
    order = np.argsort(-found, kind="stable")
    group = np.empty(len(found), dtype=np.intp)
    group[order] = _tied_groups(found[order], tolerance(S.dtype))
    chosen = np.argsort(group, kind="stable")[:n_vectors]
    out = np.zeros((S.shape[0], n_vectors), dtype=S.dtype)
    for j, i in enumerate(chosen):
        members, vector = every_vector[i]
        out[members, j] = vector
    return found[chosen].astype(S.dtype), out


def leading_pairs(S: Sparse, null: Array, k: int) -> Pairs:
    """Return the k largest eigenpairs of S without the known `null` vector (eigenvalue 1), by a solver for the size."""
    n = S.shape[0]
    nearly_full = n <= FULL_GRAPH_SIZE and S.nnz > 0.1 * n**2
    if n <= max(DENSE_SIZE, 4 * k) or nearly_full:
        return _dense_pairs(S, np.ones(1), null[:, None], k)
    return _lanczos_pairs(S, null, k)


def _lanczos_pairs(S: Sparse, null: Array, k: int) -> Pairs:
    """Run Lanczos with the known vectors moved out of the way, until nothing larger is left.

    One run can miss a copy of a (nearly) repeated eigenvalue. So a second one looks for the largest eigenvalue
    orthogonal to everything found; if that beats the smallest found, it takes its place and the search goes on.
    """
    one = np.ones(1, dtype=S.dtype)
    tight = 100 * float(np.finfo(S.dtype).eps)
    values, vectors = _lanczos(S, one, null[:, None], k, tol=tight)
    for _ in range(k):
        known_values, known = np.r_[one, values], np.hstack([null[:, None], vectors])
        gap_tolerance = 1e-3 * max(1 - float(values[-1]), 1e-6)
        more_values, _ = _lanczos(S, known_values, known, 1, tol=0.1 * gap_tolerance)
        if more_values[0] <= values[-1] + gap_tolerance:
            break
        more_values, more = _lanczos(S, known_values, known, 1, tol=tight)
        values, vectors = np.r_[values, more_values], np.hstack([vectors, more])
        order = np.argsort(-values, kind="stable")[:k]
        values, vectors = values[order], vectors[:, order]
    return values, vectors


def _lanczos(S: Sparse, known_values: Array, known: Array, k: int, tol: float) -> Pairs:
    """Return the k largest eigenpairs of S apart from the known ones, whose eigenvalues are moved to −2, below all."""
    n = S.shape[0]
    shift = (known_values + 2).astype(S.dtype)
    operator = LinearOperator(S.shape, matvec=lambda x: S @ x - known @ (shift * (known.T @ x)), dtype=S.dtype)
    try:
        return lanczos(operator, k, which="LA", ncv=min(n, max(3 * k + 1, 60)), tol=tol, maxiter=_RESTARTS)
    except LinAlgError:
        if n <= FULL_GRAPH_SIZE:
            return _dense_pairs(S, known_values, known, k)
    values, vectors = block_pairs(S.astype(np.float64), k, known)
    return values.astype(S.dtype), vectors.astype(S.dtype)


def _dense_pairs(S: Sparse, known_values: Array, known: Array, k: int) -> Pairs:
    """Do the same by LAPACK: slower, but nothing can be missed.

    Where eigenvalues are equal, the basis of their space is arbitrary, and if only some of its vectors are asked for,
    so are the labels: LAPACK's choice depends on the CPU. Hence one more pair is computed to see whether the last is
    tied to it, if so the whole space, and each such space gets the basis of :func:`_first_directions`.
    """
    dense = S.toarray()
    dense -= (known * (known_values + 2)) @ known.T
    n, tie = len(dense), tolerance(S.dtype)
    values, vectors = largest_eigenpairs(dense, min(k + 1, n))
    if k < n and values[k - 1] - values[k] <= tie:
        values, vectors = eigh(dense)
        values, vectors = values[::-1], vectors[:, ::-1]
    groups = _tied_groups(values, tie)
    out = vectors[:, :k].copy()
    for group, first in zip(*np.unique(groups[:k], return_index=True), strict=True):
        space = vectors[:, groups == group]
        if space.shape[1] > 1:
            out[:, first : first + space.shape[1]] = _first_directions(space, min(space.shape[1], k - first))
    return values[:k], out


def _tied_groups(values: Array, tie: float) -> Labels:
    """Group descending `values`: those of a group differ from its first by at most `tie`."""
    groups, first = np.zeros(len(values), dtype=np.intp), 0
    for i in range(1, len(values)):
        is_new = values[first] - values[i] > tie
        groups[i] = groups[i - 1] + is_new
        first = i if is_new else first
    return groups


def _first_directions(space: Array, count: int) -> Array:
    """Return orthonormal vectors of the space spanned by orthonormal columns, independent of which columns these are.

    The most widely spread come first: those with the smallest Σ ℓ_i v_i², ℓ_i the squared length of row i, which no
    rotation changes. Pieces of a graph that only weights below rounding tie together so come by their size, and an
    outlier does not come before a whole cluster. Vectors equally spread are chosen by :func:`_nearest_to_points`.
    """
    equal, lengths = _EQUAL[space.dtype], np.einsum("ij,ij->i", space, space)
    if lengths.max() - lengths.min() <= equal * lengths.max():
        return _nearest_to_points(space, count)
    spread, turn = eigh(space.T @ (lengths[:, None] * space))
    groups, space = _tied_groups(-spread, equal * spread[-1]), space @ turn
    parts = [_nearest_to_points(space[:, groups == group], count) for group in range(groups[count - 1] + 1)]
    return np.hstack(parts)[:, :count]


def _nearest_to_points(space: Array, count: int) -> Array:
    """Return the projection of the coordinate vector e_i closest to the space, then the same in what is left of it.

    Of those that are equally close the first sample's is taken.
    """
    count, rest, equal = min(count, space.shape[1]), space.copy(), _EQUAL[space.dtype]
    out = np.empty((space.shape[1], count), dtype=space.dtype)
    for j in range(count):
        squares = np.einsum("ij,ij->i", rest, rest)
        pivot = int(np.argmax(squares >= (1 - equal) * squares.max()))
        out[:, j] = rest[pivot] / np.sqrt(squares[pivot])
        rest -= np.outer(rest @ out[:, j], out[:, j])
    return space @ out
