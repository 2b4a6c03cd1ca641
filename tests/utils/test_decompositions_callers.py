"""Lanczos and LOBPCG made to fail, and every caller of a guarded decomposition: another solver takes over."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import LinAlgError
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator
from test_decompositions import check_pairs, raises

import subspaces
from subspaces.graphs import postprocessing
from subspaces.graphs.local import self_tuned_graph
from subspaces.graphs.postprocessing import dscnet_affinity
from subspaces.landmarks import spectral_embedded as embedded
from subspaces.landmarks.spectral_embedded import spectral_embedded
from subspaces.spectral import embedding
from subspaces.spectral.embedding import leading_pairs
from subspaces.utils import decompositions
from subspaces.utils.decompositions import block_pairs, lanczos

# ------------------------------------------------------------------ Lanczos and LOBPCG


def no_convergence(*_, **__):
    raise ArpackNoConvergence("no", np.zeros(0), np.zeros((0, 0)))


def arpack_error(*_, **__):
    raise ArpackError(-9999)


def nan_pairs(A, k, **_):
    return np.full(k, np.nan), np.full((A.shape[0], k), np.nan)


def one_less(A, k, **options):
    values, vectors = REAL_EIGSH(A, k=k, **options)
    return values[1:], vectors[:, 1:]


def random_pairs(A, k, **_):
    return np.ones(k), np.linalg.qr(np.random.default_rng(0).standard_normal((A.shape[0], k)))[0]


REAL_EIGSH = decompositions.eigsh
GIVES_UP = [no_convergence, arpack_error, nan_pairs, one_less, random_pairs]


@pytest.mark.parametrize(("which", "key"), [("LA", lambda v: -v), ("SA", lambda v: v), ("LM", lambda v: -abs(v))])
def test_lanczos_returns_its_pairs_in_order(which, key, rng):
    A = rng.standard_normal((60, 60))
    A = A + A.T
    everything = np.linalg.eigvalsh(A)
    values, vectors = lanczos(A, 4, which=which)
    check_pairs(A, values, vectors, sorted(everything, key=key)[:4])
    assert_array_equal(lanczos(sparse.csr_array(A), 4, which=which)[0].shape, values.shape)


@pytest.mark.parametrize("failure", GIVES_UP)
def test_lanczos_that_gives_up_says_so_to_its_caller(failure, monkeypatch):
    monkeypatch.setattr(decompositions, "eigsh", failure)
    with pytest.raises(LinAlgError, match=r"Lanczos (gave up on the|returned no) 2 eigenvectors"):
        lanczos(np.diag(np.arange(12.0)), 2, which="LA")


@pytest.fixture
def graph(rng):
    W = sparse.random_array((200, 200), density=0.05, rng=rng, format="csr")
    W = W + W.T
    root = np.sqrt(W.sum(axis=1))
    scale = sparse.diags_array(1 / root)
    return sparse.csr_array(scale @ W @ scale), root / np.linalg.norm(root)


@pytest.mark.parametrize("failure", GIVES_UP)
@pytest.mark.parametrize("dense_size", [4000, 100])
def test_the_embedding_goes_on_with_another_solver(graph, failure, dense_size, monkeypatch):
    S, null = graph
    expected, _ = leading_pairs(S, null, 3)
    monkeypatch.setattr(embedding, "DENSE_SIZE", 0)
    monkeypatch.setattr(embedding, "FULL_GRAPH_SIZE", dense_size)
    monkeypatch.setattr(decompositions, "eigsh", failure)
    assert_allclose(leading_pairs(S, null, 3)[0], expected, atol=1e-6)
    for broken in (raises, lambda A, X, **_: (np.nan * X[0], X), lambda A, X, **_: (np.ones(1), X[:, :1])):
        monkeypatch.setattr(decompositions, "lobpcg", broken)
        if dense_size == 4000:
            leading_pairs(S, null, 3)
        else:
            with pytest.raises(LinAlgError, match="of the graph of 200 points were found, neither by Lanczos nor"):
                leading_pairs(S, null, 3)


def test_block_pairs():
    A = sparse.csr_array(np.diag(np.arange(1.0, 81)))
    values, vectors = block_pairs(A, 3, np.eye(80)[:, [79]])
    assert_allclose(values, [79, 78, 77], atol=1e-5)
    assert vectors.shape == (80, 3)
    operator = LinearOperator((80, 80), matvec=A.dot, matmat=A.dot, dtype=float)
    assert_allclose(block_pairs(operator, 2)[0], [80, 79], atol=1e-5)


@pytest.mark.parametrize("failure", GIVES_UP)
@pytest.mark.parametrize("dense_size", [4000, 100])
def test_sec_goes_on_with_another_solver(failure, dense_size, rng, monkeypatch):
    X = np.vstack([rng.standard_normal((60, 3)), rng.standard_normal((60, 3)) + 6])
    W = self_tuned_graph(X, 5)
    expected = spectral_embedded(X, W, 2, 1.0, 0.1).vectors
    monkeypatch.setattr(embedded, "_DENSE_SIZE", 0)
    monkeypatch.setattr(embedded, "FULL_GRAPH_SIZE", dense_size)
    assert_allclose(np.abs(spectral_embedded(X, W, 2, 1.0, 0.1).vectors), np.abs(expected), atol=1e-6)
    monkeypatch.setattr(decompositions, "eigsh", failure)
    assert_allclose(np.abs(spectral_embedded(X, W, 2, 1.0, 0.1).vectors), np.abs(expected), atol=1e-4)


@pytest.mark.parametrize("failure", GIVES_UP)
def test_dscnet_affinity_goes_on_with_lapack(failure, rng, monkeypatch):
    C = rng.standard_normal((90, 90))
    monkeypatch.setattr(postprocessing, "DENSE_EIGH_POINTS", 0)
    expected = dscnet_affinity(C, 2, 2)
    monkeypatch.setattr(decompositions, "eigsh", failure)
    assert_allclose(dscnet_affinity(C, 2, 2), expected, atol=1e-8)


# ------------------------------------------------------------------ callers


def test_nothing_else_decomposes():
    """Whoever calls LAPACK or ARPACK directly brings their failures back."""
    functions = "eigh?|eigvalsh?|svd|svdvals|svds|cholesky|cho_factor|eigsh?|lobpcg|solve|lstsq|pinvh?"
    calls = re.compile(
        rf"linalg\.({functions})\b"  # np.linalg.eigh, scipy.linalg.svd, torch.linalg.cholesky
        rf"|from (?:scipy|numpy)[\w.]* import .*\b({functions})\b"
        r"|from (?:scipy|numpy)[\w.]* import \($"
    )
    root = Path(subspaces.__file__).parent
    found = [
        f"{file.relative_to(root)}: {line.strip()}"
        for file in sorted(root.rglob("*.py"))
        if file.name != "decompositions.py"
        for line in file.read_text(encoding="utf-8").splitlines()
        if calls.search(line)
    ]
    assert found == []
