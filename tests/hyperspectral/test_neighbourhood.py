"""Features of pixels with their surroundings, and superpixels, against slow and plain ways to the same."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import normalize

from subspaces.applications import cube as io_cube
from subspaces.applications.hyperspectral import neighbourhood
from subspaces.applications.hyperspectral.neighbourhood import patches, propagate, unit_components
from subspaces.applications.hyperspectral.superpixels import segment_means, superpixels
from subspaces.datasets import make_cube


def everywhere(values):
    return np.ones(values.shape[:2], dtype=bool)


def test_components_are_those_of_scikit_learn(seed):
    values, _, _ = make_cube((12, 15), n_bands=20, n_materials=3, random_state=seed)
    found = unit_components(values, everywhere(values), 4).reshape(-1, 4)
    wanted = PCA(4).fit_transform(normalize(values.reshape(-1, 20).astype(np.float64)))
    np.testing.assert_allclose(np.abs(found), np.abs(wanted), atol=2e-6 * np.abs(wanted).max() + 1e-6)


def test_components_do_not_depend_on_the_light(seed):
    rng = np.random.default_rng(seed)
    values, _, _ = make_cube((9, 8), n_bands=10, n_materials=2, random_state=seed)
    brighter = values.astype(np.float64) * rng.uniform(1e-3, 1e6, (9, 8, 1))
    first, second = (unit_components(v, everywhere(v), 3) for v in (values.astype(np.float64), brighter))
    np.testing.assert_allclose(first, second, atol=1e-5)


def test_components_by_pieces_are_the_same(monkeypatch):
    values, _, _ = make_cube((11, 7), n_bands=10, n_materials=2, random_state=0)
    whole = unit_components(values, everywhere(values), 3)
    monkeypatch.setattr(io_cube, "BLOCK_BYTES", 1)
    np.testing.assert_array_equal(unit_components(values, everywhere(values), 3), whole)


def test_pixels_without_a_spectrum_get_the_nearest():
    values, _, _ = make_cube((6, 7), n_bands=10, n_materials=2, random_state=0)
    mask = everywhere(values)
    mask[2, 3] = mask[0, 0] = False
    values[~mask] = np.nan
    found = unit_components(values, mask, 3)
    neighbours = [found[2, 2], found[2, 4], found[1, 3], found[3, 3]]
    assert any(np.array_equal(found[2, 3], other) for other in neighbours)
    assert np.isfinite(found).all()


def test_spectra_of_zeros_and_integers_are_fine():
    values = np.zeros((4, 4, 3), dtype=np.uint16)
    values[1:] = 65535
    found = unit_components(values, everywhere(values), 9)
    assert found.shape == (4, 4, 3)
    assert np.isfinite(found).all()
    assert not np.array_equal(found[0, 0], found[1, 0])


@pytest.mark.parametrize("size", [1, 3, 5])
def test_patches_are_what_stands_around_a_pixel(size, seed):
    rng = np.random.default_rng(seed)
    image, mask = rng.normal(size=(7, 6, 2)), rng.random((7, 6)) < 0.5
    mask[3, 3] = True
    half, sigma = size // 2, size / 5
    padded = np.pad(image, ((half, half), (half, half), (0, 0)), "reflect")
    wanted = []
    for row, column in np.argwhere(mask):
        patch = padded[row : row + size, column : column + size].transpose(2, 0, 1).copy()
        for i in range(size):
            for j in range(size):
                squared = (i - half) ** 2 + (j - half) ** 2
                patch[:, i, j] *= np.exp(-squared / (4 * sigma**2)) if size > 1 else 1
        wanted.append(patch.ravel())
    np.testing.assert_allclose(patches(image, mask, size), wanted)


def test_patches_of_an_image_smaller_than_they_are():
    assert patches(np.ones((1, 2, 3)), np.ones((1, 2), dtype=bool), 7).shape == (2, 3 * 49)


def test_patches_that_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr(neighbourhood.memory, "available_bytes", lambda: 1000)
    with pytest.raises(MemoryError, match=r"patches of 7 × 7 pixels around 100 pixels needs .* superpixels"):
        patches(np.ones((10, 10, 3)), np.ones((10, 10), dtype=bool), 7)
    with pytest.raises(MemoryError, match="3 components of 10 × 10 pixels needs"):
        unit_components(np.ones((10, 10, 3)), np.ones((10, 10), dtype=bool), 5)


def test_propagation_is_that_of_the_authors(seed):
    X = np.random.default_rng(seed).normal(size=(40, 5))
    A = kneighbors_graph(X, 7, include_self=True).toarray()  # a point is its own nearest neighbour
    A = A * A.T
    D = np.diag(A.sum(axis=1) ** -0.5)
    np.testing.assert_allclose(propagate(X, 6), D @ A @ D @ X)


# ------------------------------------------------------------------ superpixels


def test_segment_means(seed):
    rng = np.random.default_rng(seed)
    points, segments = rng.normal(size=(6, 5, 3)), rng.integers(-1, 4, (6, 5))
    segments[0, :4] = range(4)
    wanted = [points[segments == k].mean(axis=0) for k in range(4)]
    np.testing.assert_allclose(segment_means(points, segments, 4), wanted)
    assert np.isnan(segment_means(points, segments, 5)[4]).all()


def test_superpixels_stay_inside_of_sharp_fields(seed):
    values, labels, _ = make_cube((40, 50), 30, 3, contrast=0.3, noise=0.01, mixing=0, random_state=seed)
    segments = superpixels(unit_components(values, everywhere(values), 5), everywhere(values), 200)
    n = segments.max() + 1
    assert 100 <= n <= 250
    pure = [np.bincount(labels[segments == k]).max() / (segments == k).sum() for k in range(n)]
    assert np.mean(pure) > 0.98


def test_superpixels_are_near_their_cells():
    image = np.zeros((40, 40, 2), dtype=np.float32)  # nothing to see: the grid remains
    segments = superpixels(image, np.ones((40, 40), dtype=bool), 16)
    assert np.bincount(segments.ravel()).tolist() == [100] * 16


def test_superpixels_leave_out_what_is_masked():
    values, _, _ = make_cube((20, 20), 10, 2, random_state=0)
    mask = everywhere(values)
    mask[:10] = False
    segments = superpixels(unit_components(values, mask, 3), mask, 30)
    assert (segments[:10] == -1).all()
    assert sorted(set(segments[10:].ravel().tolist())) == list(range(segments.max() + 1))


def test_superpixels_by_pieces_are_the_same(monkeypatch):
    values, _, _ = make_cube((20, 20), 10, 3, random_state=0)
    components = unit_components(values, everywhere(values), 4)
    whole = superpixels(components, everywhere(values), 25)
    monkeypatch.setattr(io_cube, "BLOCK_BYTES", 1)
    np.testing.assert_array_equal(superpixels(components, everywhere(values), 25), whole)
