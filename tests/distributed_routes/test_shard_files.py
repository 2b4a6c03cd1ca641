"""What is read as points: folders of files of several hands, files written again, arrays of other kinds."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from subspaces import KTRR
from subspaces.app.files import FileError
from subspaces.distributed import fit_predict
from subspaces.distributed._input import as_source, opened
from subspaces.distributed._tasks import ThisProcess


def read(X) -> np.ndarray:
    return as_source(X, ThisProcess()).whole(ThisProcess())


@pytest.fixture
def frame(rng) -> pd.DataFrame:
    return pd.DataFrame(rng.integers(-99, 99, size=(60, 3)).astype(np.float32), columns=["b", "a", "größe c"])


@pytest.fixture
def folder(frame, tmp_path):
    """The frame in three Parquet files."""
    pytest.importorskip("pyarrow")
    place = tmp_path / "points"
    place.mkdir()
    for number in range(3):
        frame[20 * number : 20 * (number + 1)].to_parquet(place / f"p{number}.parquet")
    return place


@pytest.mark.parametrize("kind", ["parquet", "csv", "npy"])
def test_a_file_changed_during_a_run_is_refused(frame, tmp_path, kind):
    """Two passes over two versions would sort one and name it by the other."""
    pytest.importorskip("pyarrow")
    file = tmp_path / f"p.{kind}"
    write = {"parquet": frame.to_parquet, "csv": frame.to_csv, "npy": lambda path: np.save(path, frame)}[kind]
    write(file)
    _, blocks = as_source(file if kind == "npy" else tmp_path, ThisProcess()).pieces(20)
    opened(blocks[0])
    write(file)
    os.utime(file, ns=(1, 1))
    with pytest.raises(FileError, match="changed while it was being read"):
        opened(blocks[1])


def test_files_that_are_no_part_of_the_table(frame, folder):
    """Hidden ones, Spark's of a job that failed, and folders that are called like files."""
    for name in ("_temporary/0/p9.parquet", ".trash/p9.parquet", "._p0.parquet", "_SUCCESS", ".p0.parquet.crc"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"no table")
    (folder / "p1.parquet").unlink()
    (folder / "p1.parquet").mkdir()
    frame[20:40].to_parquet(folder / "p1.parquet" / "part.parquet")
    np.testing.assert_array_equal(read(folder), frame)


def test_columns_go_by_their_names(frame, folder):
    """Whatever their order and type of number in each file; files without rows may have any type."""
    empty = pd.DataFrame({name: [] for name in frame}, dtype=object)
    empty.to_parquet(folder / "a.parquet")
    np.testing.assert_array_equal(read(folder), frame)
    assert read(folder).dtype == np.float32
    frame[20:40].astype(int)[frame.columns[::-1]].to_parquet(folder / "p1.parquet")
    frame[40:].astype(np.float64).to_parquet(folder / "p2.parquet")
    np.testing.assert_array_equal(read(folder), frame)
    assert read(folder).dtype == np.float64
    frame[40:].rename(columns={"a": "x"}).to_parquet(folder / "p2.parquet")
    with pytest.raises(FileError, match=r"p2.parquet: .* not those of p0.parquet: \['a'\] missing, \['x'\] more"):
        read(folder)


def test_numbered_files_are_said_to_be_read_by_name(frame, folder):
    """Dask writes part.10 after part.2 and reads it so; pandas does not, and labels of either look alike."""
    for number, name in enumerate(("part.1", "part.2", "part.10")):
        (folder / f"p{number}.parquet").rename(folder / f"{name}.parquet")
    with pytest.warns(UserWarning, match=r"part\.10\.parquet before part\.2\.parquet"):
        found = read(folder)
    np.testing.assert_array_equal(found, pd.read_parquet(folder))


def unfit(X) -> dict[str, object]:
    return {
        "masked": np.ma.masked_greater(X, 90),
        "type complex": X + 1j,
        "type datetime64": X.astype("M8[D]"),
        "type <U": X.astype(str),
        "sparse": sparse.csr_array(X),
        "not numbers: .'d'.": pd.DataFrame({"a": X[:, 0], "d": pd.Timestamp("2020-01-01")}),
        "NaN": pd.DataFrame({"a": X[:, 0], "b": pd.array([1, None] * 30, dtype="Int64")}),
    }


@pytest.mark.parametrize("problem", list(unfit(np.ones((60, 3)))))
def test_what_memory_refuses_is_refused(frame, problem):
    """No value behind a mask is used, no imaginary part dropped, no date made a number of days."""
    bad = unfit(frame.to_numpy())[problem]
    with pytest.raises((TypeError, ValueError), match=problem):
        fit_predict(KTRR(2), bad, client="here")


def test_the_same_on_workers(frame):
    distributed = pytest.importorskip("distributed")
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    X = frame.to_numpy()
    bad = {problem: value for problem, value in unfit(X).items() if problem != "sparse"}
    with distributed.Client(processes=False, n_workers=1, dashboard_address="127.0.0.1:0") as client:
        for problem, value in bad.items():
            is_frame = isinstance(value, pd.DataFrame)
            lazy = dd.from_pandas(value, npartitions=2) if is_frame else da.from_array(value, chunks=20)
            for given in (lazy, value):
                with pytest.raises((TypeError, ValueError), match=problem):
                    fit_predict(KTRR(2), given, client=client)
        estimator = KTRR(2)
        labels = fit_predict(estimator, frame, client=client)
        np.testing.assert_array_equal(labels, KTRR(2).fit_predict(X))
        assert list(estimator.feature_names_in_) == list(frame)


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_ids_are_left_out(frame, tmp_path, suffix):
    numbered = frame.assign(**{"Patient ID": np.random.default_rng(0).permutation(len(frame))})
    (tmp_path / "parts").mkdir()
    for i, part in enumerate((numbered[:30], numbered[30:])):
        path = tmp_path / "parts" / f"{i}{suffix}"
        part.to_parquet(path) if suffix == ".parquet" else part.to_csv(path, index=False)
    with pytest.warns(UserWarning, match=r"left out: Patient ID \(id by its name\)"):
        np.testing.assert_array_equal(read(str(tmp_path / "parts")), frame.to_numpy())


def test_links_out_of_the_folder_are_refused(frame, folder, tmp_path):
    outside = tmp_path / "secret.parquet"
    frame.to_parquet(outside)
    (folder / "z.parquet").symlink_to(outside)
    with pytest.raises(FileError, match="a link that leaves the folder; copy the file itself there"):
        read(str(folder))


def test_a_folder_of_two_kinds_is_refused(frame, folder):
    """Reading one of them would leave points out without a word."""
    frame.to_csv(folder / "p0.csv", index=False)
    with pytest.raises(FileError, match="both may be the points; move one kind elsewhere"):
        read(folder)
