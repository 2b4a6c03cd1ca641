"""The elastic net at its limits: few points, no features, single precision; and what is handed from part to part."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from test_elastic_net import cloud, largest_violation

from solved import sparse_and_trace
from subspaces.representation import elastic_net as module
from subspaces.representation.elastic_net import elastic_net, elastic_net_path
from subspaces.utils.types import Array


@pytest.mark.parametrize("X", [np.ones((1, 3)), np.zeros((1, 1)), np.zeros((3, 0))])
def test_nothing_to_represent_with(X: Array) -> None:
    C, trace = sparse_and_trace(elastic_net(X))
    assert C.shape == (len(X), len(X))
    assert C.nnz == 0
    assert trace.converged


def test_defaults_are_those_of_the_documentation(monkeypatch: pytest.MonkeyPatch) -> None:
    given, original = [], module._solve_batch

    def spy(atoms: Array, start: int, stop: int, *options: Any) -> Any:
        given.append(options)
        return original(atoms, start, stop, *options)

    monkeypatch.setattr(module, "_solve_batch", spy)
    X = np.array([[1.0, 0.0], [0.6, 0.8]])
    elastic_net(X)
    list(elastic_net_path(X, [50.0]))
    assert given == 2 * [(50.0, 0.9, 1e-6, 100, None)]


def test_path_hands_every_argument_on(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def recorded(X: Array, **options: Any) -> Any:
        given.append(options)
        n_given = len(given)
        return SimpleNamespace(sparse=lambda: n_given)

    monkeypatch.setattr(module, "elastic_net", recorded)
    list(elastic_net_path(np.eye(2), [2.0, 3.0], l1_ratio=0.4, tol=0.1, max_iter=7))
    options = {"l1_ratio": 0.4, "tol": 0.1, "max_iter": 7}
    assert given == [{"error_weight": 2.0, "start": None, **options}, {"error_weight": 3.0, "start": 1, **options}]


def test_blas_has_one_thread_in_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []

    @contextmanager
    def recorded(user_api: str) -> Any:
        limits.append(user_api)
        yield

    monkeypatch.setattr(module, "one_thread", recorded)
    elastic_net(np.ones((2, 2)))
    assert limits == ["blas"]


def test_single_precision_throughout(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    tested, original = [], module._oracle_test

    def spy(correlations: Array, codes: Array, *rest: Any) -> Array:
        tested.append((correlations.dtype, codes.dtype))
        return original(correlations, codes, *rest)

    monkeypatch.setattr(module, "_oracle_test", spy)
    C, trace = sparse_and_trace(elastic_net(cloud(rng, 40, 5).astype(np.float32)))
    assert trace.converged
    assert isinstance(C, sparse.csc_array)
    assert C.dtype == np.float32
    assert set(tested) == {(np.dtype(np.float32), np.dtype(np.float32))}


@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
@pytest.mark.parametrize("size", [3, 7])
def test_supports_of_nearly_all_points(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, l1_ratio: float, size: int
) -> None:
    monkeypatch.setattr(module, "WORKING_SET", size)
    X = cloud(rng, 10, 20)
    C, trace = sparse_and_trace(elastic_net(X, error_weight=1000.0, l1_ratio=l1_ratio))
    assert trace.converged
    assert np.count_nonzero(C.toarray(), axis=0).max() == 9
    assert_array_equal(C.diagonal(), 0)
    assert largest_violation(X, C.toarray(), 1000.0, l1_ratio) < 1e-5
