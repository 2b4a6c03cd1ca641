"""Repeated eigenvalues: what makes LAPACK's fast drivers fail, and labels hang on rounding, for every method."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.linalg import block_diag
from sklearn.metrics import adjusted_rand_score

from method_data import ALL, ESTIMATORS, quiet
from subspaces import LRR1, LatLRR
from subspaces.spectral import embedding
from subspaces.spectral.assign import cut_embedding
from subspaces.spectral.embedding import spectral_embedding
from subspaces.utils.decompositions import eigenpairs_above, eigh, largest_eigenpairs, smallest_eigenvalue

SIZES = (13, 32)


def polygon(n: int) -> np.ndarray:
    """Equal steps on a circle: circulant kernels and graphs."""
    angle = 2 * np.pi * np.arange(n) / n
    return np.c_[np.cos(angle), np.sin(angle)]


def lattice(n: int) -> np.ndarray:
    """The first n points of a square grid."""
    side = int(np.ceil(n**0.5))
    return np.indices((side, side)).reshape(2, -1).T[:n] + 1.0


def simplex(n: int) -> np.ndarray:
    """Points with equal distances and equal angles: every graph of theirs is a clique."""
    return np.eye(n) - 1 / (n + 1)


POINTS = {
    "one-hot": np.eye,
    "simplex": simplex,
    "polygon": polygon,
    "grid": lattice,
    "copies": lambda n: np.repeat(np.random.default_rng(n).standard_normal((4, 3)), n // 4 + 1, axis=0)[:n],
    "one feature": lambda n: np.random.default_rng(n).standard_normal((n, 1)),
    "one line": lambda n: np.outer(np.arange(1.0, n + 1), [1.0, 2.0, -1.0]),
}

NO_EDGE = "the affinity graph has no edge: every coefficient is zero"
ENTRYWISE = (LRR1, LatLRR)  # an error costs a tenth of what it would explain: of few points none is worth representing


def check_labels(model, X, may_refuse: bool) -> None:
    """Valid labels, or, where the graph may have no edge, the sentence that says so."""
    with quiet():
        try:
            model.fit(X)
        except ValueError as error:
            if may_refuse and NO_EDGE in str(error):
                return
            raise
    assert model.labels_.shape == (len(X),)
    assert 1 <= model.n_clusters_ == len(np.unique(model.labels_)) <= 2


@pytest.mark.parametrize("n", [17])
@pytest.mark.parametrize("points", POINTS)
@pytest.mark.parametrize("cls", ALL)
def test_every_method_has_labels_for_them(cls, points, n):
    """Orthogonal points explain nothing of each other: there a linear method may say so instead."""
    check_labels(cls(n_clusters=2), POINTS[points](n), may_refuse=points.startswith("one-hot") or cls in ENTRYWISE)


KERNELS = {
    "identity": np.eye,
    "rank one": lambda n: np.outer(np.arange(1.0, n + 1), np.arange(1.0, n + 1)),
    "all ones": lambda n: np.ones((n, n)),
    "blocks": lambda n: block_diag(*[np.full((4, 4), 1.0)] * (n // 4), np.eye(n % 4)),
    "clique": lambda n: np.full((n, n), 0.5) + 0.5 * np.eye(n),
    "circulant": lambda n: np.exp(-4 * (1 - polygon(n) @ polygon(n).T)),
    "two values": lambda n: np.eye(n) + np.kron(np.eye(2), np.ones((n, n)))[:n, :n] / n,
}


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["ktrr", "kssc", "klrr"])
def test_kernel_methods_have_labels_for_such_kernels(name, kernel, n):
    model = ESTIMATORS[name](n_clusters=2, kernel="precomputed")
    check_labels(model, KERNELS[kernel](n), may_refuse=kernel == "identity")


# ------------------------------------------------------------------ the decompositions themselves


def path(n: int) -> np.ndarray:
    W = np.diag(np.ones(n - 1), 1)
    return W + W.T


def ring(n: int) -> np.ndarray:
    W = path(n)
    W[0, -1] = W[-1, 0] = 1
    return W


def grid(n: int) -> np.ndarray:
    side = max(2, int(n**0.5))
    return np.kron(path(side), np.eye(side)) + np.kron(np.eye(side), path(side))


GRAPHS = {
    "clique": lambda n: np.ones((n, n)) - np.eye(n),
    "ring": ring,
    "grid": grid,
    "bipartite": lambda n: np.ones((n, n)) - block_diag(np.ones((n // 2, n // 2)), np.ones((n - n // 2, n - n // 2))),
    "cliques": lambda n: block_diag(*[np.ones((n // 3, n // 3)) - np.eye(n // 3)] * 3),
    "rings": lambda n: block_diag(ring(n // 2), ring(n // 2), ring(n // 2)),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("matrix", [*KERNELS, *GRAPHS])
def test_decompositions_of_repeated_eigenvalues(matrix, dtype):
    for n in range(6, 50, 3):
        A = {**KERNELS, **GRAPHS}[matrix](n).astype(dtype)
        expected = np.linalg.eigvalsh(A.astype(np.float64))
        tolerance = 50 * len(A) * np.finfo(dtype).eps * np.abs(expected).max()

        def check(values, vectors, expected, A=A, tolerance=tolerance, dtype=dtype):
            assert values.dtype == vectors.dtype == dtype
            assert_allclose(values, expected, rtol=0, atol=tolerance)
            assert_allclose(A @ vectors, vectors * values, rtol=0, atol=tolerance)
            assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=50 * len(A) * np.finfo(dtype).eps)

        check(*eigh(A), expected)
        for k in {1, 2, 3, len(A) // 2}:
            check(*largest_eigenpairs(A, k), expected[::-1][:k])
        positive = A.astype(np.float64) @ A
        limit = 0.37 * (expected**2).max()
        values, vectors = eigenpairs_above(positive, limit)
        assert_allclose(values, np.sort(expected**2)[np.sort(expected**2) > limit], rtol=1e-9)
        assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=1e-9)
        assert_allclose(smallest_eigenvalue(A), expected[0], atol=tolerance)


# ------------------------------------------------------------------ the embedding


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("graph", GRAPHS)
def test_vectors_do_not_depend_on_the_basis_that_a_solver_chose(graph, dtype, monkeypatch):
    """Each space of equal eigenvalues is turned at random, as another CPU might: the same vectors come out."""
    rng = np.random.default_rng(0)

    def turned(solver):
        def solve(*arguments):
            values, vectors = solver(*arguments)
            start = 0
            for stop in [*(np.flatnonzero(np.abs(np.diff(values)) > 1e-4) + 1), len(values)]:
                Q = np.linalg.qr(rng.standard_normal((stop - start, stop - start)))[0]
                vectors[:, start:stop] = vectors[:, start:stop] @ Q.astype(vectors.dtype)
                start = stop
            return values, vectors

        return solve

    for n in (13, 17, 32):
        W = sparse.csr_array(GRAPHS[graph](n), dtype=dtype)
        for k in (2, 3, 4, 6):
            expected = spectral_embedding(W, k)
            with monkeypatch.context() as patch:
                for name in ("largest_eigenpairs", "eigh"):
                    patch.setattr(embedding, name, turned(getattr(embedding, name)))
                found = spectral_embedding(W, k)
            assert_allclose(found.vectors, expected.vectors, rtol=0, atol=1e-7 if dtype == np.float64 else 1e-2)


def test_of_equal_values_the_first_component_comes_first(monkeypatch):
    """Three equal rings, and rounding that favours the last: its eigenvalues come out larger by 1e-13."""
    W = sparse.csr_array(GRAPHS["rings"](24))
    real, calls = embedding.leading_pairs, []

    def favoured(S, null, k):
        calls.append(1)
        values, vectors = real(S, null, k)
        return values + 1e-13 * len(calls), vectors

    monkeypatch.setattr(embedding, "leading_pairs", favoured)
    for k, n_other in ((4, 0), (5, 0), (6, 1), (7, 2)):
        calls.clear()
        found = spectral_embedding(W, k)
        assert not found.vectors[12:, 3:5].any()
        assert found.vectors[12:, 3:].any(axis=0).sum() == n_other


def test_large_pieces_come_before_a_point_far_out():
    """Four pieces that weights below rounding tie together, three vectors: the clusters, wherever the point stands."""
    for place in (0, 3):
        sizes = [10, 12, 14]
        sizes.insert(place, 1)
        piece = np.repeat(np.arange(4), sizes)
        W = sparse.csr_array(np.where(piece[:, None] == piece, 1.0, 1e-40))
        Y = embedding.unit_rows(spectral_embedding(W, 3).vectors)
        others = piece != place
        assert adjusted_rand_score(piece[others], cut_embedding(Y, 3)[others]) == 1


def test_distinct_eigenvalues_keep_their_vectors():
    """A path mixes slowly, its eigenvalues lie close together, and in single precision they are still told apart."""
    W = sparse.csr_array(path(500))
    double, single = spectral_embedding(W, 3), spectral_embedding(W.astype(np.float32), 3)
    assert (np.abs(np.sum(double.vectors * single.vectors, axis=0)) > 0.999).all()


def test_the_sign_is_that_of_the_first_of_equally_large_entries():
    """Two equal pieces joined by a weak edge: the second vector has the same size everywhere in both, in turn."""
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2]):
        W = np.array([[0, 1, 0, 0], [1, 0, 0.1, 0], [0, 0.1, 0, 1], [0, 0, 1, 0]])[np.ix_(order, order)]
        second = spectral_embedding(sparse.csr_array(W), 2).vectors[:, 1]
        sizes = np.abs(second)
        assert second[np.argmax(sizes >= sizes.max() - 1e-9)] > 0


# ------------------------------------------------------------------ other CPUs

SCRIPT = """
import sys, warnings
import numpy as np
from scipy import sparse
sys.path[:0] = sys.argv[1:]
from subspaces import LRR1, SC
from subspaces.spectral.embedding import spectral_embedding, unit_rows
from subspaces.spectral.assign import cut_embedding
from subspaces import KASP
from test_degenerate_spectra import GRAPHS
warnings.simplefilter("ignore")
for n in (13, 17, 32):
    KASP(2).fit(np.eye(n)), SC(2).fit(np.eye(n))
    LRR1(2).fit(np.random.default_rng(n).standard_normal((n, 1)))
    for name, graph in GRAPHS.items():
        Y = unit_rows(spectral_embedding(sparse.csr_array(graph(n)), 4).vectors)
        print(n, name, *cut_embedding(Y, 4))
"""


@pytest.mark.full  # takes seconds: .ci/run has it
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="OpenBLAS knows these types of CPU on x86")
def test_other_cpus_find_the_same():
    """Issue: fits of one-hot rows died, on each CPU for other sizes, and regular graphs were cut by rounding."""
    here = {}
    for core in ("Prescott", "Nehalem", "Sandybridge"):  # newer ones the machine may not have
        environment = {**os.environ, "OPENBLAS_CORETYPE": core, "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-c", SCRIPT, *map(str, Path(__file__).parents[:2])]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        here[core] = run.stdout
    assert here["Prescott"] == here["Nehalem"] == here["Sandybridge"]
