"""Folders of images or texts: one file, one sample. Broken files are listed and left out, huge ones never decoded."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from subspaces.app.files.dataset import Dataset, Request, encode, imported
from subspaces.app.files.tables import TEXT_COPIES
from subspaces.utils.files import FileError, argument, check_size, inside, printable, quoted, readable_bytes
from subspaces.utils.process import quiet
from subspaces.utils.progress import phase
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array, Labels

_IMAGES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp", ".gif")
_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP", "GIF")  # no other of Pillow's many decoders is ever started
_HEIF = (".heic", ".heif", ".hif")
_RAW = (".cr2", ".cr3", ".nef", ".nrw", ".arw", ".dng", ".orf", ".rw2", ".raf", ".pef", ".srw", ".raw")
_FILM = (".mp4", ".mov", ".m4v", ".avi", ".mkv", ".webm", ".3gp", ".mts", ".wmv", ".mpg", ".mpeg")
_OTHER = (".avif", ".jxl", ".jp2", ".psd", ".svg", ".pdf", ".ico", ".tga", ".eps", ".xcf", ".ppm", ".pgm")

MAX_PIXELS = 89_478_485
"""Most pixels of an image (Pillow's own warning level), compared with its header."""

# bytes that a pixel takes at most while its image is read, as measured; 16 in other formats; a row takes 40 more
_DECODING = {"JPEG": 6, "WEBP": 20}
_SMALL = 64 * 64  # pixels up to which images of one size are used as they are
_USUAL = 32 * 32  # pixels that others are reduced to, about as many as the paper's faces and objects have
_BY_FOLDER = "folder"  # the label that makes the folder of a file its class
_SHOWN = 4  # reasons for leaving files out that are told

MARKER = ".subspaces-sorted"
"""File in the folders that ``--sort-into`` made, which are no input."""

_TEXT_SUFFIXES = (".txt", ".md")


# ------------------------------------------------------------------ kinds of files


@cache
def reads_heif() -> bool:
    """Return True where pillow-heif is installed, which reads the photographs of phones (HEIC)."""
    if find_spec("pillow_heif") is None:
        return False
    import pillow_heif

    pillow_heif.register_heif_opener()
    return True


def _suffixes() -> tuple[str, ...]:
    return _IMAGES + (_HEIF if reads_heif() else ())


def is_image(name: str) -> bool:
    """Return True for a picture that is read."""
    return name.lower().endswith(_suffixes())


def is_text(name: str) -> bool:
    """Return True for a file with a text."""
    return name.lower().endswith(_TEXT_SUFFIXES)


def why_not(name: str) -> str:
    """Return the reason why a picture or film is not read; empty for other files.

    Examples
    --------
    >>> why_not("IMG_1.CR2"), why_not("notes.txt")
    ("a camera's raw file; save it as JPEG or TIFF", '')
    """
    lower = name.lower()
    if lower.endswith(_HEIF) and not reads_heif():
        return "HEIC, which pillow-heif reads: pip install pillow-heif"
    if lower.endswith(_RAW):
        return "a camera's raw file; save it as JPEG or TIFF"
    if lower.endswith(_FILM):
        return "a film; save frames of it as images"
    return "a format that is not read; save it as PNG or JPEG" if lower.endswith(_OTHER) else ""


def belongs(name: str) -> bool:
    """Return True for a picture of some kind, read or not."""
    return is_image(name) or bool(why_not(name))


def files_below(folder: Path, is_wanted: Callable[[str], bool]) -> list[Path]:
    """Return the files with wanted names in a folder and below; hidden ones and what ``--sort-into`` made are not."""
    found: list[Path] = []
    for where, folders, names in os.walk(folder):  # does not follow links to folders
        if MARKER in names:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(where, name) for name in names if not name.startswith(".") and is_wanted(name)]
    return found


# ------------------------------------------------------------------ images


class _ImageFile(NamedTuple):
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
    imported(folder, "PIL.Image", "reading images")
    if request.label not in (None, _BY_FOLDER):
        problem = f"{argument('label')} of images can only be the subfolder of each, {argument('label', _BY_FOLDER)}"
        raise FileError(folder, f"{problem}; got '{printable(request.label)}'")
    files, skipped = _found(folder, given)
    with phase("Looking at the images", len(files)) as step:
        images = list(_headers(folder, files, skipped, request.max_bytes, step))
    if len(images) < request.min_images:
        raise _too_few(folder, len(images), skipped, request)
    size = request.image_size or common_size([(image.height, image.width) for image in images])
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
    known = set(kept)
    how = _told_size([image for image in images if image.name in known], size, request.image_size is not None)
    how += ", in colour" if request.color else f", in grey ({argument('color', True)} keeps colours)"
    y, classes, by_folder = _classes(folder, kept, request.label)
    notes, left_out = (how, *by_folder, *_told_skipped(skipped)), tuple(sorted(skipped))
    X = X[: len(kept)]
    return Dataset(X, folder, y=y, classes=classes, ids=kept, notes=notes, image_shape=shape, skipped=left_out)


