"""Readers: every format comes back, and the right array and columns are taken."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.io

from io_data import CLASSES, NAMES, POINTS, refusal, write
from subspaces.app.files import read_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


# ------------------------------------------------------------------ formats


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".CSV", ".csv.gz", ".tsv.gz", ".parquet"])
def test_tables_come_back(tmp_path, suffix):
    X, y, ids = POINTS, CLASSES, NAMES
    frame = pd.DataFrame(X, columns=["a", "b", "c [red]", "x.1"]).assign(species=y, name=ids)
    path = tmp_path / f"table{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if "tsv" in suffix.lower() else ",")
    data = read_table(path, label="species", id="name", ignore=["b"])
    np.testing.assert_array_equal(data.X, X[:, [0, 2, 3]])
    assert [data.classes[code] for code in data.y] == y.tolist()
    assert data.ids == ids
    assert data.feature_names == ["a", "c [red]", "x.1"]
    assert data.source == path
    assert data.notes == ()


@pytest.mark.parametrize("save", ["npz", "compressed", "mat5", "packed mat5"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8", "int16"])
def test_named_arrays_come_back(tmp_path, save, dtype):
    X = np.asarray(np.abs(POINTS) * 20).astype(dtype)
    y, number = np.repeat([3, 1, 2], 4), np.arange(100, 112)
    arrays = {"X": X, "y": y, "number": number}
    path = tmp_path / ("a.npz" if save in ("npz", "compressed") else "a.mat")
    match save:
        case "npz":
            np.savez(path, **arrays)
        case "compressed":
            np.savez_compressed(path, **arrays)
        case _:
            scipy.io.savemat(path, {**arrays, "y": y[:, None]}, do_compression=save == "packed mat5")
    data = read_table(path, label="y", id="number")
    np.testing.assert_array_equal(data.X, X)
    assert data.X.dtype == dtype
    assert [int(data.classes[code]) for code in data.y] == y.tolist()
    assert data.ids == number.tolist()


@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8", "bool"])
def test_npy_comes_back(tmp_path, dtype):
    X = POINTS.astype(dtype)
    np.save(tmp_path / "x.npy", X)
    data = read_table(tmp_path / "x.npy")
    np.testing.assert_array_equal(data.X, X)
    assert data.X.dtype == dtype


def test_images_are_flattened(tmp_path):
    images = np.arange(5 * 8 * 9).reshape(5, 8, 9)
    np.save(tmp_path / "x.npy", images)
    np.savez(tmp_path / "x.npz", images=images, y=np.arange(5))
    scipy.io.savemat(tmp_path / "x.mat", {"images": images})
    for suffix in (".npy", ".npz", ".mat"):
        data = read_table(tmp_path / f"x{suffix}")
        np.testing.assert_array_equal(data.X, images.reshape(5, 72))
        assert "5 points of 8 x 9 values each" in data.notes[0]
        assert data.image_shape == (8, 9)
    for shape, known in (((5, 8, 9, 3), (8, 9, 3)), ((5, 8, 3, 3), None), ((5, 8), None)):
        np.save(tmp_path / "x.npy", np.zeros(shape))
        assert read_table(tmp_path / "x.npy").image_shape == known


def test_float32_parquet_stays_float32_and_index_is_no_feature(tmp_path):
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [4, 5, 6]}, dtype="float32", index=["p", "q", "r"])
    frame.to_parquet(tmp_path / "x.parquet")
    data = read_table(tmp_path / "x.parquet")
    assert data.X.dtype == np.float32
    assert data.feature_names == ["a", "b"]
    assert data.ids == ["p", "q", "r"]
    assert "row names" in data.notes[0]


def test_parquet_takes_integers_booleans_and_decimals_in_several_groups(tmp_path):
    from decimal import Decimal

    table = pa.table({"i": [1, 2, 3], "b": [True, False, True], "d": [Decimal("1.5"), Decimal("2.5"), Decimal("3.5")]})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=2)
    expected = [[1, 1, 1.5], [2, 0, 2.5], [3, 1, 3.5]]
    np.testing.assert_array_equal(read_table(tmp_path / "x.parquet").X, expected)


# ------------------------------------------------------------------ which array, which column


def test_labels_are_never_used_unasked(tmp_path):
    X, y = POINTS, CLASSES
    np.savez(tmp_path / "x.npz", X=X, y=y)
    data = read_table(tmp_path / "x.npz")
    assert data.y is None
    assert data.notes == ("the file also holds 'y', one value per point: label=\"y\" scores it",)
    pd.DataFrame(X).assign(label=0).to_csv(tmp_path / "x.csv", index=False)
    data = read_table(tmp_path / "x.csv")
    assert data.X.shape == (12, 5)
    assert 'label="label"' in data.notes[0]


def test_array_is_chosen_or_asked_for(tmp_path):
    X = POINTS
    path = tmp_path / "x.npz"
    np.savez(path, points=X, other=np.arange(12), n=3)
    np.testing.assert_array_equal(read_table(path).X, X)
    np.savez(path, fea=X, extra=X + 1, gnd=np.arange(12))
    np.testing.assert_array_equal(read_table(path).X, X)
    np.savez(path, A=X, B=X + 1)
    text = refusal(path)
    assert "by array; the file holds" in text
    assert "'A' (12 x 4); 'B' (12 x 4)" in text
    np.testing.assert_array_equal(read_table(path, array="B").X, X + 1)
    assert "it holds 'A' (12 x 4)" in refusal(path, array="C")
    np.savez(path, A=X, v=np.arange(12), text=np.array(["a"] * 12))
    assert "1 dimension;" in refusal(path, array="v")
    assert "not an array of numbers" in refusal(path, array="text")


def test_companions_must_fit(tmp_path):
    X = POINTS
    scipy.io.savemat(tmp_path / "x.mat", {"fea": X.T, "gnd": np.arange(12)[:, None], "name": "hello"})
    assert "transposed" in refusal(tmp_path / "x.mat", label="gnd")
    assert "is not in the file" in refusal(tmp_path / "x.mat", label="y")
    assert "class char" in refusal(tmp_path / "x.mat", id="name")


def test_columns_must_exist(tmp_path):
    path = write(tmp_path / "x.csv", "length,width,width\n1,2,3\n")
    assert "the columns are 'length', 'width', 'width'; did you mean 'length'?" in refusal(path, label="lenght")
    assert "2 columns are called 'width'" in refusal(path, ignore=["width"])
    path = write(tmp_path / "y.csv", "a,b\n1,2\n")
    assert "no column is left" in refusal(path, label="a", ignore=["b"])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("x.npy", {"label": "y"}),
        ("x.npy", {"id": "y"}),
        ("x.npy", {"array": "X"}),
        ("x.csv", {"array": "X"}),
        ("x.npz", {"ignore": ["X"]}),
        ("x.parquet", {"header": False}),
    ],
)
def test_options_without_meaning_are_refused(tmp_path, name, options):
    (tmp_path / name).touch()
    assert f": {next(iter(options))} has no meaning" in refusal(tmp_path / name, **options)
