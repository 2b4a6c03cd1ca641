"""The paper's own numbers on its own data, where that data is at hand (skipped visibly elsewhere)."""

from __future__ import annotations

import numpy as np
import pytest

from subspaces import KTRR
from subspaces.metrics import clustering_scores

FIG_4C = {  # COIL20, λ = 10: η → AC, NMI, ARI, F
    3: (85.2, 94.1, 83.0, 83.9),
    4: (90.6, 95.3, 89.1, 89.7),
    7: (83.1, 91.0, 79.6, 80.7),
    10: (84.5, 90.3, 80.3, 81.3),
}
TABLE_2 = {  # COIL20: kernel → λ, η, AC, NMI, ARI, F
    "exponential": (10, 3, 91.81, 96.24, 91.14, 91.60),
    "inverse_square": (20, 4, 90.56, 95.23, 89.11, 89.66),
}


@pytest.fixture(scope="module")
def coil20(data_home):
    archive = np.load(data_home / "coil20_32x32.npz")
    return archive["X"].astype(np.float64), archive["y"]


def authors_program(kernel, reg, n_nonzero):
    """paper_figures.md §7: unit rows, rms bandwidth, symmetric graph, zero eigenvectors, the best k-means optimum.

    The authors' k-means starts at random points, hundreds of times; 200 k-means++ starts find the same optimum (1000
    random ones too, 300 do not always).
    """
    points = {"kernel": kernel, "bandwidth": "rms", "scaling": "unit"}
    graph = {"reg": reg, "n_nonzero": n_nonzero, "graph": "symmetric", "connect": False}
    return KTRR(20, **points, **graph, n_init=200)


def scores(model, data):
    X, y = data
    found = clustering_scores(y, model.fit_predict(X))
    return [100 * found[name] for name in ("accuracy", "nmi", "ari", "f_score")]


@pytest.mark.parametrize("n_nonzero", FIG_4C)
def test_fig_4c_digit_for_digit(n_nonzero, coil20):
    np.testing.assert_allclose(scores(authors_program("rbf", 10, n_nonzero), coil20), FIG_4C[n_nonzero], atol=0.2)


@pytest.mark.parametrize("kernel", TABLE_2)
def test_table_2_kernels(kernel, coil20):
    reg, n_nonzero, *printed = TABLE_2[kernel]
    np.testing.assert_allclose(scores(authors_program(kernel, reg, n_nonzero), coil20), printed, atol=0.3)
