"""The same labels on every processor, with any number of threads, in any order of the rows: ``docs/trust.md``."""

from __future__ import annotations

import numpy as np
import pytest
from cases import CASES, DATA, STORE, labels_of, versions
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from method_data import ALL, GRAPH, quiet
from subspaces import KTRR, SubspaceClustering
from subspaces.estimators.sampled import SampledClusterer
from subspaces.kernels import RBF
from subspaces.selection import choose

STORED = dict(np.load(STORE)) if STORE.exists() else {}


@pytest.mark.parametrize("case", CASES)
def test_labels_are_those_of_other_machines(case):
    """Stored under OpenBLAS's Haswell kernels on one thread; ``.ci/cpus`` runs this under every type."""
    if STORED["versions"] != versions():
        pytest.skip(f"the labels were stored with {STORED['versions']}, here are {versions()}")
    if case not in STORED:
        pytest.skip(f"no labels are stored yet for {case!r}: python tests/machines/cases.py stores them")
    assert_array_equal(labels_of(case), STORED[case])


def shuffled(X, seed):
    rows = np.random.default_rng(seed).permutation(X.shape[0])
    return X[rows], rows


def labels(estimator, X):
    with quiet():
        return estimator.fit(X).labels_


@pytest.mark.parametrize("data", ["subspaces", "grid"])
@pytest.mark.parametrize("cls", ALL)
def test_order_of_the_rows(cls, data, seed):
    X = DATA[data]()
    expected = labels(cls(5), X)
    for draw in range(3):
        Z, rows = shuffled(X, seed + draw)
        assert adjusted_rand_score(labels(cls(5), Z), expected[rows]) == 1


@pytest.mark.parametrize("data", ["digits", "iris", "grid"])
@pytest.mark.parametrize("n_clusters", [6, None])
def test_order_of_the_rows_in_a_search(data, n_clusters, seed):
    X = DATA[data]()
    Z, rows = shuffled(X, seed)
    one, two = SubspaceClustering(n_clusters), SubspaceClustering(n_clusters)
    assert adjusted_rand_score(labels(two, Z), labels(one, X)[rows]) == 1
    assert one.selection_.parameters == two.selection_.parameters
    assert one.selection_.winner.score == two.selection_.winner.score
    assert_array_equal(X[one.selection_.searched], Z[two.selection_.searched])


@pytest.mark.parametrize(
    "estimator",
    [
        KTRR(10, solver="two_scale", spectral="coarse"),
        KTRR(10, solver="two_scale", assign_labels="modularity"),
        KTRR(10, kernel="quadratic", solver="low_rank", assign_labels="modularity"),
        KTRR(10, assign_labels="cluster_qr"),
        KTRR(10, assign_labels="discretize"),
        KTRR(None, assign_labels="modularity"),
        SampledClusterer(10, n_landmarks=200),
    ],
    ids=str,
)
def test_order_of_the_rows_on_other_routes(estimator, seed):
    X = np.vstack([DATA["digits"](), DATA["digits"]() + 0.5])
    expected = labels(estimator, X)
    Z, rows = shuffled(X, seed)
    assert adjusted_rand_score(labels(estimator, Z), expected[rows]) == 1


def test_order_of_the_rows_of_a_kernel_matrix(seed):
    X = DATA["digits"]()
    K = np.exp(-np.square(X[:, None] - X).sum(axis=-1) / 3000)
    expected = labels(KTRR(10, kernel="precomputed"), K)
    rows = np.random.default_rng(seed).permutation(len(K))
    assert adjusted_rand_score(labels(KTRR(10, kernel="precomputed"), K[np.ix_(rows, rows)]), expected[rows]) == 1


@pytest.mark.parametrize("cls", GRAPH)
def test_what_was_found_comes_in_the_order_of_the_rows(cls, seed):
    X = DATA["subspaces"]()
    Z, rows = shuffled(X, seed)
    with quiet():
        one, two = cls(5).fit(X), cls(5).fit(Z)
    assert_array_equal(one.affinity_matrix_[rows][:, rows].toarray(), two.affinity_matrix_.toarray())
    assert hasattr(one, "coefficients_") == (cls.__name__ not in ("LSA", "TSC", "SC"))
    if hasattr(one, "coefficients_"):
        assert_array_equal(one.coefficients_[rows][:, rows].toarray(), two.coefficients_.toarray())
    assert_array_equal(one.embedding_[rows], two.embedding_)
    assert_array_equal(two.predict(Z), two.labels_)


@pytest.mark.parametrize("assign_labels", ["kmeans", "modularity"])
@pytest.mark.parametrize("data", ["grid", "digits", "iris"])
def test_storage_units_and_order_of_features(data, assign_labels, seed):
    X = DATA[data]()
    expected = labels(KTRR(6, assign_labels=assign_labels), X)
    columns = np.random.default_rng(seed).permutation(X.shape[1])
    moved = X if data == "grid" else X[:, columns]  # where points tie, the place of a value may decide
    for other in (np.asfortranarray(X), sparse.csr_array(X), 3 * X, X / 1000, moved):
        assert adjusted_rand_score(labels(KTRR(6, assign_labels=assign_labels), other), expected) == 1


def test_threads_with_ties():
    X = np.round(2 * np.random.default_rng(0).standard_normal((800, 5)))
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            found.append(labels(KTRR(6, assign_labels="modularity"), X))
    assert_array_equal(*found)


@pytest.mark.parametrize("assign_labels", ["kmeans", "modularity"])
@pytest.mark.parametrize("data", ["digits", "subspaces"])
def test_last_bits_decide_nothing(data, assign_labels, monkeypatch, rng):
    """What another processor does to the kernel matrix: its last bit is another."""
    X, gram = DATA[data](), RBF.packed_gram

    def noisy(kernel, points):
        K = gram(kernel, points)
        np.multiply(K.half, 1 + rng.choice([-1, 0, 1], K.half.shape) * np.finfo(K.dtype).eps, out=K.half)
        return K

    expected = labels(KTRR(5, assign_labels=assign_labels), X)
    monkeypatch.setattr(RBF, "packed_gram", noisy)
    for _ in range(3):
        assert_array_equal(labels(KTRR(5, assign_labels=assign_labels), X), expected)


def test_a_search_names_what_is_as_good():
    found = choose(DATA["digits"](), n_clusters=10)
    assert found.runner_up.share <= 1
    assert found.runner_up.similarity < 0.98
    assert found.runner_up.trial.kernel in str(found.runner_up)
