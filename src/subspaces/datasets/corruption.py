"""Noise and corrupted pixels, as in the paper's study of robustness (its Figs. 6 to 8)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array, check_random_state

from subspaces.datasets.synthetic import Seed
from subspaces.utils.blocks import row_blocks
from subspaces.utils.types import Array


def add_gaussian_noise(X: npt.ArrayLike, snr_db: float, *, random_state: Seed = None) -> Array:
    """Add white Gaussian noise at a given ratio of signal to noise.

    The noise has the variance ``power / 10**(snr_db / 10)``, where the power of the signal is the mean square of the
    values of the whole set, so that dark images suffer more than bright ones. Nothing is clipped; values may leave
    their range.

    Parameters
    ----------
    X : images as rows, untouched; integers become float64
    snr_db : ratio of the powers in decibels: 10 means ten times, 20 a hundred times as much signal as noise
    random_state : seed

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.datasets import add_gaussian_noise
    >>> X = np.full((100, 100), 3.0)
    >>> noise = add_gaussian_noise(X, 20, random_state=0) - X
    >>> round(float(noise.std()), 1)
    0.3
    """
    signal: Array = check_array(X, dtype=[np.float64, np.float32])
    if np.isnan(snr_db) or snr_db == -np.inf:
        raise ValueError(f"snr_db must be a number of decibels; got {snr_db}")
    power = np.square(signal, dtype=np.float64).mean()
    deviation = np.sqrt(power * 10.0 ** (-snr_db / 10))
    noisy: Array = check_random_state(random_state).standard_normal(signal.shape).astype(signal.dtype, copy=False)
    noisy *= signal.dtype.type(deviation)
    noisy += signal
    return noisy


def salt_and_pepper(
    X: npt.ArrayLike,
    ratio: float,
    *,
    low: float | None = None,
    high: float | None = None,
    random_state: Seed = None,
) -> Array:
    """Set a given share of the pixels of every image to white or black.

    Every image loses exactly ``ratio * n_features`` pixels (rounded) at random places: half of them become `high`
    (salt), half `low` (pepper); of an odd number the last one is either by chance.

    Parameters
    ----------
    X : images as rows, of any numeric type, which is kept; untouched
    ratio : share of the pixels, in [0, 1]
    low, high : black and white; by default the least and the greatest value in `X`
    random_state : seed

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.datasets import salt_and_pepper
    >>> X = np.full((5, 40), 100, dtype=np.uint8)
    >>> damaged = salt_and_pepper(X, 0.2, low=0, high=255, random_state=0)
    >>> np.sum(damaged == 255, axis=1).tolist(), np.sum(damaged == 0, axis=1).tolist()
    ([4, 4, 4, 4, 4], [4, 4, 4, 4, 4])
    """
    damaged: Array = check_array(X, dtype="numeric", copy=True, order="C")
    if not 0 <= ratio <= 1:
        raise ValueError(f"ratio must be in [0, 1]; got {ratio}")
    black = _as_value("low", damaged.min() if low is None else low, damaged.dtype)
    white = _as_value("high", damaged.max() if high is None else high, damaged.dtype)
    rng = check_random_state(random_state)
    n_images, n_pixels = damaged.shape
    n_damaged = int(np.floor(ratio * n_pixels + 0.5))
    for start, stop in row_blocks(n_images, 8 * n_pixels):
        # A whole sort: what a partial one leaves in front is not in random order, and salt would prefer some places.
        places = rng.random_sample((stop - start, n_pixels)).argsort(axis=1)[:, :n_damaged]
        n_salt = (n_damaged + rng.randint(2, size=(stop - start, 1))) // 2
        values = np.where(np.arange(n_damaged) < n_salt, white, black)
        np.put_along_axis(damaged[start:stop], places, values, axis=1)
    return damaged


def _as_value(name: str, value: Any, dtype: np.dtype) -> Any:
    """Return the value in the type of the images; refuse one that the type cannot hold."""
    with np.errstate(invalid="ignore"):  # -1.0 as uint8: found by the comparison
        held = np.asarray(value).astype(dtype) if np.isfinite(value) else None
    if held is None or (dtype.kind in "iu" and held != value):
        raise ValueError(f"{name} must be a value that images of type {dtype} can hold; got {value!r}")
    return held[()]
