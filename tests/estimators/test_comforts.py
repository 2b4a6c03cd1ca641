"""Explanations, and searches of settings without known classes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from subspaces import KASP, KTRR
from subspaces.datasets import make_subspaces

UNREPRESENTED = ("sc", "lsa", "tsc")


@pytest.fixture(scope="module")
def data():
    return make_subspaces(3, 2, 9, 30, noise=0.01, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return KTRR(3, kernel="quadratic", reg=0.01).fit(data[0])


# ---------------------------------------------------------------- explain


def test_explanation_is_the_column(model):
    C = model.coefficients_.toarray()
    for i in (0, 17, 89):
        found = model.explain(i)
        kept = np.flatnonzero(C[:, i])
        assert set(found.points.tolist()) == set(kept.tolist())
        np.testing.assert_array_equal(found.coefficients, C[found.points, i])
        assert (np.diff(np.abs(found.coefficients)) <= 0).all()
        np.testing.assert_array_equal(found.labels, model.labels_[found.points])
        own = kept[model.labels_[kept] == model.labels_[i]]
        np.testing.assert_allclose(found.own_share, np.abs(C[own, i]).sum() / np.abs(C[:, i]).sum())


def test_explanation_prints_as_a_table(model):
    text = str(model.explain(4, n=2))
    assert repr(model.explain(4, n=2)) == text
    assert "the 2 strongest shown" in text
    assert len(text.splitlines()) == 4
    rows = model.explain(4).as_rows()
    assert list(rows[0]) == ["point", "coefficient", "share", "label"]
    np.testing.assert_allclose(sum(row["share"] for row in rows), 1)


def test_explanation_is_of_the_coefficients_as_the_paper_writes_them(data):
    """Column i of C (eq. 3.9) where it was kept, with sign: x_i ≈ Σ c_ji x_j."""
    X, _ = data
    model = KTRR(3, kernel="linear", reg=0.01, n_nonzero=4, graph="column", solver="dense").fit(X)
    K = X @ X.T
    inverse = np.linalg.inv(K + model.penalty_ * np.eye(90))
    for i in (0, 17, 89):
        found = model.explain(i)
        exact = -inverse[:, i] / inverse[i, i]
        exact[i] = 0
        np.testing.assert_allclose(found.coefficients, exact[found.points], rtol=1e-6)
        assert set(found.points) == set(np.argsort(-abs(exact))[:4])
    assert (model.coefficients_.data < 0).any()


def test_what_cannot_be_explained(data, model):
    assert not hasattr(KASP(3, n_landmarks=40).fit(data[0]), "explain")
    with pytest.raises(ValueError, match=r"i must be .* from 0 to 89; got 90"):
        model.explain(90)
    with pytest.raises(ValueError, match="got -1"):
        model.explain(-1)
    with pytest.raises(ValueError, match="fitted"):
        KTRR(3).explain(0)
    alone = KTRR(3).fit(data[0])
    alone._coefficients = sparse.csc_array((90, 90))
    assert "no other point" in str(alone.explain(3))
