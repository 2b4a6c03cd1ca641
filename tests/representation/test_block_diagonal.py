"""Block diagonal representation against a slow reference, its optimality conditions and known blocks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning

from subspaces.representation.block_diagonal import _projection, block_diagonal


def independent(seed=0, noise=0.02, n=12):
    """Noisy unit points of three independent planes."""
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(size=(n, 2)) @ rng.normal(size=(2, 9)) for _ in range(3)])
    X += noise * rng.normal(size=X.shape)
    return X / np.linalg.norm(X, axis=1, keepdims=True), np.repeat(np.arange(3), n)


def penalties(X, k, reg, block_weight):
    lam = reg * np.square(X).sum() / k
    return lam, block_weight * lam


def block_norm(B, k):
    return np.linalg.eigvalsh(np.diag(B.sum(axis=1)) - B)[:k].sum()


def objective(X, Z, B, k, lam, gamma):
    D = X.T  # the paper's points are columns
    return 0.5 * np.square(D - D @ Z).sum() + 0.5 * lam * np.square(Z - B).sum() + gamma * block_norm(B, k)


def reference(X, k, lam, gamma, steps):
    """The steps as printed, with inverses, loops over entries and all eigenvectors."""
    D, n = X.T, len(X)
    Z, B, W = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    for _ in range(steps):
        Z = np.linalg.inv(D.T @ D + lam * np.eye(n)) @ (D.T @ D + lam * B)
        new = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                if i != j:
                    one = Z[i, j] - gamma / lam * (W[i, i] - W[i, j])
                    two = Z[j, i] - gamma / lam * (W[j, j] - W[j, i])
                    new[i, j] = max(0.0, (one + two) / 2)
        B = new
        vectors = np.linalg.eigh(np.diag(B.sum(axis=1)) - B)[1][:, :k]
        W = vectors @ vectors.T
    return Z, B


def both(X, **options):
    return (block_diagonal(X, variant=variant, **options) for variant in ("Z", "B"))


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize(("reg", "block_weight"), [(0.3, 0.02), (0.05, 0.3)])
def test_steps_are_those_of_the_paper(steps, reg, block_weight, seed):
    X = 3 * independent(seed)[0]
    expected = reference(X, 3, *penalties(X, 3, reg, block_weight), steps)
    with pytest.warns(ConvergenceWarning, match="BDR has not converged"):
        found = list(both(X, n_blocks=3, reg=reg, block_weight=block_weight, max_iter=steps, tol=1e-300))
    for one, matrix in zip(found, expected, strict=True):
        assert_allclose(one.dense(), matrix, atol=1e-8)
        assert one.penalty == pytest.approx(penalties(X, 3, reg, block_weight)[0])


@pytest.mark.parametrize("block_weight", [0.005, 0.02, 0.5])
@pytest.mark.parametrize("n_blocks", [1, 3, 5])
def test_objective_never_rises_and_is_the_one_stated(n_blocks, block_weight, seed):
    X, _ = independent(seed, noise=0.2)
    Z, B = both(X, n_blocks=n_blocks, block_weight=block_weight)
    values = np.array(Z.trace.objective)
    assert Z.trace.converged
    assert len(values) == Z.trace.n_iter == len(Z.trace.primal) == len(Z.trace.dual)
    assert (np.diff(values) <= 1e-9 * values[0]).all()
    expected = objective(X, Z.dense(), B.dense(), n_blocks, *penalties(X, n_blocks, 0.3, block_weight))
    assert values[-1] == pytest.approx(expected)


def test_the_end_is_nearly_a_fixed_point(seed):
    X, _ = independent(seed)
    tol = 5e-4
    Z, B = (found.dense() for found in both(X, n_blocks=3, tol=tol, max_iter=5000))
    lam, gamma = penalties(X, 3, 0.3, 0.02)
    change = 2 * tol * np.abs(Z).max()
    # each is nearly the best for the others: the gradient in Z, and the step of the paper in B
    K = X @ X.T
    assert np.abs(K @ (Z - np.eye(len(X))) + lam * (Z - B)).max() < change * lam
    vectors = np.linalg.eigh(np.diag(B.sum(axis=1)) - B)[1][:, :3]
    W = vectors @ vectors.T
    A = Z - gamma / lam * (np.diag(W)[:, None] - W)
    again = np.maximum((A + A.T) / 2, 0)
    np.fill_diagonal(again, 0)
    assert_allclose(B, again, atol=change)


def test_graph_of_orthogonal_subspaces_has_their_blocks(seed):
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    X, y = np.kron(np.eye(3), rng.normal(size=(12, 2))) @ turn, np.repeat(np.arange(3), 12)
    Z, B = (found.dense() for found in both(X, n_blocks=3))
    assert (B >= 0).all()
    assert_array_equal(B, B.T)
    assert not B.diagonal().any()
    for C in (Z, B):
        assert np.abs(C[y[:, None] != y]).max() < 1e-9 * C.max()
    assert connected_components(B > 1e-9)[0] >= 3


def test_independent_subspaces_are_told_apart(seed):
    X, y = independent(seed, n=30)
    strong = block_diagonal(X, n_blocks=3, block_weight=0.5, variant="B").dense()
    none = block_diagonal(X, n_blocks=3, block_weight=1e-9, variant="B").dense()
    outside = [C[y[:, None] != y].sum() / C.sum() for C in (strong, none)]
    assert outside[0] < 0.8 * outside[1]
    assert block_norm(strong, 3) < 0.05 * block_norm(none, 3)


def test_ties_are_shared():
    W, value = _projection(np.zeros((6, 6)), 2)  # six pieces, two wanted: each point has a third of a vector
    assert_allclose(W, np.eye(6) / 3, atol=1e-12)
    assert value == 0
    B = np.kron(np.eye(4), 1 - np.eye(3))  # four pieces
    W, value = _projection(B, 2)
    assert_allclose(W, np.kron(np.eye(4), np.full((3, 3), 1 / 6)), atol=1e-12)
    assert value == pytest.approx(0, abs=1e-12)
    W, value = _projection(B, 5)  # beyond the pieces: eigenvalue 3, eight times
    assert np.trace(W) == pytest.approx(5)
    assert value == pytest.approx(3)
    assert_array_equal(_projection(B, 12)[0].round(12), np.eye(12))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "X",
    [np.zeros((5, 3)), np.ones((6, 2)), np.eye(6), np.repeat(np.eye(3), 4, axis=0), np.array([[1.0], [-2.0]])],
    ids=["zero", "equal", "orthogonal", "copies", "opposite"],
)
def test_degenerate_points(X, dtype):
    for n_blocks in (1, 2, len(X), len(X) + 3):
        found = block_diagonal(X.astype(dtype), n_blocks=n_blocks, variant="B")
        assert found.dense().dtype == dtype
        assert np.isfinite(found.dense()).all()
        assert found.trace.converged


def test_the_origin_changes_nothing(seed):
    X, _ = independent(seed)
    found = block_diagonal(np.insert(X, 5, 0, axis=0), n_blocks=3).dense()
    assert not found[5].any()
    assert not found[:, 5].any()
    assert_array_equal(np.delete(np.delete(found, 5, axis=0), 5, axis=1), block_diagonal(X, n_blocks=3).dense())


@pytest.mark.parametrize("scale", [2.0**-300, 2.0**300, 3.0])
def test_unit_of_the_points(scale):
    X, _ = independent(1)
    assert_allclose(block_diagonal(scale * X, n_blocks=3).dense(), block_diagonal(X, n_blocks=3).dense(), atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_blocks": 0}, "n_blocks must be at least 1"),
        ({"reg": 0}, "reg must be positive"),
        ({"block_weight": 0}, "block_weight must be positive"),
        ({"tol": 0}, "tol must be positive"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"variant": "W"}, "variant must be one of"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        block_diagonal(np.eye(4), **{"n_blocks": 2, **options})