def _classes(
    folder: Path, names: list[str], label: str | None
) -> tuple[Labels | None, list[str] | None, tuple[str, ...]]:
    """Return classes by subfolder if they are asked for; else a hint, where there are subfolders."""
    folders = [PurePosixPath(name).parent.as_posix() for name in names]
    different = sorted(set(folders))
    if label is None:
        if not 1 < len(different) <= len(names) / 2:
            return None, None, ()
        how = f"{argument('label', _BY_FOLDER)} scores the clusters by them"
        return None, None, (f"the images are in {len(different)} folders: {how}",)
    if len(different) < 2:
        problem = f"all images are in one folder, and {argument('label', _BY_FOLDER)} needs one for each class"
        raise FileError(folder, f"{problem}; leave it out")
    y, classes = encode(folder, np.array(folders, dtype=object), label)
    return y, classes, (f"the folder of an image is its class ({quoted(different, 4)})",)


def load_image(path: Path, size: tuple[int, int] | None, color: bool) -> Array:
    """Return an image as float32 from 0 to 1: turned as the camera says, on white where transparent, resized.

    Its shape is (height, width, 3) or (height, width), those of `size` unless that is None; another aspect ratio is
    cut to the middle.
    """
    from PIL import Image, ImageOps

    # JPEG can be decoded at a fraction of its size, many times faster
    with _upright(path, color, None if size is None else (4 * size[1], 4 * size[0])) as plain:
        if size is not None and plain.size != (size[1], size[0]):
            plain = ImageOps.fit(plain, (size[1], size[0]), Image.Resampling.LANCZOS)
        values = np.asarray(plain, dtype=np.float32)
    values = np.clip(values / 255, 0, 1)
    return np.repeat(values[:, :, np.newaxis], 3, axis=2) if color and values.ndim == 2 else values


def thumbnail(path: Path, side: int) -> Any:
    """Return a small Pillow image in colour, at most `side` pixels high and wide, never enlarged."""
    from PIL import Image

    with _upright(path, True, (2 * side, 2 * side)) as small:
        small.thumbnail((side, side), Image.Resampling.LANCZOS)
        return small if small.mode == "RGB" else Image.fromarray(np.asarray(small).clip(0, 255).astype(np.uint8))


@contextmanager
def _upright(path: Path, color: bool, enough: tuple[int, int] | None) -> Iterator[Any]:
    """Open an image as `_plain` makes it, turned as the camera says, maybe reduced to what is `enough`."""
    from PIL import ImageOps

    with _opened(path) as image:
        image.seek(0)
        if enough is not None:
            image.draft("RGB" if color else "L", enough)
        ImageOps.exif_transpose(image, in_place=True)
        yield _plain(image, color)


def _plain(image: Any, color: bool) -> Any:
    """Convert to 8 bit grey or colour; deeper grey values to floats on the same scale, so that nothing is lost."""
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
    """Open an image, of which only the header is read; refuse it if that announces too many pixels."""
    from PIL import Image

    # quiet of damaged metadata; bombs are refused below, not warned of
    with quiet(), Image.open(path, formats=(*_FORMATS, "HEIF") if reads_heif() else _FORMATS) as image:
        width, height = image.size
        if width * height > MAX_PIXELS:
            raise ValueError(f"{width} x {height} pixels, more than {MAX_PIXELS // 10**6} million; make it smaller")
        yield image


def _headers(
    folder: Path, files: list[Path], skipped: list[tuple[str, str]], max_bytes: int, step: Callable[[], None]
) -> Iterator[_ImageFile]:
    """Yield every image that may be decoded, with the size its header announces."""
    for path in files:
        step()
        name = path.relative_to(folder).as_posix()
        try:
            name.encode()  # a name of other bytes could not be written to any table or page
            inside(path, folder)
            with _opened(path) as image:
                width, height = image.size
                needed = height * (width * _DECODING.get(image.format, 16) + 40)
                if needed > max_bytes:
                    raise ValueError(
                        f"{width} x {height} pixels may take {readable_bytes(needed)} of memory to decode, "
                        f"{readable_bytes(max_bytes)} may be used; make it smaller"
                    )
                height, width = _turned(image)
        except Exception as error:
            skipped.append((_in_utf8(name), _reason(error)))
        else:
            yield _ImageFile(path, name, height, width)


def _turned(image: Any) -> tuple[int, int]:
    """Return height and width as the camera says that an image is shown."""
    width, height = image.size
    return (width, height) if image.getexif().get(0x0112, 1) in (5, 6, 7, 8) else (height, width)


def shown_size(path: Path) -> tuple[int, int]:
    """Return height and width of an image as it is shown, from its header."""
    with _opened(path) as image:
        return _turned(image)


