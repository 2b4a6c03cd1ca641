"""`read_cube`: an image with many bands from a file, the format from the suffix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.app.files.cube_arrays import read_mat_cube, read_npy_cube, read_npz_cube
from subspaces.app.files.cube_raw import CubeRequest, Raw
from subspaces.app.files.envi import read_envi
from subspaces.app.files.geotiff import read_geotiff
from subspaces.applications.cube import Cube, present_pixels
from subspaces.utils.files import FileError, argument, check_regular, printable
from subspaces.utils.memory import available_bytes
from subspaces.utils.types import Array

CUBE_READERS: dict[str, Callable[[Path, CubeRequest], Raw]] = {
    ".hdr": read_envi,
    ".npy": read_npy_cube,
    ".npz": read_npz_cube,
    ".mat": read_mat_cube,
    ".tif": read_geotiff,
    ".tiff": read_geotiff,
}
"""Reader of each suffix."""


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
    file's value for "nothing here" in every band, is left out. Pixels where `mask` is zero are not clustered either,
    but still surround others; where they should not, make them NaN.

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
    present = present_pixels(file, raw.values, raw.ignored)
    cube = Cube(
        raw.values,
        _wanted(file, mask, (rows, columns), most) & present,
        present,
        None if raw.wavelengths is None or len(raw.wavelengths) != bands else raw.wavelengths,
        raw.unit,
        raw.georeference,
        file,
        notes=raw.notes,
    )
    if not cube.mask.any():
        raise FileError(file, "no pixel is left to cluster: all are masked, NaN or equal to the data ignore value")
    return cube if raw.labels is None else _labelled(cube, raw.labels)


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
    if path.suffix.lower() not in CUBE_READERS:
        found = f"the suffix '{printable(path.suffix)}'" if path.suffix else "a name without a suffix"
        hint = "; of ENVI give the header (.hdr)" if path.with_suffix(".hdr").exists() else ""
        raise FileError(path, f"no image can be read from {found}; known are {', '.join(CUBE_READERS)}{hint}")
    if not path.exists():
        raise FileError(path, "no such file")
    if path.is_dir():
        raise FileError(path, "this is a folder; name a file in it")
    check_regular(path)
    return CUBE_READERS[path.suffix.lower()]


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
