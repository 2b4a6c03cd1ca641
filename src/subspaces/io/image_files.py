"""A folder of images as points: one file, one row. Broken files are listed and left out, huge ones never decoded."""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from subspaces.io.dataset import Dataset, FileError, Request, argument, check_size, printable, readable_bytes
from subspaces.numerics.process import quiet
from subspaces.numerics.types import Array

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp", ".gif")
"""Files of a folder that are taken for images (in any case)."""

FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP", "GIF")
"""What may be inside; no other of Pillow's many decoders is ever started."""

MAX_PIXELS = 89_478_485
"""Most pixels an image may have (Pillow's own warning level): read from the header, then refused."""

DECODING = {"JPEG": 6, "WEBP": 20}
"""Bytes that a pixel takes at most while its image is read, as measured; 16 in other formats. A row takes 40 more."""

SMALL = 64 * 64
"""Images of one size up to this many pixels are used as they are."""

USUAL_PIXELS = 32 * 32
"""Others are reduced to about this many, which the paper's faces and objects have too."""

MARKER = ".subspaces-sorted.json"
"""File in the folders that ``--sort-into`` made; they are no input."""


class ImageFile(NamedTuple):
    """An image that looks usable by its header."""

    path: Path
    name: str  # path below the folder, with slashes
    height: int  # as shown, after turning by the camera's orientation
    width: int


def read_images(folder: Path, request: Request) -> Dataset:
    """Read all images below a folder in the order of their names; identifiers are their relative paths.

    Grey values (or red, green and blue with ``request.color``) from 0 to 1 in float32. What cannot be read is named
    in ``skipped`` with the reason. Hidden files, links that leave the folder and folders made by ``--sort-into`` are
    left alone; of a file with several pictures the first is taken.
    """
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        raise FileError(folder, 'reading images needs Pillow: pip install "subspaces[io]"') from None
    skipped: list[tuple[str, str]] = []
    images = list(_headers(folder, skipped, request.max_bytes))
    if len(images) < 2:
        raise _too_few(folder, len(images), skipped)
    size, how = _common_size(images, request.image_size)
    shape = (*size, 3) if request.color else size
    check_size(folder, len(images) * math.prod(shape) * 4, request.max_bytes)
    X = np.empty((len(images), math.prod(shape)), dtype=np.float32)
    kept: list[str] = []
    for image in images:
        try:
            X[len(kept)] = load_image(image.path, size, request.color).reshape(-1)
        except Exception as error:  # decoders meet damaged bytes in too many ways to list
            skipped.append((image.name, _reason(error)))
        else:
            kept.append(image.name)
    if len(kept) < 2:
        raise _too_few(folder, len(kept), skipped)
    how += ", in colour" if request.color else f", in grey ({argument('color', True)} keeps colours)"
    notes, left_out = (how, *_told(skipped)), tuple(sorted(skipped))
    return Dataset(X[: len(kept)], folder, ids=kept, notes=notes, image_shape=shape, skipped=left_out)


def load_image(path: Path, size: tuple[int, int] | None, color: bool, mode: str = "crop") -> Array:
    """One image as float32 from 0 to 1: turned as the camera says, on white where transparent, resized.

    Its shape is (height, width, 3) or (height, width), those of `size` unless that is None. Another aspect ratio is
    cut to the middle (mode ``"crop"``), or the whole is fitted into `size` (``"fit"``), which may then not be filled.
    """
    from PIL import Image, ImageOps

    # JPEG can be decoded at a fraction of its size, many times faster
    with _upright(path, color, None if size is None else (4 * size[1], 4 * size[0])) as plain:
        if size is not None and plain.size != (size[1], size[0]):
            shrink = ImageOps.fit if mode == "crop" else ImageOps.contain
            plain = shrink(plain, (size[1], size[0]), Image.Resampling.LANCZOS)
        values = np.asarray(plain, dtype=np.float32)
    values = np.clip(values / 255, 0, 1)
    return np.repeat(values[:, :, np.newaxis], 3, axis=2) if color and values.ndim == 2 else values


def thumbnail(path: Path, side: int) -> Any:
    """A small Pillow image in colour, at most `side` pixels high and wide, never enlarged."""
    from PIL import Image

    with _upright(path, True, (2 * side, 2 * side)) as small:
        small.thumbnail((side, side), Image.Resampling.LANCZOS)
        return small if small.mode == "RGB" else Image.fromarray(np.asarray(small).clip(0, 255).astype(np.uint8))


@contextmanager
def _upright(path: Path, color: bool, enough: tuple[int, int] | None) -> Iterator[Any]:
    """An image as `_plain` makes it, turned as the camera says; width and height may be less, but are `enough`."""
    from PIL import ImageOps

    with _opened(path) as image:
        image.seek(0)
        if enough is not None:
            image.draft("RGB" if color else "L", enough)
        ImageOps.exif_transpose(image, in_place=True)
        yield _plain(image, color)


