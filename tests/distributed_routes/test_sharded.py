"""KTRR in shards: the graph of memory, the same labels for any chunks, workers and order, also when runs die."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest
from scipy import sparse

from distributed_routes.rings_data import ektrr, ktrr, three_rings, watched
from subspaces import KTRR
from subspaces.distributed import _blocks, _cut, _files, _sample, _sampled, _sharded, _shards, connect, fit_predict
from subspaces.distributed._tasks import ThisProcess
from subspaces.graphs.affinity import affinity
from subspaces.kernels import RBF, DistanceKernel
from subspaces.metrics import adjusted_rand


@pytest.fixture
def rings(rng) -> np.ndarray:
    """Three rings; some points are there twice."""
    ring = three_rings(rng, 2400)
    ring[100:120] = ring[2000:2020]
    return ring


@pytest.fixture
def balls(rng) -> np.ndarray:
    """Eight balls in five dimensions."""
    centres = 6 * rng.normal(size=(8, 5))
    return (centres[rng.integers(0, 8, 1600)] + rng.normal(size=(1600, 5))).astype(np.float32)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch) -> None:
    monkeypatch.setattr(_sharded, "IN_MEMORY", 500)
    monkeypatch.setattr(_sharded, "_DELIVERED", 700)
    monkeypatch.setattr(_shards, "SHARD", 800)
    monkeypatch.setattr(_shards, "BLOCK", 256)


def here(X, folder=None, **parameters) -> np.ndarray:
    return fit_predict(ktrr(**parameters), X, client="here", checkpoint=folder)


def results(folder: Path) -> dict[str, int]:
    """Every finished task's folder and when it was written."""
    kinds = ("split-*", "shard-*", "rows-*", "edges-*", "groups-*", "contracted-*", "labels-*")
    found = (path for kind in kinds for path in folder.glob(f"*/{kind}") if path.is_dir())
    return {f"{path.parent.name}/{path.name}": path.stat().st_mtime_ns for path in found}


# ---------------------------------------------------------------- the same graph, the same labels


def graph_in_files(folder: Path) -> sparse.csr_array:
    """W between the rows as they were given, from the files of all blocks."""
    (points,), (cut,) = folder.glob("points-*"), folder.glob("cut-*")
    layout = _shards.open_layout(points)
    assert len(layout.shards) > 2
    assert len(layout.tasks) > 8
    row = np.concatenate([layout.shard(place, "rows") for place in range(len(layout.shards))])
    T = sparse.lil_array((layout.n, layout.n))
    for number, start in enumerate(layout.starts[:-1]):
        indptr, rows, weights = _blocks.open_edges(cut, number)
        column = start + np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        T[row[rows], row[column]] = weights
    return affinity(sparse.csc_array(T))


@pytest.mark.parametrize("parameters", [{}, {"graph": "column", "affine": True}, {"graph": "mass", "reg": 0.3}])
def test_the_blocks_are_those_of_the_graph_in_memory(rings, tmp_path, parameters):
    """All cells are probed here, and the sample is all points: only the order of sums differs."""
    rings = np.unique(rings, axis=0)
    here(rings, tmp_path, **parameters)
    W, expected = graph_in_files(tmp_path), ktrr(**parameters, connect=False).fit(rings).affinity_matrix_
    both = W.minimum(expected).sum() / W.maximum(expected).sum()
    assert both > 0.995, both


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"n_clusters": None},
        {"assign_labels": "kmeans", "spectral": "coarse", "scaling": "standard"},
        {"kernel": "exponential", "affine": True, "graph": "column"},
    ],
)
def test_labels_are_those_in_memory(balls, parameters):
    parameters = {"n_clusters": 8, **parameters}
    expected, found = ktrr(**parameters).fit_predict(balls), here(balls, **parameters)
    assert adjusted_rand(expected, found) > 0.97
    assert found[0] == 0  # numbered by their first points


