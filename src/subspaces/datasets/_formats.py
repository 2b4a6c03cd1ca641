"""Readers of the files the data sets travel in; nothing is unpickled and nothing is unpacked to disk."""

from __future__ import annotations

import gzip
import io
import math
import re
import struct
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

from subspaces.utils.column_names import LABEL_NAMES
from subspaces.utils.files import FileError, check_size, printable
from subspaces.utils.mat_files import list_matrices
from subspaces.utils.memory import available_bytes
from subspaces.utils.optional import from_app
from subspaces.utils.process import quiet
from subspaces.utils.types import Array, Labels

COIL_IMAGE = re.compile(r"obj(\d+)__(\d+)\.png", re.IGNORECASE)
"""Object and view (COIL-20: 0, 1, ..., 71; COIL-100: the angle 0, 5, ..., 355) in the name of an image."""

COIL_SIDE, BLOCK = 128, 4
"""Pixels along the side of a COIL image, and of the blocks whose means make the images 32 × 32."""

Members = dict[str, Callable[[], Any]]
"""Names of images, and what opens each."""

MAX_IMAGE_BYTES = 2**20
"""The most one packed COIL image may take; the real ones have below 50 kB."""

MAX_TEXT_BYTES = 2**28
"""The most an unpacked text file may take; Covtype's has 75 MB."""

MAX_NUMBER = 2**15
"""The most an absolute value in a text file may be; Covtype's largest is 7173, those of USPS are at most 9."""


@dataclass(frozen=True)
class Points:
    """Points as their file stores them.

    Attributes
    ----------
    X : array of shape (n_samples, n_features)
        ``X * scale`` are the values; without `scale`, `X` itself.
    y : array of shape (n_samples,)
        Class of each point as an index into `classes`.
    classes : list of str
        The source's own labels.
    scale : float or None
        Factor of `X`.
    """

    X: Array
    y: Labels
    classes: list[str]
    scale: float | None = None


