"""What is checked before a fit: columns, values, how they are stored; and what is said of numbers that will not do."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from subspaces import KTRR, TRR, SubspaceClustering
from subspaces.engine import validation

FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), columns=["a", "b", "c"])
MODELS = [TRR(2), SubspaceClustering(2)]


def refusal(X, model=MODELS[0], call="fit"):
    with pytest.raises((ValueError, TypeError)) as caught:
        getattr(model, call)(X)
    return str(caught.value)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_columns_of_text_are_named_together(model):
    frame = FRAME.assign(sample=[f"S{i}" for i in range(20)], kind=pd.Categorical(["x", "y"] * 10))
    text = refusal(frame, model)
    assert "Input X holds text in the columns 'sample', 'kind'" in text
    assert "use X.drop(columns=['sample', 'kind'])" in text
    model.fit(frame.drop(columns=["sample", "kind"]))
    text = refusal(pl.DataFrame(FRAME).with_columns(s=pl.lit("x")), model)
    assert "text in the column 's'" in text
    assert "X.drop(['s'])" in text


def test_only_the_first_columns_are_named():
    frame = FRAME.assign(**{f"t{i}": "x" for i in range(30)})
    assert "'t7' and 22 more, and TRR needs numbers" in refusal(frame)


def test_dates_are_in_columns_with_names():
    dated = FRAME.assign(day=pd.Timestamp("2024-05-03"))
    assert "dates or durations in the column 'day': numbers of what unit" in refusal(dated)
    assert "dates or durations: numbers" in refusal(np.array([["2024-05-03"]] * 5, dtype="datetime64[D]"))


# ------------------------------------------------------------------ values


@pytest.mark.parametrize(("bad", "word"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_the_first_value_that_is_none_is_named(bad, word, rng):
    X = rng.standard_normal((30_000, 6))
    X[20_001, 4] = X[20_001, 5] = X[25_000, 0] = bad
    for form in (np.asarray, sparse.csr_array, sparse.csr_matrix, sparse.coo_array):
        with pytest.raises(ValueError, match=rf"contains {word} \(the first is in row 20001, column 4\)"):
            validation.validated(KTRR(3), form(X), accept_sparse="csr")


def test_masked_values_are_refused_and_a_mask_that_hides_nothing_is_not(rng):
    X = np.ma.array(rng.standard_normal((9, 3)), mask=False)
    assert validation.validated(KTRR(3), X).shape == (9, 3)
    X[2, 1] = np.ma.masked
    with pytest.raises(ValueError, match="has masked entries"):
        validation.validated(KTRR(3), X)


def test_content_decides_how_samples_are_stored():
    """From 256 features on, of which less than a tenth is not zero."""
    for m, n_values, is_sparse in ((256, 25, True), (260, 26, False), (255, 25, False)):
        X = np.zeros((10, m))
        X[:, :n_values] = np.arange(1, n_values + 1)
        for form in (np.asarray, sparse.csr_array, sparse.csr_matrix):
            stored = validation.stored_by_content(form(X))
            assert isinstance(stored, sparse.csr_array if is_sparse else np.ndarray)
            assert_array_equal(stored.toarray() if is_sparse else stored, X)
    nothing = np.zeros((0, 300))
    assert validation.stored_by_content(nothing) is nothing


def test_equal_rows(rng):
    row = rng.standard_normal(300) * (rng.random(300) < 0.05)
    X = np.tile(row, (5, 1))
    for form in (np.asarray, sparse.csr_array, sparse.csr_matrix):
        assert validation.all_equal(form(X))
        for value in (np.abs(row).max() + 1, 0.0, -1e9):
            other = X.copy()
            other[-1, np.abs(row).argmax()] = value
            assert not validation.all_equal(form(other))
        assert not validation.all_equal(form(X), pairwise=True)
    assert validation.all_equal(np.full((4, 4), 1e308), pairwise=True)


def test_numbers_that_will_not_end_well_are_said(rng):
    for change, scaling, words in (
        (lambda X: X, None, None),
        (lambda X: X * [1e9, 1, 1], None, "ranges of the features differ by a factor of"),
        (lambda X: X * [1e9, 1, 1], "standard", None),
        (lambda X: X * [1e9, 1, 1], "minmax", None),
        (lambda X: X * [1e7, 1, 1], None, None),
        (lambda X: X * [1, 1, 0] + [0, 0, 1e-3], None, None),  # a constant has no range
        (lambda X: X + 2e7, None, "times as far from the origin as from each other"),
        (lambda X: X + 5e5, None, None),
        (lambda X: X + 2e7, "standard", None),
        (lambda X: np.vstack([X, [[3e8, 3e8, 3e8]]]), None, "times that of a typical point"),
        (lambda X: np.vstack([X, [[-3e8, -3e8, -3e8]]]), "minmax", "times that of a typical point"),
        (lambda X: np.vstack([X, [[3e8, 3e8, 3e8]]]), "unit", None),
        (lambda X: np.vstack([X, [[1e5, 1e5, 1e5]]]), None, None),
    ):
        X = change(rng.uniform(1, 9, (400, 3)))
        for form in (np.asarray, sparse.csr_array):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                validation.warn_of_bad_numbers(form(X), scaling)
            assert [words in str(one.message) for one in said] == ([] if words is None else [True])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_new_samples_far_out_keep_their_direction(form, dtype):
    new = np.array([[3.0, -4.0], [-6e8, 8e8], [0, 0], [2e6, 0]], dtype=dtype)
    with pytest.warns(UserWarning, match="1 point exceeds every training point more than a million times"):
        near = validation.within_reach(form(new), 5.0)
    near = near.toarray() if sparse.issparse(near) else near
    assert near.dtype == dtype
    assert_allclose(near, [[3, -4], [-3.75e6, 5e6], [0, 0], [2e6, 0]], rtol=1e-6)
    with pytest.warns(UserWarning, match="2 points exceed"):
        validation.within_reach(form(new), 1.0)
    assert validation.within_reach(new, 0.0) is new
    assert validation.within_reach(new, 1e9) is new


def test_as_many_clusters_as_samples_are_not_too_many():
    validation.check_count(5, 5)
    validation.check_count(None, 1)
    with pytest.raises(ValueError, match="n_clusters=6 must not exceed"):
        validation.check_count(6, 5)
