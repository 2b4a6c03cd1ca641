"""Decompose matrices, guarded: the fast driver first, a robust one where it fails or returns a wrong answer.

LAPACK's fast driver for some eigenpairs (`evr`) raises "Internal Error." or returns too few pairs where eigenvalues
repeat, that is for cliques, grids, copies of samples and one-hot rows; whether it does depends on the CPU. ARPACK may
not converge, `gesdd` neither, and a Cholesky factorisation may fail by rounding alone. In each case there is an answer,
so nobody should see these errors:

===================  ==========================  =====================================================================
what                 first                       then
===================  ==========================  =====================================================================
all eigenpairs       `evd`                       `ev`; `evd` in double precision after a reflection
some eigenpairs      `evr`                       all of them, and a slice
singular values      `gesdd`                     `gesvd`; the same in double precision after a reflection
Cholesky             `potrf`                     up to √ε added to the diagonal; the amount is returned
linear systems       `gesv`                      the least squares solution of smallest norm
few of a sparse one  ARPACK, or LOBPCG           the caller takes LAPACK where n allows it, else LOBPCG or ARPACK
===================  ==========================  =====================================================================

An answer counts if it is finite, has as many pairs as asked for and solves A V = V Λ, VᵀV = I on one combination of the
pairs, which takes O(n²). No argument is overwritten: SciPy copies arrays in C order for LAPACK anyway. What has no
answer is a `LinAlgError` (a ValueError) of one sentence.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import LinAlgError
from scipy.sparse.linalg import ArpackError, eigsh, lobpcg

from subspaces.utils.process import quiet
from subspaces.utils.types import Array

Pairs = tuple[Array, Array]
"""Eigenvalues, and eigenvectors as columns."""

_SOME: dict[str, Any] = {"driver": "evr", "check_finite": False}
# roundings that some eigenpairs may be off by: `evr` has been seen to lose half of the digits where values repeat
_FEW = 1e4

# ARPACK draws a new direction when it runs out of them; newer SciPy lets us seed that
_TAKES_RNG = "rng" in inspect.signature(eigsh).parameters


def eigh(A: Array) -> Pairs:
    """Return all eigenpairs of the symmetric matrix A, ascending."""
    whole = partial(scipy.linalg.eigh, A, check_finite=False)
    for solver in (partial(whole, driver="evd"), partial(whole, driver="ev"), partial(_reflected_eigh, A)):
        pairs = _accepted(A, solver, 100 * _eps(A) ** 0.5)
        if pairs is not None:
            return pairs
        _require_finite(A)
    raise LinAlgError(
        f"LAPACK finds no eigenvectors of a symmetric matrix of {len(A)} rows, by none of its drivers: update NumPy "
        "and SciPy, or set OPENBLAS_CORETYPE to another CPU type."
    )


def eigenvalues(A: Array) -> Array:
    """Return all eigenvalues of the symmetric A, ascending; QR iteration needs no vectors and misses none."""
    values: Array = scipy.linalg.eigh(A, eigvals_only=True, driver="ev", check_finite=False)
    return values


def largest_eigenpairs(A: Array, k: int) -> Pairs:
    """Return the k largest eigenpairs of the symmetric matrix A, descending."""
    n, k = len(A), int(k)  # −k of an unsigned integer is none
    pairs = _accepted(A, partial(scipy.linalg.eigh, A, subset_by_index=[n - k, n - 1], **_SOME), _FEW * _eps(A))
    values, vectors = pairs if pairs is not None and len(pairs[0]) == k else eigh(A)
    return values[: -k - 1 : -1], vectors[:, : -k - 1 : -1]


def eigenpairs_above(A: Array, limit: float) -> Pairs:
    """Return the eigenpairs of the positive semidefinite matrix A above `limit`, ascending."""
    pairs = _accepted(A, partial(scipy.linalg.eigh, A, subset_by_value=(limit, np.inf), **_SOME), _FEW * _eps(A))
    if pairs is not None and _largest_left(A, pairs[1]) <= 1.01 * limit:
        return pairs
    values, vectors = eigh(A)
    first = int(np.searchsorted(values, limit, side="right"))
    return values[first:], vectors[:, first:]


def smallest_eigenvalue(A: Array) -> float:
    """Return the smallest eigenvalue of the symmetric matrix A."""
    _require_finite(A)
    options: dict[str, Any] = {"eigvals_only": True, "check_finite": False}
    for more in ({"driver": "evr", "subset_by_index": [0, 0]}, {"driver": "evd"}):
        try:
            values = scipy.linalg.eigh(A, **options, **more)
        except LinAlgError:
            continue
        if len(values) and np.isfinite(values[0]):
            return float(values[0])
    return float(eigh(A)[0][0])


def svd(A: Array) -> tuple[Array, Array, Array]:
    """Return U, s, Vᵀ with A = U diag(s) Vᵀ, s descending, U and V as thin as A's shorter side; of a stack too."""
    _require_finite(A)
    if A.ndim > 2:
        try:
            U, s, Vt = np.linalg.svd(A, full_matrices=False)
        except LinAlgError:  # one of them fails all: each by itself
            U, s, Vt = (np.stack(part) for part in zip(*(svd(matrix) for matrix in A), strict=True))
        return U, s, Vt
    thin = partial(scipy.linalg.svd, A, full_matrices=False, check_finite=False)
    for solver in (thin, partial(thin, lapack_driver="gesvd"), partial(_reflected_svd, A)):
        try:
            U, s, Vt = solver()
        except LinAlgError:
            continue
        if all(np.isfinite(part).all() for part in (U, s, Vt)):
            return U, s, Vt
    raise LinAlgError(
        f"LAPACK finds no singular values of a matrix of shape {A.shape}, by none of its drivers: update NumPy and "
        "SciPy, or set OPENBLAS_CORETYPE to another CPU type."
    )


