"""Pure functions on degenerate input: empty clusters, kernels that are none, equal points, containers, odd options."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from subspaces import _memory
from subspaces._blocks import map_blocks, progress_to
from subspaces._kmeans import kmeans
from subspaces.graphs import build_graph
from subspaces.kernels import fit_kernel, gram
from subspaces.out_of_sample import residual_scores
from subspaces.representation._result import from_dense
from subspaces.scale.two_scale import _small_grams, diagonal
from subspaces.truncation import largest_per_column


def test_cluster_without_points_explains_nothing(rng):
    X = rng.standard_normal((8, 3))
    labels = np.array([0, 0, 0, 0, 2, 2, 2, 2])
    K = X @ X.T
    scores = residual_scores(K, lambda rows: K[np.ix_(rows, rows)], labels, 3, 0.1)
    assert (scores[:, 1] == -np.inf).all()
    for label in (0, 2):
        members = np.flatnonzero(labels == label)
        solved = np.linalg.solve(K[np.ix_(members, members)] + 0.1 * np.eye(4), K[members])
        assert_allclose(scores[:, label], (K[members] * solved).sum(axis=0), rtol=1e-8)


def test_only_the_positive_part_of_an_indefinite_kernel_explains(rng):
    basis = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    values = np.array([-2.0, -0.5, 1.0, 2.0, 3.0])
    K = (basis * values) @ basis.T
    K = (K + K.T) / 2
    found = residual_scores(K, lambda rows: K[np.ix_(rows, rows)], np.zeros(5, dtype=int), 1, 1e-3)
    positive = values + 1e-3 > 0
    inverse = (basis[:, positive] / (values[positive] + 1e-3)) @ basis[:, positive].T
    assert_allclose(found[:, 0], np.einsum("ij,jk,ik->i", K, inverse, K), rtol=1e-6)


def test_equal_points_have_labels():
    with pytest.warns(UserWarning, match="distinct clusters"):
        labels = kmeans(np.ones((6, 2)), 3, n_init=10, seed=0)
    assert labels.shape == (6,)


@pytest.mark.parametrize(("limit", "used", "expected"), [("1000", "400", 600), ("100", "400", 0), ("max", "400", None)])
def test_container_allows_what_it_has_left(tmp_path, monkeypatch, limit, used, expected):
    (tmp_path / "limit").write_text(limit)
    (tmp_path / "used").write_text(used)
    monkeypatch.setattr(_memory, "_CGROUP_LIMIT", tmp_path / "limit")
    monkeypatch.setattr(_memory, "_CGROUP_USED", tmp_path / "used")
    found = _memory.available_bytes()
    assert found > 10**6 if expected is None else found == expected
    with _memory.limited(1):  # less than the process has already
        assert _memory.available_bytes() == 0


def test_long_work_is_told_block_by_block():
    told = []
    with progress_to(lambda done, total: told.append((done, total))):
        assert map_blocks(lambda start, stop: start, [(i, i + 1) for i in range(300)]) == list(range(300))
        map_blocks(lambda start, stop: start, [(0, 1)])  # too short to be worth a word
    assert told == [(done, 300) for done in range(1, 301)]


def test_graph_parameters_are_numbers(rng):
    C = from_dense(rng.standard_normal((5, 5)))
    with pytest.raises(ValueError, match="share in graph_params must be a number; got 'most'"):
        build_graph(C, "mass", params={"share": "most"})
    with pytest.raises(ValueError, match=r"graph_params of graph='column' may hold nothing; got \['share'\]"):
        build_graph(C, "column", params={"share": 1})


def test_short_columns_stay_as_they_are():
    C = sparse.csc_array(np.diag([3.0, -1.0, 2.0]))
    assert_array_equal(largest_per_column(C, 1).toarray(), C.toarray())


@pytest.mark.parametrize("name", ["rbf", "inverse_distance", "quadratic", "polynomial", "linear"])
def test_small_grams_are_grams(name, rng):
    X = rng.standard_normal((3, 4, 6))
    kernel = fit_kernel(X.reshape(12, 6), name)
    for found, points in zip(_small_grams(X.copy(), kernel), X, strict=True):
        assert_allclose(found, gram(points, kernel), rtol=1e-9, atol=1e-12)
        assert_allclose(diagonal(points.copy(), kernel), gram(points, kernel).diagonal(), rtol=1e-12)


def test_dasc_cuts_by_modularity_on_the_way():
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install subspaces[deep]")
    from subspaces.deep import DASC

    C = np.kron(np.eye(2), np.ones((5, 5))) + 0.01
    np.fill_diagonal(C, 0)
    model = DASC(2, partition="modularity")
    model._seed = 0
    labels = model._labels_of(from_dense(C))
    assert_array_equal(labels == labels[0], np.arange(10) < 5)