def points_of(X: Array, labels: Array, scale: float | None = None) -> Points:
    """Points whose labels become codes 0, 1, ... in the order of the source's labels."""
    classes, codes = np.unique(labels, return_inverse=True)
    return Points(X, codes.astype(np.intp, copy=False), [str(name) for name in classes.tolist()], scale)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever damaged bytes do to a parser into one error that names the file."""
    try:
        yield
    except (FileError, ImportError, MemoryError):
        raise
    except Exception as error:  # three formats and Pillow fail in too many ways to list
        reason = printable(" ".join(str(error).split()), 120)
        raise FileError(path, f"damaged, cut short or of another format ({reason}); fetch it again") from error


# ------------------------------------------------------------------ arrays with names: .npz and .mat


def read_arrays(path: Path) -> Points:
    """Points and labels from a ``.npz`` file (``X``, ``y``, perhaps ``scale``) or a ``.mat`` one (``fea``, ``gnd``)."""
    table = from_app("files", "read_table")(path, label=_label_name(path))
    assert table.y is not None
    assert table.classes is not None
    return Points(table.X, table.y, table.classes)


def _label_name(path: Path) -> str:
    """The array that holds the labels; what a damaged file holds is left to `read_table` to complain of."""
    try:
        names = _array_names(path)
    except Exception:
        names = []
    known = [name for label in LABEL_NAMES for name in names if name.lower() == label]
    return known[0] if known else LABEL_NAMES[path.suffix.lower() == ".mat"]


def _array_names(path: Path) -> list[str]:
    if path.suffix.lower() == ".npz":
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    if find_spec("h5py") is not None:
        import h5py

        if h5py.is_hdf5(path):  # MATLAB 7.3
            with h5py.File(path, "r") as file:
                return list(file)
    return list(list_matrices(path))


def read_matlab_images(path: Path, image_shape: tuple[int, int] = (32, 32)) -> Points:
    """Images from a ``.mat`` file. MATLAB stores their columns one after another; here they come out upright."""
    points = read_arrays(path)
    if points.X.shape[1] != math.prod(image_shape):
        found, wanted = points.X.shape[1], " x ".join(map(str, image_shape))
        raise FileError(
            path, f"its points have {found} values, images of {wanted} pixels have {math.prod(image_shape)}"
        )
    return Points(upright(points.X, image_shape), points.y, points.classes)


def upright(X: Array, image_shape: tuple[int, int]) -> Array:
    """Reorder pixels from columns one after another to rows one after another."""
    height, width = image_shape
    return X.reshape(-1, width, height).transpose(0, 2, 1).reshape(X.shape)


def read_yaleb_crop(path: Path, n_subjects: int = 38) -> Points:
    """``YaleBCrop025.mat`` of the SSC and DSC-Net programs: ``Y`` is pixels × images of a subject × subjects.

    Images without any light (all zero) are left out: no method can place them.
    """
    image_shape = (48, 42)
    pixels_first = from_app("files", "read_table")(path, array="Y").X
    n_pixels, n_images = pixels_first.shape
    if n_pixels != math.prod(image_shape) or n_images % n_subjects:
        shape = f"{n_pixels} x {n_images}"
        raise FileError(path, f"'Y' has {shape} values; 2016 pixels of images of {n_subjects} subjects are expected")
    X = pixels_first.reshape(n_pixels, -1, n_subjects).transpose(2, 1, 0).reshape(n_images, n_pixels)
    labels = np.repeat(np.arange(1, n_subjects + 1), n_images // n_subjects)
    lit = X.any(axis=1)
    return points_of(upright(X[lit], image_shape), labels[lit])


# ------------------------------------------------------------------ COIL: PNG images in an archive or a folder


def read_coil20(path: Path) -> Points:
    """COIL-20 from its archive or folder of PNG images: means of 4 × 4 blocks, in [0, 1]."""
    sums, objects = _coil_block_sums(path)
    return points_of(sums, objects, scale=1 / (BLOCK**2 * 255))


def read_coil100(path: Path) -> Points:
    """COIL-100 from its archive or folder of PNG images: grey, means of 4 × 4 blocks, whole numbers up to 255."""
    sums, objects = _coil_block_sums(path)
    return points_of(((sums + BLOCK**2 // 2) // BLOCK**2).astype(np.uint8), objects)


def _coil_block_sums(path: Path) -> tuple[Array, Array]:
    """Sums of the 4 × 4 blocks of every image, by object and then view, and the number of its object."""
    require_pillow("COIL's PNG images")
    with reading(path):
        if path.is_dir():
            # links that leave the folder, pipes (opening one would wait for ever) and folders are no images
            root, files = path.resolve(), [file for file in path.iterdir() if COIL_IMAGE.fullmatch(file.name)]
            images = [file for file in files if file.is_file() and file.resolve().is_relative_to(root)]
            return _stack_coil(path, {file.name: partial(open, file, "rb") for file in images})
        with zipfile.ZipFile(path) as archive:
            return _stack_coil(path, _zip_members(path, archive))


def _read_image(path: Path, name: str, open_member: Callable[[], Any]) -> bytes:
    """The bytes of one image, whatever its size was announced to be."""
    with open_member() as stream:
        content: bytes = stream.read(MAX_IMAGE_BYTES + 1)
    if len(content) > MAX_IMAGE_BYTES:
        raise FileError(path, f"'{printable(name)}' has more than {MAX_IMAGE_BYTES} bytes, too many for a COIL image")
    return content


def _zip_members(path: Path, archive: zipfile.ZipFile) -> Members:
    members: Members = {}
    for info in archive.infolist():
        name = PurePosixPath(info.filename).name  # folders inside the archive mean nothing here
        if not COIL_IMAGE.fullmatch(name):
            continue
        if name in members:
            raise FileError(path, f"holds two images called '{printable(name)}'; fetch it again")
        if info.file_size > MAX_IMAGE_BYTES:
            raise FileError(path, f"'{printable(name)}' unpacks to {info.file_size} bytes, too many for a COIL image")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # the others unpack without a bound
            raise FileError(path, f"'{printable(name)}' is packed in an unusual way; fetch it again")
        members[name] = partial(archive.open, info)
    return members


def _stack_coil(path: Path, members: Members) -> tuple[Array, Array]:
    found = [(match, name) for name in members if (match := COIL_IMAGE.fullmatch(name))]
    if not found:
        raise FileError(path, "holds no image with a name like obj1__0.png; is this COIL's processed set?")
    order = sorted((int(match[1]), int(match[2]), name) for match, name in found)
    sums = np.empty((len(order), (COIL_SIDE // BLOCK) ** 2), dtype=np.int16)
    for row, (_, _, name) in enumerate(order):
        sums[row] = _block_sums(path, name, _read_image(path, name, members[name]))
    return sums, np.array([number for number, _, _ in order])


def _block_sums(path: Path, name: str, content: bytes) -> Array:
    """Sums of the blocks of one PNG image as a row; at most 16 · 255."""
    from PIL import Image

    with quiet():  # Pillow's, of many pixels: refused below
        image = Image.open(io.BytesIO(content), formats=("PNG",))
    with image:
        if image.size != (COIL_SIDE, COIL_SIDE):  # known from the header, before any pixel is unpacked
            found = " x ".join(map(str, image.size))
            raise FileError(path, f"'{printable(name)}' has {found} pixels; COIL's processed images have 128 x 128")
        pixels = np.asarray(image.convert("L"), dtype=np.int16)
    n_blocks = COIL_SIDE // BLOCK
    blocks: Array = pixels.reshape(n_blocks, BLOCK, n_blocks, BLOCK)
    return blocks.sum(axis=(1, 3), dtype=np.int16).ravel()


def require_pillow(what: str) -> None:
    """Say what to install before anything is read or fetched."""
    if find_spec("PIL") is None:
        raise ImportError(f"{what} need Pillow: pip install pillow")


# ------------------------------------------------------------------ MNIST, USPS, Covtype: bytes and text


def read_mnist(images: Path) -> Points:
    """MNIST from the idx file of its images, plain or packed by gzip; that of its labels stands beside it."""
    labels = images.with_name(images.name.replace("images", "labels").replace("idx3", "idx1"))
    if not labels.exists():
        raise FileError(labels, f"missing; the labels belong beside {images.name}")
    X, y = read_idx(images), read_idx(labels)
    if X.ndim != 3 or y.shape != X.shape[:1]:
        raise FileError(images, f"holds an array of shape {X.shape} and {labels.name} one of shape {y.shape}")
    return points_of(X.reshape(X.shape[0], -1), y)


def read_idx(path: Path) -> Array:
    """An array of bytes in the idx format: two zero bytes, the type, the number of axes, their lengths, the values."""
    with reading(path), _open(path) as stream:
        head = stream.read(4)
        if len(head) < 4 or head[:3] != b"\x00\x00\x08":
            raise FileError(path, "does not begin like an idx file of bytes (00 00 08); fetch it again")
        shape: tuple[int, ...] = struct.unpack(f">{head[3]}I", stream.read(4 * head[3]))
        if 0 in shape:
            raise FileError(path, f"announces no values (the shape {printable(shape)}); fetch it again")
        check_size(path, math.prod(shape), available_bytes())
        content = stream.read(math.prod(shape))
        if len(content) < math.prod(shape):
            announced = f"{math.prod(shape)} bytes announced, {len(content)} there"
            raise FileError(path, f"cut short ({announced}); fetch it again")
        return np.frombuffer(content, dtype=np.uint8).reshape(shape)


def read_usps_text(train: Path) -> Points:
    """USPS from ``zip.train(.gz)`` and ``zip.test(.gz)`` beside it: the digit, then 256 values in [-1, 1] a line."""
    test = train.with_name(train.name.replace("train", "test"))
    if not test.exists():
        raise FileError(test, f"missing; the test images belong beside {train.name}")
    table = np.concatenate([_read_numbers(file, n_columns=257) for file in (train, test)])
    return points_of(unit_interval(table[:, 1:]), table[:, 0].astype(np.int64))


def unit_interval(X: Array) -> Array:
    """USPS with values in [-1, 1] brought to [0, 1]; what is there already stays."""
    return (X + 1) / 2 if X.min() < 0 else X


def read_usps_arrays(path: Path) -> Points:
    """USPS from a ``.npz`` or ``.mat`` file, in [0, 1] whatever the file's convention."""
    points = read_arrays(path)
    return Points(unit_interval(points.X), points.y, points.classes)


