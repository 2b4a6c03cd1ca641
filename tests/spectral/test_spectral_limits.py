"""The embedding at its edges: which solver, what happens when one gives up, warnings, points alone with a loop."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import block_diag
from sklearn.exceptions import ConvergenceWarning
from test_spectral import blocks, check, random_graph

from subspaces.spectral import embedding
from subspaces.spectral.embedding import spectral_embedding
from subspaces.utils import decompositions


def normalised(W: sparse.csr_array) -> tuple[sparse.csr_array, np.ndarray]:
    """S = D^(−1/2) W D^(−1/2) and its known eigenvector, for a connected graph."""
    root = np.sqrt(W.sum(axis=1))
    scale = sparse.diags_array(1 / root)
    return sparse.csr_array(scale @ W @ scale), root / np.linalg.norm(root)


# ------------------------------------------------------------------ Lanczos gives up


@pytest.mark.skipif(
    not decompositions._TAKES_RNG, reason="ARPACK before SciPy 1.17 keeps its own random state (docs/trust.md)"
)
@pytest.mark.parametrize("n_parts", [2, 3, 6])
def test_same_bits_where_lanczos_itself_must_restart(n_parts, monkeypatch):
    """Few distinct eigenvalues: ARPACK runs out of directions and draws new ones, from a fixed seed."""
    monkeypatch.setattr(embedding, "DENSE_SIZE", 1)
    monkeypatch.setattr(embedding, "FULL_GRAPH_SIZE", 1)
    part = np.arange(120) * n_parts // 120
    S, null = normalised(sparse.csr_array((part[:, None] != part).astype(float)))
    (values, vectors), (again, same) = (embedding._lanczos(S, np.ones(1), null[:, None], 4, 1e-12) for _ in range(2))
    assert_array_equal(values, again)
    assert_array_equal(vectors, same)


@pytest.mark.parametrize("missed", [[1], [2], [1, 2], [1, 2, 3]])
@pytest.mark.parametrize("step", [1e-4, 1e-2])
def test_eigenvalues_that_the_first_run_missed_are_found_by_the_next(step, missed, monkeypatch):
    """Lanczos is replaced by a solver that knows the spectrum 1, 1 − step, 1 − 2 step, … but overlooks some."""
    spectrum = 1 - step * np.arange(12)
    tolerances = []

    def forgetful(S, known_values, known, k, tol):
        overlooked = [] if tolerances else missed
        tolerances.append(tol)
        left = [j for j in range(12) if not known[j].any() and j not in overlooked][:k]
        assert_array_equal(known_values, S.diagonal()[known.argmax(axis=0)])
        assert len(left) == k
        return spectrum[left], np.eye(12)[:, left]

    monkeypatch.setattr(embedding, "_lanczos", forgetful)
    values, vectors = embedding._lanczos_pairs(sparse.csr_array(np.diag(spectrum)), np.eye(12)[0], 3)
    assert_array_equal(values, spectrum[1:4])
    assert_array_equal(vectors, np.eye(12)[:, 1:4])
    assert max(tolerances) < step / 10  # a look that could not tell neighbours apart would be none
    assert min(tolerances) == tolerances[0] == 100 * np.finfo(float).eps


# ------------------------------------------------------------------ what is reported


@pytest.mark.parametrize(("dtype", "limit"), [(np.float64, 1e-6), (np.float32, 1e-3)])
def test_residuals_are_those_of_the_returned_pairs(dtype, limit, rng, monkeypatch):
    """A solver that returns pairs that are a little wrong: noise in the vectors, a tenth of what is allowed or more."""
    real, noise = embedding.leading_pairs, 0.1 * limit

    def inexact(S, null, k):
        values, vectors = real(S, null, k)
        return values, vectors + (noise * rng.standard_normal(vectors.shape)).astype(dtype)

    monkeypatch.setattr(embedding, "leading_pairs", inexact)
    W = blocks([14, 9], rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spectral_embedding(W.astype(dtype), 5)
    noise = 10 * limit
    with pytest.warns(ConvergenceWarning, match="the largest residual of the 5 eigenvectors is "):
        found = spectral_embedding(W.astype(dtype), 5)
    degree = W.toarray().sum(axis=1)
    L = np.eye(23) - W.toarray() / np.sqrt(np.outer(degree, degree))
    expected = np.linalg.norm(L @ found.vectors - found.vectors * found.eigenvalues, axis=0)
    assert found.residuals.shape == (5,)
    assert_allclose(found.residuals, expected, rtol=1e-3, atol=limit)
    assert (found.residuals[2:] > limit).all()


# ------------------------------------------------------------------ odd graphs


@pytest.mark.parametrize("k", [1, 3, 4, 9, 15])
def test_points_alone_with_a_loop_are_components_of_one(k, rng):
    """Only the diagonal ties them: an eigenvalue 0 each and no other vector."""
    W = sparse.csr_array(block_diag([[2.0]], random_graph(7, rng), [[0.5]], random_graph(5, rng)))
    found = spectral_embedding(W, k)
    assert found.n_components == 4
    check(found, W, max(4, min(k, 14)))