def coordinates(A: Array) -> Array:
    """Return the rows of A in an orthonormal basis of their span: L (n × n at most) with LLᵀ = AAᵀ, by `geqrf`.

    Householder's reflections need no guard: they end for any finite A, whatever its rank.
    """
    _require_finite(A)
    (factor,) = scipy.linalg.qr(A.T, mode="r", check_finite=False)
    return np.ascontiguousarray(factor[: len(A)].T)


def cholesky(A: Array, *, largest_jitter: float | None = None) -> tuple[Array, float]:
    """Return the lower factor L of A + jitter I = LLᵀ, and the jitter: 0 wherever A is positive definite.

    Rounding takes up to about nε off the eigenvalues. So from 10 nε on more and more is added to the diagonal, in steps
    of 100 and relative to its mean, up to `largest_jitter` (√ε); beyond that A is not positive definite.
    """
    _require_finite(A)
    eps = _eps(A)
    limit = eps**0.5 if largest_jitter is None else largest_jitter
    scale = float(np.abs(A.diagonal()).mean())
    relative = 0.0
    while True:
        jitter = relative * scale
        try:
            factor = scipy.linalg.cholesky(A + jitter * np.eye(len(A), dtype=A.dtype) if jitter else A, lower=True)
            if np.isfinite(factor.diagonal()).all():
                return factor, jitter
        except LinAlgError:
            pass
        if relative >= limit or scale == 0:
            raise LinAlgError(
                f"a matrix of {len(A)} rows is not positive definite, nor with {jitter:.3g} added to its diagonal: "
                "use a positive definite kernel or a larger reg."
            )
        relative = min(max(100 * relative, 10 * eps * len(A)), limit)


def solve_systems(A: Array, b: Array) -> Array:
    """Solve A x = b for a stack of systems; where A is singular, in least squares with the smallest norm.

    A has the shape (..., s, s), b the shape (..., s, r).
    """
    try:
        x: Array = np.linalg.solve(A, b)
    except LinAlgError:  # one of them fails all
        x = np.full(np.broadcast_shapes(A.shape[:-2], b.shape[:-2]) + b.shape[-2:], np.nan, np.result_type(A, b))
        for i in np.ndindex(x.shape[:-2]):
            x[i] = _solve_one(A[i], b[i])
    return x


def lanczos(
    A: Any, k: int, *, which: str, ncv: int | None = None, tol: float = 0.0, maxiter: int | None = None
) -> Pairs:
    """Return k eigenpairs of the symmetric A with largest ("LA"), smallest ("SA") or absolutely largest ("LM") values.

    They come in that order. The start is fixed, so the bits are the same every time. Where ARPACK gives up or answers
    nonsense, LinAlgError: the caller knows whether A is small enough for LAPACK. A may be an array, a sparse array or a
    LinearOperator; `ncv`, `tol` and `maxiter` are those of :func:`scipy.sparse.linalg.eigsh`.
    """
    rng = np.random.default_rng(0)
    start = rng.standard_normal(A.shape[0]).astype(A.dtype)
    seeded = {"rng": rng} if _TAKES_RNG else {}
    try:
        values, vectors = eigsh(A, k=k, which=which, v0=start, ncv=ncv, tol=tol, maxiter=maxiter, **seeded)
    except ArpackError as error:
        raise LinAlgError(f"Lanczos gave up on the {k} eigenvectors of a matrix of {A.shape[0]} rows.") from error
    accuracy = max(100 * _eps(vectors) ** 0.5, 10 * tol)
    if len(values) != k or not _solves(A, values, vectors, accuracy):
        raise LinAlgError(f"Lanczos returned no {k} eigenvectors of a matrix of {A.shape[0]} rows.")
    order = np.argsort({"LA": -values, "SA": values, "LM": -np.abs(values)}[which], kind="stable")
    return values[order], vectors[:, order]


