"""Samples as pictures: small ones among others, large ones when they are clicked; and which rows are images at all."""

from __future__ import annotations

import io
from functools import lru_cache
from html import escape
from math import isqrt
from typing import Any

import numpy as np
from scipy import sparse

from subspaces.app.explorer.session import Session
from subspaces.app.pictures import SampleImages, files_of
from subspaces.inspection.plots.gallery import data_uri
from subspaces.utils.types import Array, Data

SMALL, LARGE = 160, 1000
"""Longest sides in pixels of pictures of files."""
_KEPT = 2000  # pictures that are not read again


class Pictures:
    """The pictures of a session's samples; `address` is where a server has them, without one they are in the page."""

    def __init__(self, session: Session) -> None:
        self.data, self.address = session.data, ""
        self.exist = self.data.image_shape is not None
        if shape := self.data.image_shape:
            pixels = self.data.X if self.data.pixels is None else self.data.pixels
            self._image = SampleImages(pixels, shape, files_of(self.data)).image
            self.is_fine = self.data.is_image_folder or max(shape) > SMALL // 2
            self.bytes_of = lru_cache(_KEPT)(self._bytes_of)

    def _bytes_of(self, i: int, side: int) -> bytes:
        """Return sample `i` as a file of WebP: of the file itself in its colours, else of what was read."""
        stream = io.BytesIO()
        self._image(i, side).save(stream, format="webp", quality=85, lossless=not self.is_fine)
        return stream.getvalue()

    def source(self, i: int, side: int = SMALL) -> str:
        """Return what an ``<img>`` shows: an address, or the picture itself."""
        if self.address:
            return f"{self.address}/{i}-{side}"
        return data_uri(self._image(i, side), kind="webp", quality=80) if self.exist else ""

    def html(self, i: int, name: str, kind: str = "") -> str:
        """Return a picture that a click enlarges, and another makes small again."""
        grain = "" if self.is_fine else " grain"
        small, shown = escape(self.source(i)), escape(name)
        large = escape(self.source(i, LARGE)) if self.address else small
        return (
            f'<label class="picture {kind}{grain}" title="{shown}"><input type="checkbox" aria-label="enlarge {shown}">'
            f'<img src="{small}" alt="{shown}" loading="lazy">'
            f'<span class="large"><img src="{large}" alt="" loading="lazy"><b>{shown}</b></span></label>'
        )


def image_shape_of(X: Data) -> tuple[int, ...] | None:
    """Return height and width (and 3 for colours) if the rows of X look like square images; else None.

    Pixels beside and below each other are alike, more than those half an image apart. Of a spectrum or a time series,
    where likeness fades along the row, what is one "row" below is less like it than what is half a row away. Sparse
    rows are no images.

    Examples
    --------
    >>> from sklearn.datasets import load_digits, load_iris
    >>> image_shape_of(load_digits().data), image_shape_of(load_iris().data)
    ((8, 8), None)
    """
    if sparse.issparse(X) or X.shape[0] < 10 or X.shape[1] > 20_000:
        return None
    m = X.shape[1]
    some: Any = X[np.linspace(0, X.shape[0] - 1, min(X.shape[0], 300)).astype(int)]
    some = np.asarray(some, dtype=np.float64)
    if len(np.unique(some[: min(len(some), 20)])) < 3:
        return None
    for depth in (1, 3):
        side = isqrt(m // depth)
        if depth * side * side == m and side >= 6 and _is_picture(some.reshape(len(some), side, side, depth)):
            return (side, side) if depth == 1 else (side, side, 3)
    return None


def _is_picture(images: Array) -> bool:
    """Compare the correlation of neighbours (at least 0.3) with that of pixels half a side apart (less by 0.1)."""
    far = max(2, images.shape[1] // 2)
    beside = _likeness(images[:, :, :-1], images[:, :, 1:])
    below = _likeness(images[:, :-1], images[:, 1:])
    apart = max(_likeness(images[:, :, :-far], images[:, :, far:]), _likeness(images[:, :-far], images[:, far:]))
    return bool(min(beside, below) > max(0.3, apart + 0.1))


def _likeness(one: Array, other: Array) -> float:
    """Return the mean correlation, over the samples, of pixels with others; constant pixels do not count."""
    one, other = (part - part.mean(axis=0) for part in (one, other))
    scale = np.sqrt(np.square(one).sum(axis=0) * np.square(other).sum(axis=0))
    product = (one * other).sum(axis=0)
    seen = scale > 1e-12 * max(float(scale.max(initial=0)), np.finfo(np.float64).tiny)
    return float((product[seen] / scale[seen]).mean()) if seen.any() else 0.0
