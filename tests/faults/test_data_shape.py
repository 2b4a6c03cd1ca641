"""Cases 1 to 7, 23 and 28: what is not there, not finite or not of the right shape."""

from __future__ import annotations

import numpy as np
import pytest
from fault_data import fit, planes, said
from scipy import sparse

from method_data import ALL, GRAPH, quiet
from subspaces import KTRR


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_case_1_2_not_finite(cls, value, word, seed):
    """1, 2: ValueError that names what is wrong and the row and column of the first one; nothing is fitted."""
    X, _ = planes(seed)
    X[7, 2], X[9, 0] = value, np.nan
    model = cls(n_clusters=3)
    with pytest.raises(ValueError, match=rf"{word} \(the first is in row 7, column 2\)"):
        model.fit(X)
    assert not hasattr(model, "labels_")
    with quiet():
        model.fit(np.delete(X, [7, 9], axis=0))
    with pytest.raises(ValueError, match="row 7, column 2"):
        model.predict(X)


def test_case_1_not_finite_in_sparse_or_mixed_input(seed):
    """1: the same for sparse points and for lists; a sum that overflows is no NaN."""
    X, _ = planes(seed)
    X[7, 2] = np.nan
    for container in (sparse.csc_array(X), sparse.coo_matrix(X), X.tolist(), X.astype(object)):
        with pytest.raises(ValueError, match="row 7, column 2"):
            KTRR(3).fit(container)
    X[:] = np.where(np.random.default_rng(seed).random(X.shape) < 0.5, 1.7e308, -1.7e308)
    fit(KTRR, X)


@pytest.mark.parametrize("cls", ALL)
def test_case_5_fewer_points_than_clusters(cls, seed):
    """5: ValueError with both numbers."""
    with pytest.raises(ValueError, match=r"n_clusters=7 must not exceed .* n_samples=6"):
        cls(n_clusters=7).fit(planes(seed)[0][:6])


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("n", [2, 3, 9])
def test_case_6_as_many_clusters_as_points(cls, n, seed):
    """6: every point alone, without noise; also where the graph of so few points has no edge."""
    X = planes(seed)[0][:: 42 // n][:n]
    model = fit(cls, X, n)
    if hasattr(model, "affinity_matrix_"):
        assert sorted(model.labels_) == list(range(n))
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        _, texts = said(lambda: cls(n_clusters=n).fit(X))
        assert not [text for text in texts if "clusters" in text]


@pytest.mark.parametrize("cls", GRAPH)
def test_case_7_one_cluster(cls, seed, monkeypatch):
    """7: all zeros, without an eigensolver, for any points: orthogonal ones have not one edge."""
    from subspaces.engine import stages

    monkeypatch.setattr(stages, "spectral_embedding", None)
    for X in (planes(seed)[0], np.eye(6), np.ones((2, 1)) * [[1], [2]]):
        model = fit(cls, X, 1)
        assert not model.labels_.any()
        assert not model.predict(X[:2] * 0.9).any()
        assert np.isfinite(model.transform(X[:2])).all()


@pytest.mark.parametrize("cls", ALL)
def test_case_23_wide_narrow_and_square(cls, seed):
    """23: more features than points, one feature, as many as points: all work, and square is not precomputed."""
    X, y = planes(seed)
    wide = np.tile(X, (1, 20))
    assert fit(cls, wide).n_clusters_ >= 2
    narrow = fit(cls, X[:, :1])
    assert narrow.predict([[0.3], [-5.0]]).shape == (2,)
    fit(cls, np.arange(20)[:, None])
    square = np.random.default_rng(seed).standard_normal((12, 12)) @ np.diag([9.0] * 3 + [0.1] * 9)
    with quiet():
        try:
            model = cls(n_clusters=3).fit(square)
        except ValueError as error:  # the methods with a fixed threshold keep no coefficient
            assert "no edge" in str(error)  # noqa: PT017
        else:
            assert getattr(model._predictor, "X", square) is not None
    assert len(y) == 42


@pytest.mark.parametrize("cls", ALL)
def test_case_28_labels_given_to_fit_are_ignored(cls, seed):
    """28: whatever y is."""
    X, y = planes(seed)
    with quiet():
        expected = cls(n_clusters=3).fit(X).labels_
        np.testing.assert_array_equal(cls(n_clusters=3).fit(X, "nonsense").labels_, expected)
        np.testing.assert_array_equal(cls(n_clusters=3).fit_predict(X, y[:5]), expected)
