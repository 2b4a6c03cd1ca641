"""Images of any layout → flat rows, and the shape that turns a row back into an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from subspaces.numerics.types import Data

Shape = tuple[int, int, int]
"""Height, width and channels; a row of pixels is an image of this shape in C order."""

CHANNELS = (1, 3, 4)
"""Numbers of channels by which the channel axis of a four-dimensional array is recognised."""


def flatten_images(X: Any, image_shape: Sequence[int] | None) -> tuple[Data, Shape | None]:
    """Rows of pixels, channel last, and the image shape; None where nothing tells it.

    Parameters
    ----------
    X : array of shape (n, h, w), (n, h, w, c) or (n, c, h, w), or rows of shape (n, h · w · c)
        Of the two layouts of four axes the one with 1, 3 or 4 channels is meant; where both fit, channels are last.
    image_shape : (h, w) or (h, w, c)
        Needed for rows only; for images it must agree with them.

    Examples
    --------
    >>> import numpy as np
    >>> rows, shape = flatten_images(np.zeros((5, 3, 8, 6)), None)
    >>> rows.shape, shape
    ((5, 144), (8, 6, 3))
    """
    given = None if image_shape is None else _full_shape(image_shape)
    if not hasattr(X, "ndim"):  # lists and the like; data frames and sparse arrays have one
        X = np.asarray(X)
    if X.ndim <= 2:
        if given is not None and X.ndim == 2 and X.shape[1] != np.prod(given):
            raise ValueError(
                f"image_shape={tuple(image_shape or ())} has {np.prod(given)} values, but the rows of X have "
                f"{X.shape[1]}: give (height, width) or (height, width, channels) of the images in the rows."
            )
        return _single_precision(X), given
    images = np.asarray(X)
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4:
        raise ValueError(f"X must hold images, n × h × w or with a fourth axis, or rows; its shape is {X.shape}.")
    if images.shape[3] not in CHANNELS and images.shape[1] in CHANNELS:
        images = images.transpose(0, 2, 3, 1)
    if images.shape[3] not in CHANNELS:
        raise ValueError(
            f"X of shape {X.shape} has no axis of {CHANNELS} channels, neither second nor last. Give flat rows and "
            "image_shape=(height, width, channels) for another number of channels."
        )
    n, h, w, c = images.shape
    if given is not None and given != (h, w, c):
        raise ValueError(f"image_shape={tuple(image_shape or ())} contradicts the images in X, {(h, w, c)}.")
    return _single_precision(images.reshape(n, h * w * c)), (h, w, c)


def _full_shape(image_shape: Sequence[int]) -> Shape:
    shape = tuple(int(side) for side in image_shape)
    if len(shape) not in (2, 3) or min(shape) < 1:
        raise ValueError(f"image_shape must be (height, width) or (height, width, channels), got {tuple(image_shape)}.")
    return (shape[0], shape[1], shape[2] if len(shape) == 3 else 1)


def _single_precision(X: Any) -> Any:
    """Whole numbers, as in image files, become float32: double precision would only cost time."""
    return X.astype(np.float32) if isinstance(X, np.ndarray) and X.dtype.kind in "bui" else X
