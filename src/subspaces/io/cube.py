"""What every reader of images with many bands returns, and `read_cube`: the format from the suffix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.io.dataset import FileError, argument, check_size, printable
from subspaces.numerics.memory import available_bytes
from subspaces.numerics.types import Array, Labels

BLOCK_BYTES = 2**26
"""Of a cube that is looked at in one piece."""


@dataclass(frozen=True)
class Georeference:
    """Where on Earth the pixels are.

    Attributes
    ----------
    transform : (a, b, c, d, e, f): a pixel's upper left corner is at x = a·column + b·row + c, y = d·column + e·row + f
    crs : coordinate system, as WKT or ``EPSG:number``; empty when the file does not say
    map_info : entries of ENVI's ``map info``, kept as they were; empty for other formats
    """

    transform: tuple[float, ...] | None = None
    crs: str = ""
    map_info: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cube:
    """An image with a spectrum in each pixel.

    Attributes
    ----------
    values : array of shape (rows, columns, bands), maybe on disk (memory-mapped)
    mask : array of shape (rows, columns), True where a pixel is to be clustered
    wavelengths : of the bands, as the file has them (see `unit`); None when it has none
    unit : of the wavelengths, such as ``nm``
    georeference : where the pixels are; None when the file does not say
    source : the file; None for an array
    labels : known class of each pixel as an index into `classes`, −1 where none is known; None when not asked for
    classes : the labels as they stand in the file
    notes : what a person should know about how the file was understood, one sentence each
    """

    values: Array
    mask: Array
    wavelengths: Array | None = None
    unit: str = ""
    georeference: Georeference | None = None
    source: Path | None = None
    labels: Labels | None = None
    classes: list[str] | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns and bands."""
        rows, columns, bands = self.values.shape
        return rows, columns, bands


@dataclass(frozen=True)
class CubeRequest:
    """What is wanted from a file: arrays of a ``.npz`` or ``.mat`` file by name, and the most memory for them."""

    array: str | None = None
    label: str | None = None
    max_bytes: int = 2**63 - 1


@dataclass(frozen=True)
class Raw:
    """What a format has, before pixels are looked at: values that are missing are equal to `ignored`."""

    values: Array
    ignored: float | None = None
    wavelengths: Array | None = None
    unit: str = ""
    georeference: Georeference | None = None
    labels: Array | None = None
    notes: tuple[str, ...] = ()


def read_cube(
    path: str | PathLike[str],
    *,
    mask: str | PathLike[str] | Array | None = None,
    array: str | None = None,
    label: str | None = None,
    max_bytes: int | None = None,
) -> Cube:
    """Read an image with many bands: ENVI (``.hdr``), GeoTIFF (``.tif``), ``.npy``, ``.npz`` or ``.mat``.

    ENVI and ``.npy`` files stay on disk and are read when they are needed. A pixel with a NaN in any band, or with the
    file's value for "nothing here" in every band, is left out, and so are pixels where `mask` is zero.

    Parameters
    ----------
    path : the file; of ENVI the header, beside which the data file stands
    mask : array of shape (rows, columns) or a file with one; zero (or False) leaves a pixel out
    array : array with the cube in a ``.npz`` or ``.mat`` file; by default the only one of three dimensions
    label : array of shape (rows, columns) in the same file with known classes, 0 where none is known
    max_bytes : the most memory the values may take; by default what is free now

    Returns
    -------
    Cube
    """
    file = Path(path)
    reader = _reader(file)
    most = available_bytes() if max_bytes is None else max_bytes
    if file.suffix.lower() not in (".npz", ".mat"):
        for name, value in (("array", array), ("label", label)):
            if value is not None:
                raise FileError(file, f"{argument(name)} has a meaning only for .npz and .mat files")
    raw = _guarded(reader, file, CubeRequest(array, label, most))
    shape = raw.values.shape
    if len(shape) != 3:
        problem = f"the array has the shape {printable(shape)}: there is no spatial order"
        raise FileError(file, f"{problem}; an image has rows, columns and bands (or cluster it as points)")
    if 0 in shape:
        raise FileError(file, f"the image has the shape {printable(shape)}: there is nothing to cluster")
    rows, columns, bands = shape
    if bands == 1:
        raise FileError(file, "the image has one band; a spectrum needs two or more")
    cube = Cube(
        raw.values,
        _wanted(file, mask, (rows, columns), most) & _present(file, raw.values, raw.ignored),
        None if raw.wavelengths is None or len(raw.wavelengths) != bands else raw.wavelengths,
        raw.unit,
        raw.georeference,
        file,
        notes=raw.notes,
    )
    if not cube.mask.any():
        raise FileError(file, "no pixel is left to cluster: all are masked, NaN or equal to the data ignore value")
    return cube if raw.labels is None else _labelled(cube, raw.labels)


def as_cube(values: Any, mask: Any = None) -> Cube:
    """An array of shape (rows, columns, bands) as a cube; one that is a `Cube` already stays as it is.

    Examples
    --------
    >>> as_cube(np.ones((4, 5, 3))).shape
    (4, 5, 3)
    """
    cube = values if isinstance(values, Cube) else None
    if cube is None:
        array = np.asarray(values)
        if array.ndim != 3 or 0 in array.shape or array.dtype.kind not in "biuf":
            found = f"{array.dtype} of shape {array.shape}"
            raise ValueError(f"cube must be an array of numbers with rows, columns and bands; got {found}.")
        cube = Cube(array, _present(None, array, None))
    if mask is not None:
        given = np.asarray(mask)
        if given.shape != cube.shape[:2]:
            raise ValueError(f"mask must have the shape {cube.shape[:2]} of the image; got {given.shape}.")
        cube = replace(cube, mask=cube.mask & (given != 0))
    if not cube.mask.any():
        raise ValueError("no pixel is left to cluster: all are masked or NaN; check mask.")
    return cube


