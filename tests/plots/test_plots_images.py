"""Maps of clusters and their mean spectra."""

from __future__ import annotations

import io

import numpy as np
import pytest

from subspaces import cluster_image
from subspaces.datasets import make_cube
from subspaces.inspection.plots.images import label_colors

matplotlib = pytest.importorskip("matplotlib", reason='plots need Matplotlib: pip install "subspaces[plot]"')
matplotlib.use("Agg")

from subspaces.inspection.plots import LabelMapDisplay, SpectraDisplay  # noqa: E402
from subspaces.inspection.plots.images import map_png  # noqa: E402


def test_map_shows_each_pixel_in_its_colour():
    labels = np.array([[0, 1, -1], [2, 2, 0]])
    display = LabelMapDisplay.from_predictions(labels, names=["a", "b", "c"])
    picture = display.im_.get_array()
    np.testing.assert_allclose(255 * picture[0, 1, :3], label_colors(3)[1])
    assert picture[0, 2, 3] == 0
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["a (2)", "b (1)", "c (2)"]


def test_map_of_many_clusters_names_some():
    display = LabelMapDisplay.from_predictions(np.arange(200).reshape(10, 20))
    assert display.ax_.get_legend().get_texts()[-1].get_text() == "and 140 more"


def test_colours_differ():
    colors = label_colors(60)
    assert len({tuple(color) for color in colors.tolist()}) == 60
    assert colors.min() >= 0
    assert colors.max() <= 255
    assert label_colors(0).shape == (0, 3)


def test_spectra_with_their_spread():
    values, _, _ = make_cube((20, 20), n_bands=12, n_materials=2, random_state=0)
    found = cluster_image(values, 2)
    display = SpectraDisplay.from_image(found)
    mean, _ = found.spectra()
    assert display.ax_.get_xlabel() == "band"
    for line, wanted in zip(display.ax_.get_lines(), mean, strict=True):
        np.testing.assert_allclose(line.get_ydata(), wanted)
    assert len(display.ax_.collections) == 2
    named = SpectraDisplay(mean, 0 * mean, np.arange(12) + 400.0, "nm").plot()
    assert named.ax_.get_xlabel() == "wavelength (nm)"


def test_map_as_a_file_reads_no_formula():
    image = pytest.importorskip("PIL.Image")
    content = map_png(np.zeros((5, 9), dtype=int), r"$\frac$")
    assert image.open(io.BytesIO(content)).format == "PNG"


@pytest.mark.parametrize("labels", [np.zeros(4, dtype=int), np.zeros((2, 2)), np.full((2, 2), -1)])
def test_refusals(labels):
    with pytest.raises(ValueError, match="labels must be whole numbers for rows and columns"):
        LabelMapDisplay.from_predictions(labels)


def test_names_that_do_not_fit():
    with pytest.raises(ValueError, match="names must have one entry for each of the 2 labels; got 1"):
        LabelMapDisplay.from_predictions(np.array([[0, 1]]), names=["a"])
