"""Tracks coloured by cluster."""

from __future__ import annotations

from io import BytesIO

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from PIL import Image

from subspaces.datasets import make_motions
from subspaces.inspection.plots import TracksDisplay
from subspaces.inspection.plots.style import OKABE_ITO


def test_lines_leave_gaps_out_and_dots_end_tracks():
    X = np.array([[0.0, 0, 1, 1, 2, 2], [5, 5, np.nan, np.nan, 7, 7], [3, 0, 4, 0, np.nan, np.nan]])
    display = TracksDisplay.from_predictions(X, ["a", "b", "b"])
    lines, dots = display.ax_.collections[2], display.ax_.collections[3]
    assert [segment.tolist() for segment in lines.get_segments()] == [[[3, 0], [4, 0]]]
    assert dots.get_offsets().tolist() == [[7, 7], [4, 0]]
    assert to_hex(lines.get_color()[0]).upper() == OKABE_ITO[1]
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["a: 1 track", "b: 2 tracks"]
    plt.close(display.figure_)


def test_a_film_has_all_frames_and_leaves_no_figure_open():
    X, y = make_motions(2, 10, 5, missing=0.1, random_state=0)
    before = plt.get_fignums()
    display = TracksDisplay.of(X, y)
    with Image.open(BytesIO(display.film())) as film:
        assert film.n_frames == 5
    with Image.open(BytesIO(display.picture())) as picture:
        assert min(picture.size) > 500
    assert plt.get_fignums() == before


@pytest.mark.parametrize("shape", [(3, 5), (3, 0), (6,)])
def test_what_are_no_tracks(shape):
    with pytest.raises(ValueError, match="X must have two columns for each frame"):
        TracksDisplay.of(np.zeros(shape), [0, 1, 2])
