"""Estimators on bad input and at borders: refused by name, or a sensible answer; nothing is left of a failed fit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score

from method_data import union_of_subspaces
from subspaces import KTRR, LSC, SSC, TRR
from subspaces.datasets import make_subspaces
from subspaces.engine import stages


@pytest.fixture
def data(seed):
    return union_of_subspaces(seed)


def test_unfitted_predict():
    with pytest.raises(NotFittedError):
        KTRR(3).predict(np.ones((3, 2)))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": 2.5}, "n_clusters"),
        ({"reg": 0}, "reg"),
        ({"reg": -1.0}, "reg"),
        ({"n_nonzero": 0}, "n_nonzero"),
        ({"n_nonzero": 2.5}, "n_nonzero"),
        ({"kernel": "gaussian"}, "kernel"),
        ({"bandwidth": -1.0}, "bandwidth"),
        ({"assign_labels": "ward"}, "assign_labels"),
        ({"n_clusters": 500}, "n_clusters=500 .* n_samples=120"),
        ({"n_clusters": None}, "modularity"),
    ],
)
def test_bad_parameters_are_named(parameters, message, data):
    with pytest.raises(ValueError, match=message):
        KTRR(**{"n_clusters": 3, **parameters}).fit(data[0])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"graph_params": {"share": 0.5}}, "graph_params of graph='symmetric'"),
        ({"kernel_params": {"degree": 2}}, "takes no kernel_params"),
        ({"solver": "low_rank"}, "explicit feature map"),
        ({"kernel": "quadratic", "solver": "two_scale"}, "kernel of distances"),
        ({"spectral": "coarse", "n_clusters": 3}, "64 points per cluster"),
    ],
)
def test_bad_combinations_are_refused_by_the_plan(parameters, message, data):
    with pytest.raises(ValueError, match=message):
        KTRR(**{"n_clusters": 3, **parameters}).plan(data[0])


def test_refuses_what_does_not_fit_in_memory(monkeypatch):
    from subspaces.datasets import make_subspaces
    from subspaces.utils import memory

    X = make_subspaces(3, 2, 10, 600, random_state=0)[0]  # half of K takes 13 MB
    monkeypatch.setattr(memory, "available_bytes", lambda: 14 * 2**20)
    with pytest.raises(MemoryError, match=r"1800 × 1800 matrix of KTRR needs .*low_rank"):
        KTRR(3, solver="dense").fit(X)
    assert KTRR(3, n_init=1).fit(X).solver_ == "two_scale"  # left to itself it takes the route that fits
    TRR(3, n_init=1).fit(X)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    with pytest.raises(MemoryError, match=r"two-scale graph of 1800 points needs .*EKTRR"):
        KTRR(3).fit(X)  # where none fits, that is said


def test_half_of_the_kernel_matrix_is_asked_for_where_that_is_all(monkeypatch):
    from subspaces.utils import memory

    X, asked = np.random.default_rng(0).standard_normal((500, 4)), []
    monkeypatch.setattr(memory, "require", lambda n_bytes, *_: asked.append(n_bytes / (8 * 500**2)))
    for kernel, expected in (("rbf", 0.6), ("cubic", 0.6), (lambda A, B: A @ B.T + 20, 1.1)):
        asked.clear()
        KTRR(3, kernel=kernel, solver="dense").plan(X)
        assert max(asked) == pytest.approx(expected + 4 / 500)  # and the points in order
    with pytest.raises(ValueError, match="at most 65535 points; got 65536"):
        KTRR(3, solver="dense").plan(np.zeros((65_536, 1), dtype=np.float32))


def test_all_points_equal():
    with pytest.warns(ConvergenceWarning, match="1 cluster"):
        model = KTRR(3).fit(np.ones((10, 4)))
    assert model.n_clusters_ == 1
    assert set(model.labels_) == {0}
    assert set(model.predict(np.zeros((2, 4)))) == {0}


def test_one_cluster_and_as_many_clusters_as_points(data):
    X = data[0][:12]
    assert set(KTRR(1).fit(X).labels_) == {0}
    assert sorted(KTRR(12).fit(X).labels_) == list(range(12))


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_zero_row_gets_a_label_and_harms_nobody(kernel, data):
    X, y = data
    X = np.vstack([X, np.zeros(X.shape[1])])
    model = KTRR(3, kernel=kernel, reg=0.1).fit(X)
    assert np.isfinite(model.embedding_).all()
    assert adjusted_rand_score(y, model.labels_[:-1]) > 0.9


@pytest.mark.parametrize("cls", [KTRR, TRR])
@pytest.mark.parametrize("copies", [2, 3])
def test_copies_of_a_point_share_its_label(cls, copies, data):
    X, y = data
    labels = cls(n_clusters=3, n_nonzero=6).fit_predict(np.repeat(X, copies, axis=0))
    labels = labels.reshape(-1, copies)
    assert (labels == labels[:, :1]).mean() > 0.98
    assert adjusted_rand_score(y, labels[:, 0]) > 0.9


def test_more_components_than_clusters(seed):
    X, _ = union_of_subspaces(seed, sizes=(30,) * 6, noise=0.0, ambient=40)
    with pytest.warns(UserWarning, match="connected components"):
        loose = TRR(n_clusters=3, connect=False).fit(X)
    joined = TRR(n_clusters=3, connect=True).fit(X)
    assert loose.n_components_ == joined.n_components_ > 3
    assert joined.n_clusters_ == 3


def test_fit_again_leaves_nothing_of_the_first(data):
    X, _ = data
    model = KTRR(3).fit(X[:, :5])
    model.fit(X)
    np.testing.assert_array_equal(model.labels_, KTRR(3).fit(X).labels_)
    assert set(vars(model)) == set(vars(KTRR(3).fit(X)))


def test_a_failed_fit_leaves_nothing(monkeypatch, data):
    X, _ = data
    model = KTRR(3).fit(X)
    before = set(vars(KTRR(3)))

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(stages, "spectral_embedding", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert {name for name in vars(model) if not name.startswith("_skl") and name != "_callback_fit_ctx"} == before
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_scaling_a_precomputed_kernel_is_refused(data):
    K = data[0] @ data[0].T
    with pytest.raises(ValueError, match="scaling='unit' has no meaning"):
        KTRR(3, kernel="precomputed", scaling="unit").fit(K)


def test_kernel_params_are_honoured_and_left_alone(data):
    X, _ = data
    params = {"degree": 2, "coef0": 0.5}
    model = KTRR(3, kernel="polynomial", kernel_params=params).fit(X)
    assert params == {"degree": 2, "coef0": 0.5}
    assert model.kernel_.degree == 2


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("cls", "parameters"),
    [
        (KTRR, {"reg": np.float32(0.1), "bandwidth": np.float32(700)}),
        (TRR, {"reg": np.float16(0.1), "n_nonzero": np.int8(5)}),
        (SSC, {"error_weight": np.float16(20), "tol": np.float16(1e-3), "max_iter": np.int16(100)}),
        (LSC, {"n_landmarks": np.int8(30), "n_neighbors": np.uint8(5), "bandwidth": np.float16(900)}),
    ],
)
def test_numpy_scalars_are_parameters_like_any_number(cls, parameters):
    """20: arithmetic in float16 or int8 overflows."""
    X = 1000 * make_subspaces(3, dimension=2, ambient=10, n_samples=30, noise=0.01, random_state=0)[0]
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in parameters.items()}
    expected = cls(3, **plain).fit(X)
    found = clone(cls(np.int8(3), **parameters)).fit(X)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    np.testing.assert_array_equal(found.set_params(**parameters).fit_predict(X), expected.labels_)
