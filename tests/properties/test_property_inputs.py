"""Whatever the points: valid labels or an error that says what is wrong; nothing of the caller's changes."""

from __future__ import annotations

import warnings
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from property_data import any_points, examples, subspaces
from sklearn.exceptions import ConvergenceWarning

from method_data import ALL, METHODS, quiet
from subspaces import KTRR, kernels

# what a fit may refuse: a graph without edges, a bandwidth of copies only, a penalty that is no number
REFUSALS = ("no edge", "gave 0", "so it has no communities", "too large for float")
DISTANCE_KERNELS = tuple(name for name, kind in kernels.KERNELS.items() if kind.of_distances)
KERNELS = (*DISTANCE_KERNELS, "linear", "cosine", "quadratic", "cubic", "correntropy")
ITERATIVE = [METHODS[name] for name in ("ssc", "kssc", "ensc", "lrr1", "lrr2", "latlrr", "klrr", "smce")]


def fit_or_refusal(model, X):
    """The fitted model, or None where one of the known refusals was raised."""
    try:
        with quiet():
            return model.fit(X)
    except ValueError as error:
        assert any(words in str(error) for words in REFUSALS), error  # noqa: PT017
        assert not hasattr(model, "labels_")
        return None


def check(model, X, n_clusters):
    n = len(X)
    assert model.labels_.shape == (n,)
    assert model.labels_.min() >= 0
    assert model.labels_.max() < n_clusters
    assert model.n_clusters_ == len(np.unique(model.labels_))
    with quiet():
        predicted = model.predict(X)
    assert predicted.shape == (n,)
    assert np.isin(predicted, np.arange(n_clusters)).all()
    if hasattr(model, "affinity_matrix_"):
        W = model.affinity_matrix_
        assert np.isfinite(W.data).all()
        assert (W.data >= 0).all()
        assert abs(W - W.T).max() == 0
        assert set(model.labels_) == set(range(model.n_clusters_))
        np.testing.assert_array_equal(predicted, model.labels_)
        with quiet():
            assert np.isfinite(model.transform(X)).all()


@pytest.mark.parametrize("cls", ALL)
@examples(0.2)
@given(X=any_points(), k=st.integers(1, 5))
def test_any_points(cls, X, k):
    k = min(k, len(X))
    before = X.copy()
    model = fit_or_refusal(cls(n_clusters=k), X)
    np.testing.assert_array_equal(X, before)
    if model is not None:
        check(model, X, k)
    np.testing.assert_array_equal(X, before)


@examples(2)
@given(
    X=any_points(),
    k=st.integers(1, 5),
    kernel=st.sampled_from(KERNELS),
    reg=st.sampled_from([1e-300, 1e-12, 1e-3, 1.0, 1e3, 1e30, 1e200]),
    eta=st.sampled_from([1, 2, 5, 1000, None]),
    graph=st.sampled_from(["symmetric", "column", "mass", "row_space"]),
    by=st.sampled_from(["magnitude", "value"]),
    solver=st.sampled_from(["auto", "dense", "low_rank", "two_scale"]),
    assign_labels=st.sampled_from(["kmeans", "cluster_qr", "discretize", "modularity"]),
    scaling=st.sampled_from([None, "unit", "max", "minmax", "standard"]),
    rule=st.sampled_from(["neighbors", "residual"]),
    bandwidth=st.sampled_from(["rms", "mean"]),
)
def test_any_parameters_of_ktrr(X, k, kernel, reg, eta, graph, by, solver, assign_labels, scaling, rule, bandwidth):
    k = min(k, len(X))
    if solver == "two_scale":
        assume(kernel in DISTANCE_KERNELS)
    if solver == "low_rank":
        assume(kernel not in DISTANCE_KERNELS)
    model = KTRR(
        k,
        kernel=kernel,
        reg=reg,
        n_nonzero=eta,
        graph=graph,
        by=by,
        solver=solver,
        assign_labels=assign_labels,
        scaling=scaling,
        out_of_sample=rule,
        bandwidth=bandwidth,
        n_init=2,
    )
    before = X.copy()
    if fit_or_refusal(model, X) is not None:
        check(model, X, k)
        if model.condition_ is not None:
            assert model.condition_ >= 0.99
            assert model.residual_ >= 0
        new = (X[:3] * np.asarray(1.01, X.dtype)).astype(X.dtype)
        with quiet():
            assert np.isin(model.predict(new), model.labels_).all()
            assert np.isfinite(model.transform(new)).all()
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("cls", ITERATIVE)
@examples(0.1)
@given(points=subspaces(), max_iter=st.sampled_from([1, 3, 1000]), tol=st.sampled_from([1e-2, 1e-4, 1e-8]))
def test_convergence_flags_are_honest(cls, points, max_iter, tol):
    """Not converged if and only if a ConvergenceWarning said so, and never with more steps than allowed."""
    X, k = points
    parameters = {"error": "l21"} if cls.__name__ == "KLRR" else {}
    model = cls(k, max_iter=max_iter, tol=tol, **parameters)
    with warnings.catch_warnings(record=True) as caught, suppress(ValueError):
        warnings.simplefilter("always")
        model.fit(X)
    if hasattr(model, "trace_"):
        said = any(w.category is ConvergenceWarning and "max_iter" in str(w.message) for w in caught)
        assert model.trace_.converged is not said
        assert 1 <= model.n_iter_ <= max_iter + 1
        if model.trace_.converged and model.trace_.primal and cls.__name__ in ("LRR1", "LRR2", "LatLRR", "KLRR"):
            assert model.trace_.primal[-1] <= tol * 1.001
            assert model.trace_.dual[-1] <= tol * 1.001
