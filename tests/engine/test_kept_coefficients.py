"""What a fit keeps of C: eq. 3.9, truncated, with sign; and which methods have what."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from method_data import ALL, METHODS, quiet, union_of_subspaces
from subspaces import KTRR, SSC, registry
from subspaces.kernels import as_kernel
from subspaces.representation.block_diagonal import block_diagonal
from subspaces.representation.elastic_net import elastic_net
from subspaces.representation.latent_low_rank import latent_lrr
from subspaces.representation.low_rank import kernel_lrr, lrr
from subspaces.representation.matching_pursuit import orthogonal_matching_pursuit
from subspaces.representation.neighbors import smce
from subspaces.representation.ridge import ridge, ridge_unconstrained
from subspaces.representation.sparse import kssc, ssc
from subspaces.utils.ordering import canonical_order, hash_rows

WITHOUT_COEFFICIENTS = ("lsa", "tsc", "sc")


@pytest.fixture
def X(seed):
    return union_of_subspaces(seed, (80, 80, 80))[0]


# ------------------------------------------------------------------ coefficients (eq. 3.9)


def literal_coefficients(X, kernel, reg):
    """C = I − U diag(U)⁻¹ with U = (K + λI)⁻¹, by a dense inverse."""
    K = as_kernel(kernel).fit(X).gram(X)
    U = np.linalg.inv(K + reg * K.diagonal().mean() * np.eye(len(K)))
    return np.eye(len(K)) - U / U.diagonal()


def truncated_columns(C, n_nonzero):
    """The η entries of largest magnitude of each column, with sign."""
    out = np.zeros_like(C)
    np.fill_diagonal(C, 0)
    for i in range(len(C)):
        kept = np.argsort(-np.abs(C[:, i]), kind="stable")[:n_nonzero]
        out[kept, i] = C[kept, i]
    return out


@pytest.mark.parametrize("reg", [0.05, 1.0])
@pytest.mark.parametrize("n_nonzero", [1, 5, None])
@pytest.mark.parametrize("graph", ["symmetric", "column"])
@pytest.mark.parametrize(
    ("kernel", "solver"),
    [("rbf", "dense"), ("linear", "dense"), ("linear", "low_rank"), ("quadratic", "low_rank"), ("cosine", "low_rank")],
)
def test_coefficients_are_equation_3_9_truncated_with_sign(kernel, solver, graph, n_nonzero, reg, seed):
    X = union_of_subspaces(seed, ambient=8)[0]
    model = KTRR(3, kernel=kernel, solver=solver, graph=graph, n_nonzero=n_nonzero, reg=reg, connect=False)
    with quiet():
        model.fit(X)
    expected = truncated_columns(literal_coefficients(X, kernel, reg), n_nonzero or len(X))
    found = model.coefficients_.toarray()
    if n_nonzero is not None:
        assert_array_equal(found != 0, expected != 0)
    assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())
    if kernel == "linear":
        assert (found < 0).any()
        assert (found > 0).any()
    if graph == "column":
        assert_allclose(model.affinity_matrix_.toarray(), np.abs(expected) + np.abs(expected).T, atol=1e-8)


def test_two_scale_coefficients_are_equation_3_9_where_all_points_are_landmarks(seed):
    X = union_of_subspaces(seed, (20, 20, 20))[0]  # no more than the directions that are kept
    model = KTRR(3, solver="two_scale", n_nonzero=3, reg=0.3).fit(X)
    C = literal_coefficients(X, "rbf", 0.3)
    found = model.coefficients_.toarray()
    assert (np.count_nonzero(found, axis=0) == 3).all()
    assert_allclose(found[found != 0], C[found != 0], atol=1e-7)


def offset_points(X):
    return np.column_stack([X, np.full(len(X), 0.1 * np.sqrt((X**2).sum(axis=1).mean()))])


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def gaussian(X):
    return as_kernel("rbf").fit(X).gram(X)


SOLVERS = {
    "ktrr": lambda X: ridge(gaussian(X), reg=1.0),
    "trr": lambda X: ridge(X @ X.T, reg=0.1),
    "lsr1": lambda X: ridge(unit(X) @ unit(X).T, reg=0.1),
    "lsr2": lambda X: ridge_unconstrained(unit(X) @ unit(X).T, reg=0.1),
    "ssc": lambda X: ssc(unit(X), error_weight=20.0, tol=1e-4, max_iter=200),
    "kssc": lambda X: kssc(gaussian(X), error_weight=20.0, tol=1e-4, max_iter=200),
    "ensc": lambda X: elastic_net(X, error_weight=50.0, l1_ratio=0.9, tol=1e-6, max_iter=100),
    "sscomp": lambda X: orthogonal_matching_pursuit(offset_points(X), n_nonzero=5, tol=1e-6),
    "lrr1": lambda X: lrr(unit(X), reg=0.1, error="l1", tol=0.05, max_iter=1000),
    "lrr2": lambda X: lrr(unit(X), reg=1.0, error="l21", tol=1e-3, max_iter=1000),
    "latlrr": lambda X: latent_lrr(unit(X), reg=0.1, tol=0.05, max_iter=1000),
    "klrr": lambda X: kernel_lrr(gaussian(X), **_klrr()),
    "bdr": lambda X: block_diagonal(unit(X), n_blocks=3, reg=0.3, block_weight=0.02, tol=1e-3, max_iter=1000),
    "smce": lambda X: smce(X, reg=10.0, n_neighbors=20, tol=1e-6, max_iter=10_000),
}
"""The solver of each method on the points, with the method's defaults."""


