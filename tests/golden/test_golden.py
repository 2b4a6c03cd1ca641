"""The package against stored answers of an independent implementation (``generate.py`` beside this file)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from solved import dense_and_trace, sparse_and_trace
from subspaces import KTRR, TRR
from subspaces.graphs.rules import truncate
from subspaces.kernels import as_kernel
from subspaces.representation.elastic_net import elastic_net
from subspaces.representation.low_rank import lrr
from subspaces.representation.ridge import ridge, ridge_low_rank
from subspaces.representation.sparse import ssc
from subspaces.representation.two_scale import two_scale

KERNELS = (
    "linear",
    "quadratic",
    "cubic",
    "cosine",
    "rbf",
    "exponential",
    "inverse_square",
    "inverse_distance",
    "correntropy",
)
REGS = (0.01, 1.0)


@pytest.fixture(scope="module")
def golden():
    with np.load(Path(__file__).with_name("golden.npz"), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


@pytest.fixture(scope="module")
def unit(golden):
    return golden["X"] / np.linalg.norm(golden["X"], axis=1, keepdims=True)


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels(kernel, golden):
    X = golden["X"]
    settled = as_kernel(kernel).fit(X)
    np.testing.assert_allclose(settled.gram(X), golden[f"K_{kernel}"], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(settled.cross(X[:4], X), golden[f"K_{kernel}"][:4], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_coefficients_by_every_route(kernel, reg, golden):
    X, expected = golden["X"], golden[f"C_{kernel}_{reg}"]
    n = len(X)
    settled = as_kernel(kernel).fit(X)
    atol = 1e-5 * np.abs(expected).max()  # correntropy's series is accurate to 1e-7 in K
    np.testing.assert_allclose(ridge(settled.gram(X), reg=reg).columns(0, n).T, expected, atol=atol)
    Z = settled.features(X)
    if Z is not None:
        np.testing.assert_allclose(ridge_low_rank(Z, reg=reg).columns(0, n).T, expected, atol=atol)
    if settled.name in ("rbf", "exponential", "inverse_square", "inverse_distance"):
        found = two_scale(X, kernel=settled, reg=reg, n_landmarks=6, n_candidates=n - 1)
        np.testing.assert_allclose(found.matrix.toarray(), expected, atol=atol)


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("rule", ["column", "symmetric"])
@pytest.mark.parametrize("kernel", [name for name in KERNELS if name != "correntropy"])
def test_graphs_and_eigenvalues_of_the_estimator(kernel, rule, reg, golden):
    expected = golden[f"W_{rule}_{kernel}_{reg}"]
    model = KTRR(5, kernel=kernel, reg=reg, n_nonzero=4, graph=rule, connect=False).fit(golden["X"])
    np.testing.assert_allclose(model.affinity_matrix_.toarray(), expected, atol=1e-7 * expected.max())
    np.testing.assert_allclose(model.eigenvalues_[:5], golden[f"mu_{rule}_{kernel}_{reg}"], atol=1e-7)


def test_trr_is_ktrr_with_the_linear_kernel(golden):
    model = TRR(3, reg=0.01, n_nonzero=4).fit(golden["X"])
    np.testing.assert_allclose(model.affinity_matrix_.toarray(), golden["W_symmetric_linear_0.01"], atol=1e-7)


def test_truncation(golden):
    C = golden["C_rbf_1.0"]
    kept = truncate(ridge(golden["K_rbf"], reg=1.0), 4).toarray()
    assert (np.count_nonzero(kept, axis=0) == 4).all()
    np.testing.assert_allclose(kept[kept != 0], C[kept != 0], rtol=1e-7)
    assert np.abs(C[kept == 0]).max() <= np.abs(kept).max()


def test_ssc(golden, unit):
    C, trace = dense_and_trace(ssc(unit, error_weight=20.0, tol=1e-8, max_iter=1000))
    assert trace.converged
    np.testing.assert_allclose(C, golden["C_ssc"], atol=1e-4)


def test_elastic_net(golden, unit):
    C, trace = sparse_and_trace(elastic_net(unit, error_weight=50.0, l1_ratio=0.9, tol=1e-9))
    assert trace.converged
    np.testing.assert_allclose(C.toarray(), golden["C_ensc"], atol=1e-5)


@pytest.mark.parametrize("error", ["l1", "l21"])
def test_low_rank(error, golden, unit):
    Z, trace = dense_and_trace(lrr(unit, reg=0.5, error=error, tol=1e-7, max_iter=100_000))
    assert trace.converged
    E = unit.T - unit.T @ Z
    size = np.abs(E).sum() if error == "l1" else np.linalg.norm(E, axis=0).sum()
    objective = np.linalg.norm(Z, "nuc") + 0.5 * size
    np.testing.assert_allclose(objective, golden[f"objective_{error}"], rtol=1e-4)