def test_any_chunks_workers_and_order_of_rows(client, rings, rng, tmp_path):
    import dask.array as da

    expected = here(rings, scaling="standard")
    np.save(tmp_path / "X.npy", rings)
    for chunks in ((700, 4), (2400, 3), (131, 4)):
        X = da.from_array(rings, chunks=chunks)
        np.testing.assert_array_equal(fit_predict(ktrr(scaling="standard"), X, client=client), expected)
    with connect(n_workers=1) as alone:
        np.testing.assert_array_equal(fit_predict(ktrr(scaling="standard"), tmp_path / "X.npy", client=alone), expected)
    order = rng.permutation(len(rings))
    shuffled = here(rings[order], scaling="standard")
    assert adjusted_rand(shuffled, expected[order]) == 1
    np.testing.assert_array_equal(expected[100:120], expected[2000:2020])


def test_kernels_of_users_go_to_the_workers(client, rings, tmp_path):
    import dask.array as da

    @dataclass(frozen=True)
    class Student(DistanceKernel):
        nu: float = 1.0

        def profile(self, block):
            block /= self.sigma**2
            block += 1
            np.power(block, -self.nu, out=block)

    for nu in (1.0, 2.0):  # one bandwidth, two graphs
        X = da.from_array(rings, chunks=(700, 4))
        labels = fit_predict(ktrr(kernel=Student(1.5, nu)), X, client=client, checkpoint=tmp_path)
        np.testing.assert_array_equal(labels, here(rings, kernel=Student(1.5, nu)))
    assert len(list(tmp_path.glob("graph-*"))) == 2
    assert len(list(tmp_path.glob("points-*"))) == 1
    assert _files.identity_of(RBF(1.5)) == "rbf 1.5"
    assert _files.identity_of(Student(1.5, 2.0)).endswith("Student[('bandwidth', 1.5), ('nu', 2.0)]")


def test_what_is_kept(rings):
    estimator = ktrr()
    labels = fit_predict(estimator, rings, client="here")
    assert (estimator.predict(rings[:300] + 0.01) == labels[:300]).mean() > 0.97
    np.testing.assert_array_equal(estimator.predict(rings[:300]), labels[:300])
    assert estimator.n_clusters_ == 3
    assert "in shards" in estimator.solver_reason_
    assert set(estimator.timings_) == {"look", "shards", "coefficients", "graph", "cut", "labels"}
    assert not hasattr(estimator, "affinity_matrix_")
    with pytest.raises(AttributeError, match="no coefficients_"):
        _ = estimator.coefficients_


def test_what_must_see_all_points_does(rings):
    expected = KTRR(3, kernel="linear").fit(rings)
    estimator = KTRR(3, kernel="linear")
    np.testing.assert_array_equal(fit_predict(estimator, rings, client="here"), expected.labels_)
    assert estimator.solver_ == "low_rank"
    with pytest.raises(ValueError, match='spectral="full" embeds every sample'):
        here(rings, assign_labels="kmeans", spectral="full")


