"""One contract for all representations: samples or a kernel matrix and keywords in, `Coefficients` out."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from subspaces import representation
from subspaces.kernels import as_kernel
from subspaces.representation.coefficients import Coefficients
from subspaces.representation.elastic_net import elastic_net
from subspaces.representation.latent_low_rank import latent_lrr
from subspaces.representation.low_rank import kernel_lrr, lrr
from subspaces.representation.matching_pursuit import orthogonal_matching_pursuit
from subspaces.representation.neighbors import smce, tsc
from subspaces.representation.ridge import ridge, ridge_low_rank, ridge_unconstrained, ridge_unconstrained_low_rank
from subspaces.representation.ridge_search import ridge_search
from subspaces.representation.sparse import kssc, ssc, ssc_admm
from subspaces.representation.two_scale import two_scale
from subspaces.utils.types import Array

N_SAMPLES = 36


def points(dtype: type = np.float64) -> Array:
    """Return noisy samples on three planes, of a few lengths."""
    rng = np.random.default_rng(5)
    X = np.concatenate([rng.normal(size=(12, 2)) @ rng.normal(size=(2, 9)) for _ in range(3)])
    return (X + 0.02 * rng.normal(size=X.shape)).astype(dtype)


class Method(NamedTuple):
    """A representation with its parameters, and what is particular to it."""

    function: Callable[..., Coefficients]
    options: dict[str, Any]
    of_kernel: bool = False
    hollow: bool | None = True
    """The problem says c_ii = 0; None where nobody said whether it does."""
    iterative: bool = False
    stored: str | None = "array"
    """What is kept of C as a whole: array, matrix (sparse), factors or nothing; None: one of these."""
    follows_scale: bool | None = False
    """Another unit of the data means another `reg` (or bandwidth); None: it may."""
    tolerance: float = 1e-6
    """How well the solver determines C, relative to its largest entry."""

    def given(self, X: Array) -> Array:
        return X @ X.T if self.of_kernel else X

    def __call__(self, X: Array, **more: Any) -> Coefficients:
        return self.function(self.given(X), **self.options, **more)


low_rank = partial(Method, hollow=False, iterative=True, stored="factors", follows_scale=True, tolerance=1e-3)
TIGHT = {"tol": 1e-7, "max_iter": 20_000}
KNOWN = {
    "ridge": Method(ridge, {"reg": 0.1}, of_kernel=True, stored=""),
    "ridge low rank": Method(ridge_low_rank, {"reg": 0.1}, stored=""),
    "ridge unconstrained": Method(ridge_unconstrained, {"reg": 0.1}, of_kernel=True, hollow=False, stored=""),
    "ridge unconstrained low rank": Method(ridge_unconstrained_low_rank, {"reg": 0.1}, hollow=False, stored=""),
    "ridge affine": Method(ridge, {"reg": 0.1, "affine": True}, of_kernel=True, stored=""),
    "ridge low rank affine": Method(ridge_low_rank, {"reg": 0.1, "affine": True}, stored=""),
    "ridge unconstrained affine": Method(
        ridge_unconstrained, {"reg": 0.1, "affine": True}, of_kernel=True, hollow=False, stored=""
    ),
    "ridge search": Method(ridge_search, {"reg": 0.1, "n_candidates": 8}, stored="matrix"),
    "two scales": Method(
        two_scale,
        {"kernel": as_kernel("rbf").fit(points()), "reg": 0.1, "n_candidates": N_SAMPLES - 1},
        stored="matrix",
        follows_scale=True,
    ),
    "ssc": Method(ssc, {"tol": 1e-8}, iterative=True),
    "ssc affine": Method(ssc, {"affine": True, "tol": 1e-8}, iterative=True),
    "ssc admm": Method(ssc_admm, {"affine": True, "tol": 1e-3}, iterative=True, tolerance=1e-3),
    "ssc outliers": Method(ssc, {"outliers": True, "tol": 1e-8}, iterative=True, tolerance=1e-5),
    "kssc": Method(kssc, {"tol": 1e-8}, of_kernel=True, iterative=True),
    "elastic net": Method(elastic_net, {"tol": 1e-9}, iterative=True, stored="matrix"),
    "matching pursuit": Method(orthogonal_matching_pursuit, {"n_nonzero": 3}, iterative=True, stored="matrix"),
    "lrr1": low_rank(lrr, {"reg": 0.1, "error": "l1", **TIGHT}),
    "lrr2": low_rank(lrr, {"reg": 0.3, "error": "l21", **TIGHT}),
    "latlrr": low_rank(latent_lrr, {"reg": 0.1, "tol": 1e-4, "max_iter": 20_000}, tolerance=0.02),
    "klrr": low_rank(kernel_lrr, {"reg": 0.3, **TIGHT}, of_kernel=True),
    "klrr squared": low_rank(kernel_lrr, {"reg": 3.0, "error": "fro"}, of_kernel=True),
    "smce": Method(smce, {"n_neighbors": 8, "tol": 1e-9}, iterative=True, stored="matrix"),
    "tsc": Method(tsc, {"n_neighbors": 4}, stored="matrix"),
}


def representations() -> dict[str, Callable[..., Coefficients]]:
    """Every public function of the package that returns coefficients, by name."""
    found = {}
    for module in pkgutil.iter_modules(representation.__path__, "subspaces.representation."):
        if module.name.rpartition(".")[2].startswith("_") or module.name.endswith(".coefficients"):
            continue
        for name, function in vars(importlib.import_module(module.name)).items():
            is_own = inspect.isfunction(function) and function.__module__ == module.name
            if is_own and not name.startswith("_") and inspect.signature(function).return_annotation == "Coefficients":
                found[name] = function
    return {name: function for name, function in found.items() if name not in HELPERS}


def unlisted(function: Callable[..., Coefficients]) -> Method:
    """A representation that the table above does not know: with defaults, and what it asks for besides."""
    first, *rest = inspect.signature(function).parameters.values()
    options = {p.name: GIVEN[p.name] for p in rest if p.default is p.empty}
    iterative = any(p.name == "max_iter" for p in rest)
    return Method(function, options, first.name == "K", None, iterative, None, None)


HELPERS = {"sparse_coefficients"}
GIVEN = {"n_blocks": 3, "n_neighbors": 8, "n_nonzero": 3, "reg": 0.1}
"""What representations ask for without a default."""
METHODS = KNOWN | {
    name.replace("_", " "): unlisted(function)
    for name, function in representations().items()
    if function not in {method.function for method in KNOWN.values()}
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
every_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32])

LOOSE = {"tol": 1e-4}
"""In single precision the solvers cannot reach what is asked for above."""


_KNOWN: dict[Any, Coefficients] = {}


def solved(method: Method, dtype: type = np.float64) -> Coefficients:
    """Coefficients of the points, found once for all tests."""
    options = method.options | (LOOSE if dtype == np.float32 and "tol" in method.options else {})
    key = (method.function, str(options), dtype)
    if key not in _KNOWN:
        _KNOWN[key] = method._replace(options=options)(points(dtype))
    return _KNOWN[key]


@every_method
def test_takes_one_array_and_keywords(method):
    first, *rest = inspect.signature(method.function).parameters.values()
    assert first.name == ("K" if method.of_kernel else first.name)
    assert first.default is inspect.Parameter.empty
    assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in rest)
    assert inspect.signature(method.function).return_annotation == "Coefficients"


@every_method
@every_dtype
def test_returns_coefficients_of_the_given_dtype(method, dtype):
    found = solved(method, dtype)
    dtype = np.float64 if method.function is two_scale else dtype  # whose single precision only says where to look
    assert isinstance(found, Coefficients)
    assert (found.n_samples, found.dtype) == (N_SAMPLES, dtype)
    for whole in (found.dense(), found.sparse()):
        assert (whole.shape, whole.dtype) == ((N_SAMPLES, N_SAMPLES), dtype)
    assert found.sparse().format == "csc"
    assert found.columns(3, 8).dtype == found.rows(3, 8).dtype == dtype
    assert np.isfinite(found.dense()).all()
    assert np.abs(found.dense()).max() > 0.01


@every_method
@every_dtype
def test_columns_rows_and_the_whole_agree(method, dtype):
    found = solved(method, dtype)
    C = found.dense()
    rounding = 50 * np.finfo(dtype).eps * np.abs(C).max()
    assert_allclose(found.sparse().toarray(), C, atol=rounding)
    for step in (1, 5, 17, N_SAMPLES):
        blocks = [(start, min(start + step, N_SAMPLES)) for start in range(0, N_SAMPLES, step)]
        assert_allclose(np.concatenate([found.columns(*block) for block in blocks]), C.T, atol=rounding)
        assert_allclose(np.concatenate([found.rows(*block) for block in blocks]), C, atol=rounding)


@every_method
def test_blocks_belong_to_the_caller(method):
    found = solved(method)
    C = found.dense().copy()
    found.columns(2, 9)[:] = np.nan
    found.rows(2, 9)[:] = np.nan
    assert_array_equal(found.dense(), C)


@every_method
def test_the_whole_is_not_copied_where_it_is_stored(method):
    found = solved(method)
    stored = [name for name in ("array", "matrix", "factors") if getattr(found, name) is not None]
    assert len(stored) <= 1
    assert method.stored is None or stored == ([method.stored] if method.stored else [])
    if stored == ["array"]:
        assert found.dense() is found.array
    if stored == ["matrix"]:
        assert found.sparse() is found.matrix
    if stored == ["factors"]:
        assert_array_equal(found.dense(), found.factors.dense())


@every_method
def test_diagonal_is_zero_if_the_problem_says_so(method):
    diagonal = np.diagonal(solved(method).dense())
    assert method.hollow is None or diagonal.any() != method.hollow


@every_method
def test_input_is_left_alone(method):
    given = method.given(points())
    before = given.copy()
    given.flags.writeable = False
    method.function(given, **method.options)
    assert_array_equal(given, before)


@every_method
def test_order_of_the_samples_does_not_matter(method):
    X, order = points(), np.random.default_rng(1).permutation(N_SAMPLES)
    C = solved(method).dense()
    assert_allclose(method(X[order]).dense(), C[np.ix_(order, order)], atol=method.tolerance * np.abs(C).max())


@every_method
def test_unit_of_the_data_does_not_matter_where_parameters_are_relative(method):
    C = solved(method).dense()
    if method.follows_scale is None:
        pytest.skip("whether the parameters are relative stands in KNOWN")
    if method.follows_scale:
        assert not np.allclose(method(64 * points()).dense(), C, atol=1e-4)
    else:
        assert_allclose(method(64 * points()).dense(), C, atol=method.tolerance * np.abs(C).max())


@every_method
def test_trace_of_iterative_solvers_only(method):
    trace = solved(method).trace
    assert (trace is not None) == method.iterative
    if trace is not None:
        assert trace.converged


@every_method
@pytest.mark.filterwarnings("ignore::subspaces.representation.ridge.IndefiniteKernelWarning")
def test_samples_with_nan_are_refused(method):
    X = points()
    X[3, 4] = np.nan
    with pytest.raises(ValueError):  # the words differ
        method(X)


def test_every_representation_takes_part():
    assert set(representations().values()) == {method.function for method in METHODS.values()}
    assert "block diagonal" in METHODS  # in no table: found by itself