def _found(folder: Path, given: Sequence[Path] | None) -> tuple[list[Path], list[tuple[str, str]]]:
    """Return images sorted by name, each once, and pictures of other kinds with the reason why they are left out."""
    files = [file for path in given or [folder] for file in (files_below(path, belongs) if path.is_dir() else [path])]
    below = {os.path.relpath(os.path.abspath(path), os.path.abspath(folder)): path for path in files}
    names = sorted(below, key=lambda name: _natural(Path(name).parts))
    images = [folder / name for name in names if is_image(name)]
    others = [_in_utf8(Path(name).as_posix()) for name in names if not is_image(name)]
    return images, [(name, why_not(name) or "not an image") for name in others]


def _in_utf8(name: str) -> str:
    """Return a name with bytes that are not UTF-8 written out."""
    return name.encode(errors="backslashreplace").decode()


def _natural(parts: tuple[str, ...]) -> list[Any]:
    """Return a key that puts 2.png before 10.png; equal ones (01 and 1) in the order of their characters."""
    pieces = [
        [(text.casefold(), int(digits or -1)) for text, digits in re.findall(r"(\D*)(\d*)", part)] for part in parts
    ]
    return [pieces, parts]


def common_size(sizes: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return height and width for images of these sizes: small ones of one size stay, others are reduced."""
    if len(set(sizes)) == 1 and math.prod(sizes[0]) <= _SMALL:
        return sizes[0]
    ratio = min(max(float(np.median([height / width for height, width in sizes])), 0.5), 2.0)
    return max(1, round(math.sqrt(_USUAL * ratio))), max(1, round(math.sqrt(_USUAL / ratio)))


def _told_size(images: list[_ImageFile], size: tuple[int, int], is_asked: bool) -> str:
    """Describe what was done with the sizes of images."""
    sizes = {(image.height, image.width) for image in images}
    n = counted(len(images), "image")
    if not is_asked and sizes == {size}:
        return f"{n} of {size[0]} x {size[1]} pixels, used as they are"
    cut = sum(not 0.9 < image.height / image.width * size[1] / size[0] < 1.1 for image in images)
    middle = f"; {counted(cut, 'of another shape was', 'of another shape were')} cut to the middle" if cut else ""
    why = "" if is_asked else f" ({argument('image_size')} sets it)"
    return f"{n} of {counted(len(sizes), 'size')} reduced to {size[0]} x {size[1]} pixels{why}{middle}"


def _told_skipped(skipped: list[tuple[str, str]]) -> list[str]:
    """Describe files that were left out in one sentence with the reasons; nothing where there are none."""
    if not skipped:
        return []
    first = sorted(skipped, key=lambda item: item[1])
    kinds = {reason: [name for name, other in first if other == reason] for _, reason in first}
    told, left = [], len(skipped)
    for reason, names in list(kinds.items())[:_SHOWN]:
        more = f" and {len(names) - 2} more" if len(names) > 2 else ""
        told.append(f"{', '.join(printable(name) for name in names[:2])}{more} ({reason})")
        left -= len(names)
    return [f"{counted(len(skipped), 'file')} skipped: {'; '.join(told)}" + (f"; and {left} more" if left else "")]


def _too_few(folder: Path, n: int, skipped: list[tuple[str, str]], request: Request) -> FileError:
    why = " ".join(f"; {note}" for note in _told_skipped(skipped))
    known = ", ".join(_suffixes())
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


# ------------------------------------------------------------------ texts


def read_texts(path: Path, request: Request) -> Dataset:
    """Read every file of a folder as one text, named by its path below it; ``label="folder"`` takes its folder."""
    if request.label not in (None, _BY_FOLDER):
        raise FileError(path, f"{argument('label')} of a folder of texts can only be 'folder', the folder of each")
    texts, kept, skipped, used = [], [], [], 0
    for file in sorted(files_below(path, is_text)):
        name = file.relative_to(path).as_posix()
        try:
            with inside(file, path).open("rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                check_size(path, TEXT_COPIES * (used + size), request.max_bytes, "its texts need")
                text = stream.read(size).decode("utf-8-sig")
            if not text.strip():
                raise ValueError("is empty")
        except FileError:
            raise
        except (OSError, ValueError) as error:
            reason = "cannot be read" if isinstance(error, OSError) else str(error)
            skipped.append((name, "is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else reason))
            continue
        texts.append(text)
        kept.append(name)
        used += size
    if len(texts) < 2:
        found = counted(len(texts), "text")
        raise FileError(path, f"{found} in it ({', '.join(_TEXT_SUFFIXES)}); two or more are needed")
    parents = np.array([Path(name).parent.as_posix() for name in kept])
    y, classes = (None, None) if request.label is None else encode(path, parents, _BY_FOLDER)
    X, notes = np.empty((len(texts), 0)), tuple(_told_skipped(skipped))
    return Dataset(X, path, y=y, classes=classes, ids=kept, skipped=tuple(skipped), texts=texts, notes=notes)