def test_equal_points_and_bad_numbers(rings):
    with pytest.warns(UserWarning, match="all 900 samples are equal"):
        assert not here(np.ones((900, 3))).any()
    rings[[12, 40, 1700], 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN or infinity in its rows 12, 40, 1700:"):
        here(rings)
    with pytest.raises(ValueError, match="never negative"):
        here(np.nan_to_num(rings), scaling="log")


# ---------------------------------------------------------------- parts


def test_weights_between_groups_are_sums(rings, tmp_path):
    """The graph that is cut is the graph of the points, added up by groups."""
    here(rings, tmp_path)
    W = graph_in_files(tmp_path)
    (points,), (cut,) = tmp_path.glob("points-*"), tmp_path.glob("cut-*")
    layout, offsets = _shards.open_layout(points), np.load(cut / "groups.npy")
    blocks = range(len(layout.tasks))
    row = np.concatenate([layout.shard(place, "rows") for place in range(len(layout.shards))])
    group = np.concatenate([offsets[b] + np.load(cut / f"groups-{b}" / "codes.npy") for b in blocks])
    indicator = sparse.csr_array((np.ones(layout.n), (row, group)))
    found = _cut.contracted(cut, len(blocks), int(offsets[-1]), "kept")
    np.testing.assert_allclose(found.toarray(), (indicator.T @ W @ indicator).toarray(), rtol=1e-5, atol=1e-9)


def test_points_between_two_centres_go_to_the_first(rng):
    """Points on the plane between two centres, where rounding decides which is nearer."""
    normal = rng.normal(size=7)
    X = rng.normal(size=(500, 7))
    X -= np.outer(X @ normal, normal) / (normal @ normal)
    assert not _shards.nearest_centre(X, np.stack([normal, -normal])).any()
    assert not _shards.nearest_centre(X, np.stack([-normal, normal])).any()
    assert _shards.nearest_centre(X - 1e-6 * normal, np.stack([normal, -normal])).all()


def test_the_sample_does_not_depend_on_chunks_or_order(rings, rng, monkeypatch):
    monkeypatch.setattr(_sample, "SAMPLE", 500)
    found = []
    for X, step in ((rings, 700), (rings, 2400), (rings[rng.permutation(len(rings))], 450)):
        blocks = [X[a : a + step] for a in range(0, len(X), step)]
        found.append(_sample.look_at(blocks, list(range(0, len(X), step)), ThisProcess()))
    for other in found[1:]:
        np.testing.assert_array_equal(other.points, found[0].points)
    assert len(found[0].points) == 500
    assert len(np.unique(found[0].points, axis=0)) == 500
    np.testing.assert_array_equal(rings[found[0].rows], found[0].points)
    assert found[0].content == found[1].content != found[2].content


# ---------------------------------------------------------------- runs that die


@pytest.mark.parametrize("make", [ktrr, ektrr])
def test_a_killed_worker_changes_nothing(client, rings, tmp_path, monkeypatch, make):
    import dask.array as da

    monkeypatch.setattr(_sampled, "TASK_BYTES", 2**12)

    client.wait_for_workers(2, timeout=60)
    pids = set(client.run(os.getpid).values())
    left = []

    def kill_one(done: int, total: int) -> None:
        if not left:
            os.kill(min(pids), signal.SIGKILL)
            left.append(total - done)

    X = da.from_array(rings, chunks=(700, 4))
    with watched(kill_one):
        labels = fit_predict(make(), X, client=client, checkpoint=tmp_path)
    client.wait_for_workers(2, timeout=60)
    assert left[0] > 0
    assert min(pids) not in client.run(os.getpid).values()
    np.testing.assert_array_equal(labels, fit_predict(make(), rings, client="here"))


KILLED_RUN = """
    import os, signal, sys
    from subspaces import EKTRR, KTRR
    from subspaces.distributed import _cut, _sharded, _shards, connect, fit_predict
    from subspaces.utils.progress import progress_to

    def kill_all(*_):
        os.killpg(0, signal.SIGKILL)  # this process and its workers

    def after(name, done, total):
        if done == 3 and "piece by piece" in name:
            kill_all()

    def dies(function, number):
        def run(*arguments):
            if arguments[-1] == number:
                kill_all()
            return function(*arguments)
        return run

    if __name__ == "__main__":
        _sharded.IN_MEMORY, _shards.SHARD, _shards.BLOCK, _sharded._DELIVERED = 500, 800, 256, 700
        data, folder, where = sys.argv[1:]
        estimator = KTRR(n_clusters=3, solver="two_scale", assign_labels="modularity")
        if where == "workers":
            with connect(n_workers=1) as client, progress_to(after):
                fit_predict(estimator, data, client=client, checkpoint=folder)
        elif where == "gather":
            gather = _shards.gather
            _shards.gather = lambda *given: kill_all() if given[2] == 2 else gather(*given)
        elif where == "deliver":
            _cut.deliver = kill_all
        else:
            setattr(_cut, where, dies(getattr(_cut, where), 5))
        fit_predict(estimator, data, client="here", checkpoint=folder)
"""


def wait_until_all_ended(group: int) -> None:
    """Workers get the signal together with their caller, and may need a moment to end."""
    for process in psutil.process_iter(["status"]):
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            while os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.05)


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
@pytest.mark.parametrize("where", ["gather", "workers", "contract", "smooth", "deliver"])
def test_a_killed_run_goes_on_from_its_checkpoint(rings, tmp_path, where):
    if where == "workers":
        pytest.importorskip("distributed", reason="Dask is not installed: pip install subspaces[dask]")
    script, data, folder = tmp_path / "run.py", tmp_path / "rings.npy", tmp_path / "checkpoint"
    script.write_text(textwrap.dedent(KILLED_RUN), encoding="utf-8")
    np.save(data, rings)
    run = subprocess.Popen([sys.executable, script, data, folder, where], start_new_session=True)
    assert run.wait() == -signal.SIGKILL
    wait_until_all_ended(run.pid)
    finished = results(folder)
    assert finished
    (next(folder.glob("points-*")) / ".shard-1.tmp").write_bytes(b"half of a file")
    labels = here(rings, folder)
    np.testing.assert_array_equal(labels, here(rings))
    after = results(folder)
    assert finished.items() <= after.items()
    assert len(after) > len(finished) or where == "deliver"
    assert not [path for path in folder.rglob(".*") if not path.name.startswith(".nfs")]


