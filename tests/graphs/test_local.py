"""SMCE, LSA, TSC and the heat kernel against slow references written plainly, point by point."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from scipy.sparse import issparse
from scipy.spatial.distance import pdist, squareform
from sklearn.exceptions import ConvergenceWarning

from solved import sparse_and_trace
from subspaces.graphs import local
from subspaces.graphs.local import heat_kernel_graph, lsa
from subspaces.representation import neighbors as smce_module
from subspaces.representation.neighbors import smce, tsc

METHODS = {
    "smce": lambda X: smce(X, n_neighbors=7, tol=1e-10, max_iter=50_000).sparse(),
    "lsa": lambda X: lsa(X, subspace_dim=2, n_neighbors=5, rank=6),
    "tsc": lambda X: tsc(X, n_neighbors=4).sparse(),
    "heat": heat_kernel_graph,
    "heat knn": lambda X: heat_kernel_graph(X, n_neighbors=4),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())


@pytest.fixture(params=[0, 1, 2])
def rng(request):
    return np.random.default_rng(request.param)


@pytest.fixture
def X(rng):
    """Points near three 3-dimensional subspaces of a 10-dimensional space."""
    clean = [rng.normal(size=(15, 3)) @ rng.normal(size=(3, 10)) for _ in range(3)]
    return np.concatenate(clean) + 0.1 * rng.normal(size=(45, 10))


def dense(matrix):
    return matrix.toarray() if issparse(matrix) else matrix


def nearest(X, i, n_neighbors):
    distances = np.linalg.norm(X - X[i], axis=1)
    distances[i] = np.inf
    chosen = np.argsort(distances)[:n_neighbors]
    return chosen, distances[chosen]


def smce_weights(X, n_neighbors, solve):
    """The sheet's columns, one point after the other; ``solve(directions, shares)`` gives c."""
    n = len(X)
    C = np.zeros((n, n))
    for i in range(n):
        chosen, distances = nearest(X, i, n_neighbors)
        c = solve((X[chosen] - X[i]) / distances[:, None], distances / distances.sum())
        C[chosen, i] = np.abs(c) / distances
        C[:, i] /= C[:, i].sum()
    return C


def authors_admm(directions, shares, reg):
    """ADMM of the authors' program for one point: penalty 10, the sum as a second multiplier."""
    size = len(shares)
    inverse = np.linalg.inv(directions @ directions.T + 10 * np.eye(size) + 10 * np.ones((size, size)))
    c, multiplier, sum_multiplier = np.zeros(size), np.zeros(size), 0.0
    for _ in range(100_000):
        z = inverse @ (10 * c - multiplier + sum_multiplier + 10)
        shifted = 10 * z + multiplier
        previous, c = c, np.sign(shifted) * np.maximum(np.abs(shifted) - reg * shares, 0) / 10
        multiplier += 10 * (z - c)
        sum_multiplier += 10 * (1 - z.sum())
        if max(np.abs(z - c).max(), np.abs(c - previous).max(), abs(z.sum() - 1)) < 1e-11:
            break
    return c


def cvxpy_solution(directions, shares, reg):
    cvxpy = pytest.importorskip("cvxpy")
    c = cvxpy.Variable(len(shares))
    objective = reg * cvxpy.norm1(cvxpy.multiply(shares, c)) + 0.5 * cvxpy.sum_squares(directions.T @ c)
    cvxpy.Problem(cvxpy.Minimize(objective), [cvxpy.sum(c) == 1]).solve(solver="CLARABEL")
    return c.value


@pytest.mark.parametrize("reg", [10.0, 100.0])
def test_smce_is_the_authors_program_run_to_the_end(X, reg):
    X = X[:8]
    C, trace = sparse_and_trace(smce(X, reg=reg, n_neighbors=6, tol=1e-11, max_iter=100_000))
    expected = smce_weights(X, 6, lambda directions, shares: authors_admm(directions, shares, reg))
    assert trace.converged
    np.testing.assert_allclose(C.toarray(), expected, atol=1e-7)