def row_pieces(shape: Sequence[int], itemsize: int = 8) -> list[slice]:
    """Rows of an image in pieces of bounded size."""
    step = max(1, BLOCK_BYTES // max(1, int(np.prod(shape[1:], dtype=np.int64)) * itemsize))
    return [slice(start, min(start + step, shape[0])) for start in range(0, shape[0], step)]


def _present(path: Path | None, values: Array, ignored: float | None) -> Array:
    """Where a pixel has a spectrum; refuses infinite values and a band that is NaN everywhere."""
    present = np.ones(values.shape[:2], dtype=bool)
    is_float = values.dtype.kind == "f"
    if not is_float and ignored is None:
        return present
    empty_bands = np.ones(values.shape[2], dtype=bool)
    for piece in row_pieces(values.shape, 2 * values.dtype.itemsize):
        part = values[piece]
        if ignored is not None:
            present[piece] &= ~(part == ignored).all(axis=2)
        if is_float:
            if np.isinf(part).any():
                row, column, band = np.argwhere(np.isinf(part))[0].tolist()
                problem = f"the value of row {piece.start + row}, column {column}, band {band} is infinite"
                raise _refused(path, f"{problem}; leave that pixel out with {argument('mask')}, or repair it")
            missing = np.isnan(part)
            empty_bands &= (missing | ~present[piece][:, :, None]).all(axis=(0, 1))
            present[piece] &= ~missing.any(axis=2)
    if is_float and empty_bands.any() and not empty_bands.all():
        where = ", ".join(map(str, np.flatnonzero(empty_bands)[:8].tolist()))
        some = "bands" if empty_bands.sum() > 1 else "band"
        verb = "are" if empty_bands.sum() > 1 else "is"
        raise _refused(path, f"{some} {where} (counted from 0) {verb} NaN in every pixel; leave such bands out")
    return present


def _refused(path: Path | None, problem: str) -> ValueError:
    return ValueError(f"cube cannot be used: {problem}.") if path is None else FileError(path, problem)


def _wanted(path: Path, mask: Any, shape: tuple[int, int], max_bytes: int) -> Array:
    """The mask that was given, as an array or as a file of one band."""
    if mask is None:
        return np.ones(shape, dtype=bool)
    if isinstance(mask, np.ndarray):
        where, found = path, mask
    else:
        where = Path(mask)
        values = _guarded(_reader(where), where, CubeRequest(max_bytes=max_bytes)).values
        found = values[:, :, 0] if values.ndim == 3 and values.shape[2] == 1 else values
    if found.shape != shape:
        problem = f"the mask has the shape {printable(found.shape)} and the image {shape[0]} x {shape[1]} pixels"
        raise FileError(where, f"{problem}; they must be the same")
    return np.asarray((found != 0) & (found == found))  # NaN is no wish


def _labelled(cube: Cube, given: Array) -> Cube:
    """Known classes as indices; 0 (and NaN) is "not known", as in all public scenes."""
    if given.shape != cube.shape[:2]:
        assert cube.source is not None
        problem = f"{argument('label')} has the shape {printable(given.shape)}"
        raise FileError(cube.source, f"{problem} and the image {cube.shape[0]} x {cube.shape[1]} pixels")
    known = (given != 0) & (given == given)
    names, codes = np.unique(given[known], return_inverse=True)
    labels = np.full(given.shape, -1, dtype=np.intp)
    labels[known] = codes
    return replace(cube, labels=labels, classes=[f"{name:g}" for name in names.tolist()])


def _reader(path: Path) -> Callable[[Path, CubeRequest], Raw]:
    # late: each reader brings its own libraries
    from subspaces.io import cube_arrays, envi, geotiff

    readers: dict[str, Callable[[Path, CubeRequest], Raw]] = {
        ".hdr": envi.read_envi,
        ".npy": cube_arrays.read_npy_cube,
        ".npz": cube_arrays.read_npz_cube,
        ".mat": cube_arrays.read_mat_cube,
        ".tif": geotiff.read_geotiff,
        ".tiff": geotiff.read_geotiff,
    }
    if path.suffix.lower() not in readers:
        found = f"the suffix '{printable(path.suffix)}'" if path.suffix else "a name without a suffix"
        hint = "; of ENVI give the header (.hdr)" if path.with_suffix(".hdr").exists() else ""
        raise FileError(path, f"no image can be read from {found}; known are {', '.join(readers)}{hint}")
    if not path.exists():
        raise FileError(path, "no such file")
    if path.is_dir():
        raise FileError(path, "this is a folder; name a file in it")
    return readers[path.suffix.lower()]


def _guarded(reader: Callable[[Path, CubeRequest], Raw], path: Path, request: CubeRequest) -> Raw:
    """Read; whatever a damaged file does to a reader is said in one line."""
    try:
        return reader(path, request)
    except (FileError, ImportError):
        raise
    except MemoryError:
        raise FileError(path, "does not fit in memory; cut the image into parts") from None
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            raise FileError(path, f"cannot be read ({printable(error.strerror)})") from None
        raise FileError(path, f"damaged, or not what its suffix says ({printable(error, 200)})") from None


def check_cube_size(path: Path, shape: Sequence[int], itemsize: int, max_bytes: int) -> None:
    """Refuse what does not fit before it is allocated; of Python's numbers: a hostile shape must not overflow."""
    n_bytes = itemsize
    for length in shape:
        n_bytes *= int(length)
    check_size(path, n_bytes, max_bytes)
