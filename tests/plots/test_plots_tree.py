"""Dendrogram by what it draws: every branch where the tree says, levels in their order, dots for p-values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from subspaces import EKTRR, KTRR
from subspaces.datasets import make_subspaces
from subspaces.inspection.plots import TreeDisplay, style
from subspaces.spectral.hierarchy import cluster_tree

pytest.importorskip("matplotlib.pyplot", reason="Matplotlib is not installed: pip install subspaces[plot]")
pytestmark = pytest.mark.usefixtures("no_figure_is_left")


def tree_of(k, per=12, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(k), per)
    upper = np.triu(rng.random((k * per, k * per)) < np.where(labels[:, None] == labels, 0.6, 2 / (k * per)), 1)
    return cluster_tree(sparse.csr_array((upper + upper.T).astype(float)), labels)


def with_p(tree, values):
    """The tree with these p-values of its coarsest splits."""
    p_value = np.full(len(tree.merges), np.nan)
    for k, value in enumerate(values, start=1):
        p_value[tree.split(k)] = value
    return replace(tree, p_value=p_value)


@pytest.fixture(scope="module")
def data():
    return make_subspaces(4, 2, 12, 30, noise=0.05, random_state=0)


def branches(display):
    (lines,) = [part for part in display.ax_.collections if isinstance(part, LineCollection)]
    return lines


@pytest.mark.parametrize("k", [1, 2, 20])
def test_a_line_across_a_level_meets_as_many_branches(k):
    display = TreeDisplay.from_tree(tree_of(k))
    paths = [path.vertices for path in branches(display).get_paths()]
    heights = display.heights_
    assert (np.diff(heights) < 0).all()
    for level in range(2, display.levels + 1):
        y = (heights[level - 2] + heights[level - 1]) / 2
        assert sum(path[0, 1] > y > path[-1, 1] for path in paths) == level
    assert min(display.places_.values()) == 0


def test_only_a_little_below_the_labels_is_drawn():
    tree = tree_of(20)
    assert TreeDisplay(tree).levels == min(22, tree.n_leaves)
    assert TreeDisplay(tree, 5).levels == 5
    assert TreeDisplay(tree, tree.n_leaves).levels == tree.n_leaves
    for levels in (0, tree.n_leaves + 1):
        with pytest.raises(ValueError, match=rf"levels={levels} must be from 1 to {tree.n_leaves}"):
            TreeDisplay(tree, levels)


def test_branches_have_the_colours_of_their_clusters():
    tree = tree_of(5)
    display = TreeDisplay.from_tree(tree, levels=5)
    assert display.colors_ == list(style.OKABE_ITO[:5])  # as on the map
    found = [to_hex(color).upper() for color in branches(display).get_colors()]
    for color in display.colors_:
        assert color in found
    assert to_hex(style.foreground(display.ax_)).upper() in found  # above the clusters
    assert sorted(text.get_text() for text in display.ax_.get_xticklabels()) == ["0", "1", "2", "3", "4"]


def test_wide_branches_hold_many_points():
    tree = tree_of(6)
    display = TreeDisplay.from_tree(tree)
    widths = np.asarray(branches(display).get_linewidths())
    shares = tree.sizes[display.pieces_] / tree.sizes[-1]
    np.testing.assert_allclose(np.sort(widths), np.sort(0.7 + 4.3 * np.sqrt(shares)))
    assert widths[0] == widths.max() == 5  # the root


def test_dots_tell_the_real_from_chance():
    display = TreeDisplay.from_tree(with_p(tree_of(6), [0.001, 0.04, 0.2]))
    dots = [line for line in display.ax_.lines if line.get_marker() == "o"]
    paper, ink = display.ax_.get_facecolor(), style.foreground(display.ax_)
    faces = [to_hex(dot.get_markerfacecolor()) for dot in dots]
    assert faces == [to_hex(ink), to_hex(ink), to_hex(paper)]
    for k, dot in enumerate(dots, start=1):
        assert dot.get_ydata()[0] == display.heights_[k - 1]
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert names[-2:] == ["real split (p ≤ 0.05)", "may be chance (p > 0.05)"]
    assert [text.get_text() for text in display.ax_.texts] == ["p 0.001", "p 0.040", "p 0.20"]
    assert "no split was tested" not in display.ax_.get_xlabel()
    assert not TreeDisplay.from_tree(with_p(tree_of(20), [0.01] * 10)).ax_.texts  # no room


def test_without_p_values_there_are_no_dots():
    for tree in (tree_of(6), replace(tree_of(6), p_value=np.zeros(0), stability=np.zeros(0))):
        display = TreeDisplay.from_tree(tree)
        assert not [line for line in display.ax_.lines if line.get_marker() == "o"]
        assert "no split was tested" in display.ax_.get_xlabel()


def test_layers_are_lines():
    tree = tree_of(6)
    display = TreeDisplay.from_tree(tree)
    shown = [k for k in tree.layers if k <= display.levels]
    named = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert str(tree.n_clusters) in named
    assert set(named) <= {str(k) for k in shown}
    for y, name in zip(display.ax_.get_yticks(), named, strict=True):
        k = int(name)
        assert display.heights_[k - 1] < y < ([np.inf, *display.heights_])[k - 1]


def test_from_estimators_and_pipelines(data):
    model = KTRR(4).fit(data[0])
    figure, ax = style.pyplot().subplots()
    display = TreeDisplay.from_estimator(model, ax=ax)
    assert display.figure_ is figure
    assert display.tree is model.tree_
    pipeline = make_pipeline(StandardScaler(), KTRR(4)).fit(data[0])
    assert TreeDisplay.from_estimator(pipeline, levels=3, linestyles=":").levels == 3
    large = EKTRR(4, n_landmarks=60, kernel="quadratic", reg=0.01).fit(data[0])
    assert "60 landmarks of EKTRR" in TreeDisplay.from_estimator(large).ax_.get_xlabel()