@pytest.mark.parametrize("reg", [0.5, 10.0])
def test_smce_solves_the_stated_problem(X, reg):
    X = X[::4]
    C = smce(X, reg=reg, n_neighbors=8, tol=1e-11, max_iter=100_000).sparse()
    expected = smce_weights(X, 8, lambda directions, shares: cvxpy_solution(directions, shares, reg))
    np.testing.assert_allclose(C.toarray(), expected, atol=1e-3)  # interior-point accuracy divided by distances


@pytest.mark.parametrize("size", [4, 12])
def test_smce_solver_meets_the_optimality_conditions(rng, size):
    directions = rng.normal(size=(20, size, 9))  # also with more candidates than dimensions
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    gram = directions @ directions.swapaxes(1, 2)
    shares = rng.uniform(0.5, 1.5, (20, size))
    shares /= shares.sum(axis=1, keepdims=True)
    reg = 3.0
    c, trace = smce_module._sparse_sum_to_one(gram, shares, reg, 1e-11, 200_000)
    assert trace.converged
    np.testing.assert_allclose(c.sum(axis=1), 1, atol=1e-9)
    gradient = np.einsum("pij,pj->pi", gram, c) + reg * shares * np.sign(c)
    for row, solution, slack in zip(gradient, c, reg * shares, strict=True):
        multiplier = row[solution != 0].mean()  # the same on the whole support
        np.testing.assert_allclose(row[solution != 0], multiplier, atol=1e-8)
        assert np.all(np.abs(row - multiplier)[solution == 0] <= slack[solution == 0] + 1e-8)


def test_smce_on_a_circle_sees_the_two_adjacent_points():
    angles = 2 * np.pi * np.arange(40) / 40
    C, trace = sparse_and_trace(smce(np.c_[np.cos(angles), np.sin(angles)], reg=10, n_neighbors=11))
    expected = (np.roll(np.eye(40), 1, axis=0) + np.roll(np.eye(40), -1, axis=0)) / 2
    np.testing.assert_allclose(C.toarray(), expected, atol=1e-5)
    assert C.nnz == 80
    assert trace.converged


def test_smce_trace_tells_the_truth(X):
    trace = smce(X, n_neighbors=7, tol=1e-8).trace
    assert trace.converged
    assert max(trace.primal[-1], trace.dual[-1]) <= 1e-8
    assert len(trace.primal) == len(trace.dual) == trace.n_iter // smce_module.CHECK_EVERY
    with pytest.warns(ConvergenceWarning, match="max_iter=3 steps"):
        C, short = sparse_and_trace(smce(X, n_neighbors=7, max_iter=3))
    assert not short.converged
    assert short.n_iter == 3
    assert max(short.primal[-1], short.dual[-1]) > 1e-6
    assert np.isfinite(C.data).all()


def test_smce_has_no_scale_and_columns_sum_to_one(X):
    C = smce(X, n_neighbors=7, tol=1e-10).sparse()
    scaled = smce(1e5 * X, n_neighbors=7, tol=1e-10).sparse()
    np.testing.assert_allclose(scaled.toarray(), C.toarray(), atol=1e-7)
    np.testing.assert_allclose(C.sum(axis=0), 1)
    assert C.data.min() > 0
    assert C.diagonal().max() == 0


def test_smce_gives_a_duplicate_all_the_weight(X):
    X[1] = X[0]
    C, trace = sparse_and_trace(smce(X, n_neighbors=7))
    assert trace.converged
    np.testing.assert_allclose(C.toarray()[[1, 0], [0, 1]], 1, atol=1e-5)
    assert C.diagonal().max() == 0


def slow_lsa(X, subspace_dim, n_neighbors, rank):
    n = len(X)
    points = np.linalg.svd(X, full_matrices=False)[0][:, :rank]
    points = points / np.linalg.norm(points, axis=1, keepdims=True)
    bases = []
    for i in range(n):
        cosines = np.abs(points @ points[i])
        cosines[i] = 2  # first of all the point itself
        members = np.argsort(-cosines)[: n_neighbors + 1]
        bases.append(np.linalg.svd(points[members])[2][:subspace_dim].T)
    W = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i != j:
                W[i, j] = np.exp(-np.sum(np.sin(subspace_angles(bases[i], bases[j])) ** 2))
    return W


