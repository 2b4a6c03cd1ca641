"""A hyperspectral image: an array with a spectrum in each pixel, and what a file says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.utils.files import FileError, argument
from subspaces.utils.types import Array, Labels

BLOCK_BYTES = 2**26  # of a piece of a cube that is read at a time


@dataclass(frozen=True)
class Georeference:
    """Position of the pixels on Earth.

    Attributes
    ----------
    transform : (a, b, c, d, e, f): a pixel's upper left corner is at x = a·column + b·row + c, y = d·column + e·row + f
    crs : coordinate system, as WKT or ``EPSG:number``; empty when the file does not say
    """

    transform: tuple[float, ...] | None = None
    crs: str = ""


@dataclass(frozen=True)
class Cube:
    """An image with a spectrum in each pixel.

    Attributes
    ----------
    values : array of shape (rows, columns, bands), maybe on disk (memory-mapped)
    mask : array of shape (rows, columns), True where a pixel is to be clustered
    present : array of shape (rows, columns), True where there is a spectrum; also what is masked surrounds other pixels
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
    present: Array
    wavelengths: Array | None = None
    unit: str = ""
    georeference: Georeference | None = None
    source: Path | None = None
    labels: Labels | None = None
    classes: list[str] | None = None
    notes: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return rows, columns and bands."""
        rows, columns, bands = self.values.shape
        return rows, columns, bands


def as_cube(values: Any, mask: Any = None) -> Cube:
    """Make a `Cube` of an array of shape (rows, columns, bands); a `Cube` stays as it is.

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
        present = present_pixels(None, array, None)
        cube = Cube(array, present, present)
    if mask is not None:
        given = np.asarray(mask)
        if given.shape != cube.shape[:2]:
            raise ValueError(f"mask must have the shape {cube.shape[:2]} of the image; got {given.shape}.")
        cube = replace(cube, mask=cube.mask & (given != 0))
    if not cube.mask.any():
        raise ValueError("no pixel is left to cluster: all are masked or NaN; check mask.")
    return cube


def row_pieces(shape: Sequence[int], itemsize: int = 8) -> list[slice]:
    """Return slices of the rows of an image, in pieces of bounded size."""
    step = max(1, BLOCK_BYTES // max(1, int(np.prod(shape[1:], dtype=np.int64)) * itemsize))
    return [slice(start, min(start + step, shape[0])) for start in range(0, shape[0], step)]


def present_pixels(path: Path | None, values: Array, ignored: float | None) -> Array:
    """Return where a pixel has a spectrum; refuse infinite values and a band that is NaN everywhere."""
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
        some, verb = ("bands", "are") if empty_bands.sum() > 1 else ("band", "is")
        raise _refused(path, f"{some} {where} (counted from 0) {verb} NaN in every pixel; leave such bands out")
    return present


def _refused(path: Path | None, problem: str) -> ValueError:
    return ValueError(f"cube cannot be used: {problem}.") if path is None else FileError(path, problem)
