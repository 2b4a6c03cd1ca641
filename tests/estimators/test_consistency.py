"""What a fitted model says in several ways is one answer: labels, graph, estimator_, tree, predict, confidence."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import datasets
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from method_data import ESTIMATORS, rings
from subspaces import KTRR, SC, SSC, SubspaceClustering
from subspaces.datasets import make_motions, make_subspaces

N = 90


def blobs(k, deviation, seed, m=5):
    return datasets.make_blobs(N, m, centers=k, cluster_std=deviation, random_state=seed)[0]


def codes(n_columns, n_levels):
    drawn = np.random.default_rng(0).integers(0, n_levels, (N, n_columns))
    return np.concatenate([np.eye(n_levels)[column] for column in drawn.T], axis=1)


RNG = np.random.default_rng(0)
SETS = {
    **{f"subspaces {k}": make_subspaces(k, 2, 12, N // k, noise=0.02, random_state=k)[0] for k in (2, 3, 5, 6)},
    **{f"blobs {k} {s}": blobs(k, s, k) for k in (2, 3, 6) for s in (0.5, 2.0)},
    **{name: getattr(datasets, f"load_{name}")().data[::2] for name in ("iris", "wine", "linnerud")},
    **{name: getattr(datasets, f"load_{name}")().data[:N] for name in ("digits", "breast_cancer", "diabetes")},
    "moons": datasets.make_moons(N, noise=0.05, random_state=0)[0],
    "circles": datasets.make_circles(N, noise=0.03, factor=0.4, random_state=0)[0],
    "swiss roll": datasets.make_swiss_roll(N, random_state=0)[0],
    "rings": rings(np.random.default_rng(0), N, 3)[0],
    "trajectories": make_motions(3, 30, 20, random_state=0)[0],
    "counts": RNG.poisson(RNG.gamma(0.3, 4, (3, 30))[np.arange(N) % 3]).astype(float),
    "categories": codes(5, 3),
    "yes and no": codes(6, 2)[:, ::2],
    "noise": RNG.normal(size=(N, 5)),
    "uniform": RNG.random((N, 2)),
    "grid": np.indices((9, 10)).reshape(2, -1).T.astype(float),
    "one feature": np.r_[RNG.normal(size=45), RNG.normal(size=45) + 9][:, None],
    "wide": RNG.normal(size=(40, 300)) + 2 * RNG.normal(size=(3, 300))[np.arange(40) % 3],
    "copies": blobs(3, 0.5, 0)[RNG.integers(0, 40, N)],
    "float32": blobs(4, 1.0, 7).astype(np.float32),
    "few": blobs(3, 0.5, 1)[:14],
    "unequal": np.r_[RNG.normal(size=(80, 4)), RNG.normal(size=(10, 4)) + 8],
}
assert len(SETS) >= 30


@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("name", SETS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning")
def test_one_answer(name, k):
    X = SETS[name]
    found = SubspaceClustering(k).fit(X)
    again = clone(found.estimator_).fit(X)
    np.testing.assert_array_equal(again.labels_, found.labels_)
    assert (again.affinity_matrix_ != found.affinity_matrix_).nnz == 0
    np.testing.assert_array_equal(found.predict(X), found.labels_)
    np.testing.assert_array_equal(found.predict_membership(X).argmax(axis=1), found.labels_)
    assert adjusted_rand_score(found.labels_at(found.n_clusters_), found.labels_) == 1
    k = found.n_clusters_
    assert k == 1 or f"{k} groups" in found.verdict_ or f"{k} parts" in found.verdict_
    if hasattr(again, "coefficients_"):
        assert (again.coefficients_ != found.coefficients_).nnz == 0
    if found.selection_ is not None and found.n_clusters_ > 1:  # what was judged is what is delivered
        searched = found.selection_
        assert adjusted_rand_score(searched.labels, found.labels_[searched.searched]) > 0.9


@pytest.mark.parametrize(
    ("name", "k"),
    [("wine", None), ("categories", None), ("breast_cancer", 2), ("digits", 10), ("counts", 3), ("trajectories", 3)],
)
def test_storage_and_order_of_the_columns_do_not_matter(name, k):
    X = SETS[name]
    expected = SubspaceClustering(k).fit(X)
    for other in (sparse.csc_array(X), np.asfortranarray(X), X[:, ::-1]):
        found = SubspaceClustering(k).fit(other)
        np.testing.assert_array_equal(found.labels_, expected.labels_)
        assert found.verdict_ == expected.verdict_
        np.testing.assert_allclose(found.confidence_, expected.confidence_, atol=1e-6)
        np.testing.assert_array_equal(found.predict(other), expected.labels_)


@pytest.mark.parametrize("cls", [pytest.param(cls, id=name) for name, cls in ESTIMATORS.items()])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning")
def test_every_method_gives_one_answer(cls):
    """Copies of rows, sparse storage, order of the columns, and the unit of one where all are standardised."""
    X, _ = make_subspaces(3, 2, 8, 20, noise=0.01, random_state=1)
    X += 3 * np.repeat(np.eye(3, 8), 20, axis=0)
    method = cls(3, scaling="standard")
    expected = clone(method).fit(X).labels_
    rows = np.r_[np.arange(60), np.repeat([0, 25, 50], 30)]
    np.testing.assert_array_equal(clone(method).fit(X[rows]).labels_, expected[rows])
    for other in (sparse.csr_array(X), X[:, ::-1], X * np.r_[128.0, np.ones(7)] + 16):
        np.testing.assert_array_equal(clone(method).fit(other).labels_, expected)


@pytest.mark.parametrize("solver", ["dense", "low_rank", "two_scale"])
@pytest.mark.parametrize("assign_labels", ["kmeans", "modularity"])
def test_every_route_gives_one_answer(solver, assign_labels):
    X = SETS["blobs 3 0.5"]
    method = KTRR(3, solver=solver, assign_labels=assign_labels, kernel="linear" if solver == "low_rank" else "rbf")
    expected, rows = clone(method).fit(X), np.r_[np.arange(N), np.repeat([0, 30], 20)]
    copied = clone(method).fit(X[rows])
    np.testing.assert_array_equal(copied.labels_, expected.labels_[rows])
    np.testing.assert_array_equal(copied.predict(X * 1.01), expected.predict(X * 1.01))
    for other in (sparse.csr_array(X), X[:, ::-1]):
        np.testing.assert_array_equal(clone(method).fit(other).labels_, expected.labels_)


@pytest.mark.parametrize("name", ["wine", "breast_cancer"])
def test_the_unit_of_a_standardised_column_does_not_matter(name):
    X = SETS[name]
    expected = SubspaceClustering().fit(X)
    assert expected.scaling_ == "standard"
    other = X * np.r_[100.0, 1e-3, np.ones(X.shape[1] - 2)] + np.r_[0, 0, 7, np.zeros(X.shape[1] - 3)]
    found = SubspaceClustering().fit(other)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    p_values = [model.selection_.n_clusters.p_value for model in (found, expected)]
    np.testing.assert_allclose(*p_values, rtol=1e-6)


def test_a_generator_is_a_random_state_and_unknown_keywords_are_errors():
    X = SETS["blobs 3 0.5"]
    found = [KTRR(3, random_state=np.random.default_rng(7)).fit(X).labels_ for _ in range(2)]
    np.testing.assert_array_equal(*found)
    with pytest.raises(TypeError, match="sample_wieght"):
        KTRR(3).fit_predict(X, sample_wieght=1)


def test_other_labels_have_their_own_confidence_and_verdict():
    X = SETS["blobs 3 0.5"]
    model = SubspaceClustering().fit(X)
    by_chance = model.with_labels(np.random.default_rng(0).integers(0, 5, N))
    assert by_chance.confidence_.mean() < 0.5 < model.confidence_.mean()
    assert by_chance.verdict_.startswith("5 groups, as asked")
    assert "are doubtful" in by_chance.verdict_
    same = model.with_labels(model.labels_)
    np.testing.assert_allclose(same.confidence_, KTRR(3).fit(X).with_labels(model.labels_).confidence_, atol=0.2)


@pytest.mark.parametrize("method", [SubspaceClustering(3), KTRR(3), KTRR(3, scaling="unit"), SSC(3), SC(3)])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_memberships_fall_far_from_the_training_data(method):
    X = datasets.load_iris().data
    model = method.fit(X)
    new = X + 0.01 * np.random.default_rng(0).normal(size=X.shape)
    near, far = (np.median(model.predict_membership(points).max(axis=1)) for points in (new, X * 1e4))
    assert near > 0.4
    assert far == pytest.approx(1 / 3, abs=0.02)
    beside = model.predict_membership(X + np.array([0, 0, 40.0, 0])).max(axis=1)
    assert (beside < np.median(model.confidence_)).all()


def test_one_cluster_is_doubted_by_its_p_value():
    rng = np.random.default_rng(0)
    close = np.r_[rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + np.array([4, 0])]
    sure = SubspaceClustering().fit(rng.normal(size=(120, 2)))
    unsure = SubspaceClustering().fit(close)
    assert sure.n_clusters_ == 1
    assert sure.selection_.n_clusters.p_value > 0.3
    assert unsure.n_clusters_ > 1 or unsure.confidence_.max() <= sure.confidence_.min() < 0.8
