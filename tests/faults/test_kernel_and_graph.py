"""Cases 29 to 47: kernels, penalties, coefficients and graphs that go wrong."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from fault_data import KERNELISED, blobs, fit, planes, said
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from method_data import GRAPH, METHODS, quiet, union_of_subspaces
from subspaces import KTRR, LRR2, SSC, TRR, EnSC
from subspaces.kernels import as_kernel
from subspaces.representation.ridge import IndefiniteKernelWarning, ridge


@pytest.fixture
def K(seed):
    X, _ = blobs(seed)
    return as_kernel("rbf").fit(X).gram(X)


@pytest.mark.parametrize("cls", KERNELISED)
def test_case_29_not_square(cls, K):
    """29: ValueError with the shape."""
    with pytest.raises(ValueError, match=r"square; got shape \(42, 10\)"):
        cls(3, kernel="precomputed").fit(K[:, :10])


def sigmoid(A, B):
    return np.tanh(3 * A @ B.T - 1)


@pytest.mark.parametrize("cls", KERNELISED)
def test_case_31_negative_eigenvalues(cls, seed):
    """31: IndefiniteKernelWarning with the eigenvalue; KTRR raises λ by it, KLRR leaves it out, KSSC may not end."""
    X, _ = planes(seed)
    values = np.linalg.eigvalsh(sigmoid(X, X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.warns(IndefiniteKernelWarning, match=r"eigenvalue") as caught:
            model = cls(3, kernel=sigmoid).fit(X)
    assert np.isfinite(model.embedding_).all()
    if cls is KTRR:
        assert model.penalty_ > -values[0]
        assert f"{values[0]:.3g}" in str(caught[0].message)
    with quiet():
        for rule in ("neighbors", "residual"):
            assert cls(3, kernel=sigmoid, out_of_sample=rule).fit(X).predict(X * 0.99).max() < 3


@pytest.mark.parametrize("cls", KERNELISED)
def test_case_32_nan_rank_one_constant_and_zero(cls, K, seed):
    """32: NaN has a place; rank one works; a constant kernel says that all points are equal; so does zero."""
    with pytest.raises(ValueError, match="row 2, column 3"):
        cls(3, kernel="precomputed").fit(np.where(np.arange(42 * 42).reshape(42, 42) == 2 * 42 + 3, np.nan, K))
    x = np.random.default_rng(seed).standard_normal(42)
    fit(cls, np.outer(x, x), kernel="precomputed")
    for constant in (0.0, 1.0):
        with pytest.warns(ConvergenceWarning, match="1 cluster found"):
            model = cls(3, kernel="precomputed").fit(np.full((42, 42), constant))
        assert model.n_clusters_ == 1


@pytest.mark.parametrize("rule", ["rms", "mean", "median"])
def test_case_34_bandwidth_of_equal_points(rule, seed):
    """34: never 0/0 where most points are equal: they count once."""
    X = np.repeat(planes(seed)[0][:2], [30, 2], axis=0)
    with quiet():
        assert KTRR(2, bandwidth=rule).fit(X).n_clusters_ == 2


@pytest.mark.parametrize("bandwidth", [1e-300, 1e-160, 1e160, 1e300])
def test_case_34_bandwidths_without_a_square(bandwidth, seed):
    """34: a bandwidth whose square is no number is an error, not a ZeroDivisionError."""
    for dtype in (np.float64, np.float32):
        with pytest.raises(ValueError, match="out of all proportion"):
            KTRR(3, bandwidth=bandwidth).fit(blobs(seed)[0].astype(dtype))


@pytest.mark.parametrize("solver", ["dense", "low_rank", "two_scale"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rule", ["neighbors", "residual", "network"])
def test_case_35_37_tiny_penalty_on_every_route(solver, dtype, rule, seed):
    """35, 37: with copies and λ next to zero no route ends in a LinAlgError, neither fit nor predict."""
    X, y = planes(seed, noise=0)
    X = np.vstack([X, X[:9], np.zeros((2, 9))]).astype(dtype)
    kernel = "rbf" if solver == "two_scale" else "linear"
    model = fit(KTRR, X, kernel=kernel, solver=solver, reg=1e-300, out_of_sample=rule)
    with quiet():
        assert np.isin(model.predict(X * dtype(1.01)), model.labels_).all()
        assert np.isfinite(model.transform(X * dtype(1.01))).all()
    if kernel == "linear":
        assert adjusted_rand_score(y, model.labels_[:42]) > 0.9


@pytest.mark.parametrize("cls", [KTRR, TRR, LRR2])
@pytest.mark.parametrize("value", [-1.0, 0, np.nan, np.inf, "a", None])
def test_case_36_penalties_out_of_range(cls, value, seed):
    """36: InvalidParameterError that names the range."""
    name = "error_weight" if cls is LRR2 else "reg"
    with pytest.raises(ValueError, match=rf"'{name}' parameter .* must be a float in the range \(0\.0, inf\)"):
        cls(3, **{name: value}).fit(planes(seed)[0])


@pytest.mark.parametrize("reg", [1e-300, 1e100, 1e200, 1e300])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_case_37_extreme_penalties(reg, kernel, seed):
    """37: a result for every λ; for a large one C is K/λ off the diagonal, in float32 too."""
    X, _ = blobs(seed)
    with quiet():
        assert KTRR(3, kernel=kernel, reg=reg, solver="dense").fit(X).n_clusters_ == 3
    if reg > 1:
        for dtype, rtol in ((np.float64, 1e-10), (np.float32, 1e-4)):
            if reg < float(np.finfo(dtype).max):
                K = as_kernel(kernel).fit(X).gram(X).astype(dtype)
                found = ridge(K, reg=reg)
                off = K - np.diag(K.diagonal())
                scaled = found.columns(0, 42).T.astype(np.float64) * found.penalty
                np.testing.assert_allclose(scaled, off, rtol=rtol, atol=1e-30)


@pytest.mark.parametrize("name", ["ssc", "kssc", "ensc", "lrr1", "lrr2", "latlrr", "klrr", "smce"])
@pytest.mark.parametrize("value", [1e-300, 1e-8, 1e8, 1e300])
def test_case_37_extreme_weights_of_the_iterative_methods(name, value, seed):
    """37: labels, or an error that names the parameter or says that no coefficient is left."""
    cls = METHODS[name]
    parameter = next(p for p in ("error_weight", "reg") if p in cls().get_params())
    with quiet():
        try:
            model = cls(3, **{parameter: value}).fit(planes(seed)[0])
        except ValueError as error:
            assert "no edge" in str(error) or parameter in str(error)  # noqa: PT017
        else:
            assert model.labels_.shape == (42,)


@pytest.mark.parametrize("name", ["lsc", "uspec"])
@pytest.mark.parametrize("bandwidth", [1e-300, 1e300])
def test_case_34_bandwidths_of_landmarks(name, bandwidth, seed):
    """34: the same message from the methods for many points."""
    with pytest.raises(ValueError, match="out of all proportion"):
        METHODS[name](3, bandwidth=bandwidth).fit(planes(seed)[0])


def test_case_37_a_penalty_that_overflows(seed):
    """37: λ itself must be a number."""
    with quiet(), pytest.raises(ValueError, match=r"reg=1e\+308 .* too large for float64"):
        TRR(3, reg=1e308, scaling=None).fit(blobs(seed)[0])


def with_nonzero(cls, value):
    """η as a parameter of the method or, where it has none, of a graph that truncates."""
    if "n_nonzero" in cls().get_params():
        return {"n_nonzero": value}
    return {"graph": "column", "graph_params": {"n_nonzero": value}}


TRUNCATING = [case for case in GRAPH if {"n_nonzero", "graph"} & set(case.values[0]().get_params())]


def test_case_38_who_truncates():
    """38: all methods but those that join points by a rule of their own."""
    assert {case.id for case in GRAPH} - {case.id for case in TRUNCATING} == {"sc", "lsa"}


@pytest.mark.parametrize("cls", TRUNCATING)
@pytest.mark.parametrize("value", [0, -1, 2.5, "a"])
def test_case_38_numbers_of_coefficients(cls, value, seed):
    """38: InvalidParameterError that names the range; a ValueError from graph_params."""
    with pytest.raises(
        ValueError,
        match=r"'n_nonzero' parameter .* must be an int in the range \[1, inf\)|n_nonzero must be a positive integer",
    ):
        cls(3, **with_nonzero(cls, value)).fit(planes(seed)[0])


@pytest.mark.parametrize("cls", TRUNCATING)
def test_case_38_more_coefficients_than_points(cls, seed):
    """38: η ≥ n − 1 keeps everything off the diagonal."""
    X, _ = planes(seed)
    expected = fit(cls, X, **with_nonzero(cls, 41)).affinity_matrix_.toarray()
    for eta in (42, 10**9):
        np.testing.assert_array_equal(fit(cls, X, **with_nonzero(cls, eta)).affinity_matrix_.toarray(), expected)


def test_case_41_points_without_coefficients(seed):
    """41: a degree of zero divides nothing; such points are flagged, labelled by the largest cluster."""
    X, _ = blobs(seed)
    X = np.vstack([X, np.zeros((3, 4))])
    for model in (TRR(3), EnSC(3), KTRR(3, kernel="quadratic")):
        found = fit(type(model), X, **{k: v for k, v in model.get_params().items() if k != "n_clusters"})
        assert list(found.isolated_) == [42, 43, 44]
        assert len(set(found.labels_[42:])) == 1


@pytest.mark.parametrize("connect", [True, False])
def test_case_42_more_components_than_clusters(connect, seed):
    """42: tied by their strongest coefficients, or a warning with both numbers; n_components_ tells."""
    X, _ = union_of_subspaces(seed, (10,) * 6, dimension=2, ambient=20, noise=0)  # independent: no edge between them
    model, texts = said(lambda: TRR(2, connect=connect, reg=1e-6).fit(X))
    assert model.n_components_ >= 6
    assert model.n_clusters_ == 2
    assert bool([text for text in texts if "connected components, more than the 2 clusters" in text]) is not connect


@pytest.mark.parametrize("cls", [TRR, SSC, EnSC, LRR2, KTRR])
def test_case_44_no_edge(cls):
    """44: ValueError that says that no coefficient is left and why that may be; nothing is invented."""
    parameters = {"kernel": "linear"} if cls is KTRR else {}
    with quiet(), pytest.raises(ValueError, match="no edge: every coefficient is zero"):
        cls(3, **parameters).fit(np.eye(12))


@pytest.mark.parametrize("cls", GRAPH)
def test_case_45_iterations_that_do_not_suffice(cls, seed):
    """45: ConvergenceWarning with the numbers, the result, and a trace that admits it."""
    if "max_iter" not in cls().get_params():
        pytest.skip("closed form")
    X, _ = planes(seed, noise=0.1)
    parameters = {"error": "l21"} if "error" in cls().get_params() else {}
    model, texts = said(lambda: cls(3, max_iter=1, tol=1e-12, **parameters).fit(X))
    assert not model.trace_.converged
    assert model.n_iter_ == 1
    assert texts
    assert model.labels_.shape == (42,)


@pytest.mark.parametrize("cls", KERNELISED)
def test_kernel_values_of_new_points(cls, K, seed):
    """A fitted precomputed kernel refuses values of the wrong width, and takes negative ones."""
    model = fit(cls, K, kernel="precomputed")
    with pytest.raises(ValueError, match="features"):
        model.predict(K[:, :5])
    X, _ = blobs(seed)
    with quiet():
        assert model.predict(-as_kernel("rbf").fit(X).cross(X[:3], X)).shape == (3,)
