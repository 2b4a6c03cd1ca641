"""A hyperspectral image with known classes: fields of a few materials, light, noise and mixed borders."""

from __future__ import annotations

import numpy as np
from scipy import ndimage
from sklearn.utils import check_random_state

from subspaces.datasets.synthetic import Seed, nonnegative, positive
from subspaces.utils.types import Array, Labels

FIRST, LAST = 400.0, 2500.0
"""Nanometres, from visible light to the short-wave infrared, as airborne sensors see."""


def make_cube(
    shape: tuple[int, int] = (60, 60),
    n_bands: int = 100,
    n_materials: int = 5,
    *,
    contrast: float = 0.1,
    noise: float = 0.1,
    mixing: float = 1.0,
    random_state: Seed = None,
) -> tuple[Array, Labels, Array]:
    """Make a hyperspectral image of fields, each of one material.

    Spectra are smooth: one base that all materials share, and bumps of each. Light changes slowly over the image and
    from pixel to pixel, which scales whole spectra. At the border of two fields their spectra mix, as in pixels of
    real sensors; every value has Gaussian noise.

    Parameters
    ----------
    shape : (rows, columns), default=(60, 60)
    n_bands, n_materials : of a material there are two fields or more where the image has room
    contrast : size of the bumps of a material beside the base; less is harder
    noise : standard deviation of the noise, relative to the mean value of the image
    mixing : width of mixed borders in pixels (standard deviation of the blur); 0 for sharp ones
    random_state : seed

    Returns
    -------
    values : float32 array of shape (rows, columns, n_bands)
    labels : array of shape (rows, columns)
        Material that has the largest share of each pixel.
    wavelengths : array of shape (n_bands,), in nanometres

    Examples
    --------
    >>> from subspaces.datasets import make_cube
    >>> values, labels, wavelengths = make_cube((20, 30), n_bands=50, n_materials=3, random_state=0)
    >>> values.shape, labels.shape, sorted(set(labels.ravel().tolist()))
    ((20, 30, 50), (20, 30), [0, 1, 2])
    """
    rows, columns = (positive("shape", side) for side in shape)
    positive("n_bands", n_bands), positive("n_materials", n_materials)
    for name, value in (("contrast", contrast), ("noise", noise), ("mixing", mixing)):
        nonnegative(name, value)
    if n_materials > rows * columns:
        raise ValueError(f"n_materials must be at most the number of pixels; got {n_materials} for {rows * columns}")
    rng = check_random_state(random_state)
    wavelengths = np.linspace(FIRST, LAST, n_bands)
    spectra = _spectra(wavelengths, n_materials, contrast, rng)
    fields = _fields(rows, columns, n_materials, rng)
    shares = np.stack([(fields == k).astype(np.float64) for k in range(n_materials)], axis=2)
    if mixing > 0:
        shares = ndimage.gaussian_filter(shares, (mixing, mixing, 0), mode="nearest")
        shares /= shares.sum(axis=2, keepdims=True)
    light = ndimage.gaussian_filter(rng.standard_normal((rows, columns)), max(rows, columns) / 8, mode="nearest")
    light = 1 + 0.2 * light / max(float(np.abs(light).max()), 1e-12) + 0.05 * rng.standard_normal((rows, columns))
    values = (np.maximum(light, 0.1)[:, :, None] * (shares @ spectra)).astype(np.float32)
    for row in values:  # by rows: noise of the whole cube in double precision would be twice its size
        row += noise * spectra.mean() * rng.standard_normal(row.shape)
    return values, shares.argmax(axis=2).astype(np.intp), wavelengths


def _spectra(wavelengths: Array, n_materials: int, contrast: float, rng: np.random.RandomState) -> Array:
    """Return a spectrum for each material, as rows: the base times the exponential of four bumps, up or down."""

    def bumps(n: int) -> Array:
        centres, widths = rng.uniform(FIRST, LAST, n), rng.uniform(60, 300, n)
        heights = rng.choice([-1.0, 1.0], n) * rng.uniform(0.5, 1, n)
        return heights @ np.exp(-np.square((wavelengths - centres[:, None]) / widths[:, None]))

    base = 0.3 + 0.5 * np.exp(-np.square((wavelengths - 1000) / 600))
    return np.stack([base * np.exp(contrast * bumps(4)) for _ in range(n_materials)])


def _fields(rows: int, columns: int, n_materials: int, rng: np.random.RandomState) -> Labels:
    """Assign pixels to the nearest of random places, of which every material has about three."""
    n_places = min(3 * n_materials, rows * columns)
    places = rng.permutation(rows * columns)[:n_places]
    down, right = np.divmod(places, columns)
    nearest = np.zeros((rows, columns), dtype=np.intp)
    best = np.full((rows, columns), np.inf)
    for i in range(n_places):
        squared = np.square(np.arange(rows) - down[i])[:, None] + np.square(np.arange(columns) - right[i])
        nearer = squared < best
        nearest[nearer], best[nearer] = i % n_materials, squared[nearer]
    return nearest
