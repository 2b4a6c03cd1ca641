"""What a newcomer types first: a figure in a notebook, and displays called as scikit-learn's are."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from subspaces import TRR
from subspaces.datasets import make_subspaces
from subspaces.inspection import plots

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module")
def fitted():
    X, y = make_subspaces(3, dimension=2, ambient=8, n_samples=15, noise=0.01, random_state=0)
    return TRR(3).fit(X), X, y


def in_notebook(figure):
    """What IPython does with an object that wants to display itself; whether it then displays it in its own way."""
    try:
        figure._ipython_display_()
    except NotImplementedError:
        return True
    return False


def test_notebooks_show_a_figure_once(fitted, monkeypatch):
    """The inline backend shows what pyplot holds at the end of a cell, the last line shows what it is."""
    monkeypatch.setattr(plt, "get_backend", lambda: "module://matplotlib_inline.backend_inline")
    for is_last_line in (True, False):
        figure = plots.show(fitted[0])
        assert figure.number in plt.get_fignums()
        times = int(is_last_line and in_notebook(figure))
        for number in plt.get_fignums():  # the end of the cell
            times += in_notebook(plt.figure(number))
        assert times == 1
        assert plt.get_fignums() == []
        assert in_notebook(figure)  # a later cell may show it again


def test_elsewhere_pyplot_keeps_the_figure(fitted):
    figure = plots.show(fitted[0])
    assert in_notebook(figure)
    assert figure.number in plt.get_fignums()
    copy = pickle.loads(pickle.dumps(figure))
    assert len(copy.axes) == len(figure.axes)
    plt.close(figure)
    plt.close(copy)


def test_confusion_takes_what_scikit_learn_takes(fitted):
    model, X, y = fitted
    ways = [{"y_true": y}, {"y": y}, {"X": X, "y": y}]
    displays = [plots.ConfusionDisplay.from_estimator(model, X, y)]
    displays += [plots.ConfusionDisplay.from_estimator(model, **way) for way in ways]
    for display in displays[1:]:
        np.testing.assert_array_equal(display.counts, displays[0].counts)
    with pytest.raises(
        ValueError, match=r"y, the classes of the points, is missing: from_estimator\(estimator, X, y\)"
    ):
        plots.ConfusionDisplay.from_estimator(model, X)
    plt.close("all")


def test_embedding_is_coloured_by_known_classes(fitted):
    model, X, y = fitted
    names = np.array(["ash", "elm", "oak"])[y]
    for display in (
        plots.EmbeddingDisplay.from_estimator(model, y=names),
        plots.EmbeddingDisplay.from_estimator(model, X, names),
    ):
        assert display.names == ["ash", "elm", "oak"]
        assert display.ax_.get_title() == "Embedding of 45 points, 3 classes"
    assert plots.EmbeddingDisplay.from_estimator(model).ax_.get_title() == "Embedding of 45 points, 3 clusters"
    with pytest.raises(ValueError, match="labels must have one entry for each of the 45 points; got 3"):
        plots.EmbeddingDisplay.from_estimator(model, y=[0, 1, 2])
    plt.close("all")


def test_one_cluster_is_one_cluster():
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = TRR(1).fit(X)
    figure = plots.show(model)
    assert figure.get_suptitle() == "TRR: 20 points, 1 cluster"
    plt.close(figure)