def read_covtype_text(path: Path) -> Points:
    """Covtype from UCI's ``covtype.data(.gz)``: 54 whole numbers and the class a line."""
    table = _read_numbers(path, n_columns=55, dtype=np.int16, delimiter=",")
    return points_of(table[:, :-1], table[:, -1])


def _read_numbers(path: Path, n_columns: int, dtype: type = np.float64, delimiter: str | None = None) -> Array:
    with reading(path), _open(path) as stream:
        content = stream.read(MAX_TEXT_BYTES + 1)
        if len(content) > MAX_TEXT_BYTES:
            raise FileError(path, f"unpacks to more than {MAX_TEXT_BYTES} bytes; this is not the original file")
        with quiet():  # of a file without numbers, refused below
            table: Array = np.loadtxt(io.BytesIO(content), dtype=dtype, delimiter=delimiter, comments=None, ndmin=2)
    if table.size == 0:
        raise FileError(path, "holds no numbers; fetch it again")
    if table.shape[1] != n_columns:
        raise FileError(path, f"has {table.shape[1]} numbers a line where {n_columns} are expected")
    if not (np.abs(table) <= MAX_NUMBER).all():  # NaN is refused too
        raise FileError(path, f"holds numbers that are not finite or beyond {MAX_NUMBER}; fetch it again")
    return table


def _open(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")  # type: ignore[return-value]


def block_means(images: Array, block: int) -> Array:
    """Means of square blocks of a stack of images, as rows."""
    n, height, width = images.shape
    blocks = images.reshape(n, height // block, block, width // block, block)
    return blocks.mean(axis=(2, 4)).reshape(n, -1)


def names_in_words(names: Sequence[str]) -> str:
    """List file names for a sentence: "a, b or c"."""
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
