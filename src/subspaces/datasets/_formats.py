"""Readers of the files in which the data sets are distributed; nothing is unpickled and nothing is unpacked to disk."""

from __future__ import annotations

import gzip
import io
import math
import re
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from subspaces.utils.column_names import LABEL_NAMES
from subspaces.utils.files import FileError, printable
from subspaces.utils.mat_files import list_matrices, read_matrix
from subspaces.utils.process import quiet
from subspaces.utils.types import Array, Labels

COIL_IMAGE = re.compile(r"obj(\d+)__(\d+)\.png", re.IGNORECASE)
"""Object and view (COIL-20: 0, 1, ..., 71; COIL-100: the angle 0, 5, ..., 355) in the name of an image."""
COIL_SIDE, BLOCK = 128, 4
"""Side of a COIL image in pixels, and of the blocks whose means make the images 32 × 32."""
MAX_IMAGE_BYTES = 2**20  # of one COIL image; the real ones have below 50 kB
MAX_BYTES = 2**26  # of an unpacked idx file; MNIST's images have 47 MB


class Points(NamedTuple):
    """Samples as their file stores them: the values are ``X * scale``, or X itself without a `scale`.

    `y` holds the class of each sample as an index into `classes`, the source's own labels.
    """

    X: Array
    y: Labels
    classes: list[str]
    scale: float | None = None