@pytest.mark.parametrize(("dim", "n_neighbors", "rank"), [(1, 3, 4), (3, 5, 7), (4, 9, 10)])
def test_lsa_is_the_principal_angle_formula(X, dim, n_neighbors, rank):
    X = X[::2]
    W = lsa(X, subspace_dim=dim, n_neighbors=n_neighbors, rank=rank)
    np.testing.assert_allclose(W, slow_lsa(X, dim, n_neighbors, rank), atol=1e-9)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_lsa_of_orthogonal_subspaces(rng, dim):
    X = np.zeros((30, 9))
    for block in range(3):
        X[10 * block : 10 * block + 10, 3 * block : 3 * block + dim] = rng.normal(size=(10, dim))
    W = lsa(X, subspace_dim=dim, n_neighbors=6, rank=3 * dim)
    same = np.kron(np.eye(3), np.ones((10, 10))) > 0
    expected = np.where(same, 1, np.exp(-dim)) * (1 - np.eye(30))
    np.testing.assert_allclose(W, expected, atol=1e-7)
    # a dimension above the rank of the neighbourhoods must not add arbitrary directions
    np.testing.assert_allclose(lsa(X, subspace_dim=dim + 1, n_neighbors=6, rank=9), expected, atol=1e-7)


def test_lsa_and_tsc_ignore_the_signs_of_points(X, rng):
    flipped = X * rng.choice([-1, 1], size=(len(X), 1))
    np.testing.assert_allclose(METHODS["lsa"](flipped), METHODS["lsa"](X), atol=1e-8)
    np.testing.assert_allclose(dense(METHODS["tsc"](flipped)), dense(METHODS["tsc"](X)), atol=1e-7)


def test_lsa_default_rank_keeps_the_energy(rng):
    X = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 20)) * 10 + 1e-3 * rng.normal(size=(40, 20))
    np.testing.assert_array_equal(lsa(X, subspace_dim=2), lsa(X, subspace_dim=2, rank=3))
    np.testing.assert_array_equal(lsa(X, subspace_dim=5), lsa(X, subspace_dim=5, rank=6))


def test_tsc_is_the_stated_rule(X):
    n, q = len(X), 4
    expected = np.zeros((n, n))
    for i in range(n):
        cosines = [abs(X[i] @ X[j]) / np.linalg.norm(X[i]) / np.linalg.norm(X[j]) if j != i else -1 for j in range(n)]
        for j in np.argsort(cosines)[-q:]:
            expected[j, i] = np.exp(-2 * np.arccos(min(1, cosines[j])))
    C = tsc(X, n_neighbors=q).sparse()
    np.testing.assert_allclose(C.toarray(), expected, atol=1e-7)
    assert C.nnz == n * q


@pytest.mark.parametrize("bandwidth", [None, 0.7])
def test_heat_kernel_is_eq_2_0(X, bandwidth):
    squared = squareform(pdist(X)) ** 2
    sigma2 = squared.mean() / 2 if bandwidth is None else bandwidth**2
    full = np.exp(-squared / (2 * sigma2)) * (1 - np.eye(len(X)))
    np.testing.assert_allclose(heat_kernel_graph(X, bandwidth=bandwidth), full, rtol=1e-9, atol=1e-300)
    among = np.zeros_like(full, bool)
    for i in range(len(X)):
        among[nearest(X, i, 4)[0], i] = True
    graph = heat_kernel_graph(X, bandwidth=bandwidth, n_neighbors=4)
    np.testing.assert_allclose(graph.toarray(), full * (among | among.T), rtol=1e-9, atol=1e-300)


def test_heat_kernel_has_no_scale_and_no_origin(X):
    np.testing.assert_allclose(heat_kernel_graph(1e3 * X, bandwidth=1e3), heat_kernel_graph(X, bandwidth=1), rtol=1e-9)
    np.testing.assert_allclose(heat_kernel_graph(X + 1e4), heat_kernel_graph(X), rtol=1e-6)


