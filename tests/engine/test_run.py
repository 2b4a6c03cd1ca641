"""One run from points to labels: cached, stopped, shuffled, and by hand."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from method_data import GRAPH, quiet, union_of_subspaces
from subspaces import KTRR, SubspaceClustering
from subspaces.engine import landmark_run, stages
from subspaces.engine.plan import STAGES
from subspaces.engine.run import Cache, reusing, run
from subspaces.utils.ordering import canonical_order, hash_rows
from subspaces.utils.progress import PLAIN, progress_to

SETTINGS = {
    "default": {},
    "printed": {"graph": "column", "kernel": "quadratic"},
    "low rank": {"kernel": "linear", "solver": "low_rank", "scaling": "unit"},
    "two scales": {"solver": "two_scale"},
    "coarse": {"solver": "two_scale", "spectral": "coarse"},
    "coarse, dense": {"solver": "dense", "spectral": "coarse"},
    "modularity": {"assign_labels": "modularity"},
    "free modularity": {"n_clusters": None, "assign_labels": "modularity"},
    "discretize": {"assign_labels": "discretize", "connect": False},
    "all pairs": {"graph": "row_space", "n_nonzero": None},
    "mass": {"graph": "mass", "graph_params": {"share": 0.5}},
}
every_setting = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())


@pytest.fixture
def X(seed):
    return union_of_subspaces(seed, (80, 80, 80))[0]


def model_of(settings):
    return KTRR(**{"n_clusters": 3, **settings})


def same_sparse(one, two):
    assert type(one) is type(two)
    if one is not None:
        for name in ("indptr", "indices", "data"):
            assert_array_equal(getattr(one, name), getattr(two, name))


def same_journey(one, two):
    """Bit for bit."""
    same_sparse(one.graph.W, two.graph.W)
    same_sparse(one.graph.coefficients, two.graph.coefficients)
    assert one.graph.n_components == two.graph.n_components
    assert_array_equal(one.graph.isolated, two.graph.isolated)
    assert one.graph.evidence.penalty == two.graph.evidence.penalty
    assert one.graph.evidence.kernel == two.graph.evidence.kernel
    assert (one.embedding is None) == (two.embedding is None)
    if one.embedding is not None:
        assert_array_equal(one.embedding.rows, two.embedding.rows)
        assert_array_equal(one.embedding.eigenvalues, two.embedding.eigenvalues)
        assert (one.embedding.groups is None) == (two.embedding.groups is None)
    assert_array_equal(one.labels, two.labels)
    assert_array_equal(one.order, two.order)
    assert_array_equal(one.row_hashes, two.row_hashes)


@pytest.fixture
def computed(monkeypatch):
    """How often each stage was computed."""
    counts = Counter()

    def counted(owner, name, stage):
        real = getattr(owner, name)

        def call(*args, **options):
            counts[stage] += 1
            return real(*args, **options)

        monkeypatch.setattr(owner, name, call)

    counted(stages, "see", "kernel")
    counted(stages, "represent", "coefficients")
    counted(stages, "graph", "graph")
    counted(stages, "embed", "embedding")
    counted(stages, "embed_coarsely", "embedding")
    counted(stages, "cut", "cut")
    return counts


def once(settings):
    return {stage: 1 for stage in STAGES if stage != "embedding" or settings.get("assign_labels") != "modularity"}


# ------------------------------------------------------------------ the cache


@every_setting
def test_with_a_cache_each_stage_is_computed_once_and_nothing_changes(settings, X, computed):
    plan, cache = model_of(settings).plan(X), Cache()
    first = run(plan, X, cache=cache)
    second = run(plan, X, cache=cache)
    assert computed == once(settings)
    assert set(first.timings) == set(once(settings))
    assert not second.timings or set(second.timings) == {"graph"}  # a join is made anew
    lone = run(plan, X)
    same_journey(first, second)
    same_journey(first, lone)


@pytest.mark.parametrize("cls", GRAPH)
def test_every_method_with_a_cache(cls, X, computed):
    with quiet():
        plan, cache = cls(3).plan(X), Cache()
        first, second = (run(plan, X, cache=cache) for _ in range(2))
        assert computed == once({})
        lone = run(plan, X)
    assert_array_equal(first.labels, second.labels)
    assert_array_equal(first.graph.W.toarray(), lone.graph.W.toarray())
    assert_array_equal(second.graph.W.toarray(), lone.graph.W.toarray())
    assert_array_equal(first.labels, lone.labels)


@pytest.mark.parametrize(
    "changed", [{"n_init": 2}, {"random_state": 5}, {"init": "random"}, {"assign_labels": "cluster_qr"}]
)
def test_another_cut_recomputes_the_cut_alone(changed, X, computed):
    cache = Cache()
    run(KTRR(3).plan(X), X, cache=cache)
    computed.clear()
    plan = KTRR(3, **changed).plan(X)
    found = run(plan, X, cache=cache)
    assert computed == {"cut": 1}
    same_journey(found, run(plan, X))


@pytest.mark.parametrize(
    ("settings", "again"),
    [
        ({"solver": "two_scale"}, {"coefficients", "graph", "embedding", "cut"}),
        ({"spectral": "coarse"}, {"embedding", "cut"}),
        ({"solver": "dense"}, {"cut"}),
    ],
    ids=["two_scale", "coarse", "dense"],
)
def test_another_seed_recomputes_all_that_is_drawn(settings, again, X, computed):
    """What landmarks were drawn with an earlier seed is no result of this one."""
    X = np.vstack([X, X + 0.01])  # more points than landmarks
    cache = Cache()
    run(KTRR(3, random_state=0, **settings).plan(X), X, cache=cache)
    computed.clear()
    plan = KTRR(3, random_state=1, **settings).plan(X)
    found = run(plan, X, cache=cache)
    assert set(computed) == again
    same_journey(found, run(plan, X))


def test_settings_in_turn_with_one_cache_are_those_without(X):
    cache = Cache()
    for _ in range(2):
        for settings in SETTINGS.values():
            plan = model_of(settings).plan(X)
            same_journey(run(plan, X, cache=cache), run(plan, X))


def test_a_fit_from_the_cache_is_a_fit(X):
    cache, lone = Cache(), KTRR(3).fit(X)
    for _ in range(2):
        with reusing(cache):
            model = KTRR(3).fit(X)
        assert {name for name in vars(model) if name.endswith("_")} == {
            name for name in vars(lone) if name.endswith("_")
        }
        assert_array_equal(model.labels_, lone.labels_)
        assert_array_equal(model.eigenvalues_, lone.eigenvalues_)
        assert_array_equal(model.predict(X * 0.99), lone.predict(X * 0.99))


def test_a_cache_keeps_as_much_as_it_may(X, computed):
    cache = Cache(kernel=1, coefficients=0, graph=1)
    regs = (0.5, 1.0, 0.5)
    for reg in regs:
        run(KTRR(3, reg=reg).plan(X), X, cache=cache)
    assert computed == {"kernel": 1, "coefficients": 3, "graph": 3, "embedding": 2, "cut": 2}
    assert cache.find(KTRR(3, reg=1.0).plan(X).key("graph")) is None
    assert cache.find(KTRR(3, reg=0.5).plan(X).key("graph")) is not None
    assert not cache.keeps("coefficients")


def test_the_kernel_matrix_in_the_cache_is_not_overwritten(X):
    cache = Cache()
    for reg in (0.1, 1.0, 10.0):
        plan = KTRR(3, reg=reg).plan(X)
        same_journey(run(plan, X, cache=cache), run(plan, X))
    (seen,) = cache._kept["kernel"].values()
    ordered = X[canonical_order(X, hash_rows(X))]
    assert_array_equal(seen.source.half, seen.kernel.packed_gram(ordered).half)
    assert_allclose(seen.source.whole(), seen.kernel.gram(ordered), rtol=1e-12)


# ------------------------------------------------------------------ stages


@pytest.mark.parametrize(("until", "last"), [("graph", 3), ("embedding", 4), ("cut", 5)])
def test_a_run_ends_where_it_is_told_to(until, last, X, computed):
    found = run(KTRR(3).plan(X), X, until=until)
    assert list(found.timings) == list(STAGES[:last])
    assert set(computed) == set(STAGES[:last])
    assert (found.embedding is None) == (until == "graph")
    assert (found.labels is None) == (until != "cut")
    assert_array_equal(found.graph.W.toarray(), KTRR(3).fit(X).affinity_matrix_.toarray())


@every_setting
def test_phases_are_the_timed_stages_in_order(settings, X):
    told = []
    with progress_to(lambda name, done, total: told.append(name)):
        found = run(model_of(settings).plan(X), X)
    assert list(found.timings) == list(once(settings))
    stages_told = [name for name in dict.fromkeys(told) if name in PLAIN.values() and name != PLAIN["landmarks"]]
    assert told[0] == "Putting the points in order"
    assert stages_told == [PLAIN[stage] for stage in found.timings]
    assert min(found.timings.values()) >= 0


@pytest.mark.parametrize(
    "model", [SubspaceClustering(), SubspaceClustering(3, kernel="rbf", assign_labels="kmeans")], ids=str
)
def test_parameters_stay_what_the_user_gave_in_every_phase_of_an_automatic_fit(model, X):
    given, seen = model.get_params(), []
    with progress_to(lambda *_: seen.append(model.get_params())):
        model.fit(X[::2])
    assert len(seen) > 3
    assert all(parameters == given for parameters in [*seen, model.get_params()])


# ------------------------------------------------------------------ journeys


@every_setting
def test_the_order_of_the_rows_does_not_matter(settings, X, rng):
    order = rng.permutation(len(X))
    model = model_of(settings)
    one, two = run(model.plan(X), X), run(model.plan(X), X[order])
    assert adjusted_rand_score(one.labels[order], two.labels) == 1
    same = np.unique(np.stack([one.labels[order], two.labels]), axis=1)
    assert same.shape[1] == one.n_clusters == two.n_clusters
    assert_array_equal(one.graph.W[order][:, order].toarray(), two.graph.W.toarray())
    assert_array_equal(two.labels[np.sort(np.unique(two.labels, return_index=True)[1])], np.arange(two.n_clusters))


def test_points_that_are_all_equal_are_one_cluster_without_any_stage(computed):
    found = run(KTRR(1).plan(np.ones((9, 2))), np.ones((9, 2)))
    assert found.all_equal
    assert found.n_clusters == 1
    assert not found.timings
    assert not computed


def test_a_plan_can_be_run_again(X):
    """The plan's seed is drawn once: two runs of one plan are the same even where the estimator's generator goes on."""
    plan = KTRR(3, random_state=np.random.RandomState(3)).plan(X)
    same_journey(run(plan, X), run(plan, X))
    other = replace(plan, seed=plan.seed + 1)
    assert adjusted_rand_score(run(other, X).labels, run(plan, X).labels) == 1


# ------------------------------------------------------------------ methods with landmarks


@dataclass(frozen=True)
class Halves:
    """Labels by the sign of the first feature, in units of the scaling."""

    labels: np.ndarray
    threshold: float = 0.0

    def label(self, X):
        return (X[:, 0] > self.threshold).astype(np.intp)


def test_a_run_by_landmarks(rng):
    X = rng.standard_normal((40, 3))
    X[:5] = X[5]  # six copies
    expected = (X[:, 0] > 0).astype(np.intp)
    wrong = expected.copy()
    wrong[[0, 1]] = 1 - expected[5]  # two of the six
    wrong[20] = -1
    seen = []

    def solve(points, stage):
        with stage("cluster"):
            seen.append(points)
            return Halves(wrong)

    found = landmark_run.run_landmarks(X, solve, n_clusters=2, scaling="max")
    kept = np.arange(40) != 20
    assert_array_equal(found.labels[kept], expected[kept])
    assert found.labels[20] == -1
    assert found.n_clusters == 2
    assert_array_equal(found.model.labels, found.labels)
    assert_array_equal(found.predictor.label(X)[kept], expected[kept])
    assert_array_equal(found.order, canonical_order(X, hash_rows(X)))
    assert list(found.timings) == ["cluster"]
    assert_allclose(seen[0].take(np.arange(40)), X / np.abs(X).max())
    assert found.predictor.largest == np.abs(X).max()
    assert found.predictor.moved == {}


def test_a_cluster_of_other_clusters_copies_is_none(rng):
    X = np.repeat(rng.standard_normal((4, 2)), 3, axis=0)
    labels = np.array([0, 0, 0, 1, 1, 2, 1, 1, 1, 1, 1, 1])  # two of the second kind say 1, the third 2
    found = landmark_run.run_landmarks(X, lambda points, stage: Halves(labels), n_clusters=3)
    assert_array_equal(found.labels, np.repeat([0, 1], [3, 9]))
    assert found.predictor.moved == {2: 1}
    assert found.n_clusters == 2
    one = landmark_run.run_landmarks(X, lambda points, stage: Halves(np.zeros(12, np.intp)), n_clusters=3)
    assert one.predictor.model is None
    assert_array_equal(one.predictor.label(X + 9), 0)


def test_equal_samples_are_one_cluster_without_landmarks():
    X = np.ones((6, 2), dtype=np.float32)
    with pytest.warns(ConvergenceWarning, match="all 6 points are equal: 1 cluster found instead of n_clusters=2"):
        found = landmark_run.run_landmarks(X, None, n_clusters=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = landmark_run.run_landmarks(np.eye(6), None, n_clusters=1)
        landmark_run.run_landmarks(X, None, n_clusters=None)
    for outcome in (found, one):
        assert_array_equal(outcome.labels, 0)
        assert len(outcome.labels) == 6
        assert outcome.n_clusters == 1
        assert outcome.model is None
    assert found.predictor.dtype == np.float32
    landmark_run.check_landmarks(4, 4)
    with pytest.raises(ValueError, match="n_landmarks=3 must not be less than n_clusters=4"):
        landmark_run.check_landmarks(4, 3)
