"""Chunks and worker processes give the labels of the same estimator in memory, also when processes die."""

from __future__ import annotations

import os
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("distributed", reason="Dask is not installed: pip install subspaces[dask]")
pytest.importorskip("dask.dataframe", reason="Dask DataFrames are not installed: pip install subspaces[dask]")

import dask
import dask.array as da
import dask.dataframe as dd
import pandas as pd
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from distributed_routes.rings_data import ektrr, ktrr, three_rings
from subspaces import SSSC, TRR
from subspaces.app.files import FileError
from subspaces.distributed import _sampled, _sharded, connect, fit_predict


@pytest.fixture
def rings(rng) -> np.ndarray:
    return three_rings(rng, 3000)


@pytest.fixture
def small_tasks(monkeypatch) -> None:
    monkeypatch.setattr(_sampled, "TASK_BYTES", 2**12)


# ---------------------------------------------------------------- few points: the graph in memory


@pytest.mark.parametrize(
    ("chunks", "parameters"),
    [
        ((700, 4), {}),
        ((3000, 3), {"scaling": "standard", "assign_labels": "kmeans", "spectral": "coarse", "kernel": "exponential"}),
    ],
)
def test_graph_is_that_in_memory(client, rings, tmp_path, chunks, parameters):
    expected = ktrr(**parameters).fit(rings)
    estimator = ktrr(**parameters)
    labels = fit_predict(estimator, da.from_array(rings, chunks=chunks), client=client, checkpoint=tmp_path)
    np.testing.assert_array_equal(labels, expected.labels_)
    assert abs(estimator.coefficients_ - expected.coefficients_).max() == 0
    np.testing.assert_array_equal(estimator.predict(rings[:50] + 0.01), expected.predict(rings[:50] + 0.01))


# ---------------------------------------------------------------- sample, cluster, classify


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("scaling", [None, "unit", "max", "minmax", "standard"])
def test_scaling_over_chunks_is_that_in_memory(client, rings, scaling):
    expected, estimator = ektrr(SSSC, scaling=scaling).fit(rings), ektrr(SSSC, scaling=scaling)
    labels = fit_predict(estimator, da.from_array(rings, chunks=(777, 3)), client=client)
    np.testing.assert_array_equal(labels, expected.labels_)
    np.testing.assert_array_equal(estimator.landmark_indices_, expected.landmark_indices_)
    for name in ("exponent", "offset", "factor", "unit_rows"):
        np.testing.assert_array_equal(
            getattr(estimator._predictor.scaling, name), getattr(expected._predictor.scaling, name)
        )
    np.testing.assert_array_equal(estimator.predict(rings[:50] + 1), expected.predict(rings[:50] + 1))


@pytest.mark.usefixtures("small_tasks")
def test_another_classifier_labels_what_it_labels_in_memory(client, rings, tmp_path):
    parameters = {"classifier": make_pipeline(StandardScaler(), KNeighborsClassifier(1)), "n_nonzero": 3}
    chunks, labels = da.from_array(rings, chunks=(700, 4)), []
    for given in (parameters, {}):  # labels that one classifier left in the folder are not the other's
        labels.append(fit_predict(ektrr(**given), chunks, client=client, checkpoint=tmp_path))
        np.testing.assert_array_equal(labels[-1], ektrr(**given).fit_predict(rings))
    assert (labels[0] != labels[1]).any()


