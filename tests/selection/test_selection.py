"""The automatic choice: every parameter alone and all together, on easy, odd and broken data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info

from method_data import ESTIMATORS
from subspaces import KTRR, TRR
from subspaces.datasets import make_spheres, make_subspaces
from subspaces.selection import Selection, candidates, choose, search
from subspaces.selection.candidates import NEIGHBORS, Family
from subspaces.selection.count import count_clusters
from subspaces.selection.graphs import Method, candidates_of

NAMES = ("n_clusters", "kernel", "reg", "n_nonzero", "scaling", "assign_labels")
ALL_AUTO = dict.fromkeys(NAMES, "auto")


@pytest.fixture
def data(seed):
    return make_subspaces(4, 3, 20, 35, noise=0.01, random_state=seed)


@pytest.fixture
def few(monkeypatch):
    """Fewer settings, for tests that are not about what is tried."""
    families = (Family("rbf", 0.1, (3, 5)), Family("quadratic", 1.0, (5,)), Family(NEIGHBORS, 0.0, (10,)))
    monkeypatch.setattr(candidates, "families_tried", lambda n_features, effort: families)


def test_everything_at_once(data):
    X, y = data
    model = KTRR(**ALL_AUTO).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert set(model.selection_.parameters) == set(NAMES)
    assert model.n_clusters_ == model.selection_.parameters["n_clusters"] == 4
    assert model.get_params()["kernel"] == "auto"  # the parameters stay what the user gave
    assert model.kernel_.name == model.selection_.parameters["kernel"]
    assert (model.reg_, model.n_nonzero_) == (model.selection_.winner.reg, model.selection_.winner.n_nonzero)
    assert "selection" in model.timings_


@pytest.mark.parametrize("name", NAMES)
def test_each_alone(name, data, few):
    X, y = data
    model = KTRR(**{"n_clusters": 4, "kernel": "quadratic", name: "auto"}).fit(X)
    assert set(model.selection_.parameters) == {name}
    assert adjusted_rand_score(y, model.labels_) > 0.9
    given = {"kernel": "quadratic", "reg": 1.0, "n_nonzero": 5, "scaling": None, "assign_labels": "kmeans"}
    for trial in model.selection_.trials:
        assert all(getattr(trial, other) == value for other, value in given.items() if other != name)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "kernel"])
def test_trr_too(name, data, few):
    X, y = data
    model = TRR(**{"n_clusters": 4, name: "auto"}).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert {trial.kernel for trial in model.selection_.trials} == {"linear"}


def test_nothing_automatic_means_no_search(data):
    model = KTRR(4).fit(data[0])
    assert model.selection_ is None
    assert (model.reg_, model.n_nonzero_, model.scaling_, model.assign_labels_) == (1.0, 5, None, "kmeans")


def test_other_methods_refuse(data):
    for name in ("lsr1", "ssc", "sc"):
        with pytest.raises(ValueError, match="n_clusters"):
            ESTIMATORS[name](n_clusters="auto").fit(data[0])


def test_same_result_every_time_and_for_a_clone(data, few):
    X, _ = data
    model = KTRR(**ALL_AUTO)
    first = model.fit(X).selection_
    again = clone(model).fit(X)
    assert np.array_equal(again.labels_, model.labels_)
    pd.testing.assert_frame_equal(first.to_pandas(), again.selection_.to_pandas())


def test_no_label_is_seen(data, few):
    """``y`` is ignored: a misleading one changes nothing."""
    X, y = data
    model = KTRR(4, kernel="auto", assign_labels="auto")
    misled = model.fit(X, np.zeros(len(y))).selection_.to_pandas()
    pd.testing.assert_frame_equal(misled, model.fit(X, y).selection_.to_pandas())


def test_order_of_the_points_does_not_matter(data, rng, few):
    X, _ = data
    order = rng.permutation(len(X))
    one, two = KTRR(4, kernel="auto").fit(X), KTRR(4, kernel="auto").fit(X[order])
    assert adjusted_rand_score(one.labels_[order], two.labels_) == 1


def test_does_not_change_the_data(data, few):
    X = data[0].copy()
    KTRR(**ALL_AUTO).fit(X)
    assert np.array_equal(X, data[0])


def test_the_table(data, few):
    selection = KTRR(4, kernel="auto", assign_labels="auto").fit(data[0]).selection_
    rows = selection.as_rows()
    assert len(rows) == len(selection.trials) == 2  # two kernels, each with the cut that suits it
    assert rows[0]["score"] == selection.winner.score == max(row["score"] for row in rows)
    frame = selection.to_pandas()
    assert list(frame.columns)[:6] == ["scaling", "kernel", "reg", "n_nonzero", "affine", "assign_labels"]
    assert selection.winner.kernel in selection.reason
    assert "Of 2 settings" in repr(selection)
    assert 0 <= selection.stability <= 1


def test_partitions_are_kept_where_asked_for(data, few):
    selection = choose(data[0], n_clusters=4, keep_partitions=True)
    assert selection.partitions.shape == (len(selection.trials), len(data[0]))
    assert choose(data[0], n_clusters=4).partitions is None


def test_the_number_has_a_range_and_evidence(data):
    count = choose(data[0]).n_clusters
    assert count.low <= count.estimate == 4 <= count.high
    assert len(count.candidates) == len(count.agreement) == len(count.score)
    assert len(count.eigenvalues) > 4


def test_very_unequal_sizes(seed):
    X, y = make_subspaces(4, 2, 20, [15, 30, 60, 250], noise=0.01, random_state=seed)
    model = KTRR(n_clusters=4, kernel="auto", reg="auto", n_nonzero="auto", scaling="auto", assign_labels="auto").fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.9


def test_curves_are_cut_spectrally(seed):
    X, y = make_spheres(2, n_samples=80, random_state=seed)
    model = KTRR(2, kernel="auto", reg="auto", n_nonzero="auto", scaling="auto", assign_labels="auto").fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.9


def test_columns_of_different_units_are_standardised(seed):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(3), 40)
    X = rng.standard_normal((120, 6)) + 8 * np.eye(3, 6, 1)[y]
    X[:, 0] = 1e4 * rng.standard_normal(120)  # says nothing, and is all that distances see
    model = KTRR(3, kernel="auto", scaling="auto", assign_labels="auto").fit(X)
    assert model.scaling_ == "standard"
    assert "standardised because" in model.selection_.reason
    assert adjusted_rand_score(y, model.labels_) > 0.9


def test_pixels_are_not_standardised(rng):
    assert candidates.scalings_tried(rng.random((50, 30)))[0] == (None, "unit")
    unit = rng.standard_normal((50, 30))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    assert candidates.scalings_tried(unit)[0] == (None,)  # unit rows would change nothing


@pytest.mark.parametrize("n", [2, 3, 5, 9])
def test_very_few_points(n, rng):
    model = KTRR(**ALL_AUTO).fit(rng.standard_normal((n, 3)))
    assert len(model.labels_) == n
    assert KTRR(**{**ALL_AUTO, "n_clusters": n}).fit(rng.standard_normal((n, 3))).n_clusters_ == n


def test_all_points_equal():
    model = KTRR(**ALL_AUTO).fit(np.ones((10, 3)))
    assert model.n_clusters_ == 1
    assert model.selection_ is None


def test_one_cluster_asked_for(data, few):
    model = KTRR(1, kernel="auto", assign_labels="auto").fit(data[0])
    assert set(model.labels_) == {0}


def test_constant_features_duplicates_and_zero_rows(data, few):
    X = np.hstack([data[0], np.full((len(data[0]), 2), 7.0)])
    X = np.vstack([X, X[:10], np.zeros((2, X.shape[1]))])
    assert len(KTRR(**ALL_AUTO).fit(X).labels_) == len(X)


@pytest.mark.parametrize("factor", [1e-150, 1e-20, 1e20, 1e150])
def test_extreme_magnitudes(factor, data, few):
    X, y = data
    assert adjusted_rand_score(y, KTRR(4, kernel="auto", reg="auto", scaling="auto").fit(X * factor).labels_) > 0.9


def test_sparse_float32_and_precomputed(data, few):
    X, y = data
    for points in (sparse.csr_array(X), X.astype(np.float32)):
        assert adjusted_rand_score(y, KTRR(**{**ALL_AUTO, "n_clusters": 4}).fit(points).labels_) > 0.9
    K = (X @ X.T) ** 2
    auto = {**ALL_AUTO, "n_clusters": 4, "kernel": "precomputed"}
    assert adjusted_rand_score(y, KTRR(**auto).fit(K).labels_) > 0.9


def test_a_callable_kernel_is_kept(data, few):
    model = KTRR(4, kernel=lambda A, B: (A @ B.T) ** 2, reg="auto").fit(data[0])
    assert model.selection_.winner.kernel == "<lambda>"


def test_sample_of_many_points(data, few, monkeypatch):
    X, y = data
    monkeypatch.setattr(search, "N_SEARCHED", 100)
    model = KTRR(**{**ALL_AUTO, "n_clusters": 4}).fit(X)
    assert (len(model.selection_.searched), model.selection_.n_samples) == (100, len(X))
    assert adjusted_rand_score(y, model.labels_) > 0.9
    precomputed = KTRR(**{**ALL_AUTO, "n_clusters": 4, "kernel": "precomputed"}).fit((X @ X.T) ** 2)
    assert adjusted_rand_score(y, precomputed.labels_) > 0.9


GIVEN = {"scaling": None, "kernel": "auto", "reg": 1.0, "n_nonzero": 5, "affine": False, "assign_labels": "kmeans"}


def test_many_points_try_only_kernels_with_a_solver_for_them(rng, monkeypatch):
    monkeypatch.setattr(candidates, "LARGE", 100)
    X = rng.standard_normal((50, 40))
    tried = candidates.tried_on(X, GIVEN, n_samples=200)
    assert {setting.kernel for setting in tried.settings} == {"rbf", "exponential"}
    few_features = candidates.tried_on(X[:, :5], GIVEN, n_samples=200)
    assert "quadratic" in {setting.kernel for setting in few_features.settings}


def test_truncations_are_prefixes_of_one_another(data):
    X, _ = data
    tried = candidates.tried_on(X, {**GIVEN, "kernel": "rbf", "n_nonzero": "auto"})
    assert len(tried.settings) > 3
    for graph in candidates_of(X, tried, Method()):
        lone = KTRR(4, n_nonzero=graph.setting.n_nonzero).fit(X)
        found, expected = graph.W.toarray(), lone.affinity_matrix_.toarray()
        assert np.mean((found > 0) == (expected > 0)) > 0.999
        assert np.allclose(found, expected, atol=1e-3 * expected.max()) or graph.n_components > 4


def test_new_points(data, few):
    X, y = data
    model = KTRR(**{**ALL_AUTO, "n_clusters": 4}).fit(X[::2])
    assert adjusted_rand_score(y[1::2], model.predict(X[1::2])) > 0.9
    assert model.transform(X[1::2]).shape == (len(X[1::2]), 4)


def test_errors_say_what_to_do(data):
    X, _ = data
    with pytest.raises(ValueError, match="graph"):
        KTRR(4, reg="auto", graph="mass").fit(X)
    with pytest.raises(ValueError, match="must not exceed"):
        KTRR(n_clusters=10**6, reg="auto").fit(X)
    with pytest.raises(ValueError, match="reg"):
        KTRR(4, reg="automatic").fit(X)


def test_communities_found_when_the_number_is_none(data, few):
    X, _ = data
    model = KTRR(None, kernel="auto", assign_labels="auto").fit(X)
    assert model.assign_labels_ == "modularity"
    assert model.selection_.parameters["assign_labels"] == "modularity"


def test_the_search_has_one_blas_thread(data, monkeypatch):
    """With two, the last digits chose another kernel for Extended Yale B: 82.9 % instead of 86.2."""
    seen = []

    def listening(*args, **options):
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return candidates_of(*args, **options)

    monkeypatch.setattr(search, "candidates_of", listening)
    choose(data[0], kernel="quadratic")
    assert set(seen) == {1}


def test_one_graph_can_still_be_counted(data):
    X, _ = data
    tried = candidates.tried_on(X, {**GIVEN, "kernel": "quadratic", "reg": 0.1, "assign_labels": "modularity"})
    assert count_clusters(candidates_of(X, tried, Method()), X.shape[1]).estimate >= 2
    assert isinstance(choose(X, kernel="quadratic", reg=0.1, n_nonzero=5, scaling=None), Selection)


@pytest.mark.filterwarnings("default:a point occurs", "default:the graph has")  # ours, and right about these points
@parametrize_with_checks([KTRR(n_clusters=3, reg="auto", assign_labels="auto")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