def points_of(X: Array, labels: Array, scale: float | None = None) -> Points:
    """Code the labels as 0, 1, ... in the order of the source's labels."""
    classes, codes = np.unique(labels, return_inverse=True)
    return Points(X, codes.astype(np.intp, copy=False), [str(name) for name in classes.tolist()], scale)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn any failure of a parser on damaged bytes into one error that names the file."""
    try:
        yield
    except (FileError, ImportError, MemoryError):
        raise
    except Exception as error:  # the parsers and Pillow fail in too many ways to list
        reason = printable(" ".join(str(error).split()), 120)
        raise FileError(path, f"damaged, cut short or of another format ({reason}); fetch it again") from error


# ------------------------------------------------------------------ arrays with names: .npz and .mat


def read_arrays(path: Path) -> Points:
    """Read a ``.npz`` file (``X``, ``y``, perhaps ``scale``) or a ``.mat`` file (``fea``, ``gnd``)."""
    arrays = _arrays(path)
    X = next((arrays[name] for name in ("X", "fea", "data") if name in arrays), None)
    y = next((arrays[name] for name in (*LABEL_NAMES, "Y") if name in arrays), None)
    if X is None or y is None or X.ndim < 2 or X.dtype.kind not in "biuf" or y.size != len(X):
        found = ", ".join(f"{printable(name)} {printable(array.shape)}" for name, array in [*arrays.items()][:8])
        raise FileError(path, f"holds no samples with a class for each (X and y), but {found or 'nothing'}")
    if X.dtype.kind == "f" and not np.isfinite(X).all():
        raise FileError(path, "its samples hold values that are not finite; fetch it again")
    y = y.ravel()
    whole = y.dtype.kind == "f" and (y == np.rint(y)).all()  # MATLAB stores only floats
    scale = arrays.get("scale")
    return points_of(
        X.reshape(len(X), -1), y.astype(int) if whole else y, None if scale is None else float(scale.item())
    )


def _arrays(path: Path) -> dict[str, Array]:
    with reading(path):
        if path.suffix.lower() == ".mat":
            found = list_matrices(path)
            return {name: read_matrix(path, matrix) for name, matrix in found.items() if matrix.info.kind == "number"}
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}


def read_matlab_images(path: Path, image_shape: tuple[int, int] = (32, 32)) -> Points:
    """Read images from a ``.mat`` file, which stores them by columns, and turn them upright."""
    points = read_arrays(path)
    if points.X.shape[1] != math.prod(image_shape):
        found, wanted = points.X.shape[1], " x ".join(map(str, image_shape))
        raise FileError(
            path, f"its points have {found} values, images of {wanted} pixels have {math.prod(image_shape)}"
        )
    return points._replace(X=_by_rows(points.X, image_shape))


def read_yaleb_crop(path: Path, n_subjects: int = 38) -> Points:
    """Read ``YaleBCrop025.mat`` of the SSC and DSC-Net programs: ``Y`` is pixels × images of a subject × subjects.

    Images without any light (all zero) are left out: no method can assign them.
    """
    image_shape = (48, 42)
    stored = _arrays(path).get("Y", np.empty((0, 0, 0)))
    pixels_first = stored.reshape(len(stored), -1)
    n_pixels, n_images = pixels_first.shape
    if n_pixels != math.prod(image_shape) or n_images % n_subjects:
        shape = f"{n_pixels} x {n_images}"
        raise FileError(path, f"'Y' has {shape} values; 2016 pixels of images of {n_subjects} subjects are expected")
    X = pixels_first.reshape(n_pixels, -1, n_subjects).transpose(2, 1, 0).reshape(n_images, n_pixels)
    labels = np.repeat(np.arange(1, n_subjects + 1), n_images // n_subjects)
    lit = X.any(axis=1)
    return points_of(_by_rows(X[lit], image_shape), labels[lit])


def _by_rows(X: Array, image_shape: tuple[int, int]) -> Array:
    """Reorder pixels from column-major to row-major order."""
    height, width = image_shape
    return X.reshape(-1, width, height).transpose(0, 2, 1).reshape(X.shape)


# ------------------------------------------------------------------ COIL: PNG images in an archive


def read_coil20(path: Path) -> Points:
    """Read COIL-20 from its archive of PNG images: means of 4 × 4 blocks, in [0, 1]."""
    sums, objects = _coil_block_sums(path)
    return points_of(sums, objects, scale=1 / (BLOCK**2 * 255))


def read_coil100(path: Path) -> Points:
    """Read COIL-100 from its archive of PNG images: grey, means of 4 × 4 blocks, integers up to 255."""
    sums, objects = _coil_block_sums(path)
    return points_of(((sums + BLOCK**2 // 2) // BLOCK**2).astype(np.uint8), objects)


def _coil_block_sums(path: Path) -> tuple[Array, Array]:
    """Return the sums of the 4 × 4 blocks of every image, by object and then view, and the number of its object."""
    require_pillow()
    with reading(path), zipfile.ZipFile(path) as archive:
        members = _coil_members(path, archive)
        sums = np.empty((len(members), (COIL_SIDE // BLOCK) ** 2), dtype=np.int16)
        for row, (_, name, info) in enumerate(members):
            with archive.open(info) as stream:
                content = stream.read(MAX_IMAGE_BYTES + 1)
            if len(content) > MAX_IMAGE_BYTES:  # whatever size was announced
                raise FileError(path, f"'{name}' has more than {MAX_IMAGE_BYTES} bytes, too many for a COIL image")
            sums[row] = _block_sums(path, name, content)
        return sums, np.array([number for (number, _), _, _ in members])


def _coil_members(path: Path, archive: zipfile.ZipFile) -> list[tuple[tuple[int, int], str, zipfile.ZipInfo]]:
    """Return object and view, name and entry of every image in order; refuse what an honest archive does not hold."""
    found: dict[str, tuple[tuple[int, int], str, zipfile.ZipInfo]] = {}
    for info in archive.infolist():
        name = PurePosixPath(info.filename).name  # folders inside the archive mean nothing here
        match = COIL_IMAGE.fullmatch(name)
        if match is None:
            continue
        if name in found:
            raise FileError(path, f"holds two images called '{name}'; fetch it again")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # the others unpack without a bound
            raise FileError(path, f"'{name}' is packed in an unusual way; fetch it again")
        found[name] = (int(match[1]), int(match[2])), name, info
    if not found:
        raise FileError(path, "holds no image with a name like obj1__0.png; is this COIL's processed set?")
    return sorted(found.values(), key=lambda member: member[:2])


def _block_sums(path: Path, name: str, content: bytes) -> Array:
    """Return the sums of the blocks of one PNG image as a row; at most 16 · 255."""
    from PIL import Image

    with quiet():  # Pillow's warning about many pixels: refused below
        image = Image.open(io.BytesIO(content), formats=("PNG",))
    with image:
        if image.size != (COIL_SIDE, COIL_SIDE):  # known from the header, before any pixel is unpacked
            found = " x ".join(map(str, image.size))
            raise FileError(path, f"'{name}' has {found} pixels; COIL's processed images have 128 x 128")
        pixels = np.asarray(image.convert("L"), dtype=np.int16)
    n_blocks = COIL_SIDE // BLOCK
    blocks: Array = pixels.reshape(n_blocks, BLOCK, n_blocks, BLOCK)
    return blocks.sum(axis=(1, 3), dtype=np.int16).ravel()


def require_pillow() -> None:
    """Refuse before anything is read or fetched."""
    if find_spec("PIL") is None:
        raise ImportError("COIL's PNG images need Pillow: pip install pillow")


# ------------------------------------------------------------------ MNIST and USPS


def read_mnist(images: Path) -> Points:
    """Read MNIST from the idx file of its images, plain or gzipped, and that of its labels beside it."""
    labels = images.with_name(images.name.replace("images", "labels").replace("idx3", "idx1"))
    if not labels.exists():
        raise FileError(labels, f"missing; the labels belong beside {images.name}")
    X, y = _read_idx(images), _read_idx(labels)
    if X.ndim != 3 or y.shape != X.shape[:1]:
        raise FileError(images, f"holds an array of shape {X.shape} and {labels.name} one of shape {y.shape}")
    return points_of(X.reshape(X.shape[0], -1), y)


def _read_idx(path: Path) -> Array:
    """Read bytes in the idx format: two zero bytes, the type (8), the number of axes, their lengths, the values."""
    with reading(path):
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as stream:
            content: bytes = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise FileError(path, f"unpacks to more than {MAX_BYTES} bytes; this is not the original file")
        if len(content) < 4 or content[:3] != b"\x00\x00\x08":
            raise FileError(path, "does not begin like an idx file of bytes (00 00 08); fetch it again")
        shape: tuple[int, ...] = struct.unpack_from(f">{content[3]}I", content, 4)
        if 0 in shape:
            raise FileError(path, f"announces no values (the shape {printable(shape)}); fetch it again")
        values = content[4 + 4 * len(shape) :][: math.prod(shape)]
        if len(values) < math.prod(shape):
            raise FileError(
                path, f"cut short ({math.prod(shape)} bytes announced, {len(values)} there); fetch it again"
            )
        return np.frombuffer(values, dtype=np.uint8).reshape(shape)


def read_usps(path: Path) -> Points:
    """Read USPS from a ``.npz`` or ``.mat`` file, in [0, 1] whatever the file's convention."""
    points = read_arrays(path)
    return points._replace(X=unit_interval(points.X))


def unit_interval(X: Array) -> Array:
    """Bring USPS from [-1, 1] to [0, 1]; values in [0, 1] stay."""
    return (X + 1) / 2 if X.min() < 0 else X
