"""Cases 18 to 22: types, formats and containers of the input."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from fault_data import ENTRYWISE, blobs, fit, planes
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from method_data import ALL, GRAPH, LARGE, quiet
from subspaces import KTRR, TRR

FORMATS = (
    "csr_array",
    "csc_array",
    "coo_array",
    "lil_array",
    "dok_array",
    "bsr_array",
    "dia_array",
    "csr_matrix",
    "coo_matrix",
)


def whole_numbers(cls, seed):
    """Heaps, or planes where a method needs subspaces, rounded so that eight bits hold them."""
    if cls.__name__ in ("SSC", "SSCOMP", "SSSC", "LSA"):
        X, y = planes(seed, noise=0)
        return np.rint(100 * X), y
    X, y = blobs(seed)
    return np.rint(8 * X), y


@pytest.mark.parametrize("cls", ALL)
def test_case_18_number_types(cls, seed):
    """18: whatever type numbers are stored in, the labels are those of float64."""
    X, _ = whole_numbers(cls, seed)
    expected = fit(cls, X).labels_
    for dtype in (np.float32, np.float16, np.int8, np.int64, np.longdouble, ">f8", ">i4", object):
        model = fit(cls, X.astype(dtype))
        assert adjusted_rand_score(expected, model.labels_) == 1, dtype
        if hasattr(model, "affinity_matrix_"):
            assert model.affinity_matrix_.dtype == model.transform(X[:2].astype(dtype)).dtype == np.float64
    fit(cls, np.abs(X).astype(np.uint8))
    if cls not in ENTRYWISE:
        fit(cls, X > 0)


def test_case_19_masked_values_are_missing_values(seed):
    """19: the numbers behind a mask are not used."""
    X, y = blobs(seed)
    with pytest.raises(ValueError, match="masked"):
        KTRR(3).fit(np.ma.masked_array(X, mask=X > 9))
    assert adjusted_rand_score(y, fit(KTRR, np.ma.masked_array(X)).labels_) == 1


TIMES = {
    "date": [datetime.date(2026, 1, day) for day in range(1, 7)],
    "datetime": [datetime.datetime(2026, 1, day, 12) for day in range(1, 7)],
    "duration": [datetime.timedelta(days=day) for day in range(1, 7)],
    "time": [datetime.time(hour) for hour in range(1, 7)],
}


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("kind", TIMES)
def test_case_19_dates_in_any_frame(cls, kind):
    """19: also in one column of a polars frame, a pyarrow table or a pandas frame backed by pyarrow."""
    columns = {"size": np.arange(6.0), "when": TIMES[kind]}
    table = pa.table(columns)
    frames = [pl.DataFrame(columns), table, table.to_batches()[0], table.to_pandas(types_mapper=pd.ArrowDtype)]
    for frame in frames:
        model = cls(n_clusters=2)
        with pytest.raises(TypeError, match="dates or durations"):
            model.fit(frame)
        assert not hasattr(model, "labels_")


@pytest.mark.parametrize("cls", ALL)
def test_case_1_missing_values_of_pandas(cls):
    """1: their place is named, whatever stands for them."""
    frame = pd.DataFrame({"a": np.arange(6.0), "b": [1.0, 2.0, None, 4.0, None, 6.0]})
    for bad in (
        frame,
        frame.astype("Float64"),
        frame.convert_dtypes(),
        frame.astype("double[pyarrow]"),
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame),
    ):
        with pytest.raises(ValueError, match=r"NaN \(the first is in row 2, column 'b'\)"):
            cls(n_clusters=2).fit(bad)


@pytest.mark.parametrize("cls", GRAPH)
def test_case_20_sparse_formats(cls, seed):
    """20: every sparse format, 64-bit indices, unsorted and repeated entries give the labels of the dense points."""
    X, _ = whole_numbers(cls, seed)
    expected = fit(cls, X).labels_
    csr = sparse.csr_array(X)
    wide = sparse.csr_array((csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64)), shape=csr.shape)
    coo = sparse.coo_array(X)
    twice = sparse.coo_array(
        (np.r_[coo.data / 2, coo.data / 2], (np.r_[coo.row, coo.row], np.r_[coo.col, coo.col])), shape=coo.shape
    )
    stored_zeros = sparse.csr_array((np.r_[csr.data, 0.0], np.r_[csr.indices, 1], np.r_[csr.indptr[:-1], csr.nnz + 1]))
    for container in [*(getattr(sparse, name)(X) for name in FORMATS), wide, twice, stored_zeros]:
        assert adjusted_rand_score(expected, fit(cls, container).labels_) == 1
    fit(cls, sparse.csr_array(X.astype(np.int32)))
    if cls not in ENTRYWISE:
        fit(cls, sparse.csr_array(X > 0))


@pytest.mark.parametrize("cls", LARGE)
def test_case_20_sparse_points_are_refused_with_the_way_out(cls, seed):
    """20: the methods for many points need dense ones and say so."""
    with pytest.raises(TypeError, match="toarray"):
        cls(n_clusters=3).fit(sparse.csr_array(blobs(seed)[0]))


def test_case_20_sparse_kernel_matrix(seed):
    """20: a precomputed kernel may be sparse as well."""
    X, y = blobs(seed)
    K = np.where(X @ X.T > 50, X @ X.T, 0)
    assert adjusted_rand_score(y, fit(KTRR, sparse.csc_array(K), kernel="precomputed").labels_) == 1


@pytest.mark.parametrize("cls", ALL)
def test_case_21_memory_layouts(cls, seed, tmp_path):
    """21: Fortran order, strides, read-only arrays and memory maps: the same labels, and not one bit is written."""
    X, _ = blobs(seed)
    expected = fit(cls, X).labels_
    read_only = X.copy()
    read_only.flags.writeable = False
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for container in (
        np.asfortranarray(X),
        np.repeat(np.repeat(X, 2, 0), 3, 1)[::2, ::3],
        read_only,
        mapped,
        X.tolist(),
    ):
        model = fit(cls, container)
        assert adjusted_rand_score(expected, model.labels_) == 1
        with quiet():
            model.predict(container)
    np.testing.assert_array_equal(fit(cls, X[::-1, ::-1][::-1, ::-1]).labels_, expected)
    before = X.copy()
    with quiet():
        model = cls(n_clusters=3).fit(X)
        model.predict(X)
        if hasattr(model, "transform"):
            model.transform(X)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(mapped, before)


@pytest.mark.parametrize("cls", ALL)
def test_case_22_frames(cls, seed):
    """22: pandas, polars and pyarrow tables; names are kept and checked as in scikit-learn."""
    X, _ = blobs(seed)
    names = ["a", "b", "c", "d"]
    expected = fit(cls, X).labels_
    frame = pd.DataFrame(X, columns=names)
    for container in (frame, pl.DataFrame(X, schema=names), pa.table(dict(zip(names, X.T, strict=True)))):
        model = fit(cls, container)
        assert adjusted_rand_score(expected, model.labels_) == 1
        assert isinstance(container, pa.Table) or list(model.feature_names_in_) == names
    model = fit(cls, frame)
    with quiet(), pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c", "d"]])
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(X)
    mixed = frame.assign(a=frame["a"].astype(np.float32), b=frame["b"].round().astype(int), c=frame["c"] > 5)
    fit(cls, mixed)
    missing = frame.astype({"a": "Float64"})
    missing.loc[3, "a"] = pd.NA
    with pytest.raises(ValueError, match="NaN"):
        cls(n_clusters=3).fit(missing)


def test_polars_and_pandas_output(seed):
    """22: set_output works on the embedding."""
    X, _ = blobs(seed)
    with quiet():
        assert isinstance(TRR(3).set_output(transform="pandas").fit(X).transform(X), pd.DataFrame)
        assert isinstance(TRR(3).set_output(transform="polars").fit(X).transform(X), pl.DataFrame)