@pytest.mark.usefixtures("small_tasks")
def test_labels_of_chunks_are_kept(client, rings, tmp_path):
    first = fit_predict(ektrr(), da.from_array(rings, chunks=(700, 4)), client=client, checkpoint=tmp_path)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(files) > 3
    min(files).unlink()
    second = fit_predict(ektrr(), da.from_array(rings, chunks=(2000, 4)), client=client, checkpoint=tmp_path)
    np.testing.assert_array_equal(first, second)
    after = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert {path for path in files if after[path] != files[path]} == {min(files)}
    assert {path.suffix for path in files} == {".npy"}
    fit_predict(ektrr(random_state=1), da.from_array(rings, chunks=(2000, 4)), client=client, checkpoint=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2 * len(files)


# ---------------------------------------------------------------- where points come from


def test_kinds_of_input(client, rings, tmp_path):
    zarr = pytest.importorskip("zarr")
    pytest.importorskip("pyarrow")
    X = rings[:2000]
    expected = ektrr().fit_predict(X)
    frame = pd.DataFrame(X, columns=list("abcd"))
    keep = pd.DataFrame(np.vstack([X, X[:500] + 100]), columns=list("abcd"))
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "columns.npy", np.asfortranarray(X))
    frame.to_parquet(tmp_path / "X.parquet")
    stored = zarr.create_array(str(tmp_path / "X.zarr"), shape=X.shape, dtype=X.dtype, chunks=(300, 3))
    stored[:] = X
    filtered = dd.from_pandas(keep, npartitions=5)
    filtered = filtered[filtered.a < 50]  # sizes of its partitions are unknown, the last is empty
    sources = {
        "array": X,
        "zarr": stored,
        "frame": filtered,
        "unknown chunks": filtered.to_dask_array(),
        **{name: tmp_path / name for name in ("X.npy", "columns.npy", "X.parquet")},
    }
    for name, source in sources.items():
        np.testing.assert_array_equal(fit_predict(ektrr(), source, client=client), expected, err_msg=name)
        if name not in ("frame", "unknown chunks"):
            np.testing.assert_array_equal(fit_predict(ektrr(), source, client="here"), expected, err_msg=name)
    with pytest.raises(TypeError, match='of Dask, whose tasks need a client: client="here" computes without'):
        fit_predict(ektrr(), filtered, client="here")
    with pytest.raises(ValueError, match='client must be a Dask client, None or "here"'):
        fit_predict(ektrr(), X, client="tcp://127.0.0.1:1")
    estimator = ektrr()
    fit_predict(estimator, filtered, client=client)
    assert list(estimator.feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(estimator.predict(frame), ektrr().fit(frame).predict(frame))
    labels = fit_predict(ktrr(), filtered, client=client, checkpoint=tmp_path / "checkpoint")
    np.testing.assert_array_equal(labels, ktrr().fit_predict(X))


def test_folders_of_files(rings, tmp_path):
    pytest.importorskip("pyarrow")
    folder, frame = tmp_path / "points", pd.DataFrame(rings[:2000].astype(np.float64), columns=list("abcd"))
    (folder / "more").mkdir(parents=True)
    parts = {"a": frame[:700], "b": frame[700:701], "more/c": frame[701:]}
    for name, part in parts.items():
        part.to_parquet(folder / f"{name}.parquet", row_group_size=300)
    expected, estimator = ektrr().fit_predict(frame.to_numpy()), ektrr()
    np.testing.assert_array_equal(fit_predict(estimator, folder, client="here"), expected)
    assert list(estimator.feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(fit_predict(ktrr(), folder, client="here"), ktrr().fit_predict(frame.to_numpy()))
    other = frame.rename(columns={"a": "z"})
    other.to_parquet(folder / "z.parquet")
    with pytest.raises(FileError, match="columns"):
        fit_predict(ektrr(), folder, client="here")


@pytest.mark.parametrize("make", [ktrr, ektrr])
def test_labels_left_in_a_file(rings, tmp_path, make, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(_sharded, "IN_MEMORY", 500)
    expected = fit_predict(make(), rings, client="here")
    for _ in range(2):  # the second time in place of the first
        estimator = make()
        labels = fit_predict(estimator, rings, client="here", output=tmp_path / "labels.npy")
        assert isinstance(labels.base, np.memmap) or isinstance(labels, np.memmap)
        np.testing.assert_array_equal(labels, expected)
    assert fit_predict(make(), rings, client="here", output=tmp_path / "labels.parquet") is None
    np.testing.assert_array_equal(pd.read_parquet(tmp_path / "labels.parquet")["cluster"], expected)
    np.testing.assert_array_equal(estimator.predict(rings[:50]), expected[:50])
    assert not list(tmp_path.glob(".*"))
    with pytest.raises(ValueError, match=r"output=.* must end in one of \.npy"):
        fit_predict(make(), rings, client="here", output=tmp_path / "labels.csv")


def test_what_cannot_be_used_is_named(client, tmp_path):
    X = np.ones((30, 2))
    X[12, 1] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity in its rows"):
        fit_predict(ektrr(), da.from_array(X, chunks=(10, 2)), client=client)
    with pytest.raises(ValueError, match="NaN"):
        fit_predict(ktrr(), da.from_array(X, chunks=(10, 2)), client=client)
    with pytest.raises(ValueError, match="two dimensions"):
        fit_predict(ektrr(), da.ones(10), client=client)
    with pytest.raises(ValueError, match=r"at least 2 samples .* \(1, 2\)"):
        fit_predict(ktrr(), da.ones((1, 2)), client=client)
    with pytest.raises(ValueError, match="n_clusters=3"):
        fit_predict(ektrr(), da.ones((2, 2)), client=client)
    frame = dd.from_pandas(pd.DataFrame({"x": [1.0, 2.0], "name": ["a", "b"]}), npartitions=1)
    with pytest.raises(ValueError, match=r"not numbers: \['name'\]"):
        fit_predict(ektrr(), frame, client=client)
    with pytest.raises(ValueError, match=r"must end in one of .*\.parquet"):
        fit_predict(ektrr(), "points.txt", client=client)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        fit_predict(ektrr(), tmp_path / "no.npy", client=client)
    with pytest.raises(TypeError, match="got TRR"):
        fit_predict(TRR(3), da.ones((20, 2)), client=client)
    blind = SimpleNamespace(run=lambda *_: {"tcp://far:1": False}, as_current=client.as_current)
    with pytest.raises(ValueError, match="not visible to 1 of the workers"):
        fit_predict(ektrr(), da.ones((20, 2)), client=blind, checkpoint=tmp_path)


def test_connect(client, rings):
    assert len({os.getpid(), *client.run(os.getpid).values()}) == 3
    with connect(client.scheduler.address) as other:
        assert len(other.scheduler_info()["workers"]) == 2
        labels = fit_predict(ektrr(), da.from_array(rings, chunks=(777, 1)))  # takes the client in use
    np.testing.assert_array_equal(labels, ektrr().fit_predict(rings))
    with pytest.raises(ValueError, match="n_workers=2 has no meaning"), connect("tcp://127.0.0.1:1", n_workers=2):
        pass
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "0.5s"}),
        pytest.raises(ConnectionError, match="no Dask scheduler answers"),
        connect("tcp://127.0.0.1:1"),
    ):
        pass
