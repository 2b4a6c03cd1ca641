"""A plan decides and refuses everything before anything is computed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from method_data import GRAPH, quiet
from subspaces import KTRR, LRR2, LSR1, SC, SMCE, SSC, SSCOMP, TRR, SubspaceClustering
from subspaces.engine import stages
from subspaces.engine.plan import STAGES, Shape
from subspaces.kernels import KERNELS, RBF, FunctionKernel, Precomputed
from subspaces.utils import memory

X = np.random.default_rng(0).standard_normal((100, 6))


@pytest.fixture
def nothing_computed(monkeypatch):
    """Whoever computes a kernel, coefficients or any other stage fails the test."""

    def forbidden(*_, **__):
        pytest.fail("something was computed before everything was checked")

    for kind in KERNELS.values():
        for name in ("gram", "packed_gram", "cross", "features", "fit"):
            monkeypatch.setattr(kind, name, forbidden)
    for name in ("scaled", "see", "graph", "embed", "embed_coarsely", "cut"):
        monkeypatch.setattr(stages, name, forbidden)
    monkeypatch.setattr(stages, "represent", forbidden)
    return forbidden


REFUSED = {
    "unknown graph_params": (KTRR(3, graph="mass", graph_params={"shore": 1}), X, r"may hold \['share'\]"),
    "graph_params of another graph": (KTRR(3, graph_params={"share": 0.5}), X, "may hold nothing"),
    "share that is no share": (KTRR(3, graph="mass", graph_params={"share": 7}), X, r"share must be in \(0, 1\]"),
    "share that is no number": (SSC(3, graph_params={"share": "most"}), X, "share in graph_params must be a number"),
    "share of SMCE": (SMCE(3, graph_params={"share": 0}), X, "share"),
    "power that is no number": (LRR2(3, graph_params={"power": "4"}), X, "power"),
    "η beside another graph": (SSC(3, graph_params={"n_nonzero": 5}), X, "may hold"),
    "η of zero": (SSC(3, graph="symmetric", graph_params={"n_nonzero": 0}), X, "n_nonzero must be a positive"),
    "unknown ranking": (SSC(3, graph="column", graph_params={"by": "size"}), X, "by must be one of"),
    "dscnet without a number": (KTRR(None, assign_labels="modularity", graph="dscnet"), X, "needs n_clusters"),
    "no number": (KTRR(None), X, "n_clusters=None needs"),
    "more clusters than points": (KTRR(101), X, "must not exceed"),
    "coarse, few points": (KTRR(3, spectral="coarse"), X, "64 points per cluster"),
    "coarse, sparse points": (KTRR(1, spectral="coarse"), sparse.csr_array(np.eye(100, 300)), "needs dense points"),
    "coarse, kernel matrix": (KTRR(1, kernel="precomputed", spectral="coarse"), np.eye(80), "needs dense points"),
    "no feature map": (KTRR(3, solver="low_rank"), X, "explicit feature map"),
    "no distances": (KTRR(3, kernel="quadratic", solver="two_scale"), X, "kernel of distances"),
    "two scales of TRR": (TRR(3, solver="two_scale"), X, "kernel of distances"),
    "two scales of LSR1": (LSR1(3, solver="two_scale"), X, "kernel of distances"),
    "two scales of sparse points": (TRR(3, solver="two_scale"), sparse.csr_array(X), "kernel of distances"),
    "no feature map of a matrix": (KTRR(3, kernel="precomputed", solver="low_rank"), np.eye(9), "feature map"),
    "matrix not square": (KTRR(3, kernel="precomputed"), X, "must be square"),
    "matrix scaled": (KTRR(3, kernel="precomputed", scaling="unit"), np.eye(9), "has no meaning"),
    "kernel_params of none": (KTRR(3, kernel_params={"degree": 2}), X, "takes no kernel_params"),
    "kernel_params unknown": (KTRR(3, kernel="polynomial", kernel_params={"deg": 2}), X, "polynomial kernel may hold"),
    "two bandwidths": (KTRR(3, kernel=RBF(2.0), bandwidth=3.0), X, "contradicts"),
}


@pytest.mark.parametrize("ask", ["plan", "fit"])
@pytest.mark.parametrize(("model", "points", "words"), REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.usefixtures("nothing_computed")
def test_refused_before_anything_is_computed(model, points, words, ask):
    with pytest.raises(ValueError, match=words):
        getattr(model, ask)(points)
    assert not hasattr(model, "labels_")


@pytest.mark.parametrize("ask", ["plan", "fit"])
@pytest.mark.parametrize("cls", [p for p in GRAPH if p.id not in ("ensc", "smce")])  # sparse in all they do
@pytest.mark.usefixtures("nothing_computed")
def test_what_does_not_fit_in_memory_is_refused_first(cls, ask, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    with pytest.raises(MemoryError, match="are free"):
        getattr(cls(3), ask)(X)


@pytest.mark.parametrize(
    "model",
    [
        KTRR(3, solver="dense"),
        KTRR(3, solver="two_scale"),
        KTRR(3, kernel="quadratic", solver="low_rank"),
        SSCOMP(3),
        SC(3, n_neighbors=5),
    ],
    ids=str,
)
@pytest.mark.usefixtures("nothing_computed")
def test_every_route_asks_for_memory(model, monkeypatch):
    asked = []
    monkeypatch.setattr(memory, "require", lambda n_bytes, *_: asked.append(n_bytes))
    model.plan(X)
    assert asked


def test_memory_is_asked_for_by_the_byte(monkeypatch):
    """Half of the kernel matrix and a little; copies of dense samples in canonical order and, if scaled, scaled."""
    asked = []
    monkeypatch.setattr(memory, "require", lambda n_bytes, what, remedy: asked.append((n_bytes, what)))
    n, wide = 100, np.pad(X, ((0, 0), (0, 394)))
    KTRR(3, solver="dense").plan(X)
    KTRR(3, solver="dense", scaling="unit").plan(X)
    KTRR(3, solver="dense").plan(sparse.csr_array(wide))
    SSC(3).plan(sparse.csr_array(wide))
    SSCOMP(3).plan(X)
    assert asked == [
        (int(0.6 * 8 * n**2) + 8 * n * 6, "the 100 × 100 matrix of KTRR"),
        (int(0.6 * 8 * n**2) + 2 * 8 * n * 6, "the 100 × 100 matrix of KTRR"),
        (int(1.1 * 8 * n**2), "the 100 × 100 matrix of KTRR"),
        (8 * n * 400, "the 100 × 400 points as a dense array"),
        (int(2.25 * 8 * n**2), "the 100 × 100 matrix of SSC"),
        (2 * 8 * n * 6 + 8 * n * 6, "the 100 × 6 copies of SSCOMP"),
    ]


@pytest.mark.usefixtures("nothing_computed")
def test_a_search_is_not_begun_for_what_is_refused_anyway():
    for model, words in (
        (SubspaceClustering(101), "must not exceed"),
        (SubspaceClustering(3, kernel=Precomputed(), scaling="unit"), "has no meaning"),
        (SubspaceClustering(3, kernel_params={"degree": 2}), "takes no kernel_params"),
    ):
        with pytest.raises(ValueError, match=words):
            model.fit(X)


@pytest.mark.parametrize("cls", GRAPH)
@pytest.mark.usefixtures("nothing_computed")
def test_a_plan_computes_nothing_and_leaves_the_estimator_alone(cls):
    model = cls(3)
    before = dict(vars(model))
    plan = model.plan(X)
    assert vars(model) == before
    assert plan.shape == Shape(100, 6, False)
    assert plan.method == cls.__name__
    assert (plan.represent is None) != (plan.affinity is None)
    given = model.get_params(deep=False)  # a plan may settle what is None
    assert set(plan.settings) == set(given)
    assert {name: plan.settings[name] for name, value in given.items() if value is not None} == {
        name: value for name, value in given.items() if value is not None
    }


def test_a_plan_says_which_route_and_why():
    assert KTRR(3).plan(X).solver == "dense"
    assert TRR(3).plan(X).solver == "low_rank"
    assert TRR(3).plan(np.tile(X, 20)).solver == "dense"  # more features than points
    assert KTRR(3, solver="two_scale").plan(X).solver_reason == "as asked"
    assert KTRR(3, spectral="coarse").plan(np.tile(X, (2, 1))).between is not None
    assert KTRR(3, spectral="coarse", assign_labels="modularity").plan(np.tile(X, (2, 1))).between is None


# ------------------------------------------------------------------ keys of the cache

CHANGES = {
    "kernel": {"scaling": "unit", "kernel": "exponential", "bandwidth": 2.0},
    "coefficients": {"reg": 0.5, "affine": True, "solver": "two_scale"},
    "graph": {"n_nonzero": 4, "by": "value", "graph": "column"},
    "embedding": {"n_clusters": 4, "connect": False, "spectral": "full"},
    "cut": {"assign_labels": "cluster_qr", "n_init": 3, "init": "random", "random_state": 1},
}
"""What changes a stage first."""


@pytest.mark.parametrize(
    ("stage", "name"), [(stage, name) for stage, names in CHANGES.items() for name in names], ids=str
)
def test_a_parameter_changes_the_keys_from_its_stage_on(stage, name):
    one = KTRR(3).plan(X)
    two = KTRR(**{"n_clusters": 3, name: CHANGES[stage][name]}).plan(X)
    for other in STAGES:
        before = STAGES.index(other) < STAGES.index(stage)
        assert (one.key(other) == two.key(other)) == (before and name != "solver"), other  # a route is in every key
    assert one.key("communities") != one.key("graph")


def test_every_parameter_belongs_to_a_stage():
    named = {name for names in CHANGES.values() for name in names}
    elsewhere = {"kernel_params", "graph_params", "out_of_sample", "verbose"}
    assert set(KTRR().get_params()) == named | elsewhere


@pytest.mark.parametrize(
    ("parameters", "stage"),
    [
        ({}, "cut"),
        ({"kernel": "linear", "solver": "low_rank"}, "cut"),
        ({"spectral": "coarse"}, "embedding"),
        ({"solver": "two_scale"}, "coefficients"),
        ({"solver": "two_scale", "spectral": "coarse"}, "coefficients"),
    ],
    ids=str,
)
def test_a_seed_changes_the_keys_of_all_that_is_drawn(parameters, stage):
    points = np.tile(X, (2, 1))
    one, two = (KTRR(3, random_state=seed, **parameters).plan(points) for seed in (0, 1))
    assert one.seed != two.seed
    for other in STAGES:
        assert (one.key(other) == two.key(other)) == (STAGES.index(other) < STAGES.index(stage)), other


def test_the_content_of_long_arrays_is_in_the_key():
    def weighted(A, B, weights, **_):
        return (A * weights[: A.shape[1]]) @ B.T

    one, two = np.ones(5000), np.ones(5000)
    two[2500] = 2  # where a printed array has dots
    keys = [
        KTRR(3, kernel=weighted, kernel_params={"weights": one, "more": [other]}).plan(X).key("kernel")
        for other in (one, one.copy(), two, one.astype(np.float32), np.array([None, 1]), np.array(None))
    ]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 5
    kernels = [FunctionKernel(weighted, {"weights": weights}) for weights in (one, one.copy(), two)]
    given, same, other = (KTRR(3, kernel=kernel).plan(X).key("kernel") for kernel in kernels)
    assert given == same != other
    assert KTRR(3, kernel=RBF(2.0)).plan(X).key("kernel") == KTRR(3, kernel=RBF(2.0)).plan(X).key("kernel")


def test_a_rank_that_follows_from_the_number_of_clusters_is_in_the_key_of_the_graph():
    plan = KTRR(3, graph="dscnet").plan(X)
    assert plan.key("graph") != replace(plan, n_clusters=4).key("graph")
    plan = KTRR(3).plan(X)
    assert plan.key("graph") == replace(plan, n_clusters=4).key("graph")


@pytest.mark.parametrize("cls", GRAPH)
def test_methods_share_no_key(cls):
    plan = cls(3).plan(X)
    assert all(key[1] == cls.__name__ for key in map(plan.key, STAGES))
    with quiet():
        assert cls(3).plan(X).key("cut") == plan.key("cut")