def _plain(image: Any, color: bool) -> Any:
    """8 bit grey or colour; deeper grey values as floats on the same scale, so that nothing is lost."""
    from PIL import Image

    if image.mode in ("F", "I") or image.mode.startswith("I;"):
        values = np.asarray(image, dtype=np.float32)
        if not np.isfinite(values).all():
            raise ValueError("holds values that are not finite")
        # 16 bit unless the values fit 0 to 1 (floats) or 0 to 255; the rest by its own largest value
        tops = {"F": (1, 255, 65535), "I": (255, 65535)}.get(image.mode, (65535,))
        top = next((top for top in tops if values.max() <= top), float(values.max()))
        # darker than black is black: a far negative value would become infinite here, and NaN when it is resized
        values = np.maximum(values, 0)
        values *= np.float32(255 / top)
        return Image.fromarray(values)
    if image.has_transparency_data:
        layered = image if image.mode == "RGBA" else image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", layered.size, "white"), layered)
        del layered
    return image.convert("RGB" if color else "L")


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """An image of which only the header was read, refused if it announces too many pixels."""
    from PIL import Image

    # quiet of damaged metadata; bombs are refused below, not warned of
    with quiet(), Image.open(path, formats=FORMATS) as image:
        width, height = image.size
        if width * height > MAX_PIXELS:
            raise ValueError(f"{width} x {height} pixels, more than {MAX_PIXELS // 10**6} million; make it smaller")
        yield image


def _headers(folder: Path, skipped: list[tuple[str, str]], max_bytes: int) -> Iterator[ImageFile]:
    """Every image below the folder that may be decoded, sorted by name, with the size its header announces."""
    root = folder.resolve()
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        try:
            name.encode()  # a name of other bytes could not be written to any table or page
            resolved = path.resolve(strict=True)
            if not resolved.is_relative_to(root):
                raise ValueError("a link that leaves the folder")
            if not stat.S_ISREG(resolved.stat().st_mode):  # opening a pipe would wait for ever
                raise ValueError("not an ordinary file")
            with _opened(path) as image:
                width, height = image.size
                needed = height * (width * DECODING.get(image.format, 16) + 40)
                if needed > max_bytes:
                    raise ValueError(
                        f"{width} x {height} pixels may take {readable_bytes(needed)} of memory to decode, "
                        f"{readable_bytes(max_bytes)} may be used; make it smaller"
                    )
                if image.getexif().get(0x0112, 1) in (5, 6, 7, 8):  # orientation: turned by 90 degrees
                    width, height = height, width
        except Exception as error:
            skipped.append((name.encode(errors="backslashreplace").decode(), _reason(error)))
        else:
            yield ImageFile(path, name, height, width)


def _files(folder: Path) -> list[Path]:
    found = []
    for where, folders, names in os.walk(folder):  # does not follow links to folders
        if MARKER in names:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not name.startswith(".")]
        images = [name for name in names if name.lower().endswith(IMAGE_SUFFIXES) and not name.startswith(".")]
        found += [Path(where, name) for name in images]
    return sorted(found, key=lambda path: _natural(path.relative_to(folder).parts))


def _natural(parts: tuple[str, ...]) -> list[Any]:
    """Key that puts 2.png before 10.png; equal ones (01 and 1) in the order of their characters."""
    pieces = [
        [(text.casefold(), int(digits or -1)) for text, digits in re.findall(r"(\D*)(\d*)", part)] for part in parts
    ]
    return [pieces, parts]


def _common_size(images: list[ImageFile], wanted: tuple[int, int] | None) -> tuple[tuple[int, int], str]:
    """Height and width for all (as asked, as they are, or `USUAL_PIXELS` of the usual shape), and how to say it."""
    sizes = {(image.height, image.width) for image in images}
    n = f"{len(images)} images"
    if wanted is None and len(sizes) == 1 and math.prod(next(iter(sizes))) <= SMALL:
        size = next(iter(sizes))
        return size, f"{n} of {size[0]} x {size[1]} pixels, used as they are"
    ratios = [image.height / image.width for image in images]
    if wanted is not None:
        size = wanted
    else:
        ratio = min(max(float(np.median(ratios)), 0.5), 2.0)
        size = max(1, round(math.sqrt(USUAL_PIXELS * ratio))), max(1, round(math.sqrt(USUAL_PIXELS / ratio)))
    cut = sum(not 0.9 < ratio * size[1] / size[0] < 1.1 for ratio in ratios)
    middle = f"; {cut} of another shape were cut to their middle" if cut else ""
    why = "" if wanted is not None else f" ({argument('image_size')} sets it)"
    found = f"{n} of {len(sizes)} size{'s' * (len(sizes) > 1)}"
    return size, f"{found} reduced to {size[0]} x {size[1]} pixels{why}{middle}"


def _told(skipped: list[tuple[str, str]]) -> list[str]:
    if not skipped:
        return []
    shown = "; ".join(f"{printable(name)} ({reason})" for name, reason in sorted(skipped)[:3])
    more = f"; and {len(skipped) - 3} more" if len(skipped) > 3 else ""
    return [f"{len(skipped)} file{'s' * (len(skipped) > 1)} skipped: {shown}{more}"]


def _too_few(folder: Path, n: int, skipped: list[tuple[str, str]]) -> FileError:
    why = " ".join(f"; {note}" for note in _told(skipped))
    known = ", ".join(IMAGE_SUFFIXES)
    return FileError(folder, f"{n} readable images in this folder; clustering needs at least 2 ({known}){why}")


def _reason(error: Exception) -> str:
    if type(error).__name__ == "UnidentifiedImageError":
        return "not an image of a known format"
    if isinstance(error, UnicodeError):
        return "its name is not UTF-8"
    if type(error).__name__ == "DecompressionBombError":
        return f"more than {MAX_PIXELS // 10**6} million pixels; make it smaller"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return printable(" ".join((text or type(error).__name__).split()), 100)
