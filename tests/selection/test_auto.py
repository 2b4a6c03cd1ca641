"""SubspaceClustering: nothing to set, on every kind of data, and what it says about its choice."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from subspaces import KTRR, SC, SubspaceClustering
from subspaces.datasets import make_subspaces
from subspaces.selection import search
from subspaces.selection.candidates import families_tried, scalings_tried
from subspaces.selection.sampling import sample


@pytest.fixture
def data(seed):
    return make_subspaces(4, 3, 20, 40, noise=0.01, random_state=seed)


@pytest.mark.parametrize("effort", ["fast", "balanced", "thorough"])
def test_nothing_to_set(data, effort):
    X, y = data
    model = SubspaceClustering(effort=effort).fit(X)
    assert model.n_clusters_ == 4
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert adjusted_rand_score(y, SubspaceClustering(4, effort=effort).fit_predict(X)) > 0.95
    assert model.selection_.reason
    assert set(model.get_params()) == {
        *(
            "n_clusters",
            "scaling",
            "kernel",
            "bandwidth",
            "kernel_params",
            "reg",
            "n_nonzero",
            "affine",
            "assign_labels",
        ),
        *("effort", "features", "image_shape", "out_of_sample", "random_state", "verbose"),
    }


def moons():
    return make_moons(300, noise=0.05, random_state=0)


def counts():
    """Cells of six kinds, read to very different depths."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(6), 40)
    fold = np.exp(1.5 * rng.standard_normal((6, 80)) * (rng.random((6, 80)) < 0.3))
    depth = np.exp(0.7 * rng.standard_normal((240, 1)))
    return rng.negative_binomial(2, 2 / (2 + np.exp(rng.normal(0, 1.2, 80)) * fold[y] * depth)).astype(float), y


def motions():
    """Affine subspaces of dimension 3 that do not contain the origin."""
    rng = np.random.default_rng(1)
    flats = [rng.standard_normal((60, 3)) @ rng.standard_normal((3, 40)) for _ in range(3)]
    parts = [flat + 2 * rng.standard_normal(40) for flat in flats]
    return np.vstack(parts) + 0.01 * rng.standard_normal((180, 40)), np.repeat(np.arange(3), 60)


@pytest.mark.parametrize(
    ("points", "least"),
    [
        (moons, 0.95),
        (counts, 0.9),
        (motions, 0.95),
        (lambda: load_wine(return_X_y=True), 0.85),
        (lambda: load_iris(return_X_y=True), 0.85),
    ],
    ids=["plane", "counts", "motions", "units", "table"],
)
def test_every_kind_of_data(points, least):
    X, y = points()
    assert adjusted_rand_score(y, SubspaceClustering(len(np.unique(y))).fit_predict(X)) > least


def test_what_was_judged_is_the_answer(data):
    X, _ = data
    model = SubspaceClustering(4).fit(X)
    labels = np.empty(len(X), dtype=int)
    labels[model.selection_.searched] = model.selection_.labels
    assert adjusted_rand_score(labels, model.labels_) == 1


def test_the_method_that_won_does_it_again(data):
    X, _ = data
    model = SubspaceClustering(4).fit(X)
    assert isinstance(model.estimator_, KTRR | SC)
    assert adjusted_rand_score(clone(model.estimator_).fit_predict(X), model.labels_) == 1
    assert model.kernel_.name == model.estimator_.get_params().get("kernel", model.kernel_.name)


def test_new_points_and_the_rest_of_the_interface(data):
    X, y = data
    model = SubspaceClustering(4).fit(X[::2])
    assert adjusted_rand_score(y[1::2], model.predict(X[1::2])) > 0.9
    assert model.transform(X[1::2]).shape == (len(X[1::2]), 4)
    assert model.affinity_matrix_.shape == (len(X[::2]), len(X[::2]))
    assert "selection" in model.timings_


def test_a_graph_of_neighbours_may_win(monkeypatch):
    monkeypatch.setattr(
        "subspaces.selection.search._best", lambda trials, n: [trial.kernel for trial in trials].index("neighbors")
    )
    X, y = moons()
    model = SubspaceClustering(2).fit(X)
    assert isinstance(model.estimator_, SC)
    assert "graph of the 10 nearest neighbours" in model.selection_.reason
    assert len(model.predict(X[:5] + 0.001)) == 5
    assert adjusted_rand_score(y, model.labels_) > 0.9


