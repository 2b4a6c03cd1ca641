"""Images with many bands: ENVI, GeoTIFF, NumPy and MATLAB files in; label maps as GeoTIFF out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.app.files.arrays import MAT_COPIES, Infos, Load, listing, mat_arrays, named_array, npy_info, npz_arrays
from subspaces.app.files.dataset import Request, check_there, imported, told_in_one_line
from subspaces.applications.cube import Cube, Georeference, present_pixels
from subspaces.utils.atomic import write_atomically
from subspaces.utils.files import (
    FileError,
    argument,
    check_beside,
    check_regular,
    check_size,
    printable,
    quoted,
    readable_bytes,
)
from subspaces.utils.memory import available_bytes
from subspaces.utils.types import Array, Labels

_SUFFIXES = ("", ".dat", ".img", ".raw", ".bsq", ".bil", ".bip", ".bin", ".cube")  # of ENVI data files


@dataclass(frozen=True)
class _Raw:
    """Content of a file before pixels are looked at; missing values are equal to `ignored`."""

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

    A ``.npy`` file stays on disk and is read when it is needed. A pixel with a NaN in any band, or with the
    file's value for "nothing here" in every band, is left out. Pixels where `mask` is zero are not clustered either,
    but still surround others; where they should not, make them NaN.

    Parameters
    ----------
    path : the file; of ENVI the header, beside which the data file stands
    mask : array of shape (rows, columns) or a file with one; zero (or False) leaves a pixel out
    array : array with the cube in a ``.npz`` or ``.mat`` file; by default the only one of three dimensions
    label : array of shape (rows, columns) in the same file with known classes, 0 where none is known
    max_bytes : the most memory the values may take; by default the memory that is free now

    Returns
    -------
    Cube
    """
    file = Path(path)
    most = available_bytes() if max_bytes is None else max_bytes
    for name, value in (("array", array), ("label", label)):
        if value is not None and file.suffix.lower() not in (".npz", ".mat"):
            raise FileError(file, f"{argument(name)} has a meaning only for .npz and .mat files")
    raw = _read(file, Request(array=array, label=label, max_bytes=most))
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
    wavelengths = None if raw.wavelengths is None or len(raw.wavelengths) != bands else raw.wavelengths
    wanted = _wanted(file, mask, (rows, columns), most) & present
    cube = Cube(raw.values, wanted, present, wavelengths, raw.unit, raw.georeference, file, notes=raw.notes)
    if not cube.mask.any():
        raise FileError(file, "no pixel is left to cluster: all are masked, NaN or equal to the data ignore value")
    return cube if raw.labels is None else _labelled(file, cube, raw.labels)


