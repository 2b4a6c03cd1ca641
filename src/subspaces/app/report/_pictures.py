"""The pictures of points as text inside the page: read in one place, small beside a text, large where they fit."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from subspaces.app.report._content import Content
from subspaces.inspection.plots.gallery import as_bytes, data_uri
from subspaces.utils.types import Array

SMALL = 96
"""Longest side in pixels of a picture beside a text; it is shown at half of that, or at all of it."""

SIDES = (256, 192, 128, 96, 64)
"""Longest sides that a picture among the members may have: the largest for which all find room."""

N_SAMPLED = 16
"""Pictures that are made to find out what one of each size takes."""


class Pictures:
    """Every point of a run as a small file of text; made when it is asked for, and once."""

    def __init__(self, content: Content) -> None:
        from PIL import features

        self._content = content
        self._options: dict[str, Any] = {"kind": "webp", "quality": 70, "method": 4} if features.check("webp") else {}
        sample = self._pixels[:: max(1, len(self._pixels) // 1000)]
        self._low, self._high = float(sample.min()), float(sample.max())
        self._made: dict[tuple[int, int], str] = {}

    @property
    def _pixels(self) -> Array:
        return self._content.X if self._content.pixels is None else self._content.pixels

    def uri(self, i: int, side: int = SMALL) -> str:
        """Point `i` as the address of an image: WebP, whose header is a tenth of a JPEG's, else PNG."""
        if (i, side) not in self._made:
            self._made[i, side] = data_uri(self._picture(i, side), **self._options)
        return self._made[i, side]

    def _picture(self, i: int, side: int) -> Any:
        """The one place where pictures are read: the file itself, else the pixels that were clustered."""
        from PIL import Image

        from subspaces.app.files.image_files import thumbnail

        if self._content.files is not None:
            with suppress(Exception):  # gone or changed since it was read: what was clustered is still here
                return thumbnail(self._content.files[i], side)
        levels = as_bytes(self._pixels[i], self._low, self._high)
        image = Image.fromarray(levels.reshape(self._content.image_shape))
        image.thumbnail((side, side))
        return image

    def fitting_side(self, room: float) -> int:
        """The largest side at which all pictures fit into so many bytes, as a few of them tell; else the smallest."""
        n = len(self._pixels)
        some = np.unique(np.linspace(0, n - 1, min(n, N_SAMPLED)).astype(int)).tolist()
        for side in SIDES:
            if n * sum(len(self.uri(i, side)) for i in some) / len(some) <= room:
                return side
        return SIDES[-1]