@pytest.mark.full  # takes seconds: .ci/run has it
def test_order_of_the_rows_and_seeds(data, rng):
    X, _ = data
    order = rng.permutation(len(X))
    one, two = SubspaceClustering().fit(X), SubspaceClustering().fit(X[order])
    assert adjusted_rand_score(one.labels_[order], two.labels_) == 1
    assert one.selection_.winner == two.selection_.winner
    assert adjusted_rand_score(SubspaceClustering(random_state=5).fit_predict(X), one.labels_) == 1


def test_many_points_are_searched_on_a_sample(data, monkeypatch):
    X, y = data
    monkeypatch.setattr(search, "N_SEARCHED", 100)
    model = SubspaceClustering(4).fit(X)
    assert (len(model.selection_.searched), model.selection_.n_samples) == (100, 160)
    assert adjusted_rand_score(y, model.labels_) > 0.9


def test_a_sample_keeps_small_clusters(rng):
    X = np.vstack([rng.standard_normal((6000, 5)), 30 + 0.1 * rng.standard_normal((40, 5))])
    kept = sample(X, 1000, 0)
    assert len(np.unique(kept)) == 1000
    assert (kept >= 6000).sum() >= 12  # 7 of them in a random sample
    assert sample(X[:500], 1000, 0).tolist() == list(range(500))


@pytest.mark.parametrize("convert", [sparse.csr_array, lambda X: X.astype(np.float32)])
def test_sparse_and_single_precision(data, convert):
    X, y = data
    assert adjusted_rand_score(y, SubspaceClustering(4).fit_predict(convert(X))) > 0.9


@pytest.mark.parametrize("n", [2, 3, 5])
def test_very_few_points(n, rng):
    assert len(SubspaceClustering().fit(rng.standard_normal((n, 4))).labels_) == n


def test_odd_points(rng):
    model = SubspaceClustering().fit(np.ones((9, 3)))
    assert (model.n_clusters_, model.selection_) == (1, None)
    assert len(SubspaceClustering().fit(np.column_stack([rng.standard_normal((30, 4)), np.ones(30)])).labels_) == 30
    with pytest.raises(ValueError, match="minimum of 2"):
        SubspaceClustering().fit(np.ones((1, 3)))
    with pytest.raises(ValueError, match="must not exceed"):
        SubspaceClustering(50).fit(rng.standard_normal((9, 3)))
    with pytest.raises(ValueError, match="effort"):
        SubspaceClustering(effort="heroic").fit(np.eye(9))


def test_more_columns_than_memory(monkeypatch, rng):
    X = rng.standard_normal((40, 3000))
    monkeypatch.setattr("subspaces.utils.memory.available_bytes", lambda: 4_000_000)
    with pytest.raises(MemoryError, match='the search on 40 points for what is "auto" needs'):
        SubspaceClustering(2).fit(X)


def test_scalings_that_make_sense(rng):
    assert scalings_tried(counts()[0])[0] == ("log",)
    assert scalings_tried(load_wine().data)[0] == ("standard",)
    assert scalings_tried(rng.random((60, 100)))[0] == (None, "unit")
    assert scalings_tried(moons()[0])[0] == (None,)
    assert scalings_tried(moons()[0] * [1, 1000])[0] == ("standard",)
    assert scalings_tried(sparse.csr_array(counts()[0]))[0] == ("log",)


def test_more_effort_tries_more():
    for n_features in (2, 20, 900):
        tried = [families_tried(n_features, effort) for effort in ("fast", "balanced", "thorough")]
        numbers = [sum(len(family.n_nonzeros) for family in families) for families in tried]
        assert numbers == sorted(set(numbers))


@pytest.mark.filterwarnings("default:a point occurs", "default:the graph has")  # ours, and right about these points
@parametrize_with_checks([SubspaceClustering(n_clusters=3, effort="fast")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_what_was_chosen_is_fitted_without_another_search(data, monkeypatch):
    X = data[0]
    model, other = SubspaceClustering().fit(X), SubspaceClustering()
    chosen = other.choose(X)
    monkeypatch.setattr("subspaces.selection.auto.choose", lambda *_, **__: pytest.fail("it was searched"))
    np.testing.assert_array_equal(other.fit_chosen(X, chosen).labels_, model.labels_)
    assert other.estimator_.get_params() == model.estimator_.get_params()
    with pytest.raises(ValueError, match="chosen must be of the same samples"):
        other.fit_chosen(X[1:], chosen)