def _read(path: Path, request: Request) -> _Raw:
    """Read by the suffix."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        found = f"the suffix '{printable(path.suffix)}'" if path.suffix else "a name without a suffix"
        hint = "; of ENVI give the header (.hdr)" if path.with_suffix(".hdr").exists() else ""
        raise FileError(path, f"no image can be read from {found}; known are {', '.join(_READERS)}{hint}")
    check_there(path)
    if path.is_dir():
        raise FileError(path, "this is a folder; name a file in it")
    check_regular(path)
    with told_in_one_line(path, "not what its suffix says", "cut the image into parts"):
        return reader(path, request)


def _wanted(path: Path, mask: Any, shape: tuple[int, int], max_bytes: int) -> Array:
    """Return the mask, given as an array or as a file of one band, as booleans."""
    if mask is None:
        return np.ones(shape, dtype=bool)
    where, found = path, mask
    if not isinstance(mask, np.ndarray):
        where = Path(mask)
        values = _read(where, Request(max_bytes=max_bytes)).values
        found = values[:, :, 0] if values.ndim == 3 and values.shape[2] == 1 else values
    if found.shape != shape:
        problem = f"the mask has the shape {printable(found.shape)} and the image {shape[0]} x {shape[1]} pixels"
        raise FileError(where, f"{problem}; they must be the same")
    return np.asarray((found != 0) & (found == found))  # NaN leaves a pixel out


def _labelled(path: Path, cube: Cube, given: Array) -> Cube:
    """Add known classes as indices; 0 (and NaN) is "not known", as in all public scenes."""
    if given.shape != cube.shape[:2]:
        problem = f"{argument('label')} has the shape {printable(given.shape)}"
        raise FileError(path, f"{problem} and the image {cube.shape[0]} x {cube.shape[1]} pixels")
    known = (given != 0) & (given == given)
    names, codes = np.unique(given[known], return_inverse=True)
    labels = np.full(given.shape, -1, dtype=np.intp)
    labels[known] = codes
    return replace(cube, labels=labels, classes=[f"{name:g}" for name in names.tolist()])


# ------------------------------------------------------------------ arrays


def _read_npy(path: Path, request: Request) -> _Raw:
    """Map the only array of a file into memory."""
    shape, dtype = npy_info(path)
    if 0 in shape:  # nothing to map
        return _Raw(np.empty(shape, dtype))
    return _Raw(np.load(path, mmap_mode="r", allow_pickle=False))


def _read_npz(path: Path, request: Request) -> _Raw:
    with npz_arrays(path) as (infos, load):
        return _from_arrays(path, infos, load, request, 1)


def _read_mat(path: Path, request: Request) -> _Raw:
    with mat_arrays(path) as (infos, load):
        return _from_arrays(path, infos, load, request, MAT_COPIES)


def _from_arrays(path: Path, infos: Infos, load: Load, request: Request, n_copies: int) -> _Raw:
    """Read one of several arrays, and maybe its labels."""
    numbers = {name: info for name, info in infos.items() if info.kind == "number" and math.prod(info.shape) > 1}
    cubes = [name for name, info in numbers.items() if len(info.shape) == 3] or list(numbers)
    if request.array is None and len(cubes) != 1:
        raise FileError(path, f"name the array with the image by {argument('array')}; the file holds {listing(infos)}")
    name = request.array or cubes[0]
    info = named_array(path, infos, name, "array")
    check_size(path, n_copies * info.n_bytes, request.max_bytes)
    if request.label is not None:
        check_size(path, info.n_bytes + named_array(path, infos, request.label, "label").n_bytes, request.max_bytes)
        return _Raw(load(name), labels=load(request.label))
    notes = tuple(
        f"the file also holds '{printable(key)}', one value per pixel: {argument('label', key)} scores the map"
        for key, value in infos.items()
        if key != name and value.kind == "number" and value.shape == info.shape[:2] and 1 not in value.shape
    )
    return _Raw(load(name), notes=notes)


# ------------------------------------------------------------------ ENVI and GeoTIFF, by rasterio


def _read_raster(path: Path, request: Request) -> _Raw:
    """Read all bands but those marked as bad, their wavelengths, and the place of the image."""
    rasterio = imported(path, "rasterio", "reading this image", "geo")
    is_envi = path.suffix.lower() == ".hdr"
    data = check_beside(_data_file(path)) if is_envi else path
    with rasterio.Env(GDAL_PAM_ENABLED=False), warnings.catch_warnings():  # without files that nobody named
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        # this driver alone: others (VRT, WMS) may lead to files that were never named, or to the net
        with rasterio.open(data, driver="ENVI" if is_envi else "GTiff") as file:
            dtype = np.result_type(*sorted(set(file.dtypes)))
            if dtype.kind not in "biuf":
                raise FileError(path, f"its values are {printable(dtype)}; an image of real numbers is needed")
            bands, header = list(range(1, file.count + 1)), file.tags(ns="ENVI")
            if is_envi and header.get("interleave", "").lower() not in ("bsq", "bil", "bip"):  # GDAL would guess
                raise FileError(path, f"interleave '{printable(header.get('interleave'))}' is none of bsq, bil and bip")
            n_pixels, present = file.height * file.width, data.stat().st_size
            promised = n_pixels * len(bands) * dtype.itemsize + int(header.get("header_offset", 0))
            if is_envi and present < promised:  # GDAL would fill it up with zeros
                there = f"{printable(data.name)} holds {readable_bytes(present)}"
                raise FileError(path, f"it promises {readable_bytes(promised)}, and {there}")
            good = [band for band, mark in zip(bands, _listed(header.get("bbl", "")), strict=False) if mark != "0"]
            good = good or bands
            check_size(path, 2 * n_pixels * len(good) * dtype.itemsize, request.max_bytes)
            values = np.moveaxis(file.read(good, out_dtype=dtype), 0, 2)
            place, number = None, None if file.crs is None else file.crs.to_epsg()
            if file.crs is not None or not file.transform.is_identity:
                crs = "" if file.crs is None else file.crs.to_wkt() if number is None else f"EPSG:{number}"
                place = Georeference(tuple(file.transform)[:6], crs)
            tags, ignored = [file.tags(band) for band in good], file.nodata
    try:
        wavelengths = np.array([float(tag["wavelength"].split()[0]) for tag in tags])
    except (KeyError, ValueError, IndexError):
        wavelengths = None
    unit = printable(tags[0].get("wavelength_units", ""))
    n_bad = len(bands) - len(good)
    notes = (f"{n_bad} of {len(bands)} bands are marked as bad in the header and were left out",) if n_bad else ()
    ignored = None if ignored is not None and np.isnan(ignored) else ignored
    return _Raw(values, ignored, wavelengths, "" if unit.lower() == "unknown" else unit, place, notes=notes)


def _listed(text: str) -> list[str]:
    """Return the entries of a list in a header."""
    return [part.strip() for part in text.strip("{} ").split(",") if part.strip()]


def _data_file(path: Path) -> Path:
    """Return the file that an ENVI header describes: of the same name with another suffix or none."""
    stem = path.with_suffix("")  # image.dat.hdr describes image.dat
    wanted = {(stem.name + suffix).lower() for suffix in _SUFFIXES}
    found = sorted(file for file in path.parent.iterdir() if file.name.lower() in wanted and file.is_file())
    if len(found) != 1:
        names = quoted([file.name for file in found], 4) or f"{printable(stem.name)} with .dat, .img, .raw or none"
        problem = "several data files fit it" if found else "no data file beside it"
        raise FileError(path, f"{problem} ({names}); one of them is needed, of the same name")
    return found[0]


_READERS: dict[str, Callable[[Path, Request], _Raw]] = {
    ".hdr": _read_raster,
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".mat": _read_mat,
    ".tif": _read_raster,
    ".tiff": _read_raster,
}


# ------------------------------------------------------------------ maps


def write_geotiff_map(
    path: Path, labels: Labels, names: Sequence[str], colors: Array, georeference: Georeference | None
) -> None:
    """Write a label map as a GeoTIFF of one band: 0 is "no cluster" (and the file's nodata), i + 1 is label i."""
    rasterio = imported(path, "rasterio", "GeoTIFF", "geo")
    dtype = "uint8" if len(names) < 255 else "uint16"
    place: dict[str, Any] = {}
    if georeference is not None and georeference.transform is not None:
        place["transform"] = rasterio.Affine(*georeference.transform)
    if georeference is not None and georeference.crs:
        place["crs"] = georeference.crs
    height, width = labels.shape
    shape = {"height": height, "width": width, "count": 1, "dtype": dtype, "nodata": 0, "compress": "deflate"}
    with warnings.catch_warnings(), rasterio.MemoryFile() as memory:
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        try:
            file = memory.open(driver="GTiff", **shape, **place)
        except rasterio.errors.CRSError:
            problem = "the coordinate system of the image is not one that GDAL knows"
            raise FileError(path, f"{problem}; write the map as .npy or .png") from None
        with file:
            file.write((labels + 1).astype(dtype), 1)
            file.update_tags(1, **{f"class_{i + 1}": printable(name) for i, name in enumerate(names)})
            if dtype == "uint8":
                shades = {i + 1: tuple(int(v) for v in color) for i, color in enumerate(np.asarray(colors).tolist())}
                file.write_colormap(1, {0: (0, 0, 0, 0), **shades})
        with write_atomically(path) as stream:
            stream.write(memory.getbuffer())
