"""Sparse files: SciPy's archives, Matrix Market, 10x folders, AnnData; and such that lie."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import scipy.io
from scipy import sparse

from io_data import refusal
from subspaces.app.files import FileError, read_table

h5py = pytest.importorskip("h5py")


@pytest.fixture
def X():
    return sparse.random_array((30, 12), density=0.3, rng=np.random.default_rng(0), format="csr")


def same(found, X):
    assert isinstance(found, sparse.csr_array)
    assert found.shape == X.shape
    assert (found != sparse.csr_array(X)).nnz == 0


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_archives_of_scipy(tmp_path, X, kind, container):
    sparse.save_npz(tmp_path / "x.npz", container(X).asformat(kind))
    same(read_table(tmp_path / "x.npz").X, X)


def test_labels_may_lie_beside_the_matrix(tmp_path, X):
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape, "format": b"csr"}
    np.savez(tmp_path / "x.npz", **parts, y=np.arange(30) % 3, name=np.array([f"p{i}" for i in range(30)]))
    data = read_table(tmp_path / "x.npz", label="y", id="name")
    same(data.X, X)
    assert data.classes == ["0", "1", "2"]
    assert data.ids[:2] == ["p0", "p1"]
    assert "does not give one value for each of the 30" in refusal(tmp_path / "x.npz", label="indptr")
    assert "has no meaning" in refusal(tmp_path / "x.npz", array="data")


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("indices", lambda X: X.indices + 50, "do not fit together"),
        ("indices", lambda X: X.indices - 50, "do not fit together"),
        ("indices", lambda X: X.indices[:-1], "do not fit together"),
        ("indices", lambda X: X.indices.astype(float), "no whole numbers"),
        ("indptr", lambda X: X.indptr[::-1], "do not fit together"),
        ("indptr", lambda X: X.indptr[:-1], "do not fit together"),
        ("data", lambda X: X.data[:, None], "not a row of numbers"),
        ("data", lambda X: np.where(np.arange(X.nnz) == 3, np.nan, X.data), r"row \d+, column \d+ is missing"),
        ("data", lambda X: np.where(np.arange(X.nnz) == 3, np.inf, X.data), "is inf"),
        ("shape", lambda X: np.array([30, -12]), "impossible"),
        ("shape", lambda X: np.array([30, 12, 2]), "not a number of rows"),
        ("shape", lambda X: np.array([30, 10**15]), "rows and columns alone need"),
        ("format", lambda X: np.array(b"bsr"), "save X.tocsr"),
        ("format", lambda X: np.array([b"x" * 900] * 900), "needs"),
    ],
)
def test_archives_that_lie(tmp_path, X, part, value, words):
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape, "format": b"csr"}
    np.savez(tmp_path / "x.npz", **{**parts, part: value(X)})
    with pytest.raises(FileError, match=words):
        read_table(tmp_path / "x.npz")


def test_sizes_are_checked_first(tmp_path, X):
    sparse.save_npz(tmp_path / "x.npz", X)
    scipy.io.mmwrite(tmp_path / "x.mtx", X)
    (tmp_path / "many.mtx").write_text("%%MatrixMarket matrix coordinate real general\n10 10 900000000\n1 1 1\n")
    (tmp_path / "wide.mtx").write_text("%%MatrixMarket matrix coordinate real general\n10 900000000 1\n1 1 1\n")
    (tmp_path / "full.mtx").write_text("%%MatrixMarket matrix array real general\n90000 90000\n1\n")
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file.create_dataset("X", shape=(10**6, 10**6), chunks=(100, 100), dtype="f4")
    for path in sorted(tmp_path.iterdir()):
        assert "of memory may be used" in refusal(path, max_bytes=1000), path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
def test_matrix_market(tmp_path, X, packed, field):
    whole = X if field == "real" else sparse.csr_array(np.ceil(X.toarray()).astype(np.int64))
    path = tmp_path / "x.mtx"
    scipy.io.mmwrite(path, whole, field=field)
    if packed:
        path = tmp_path / "x.mtx.gz"
        path.write_bytes(gzip.compress((tmp_path / "x.mtx").read_bytes()))
    np.testing.assert_allclose(read_table(path).X.toarray(), whole.toarray())


def test_matrix_market_of_dense_and_symmetric(tmp_path, X):
    scipy.io.mmwrite(tmp_path / "dense.mtx", X.toarray())
    np.testing.assert_allclose(read_table(tmp_path / "dense.mtx").X, X.toarray())
    S = sparse.csr_array(X.T @ X)
    scipy.io.mmwrite(tmp_path / "symmetric.mtx", S, symmetry="symmetric")
    np.testing.assert_allclose(read_table(tmp_path / "symmetric.mtx").X.toarray(), S.toarray())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "damaged"),
        ("%%MatrixMarket matrix coordinate real general\n", "damaged"),
        ("%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 1\n", "damaged"),
        ("%%MatrixMarket matrix coordinate real general\n3 3 1\n7 1 1\n", "damaged"),
        ("%%MatrixMarket matrix coordinate real general\n3 3 1\n1 1 what\n", "damaged"),
        ("%%MatrixMarket matrix coordinate real general\n3 3 1\n1 1 nan\n", "missing"),
        ("%%MatrixMarket matrix coordinate complex general\n3 3 1\n1 1 1 1\n", "complex"),
        ("%%MatrixMarket matrix coordinate real general\n0 0 0\n", "nothing to cluster"),
        (
            "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 1 1" + "0" * 3_000_000,
            "a line of more than 1048576 bytes",
        ),
    ],
)
def test_damaged_matrix_market(tmp_path, text, words):
    (tmp_path / "x.mtx").write_text(text)
    assert words in refusal(tmp_path / "x.mtx")


def test_folder_of_cells(tmp_path, X):
    scipy.io.mmwrite(tmp_path / "matrix.mtx", sparse.csr_array(X.T))
    (tmp_path / "barcodes.tsv.gz").write_bytes(gzip.compress("".join(f"cell{i}\n" for i in range(30)).encode()))
    (tmp_path / "features.tsv").write_text("".join(f"ENS{i}\tgene{i}\tGene Expression\n" for i in range(12)))
    for path in (tmp_path, tmp_path / "matrix.mtx"):
        data = read_table(path)
        np.testing.assert_allclose(data.X.toarray(), X.toarray())
        assert data.ids[29] == "cell29"
        assert data.feature_names[11] == "gene11"
        assert "cells are the columns" in data.notes[0]
    assert "has no meaning" in refusal(tmp_path, label="folder")
    (tmp_path / "features.tsv").write_text("one\n")
    assert "1 lines and the matrix beside it 12" in refusal(tmp_path)


# ---------------------------------------------------------------- AnnData, as its version 0.8 and later write it


def write_h5ad(path, X, kind="csr_matrix", **obsm):
    with h5py.File(path, "w") as file:
        if kind == "array":
            file["X"] = X.toarray()
        else:
            group = file.create_group("X")
            group.attrs["encoding-type"], group.attrs["shape"] = kind, X.shape
            S = X if kind == "csr_matrix" else X.tocsc()
            group["data"], group["indices"], group["indptr"] = S.data, S.indices, S.indptr
        obs = file.create_group("obs")
        obs.attrs["_index"] = "cell"
        obs["cell"] = [f"c{i}" for i in range(X.shape[0])]
        kinds = obs.create_group("kind")
        kinds["categories"], kinds["codes"] = ["T", "B"], np.arange(X.shape[0], dtype=np.int8) % 2
        obs["depth"] = np.arange(X.shape[0]) // 10
        for name, values in obsm.items():
            file[f"obsm/{name}"] = values


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix", "array"])
def test_h5ad(tmp_path, X, kind):
    write_h5ad(tmp_path / "x.h5ad", X, kind)
    data = read_table(tmp_path / "x.h5ad", label="kind")
    found = data.X if kind == "array" else data.X.toarray()
    np.testing.assert_allclose(found, X.toarray())
    assert data.ids[:2] == ["c0", "c1"]
    assert data.classes == ["B", "T"]
    assert data.y[:3].tolist() == [1, 0, 1]
    assert read_table(tmp_path / "x.h5ad", label="depth").classes == ["0", "1", "2"]


def test_h5ad_components_come_first(tmp_path, X):
    write_h5ad(tmp_path / "x.h5ad", X, X_pca=np.ones((30, 5)))
    data = read_table(tmp_path / "x.h5ad")
    assert data.X.shape == (30, 5)
    assert "obsm/X_pca" in data.notes[0]
    same(read_table(tmp_path / "x.h5ad", array="X").X, X)
    assert "'X', 'obsm/X_pca'" in refusal(tmp_path / "x.h5ad", array="obsm/X_umap")
    assert "the columns are 'cell', 'depth', 'kind'" in refusal(tmp_path / "x.h5ad", label="type")


def test_h5ad_that_lies(tmp_path, X):
    path = tmp_path / "x.h5ad"

    def damaged(change):
        write_h5ad(path, X)
        with h5py.File(path, "a") as file:
            change(file)
        return refusal(path, label="kind")

    def replaced(name, value):
        def change(file):
            del file[name]
            file[name] = value

        return change

    assert "do not fit together" in damaged(replaced("X/indices", X.indices + 90))
    assert "without all of its parts" in damaged(lambda file: file["X"].pop("indptr"))
    assert "not an array of real numbers" in damaged(replaced("X/data", ["a"] * X.nnz))
    assert "missing" in damaged(replaced("obs/kind/codes", np.full(30, -1, dtype=np.int8)))
    assert "damaged" in damaged(replaced("obs/kind/codes", np.full(30, 7)))
    assert "'X' is not in the file" in damaged(replaced("X", h5py.ExternalLink("other.h5", "X")))
    assert "no value for each of 30 cells" in damaged(replaced("obs/kind/codes", np.zeros(3, dtype=np.int8)))
    path.write_bytes(path.read_bytes()[:700])
    assert "damaged, cut short" in refusal(path)
