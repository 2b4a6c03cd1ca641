"""Samples as pictures: of their files in their colours, else of the pixels that were clustered."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subspaces.app.files.image_files import thumbnail
from subspaces.inspection.plots.gallery import as_bytes
from subspaces.utils.components import dense_rows

if TYPE_CHECKING:
    from subspaces.app.files import Dataset


def files_of(data: Dataset) -> list[Path] | None:
    """Return the image file of each sample; None where samples are no files."""
    return [data.source / str(name) for name in data.ids or ()] if data.is_image_folder else None


class SampleImages:
    """Images of samples: rows of `pixels` of a `shape`, and the `files` they were read from where there are any."""

    def __init__(self, pixels: Any, shape: tuple[int, ...], files: Sequence[Path] | None) -> None:
        self.pixels, self.files = pixels, files
        self._shape = shape[:2] if shape[2:] == (1,) else shape
        some = pixels[:: max(1, pixels.shape[0] // 1000)]
        self._low, self._high = float(some.min()), float(some.max())

    def image(self, i: int, side: int) -> Any:
        """Return sample `i` as an image of Pillow, at most `side` high and wide."""
        from PIL import Image

        if self.files is not None:
            with suppress(Exception):  # gone or changed since it was read: what was clustered is still here
                return thumbnail(self.files[i], side)
        image = Image.fromarray(as_bytes(dense_rows(self.pixels[[i]]), self._low, self._high).reshape(self._shape))
        image.thumbnail((side, side))
        return image
