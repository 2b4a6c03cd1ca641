"""What must not change the answer, for every method and for points that Hypothesis draws."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_data import AMBIGUOUS, examples, fitted, heaps, subspaces
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from method_data import ALL, GRAPH, LARGE, quiet
from subspaces import KTRR
from subspaces.engine import predict
from subspaces.utils import blocks

SEEDS = st.integers(0, 2**32 - 1)
KERNELS = ("linear", "rbf", "quadratic", "cubic", "exponential", "inverse_square", "inverse_distance", "cosine")


def same_graph(first, second, order=slice(None)):
    W, V = first.affinity_matrix_.toarray(), second.affinity_matrix_.toarray()
    W = W[order][:, order]
    np.testing.assert_allclose(V, W, rtol=1e-5, atol=1e-6 * W.max())


def in_small_blocks(predictor):
    return replace(predictor, block_bytes=100) if hasattr(predictor, "block_bytes") else predictor


def same_labels(first, second):
    assert adjusted_rand_score(first, second) == 1


@pytest.mark.parametrize("cls", GRAPH)
@examples(0.04)
@given(points=subspaces(), seed=SEEDS)
def test_order_of_points(cls, points, seed):
    X, k = points
    order = np.random.default_rng(seed).permutation(len(X))
    same_graph(fitted(cls, X, k), fitted(cls, X[order], k), order)


@pytest.mark.parametrize("cls", LARGE)
@examples(0.04)
@given(points=heaps(), seed=SEEDS)
def test_order_of_points_for_many(cls, points, seed):
    X, y = points
    order = np.random.default_rng(seed).permutation(len(X))
    if cls not in AMBIGUOUS:
        same_labels(fitted(cls, X, y.max() + 1).labels_[order], fitted(cls, X[order], y.max() + 1).labels_)


@pytest.mark.parametrize("cls", [p for p in GRAPH if p.id not in ("lrr1", "latlrr")])  # their error counts features
@examples(0.04)
@given(points=subspaces(), seed=SEEDS)
def test_rotation(cls, points, seed):
    X, k = points
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((X.shape[1],) * 2))[0]
    same_graph(fitted(cls, X, k), fitted(cls, X @ Q, k))


@pytest.mark.parametrize("kernel", KERNELS)
@examples(0.06)
@given(points=subspaces(), seed=SEEDS)
def test_rotation_under_every_kernel(kernel, points, seed):
    X, k = points
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((X.shape[1],) * 2))[0]
    same_graph(fitted(KTRR, X, k, kernel=kernel), fitted(KTRR, X @ Q, k, kernel=kernel))


@pytest.mark.parametrize("cls", [p for p in LARGE if p.id not in ("ektrr", "sssc", "slsr", "slrr")])
@examples(0.04)
@given(points=heaps(), seed=SEEDS)
def test_rotation_for_many(cls, points, seed):
    X, y = points
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((X.shape[1],) * 2))[0]
    if cls not in AMBIGUOUS:
        same_labels(fitted(cls, X, y.max() + 1).labels_, fitted(cls, X @ Q, y.max() + 1).labels_)


@pytest.mark.parametrize("cls", GRAPH)
@examples(0.04)
@given(points=subspaces(), exponent=st.integers(-300, 290))
def test_scale(cls, points, exponent):
    X, k = points
    if cls.__name__ == "KLRR":  # its λ is not relative to the kernel, but the default kernel has no scale
        assert cls().kernel == "rbf"
    same_graph(fitted(cls, X, k), fitted(cls, X * 10.0**exponent, k))


@pytest.mark.parametrize("kernel", KERNELS)
@examples(0.06)
@given(points=subspaces(), exponent=st.integers(-300, 290))
def test_scale_under_every_kernel(kernel, points, exponent):
    X, k = points
    same_graph(fitted(KTRR, X, k, kernel=kernel), fitted(KTRR, X * 10.0**exponent, k, kernel=kernel))


@pytest.mark.parametrize("cls", LARGE)
@examples(0.04)
@given(points=heaps(), exponent=st.integers(-300, 290))
def test_scale_for_many(cls, points, exponent):
    X, y = points
    same_labels(fitted(cls, X, y.max() + 1).labels_, fitted(cls, X * 10.0**exponent, y.max() + 1).labels_)


@pytest.mark.parametrize("cls", ALL)
@examples(0.04)
@given(points=heaps(), cut=st.integers(0, 40), seed=SEEDS)
def test_batches_of_new_points(cls, points, cut, seed):
    X, y = points
    model = fitted(cls, X, y.max() + 1)
    new = np.vstack([X + 0.01 * np.random.default_rng(seed).standard_normal(X.shape), X])
    with quiet():
        expected = model.predict(new)
        np.testing.assert_array_equal(np.concatenate([model.predict(new[:cut]), model.predict(new[cut:])]), expected)
        with (
            patch.object(predict, "_PREDICT_BYTES", 1000),
            patch.object(model, "_predictor", in_small_blocks(model._predictor)),
        ):
            np.testing.assert_array_equal(model.predict(new), expected)


@pytest.mark.parametrize("cls", ALL)
@examples(0.04)
@given(points=heaps(), block=st.integers(100, 5000), tile=st.integers(1, 30))
def test_chunks(cls, points, block, tile):
    X, y = points
    expected = fitted(cls, X, y.max() + 1)
    with patch.object(blocks, "BLOCK_BYTES", block), patch.object(blocks, "TILE", tile):
        found = fitted(cls, X, y.max() + 1)
    if hasattr(found, "affinity_matrix_"):
        same_graph(expected, found)
    if cls not in AMBIGUOUS:
        same_labels(expected.labels_, found.labels_)


@pytest.mark.parametrize("cls", ALL)
@examples(0.04)
@given(points=subspaces())
def test_threads_and_repetition(cls, points):
    """The same seed gives identical labels on one and two threads, and again."""
    X, k = points
    found = []
    for threads in (1, 2, 2):
        with threadpool_limits(threads):
            found.append(fitted(cls, X, k).labels_)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[1], found[2])


@pytest.mark.parametrize("cls", ALL)
@examples(0.04)
@given(points=heaps())
def test_single_precision(cls, points):
    X, y = points
    single, rounded = (fitted(cls, X.astype(np.float32).astype(dtype), y.max() + 1) for dtype in (np.float32, float))
    np.testing.assert_array_equal(single.labels_, rounded.labels_)  # how points are stored does not matter
    if cls not in AMBIGUOUS:  # nor, mostly, that they are rounded
        same_labels(fitted(cls, X, y.max() + 1).labels_, single.labels_)


@pytest.mark.parametrize("kernel", ["linear", "quadratic", "cosine"])
@examples(0.06)
@given(points=subspaces(), seed=SEEDS)
def test_signs_under_even_kernels(kernel, points, seed):
    X, k = points
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (len(X), 1))
    same_graph(fitted(KTRR, X, k, kernel=kernel), fitted(KTRR, X * signs, k, kernel=kernel))
