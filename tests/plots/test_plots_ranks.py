"""The critical-difference plot draws what the ranking says."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason='pictures: pip install "subspaces[plot]"')

from subspaces import compare
from subspaces.datasets import make_subspaces
from subspaces.inspection.plots import CriticalDifferenceDisplay, style
from subspaces.metrics.significance import friedman

pytestmark = pytest.mark.usefixtures("no_figure_is_left")


def texts_of(ax):
    return [text.get_text() for text in ax.texts]


def test_names_ranks_and_bars(rng):
    scores, names = rng.normal(size=(40, 6)) + np.linspace(3, 0, 6), list("abcdef")
    display = CriticalDifferenceDisplay.from_scores(scores, names)
    ranking = friedman(scores, names)
    texts = " ".join(texts_of(display.ax_))
    for name, rank in zip(names, ranking.ranks, strict=True):
        assert f"{name}  {rank:.2f}" in texts or f"{rank:.2f}  {name}" in texts
    assert f"critical difference {ranking.critical_difference:.2f}" in texts
    blue = style.main_color(display.ax_)
    bars = [line for line in display.ax_.lines if line.get_color() == blue]
    assert len(bars) == len(ranking.groups()) > 1
    by_name = dict(zip(names, ranking.ranks, strict=True))
    for bar, group in zip(bars, ranking.groups(), strict=True):
        low, high = bar.get_xdata() + np.array([1, -1]) * (0.012 * len(names) - 1e-9)  # without what sticks out
        inside = {name for name, rank in by_name.items() if low - 1e-8 <= rank <= high + 1e-8}
        assert inside == set(group)


def test_ruler_is_seen_with_few_data_sets(rng):
    display = CriticalDifferenceDisplay.from_scores(rng.normal(size=(2, 4)), list("abcd"))
    assert display.ax_.get_xlim()[1] > 1 + display.ranking.critical_difference > 4


def test_of_a_comparison_and_into_axes(seed):
    from matplotlib import pyplot

    data = {f"data {i}": make_subspaces(2, 2, 5, 12, random_state=seed + i) for i in range(3)}
    found = compare(["trr", "lsr1"], data, n_runs=1)
    ax = pyplot.subplots()[1]
    display = CriticalDifferenceDisplay.from_comparison(found, ax=ax)
    assert display.ax_ is ax
    assert "3 data sets" in ax.get_title()
    assert any("k-means" in text for text in texts_of(ax))
    assert not any("constant" in text for text in texts_of(ax))
    display.figure_.canvas.draw()
