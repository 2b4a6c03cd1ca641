"""The pictures by the data they draw, not by their pixels; every display on light and dark, few and many clusters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import block_diag
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from subspaces import EKTRR, KASP, KTRR
from subspaces.datasets import make_subspaces, salt_and_pepper
from subspaces.inspection import plots
from subspaces.inspection.plots import layout, style
from subspaces.inspection.plots.gallery import most_typical
from subspaces.inspection.plots.graph import cells_of

plt = pytest.importorskip("matplotlib.pyplot", reason="Matplotlib is not installed: pip install subspaces[plot]")
pytestmark = pytest.mark.usefixtures("no_figure_is_left")


@pytest.fixture(scope="module")
def data():
    return make_subspaces(4, 2, 12, 30, noise=0.01, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return KTRR(4, kernel="quadratic", reg=0.01).fit(data[0])


def random_graph(rng, n, k):
    labels = rng.permutation(np.arange(n) % k)
    W = sparse.random_array((n, n), density=0.05, rng=rng, format="csr")
    W.data -= 0.5
    return W, labels


# ---------------------------------------------------------------- cells


@pytest.mark.parametrize(("n", "n_cells"), [(7, 7), (50, 12), (200, 33), (5, 360)])
def test_cells_against_a_dense_reference(rng, n, n_cells):
    W, labels = random_graph(rng, n, 3)
    dense = W.toarray()
    order = np.argsort(labels, kind="stable")
    ordered = dense[np.ix_(order, order)]
    size = min(n, n_cells)
    edges = np.ceil(np.arange(size + 1) * n / size).astype(int)
    sums, strongest = cells_of(W, labels, n_cells), cells_of(W, labels, n_cells, how="strongest")
    assert sums.shape == strongest.shape == (size, size)
    for a in range(size):
        for b in range(size):
            cell = ordered[edges[a] : edges[a + 1], edges[b] : edges[b + 1]]
            np.testing.assert_allclose(sums[a, b], cell.sum(), atol=1e-12)
            assert abs(strongest[a, b]) == np.abs(cell).max()
    np.testing.assert_allclose(sums.sum(), dense.sum())  # nothing is left out


def test_cells_of_many_points_need_no_square_array():
    n = 300_000  # n × n doubles would be 720 GB
    W = sparse.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    cells = cells_of(W, np.arange(n) % 3)
    assert cells.shape == (360, 360)
    assert cells.sum() == n


# ---------------------------------------------------------------- matrices


def test_affinity_of_a_good_graph_is_block_diagonal(model):
    display = plots.AffinityDisplay.from_estimator(model)
    np.testing.assert_allclose(display.cells.sum(), model.affinity_matrix_.sum())
    assert display.ends.tolist() == np.cumsum(np.bincount(model.labels_)).tolist()
    start = 0
    inside = 0.0
    for end in display.ends:
        inside += display.cells[start:end, start:end].sum()
        start = end
    same = model.labels_[:, None] == model.labels_
    np.testing.assert_allclose(inside, model.affinity_matrix_.toarray()[same].sum())
    drawn = display.im_.get_array()
    assert np.ma.getmaskarray(drawn).sum() == (display.cells == 0).sum()


def test_what_is_summed_is_said(rng):
    W, labels = random_graph(rng, 90, 3)
    few = plots.AffinityDisplay.from_predictions(abs(W), labels)
    many = plots.AffinityDisplay.from_predictions(abs(W), labels, n_cells=30)
    assert "cells" not in few.note
    assert "30 × 30 cells" in many.note
    assert "sum of about 9" in many.note
    assert many.note in many.ax_.get_xlabel()
    assert "strongest" in plots.CoefficientsDisplay.from_predictions(W, labels, n_cells=30).note


def test_coefficients_keep_their_sign(rng):
    W, labels = random_graph(rng, 60, 3)
    display = plots.CoefficientsDisplay.from_predictions(W, labels, n_cells=20)
    assert display.cells.min() < 0 < display.cells.max()
    low, high = display.im_.get_clim()
    assert low == -high == -np.abs(W.data).max()  # zero in the middle of the colours


def test_landmarks_are_said_to_be_landmarks(data):
    large = EKTRR(4, n_landmarks=60, kernel="quadratic", reg=0.01).fit(data[0])
    display = plots.AffinityDisplay.from_estimator(large)
    assert display.n_samples == 60
    assert "60 landmarks of EKTRR" in display.note
    assert len(plots.EmbeddingDisplay.from_estimator(large).points) == 60


def test_methods_without_coefficients_say_so(data):
    from subspaces import SC

    model = SC(4).fit(data[0])
    assert plots.AffinityDisplay.from_estimator(model).n_samples == 120
    with pytest.raises(ValueError, match="SC has no coefficients_: it represents no point by others"):
        plots.CoefficientsDisplay.from_estimator(model)


def test_coefficients_of_an_estimator_are_drawn_as_they_are(data):
    from subspaces import TRR

    model = TRR(4).fit(data[0])
    display = plots.CoefficientsDisplay.from_estimator(model)
    order = np.argsort(model.labels_, kind="stable")
    np.testing.assert_array_equal(display.cells, model.coefficients_.toarray()[np.ix_(order, order)])
    assert display.cells.min() < 0 < display.cells.max()
    low, high = display.im_.get_clim()
    assert low == -high == -np.abs(display.cells).max()


@pytest.mark.parametrize("name", ["AffinityDisplay", "CoefficientsDisplay", "SpectrumDisplay", "EmbeddingDisplay"])
def test_methods_without_a_graph_say_so(data, name):
    with pytest.raises(ValueError, match="KASP"):
        getattr(plots, name).from_estimator(KASP(4, n_landmarks=40).fit(data[0]))


def test_wrong_arguments():
    with pytest.raises(ValueError, match="square"):
        plots.AffinityDisplay.from_predictions(np.ones((3, 4)), [0, 1, 0])
    with pytest.raises(ValueError, match="labels must have one entry for each of the 3 points"):
        plots.AffinityDisplay.from_predictions(np.ones((3, 3)), [0, 1])
    with pytest.raises(ValueError, match="method must be one of auto, pca, map; got 'tsne'"):
        plots.EmbeddingDisplay.from_predictions(np.eye(3), [0, 1, 2], method="tsne")
    with pytest.raises(ValueError, match="image_shape"):
        plots.GalleryDisplay.from_predictions(np.ones((3, 4)), [0, 1, 1], image_shape=(3, 3))


# ---------------------------------------------------------------- spectrum


def test_spectrum_of_a_graph_with_known_eigenvalues():
    W = sparse.csr_array(block_diag(*[np.ones((5, 5)) - np.eye(5)] * 3))  # L of K5: 0 once, 5/4 four times
    display = plots.SpectrumDisplay.from_predictions(W, 3, n_eigenvalues=6)
    np.testing.assert_allclose(display.eigenvalues, [0, 0, 0, 1.25, 1.25, 1.25], atol=1e-12)
    np.testing.assert_allclose(display.gap_, 1.25)
    assert display.widest_ == 3
    assert "after 3 clusters" in display.ax_.get_title()
    np.testing.assert_allclose(display.ax_.lines[0].get_ydata(), display.eigenvalues)


def test_gap_that_was_not_computed():
    display = plots.SpectrumDisplay(np.array([0.0, 0.1]), 2).plot()
    assert np.isnan(display.gap_)


# ---------------------------------------------------------------- embedding


def corners(rng, k, n_each, noise=0.05):
    labels = np.repeat(np.arange(k), n_each)
    Y = np.eye(k)[labels] + noise * rng.standard_normal((k * n_each, k))
    return Y / np.linalg.norm(Y, axis=1, keepdims=True), labels


@pytest.mark.parametrize("k", [4, 10, 38, 100])
def test_map_keeps_every_cluster_together_and_apart(rng, k):
    Y, labels = corners(rng, k, 20, noise=0.3 / np.sqrt(k))  # a row's noise has length 0.3 whatever k is
    points, centres, method = layout.plane(Y, labels)
    assert method == "map"
    distance = np.linalg.norm(points[:, None] - centres, axis=2)
    assert (distance.argmin(axis=1) == labels).mean() > 0.97
    shift = [np.median(points[labels == cluster] - centres[cluster], axis=0) for cluster in range(k)]
    assert np.abs(shift).max() < 2  # numbers stand on their discs, whose radius is about 4.5


def test_a_doubtful_point_lies_between_its_clusters(rng):
    Y, labels = corners(rng, 5, 30, noise=0.01)
    Y[0] = (np.eye(5)[0] + np.eye(5)[3]) / np.sqrt(2)
    points, centres, _ = layout.plane(Y, labels)
    between = np.linalg.norm(points[0] - (centres[0] + centres[3]) / 2)
    assert between < 0.5 * np.linalg.norm(centres[0] - centres[3])
    assert layout.ranks_within(labels, layout.typicality(Y, labels))[0] == 29  # the least typical of its cluster


def test_plane_is_the_principal_one(rng):
    Y = rng.standard_normal((40, 6)) * np.arange(1, 7)
    found = layout.principal_plane(Y)
    _, values, vectors = np.linalg.svd(Y - Y.mean(axis=0))
    np.testing.assert_allclose(np.abs(found), np.abs((Y - Y.mean(axis=0)) @ vectors[:2].T), atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), values[:2])


def test_embedding_draws_every_point_once(model):
    display = plots.EmbeddingDisplay.from_estimator(model)
    drawn = np.vstack([np.asarray(c.get_offsets()) for c in display.ax_.collections])
    assert len(drawn) == len(model.labels_)
    np.testing.assert_allclose(np.sort(drawn, axis=0), np.sort(display.points, axis=0))
    assert [text.get_text() for text in display.ax_.texts] == ["0", "1", "2", "3"]
    assert plots.EmbeddingDisplay.from_estimator(model, method="pca").method == "pca"


def test_few_clusters_have_their_own_colour_many_differ_from_their_neighbours(rng):
    assert len(set(style.map_colors(rng.random((8, 2))).tolist())) == 8
    _, centres, _ = layout.plane(*corners(rng, 100, 5))
    colors = style.map_colors(centres)
    distance = np.linalg.norm(centres[:, None] - centres, axis=2)
    np.fill_diagonal(distance, np.inf)
    assert (colors[distance.argmin(axis=1)] != colors).all()


# ---------------------------------------------------------------- gallery


def test_most_typical_members_come_first(rng):
    Y, labels = corners(rng, 3, 10, noise=0.2)
    found = most_typical(None, labels, Y, n_shown=4)
    for cluster, rows in enumerate(found):
        cosine = Y @ Y[labels == cluster].mean(axis=0)
        members = np.flatnonzero(labels == cluster)
        assert rows.tolist() == members[np.argsort(-cosine[members], kind="stable")][:4].tolist()
    X = np.array([[0.0], [1.0], [5.0], [9.0]])
    assert [rows.tolist() for rows in most_typical(X, np.array([0, 0, 0, 1]))] == [[1, 0, 2], [3]]


def test_gallery_of_images(rng):
    X, labels = rng.random((12, 12)), np.arange(12) % 3
    display = plots.GalleryDisplay.from_predictions(X, labels, image_shape=(3, 4), n_shown=2)
    assert [len(images) for images in display.images] == [2, 2, 2]
    strips = [image.get_array() for image in display.ax_.images]
    assert [strip.shape for strip in strips] == [(3, 4 + 1 + 4)] * 3
    assert all(np.ma.getmaskarray(strip)[:, 4].all() for strip in strips)  # the gap
    np.testing.assert_array_equal(strips[2][:, 5:], display.images[2][1])
    spread = np.concatenate(display.images)
    assert spread.min() == 0
    assert spread.max() == 1
    shown = X[display.members[1][0]].reshape(3, 4)
    np.testing.assert_allclose(np.corrcoef(display.images[1][0].ravel(), shown.ravel())[0, 1], 1)


def test_gallery_takes_given_exemplars_and_colour(rng):
    X, labels = rng.random((6, 12)), [0, 0, 0, 7, 7, 7]
    display = plots.GalleryDisplay.from_predictions(
        X, labels, image_shape=(2, 2, 3), exemplars=[[2, 0], [5]], framed=np.arange(len(X)) == 0
    )
    (frame,) = display.ax_.patches  # of the second image: one image and one gap of a pixel from the left
    np.testing.assert_allclose(frame.get_bbox().bounds, (0.9 + 1.5, 0.02, 1, 1))
    assert [rows.tolist() for rows in display.members] == [[2, 0], [5]]
    assert display.names == ["0", "7"]
    assert display.images[0].shape == (2, 2, 2, 3)


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
    assert sorted(text.get_text() for text in display.ax_.texts) == ["1", "1", "1", "2"]


def test_confusion_of_an_estimator(data, model):
    display = plots.ConfusionDisplay.from_estimator(model, y_true=data[1])
    assert display.accuracy == np.trace(display.counts) / len(data[1])
    again = plots.ConfusionDisplay.from_estimator(model, data[0], y_true=data[1])
    assert again.counts.tolist() == display.counts.tolist()


def test_confusion_with_too_many_classes(rng):
    with pytest.raises(ValueError, match="1000"):
        plots.ConfusionDisplay.from_predictions(np.arange(2000), np.arange(2000))


def test_noise_curves(data):
    X, y = data
    display = plots.NoiseDisplay.from_estimator(
        {"quadratic": KTRR(4, kernel="quadratic", reg=0.01), "rbf": KTRR(4)},
        X,
        y_true=y,
        corrupt=salt_and_pepper,
        levels=[0.0, 0.9],
        n_repeats=2,
    )
    assert display.scores["quadratic"].shape == (2, 2)
    assert display.mean_["quadratic"][0] > display.mean_["quadratic"][1]
    np.testing.assert_allclose(display.ax_.lines[1].get_ydata(), display.mean_["rbf"])
    flat = plots.NoiseDisplay.from_predictions([0, 1], {"a": [0.5, 0.25]}, score_name="nmi")
    assert flat.mean_["a"].tolist() == [0.5, 0.25]
    with pytest.raises(ValueError, match=r"scores\['a'\]"):
        plots.NoiseDisplay.from_predictions([0, 1], {"a": [0.5]})


# ---------------------------------------------------------------- all of them


def drawings(model, X, y):
    return [
        lambda ax: plots.CoefficientsDisplay.from_estimator(model, ax=ax),
        lambda ax: plots.AffinityDisplay.from_estimator(model, X, ax=ax),
        lambda ax: plots.SpectrumDisplay.from_estimator(model, ax=ax),
        lambda ax: plots.EmbeddingDisplay.from_estimator(model, ax=ax),
        lambda ax: plots.GalleryDisplay.from_estimator(model, X, ax=ax),
        lambda ax: plots.ConfusionDisplay.from_estimator(model, y_true=y, ax=ax),
        lambda ax: plots.NoiseDisplay.from_predictions([0, 1], {"a": [1, 0.5]}, ax=ax),
    ]


@pytest.mark.parametrize("sheet", ["default", "dark_background"])
def test_nothing_is_drawn_in_the_colour_of_the_page(data, model, sheet):
    with plt.style.context(sheet):
        for draw in drawings(model, *data):
            figure, ax = plt.subplots()
            display = draw(ax)
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


def test_pipelines_are_looked_into(data):
    pipeline = make_pipeline(StandardScaler(with_mean=False), KTRR(4)).fit(data[0])
    assert plots.AffinityDisplay.from_estimator(pipeline).n_samples == 120


def test_show(data, model):
    figure = plots.show(model)
    assert len([ax for ax in figure.axes if ax.get_title()]) == 4
    assert "KTRR: 120 points, 4 clusters" in figure.get_suptitle()
    kasp = KASP(4, n_landmarks=40).fit(data[0])
    assert len([ax for ax in plots.show(kasp, data[0]).axes if ax.get_title()]) == 1
    with pytest.raises(ValueError, match="argument X"):
        plots.show(kasp)
    large = EKTRR(4, n_landmarks=60, kernel="quadratic", reg=0.01).fit(data[0])
    assert len([ax for ax in plots.show(large, data[0]).axes if ax.get_title()]) == 4
