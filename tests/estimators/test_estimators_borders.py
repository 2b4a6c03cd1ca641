"""What takes too much memory is refused or goes another way; NumPy's scalars are numbers. Faults: tests/faults."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from subspaces import KTRR, LSC, SSC, TRR
from subspaces.datasets import make_subspaces


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
