"""The report's verdict, and its section "From coarse to fine"."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape

import numpy as np
import pytest

from subspaces import EKTRR, KASP, KTRR, TRR
from subspaces.app.report import Content, _page, render
from subspaces.app.report import _tree as trees
from subspaces.datasets import make_subspaces
from subspaces.spectral.hierarchy import cluster_tree

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

NASTY = "<script>alert(1)</script> 2 & 3"


@pytest.fixture(scope="module")
def data():
    return make_subspaces(4, 2, 12, 25, noise=0.05, random_state=0)[0]


@pytest.fixture(autouse=True)
def no_other_plots(monkeypatch):
    monkeypatch.setattr(_page, "pictures", lambda _: [])


def with_known(tree, p_value=(), stability=()):
    """The tree with these numbers of its coarsest splits."""
    changed = {}
    for name, values in (("p_value", p_value), ("stability", stability)):
        changed[name] = np.full(len(tree.merges), np.nan)
        for k, value in enumerate(values, start=1):
            changed[name][tree.split(k)] = value
    return replace(tree, **changed)


def section(page):
    return re.search(r'<section id="tree">(.*?)</section>', page, re.DOTALL)[1]


def test_section_shows_the_tree(data):
    model = KTRR(4).fit(data)
    model._tree = with_known(model.tree_)
    page = render(Content.from_estimator(model, data))
    found = section(page)
    assert "<h2>From coarse to fine</h2>" in found
    assert trees.layers_sentence(model.layers_, model.n_clusters_) in found
    (alt,) = re.findall(r'<img src="data:image/png;base64,[^"]+" alt="([^"]+)"', found)
    assert alt.startswith("Dendrogram of 100 points from 1 to 6 clusters. ")
    assert found.count("data:image/png") == 2  # light and dark
    assert 'href="#tree"' in page
    rows = re.findall(r"<td>(\d+ → \d+)</td>", found)
    assert rows == ["1 → 2", "2 → 3", "3 → 4", "4 → 5"]
    assert "p-value" not in found.lower()  # no split was tested
    assert "in the last row, the next one" in found


def test_what_is_known_of_splits_is_in_the_table(data):
    model = TRR(4).fit(data)
    tree = with_known(model.tree_, [0.0001, 0.02, 0.3], [0.91])
    names, *rows = trees.split_table(tree)
    assert names == ("clusters", "sizes", "cut", "p-value", "stability")
    assert [row[3] for row in rows] == ["< 0.001", "0.020", "0.30", "–"]
    assert [row[4] for row in rows] == ["0.91", "–", "–", "–"]
    for k, row in enumerate(rows, start=1):
        sizes = [int(size.replace(",", "")) for size in row[1].split(" + ")]
        assert sizes == sorted(tree.sizes[tree.merges[tree.split(k)]].tolist(), reverse=True)
        assert row[2] == f"{100 * tree.cut[tree.split(k)]:.1f} %"


def test_table_is_small():
    X, _ = make_subspaces(20, 1, 30, 6, random_state=0)
    model = TRR(20).fit(X)
    tree = cluster_tree(model.affinity_matrix_, model.labels_)
    table = trees.split_table(tree)
    assert len(table) == 1 + trees.MOST_SPLITS
    assert trees._caption(tree, trees.MOST_SPLITS) == "The 12 coarsest of 19 splits."


def test_captions_say_which_splits_the_labels_make(data):
    tree = KTRR(4).fit(data).tree_
    assert trees._caption(replace(tree, n_clusters=1), 1) == "The first split, which the labels do not make."
    assert trees._caption(replace(tree, n_clusters=tree.n_leaves), tree.n_leaves - 1).startswith("Every split")


@pytest.mark.parametrize(
    ("layers", "text"),
    [
        ([1, 3], "3 clusters are shown; 1 stands out."),
        ([3], "3 clusters are shown; no other number stands out."),
        ([2, 3, 10, 12], "3 clusters are shown; 2, 10 and 12 stand out."),
    ],
)
def test_sentence(layers, text):
    assert trees.layers_sentence(layers, 3) == text


def test_verdict_comes_first(data):
    content = Content.from_estimator(TRR(3).fit(data), data)
    plain = {name: value for name, value in content.document.items() if name != "verdict"}
    without = render(replace(content, document=plain))
    assert 'class="verdict"' not in without
    page = render(replace(content, document={**plain, "verdict": NASTY}))
    assert f'<header>\n<p class="verdict">{escape(NASTY)}</p>' in page
    assert "<script>alert" not in page
    assert page.index('class="verdict"') < page.index("<h1>")


@pytest.mark.parametrize("model", [EKTRR(3, n_landmarks=40), KASP(3)])
def test_methods_without_a_tree_report_as_before(data, model):
    page = render(Content.from_estimator(model.fit(data), data))
    assert 'id="tree"' not in page
    assert 'href="#tree"' not in page


def test_one_piece_has_no_section():
    X = np.ones((10, 3))
    with pytest.warns(UserWarning, match="equal"):
        model = TRR(2).fit(X)
    page = render(Content.from_estimator(model, X))
    assert ('id="tree"' in page) == (model.tree_.n_leaves > 1)


def test_tree_that_fails_is_left_out(data):
    class Failing(TRR):
        @property
        def tree_(self):
            raise ValueError("no such graph")

    content = Content.from_estimator(Failing(3).fit(data), data)
    with pytest.warns(UserWarning, match="the tree was left out of the report: no such graph"):
        page = render(content)
    assert 'id="tree"' not in page


def test_very_many_points_are_not_cut_for_a_picture(data, monkeypatch):
    content = Content.from_estimator(KTRR(4).fit(data), data)
    content.estimator._tree = None
    monkeypatch.setattr(trees, "LARGE", 50)
    assert trees.tree_of(content) is None
    made = content.estimator.tree_
    assert trees.tree_of(content) is made
