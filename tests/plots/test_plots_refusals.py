"""Pictures of what is missing, empty or too much: said, left out or thinned, never drawn wrong."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.cluster import KMeans

from subspaces import KTRR
from subspaces.datasets import make_subspaces
from subspaces.inspection import plots
from subspaces.inspection.plots import parts, style

plt = pytest.importorskip("matplotlib.pyplot", reason="Matplotlib is not installed: pip install subspaces[plot]")
pytestmark = pytest.mark.usefixtures("no_figure_is_left")


@pytest.fixture(scope="module")
def data():
    return make_subspaces(3, 2, 12, 15, noise=0.01, random_state=0)


def test_matplotlib_is_named_if_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'subspaces\[plot\]'"):
        style.pyplot()


def test_points_that_were_not_kept_are_asked_for(data):
    with pytest.raises(ValueError, match=r"KMeans does not keep the points .* give them as the argument X"):
        plots.GalleryDisplay.from_estimator(KMeans(3, n_init=1).fit(data[0]))


@pytest.mark.parametrize("labels", [[[0, 1, 2]], []])
def test_labels_that_are_no_labels_are_refused(labels):
    with pytest.raises(ValueError, match="labels must be one-dimensional and not empty; got shape"):
        plots.EmbeddingDisplay.from_predictions(np.eye(3), labels)


def test_embedding_of_one_dimension_is_refused():
    with pytest.raises(ValueError, match=r"embedding must have two dimensions, .* got \(3,\)"):
        plots.EmbeddingDisplay.from_predictions(np.ones(3), [0, 1, 2])


def test_exemplars_belong_to_clusters(rng):
    X, labels = rng.random((6, 4)), [0, 0, 0, 1, 1, 1]
    with pytest.raises(ValueError, match="exemplars must have one entry for each of the 2 clusters; got 3"):
        plots.GalleryDisplay.from_predictions(X, labels, exemplars=[[0], [3], [4]])
    display = plots.GalleryDisplay.from_predictions(X, labels, exemplars=[[0, 1], []], image_shape=(2, 2))
    assert len(display.ax_.images) == 1  # a cluster without exemplars has its name and size, and no picture
    assert {"0", "1", "3"} <= {text.get_text() for text in display.ax_.texts}


def test_overview_of_a_precomputed_kernel_has_no_gallery(data):
    model = KTRR(3, kernel="precomputed").fit(data[0] @ data[0].T)
    figure = plt.figure()
    assert plots.show(model, figure=figure) is figure
    assert len([ax for ax in figure.axes if ax.get_title()]) == 3
    assert len([ax for ax in figure.axes if not ax.axison]) == 1  # the fourth place stays empty


def test_counts_are_written_only_where_there_is_room():
    few, many = np.arange(20) % 4, np.arange(300) % 60
    assert plots.ConfusionDisplay.from_predictions(few, few).ax_.texts
    assert not plots.ConfusionDisplay.from_predictions(many, many).ax_.texts


def test_settings_that_were_not_tried_stay_empty(data):
    model = KTRR(3, reg="auto", n_nonzero="auto").fit(data[0])
    display = plots.SelectionDisplay(model.selection_)
    display.values[0, 0] = np.nan
    n_written = len(display.plot().ax_.texts)
    assert n_written == np.isfinite(display.values).sum() < display.values.size


def test_number_of_clusters_takes_axes(data):
    model = KTRR("auto", reg=0.1).fit(data[0])
    figure, axes = plt.subplots(1, 2)
    display = plots.NumberOfClustersDisplay.from_estimator(model, ax=axes)
    assert display.figure_ is figure
    assert "3 clusters" in axes[0].get_title()


def test_spectrum_of_a_large_fit_is_the_one_it_has(data, monkeypatch):
    model = KTRR(3, n_nonzero=4).fit(data[0])
    assert len(plots.SpectrumDisplay.from_estimator(model).eigenvalues) > len(model.eigenvalues_)
    monkeypatch.setattr(parts, "MANY_POINTS", 10)
    np.testing.assert_array_equal(plots.SpectrumDisplay.from_estimator(model).eigenvalues, model.eigenvalues_)
    assert len(plots.SpectrumDisplay.from_estimator(model, n_eigenvalues=9).eigenvalues) == 9


def test_graph_without_edges_has_no_spectrum():
    with pytest.raises(ValueError, match="no entry, so it has no spectrum"):
        plots.SpectrumDisplay.from_predictions(np.zeros((4, 4)), 2)


def test_names_that_would_cover_each_other_are_left_out():
    assert style.thinned(np.arange(5), list("abcde"), 2) == ([0.0, 2.0, 4.0], ["a", "c", "e"])


def test_kernel_without_a_width_has_none_in_the_story():
    from subspaces.estimators.html_repr import _kernel

    kernel = SimpleNamespace(name="linear", bandwidth=None)
    assert _kernel(SimpleNamespace(kernel_=kernel)) == "linear"
    assert _kernel(SimpleNamespace(kernel_=kernel, solver_="dense")) == "linear (dense)"
    assert _kernel(SimpleNamespace()) == ""
