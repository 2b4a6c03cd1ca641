"""Pure functions on degenerate input: empty clusters, kernels that are none, equal points, containers, odd options."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from subspaces.graphs.rules import GraphRule, build_graph
from subspaces.graphs.truncation import largest_per_column
from subspaces.kernels import as_kernel
from subspaces.representation.coefficients import from_dense
from subspaces.representation.new_samples import residual_scores
from subspaces.representation.two_scale import _small_grams
from subspaces.spectral.kmeans import kmeans
from subspaces.utils import memory
from subspaces.utils.blocks import map_blocks
from subspaces.utils.progress import phase, progress_to


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


def groups(tmp_path, monkeypatch, process, files):
    """A machine whose control groups are these files, by their paths and contents."""
    for name, text in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "process").write_text(process)
    monkeypatch.setattr(memory, "_GROUPS_OF_PROCESS", tmp_path / "process")
    monkeypatch.setattr(memory, "_GROUPS", tmp_path / "groups")


@pytest.mark.parametrize(("limit", "used", "expected"), [("1000", "400", 600), ("100", "400", 0), ("max", "400", None)])
def test_container_allows_what_it_has_left(tmp_path, monkeypatch, limit, used, expected):
    groups(tmp_path, monkeypatch, "0::/\n", {"memory.max": limit, "memory.current": used})
    found = memory.available_bytes()
    assert found > 10**6 if expected is None else found == expected
    with memory.limited(1):  # less than the process has already
        assert memory.available_bytes() == 0


def test_container_takes_files_read_before_for_free(tmp_path, monkeypatch):
    """What the kernel keeps of files it gives back when asked; else a fit after reading its data would be refused."""
    stat = "anon 100\nactive_file 50\ninactive_file 300\n"
    files = {"memory.max": "1000", "memory.current": "400", "memory.stat": stat}
    groups(tmp_path, monkeypatch, "0::/\n", files)
    assert memory.available_bytes() == 900
    groups(tmp_path, monkeypatch, "0::/\n", {**files, "memory.stat": "inactive_file\n"})
    assert memory.available_bytes() == 600


NESTED = {
    "a/memory.max": "5000",
    "a/memory.current": "1000",
    "a/b/memory.max": "max",
    "a/b/memory.current": "700",
    "a/b/c/memory.max": "9000",
    "a/b/c/memory.current": "600",
    "other/memory.max": "1",
    "other/memory.current": "1",
}


@pytest.mark.parametrize("place", ["", "unified/"])
def test_every_group_above_a_process_limits_it(tmp_path, monkeypatch, place):
    files = {place + name: text for name, text in NESTED.items()}
    groups(tmp_path, monkeypatch, "0::/a/b/c\n", files)
    assert memory.available_bytes() == 4000
    groups(
        tmp_path,
        monkeypatch,
        "0::/../elsewhere\n",
        {**files, place + "memory.max": "10", place + "memory.current": "3"},
    )
    assert memory.available_bytes() == 7


def test_groups_of_version_1(tmp_path, monkeypatch):
    files = {
        "memory/memory.limit_in_bytes": "9223372036854771712",
        "memory/memory.usage_in_bytes": "12345",
        "memory/job/memory.limit_in_bytes": "2000",
        "memory/job/memory.usage_in_bytes": "1500",
        "memory/job/memory.stat": "cache 900\ninactive_file 1\ntotal_inactive_file 800\n",
    }
    groups(tmp_path, monkeypatch, "8:pids:/x\n4:cpu,memory:/job\n0::/\n", files)
    assert memory.available_bytes() == 1300


def test_machine_without_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_GROUPS_OF_PROCESS", tmp_path / "nothing")
    assert memory.available_bytes() > 10**6


def test_address_space_is_a_limit(monkeypatch):
    """``ulimit -v``: what would not be given is not free."""
    resource = pytest.importorskip("resource", reason="Windows knows no limits of this kind")
    taken = psutil.Process().memory_info().vms
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (taken + 2**30, resource.RLIM_INFINITY))
    assert memory.available_bytes() <= 2**30
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    monkeypatch.setattr(memory.psutil, "virtual_memory", lambda: SimpleNamespace(available=2**31))
    monkeypatch.setattr(memory, "_GROUPS_OF_PROCESS", Path("/nothing"))
    assert memory.available_bytes() == 2**31


def test_what_a_container_lacks_is_refused(tmp_path, monkeypatch):
    groups(tmp_path, monkeypatch, "0::/\n", {"memory.max": "1000", "memory.current": "900"})
    with pytest.raises(MemoryError, match="the matrix needs"):
        memory.require(101, "the matrix", "Use less.")
    memory.require(100, "the matrix", "Use less.")


def test_long_work_is_told_block_by_block():
    told = []
    with progress_to(lambda *now: told.append(now)), phase("Sums"):
        assert map_blocks(lambda start, stop: start, [(2 * i, 2 * i + 2) for i in range(300)]) == [*range(0, 600, 2)]
        map_blocks(lambda start, stop: start, [(0, 1)])  # too short to be worth a word
    assert told == [("Sums", 0, None), *(("Sums", done, 600) for done in range(0, 601, 2))]


def test_graph_parameters_are_numbers(rng):
    C = from_dense(rng.standard_normal((5, 5)))
    with pytest.raises(ValueError, match="share in graph_params must be a number; got 'most'"):
        build_graph(C, GraphRule("mass", params={"share": "most"}))
    with pytest.raises(ValueError, match=r"graph_params of graph='column' may hold nothing; got \['share'\]"):
        build_graph(C, GraphRule("column", params={"share": 1}))


def test_short_columns_stay_as_they_are():
    C = sparse.csc_array(np.diag([3.0, -1.0, 2.0]))
    assert_array_equal(largest_per_column(C, 1).toarray(), C.toarray())


@pytest.mark.parametrize("name", ["rbf", "inverse_distance", "quadratic", "polynomial", "linear"])
def test_small_grams_are_grams(name, rng):
    X = rng.standard_normal((3, 4, 6))
    kernel = as_kernel(name).fit(X.reshape(12, 6))
    for found, points in zip(_small_grams(X.copy(), kernel), X, strict=True):
        assert_allclose(found, kernel.gram(points), rtol=1e-9, atol=1e-12)
        assert_allclose(kernel.diagonal(points.copy()), kernel.gram(points).diagonal(), rtol=1e-12)


def test_dasc_cuts_by_modularity_on_the_way():
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install subspaces[deep]")
    from subspaces.deep import DASC
    from subspaces.deep.dasc import labels_of

    C = np.kron(np.eye(2), np.ones((5, 5))) + 0.01
    np.fill_diagonal(C, 0)
    plan = DASC(2, assign_labels="modularity")._outline(np.zeros((10, 3)))
    labels = labels_of(from_dense(C), plan)
    assert_array_equal(labels == labels[0], np.arange(10) < 5)
