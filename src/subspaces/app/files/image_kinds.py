"""Which files are images that can be read, and what to say of the others that people keep beside them."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp", ".gif")
"""Files of a folder that are taken for images (in any case)."""

FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP", "GIF")
"""What may be inside; no other of Pillow's many decoders is ever started, but that of HEIC where it is installed."""

HEIF_SUFFIXES = (".heic", ".heif", ".hif")
RAW_SUFFIXES = (".cr2", ".cr3", ".nef", ".nrw", ".arw", ".dng", ".orf", ".rw2", ".raf", ".pef", ".srw", ".raw")
FILM_SUFFIXES = (".mp4", ".mov", ".m4v", ".avi", ".mkv", ".webm", ".3gp", ".mts", ".wmv", ".mpg", ".mpeg")
OTHER_SUFFIXES = (".avif", ".jxl", ".jp2", ".psd", ".svg", ".pdf", ".ico", ".tga", ".eps", ".xcf", ".ppm", ".pgm")


@cache
def reads_heif() -> bool:
    """Whether photographs of phones (HEIC) can be read: they can where pillow-heif is installed."""
    if find_spec("pillow_heif") is None:
        return False
    import pillow_heif

    pillow_heif.register_heif_opener()
    return True


def suffixes() -> tuple[str, ...]:
    """Endings of the names of images that can be read here."""
    return IMAGE_SUFFIXES + (HEIF_SUFFIXES if reads_heif() else ())


def formats() -> tuple[str, ...]:
    """Formats that Pillow may look for in a file."""
    return (*FORMATS, "HEIF") if reads_heif() else FORMATS


def is_image(name: str) -> bool:
    """Whether a file is read as an image, by its name."""
    return name.lower().endswith(suffixes())


def why_not(name: str) -> str:
    """Why a picture or film that people keep among their images is not read; empty for other files.

    Examples
    --------
    >>> why_not("IMG_1.CR2"), why_not("notes.txt")
    ("a camera's raw file; save it as JPEG or TIFF", '')
    """
    lower = name.lower()
    if lower.endswith(HEIF_SUFFIXES) and not reads_heif():
        return "HEIC, which pillow-heif reads: pip install pillow-heif"
    if lower.endswith(RAW_SUFFIXES):
        return "a camera's raw file; save it as JPEG or TIFF"
    if lower.endswith(FILM_SUFFIXES):
        return "a film; save frames of it as images"
    return "a format that is not read; save it as PNG or JPEG" if lower.endswith(OTHER_SUFFIXES) else ""


def belongs(name: str) -> bool:
    """Whether a file is a picture of some kind, read or not."""
    return is_image(name) or bool(why_not(name))
