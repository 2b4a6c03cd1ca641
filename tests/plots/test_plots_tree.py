"""Dendrogram by what it draws: every branch where the tree says, levels in their order, dots for p-values."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_hex
from scipy import sparse
from scipy.cluster.hierarchy import fcluster
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from subspaces import EKTRR, KTRR
from subspaces.datasets import make_subspaces
from subspaces.inspection.plots import TreeDisplay, style
from subspaces.metrics import adjusted_rand
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


@pytest.mark.parametrize("k", [1, 2, 20])
def test_a_line_across_a_level_meets_as_many_branches(k):
    tree = tree_of(k)
    display = TreeDisplay.from_tree(tree)
    corners = [path.vertices for lines in display.ax_.collections[:-1] for path in lines.get_paths()]
    ends = [*display.heights_, 0.0]
    assert (np.diff(ends) < 0).all()
    for level in range(2, display.levels + 1):
        y = (ends[level - 2] + ends[level - 1]) / 2
        assert sum((left[1] > y) != (right[1] > y) for path in corners for left, right in pairwise(path)) == level


def test_ends_are_the_pieces_of_the_finest_level():
    tree = tree_of(6)
    display = TreeDisplay.from_tree(tree, levels=tree.n_leaves)
    assert sorted(set(display.clusters_.tolist())) == list(range(6))
    for level in (2, 6, tree.n_leaves):  # SciPy cuts the same pieces
        found = fcluster(display.linkage_, level, criterion="maxclust")
        pieces = np.unique(tree.leaves, return_inverse=True)[1]
        assert adjusted_rand(found[pieces], tree.labels_at(level)) == 1


def test_only_a_little_below_the_labels_is_drawn():
    tree = tree_of(20)
    assert TreeDisplay(tree).levels == min(22, tree.n_leaves)
    assert TreeDisplay(tree, 5).levels == 5
    assert TreeDisplay(tree, tree.n_leaves).levels == tree.n_leaves
    for levels in (0, tree.n_leaves + 1):
        with pytest.raises(ValueError, match=rf"levels={levels} must be from 1 to {tree.n_leaves}"):
            TreeDisplay(tree, levels)


def test_ends_have_the_colours_and_names_of_their_clusters():
    display = TreeDisplay.from_tree(tree_of(5), levels=5)
    found = [to_hex(color).upper() for color in display.ax_.collections[-1].get_facecolors()]
    assert sorted(found) == sorted(style.OKABE_ITO[:5])  # as on the map
    assert sorted(text.get_text() for text in display.ax_.get_xticklabels()) == ["0", "1", "2", "3", "4"]


def test_dots_tell_the_real_from_chance():
    display = TreeDisplay.from_tree(with_p(tree_of(6), [0.001, 0.04, 0.2]))
    dots = [line for line in display.ax_.lines if line.get_marker() == "o"]
    paper, ink = display.ax_.get_facecolor(), style.foreground(display.ax_)
    faces = [to_hex(dot.get_markerfacecolor()) for dot in dots]
    assert faces == [to_hex(ink), to_hex(ink), to_hex(paper)]
    for k, dot in enumerate(dots, start=1):
        assert dot.get_ydata()[0] == display.heights_[k - 1]
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert names == ["real split (p ≤ 0.05)", "may be chance (p > 0.05)"]
    assert "no split was tested" not in display.ax_.get_xlabel()


def test_without_p_values_there_are_no_dots():
    for tree in (tree_of(6), replace(tree_of(6), p_value=np.zeros(0), stability=np.zeros(0))):
        display = TreeDisplay.from_tree(tree)
        assert not [line for line in display.ax_.lines if line.get_marker() == "o"]
        assert "no split was tested" in display.ax_.get_xlabel()


def test_layers_are_ticks():
    tree = tree_of(6)
    display = TreeDisplay.from_tree(tree)
    named = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert str(tree.n_clusters) in named
    for y, name in zip(display.ax_.get_yticks(), named, strict=True):
        assert int(name) in tree.layers
        assert ([*display.heights_, 0])[int(name)] < y < display.heights_[int(name) - 1]


def test_from_estimators_and_pipelines(data):
    model = KTRR(4).fit(data[0])
    figure, ax = style.pyplot().subplots()
    display = TreeDisplay.from_estimator(model, ax=ax)
    assert display.figure_ is figure
    assert display.tree is model.tree_
    pipeline = make_pipeline(StandardScaler(), KTRR(4)).fit(data[0])
    assert TreeDisplay.from_estimator(pipeline, levels=3).levels == 3
    large = EKTRR(4, n_landmarks=60, kernel="quadratic", reg=0.01).fit(data[0])
    assert "60 landmarks of EKTRR" in TreeDisplay.from_estimator(large).ax_.get_xlabel()
