"""A folder of images as points: one file, one row. Broken files are listed and left out, huge ones never decoded."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from subspaces.app.files.dataset import Dataset, Request, encode
from subspaces.app.files.image_kinds import formats, is_image, suffixes, why_not
from subspaces.utils.files import FileError, argument, check_size, inside, printable, quoted, readable_bytes
from subspaces.utils.process import quiet
from subspaces.utils.progress import phase
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array, Labels

MAX_PIXELS = 89_478_485
"""Most pixels an image may have (Pillow's own warning level): read from the header, then refused."""

DECODING = {"JPEG": 6, "WEBP": 20}
"""Bytes that a pixel takes at most while its image is read, as measured; 16 in other formats. A row takes 40 more."""

SMALL = 64 * 64
"""Images of one size up to this many pixels are used as they are."""

USUAL_PIXELS = 32 * 32
"""Others are reduced to about this many, which the paper's faces and objects have too."""

BY_FOLDER = "folder"
"""The label that means: the class of an image is the folder it is in."""

SHOWN = 4
"""Reasons for leaving files out that are told."""

MARKER = ".subspaces-sorted.json"
"""File in the folders that ``--sort-into`` made; they are no input."""


class ImageFile(NamedTuple):
    """An image that looks usable by its header."""

    path: Path
    name: str  # path below the folder, with slashes
    height: int  # as shown, after turning by the camera's orientation
    width: int


def read_images(folder: Path, request: Request, given: Sequence[Path] | None = None) -> Dataset:
    """Read all images below a folder (or those `given` of it) in the order of their names, which identify them.

    Grey values (or red, green and blue with ``request.color``) from 0 to 1 in float32. What cannot be read is named
    in ``skipped`` with the reason. With the label ``"folder"`` the folder of each is its class. Hidden files, links
    that leave the folder and folders made by ``--sort-into`` are left alone; of a file with several pictures the first
    is taken.
    """
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        raise FileError(folder, 'reading images needs Pillow: pip install "subspaces[app]"') from None
    if request.label not in (None, BY_FOLDER):
        problem = f"{argument('label')} of images can only be the subfolder of each, {argument('label', BY_FOLDER)}"
        raise FileError(folder, f"{problem}; got '{printable(request.label)}'")
    files, skipped = _found(folder, given)
    with phase("Looking at the images", len(files)) as step:
        images = list(_headers(folder, files, skipped, request.max_bytes, step))
    if len(images) < request.min_images:
        raise _too_few(folder, len(images), skipped, request)
    size, how = _chosen_size(images, request.image_size)
    shape = (*size, 3) if request.color else size
    check_size(folder, len(images) * math.prod(shape) * 4, request.max_bytes)
    X = np.empty((len(images), math.prod(shape)), dtype=np.float32)
    kept: list[str] = []
    with phase("Reading the images", len(images)) as step:
        for image in images:
            try:
                X[len(kept)] = load_image(image.path, size, request.color).reshape(-1)
            except Exception as error:  # decoders meet damaged bytes in too many ways to list
                skipped.append((image.name, _reason(error)))
            else:
                kept.append(image.name)
            step()
    if len(kept) < request.min_images:
        raise _too_few(folder, len(kept), skipped, request)
    how += ", in colour" if request.color else f", in grey ({argument('color', True)} keeps colours)"
    y, classes, by_folder = _classes(folder, kept, request.label)
    notes = (how, *by_folder, *told_skipped(skipped))
    left_out = tuple(sorted(skipped))
    return Dataset(
        X[: len(kept)], folder, y=y, classes=classes, ids=kept, notes=notes, image_shape=shape, skipped=left_out
    )


def _classes(
    folder: Path, names: list[str], label: str | None
) -> tuple[Labels | None, list[str] | None, tuple[str, ...]]:
    """Classes by subfolder if they are asked for; else a hint, where there are subfolders."""
    folders = [PurePosixPath(name).parent.as_posix() for name in names]
    different = sorted(set(folders))
    if label is None:
        if not 1 < len(different) <= len(names) / 2:
            return None, None, ()
        hint = f"the images are in {len(different)} folders: {argument('label', BY_FOLDER)} scores the clusters by them"
        return None, None, (hint,)
    if len(different) < 2:
        problem = f"all images are in one folder, and {argument('label', BY_FOLDER)} needs one for each class"
        raise FileError(folder, f"{problem}; leave it out")
    y, classes = encode(folder, np.array(folders, dtype=object), label)
    return y, classes, (f"the folder of an image is its class ({quoted(different, 4)})",)


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
    with quiet(), Image.open(path, formats=formats()) as image:
        width, height = image.size
        if width * height > MAX_PIXELS:
            raise ValueError(f"{width} x {height} pixels, more than {MAX_PIXELS // 10**6} million; make it smaller")
        yield image


def _headers(
    folder: Path, files: list[Path], skipped: list[tuple[str, str]], max_bytes: int, step: Callable[[], None]
) -> Iterator[ImageFile]:
    """Every image that may be decoded, with the size its header announces."""
    for path in files:
        step()
        name = path.relative_to(folder).as_posix()
        try:
            name.encode()  # a name of other bytes could not be written to any table or page
            inside(path, folder)
            with _opened(path) as image:
                width, height = image.size
                needed = height * (width * DECODING.get(image.format, 16) + 40)
                if needed > max_bytes:
                    raise ValueError(
                        f"{width} x {height} pixels may take {readable_bytes(needed)} of memory to decode, "
                        f"{readable_bytes(max_bytes)} may be used; make it smaller"
                    )
                height, width = _turned(image)
        except Exception as error:
            skipped.append((name.encode(errors="backslashreplace").decode(), _reason(error)))
        else:
            yield ImageFile(path, name, height, width)


def _turned(image: Any) -> tuple[int, int]:
    """Height and width as the camera says that an image is shown."""
    width, height = image.size
    return (width, height) if image.getexif().get(0x0112, 1) in (5, 6, 7, 8) else (height, width)


def shown_size(path: Path) -> tuple[int, int]:
    """Height and width of an image as it is shown, from its header; refused if it announces too many pixels."""
    with _opened(path) as image:
        return _turned(image)


def _found(folder: Path, given: Sequence[Path] | None) -> tuple[list[Path], list[tuple[str, str]]]:
    """Images sorted by name, each once, and pictures and films of other kinds with the reason why they are left out."""
    files = _files(folder) if given is None else []
    for path in given or ():
        files += _files(path) if path.is_dir() else [path]
    below = {os.path.relpath(os.path.abspath(path), os.path.abspath(folder)): path for path in files}
    names = sorted(below, key=lambda name: _natural(Path(name).parts))
    images = [folder / name for name in names if is_image(name)]
    others = [Path(name).as_posix() for name in names if not is_image(name)]
    shown = [name.encode(errors="backslashreplace").decode() for name in others]
    return images, [(name, why_not(name) or "not an image") for name in shown]


def _files(folder: Path) -> list[Path]:
    found = []
    for where, folders, names in os.walk(folder):  # does not follow links to folders
        if MARKER in names:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not name.startswith(".")]
        pictures = [name for name in names if not name.startswith(".") and (is_image(name) or why_not(name))]
        found += [Path(where, name) for name in pictures]
    return found


