"""The residual classifier equals its definition in both of its forms."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks

from subspaces.landmarks import collaborative
from subspaces.landmarks.collaborative import CollaborativeClassifier

SHAPES = [(12, 30, 3), (40, 7, 3), (9, 9, 3), (200, 5, 5)]  # training samples, features, classes


def naive_residuals(A, labels, Y, reg):
    """Point by point and class by class, as in the papers."""
    out = []
    for y in Y:
        a = np.linalg.solve(A @ A.T + reg * np.eye(len(A)), A @ y)
        row = []
        for c in np.unique(labels):
            member = labels == c
            row.append(((y - a[member] @ A[member]) ** 2).sum())
        out.append(row)
    return np.array(out)


def problem(rng, p, m, n_classes):
    A, Y = rng.standard_normal((p, m)), rng.standard_normal((50, m))
    labels = np.r_[np.arange(n_classes), rng.integers(0, n_classes, p - n_classes)]
    return A, labels, Y


@parametrize_with_checks([CollaborativeClassifier()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("reg", [1e-3, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_is_the_definition(shape, reg, rng, monkeypatch):
    monkeypatch.setattr(collaborative, "_BLOCK_BYTES", 1000)  # several blocks
    A, labels, Y = problem(rng, *shape)
    expected = naive_residuals(A, labels, Y, reg)
    model = CollaborativeClassifier(reg).fit(A, labels)
    assert_allclose(model.residuals(Y), expected, rtol=1e-8)
    assert_array_equal(model.predict(Y), expected.argmin(axis=1))


def test_is_the_definition_at_the_authors_kappa(rng):
    """Their p × p system is singular to 1e-6 there: compare with its solution in the m × m form."""
    A, labels, Y = problem(rng, 60, 6, 3)
    P = A @ np.linalg.inv(A.T @ A + 1e-6 * np.eye(6))
    a = Y @ P.T
    expected = np.column_stack([((Y - a[:, labels == c] @ A[labels == c]) ** 2).sum(axis=1) for c in range(3)])
    assert_allclose(CollaborativeClassifier().fit(A, labels).residuals(Y), expected, rtol=1e-8)


def test_float32_is_computed_in_float64(rng):
    A, labels, Y = problem(rng, 60, 20, 3)
    A, Y = A.astype(np.float32), Y.astype(np.float32)
    single = CollaborativeClassifier().fit(A, labels).residuals(Y)
    double = CollaborativeClassifier().fit(A.astype(np.float64), labels).residuals(Y.astype(np.float64))
    assert_allclose(single, double, rtol=1e-10)


def test_rank_deficient_points(rng):
    """Equal points and points in a plane: finite residuals, and the plane's points have none."""
    A = np.vstack(
        [np.repeat(rng.standard_normal((1, 5)), 4, axis=0), rng.standard_normal((6, 2)) @ rng.standard_normal((2, 5))]
    )
    labels = np.r_[np.zeros(4), np.ones(6)]
    residuals = CollaborativeClassifier(1e-8).fit(A, labels).residuals(A)
    assert np.isfinite(residuals).all()
    assert_array_equal(residuals.argmin(axis=1), labels)
