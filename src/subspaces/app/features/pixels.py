"""Pictures as items of an extractor: files, arrays of pixels, or rows with a shape; pixels as vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from subspaces.app.features.extractor import Extractor, Shape
from subspaces.app.files.image_files import common_size, load_image, shown_size
from subspaces.utils.files import FileError, check_regular, printable
from subspaces.utils.memory import require
from subspaces.utils.progress import Step
from subspaces.utils.types import Array

Item = Path | Array
"""A picture: its file, or its pixels (height, width) or (height, width, 3) as whole numbers to 255 or from 0 to 1."""


def pictures(X: Any, image_shape: Shape = None) -> Sequence[Item]:
    """Return the pictures of X one by one.

    Parameters
    ----------
    X : list of paths; array of shape (n, height, width) or (n, height, width, 3), or (n, m) with `image_shape`
    image_shape : height and width (and 3) of rows of pixels
    """
    if isinstance(X, str | PathLike):
        raise ValueError(f"X must be a list of images; got one path. Try X=sorted(Path({str(X)!r}).iterdir()).")
    if not hasattr(X, "dtype") and not hasattr(X, "iloc"):
        X = list(X)
        if all(isinstance(item, str | PathLike) for item in X):
            return _paths(X)
    array = np.asarray(X)
    if array.ndim == 1 and array.size and all(isinstance(item, str | PathLike) for item in array):
        return _paths(array)
    if array.ndim == 2 and image_shape is not None:
        array = _shaped(array, tuple(image_shape))
    if not (array.ndim == 3 or (array.ndim == 4 and array.shape[3] == 3)) or array.dtype.kind not in "uif":
        raise ValueError(
            "To make features of images, X must be a list of paths, an array of shape (n, height, width) or "
            f"(n, height, width, 3), or rows of pixels with image_shape; got shape {array.shape}, {array.dtype}."
        )
    return list(_bounded(array))


def _paths(items: Iterable[str | PathLike[str]]) -> list[Path]:
    found = [Path(item) for item in items]
    for path in found:
        check_regular(path)
    return found


def _shaped(rows: Array, shape: tuple[int, ...]) -> Array:
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] != 3) or int(np.prod(shape)) != rows.shape[1]:
        must = f"(height, width) or (height, width, 3) with {rows.shape[1]} values in all"
        raise ValueError(f"image_shape must be {must}; got {shape}.")
    return rows.reshape(len(rows), *shape)


def _bounded(images: Array) -> Array:
    """Return pixels from 0 to 255 in uint8 or 0 to 1 in float32; refuse values that are neither."""
    if images.dtype == np.uint8 or not images.size:
        return images
    low, high = float(images.min()), float(images.max())
    if not (low >= 0 and high <= 255):  # NaN is neither
        raise ValueError(f"Pixels must be from 0 to 1 or from 0 to 255; got {low:g} to {high:g}.")
    return np.asarray(images, dtype=np.float32) / np.float32(255 if high > 1 else 1)


def identified(item: Item) -> bytes:
    """Return the bytes that identify a picture: of its file, or its pixels with their shape."""
    if isinstance(item, Path):
        try:
            return item.read_bytes()
        except OSError as error:
            raise FileError(item, f"cannot be read: {printable(error.strerror or error)}") from error
    return f"{item.shape} {item.dtype.str} ".encode() + np.ascontiguousarray(item).tobytes()


def as_rgb(item: Item, size: tuple[int, int] | None) -> Array:
    """Return a picture in colour as float32 from 0 to 1, of this height and width (None: its own), centre-cropped."""
    if isinstance(item, Path):
        with _decoding(item):
            return load_image(item, size, True)
    from PIL import Image, ImageOps

    if size is not None:
        # whole numbers at once, as a file is read; of floats Pillow resizes one colour at a time
        parts = [item] if item.dtype == np.uint8 or item.ndim == 2 else [item[:, :, color] for color in range(3)]
        shape = (size[1], size[0])
        made = [ImageOps.fit(Image.fromarray(part), shape, Image.Resampling.LANCZOS) for part in parts]
        item = np.dstack([np.asarray(part) for part in made]) if len(made) == 3 else np.asarray(made[0])
    values = item / np.float32(255 if item.dtype == np.uint8 else 1)
    return np.clip(values if values.ndim == 3 else np.dstack([values] * 3), 0, 1)


@contextmanager
def _decoding(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise FileError(path, "no such file; check the name and the folder") from None
    except Exception as error:  # decoders meet damaged bytes in too many ways to list
        raise FileError(path, f"cannot be decoded ({printable(' '.join(str(error).split()), 100)})") from error


@dataclass(frozen=True)
class Pixels(Extractor):
    """The grey values of the pixels, right where images are aligned; files are brought to one size."""

    kind: ClassVar[str] = "pixels"
    size: tuple[int, int] | None = None

    name = "pixels"

    def items(self, X: Any, image_shape: Shape = None) -> Sequence[Item]:
        """Return the pictures; rows of numbers stay what they are."""
        return list(X) if getattr(X, "ndim", 0) == 2 else pictures(X, image_shape)

    def fit(self, items: Sequence[Item]) -> Self:
        """Settle the size that files are brought to, by the rule of the reader."""
        if not len(items) or not isinstance(items[0], Path):
            return self
        sizes = []
        for item in items:
            with _decoding(Path(str(item))):
                sizes.append(shown_size(Path(str(item))))
        return replace(self, size=common_size(sizes))

    def compute(self, items: Sequence[Item], step: Step) -> Array:
        """Return the pixels, row by row."""
        if not len(items) or not isinstance(items[0], Path):
            array = np.asarray(items)
            return array.reshape(len(array), -1)
        size = self.size or (32, 32)
        require(4 * size[0] * size[1] * len(items), f"the pixels of {len(items)} images", "Use fewer images.")
        rows = np.empty((len(items), size[0] * size[1]), dtype=np.float32)
        for i, item in enumerate(items):
            with _decoding(Path(str(item))):
                rows[i] = load_image(Path(str(item)), size, False).reshape(-1)
            step()
        return rows