def _klrr():
    model = METHODS["klrr"]()
    return {"reg": model.error_weight, "error": model.error, "tol": model.tol, "max_iter": model.max_iter}


def test_every_method_with_coefficients_has_a_solver_here():
    assert set(SOLVERS) | set(WITHOUT_COEFFICIENTS) == set(registry.names("graph"))


@pytest.mark.parametrize("name", SOLVERS)
def test_coefficients_are_those_of_the_solver(name, seed):
    """Entry by entry; of those that were left out none is larger than one of the same column that was kept."""
    X = union_of_subspaces(seed)[0]
    order = canonical_order(X, hash_rows(X))
    with quiet():
        model = METHODS[name](3).fit(X)
        C = SOLVERS[name](X[order]).dense()
    found = model.coefficients_.toarray()[np.ix_(order, order)]
    assert isinstance(model.coefficients_, sparse.csc_array)
    kept = found != 0
    assert_allclose(found[kept], C[kept], atol=1e-8 * np.abs(C).max())
    least = np.where(kept, np.abs(found), np.inf).min(axis=0)
    assert (np.where(kept, 0, np.abs(C)).max(axis=0) <= least * (1 + 1e-8)).all()
    if name in ("ktrr", "trr", "bdr"):
        assert (kept.sum(axis=0) == 5).all()
    elif name != "smce":  # keeps 95 % of a column
        assert_allclose(found, C, atol=1e-8 * np.abs(C).max())


# ------------------------------------------------------------------ what there is, and what not


@pytest.mark.parametrize("cls", ALL)
def test_a_method_has_what_means_something(cls, X):
    """Coefficients and explanations where points are represented by others, coordinates where there is an embedding."""
    name = next(key for key, value in METHODS.items() if value is cls)
    is_graph = name in registry.names("graph")
    represents = is_graph and name not in WITHOUT_COEFFICIENTS
    with quiet():
        fresh = cls(3) if is_graph else cls(3, n_landmarks=60)
        assert not hasattr(fresh, "coefficients_")
        assert hasattr(fresh, "explain") == represents
        assert hasattr(fresh, "transform") == hasattr(fresh, "fit_transform") == is_graph
        model = fresh.fit(X)
    assert hasattr(model, "coefficients_") == represents
    assert hasattr(model, "explain") == represents
    assert hasattr(model, "transform") == is_graph
    assert hasattr(model, "affinity_matrix_") == is_graph
    if hasattr(model, "explain"):
        column = model.coefficients_.toarray()[:, 0]
        explanation = model.explain(0, n=len(X))
        assert explanation.n_representers == np.count_nonzero(column)
        assert_array_equal(np.sort(explanation.coefficients), np.sort(column[column != 0]))
    if hasattr(model, "transform"):
        assert_array_equal(model.transform(X), model.embedding_)


@pytest.mark.parametrize("cls", [METHODS["ktrr"], SSC])
def test_graphs_that_keep_no_coefficients_have_none_to_explain(cls, X):
    own = {"n_nonzero": None} if hasattr(cls, "n_nonzero") else {}
    model = cls(3, graph="row_space", **own)
    assert hasattr(model, "explain")  # before a fit nobody knows
    model.fit(X)
    assert not hasattr(model, "coefficients_")
    assert not hasattr(model, "explain")
    with pytest.raises(AttributeError, match="keeps none of them"):
        _ = model.coefficients_
    if own:
        kept = cls(3, graph="row_space", n_nonzero=4).fit(X)
        assert (np.diff(kept.coefficients_.indptr) == 4).all()
        assert kept.explain(0).n_representers == 4