def spoil(file: Path) -> bytes:
    """Zero the middle third of a file, in the same size; what it was before."""
    whole = file.read_bytes()
    third = len(whole) // 3
    file.write_bytes(whole[:third] + bytes(third) + whole[2 * third :])
    assert file.read_bytes() != whole
    return whole


def test_pieces_damaged_inside_are_computed_again(rings, tmp_path):
    """64: zeros in points gave half of the labels wrong, in rows all, in edges a traceback."""
    labels = here(rings[::2], tmp_path)
    kinds = {}
    for file in sorted(tmp_path.rglob("*.npy")):
        kind = re.sub(r"-\d+", "", f"{file.parent.name.partition('-')[0]} {file.name}")
        kinds.setdefault(kind, file)
    assert {"shard points.npy", "shard rows.npy", "edges rows.npy", "model whitening.npy", "cut labels.npy"} <= set(
        kinds
    )
    for kind, file in kinds.items():
        before = spoil(file)
        np.testing.assert_array_equal(here(rings[::2], tmp_path), labels, kind)
        if not kind.startswith(("split", "sums")):  # not read where what was made of them is there
            assert file.read_bytes() == before, kind
        file.write_bytes(before)
    spoil(kinds["split points.npy"])
    spoil(kinds["shard points.npy"])
    np.testing.assert_array_equal(here(rings[::2], tmp_path), labels)


def test_damaged_pieces_and_other_parameters(rings, tmp_path):
    labels, before = here(rings, tmp_path), results(tmp_path)
    damaged = sorted(tmp_path.glob("graph-*/rows-*"))[5]
    (damaged / "values.npy").write_bytes((damaged / "values.npy").read_bytes()[:1000])
    np.testing.assert_array_equal(here(rings, tmp_path), labels)
    after = results(tmp_path)
    assert {name for name in before if after[name] != before[name]} == {f"{damaged.parent.name}/{damaged.name}"}
    np.testing.assert_array_equal(here(rings, tmp_path), labels)
    assert results(tmp_path) == after
    here(rings, tmp_path, reg=0.5)
    here(rings, tmp_path, n_clusters=2)
    assert [len(list(tmp_path.glob(f"{kind}-*"))) for kind in ("points", "graph", "cut")] == [1, 2, 3]
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".npy", ".json"}