def block_pairs(A: Any, k: int, known: Array | None = None) -> Pairs:
    """Return the k largest eigenpairs of the symmetric A by LOBPCG, descending; the start is fixed.

    A is a sparse array or LinearOperator in double precision: in single LOBPCG breaks down before it converges. The
    caller looks at the residuals. The pairs are orthogonal to the columns of `known`.
    """
    start = np.random.default_rng(0).standard_normal((A.shape[0], k))
    known = None if known is None else known.astype(np.float64)
    try:
        with quiet():  # it says in its own words that it is done
            values, vectors = lobpcg(A, start, Y=known, largest=True, tol=1e-7, maxiter=500)
    except ValueError:  # and LinAlgError, which is one: what it raises when its basis has become dependent
        values = np.empty(0)
    if len(values) < k or not (np.isfinite(values).all() and np.isfinite(vectors).all()):
        raise LinAlgError(
            f"no eigenvectors of the graph of {A.shape[0]} points were found, neither by Lanczos nor by LOBPCG: its "
            "weights may differ too much in size; try another reg, more neighbours or float64."
        )
    order = np.argsort(-values, kind="stable")[:k]
    return values[order], vectors[:, order]


def _require_finite(A: Array) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        # the sum needs no array of A's size; a sum of finite numbers may overflow, so look again
        if not np.isfinite(A.sum()) and not np.isfinite(A).all():
            raise LinAlgError(
                f"a matrix of shape {A.shape} to be decomposed holds NaN or infinity: check the data and the kernel, "
                "or scale the data."
            )


def _eps(A: Array) -> float:
    return float(np.finfo(A.dtype).eps)


def _accepted(A: Array, solver: Callable[[], Pairs], accuracy: float) -> Pairs | None:
    """Return the pairs, None where the solver fails or they are wrong."""
    try:
        values, vectors = solver()
    except LinAlgError:
        return None
    return (values, vectors) if _solves(A, values, vectors, accuracy) else None


def _solves(A: Any, values: Array, vectors: Array, accuracy: float) -> bool:
    """Return whether A V = V Λ and VᵀV = I hold to `accuracy` on one combination of the columns; NaN do not."""
    weights = _general_vector(len(values), vectors.dtype)
    with np.errstate(all="ignore"):
        together = vectors @ weights
        if not abs(float(together @ together) - len(values)) <= accuracy * len(values):
            return False
        error = A @ together - vectors @ (values * weights)
        image = A @ _general_vector(len(vectors), vectors.dtype)
        # squares that overflow or vanish tell nothing, and nobody is refused for that
        return bool(error @ error <= accuracy**2 * (image @ image) or np.isinf(image @ image))


def _largest_left(A: Array, vectors: Array) -> float:
    """Estimate from below the largest eigenvalue of the positive semidefinite A beside those of `vectors`."""
    left = _general_vector(len(A), A.dtype)
    with np.errstate(all="ignore"):
        for _ in range(4):
            left = A @ (left - vectors @ (vectors.T @ left))
        left -= vectors @ (vectors.T @ left)
        square = float(left @ left)
        return float(left @ (A @ left)) / square if square > 0 else 0.0


@lru_cache(maxsize=32)
def _general_vector(n: int, dtype: Any) -> Array:
    """Return a vector of length √n without any symmetry, always the same."""
    vector = np.cos(np.arange(1, n + 1, dtype=np.float64) ** 1.5)
    vector *= (n / max(float(vector @ vector), 0.01)) ** 0.5
    vector.flags.writeable = False
    return vector.astype(dtype, copy=False)


def _reflected_eigh(A: Array) -> Pairs:
    """Solve HAH, H = I − 2uuᵀ, in double precision: the same eigenvalues, without the zeros that misled a driver.

    HAH = A − 2(uwᵀ + wuᵀ) with w = Au − (uᵀAu)u; the eigenvectors are reflected back.
    """
    u = _general_vector(len(A), np.float64) / len(A) ** 0.5
    w = A.astype(np.float64) @ u
    w -= (u @ w) * u
    values, vectors = scipy.linalg.eigh(A - 2 * (np.outer(u, w) + np.outer(w, u)), driver="evd", check_finite=False)
    vectors -= 2 * np.outer(u, u @ vectors)
    return values.astype(A.dtype), vectors.astype(A.dtype)


def _reflected_svd(A: Array) -> tuple[Array, Array, Array]:
    """Decompose AH, H = I − 2uuᵀ, in double precision; the right vectors are reflected back."""
    u = _general_vector(A.shape[1], np.float64) / A.shape[1] ** 0.5
    turned = A - 2 * np.outer(A @ u, u)
    U, s, Vt = scipy.linalg.svd(turned, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    Vt -= 2 * np.outer(Vt @ u, u)
    return U.astype(A.dtype), s.astype(A.dtype), Vt.astype(A.dtype)


def _solve_one(A: Array, b: Array) -> Array:
    try:
        return np.asarray(np.linalg.solve(A, b))
    except LinAlgError:
        U, s, Vt = svd(A)
        kept = s > len(A) * _eps(s) * s[0]
        return np.asarray(Vt[kept].T @ ((U[:, kept].T @ b) / s[kept, None]))
