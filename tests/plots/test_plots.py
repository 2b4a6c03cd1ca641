"""Displays by the data they draw, not by their pixels; on light and dark pages, few and many clusters."""

from __future__ import annotations

import sys
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import block_diag
from sklearn.cluster import KMeans

from subspaces import EKTRR, KASP, KTRR, SC, TRR, SubspaceClustering, cluster_image
from subspaces.datasets import make_cube, make_subspaces
from subspaces.inspection import plots
from subspaces.inspection.plots import layout, parts, style
from subspaces.inspection.plots.gallery import most_typical
from subspaces.inspection.plots.graph import cells_of
from subspaces.inspection.plots.images import label_colors, map_png
from subspaces.metrics.significance import friedman

plt = pytest.importorskip("matplotlib.pyplot", reason="Matplotlib is not installed: pip install subspaces[plot]")
pytestmark = pytest.mark.usefixtures("no_figure_is_left")


@pytest.fixture(scope="module")
def data():
    return make_subspaces(4, 2, 12, 30, noise=0.01, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return KTRR(4, kernel="quadratic", reg=0.01).fit(data[0])


@pytest.fixture(scope="module")
def landmarks(data):
    return EKTRR(4, n_landmarks=60, kernel="quadratic", reg=0.01).fit(data[0])


@pytest.fixture(scope="module")
def auto(data):
    return SubspaceClustering(reg=1.0, scaling=None, affine=False).fit(data[0])


def random_graph(rng, n, k):
    W = sparse.random_array((n, n), density=0.05, rng=rng, format="csr")
    W.data -= 0.5
    return W, rng.permutation(np.arange(n) % k)


# ---------------------------------------------------------------- matrices


@pytest.mark.parametrize(("n", "n_cells"), [(7, 7), (50, 12), (5, 360)])
def test_cells_against_a_dense_reference(rng, n, n_cells):
    W, labels = random_graph(rng, n, 3)
    order = np.argsort(labels, kind="stable")
    ordered = W.toarray()[np.ix_(order, order)]
    size = min(n, n_cells)
    edges = np.ceil(np.arange(size + 1) * n / size).astype(int)
    sums, strongest = cells_of(W, labels, n_cells), cells_of(W, labels, n_cells, how="strongest")
    assert sums.shape == strongest.shape == (size, size)
    for a in range(size):
        for b in range(size):
            cell = ordered[edges[a] : edges[a + 1], edges[b] : edges[b + 1]]
            np.testing.assert_allclose(sums[a, b], cell.sum(), atol=1e-12)
            assert strongest[a, b] in cell
            assert abs(strongest[a, b]) == np.abs(cell).max()


def test_affinity_shows_blocks_of_clusters(model):
    display = plots.AffinityDisplay.from_estimator(model)
    assert display.ends.tolist() == np.cumsum(np.bincount(model.labels_)).tolist()
    blocks = zip(display.ends - display.sizes, display.ends, strict=True)
    inside = sum(display.cells[start:end, start:end].sum() for start, end in blocks)
    same = model.labels_[:, None] == model.labels_
    np.testing.assert_allclose(inside, model.affinity_matrix_.toarray()[same].sum())
    assert np.ma.getmaskarray(display.im_.get_array()).sum() == (display.cells == 0).sum()
    assert "cells" not in display.note


def test_coefficients_keep_their_sign(data):
    model = TRR(4).fit(data[0])
    display = plots.CoefficientsDisplay.from_estimator(model)
    order = np.argsort(model.labels_, kind="stable")
    np.testing.assert_array_equal(display.cells, model.coefficients_.toarray()[np.ix_(order, order)])
    low, high = display.im_.get_clim()
    assert low == -high == -np.abs(display.cells).max()  # zero in the middle of the colours
    assert plots.CoefficientsDisplay.from_predictions(np.eye(4), [0, 0, 1, 1]).im_.get_clim() == (0, 1)


def test_landmarks_are_called_landmarks(landmarks):
    display = plots.AffinityDisplay.from_estimator(landmarks)
    assert display.n_samples == 60
    assert "60 landmarks of EKTRR" in display.note
    assert "60 landmarks of EKTRR" in plots.EmbeddingDisplay.from_estimator(landmarks).ax_.get_xlabel()


# ---------------------------------------------------------------- spectrum and embedding


def test_spectrum_of_a_graph_with_known_eigenvalues():
    W = sparse.csr_array(block_diag(*[np.ones((5, 5)) - np.eye(5)] * 3))  # L of K5: 0 once, 5/4 four times
    display = plots.SpectrumDisplay.from_predictions(W, 3, n_eigenvalues=6)
    np.testing.assert_allclose(display.ax_.lines[0].get_ydata(), [0, 0, 0, 1.25, 1.25, 1.25], atol=1e-12)
    np.testing.assert_allclose(display.gap_, 1.25)
    assert display.widest_ == 3
    assert "after 3 clusters" in display.ax_.get_title()
    assert len(plots.SpectrumDisplay.from_predictions(W, 3, n_eigenvalues=99).eigenvalues) == 14
    assert np.isnan(plots.SpectrumDisplay(np.array([0.0, 0.1]), 2).plot().gap_)  # the next one was not computed


def test_spectrum_of_a_large_fit_is_not_computed_again(model, monkeypatch):
    assert len(plots.SpectrumDisplay.from_estimator(model).eigenvalues) > len(model.eigenvalues_)
    monkeypatch.setattr(parts, "MANY_POINTS", 10)
    np.testing.assert_array_equal(plots.SpectrumDisplay.from_estimator(model).eigenvalues, model.eigenvalues_)
    assert len(plots.SpectrumDisplay.from_estimator(model, n_eigenvalues=9).eigenvalues) == 9


def corners(rng, k, n_each, noise=0.05):
    labels = np.repeat(np.arange(k), n_each)
    Y = np.eye(k)[labels] + noise * rng.standard_normal((k * n_each, k))
    return Y / np.linalg.norm(Y, axis=1, keepdims=True), labels


@pytest.mark.parametrize("k", [4, 38])
def test_map_keeps_every_cluster_together_and_apart(rng, k):
    Y, labels = corners(rng, k, 20, noise=0.3 / np.sqrt(k))  # a row's noise has length 0.3 whatever k is
    points, centres, method = layout.plane(Y, labels)
    assert method == "map"
    distance = np.linalg.norm(points[:, None] - centres, axis=2)
    assert (distance.argmin(axis=1) == labels).mean() > 0.97
    shift = [np.median(points[labels == cluster] - centres[cluster], axis=0) for cluster in range(k)]
    assert np.abs(shift).max() < 2  # numbers stand on their discs, whose radius is about 4.5


def test_doubtful_sample_lies_between_its_clusters(rng):
    Y, labels = corners(rng, 5, 30, noise=0.01)
    Y[0] = (np.eye(5)[0] + np.eye(5)[3]) / np.sqrt(2)
    points, centres, _ = layout.plane(Y, labels)
    between = np.linalg.norm(points[0] - (centres[0] + centres[3]) / 2)
    assert between < 0.5 * np.linalg.norm(centres[0] - centres[3])
    assert layout.ranks_within(labels, layout.typicality(Y, labels))[0] == 29  # the least typical of its cluster


def test_plane_is_the_principal_one(rng):
    Y = rng.standard_normal((40, 6)) * np.arange(1, 7)
    found, centres, method = layout.plane(Y, np.arange(40) % 3)
    assert method == "pca"
    np.testing.assert_allclose(centres, [found[i::3].mean(axis=0) for i in range(3)], atol=1e-12)
    _, _, vectors = np.linalg.svd(Y - Y.mean(axis=0))
    np.testing.assert_allclose(np.abs(found), np.abs((Y - Y.mean(axis=0)) @ vectors[:2].T), atol=1e-10)
    axes = np.linalg.lstsq(Y - Y.mean(axis=0), found)[0]
    assert (axes[np.abs(axes).argmax(axis=0), [0, 1]] > 0).all(), "signs are fixed"


def test_embedding_draws_every_sample_once(model, data):
    display = plots.EmbeddingDisplay.from_estimator(model)
    drawn = np.vstack([np.asarray(c.get_offsets()) for c in display.ax_.collections])
    np.testing.assert_allclose(np.sort(drawn, axis=0), np.sort(display.points, axis=0))
    assert [text.get_text() for text in display.ax_.texts] == ["0", "1", "2", "3"]
    assert display.ax_.get_title() == "Embedding of 120 samples, 4 clusters"
    by_class = plots.EmbeddingDisplay.from_estimator(model, y=np.array(["ash", "elm", "fir", "oak"])[data[1]])
    assert by_class.names == ["ash", "elm", "fir", "oak"]
    assert by_class.ax_.get_title() == "Embedding of 120 samples, 4 classes"


def test_neighbours_on_the_map_differ_in_colour(rng):
    assert len(set(style.map_colors(rng.random((8, 2))).tolist())) == 8
    _, centres, _ = layout.plane(*corners(rng, 100, 5))
    colors = style.map_colors(centres)
    distance = np.linalg.norm(centres[:, None] - centres, axis=2)
    np.fill_diagonal(distance, np.inf)
    assert (colors[distance.argmin(axis=1)] != colors).all()


# ---------------------------------------------------------------- gallery


def test_most_typical_members_come_first(rng):
    Y, labels = corners(rng, 3, 10, noise=0.2)
    for cluster, rows in enumerate(most_typical(None, labels, Y, n_shown=4)):
        cosine = Y @ Y[labels == cluster].mean(axis=0)
        members = np.flatnonzero(labels == cluster)
        assert rows.tolist() == members[np.argsort(-cosine[members], kind="stable")][:4].tolist()
    X = np.array([[0.0], [1.0], [5.0], [9.0]])
    assert [rows.tolist() for rows in most_typical(X, np.array([0, 0, 0, 1]))] == [[1, 0, 2], [3]]


def test_gallery_of_images(rng):
    X, labels = rng.random((12, 12)), np.arange(12) % 3
    display = plots.GalleryDisplay.from_predictions(X, labels, image_shape=(3, 4), n_shown=2)
    strips = [image.get_array() for image in display.ax_.images]
    assert [strip.shape for strip in strips] == [(3, 4 + 1 + 4)] * 3
    assert all(np.ma.getmaskarray(strip)[:, 4].all() for strip in strips)  # the gap
    shown = X[np.concatenate(display.members)]
    expected = (X[display.members[2][1]] - shown.min()) / np.ptp(shown)
    np.testing.assert_allclose(strips[2][:, 5:], expected.reshape(3, 4))


def test_gallery_of_images_in_colour(rng):
    X, labels = rng.random((6, 12)), [0, 0, 0, 7, 7, 7]
    display = plots.GalleryDisplay.from_predictions(X, labels, image_shape=(2, 2, 3), n_shown=2)
    strips = [image.get_array() for image in display.ax_.images]
    assert [strip.shape for strip in strips] == [(2, 5, 4)] * 2
    assert strips[0][:, 2, 3].max() == 0  # the page is seen through the gap
    assert {"0", "7", "3"} <= {text.get_text() for text in display.ax_.texts}


@pytest.mark.parametrize("as_sparse", [False, True])
def test_gallery_of_profiles(rng, as_sparse):
    X, labels = rng.random((30, 5)), np.arange(30) % 2
    display = plots.GalleryDisplay.from_predictions(sparse.csr_array(X) if as_sparse else X, labels)
    np.testing.assert_allclose(display.profiles[1, 1], X[1::2].mean(axis=0))
    np.testing.assert_allclose(display.profiles[0, 2], np.quantile(X[::2], 0.9, axis=0))
    wide = plots.GalleryDisplay.from_predictions(rng.random((9, 1001)), np.arange(9) % 2)
    assert wide.profiles.shape == (2, 3, 400)


# ---------------------------------------------------------------- scores


def test_confusion_puts_the_best_matching_on_the_diagonal():
    display = plots.ConfusionDisplay.from_predictions(["a", "a", "b", "b", "c"], [5, 5, 3, 5, 3])
    assert display.classes == ["a", "b", "c"]
    assert display.clusters == ["5", "3"]
    assert display.counts.tolist() == [[2, 0], [1, 1], [0, 1]]
    assert display.accuracy == np.trace(display.counts) / 5
    assert display.im_.get_clim() == (0, 1)
    assert sorted(text.get_text() for text in display.ax_.texts) == ["1", "1", "1", "2"]
    many = np.arange(300) % 60
    assert not plots.ConfusionDisplay.from_predictions(many, many).ax_.texts  # no room for numbers
    named = [f"a very long name {i}" for i in many]
    n_named = [len(plots.ConfusionDisplay.from_predictions(many, x).ax_.get_xticks()) for x in (many, named)]
    assert n_named == [20, 3], "names cover each other"


def test_critical_differences_have_names_ranks_and_bars(rng):
    pytest.importorskip("scikit_posthocs", reason="scikit-posthocs is not installed: pip install subspaces[stats]")
    scores, names = rng.normal(size=(40, 6)) + np.linspace(3, 0, 6), list("abcdef")
    ranking = friedman(scores, names)
    comparison = SimpleNamespace(ranking=lambda metric, level: ranking)
    display = plots.CriticalDifferenceDisplay.from_comparison(comparison)
    texts = {text.get_text() for text in display.ax_.texts}
    ranks = dict(zip(names, ranking.ranks, strict=True))
    assert all({f"{name}  {rank:.2f}", f"{rank:.2f}  {name}"} & texts for name, rank in ranks.items())
    *bars, ruler = [line for line in display.ax_.lines if line.get_color() == style.main_color(display.ax_)]
    np.testing.assert_allclose(np.ptp(ruler.get_xdata()), ranking.critical_difference)
    for bar in bars:  # joins methods that are not different
        assert np.ptp(bar.get_xdata()) <= ranking.critical_difference
    few = plots.CriticalDifferenceDisplay(friedman(rng.normal(size=(2, 4)), list("abcd"))).plot()
    assert few.ax_.get_xlim()[1] >= max(few.ax_.lines[-1].get_xdata())  # the ruler is seen


def test_settings_tried(auto):
    display = plots.SelectionDisplay.from_estimator(auto)
    assert np.nanmax(display.values) == pytest.approx(auto.selection_.winner.score)  # ties go by rule
    (frame,) = display.ax_.patches
    cell = display.values[round(frame.get_y() + 0.5), round(frame.get_x() + 0.5)]
    assert cell == auto.selection_.winner.score
    assert not any("None" in name for name in display.row_names), "no scaling"
    display.values[0, 0] = np.nan  # a setting that was not tried stays empty
    assert len(display.plot().ax_.texts) == np.isfinite(display.values).sum()
    other = plots.SelectionDisplay.from_estimator(auto, criterion="modularity")
    assert "modularity of" in other.ax_.get_title()


def test_number_of_clusters(auto):
    figure, axes = plt.subplots(1, 2)
    display = plots.NumberOfClustersDisplay.from_estimator(auto, ax=axes)
    assert display.figure_ is figure
    assert "4 clusters" in axes[0].get_title()
    assert sum(bar.get_height() for bar in axes[1].patches) == len(auto.selection_.n_clusters.natural)


# ---------------------------------------------------------------- images and tracks


def test_map_shows_each_pixel_in_its_colour():
    labels = np.array([[0, 1, -1], [2, 2, 0]])
    display = plots.LabelMapDisplay.from_predictions(labels, names=["a", "b", "c"])
    picture = display.im_.get_array()
    np.testing.assert_allclose(255 * picture[0, 1, :3], label_colors(3)[1])
    assert picture[0, 2, 3] == 0
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["a (2)", "b (1)", "c (2)"]
    many = plots.LabelMapDisplay.from_predictions(np.arange(200).reshape(10, 20))
    assert many.ax_.get_legend().get_texts()[-1].get_text() == "and 140 more"
    assert len({tuple(color) for color in label_colors(60).tolist()}) == 60


def test_map_as_a_file_reads_no_formula():
    image = pytest.importorskip("PIL.Image")
    assert image.open(BytesIO(map_png(np.zeros((5, 9), dtype=int), r"$\frac$"))).format == "PNG"


def test_spectra_with_their_spread():
    values, _, _ = make_cube((20, 20), n_bands=12, n_materials=2, random_state=0)
    found = cluster_image(values, 2)
    display = plots.SpectraDisplay.from_image(found)
    mean, spread = found.spectra()
    assert display.ax_.get_xlabel() == "band"
    np.testing.assert_allclose([line.get_ydata() for line in display.ax_.get_lines()], mean)
    band = display.ax_.collections[0].get_paths()[0].vertices[:, 1]
    np.testing.assert_allclose([band.min(), band.max()], [(mean - spread)[0].min(), (mean + spread)[0].max()])
    named = plots.SpectraDisplay(mean, 0 * mean, np.arange(12) + 400.0, "nm").plot()
    assert named.ax_.get_xlabel() == "wavelength (nm)"


def test_tracks_leave_gaps_and_end_in_dots():
    X = np.array([[0.0, 0, 1, 1, 2, 2], [5, 5, np.nan, np.nan, 7, 7], [3, 0, 4, 0, np.nan, np.nan]])
    display = plots.TracksDisplay.from_predictions(X, ["a", "b", "b"])
    lines, dots = display.ax_.collections[2], display.ax_.collections[3]
    assert [segment.tolist() for segment in lines.get_segments()] == [[[3, 0], [4, 0]]]
    assert dots.get_offsets().tolist() == [[7, 7], [4, 0]]
    assert display.ax_.yaxis_inverted()  # as in a picture
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["a: 1 track", "b: 2 tracks"]


# ---------------------------------------------------------------- all of them


@pytest.mark.parametrize("sheet", ["default", "dark_background"])
def test_nothing_is_drawn_in_the_colour_of_the_page(model, sheet):
    names = ("Coefficients", "Affinity", "Spectrum", "Embedding", "Gallery")
    with plt.style.context(sheet):
        for name in names:
            figure, ax = plt.subplots()
            display = getattr(plots, f"{name}Display").from_estimator(model, ax=ax)
            assert display.ax_ is ax
            assert display.figure_ is figure
            paper = style.luminance(ax.get_facecolor())
            inks = [text.get_color() for text in [ax.title, ax.xaxis.label, *ax.get_xticklabels()]]
            inks += [line.get_color() for line in ax.lines]
            assert all(abs(style.luminance(ink) - paper) > 0.05 for ink in inks)
            display.plot()  # once more, elsewhere
            assert display.ax_ is not ax
            figure.canvas.draw()
            plt.close("all")


def titled(figure):
    return [ax for ax in figure.axes if ax.get_title()]


def test_show_draws_what_a_method_has(data, model, landmarks):
    figure = plots.show(model)
    assert len(titled(figure)) == 4
    assert figure.get_suptitle() == "KTRR: 120 samples, 4 clusters"
    assert len(titled(plots.show(landmarks, data[0]))) == 4
    kasp = KASP(4, n_landmarks=40).fit(data[0])
    assert len(titled(plots.show(kasp, data[0]))) == 1
    with pytest.raises(ValueError, match="argument X"):
        plots.show(kasp)
    kernel, given = KTRR(4, kernel="precomputed").fit(data[0] @ data[0].T), plt.figure()
    assert plots.show(kernel, figure=given) is given
    assert len(titled(given)) == len([ax for ax in given.axes[:4] if ax.axison]) == 3  # the fourth place stays empty
    assert plots.show(TRR(1).fit(data[0])).get_suptitle() == "TRR: 120 samples, 1 cluster"


@pytest.mark.parametrize("is_last_line", [True, False])
def test_notebooks_show_a_figure_once(model, monkeypatch, is_last_line):
    """The inline backend shows what pyplot holds at the end of a cell, the last line shows what it is."""
    monkeypatch.setattr(plt, "get_backend", lambda: "module://matplotlib_inline.backend_inline")

    def display(figure):
        with pytest.raises(NotImplementedError):  # IPython then displays it in its own way
            figure._ipython_display_()
        return 1

    plt.close("all")
    figure = plots.show(model)
    times = display(figure) if is_last_line else 0
    times += sum(display(plt.figure(number)) for number in plt.get_fignums())  # the end of the cell
    assert times == 1
    assert plt.get_fignums() == []


# ---------------------------------------------------------------- errors


def test_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'subspaces\[plot\]'"):
        plots.SpectrumDisplay(np.array([0.0, 0.1]), 2).plot()


@pytest.mark.parametrize("name", ["Affinity", "Coefficients", "Spectrum", "Embedding", "Tree"])
def test_methods_without_a_graph_are_refused(data, name):
    with pytest.raises(ValueError, match=r"KASP (has no|keeps no)"):
        getattr(plots, f"{name}Display").from_estimator(KASP(4, n_landmarks=40).fit(data[0]))


def test_methods_that_lack_something_are_refused(data):
    with pytest.raises(ValueError, match="SC has no coefficients_: it represents no sample by others"):
        plots.CoefficientsDisplay.from_estimator(SC(4).fit(data[0]))
    with pytest.raises(ValueError, match=r"KMeans does not keep the samples .* give them as the argument X"):
        plots.GalleryDisplay.from_estimator(KMeans(3, n_init=1).fit(data[0]))
    with pytest.raises(ValueError, match="fit SubspaceClustering"):
        plots.SelectionDisplay.from_estimator(KTRR(4).fit(data[0]))
    with pytest.raises(ValueError, match="the number of clusters was given"):
        plots.NumberOfClustersDisplay.from_estimator(SubspaceClustering(4, kernel="rbf").fit(data[0]))


BAD = {
    "must be square": lambda: plots.AffinityDisplay.from_predictions(np.ones((3, 4)), [0, 1, 0]),
    "one entry for each of the 3 samples; got 2": lambda: plots.AffinityDisplay.from_predictions(np.eye(3), [0, 1]),
    "one-dimensional and not empty": lambda: plots.EmbeddingDisplay.from_predictions(np.eye(3), [[0, 1, 2]]),
    "embedding must have two dimensions": lambda: plots.EmbeddingDisplay.from_predictions(np.ones(3), [0, 1, 2]),
    "one of auto, pca, map; got 'tsne'": lambda: plots.EmbeddingDisplay.from_predictions(
        np.eye(3), [0, 1, 2], method="tsne"
    ),
    "no entry, so it has no spectrum": lambda: plots.SpectrumDisplay.from_predictions(np.zeros((4, 4)), 2),
    "image_shape must be": lambda: plots.GalleryDisplay.from_predictions(np.eye(3), [0, 1, 1], image_shape=(3, 3)),
    "at most 1000": lambda: plots.ConfusionDisplay.from_predictions(np.arange(2000), np.arange(2000)),
    "labels must be whole numbers": lambda: plots.LabelMapDisplay.from_predictions(np.zeros((2, 2))),
    "one of them 0 or more": lambda: plots.LabelMapDisplay.from_predictions(np.full((2, 2), -1)),
    "one entry for each of the 2 labels": lambda: plots.LabelMapDisplay.from_predictions(
        np.eye(2, dtype=int), names="a"
    ),
    "two columns for each frame": lambda: plots.TracksDisplay.from_predictions(np.zeros((3, 5)), [0, 1, 2]),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_arguments_are_refused(message):
    with pytest.raises(ValueError, match=message):
        BAD[message]()
