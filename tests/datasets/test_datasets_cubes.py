"""The image with many bands that is made: what it promises."""

from __future__ import annotations

import numpy as np
import pytest

from subspaces.datasets import make_cube


def test_shapes_and_seed():
    values, labels, wavelengths = make_cube((12, 17), n_bands=30, n_materials=4, random_state=3)
    assert values.shape == (12, 17, 30)
    assert values.dtype == np.float32
    assert labels.shape == (12, 17)
    assert wavelengths[[0, -1]].tolist() == [400, 2500]
    np.testing.assert_array_equal(values, make_cube((12, 17), 30, 4, random_state=3)[0])
    assert not np.array_equal(values, make_cube((12, 17), 30, 4, random_state=4)[0])


def test_without_noise_and_mixing_a_material_is_a_line(seed):
    values, labels, _ = make_cube((20, 20), 30, 3, noise=0, mixing=0, random_state=seed)
    for k in range(3):
        singular = np.linalg.svd(values[labels == k].astype(np.float64), compute_uv=False)
        assert singular[1] < 1e-5 * singular[0]


def test_borders_mix(seed):
    sharp, labels, _ = make_cube((30, 30), 20, 2, noise=0, mixing=0, random_state=seed)
    mixed, _, _ = make_cube((30, 30), 20, 2, noise=0, mixing=2, random_state=seed)
    border = (labels != np.roll(labels, 1, axis=1))[:, 1:]
    change = np.abs(np.diff(sharp / sharp.sum(axis=2, keepdims=True), axis=1)).max(axis=2)[border].mean()
    softer = np.abs(np.diff(mixed / mixed.sum(axis=2, keepdims=True), axis=1)).max(axis=2)[border].mean()
    assert softer < 0.5 * change


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n_bands": 0}, "n_bands"),
        ({"noise": -1}, "noise must be a number of 0 or more; got -1"),
        ({"mixing": float("nan")}, "mixing must be"),
        ({"shape": (2, 2), "n_materials": 5}, "n_materials must be at most the number of pixels"),
    ],
)
def test_refusals(options, said):
    with pytest.raises(ValueError, match=said):
        make_cube(**options)