def _natural(parts: tuple[str, ...]) -> list[Any]:
    """Key that puts 2.png before 10.png; equal ones (01 and 1) in the order of their characters."""
    pieces = [
        [(text.casefold(), int(digits or -1)) for text, digits in re.findall(r"(\D*)(\d*)", part)] for part in parts
    ]
    return [pieces, parts]


def common_size(sizes: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Height and width for images of these sizes: small ones of one size stay, others get `USUAL_PIXELS`."""
    if len(set(sizes)) == 1 and math.prod(sizes[0]) <= SMALL:
        return sizes[0]
    ratio = min(max(float(np.median([height / width for height, width in sizes])), 0.5), 2.0)
    return max(1, round(math.sqrt(USUAL_PIXELS * ratio))), max(1, round(math.sqrt(USUAL_PIXELS / ratio)))


def _chosen_size(images: list[ImageFile], wanted: tuple[int, int] | None) -> tuple[tuple[int, int], str]:
    """Height and width for all, as asked or by `common_size`, and how to say it."""
    sizes = {(image.height, image.width) for image in images}
    n = counted(len(images), "image")
    size = wanted or common_size([(image.height, image.width) for image in images])
    if wanted is None and sizes == {size}:
        return size, f"{n} of {size[0]} x {size[1]} pixels, used as they are"
    ratios = [image.height / image.width for image in images]
    cut = sum(not 0.9 < ratio * size[1] / size[0] < 1.1 for ratio in ratios)
    middle = ""
    if cut:
        middle = f"; {counted(cut, 'of another shape was', 'of another shape were')} cut to the middle"
    why = "" if wanted is not None else f" ({argument('image_size')} sets it)"
    found = f"{n} of {counted(len(sizes), 'size')}"
    return size, f"{found} reduced to {size[0]} x {size[1]} pixels{why}{middle}"


def told_skipped(skipped: list[tuple[str, str]]) -> list[str]:
    """Files that were left out, in one sentence with the reasons; nothing where there are none."""
    if not skipped:
        return []
    first = sorted(skipped, key=lambda item: item[1])
    kinds = {reason: [name for name, other in first if other == reason] for _, reason in first}
    told = [_told_kind(reason, names) for reason, names in list(kinds.items())[:SHOWN]]
    left = len(skipped) - sum(len(names) for names in list(kinds.values())[:SHOWN])
    return [f"{counted(len(skipped), 'file')} skipped: {'; '.join(told)}" + (f"; and {left} more" if left else "")]


def _told_kind(reason: str, names: list[str]) -> str:
    """Files that were left out for the same reason: the first ones by name, how many there are, and why."""
    shown = ", ".join(printable(name) for name in names[:2])
    return f"{shown}{f' and {len(names) - 2} more' if len(names) > 2 else ''} ({reason})"


def _too_few(folder: Path, n: int, skipped: list[tuple[str, str]], request: Request) -> FileError:
    why = " ".join(f"; {note}" for note in told_skipped(skipped))
    known = ", ".join(suffixes())
    needed = f"clustering needs at least {request.min_images}" if request.min_images > 1 else "name one or more"
    return FileError(folder, f"{counted(n, 'readable image')} here; {needed} ({known}){why}")


def _reason(error: Exception) -> str:
    if type(error).__name__ == "UnidentifiedImageError":
        return "not an image of a known format"
    if isinstance(error, UnicodeError):
        return "its name is not UTF-8"
    if type(error).__name__ == "DecompressionBombError":
        return f"more than {MAX_PIXELS // 10**6} million pixels; make it smaller"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return printable(" ".join((text or type(error).__name__).split()), 100)
