"""Cases 9 to 17 and 24 to 27: equal points, extreme numbers, awkward geometry."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from fault_data import ENTRYWISE, TRANSLATION_INVARIANT, blobs, fit, planes, said
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from method_data import ALL, GRAPH, LARGE, METHODS, quiet
from subspaces import KTRR, SC, TRR
from subspaces.engine.landmark_run import run_landmarks
from subspaces.utils.ordering import label_of_most_copies

SCALES = (1e150, 1e200, 1e-150, 1e-300, 1e-318)
DISTANCES = [METHODS[name] for name in ("akk", "nystrom", "sec", "sc", "lsc", "uspec")]
SENSITIVE = [METHODS[name] for name in ("sscomp", "lsa", "sc", "ssc", "sssc", "sec")]  # heaps are no subspaces to these


@cache
def reference(cls, seed):
    """Labels of the heaps as they are."""
    return fit(cls, blobs(seed)[0]).labels_


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("value", [0.0, 1.0, 1e300, 5e-324])
def test_case_9_10_all_points_equal(cls, value):
    """9, 10: ConvergenceWarning and one cluster, never three invented ones; new points join it."""
    with pytest.warns(ConvergenceWarning, match=r"all 12 points are equal: 1 cluster found instead of n_clusters=3"):
        model = cls(n_clusters=3).fit(np.full((12, 4), value))
    assert model.n_clusters_ == 1
    assert not model.labels_.any()
    assert not model.predict(np.zeros((2, 4))).any()


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("n_clusters", [3, 30])
def test_case_9_fewer_different_points_than_clusters(cls, n_clusters, seed):
    """9: two different points make two clusters and a ConvergenceWarning, however many are asked for."""
    X = np.repeat(planes(seed)[0][[0, 20]], 15, axis=0)
    model, texts = said(lambda: cls(n_clusters=n_clusters).fit(X))
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(np.repeat([0, 1], 15), model.labels_) == 1
    assert [text for text in texts if "found" in text]


@pytest.mark.parametrize("cls", LARGE)
@pytest.mark.parametrize("draw", [0, 15, 21, 23])  # the last three were split as on a Nehalem CPU
def test_case_9_methods_for_many_points_split_no_copies(cls, draw):
    """9: copies differ by rounding once they are embedded; that makes no third cluster, nor one that predict knows."""
    X = np.repeat(np.random.default_rng(draw).standard_normal((2, 3)), 15, axis=0)
    model, texts = said(lambda: cls(n_clusters=3).fit(X))
    assert [text for text in texts if "2 clusters" in text]
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(np.repeat([0, 1], 15), model.labels_) == 1
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_case_12_the_label_of_most_copies():
    """12: of the copies of a point most decide, the smaller label in a tie; names, noise among them, stay."""
    prints = np.array([7, 3, 7, 7, 3, 9, 1, 1, 1], dtype=np.uint64)
    labels = np.array([4, 2, 0, 4, 0, 6, -1, -1, 0])
    np.testing.assert_array_equal(label_of_most_copies(labels, prints), [4, 0, 4, 4, 0, 6, -1, -1, -1])
    np.testing.assert_array_equal(label_of_most_copies(labels, np.arange(9, dtype=np.uint64)), labels)


def test_case_12_predict_knows_no_cluster_that_copies_left():
    """12: what would be called by the name of such a cluster is called as its points are."""
    X = np.repeat(np.random.default_rng(0).standard_normal((2, 3)), 3, axis=0)

    @dataclass(frozen=True)
    class Third:
        labels: Any

        def label(self, X):
            return np.full(len(X), 2)

    found = run_landmarks(X, lambda points, stage: Third(np.array([0, 0, 2, 1, 1, 1])), n_clusters=3)
    np.testing.assert_array_equal(found.labels, [0, 0, 0, 1, 1, 1])
    assert found.n_clusters == 2
    np.testing.assert_array_equal(found.predictor.label(X[:2] + 1), [0, 0])


@pytest.mark.parametrize("cls", ALL)
def test_case_11_a_zero_row(cls, seed):
    """11: the others are clustered as without it; it gets a label and, where nothing is known of it, is flagged."""
    X, _ = blobs(seed)
    alone, model = fit(cls, X), fit(cls, np.vstack([X, np.zeros(4)]))
    same = adjusted_rand_score(alone.labels_, model.labels_[:-1]) == 1
    if cls in DISTANCES:  # to these the origin is a fourth place, for which two heaps may have to share a cluster
        same |= model.labels_[-1] not in model.labels_[:-1]
    if cls is not METHODS["sscomp"]:  # appends a constant, which is all that is left of the row
        assert same
    if cls is TRR:
        assert list(model.isolated_) == [len(X)]
    fit(cls, np.vstack([X, np.zeros((20, 4))]))


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("copies", [2, 20])
def test_case_12_13_copies(cls, copies, seed):
    """12, 13: copies of a point share its label; in the methods with a graph it is the one without copies."""
    X, y = blobs(seed, size=7 if copies == 2 else 5)
    repeated = np.repeat(X, copies, axis=0)
    if cls in ENTRYWISE:  # of so few different points none is worth representing
        with quiet(), pytest.raises(ValueError, match="no edge"):
            cls(n_clusters=3).fit(repeated)
        return
    model = fit(cls, repeated)
    labels = model.labels_.reshape(-1, copies)
    assert (labels == labels[:, :1]).all()
    if copies == 2 and cls in (KTRR, TRR, METHODS["ensc"], METHODS["tsc"], METHODS["kasp"], METHODS["uspec"]):
        assert adjusted_rand_score(y, labels[:, 0]) == 1
    if hasattr(model, "affinity_matrix_"):
        np.testing.assert_array_equal(labels[:, 0], fit(cls, X).labels_)
        np.testing.assert_array_equal(model.predict(repeated), model.labels_)


@pytest.mark.parametrize("cls", ALL)
def test_case_14_a_constant_feature(cls, seed):
    """14: a feature that is zero everywhere changes nothing; another constant is an offset (see case 17)."""
    X, y = blobs(seed)
    assert adjusted_rand_score(fit(cls, X).labels_, fit(cls, np.c_[X, np.zeros(len(X))]).labels_) == 1
    if cls in [parameter.values[0] for parameter in TRANSLATION_INVARIANT]:
        assert adjusted_rand_score(y, fit(cls, np.c_[X, np.full(len(X), 7.0)]).labels_) == 1


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("scale", SCALES)
def test_case_15_extreme_scales(cls, scale, seed):
    """15: the same labels at every scale: the points are brought near one by a power of two before anything else."""
    X, _ = blobs(seed)
    model = fit(cls, X * scale)
    assert adjusted_rand_score(reference(cls, seed), model.labels_) > (
        0.9 if scale < 1e-310 else 0.999
    )  # few bits left
    with quiet():
        assert model.predict(X * scale * 1.001).max() < 3


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("scale", [1e30, 1e37, 1e-30, 1e-44])
def test_case_15_extreme_scales_in_float32(cls, scale, seed):
    """15: the same in float32, whose squares overflow at 2e19 and vanish below 1e-23."""
    X, y = blobs(seed)
    model = fit(cls, (X * scale).astype(np.float32))
    if cls not in SENSITIVE:
        assert adjusted_rand_score(y, model.labels_) > (0.9 if scale < 1e-40 else 0.999)  # at 1e-44 three bits are left


@pytest.mark.parametrize("kernel", ["linear", "cosine", "quadratic", "cubic"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent", [-12, -5, 5, 10, 12, 14])
def test_case_15_powers_of_large_numbers(kernel, dtype, exponent, seed):
    """15: the sixth power that the cubic kernel takes does not overflow float32 either."""
    X, y = blobs(seed)
    assert adjusted_rand_score(y, fit(KTRR, (X * 10.0**exponent).astype(dtype), kernel=kernel).labels_) == 1


def test_case_15_kernels_that_see_units(seed):
    """15: a callable and the polynomial kernel see the numbers as they are; what overflows is an error that says so."""
    X, _ = blobs(seed)
    seen = []

    def kernel(A, B):
        seen.append(np.abs(A).max())
        return A @ B.T

    fit(KTRR, X * 1e20, kernel=kernel)
    np.testing.assert_allclose(seen[0], np.abs(X).max() * 1e20)
    small = fit(KTRR, X * 1e3, kernel="polynomial", kernel_params={"gamma": 1e-6})
    large = fit(KTRR, X * 1e18, kernel="polynomial", kernel_params={"gamma": 1e-36})
    np.testing.assert_allclose(large.affinity_matrix_.toarray(), small.affinity_matrix_.toarray(), rtol=1e-6)
    with quiet(), pytest.raises(ValueError, match=r"polynomial kernel .* too large for float64"):
        KTRR(3, kernel="polynomial").fit(X * 1e120)


@pytest.mark.parametrize("cls", [KTRR, SC])
def test_case_15_bandwidth_in_the_units_of_the_data(cls, seed):
    """15: of plain spectral clustering too."""
    X, _ = blobs(seed)
    expected = fit(cls, X, bandwidth=2.0).affinity_matrix_.toarray()
    np.testing.assert_allclose(fit(cls, X * 1e200, bandwidth=2e200).affinity_matrix_.toarray(), expected, rtol=1e-6)


@pytest.mark.parametrize("cls", ALL)
def test_case_16_uneven_features(cls, seed):
    """16: a warning that says by how much the features differ; none with a scaling that evens them."""
    X, y = blobs(seed)
    X = np.c_[X, 1e12 * np.random.default_rng(seed).standard_normal(len(X))]
    _, texts = said(lambda: cls(n_clusters=3).fit(X))
    assert [text for text in texts if "ranges of the features differ by a factor of" in text]
    _, texts = said(lambda: cls(n_clusters=3, scaling="standard").fit(X))
    assert not [text for text in texts if "ranges of the features" in text]
    assert len(y) == len(X)


@pytest.mark.parametrize("cls", TRANSLATION_INVARIANT)
@pytest.mark.parametrize("offset", [1e5, 1e8])
def test_case_17_offset(cls, offset, seed):
    """17: distances are computed from centred points: the labels of the points without the offset."""
    X, y = blobs(seed)
    assert adjusted_rand_score(y, fit(cls, X + offset).labels_) == 1


@pytest.mark.parametrize("cls", [TRR, KTRR, METHODS["ektrr"]])
def test_case_17_a_large_offset_is_said_to_be_one(cls, seed):
    """17: linear methods see the offset as a direction, all methods lose digits: both are said."""
    _, texts = said(lambda: cls(n_clusters=3).fit(blobs(seed)[0] + 1e9))
    assert [text for text in texts if "as far from the origin as from each other" in text]


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("distance", [1e9, 1e200])
def test_case_24_an_outlier(cls, distance, seed):
    """24: said, with a way out, and no method fails; on points of length 1 it harms nobody."""
    X, y = blobs(seed)
    X = np.vstack([X, distance * np.ones(4)])

    def fitted():
        try:
            return cls(n_clusters=3, scaling=None).fit(X)
        except ValueError as error:  # beside it, all coefficients of the others vanish
            assert "no edge" in str(error)  # noqa: PT017

    model, texts = said(fitted)
    assert model is None or model.labels_.shape == (43,)
    assert [text for text in texts if "times that of a typical point" in text]
    unit = fit(cls, X, 4, scaling="unit")
    if cls not in SENSITIVE:
        assert adjusted_rand_score(y, unit.labels_[:-1]) > 0.6


def test_case_24_a_robust_bandwidth(seed):
    """24: with the median distance the labels of the other points do not change, and the condition is known."""
    X, y = blobs(seed)
    model = fit(KTRR, np.vstack([X, 1e9 * np.ones(4)]), bandwidth="median")
    assert adjusted_rand_score(y, model.labels_[:-1]) == 1
    assert list(model.isolated_) == [len(X)]
    assert 1 <= model.condition_ < 1e4
    assert model.residual_ < 1e-12


@pytest.mark.parametrize("model", [TRR(3), KTRR(3, kernel="quadratic"), METHODS["ssc"](3), METHODS["tsc"](3)])
def test_case_25_antipodal_points(model, seed):
    """25: x and −x belong together under even kernels."""
    X, _ = planes(seed)
    with quiet():
        labels = model.fit(np.vstack([X, -X])).labels_
    assert (labels[:42] == labels[42:]).all()


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("geometry", ["equal", "nested", "crossing"])
def test_case_26_subspaces_that_share_directions(cls, geometry, seed):
    """26: merged or parted, never a crash; the eigenvalues show that there is no gap."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((20, 2)) @ np.eye(4)[:2]
    other = {"equal": np.eye(4)[:2], "nested": np.eye(4)[:1], "crossing": np.eye(4)[1:3]}[geometry]
    model = fit(cls, np.vstack([A, rng.standard_normal((20, len(other))) @ other]), 2)
    assert np.isfinite(getattr(model, "eigenvalues_", np.zeros(1))).all()


@pytest.mark.parametrize("cls", GRAPH)
def test_case_27_clusters_of_very_different_size(cls, seed):
    """27: one point beside four hundred: no empty cluster, and sizes can be read off the labels."""
    rng = np.random.default_rng(seed)
    X = np.vstack([[10.0, 0, 0] + 0.1 * rng.standard_normal((200, 3)), [[0, 10.0, 0]]])
    assert np.bincount(fit(cls, X, 2).labels_, minlength=2).min() >= 1


@pytest.mark.parametrize("cls", ALL)
def test_one_value_differs(cls):
    """All points equal but for one bit of one value: two clusters at most, and no division by nothing."""
    X = np.ones((20, 4))
    X[3, 2] += np.finfo(float).eps
    model = fit(cls, X)
    assert model.n_clusters_ <= 2
    assert len(set(np.delete(model.labels_, 3))) == 1
