"""Displays of the automatic choice: the numbers they hold, and that they draw."""

from __future__ import annotations

import numpy as np
import pytest

from subspaces import KTRR
from subspaces.datasets import make_subspaces
from subspaces.inspection.plots import NumberOfClustersDisplay, SelectionDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(scope="module")
def model():
    X, _ = make_subspaces(3, 2, 12, 30, noise=0.01, random_state=0)
    return KTRR("auto", kernel="auto", n_nonzero="auto", assign_labels="auto").fit(X)


def test_surface(model):
    display = SelectionDisplay.from_estimator(model)
    assert np.nanmax(display.values) == pytest.approx(model.selection_.winner.score)  # ties go by rule
    assert display.values.shape == (3, 4)  # kernels, truncations
    assert len(display.ax_.patches) == 1  # the winner's frame
    matplotlib.pyplot.close(display.figure_)


def test_any_criterion_and_any_axes(model):
    figure, ax = matplotlib.pyplot.subplots()
    display = SelectionDisplay.from_estimator(model, criterion="modularity", ax=ax)
    assert display.figure_ is figure
    matplotlib.pyplot.close(figure)


def test_number_of_clusters(model):
    display = NumberOfClustersDisplay.from_estimator(model)
    assert "3 clusters" in display.ax_[0].get_title()
    matplotlib.pyplot.close(display.figure_)


def test_nothing_to_show():
    X, _ = make_subspaces(3, 2, 12, 30, random_state=0)
    with pytest.raises(ValueError, match="auto"):
        SelectionDisplay.from_estimator(KTRR(3).fit(X))
    with pytest.raises(ValueError, match="n_clusters"):
        NumberOfClustersDisplay.from_estimator(KTRR(3, reg="auto").fit(X))