def test_heat_kernel_separates_two_far_blobs(rng):
    W = heat_kernel_graph(np.r_[rng.normal(size=(20, 2)), 100 + rng.normal(size=(20, 2))], bandwidth=1.0)
    roots = np.sqrt(W.sum(axis=0))
    assert np.linalg.eigvalsh(W / roots / roots[:, None])[-2] > 1 - 1e-10


@every_method
def test_permuting_the_points_permutes_the_graph(X, rng, method):
    order = rng.permutation(len(X))
    np.testing.assert_allclose(dense(method(X[order])), dense(method(X))[np.ix_(order, order)], atol=1e-7)


@every_method
def test_block_size_does_not_matter(X, monkeypatch, method):
    whole = dense(method(X))
    for module in (local, smce_module):
        monkeypatch.setattr(module, "row_blocks", lambda n, *_: [(i, min(i + 7, n)) for i in range(0, n, 7)])
    np.testing.assert_allclose(dense(method(X)), whole, atol=1e-7)


@every_method
def test_float32_stays_float32(X, method):
    single = method(X.astype(np.float32))
    assert single.dtype == np.float32
    # 1e-3: arccos turns a rounding error e near cos = 1 into sqrt(e)
    np.testing.assert_allclose(dense(single), dense(method(X.astype(np.float32).astype(float))), atol=1e-3)


@every_method
def test_input_is_not_changed_and_may_be_read_only(X, method):
    X.flags.writeable = False
    before = X.copy()
    method(X)
    np.testing.assert_array_equal(X, before)


@every_method
@pytest.mark.parametrize("case", ["zero rows", "duplicates", "all equal", "all zero", "one feature"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_degenerate_points_never_give_nan(X, method, case, dtype):
    if case == "zero rows":
        X[[0, 5, 44]] = 0
    elif case == "duplicates":
        X = np.repeat(X[:4], 10, axis=0)  # more copies than neighbours
    elif case == "all equal":
        X[:] = X[0]
    elif case == "all zero":
        X[:] = 0
    else:
        X = X[:, :1]
    graph = dense(method(X.astype(dtype)))
    assert np.isfinite(graph).all()
    assert graph.min() >= 0
    assert graph.max() <= 1 + 1e-6
    assert np.all(np.diag(graph) == 0)


def test_zero_rows_have_no_direction(X):
    X[[0, 5]] = 0
    for name in ("lsa", "tsc"):
        graph = dense(METHODS[name](X))
        assert not graph[[0, 5]].any()
        assert not graph[:, [0, 5]].any()
        others = np.delete(np.arange(len(X)), [0, 5])
        np.testing.assert_allclose(graph[np.ix_(others, others)], dense(METHODS[name](X[others])), atol=1e-7)


@pytest.mark.parametrize("name", ["lsa", "heat", "heat knn"])
def test_affinities_are_exactly_symmetric(X, name, monkeypatch):
    monkeypatch.setattr(local, "row_blocks", lambda n, *_: [(i, min(i + 7, n)) for i in range(0, n, 7)])
    graph = dense(METHODS[name](X))
    np.testing.assert_array_equal(graph, graph.T)


def test_errors_name_the_argument(X):
    for n_neighbors in (0, len(X)):
        with pytest.raises(ValueError, match=f"n_neighbors must be from 1 to n_samples - 1 = 44, got {n_neighbors}"):
            tsc(X, n_neighbors=n_neighbors)
    with pytest.raises(ValueError, match=r"reg must be positive, got 0"):
        smce(X, reg=0)
    with pytest.raises(ValueError, match=r"subspace_dim must be at least 1, got 0"):
        lsa(X, subspace_dim=0)
    with pytest.raises(ValueError, match=r"rank must be at least 1 or None, got 0"):
        lsa(X, rank=0)
    with pytest.raises(ValueError, match=r"bandwidth must be positive or None, got -1"):
        heat_kernel_graph(X, bandwidth=-1)
