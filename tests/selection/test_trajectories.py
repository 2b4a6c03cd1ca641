"""Tracks of a film: recognised from the numbers, and clustered with nothing to set."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.ndimage import gaussian_filter1d
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from subspaces import KTRR, SubspaceClustering
from subspaces.datasets import make_motions, make_subspaces
from subspaces.metrics import accuracy
from subspaces.selection import candidates, choose
from subspaces.selection.graphs import Method, candidates_of
from subspaces.selection.trajectories import are_tracks

AUTO = dict.fromkeys(("kernel", "reg", "n_nonzero", "scaling", "affine", "assign_labels"), "auto")


@pytest.fixture
def film(seed):
    return make_motions(3, [30, 40, 50], 15, random_state=seed)


def hopkins(folder):
    path = folder / "hopkins155_part.npz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    with np.load(path) as found:
        names = sorted(name[:-2] for name in found.files if name.endswith("_X"))
        return [(found[f"{name}_X"].astype(float), found[f"{name}_y"]) for name in names]


# ---------------------------------------------------------------- recognised or not


@pytest.mark.parametrize("n_motions", [1, 2, 5, 9])
@pytest.mark.parametrize("n_frames", [8, 15, 40])
def test_made_films_are_recognised(n_motions, n_frames, seed):
    assert are_tracks(make_motions(n_motions, 30, n_frames, random_state=seed)[0])


@pytest.mark.parametrize(
    "seen",
    [
        lambda X: np.hstack([X[:, ::2], X[:, 1::2]]),  # all x, then all y
        lambda X: 300 * X + 320,  # pixels
        lambda X: 1e200 * X,
        lambda X: 1e-200 * X,
        lambda X: X.astype(np.float32),
        lambda X: X[::-1],
        lambda X: X.reshape(len(X), -1, 2)[..., ::-1].reshape(X.shape),  # y before x
    ],
    ids=["stacked", "pixels", "large", "small", "single", "rows", "swapped"],
)
def test_in_every_layout_and_unit(film, seen):
    assert are_tracks(seen(film[0]))


def spectra(rng):
    """Smooth from column to column, and of low rank."""
    t = np.linspace(0, 1, 120)
    pure = np.array([np.exp(-(((t - place) / 0.1) ** 2)) for place in rng.random(5)])
    return rng.random((80, 5)) @ pure


def two_detectors(rng):
    """A spectrum with a step in the middle, where all x would end."""
    X = spectra(rng)
    X[:, 60:] += 0.05 * rng.standard_normal((80, 1))
    return X


def two_channels(rng):
    """Two series of each object, by turns: smooth in pairs, but no place that stays."""
    t = np.linspace(0, 2 * np.pi, 40)
    waves = [np.sin(t + phase) + 0.5 * np.sin(2 * t + 2 * phase) for phase in 6 * rng.random((2, 100, 1))]
    return np.stack(waves, axis=2).reshape(100, -1)


def journeys(rng):
    """From one place of the map to any other."""
    start, end = rng.uniform(-1, 1, (2, 200, 1, 2))
    bend, t = 0.2 * rng.standard_normal((200, 1, 2)), np.linspace(0, 1, 30)[None, :, None]
    return (start + (end - start) * t + 4 * bend * t * (1 - t)).reshape(200, -1)


def walks(rng):
    return np.cumsum(rng.standard_normal((150, 40, 2)), axis=1).reshape(150, -1)


def outlines(rng):
    """Shapes in the plane, point by point along the rim."""
    t, z = 2 * np.pi * np.arange(60) / 60, np.zeros((120, 60), dtype=complex)
    for order in (1, 2, 3, 4, 5):
        for sign in (1, -1):
            z += (rng.standard_normal((120, 2)) @ [1, 1j])[:, None] / order * np.exp(1j * sign * order * t)
    return np.stack([z.real, z.imag], axis=2).reshape(120, -1)


def leaves(rng):
    """Each point about a place of its own, in a way of its own: no motion that any two share."""
    sway = gaussian_filter1d(rng.standard_normal((150, 60, 2)), 3, axis=1)
    return (rng.uniform(-1, 1, (150, 1, 2)) + 0.4 * sway).reshape(150, -1)


@pytest.mark.parametrize(
    "points",
    [
        leaves,
        spectra,
        two_detectors,
        two_channels,
        journeys,
        walks,
        outlines,
        lambda rng: load_iris().data,
        lambda rng: load_wine().data,
        lambda rng: load_digits().data,
        lambda rng: load_breast_cancer().data,
        lambda rng: make_subspaces(3, 3, 40, 30, random_state=rng.integers(99))[0],
        lambda rng: rng.poisson(0.3, (90, 60)).astype(float),
        lambda rng: rng.standard_normal((90, 2)),
        lambda rng: np.zeros((30, 40)),
        lambda rng: np.ones((30, 40)),
        lambda rng: np.repeat(rng.standard_normal((60, 1)), 40, axis=1),  # x equals y
    ],
    ids=lambda points: points.__name__,
)
def test_nothing_else_is(points, rng):
    assert not are_tracks(points(rng))


def test_what_cannot_be_told(film):
    X, _ = film
    assert not are_tracks(sparse.csr_array(X))
    assert not are_tracks(X[:, :-1])  # half a frame
    assert not are_tracks(X[:, :8])  # too few frames
    assert not are_tracks(X[:5])  # or tracks


def test_order_of_the_columns_does_not_matter(film, rng):
    X, _ = film
    shuffled = X[:, rng.permutation(X.shape[1])]
    assert are_tracks(X)
    assert are_tracks(shuffled)
    found = [SubspaceClustering(3).fit(points) for points in (X, shuffled)]
    np.testing.assert_array_equal(found[0].labels_, found[1].labels_)


# ---------------------------------------------------------------- what is tried


def test_only_where_nothing_stands_against_it(film):
    X, _ = film
    own = candidates.tried_on(X, AUTO, n_clusters=3)
    assert {setting.graph for setting in own.settings} == {"dscnet"}
    assert own.cuts == ("kmeans",)
    assert {s.graph for s in candidates.tried_on(X, AUTO).settings} == {None}  # the number is not known
    for name, value in {"scaling": "unit", "kernel": "rbf", "reg": 0.1, "assign_labels": "modularity"}.items():
        assert {s.graph for s in candidates.tried_on(X, {**AUTO, name: value}, n_clusters=3).settings} == {None}
    assert {s.graph for s in candidates.tried_on(X, AUTO, n_clusters=3, n_samples=6000).settings} == {None}


def test_more_effort_tries_more():
    efforts = ("fast", "balanced", "thorough")
    assert [len(candidates.families_of_tracks(100, effort)) for effort in efforts] == [3, 9, 18]
    assert len(candidates.families_of_tracks(2000, "balanced")) == 3


def test_graphs_of_the_search_are_those_of_a_fit(film):
    X, _ = film
    tried = candidates.tried_on(X, AUTO, n_clusters=3)
    for graph in candidates_of(X, tried, Method(n_clusters=3)):
        setting = graph.setting
        lone = KTRR(3, kernel="linear", affine=True, reg=setting.reg, **setting.own_graph()).fit(X)
        assert np.allclose(graph.W.toarray(), lone.affinity_matrix_.toarray(), atol=1e-6)


def test_graphs_that_do_not_fit(film, monkeypatch):
    monkeypatch.setattr("subspaces.utils.memory.available_bytes", lambda: 1_000_000)
    tried = candidates.tried_on(film[0], AUTO, n_clusters=3)
    with pytest.raises(MemoryError, match="9 graphs of all pairs of 120 points"):
        candidates_of(film[0], tried, Method(n_clusters=3))


# ---------------------------------------------------------------- the front door


@pytest.mark.parametrize("effort", ["fast", "balanced", "thorough"])
def test_front_door(film, effort):
    X, y = film
    model = SubspaceClustering(3, effort=effort).fit(X)
    assert accuracy(y, model.labels_) > 0.9
    assert "tracks of a film" in model.selection_.reason
    again = clone(model.estimator_)
    assert (again.graph, again.affine, again.kernel) == ("dscnet", True, "linear")
    assert np.array_equal(again.fit_predict(X), model.labels_)
    assert accuracy(model.labels_[::3], model.predict(X[::3] + 1e-9)) > 0.8
    assert len(model.selection_.to_pandas()) == len(model.selection_.trials)


def test_number_unknown(film):
    model = SubspaceClustering().fit(film[0])
    assert model.n_clusters_ == model.selection_.n_clusters.estimate == model.estimator_.n_clusters
    assert model.estimator_.graph == "dscnet"
    assert np.array_equal(clone(model.estimator_).fit_predict(film[0]), model.labels_)


@pytest.mark.parametrize("n_clusters", [1, 2, 40, 80, 120])
def test_any_number(film, n_clusters):
    assert SubspaceClustering(n_clusters, effort="fast").fit(film[0]).n_clusters_ == n_clusters


def test_copies_of_a_track(film):
    X, y = film
    model = SubspaceClustering(3, effort="fast").fit(np.vstack([X, X[:20]]))
    assert np.array_equal(model.labels_[:20], model.labels_[-20:])
    assert accuracy(np.append(y, y[:20]), model.labels_) > 0.9


def test_order_of_the_rows(film, rng):
    X, _ = film
    order = rng.permutation(len(X))
    assert accuracy(SubspaceClustering(3).fit_predict(X)[order], SubspaceClustering(3).fit_predict(X[order])) == 1


def test_a_sample_of_many(film, monkeypatch):
    X, y = film
    monkeypatch.setattr("subspaces.selection.search.N_SEARCHED", 90)
    model = SubspaceClustering(3).fit(X)
    assert (len(model.selection_.searched), model.estimator_.graph) == (90, "dscnet")
    assert accuracy(y, model.labels_) > 0.9


def test_other_doors_keep_their_graph(film):
    """What is given stays: a kernel, and that subspaces are linear."""
    found = SubspaceClustering(3, kernel="rbf", affine=False).fit(film[0]).selection_
    assert "graph" not in found.parameters
    assert "graph" not in choose(film[0], n_clusters=3, affine="auto").parameters


def test_real_films_are_recognised(data_home):
    assert all(are_tracks(X) for X, _ in hopkins(data_home))


@pytest.mark.full  # takes seconds: .ci/run has it
def test_hopkins(data_home):
    """Every eighth sequence; all 80 have 0.93 % (benchmarks/motion.py)."""
    wrong = [1 - accuracy(y, SubspaceClustering(len(np.unique(y))).fit_predict(X)) for X, y in hopkins(data_home)[::8]]
    assert np.mean(wrong) <= 0.015
