"""Synthetic data and corruption, measured against what was asked for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from subspaces.datasets import (
    add_gaussian_noise,
    make_cube,
    make_motions,
    make_spheres,
    make_subspaces,
    make_three_curves,
    salt_and_pepper,
)

CURVED = {
    "curves": (make_three_curves, {}),
    "spheres": (make_spheres, {"n_spheres": 3, "dimension": 2}),
}


def basis_of(points, dimension):
    return np.linalg.svd(points, full_matrices=False)[2][:dimension].T


# ------------------------------------------------------------------ subspaces


@pytest.mark.parametrize("on_sphere", [True, False])
def test_subspaces_have_their_dimension_and_size(seed, on_sphere):
    X, y = make_subspaces(3, [1, 3, 5], ambient=12, n_samples=[9, 20, 31], on_sphere=on_sphere, random_state=seed)
    assert X.shape == (60, 12)
    assert y.dtype == np.intp
    np.testing.assert_array_equal(y, np.repeat([0, 1, 2], [9, 20, 31]))
    assert [np.linalg.matrix_rank(X[y == k]) for k in range(3)] == [1, 3, 5]
    assert np.linalg.matrix_rank(X) == 9  # independent
    assert np.allclose(np.linalg.norm(X, axis=1), 1) == on_sphere


def test_affine_subspaces(seed):
    X, y = make_subspaces(3, dimension=4, ambient=10, n_samples=40, affine=True, random_state=seed)
    for k in range(3):
        points = X[y == k]
        centred = points - points.mean(axis=0)
        assert np.linalg.matrix_rank(points) == 5
        assert np.linalg.matrix_rank(centred) == 4
        directions = basis_of(centred, 4)
        offsets = points - points @ directions @ directions.T
        np.testing.assert_allclose(offsets, offsets[:1].repeat(40, axis=0), atol=1e-10)
        np.testing.assert_allclose(np.linalg.norm(offsets[0]), 1, rtol=1e-10)


@pytest.mark.parametrize("angle", [5, 60, 90])
def test_angle_between_any_two(seed, angle):
    dimensions = [2, 4, 3]
    X, y = make_subspaces(3, dimension=dimensions, ambient=12, n_samples=30, angle=angle, random_state=seed)
    bases = [basis_of(X[y == k], d) for k, d in enumerate(dimensions)]
    for k in range(3):
        for other in range(k):
            np.testing.assert_allclose(np.rad2deg(subspace_angles(bases[k], bases[other])), angle, atol=1e-5)


def test_random_subspaces_are_uniform(seed):
    """The projection of a fixed vector on a random subspace of dimension d has the mean square d / ambient."""
    rng = np.random.RandomState(seed)
    squares = []
    for _ in range(500):
        X, _ = make_subspaces(1, dimension=2, ambient=8, n_samples=5, random_state=rng)
        squares.append((basis_of(X, 2)[0] ** 2).sum())
    assert abs(np.mean(squares) - 2 / 8) < 5 * np.std(squares) / np.sqrt(500)


@pytest.mark.parametrize(
    ("make", "options", "problem"),
    [
        (make_subspaces, {"ambient": 2}, "ambient must be at least the dimension"),
        (make_subspaces, {"ambient": 3, "affine": True}, "affine subspaces need one more"),
        (make_subspaces, {"dimension": [1, 2]}, "dimension must be one number or 3 of them; got 2"),
        (make_subspaces, {"n_samples": [1, 2, 2.5]}, "n_samples must be a whole number"),
        (make_subspaces, {"n_samples": True}, "n_samples must be a whole number"),
        (make_subspaces, {"noise": -1}, "noise must be at least 0"),
        (make_subspaces, {"noise": np.inf}, "noise must be at least 0"),
        (make_subspaces, {"angle": 0}, "angle must be above 0"),
        (make_subspaces, {"angle": 91}, "angle must be above 0"),
        (make_subspaces, {"angle": 45, "ambient": 8}, r"at least n_subspaces \* max\(dimension\) = 9 .* got 8"),
        (make_cube, {"n_bands": 0}, "n_bands"),
        (make_cube, {"mixing": float("nan")}, "mixing must be"),
        (make_cube, {"shape": (2, 2), "n_materials": 5}, "n_materials must be at most the number of pixels"),
        (make_motions, {"n_motions": 0}, "n_motions"),
        (make_motions, {"n_tracks": [3, 4]}, "n_tracks must be one number or 3 of them; got 2"),
        (make_motions, {"n_frames": 1}, "n_frames must be 2 or more"),
        (make_motions, {"perspective": 0.6}, "perspective must be at least 0 and below 0.5; got 0.6"),
    ],
)
def test_what_cannot_be_made(make, options, problem):
    with pytest.raises(ValueError, match=problem):
        make(**options)


# ------------------------------------------------------------------ curves and spheres


def test_curved_families_satisfy_their_equations(seed):
    X, y = make_three_curves(40, random_state=seed)
    np.testing.assert_allclose(X[:, 1], np.array([0.3, 1, 3])[y] * X[:, 0] ** 2)
    X, y = make_spheres(3, dimension=4, n_samples=60, random_state=seed)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), y + 1)
    assert [np.linalg.matrix_rank(X[y == k]) for k in range(3)] == [5, 5, 5]


@pytest.mark.parametrize("name", CURVED)
def test_curved_families_in_more_dimensions(seed, name):
    make, options = CURVED[name]
    X, y = make(n_samples=20, random_state=seed, **options)
    turned, same = make(n_samples=20, ambient=11, random_state=seed, **options)
    assert turned.shape == (60, 11)
    np.testing.assert_array_equal(y, same)
    np.testing.assert_allclose(turned @ turned.T, X @ X.T, atol=1e-12)  # an isometry
    noisy, _ = make(n_samples=20, ambient=11, noise=0.1, random_state=seed, **options)
    assert abs((noisy - turned).std() - 0.1) < 5 * 0.1 / np.sqrt(2 * noisy.size)
    with pytest.raises(ValueError, match="ambient must be at least"):
        make(n_samples=20, ambient=1, **options)


# ------------------------------------------------------------------ hyperspectral images


def test_cube_has_pure_fields_and_mixed_borders(seed):
    sharp, labels, wavelengths = make_cube((30, 25), 20, 3, noise=0, mixing=0, random_state=seed)
    assert sharp.shape == (30, 25, 20)
    assert sharp.dtype == np.float32
    assert wavelengths[[0, -1]].tolist() == [400, 2500]
    for k in range(3):  # without noise and mixing a material is a line
        singular = np.linalg.svd(sharp[labels == k].astype(np.float64), compute_uv=False)
        assert singular[1] < 1e-5 * singular[0]
    mixed, _, _ = make_cube((30, 25), 20, 3, noise=0, mixing=2, random_state=seed)
    border = (labels != np.roll(labels, 1, axis=1))[:, 1:]
    change, softer = (
        np.abs(np.diff(cube / cube.sum(axis=2, keepdims=True), axis=1)).max(axis=2)[border].mean()
        for cube in (sharp, mixed)
    )
    assert softer < 0.5 * change
    noisy, _, _ = make_cube((30, 25), 20, 3, noise=0.2, mixing=0, random_state=seed)
    assert 0.15 < (noisy - sharp).std() / sharp.mean() < 0.25


# ------------------------------------------------------------------ corruption


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_snr_of_the_set(rng, seed, dtype):
    X = (rng.uniform(0, 255, (200, 300)) * rng.uniform(0.01, 1, (200, 1))).astype(dtype)
    before = X.copy()
    noisy = add_gaussian_noise(X, 10, random_state=seed)
    assert noisy.dtype == dtype
    np.testing.assert_array_equal(X, before)
    noise = noisy.astype(float) - X
    measured = 10 * np.log10((X.astype(float) ** 2).sum() / (noise**2).sum())
    assert abs(measured - 10) < 0.15  # 60000 draws give the variance to 0.6 %, that is 0.03 dB
    # white: the same noise on dark images as on bright ones
    bright = np.argsort(X.mean(axis=1))[100:]
    assert abs(np.delete(noise, bright, axis=0).std() / noise[bright].std() - 1) < 0.05


def test_limits_of_the_snr():
    np.testing.assert_array_equal(add_gaussian_noise(np.eye(3, dtype=np.uint8), np.inf), np.eye(3))
    for wrong in (np.nan, -np.inf):
        with pytest.raises(ValueError, match="snr_db must be a number"):
            add_gaussian_noise(np.eye(3), wrong)


@pytest.mark.parametrize(("ratio", "dtype"), [(0, np.float64), (0.101, np.float32), (0.25, np.uint8), (1, np.uint8)])
def test_share_of_salt_and_pepper(rng, seed, ratio, dtype):
    X = rng.integers(1, 255, (300, 30 * 33)).astype(dtype)
    X[0, 0], X[1, 1] = 0, 255  # the set's black and white
    before = X.copy()
    damaged = salt_and_pepper(X, ratio, random_state=seed)
    assert damaged.dtype == dtype
    np.testing.assert_array_equal(X, before)
    n = int(np.floor(ratio * 990 + 0.5))
    inside = damaged[2:]
    salt, pepper = (inside == 255).sum(axis=1), (inside == 0).sum(axis=1)
    np.testing.assert_array_equal(salt + pepper, n)
    assert np.abs(salt - pepper).max(initial=0) == n % 2
    kept = (inside != 255) & (inside != 0)
    np.testing.assert_array_equal(inside[kept], X[2:][kept])


def test_salt_prefers_no_place(seed):
    damaged = salt_and_pepper(np.full((4000, 20), 0.5), 0.4, low=0, high=1, random_state=seed)
    for value in (0, 1):
        share = (damaged == value).mean(axis=0)
        assert np.abs(share - 0.2).max() < 5 * np.sqrt(0.2 * 0.8 / 4000)


def test_salt_and_pepper_refusals():
    X = np.full((3, 10), 7, dtype=np.uint8)
    for options in ({"low": -1}, {"high": 256}, {"high": 0.5}, {"high": np.nan}):
        with pytest.raises(ValueError, match=f"{next(iter(options))} must be a value that images of type uint8"):
            salt_and_pepper(X, 0.5, **options)
    for ratio in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match=r"ratio must be in \[0, 1\]"):
            salt_and_pepper(X, ratio)
