"""KTRR in shards: the cut between groups, clusters that lose their points, few different points, what does not fit."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from boxes_data import touching_boxes
from subspaces import KTRR
from subspaces.distributed import _cut, _files, _sample, _sharded, _shards, fit_predict
from subspaces.distributed._input import Source, as_source
from subspaces.distributed._tasks import DaskWorkers, ThisProcess
from subspaces.engine import ridge_routes as ridge
from subspaces.kernels import RBF
from subspaces.metrics import accuracy
from subspaces.spectral.partition import cut_by_modularity, merge_communities, modularity


@pytest.fixture(autouse=True)
def small_shards(monkeypatch) -> None:
    monkeypatch.setattr(_sharded, "IN_MEMORY", 500)
    monkeypatch.setattr(_sharded, "_DELIVERED", 700)
    monkeypatch.setattr(_shards, "SHARD", 400)
    monkeypatch.setattr(_shards, "BLOCK", 256)


@pytest.fixture
def balls(rng) -> np.ndarray:
    """Three balls in five dimensions."""
    centres = 20 * np.eye(5)[:3]
    return centres[rng.integers(0, 3, 1000)] + rng.normal(size=(1000, 5))


def ktrr(n_clusters) -> KTRR:
    return KTRR(n_clusters=n_clusters, solver="two_scale", assign_labels="modularity")


def test_pendants_stand_for_loops(rng):
    W = rng.random((12, 12)) * (rng.random((12, 12)) < 0.4)
    W = sparse.csr_array(W + W.T + np.diag(rng.random(12) * 3))
    labels = rng.integers(0, 4, 12)
    both = _cut.with_pendants(W)
    assert both.diagonal().sum() == 0
    assert modularity(both, np.tile(labels, 2)) == pytest.approx(modularity(W, labels))


def test_many_communities_become_few_clusters(rng):
    """Modularity finds ten communities in each box; merged pair by pair these join boxes and leave others halved."""
    W, box, places = touching_boxes(rng)
    plan = KTRR(6, solver="two_scale", assign_labels="modularity").plan(places)
    labels = _cut.cut_groups(plan, RBF(), W, lambda: W, np.ones(len(box)), places)
    assert accuracy(box, labels) > 0.98
    communities = cut_by_modularity(_cut.with_pendants(W), iterations=10)[: len(box)]
    assert communities.max() > 40
    merged = merge_communities(W, communities, 6)
    assert accuracy(box, merged) < 0.9
    assert modularity(W, labels) > modularity(W, merged)


@pytest.mark.parametrize("lost", [0, 2])
def test_a_cluster_that_smoothing_left_empty_is_kept(balls, monkeypatch, lost):
    """The labels given are those in which it has its points again, numbered by their first points."""
    expected, smooth = fit_predict(ktrr(3), balls, client="here"), _cut.smooth

    def too_much(work, number):
        smooth(work, number)
        path = work.cut / f"labels-{number}" / "codes.npy"
        codes = np.load(path)
        _files.save(path, np.where(codes == lost, 1, codes))

    monkeypatch.setattr(_cut, "smooth", too_much)
    estimator = ktrr(3)
    found = fit_predict(estimator, balls, client="here")
    np.testing.assert_array_equal(found, expected)
    assert estimator.n_clusters_ == 3


@pytest.mark.parametrize(("n_clusters", "expected"), [(5, 3), (3, 3), (2, 2), (None, 3)])
def test_fewer_different_points_than_clusters(n_clusters, expected):
    """As in memory: a warning, not an error about a number of points that nobody gave."""
    X = np.repeat(10 * np.eye(3), 300, axis=0)
    told = "3 clusters found instead of n_clusters=5"
    with pytest.warns(UserWarning, match=told) if n_clusters == 5 else nullcontext():
        labels = fit_predict(ktrr(n_clusters), X, client="here")
    assert len(np.unique(labels)) == expected
    assert (labels.reshape(3, 300) == labels[::300, None]).all()


def test_few_different_points_are_still_many(rng, monkeypatch):
    """The route follows from the number of points: of many copies, too, no process holds all."""
    X = rng.normal(size=(50, 5))[rng.integers(0, 50, 1000)]
    monkeypatch.setattr(_sample, "SAMPLE", 100)
    monkeypatch.setattr(ridge, "PATIENCE", 0)
    estimator = KTRR(n_clusters=3, assign_labels="modularity")
    monkeypatch.setattr(Source, "whole", lambda *_: pytest.fail("all points were read into one array"))
    fit_predict(estimator, X, client="here")
    assert estimator.solver_ == "two_scale"


def test_tasks_that_do_not_fit_are_refused_first(balls, monkeypatch):
    """By this process under its limit, and on workers by what Dask allows them, not by a worker killed three times."""
    gathered = []
    monkeypatch.setattr(_shards, "split", lambda *_: gathered.append(1))
    monkeypatch.setattr(_sharded, "AROUND", 10**9)
    monkeypatch.setattr(_sharded, "min", lambda *sizes: max(sizes), raising=False)  # as if there were so many points
    with pytest.raises(MemoryError, match=r"a task of the graph of 1000 samples with 5 features needs .* EKTRR"):
        fit_predict(ktrr(3), balls, client="here")
    source = as_source(balls, ThisProcess())
    limits = {"a": {"memory_limit": 2**40}, "b": {"memory_limit": 2**29}, "c": {"memory_limit": 0}}
    workers = DaskWorkers(SimpleNamespace(scheduler_info=lambda: {"workers": limits}))
    with pytest.raises(MemoryError, match=r"on a worker and one has 0\.5 GiB\. Allow more, with fewer workers"):
        _sharded._require_tasks(source, workers)
    limits["b"]["memory_limit"] = 2**60
    limits["a"]["memory_limit"] = 2**60
    _sharded._require_tasks(source, workers)
    monkeypatch.setattr(_sample, "SAMPLE", 10**12)
    with pytest.raises(MemoryError, match="a sample of 1000 samples with 5 features"):
        fit_predict(ktrr(3), balls, client="here")
    assert not gathered


def test_the_subset_is_drawn_by_the_published_hash():
    """SplitMix64 from the seed 0: a run on another machine or version draws the same points."""
    gamma = np.uint64(0x9E3779B97F4A7C15)
    found = _sample.mixed(np.arange(3, dtype=np.uint64) * gamma)
    assert [hex(value) for value in found.tolist()] == ["0xe220a8397b1dcdaf", "0x6e789e6aa1b965f4", "0x6c45d188009454f"]
