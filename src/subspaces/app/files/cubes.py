"""Images with many bands: ENVI, GeoTIFF, NumPy and MATLAB files in; label maps as ENVI and GeoTIFF out."""

from __future__ import annotations

import math
import re
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
from subspaces.utils.atomic import write_atomically, write_text
from subspaces.utils.files import (
    FileError,
    argument,
    check_beside,
    check_regular,
    check_size,
    printable,
    readable_bytes,
)
from subspaces.utils.memory import available_bytes
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array, Labels

TYPES = {1: "u1", 2: "i2", 3: "i4", 4: "f4", 5: "f8", 12: "u2", 13: "u4", 14: "i8", 15: "u8"}
"""NumPy's name of each ENVI data type; 6 and 9 are complex."""

ORDERS = {"bsq": (2, 0, 1), "bil": (0, 2, 1), "bip": (0, 1, 2)}
"""Axes of an ENVI file among (rows, columns, bands), slowest first."""

_SUFFIXES = ("", ".dat", ".img", ".raw", ".bsq", ".bil", ".bip", ".bin", ".cube")  # of ENVI data files
_MAX_HEADER = 2**22
_UTM_NORTH, _UTM_SOUTH = 32600, 32700


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

    ENVI and ``.npy`` files stay on disk and are read when they are needed. A pixel with a NaN in any band, or with the
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
    with mat_arrays(path, request.max_bytes) as (infos, load):
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


# ------------------------------------------------------------------ ENVI, memory-mapped: cubes may exceed memory


def _read_envi(path: Path, request: Request) -> _Raw:
    """Map the cube that a header describes into memory."""
    header = read_header(path)
    rows, columns, bands = (_number(path, header, name) for name in ("lines", "samples", "bands"))
    offset, code = _number(path, header, "header offset", 0), _number(path, header, "data type")
    order, byte_order = header.get("interleave", "").strip().lower(), _number(path, header, "byte order", 0)
    if code not in TYPES:
        what = "complex numbers" if code in (6, 9) else "none that is known"
        raise FileError(path, f"data type {code} is {what}; readable are {', '.join(map(str, TYPES))}")
    if min(rows, columns, bands) < 1:
        raise FileError(path, f"lines {rows}, samples {columns} and bands {bands} must all be 1 or more")
    if order not in ORDERS:
        raise FileError(path, f"interleave '{printable(order)}' is unknown; it must be bsq, bil or bip")
    if byte_order not in (0, 1):
        raise FileError(path, f"byte order {byte_order} is unknown; it must be 0 (little) or 1 (big)")
    dtype = np.dtype(("<", ">")[byte_order] + TYPES[code])
    data = check_beside(_data_file(path, header))
    promised, present = offset + rows * columns * bands * dtype.itemsize, data.stat().st_size
    if present < promised:
        problem = f"the header promises {readable_bytes(promised)} ({rows} x {columns} pixels, {bands} bands)"
        raise FileError(path, f"{problem}, and {printable(data.name)} holds {readable_bytes(present)}")
    stored = np.asarray(np.memmap(data, dtype=dtype, mode="r", offset=offset, shape=rows * columns * bands))
    axes, sizes = ORDERS[order], (rows, columns, bands)
    values = stored.reshape([sizes[axis] for axis in axes]).transpose(np.argsort(axes))
    longer = f"{printable(data.name)} is longer than its header says; the rest is not read"
    notes = (longer,) if present > promised else ()
    wavelengths, good = _floats(path, header, "wavelength", bands), _floats(path, header, "bbl", bands)
    if good is not None and (good == 0).any() and (good != 0).any():
        kept = np.flatnonzero(good != 0)
        check_size(path, rows * columns * len(kept) * dtype.itemsize, request.max_bytes)  # no longer on disk
        values, wavelengths = values[:, :, kept], None if wavelengths is None else wavelengths[kept]
        notes = (*notes, f"{bands - len(kept)} of {bands} bands are marked as bad in the header and were left out")
    ignored, unit = header.get("data ignore value"), printable(header.get("wavelength units", ""))
    return _Raw(
        values,
        None if ignored is None else _float(path, "data ignore value", ignored),
        wavelengths,
        "" if unit.lower() == "unknown" else unit,
        _georeference(path, header),
        notes=notes,
    )


def read_header(path: Path) -> dict[str, str]:
    """Return the fields of an ENVI header: names in small letters, values as text, those in braces without them."""
    if path.stat().st_size > _MAX_HEADER:
        raise FileError(path, f"a header of {readable_bytes(path.stat().st_size)} is no ENVI header")
    text = path.read_bytes().decode("utf-8", errors="replace").lstrip("\ufeff")
    if not text.startswith("ENVI"):
        raise FileError(path, "no ENVI header: its first line is not 'ENVI'")
    found, lines = {}, iter(text.splitlines()[1:])
    for line in lines:  # one pass: a header of a hostile form must not take longer than its length
        name, equals, value = line.partition("=")
        value = value.strip()
        if not equals or line.startswith(";"):
            continue
        if value.startswith("{"):
            parts = [value]
            while "}" not in parts[-1]:
                following = next(lines, None)
                if following is None:
                    raise FileError(path, f"the brace of '{printable(name.strip())}' is never closed")
                parts.append("" if following.startswith(";") else following.strip())
            value = " ".join(parts).partition("}")[0].removeprefix("{").strip()
        found[" ".join(name.lower().split())] = value
    return found


def _data_file(path: Path, header: dict[str, str]) -> Path:
    """Return the file that a header describes: the one it names, or one of its name with another suffix or none."""
    named = header.get("data file", "")
    if named and Path(named).name == named and (path.parent / named).is_file():  # never outside of the folder
        return path.parent / named
    stem = path.with_suffix("")  # image.dat.hdr describes image.dat
    wanted = {(stem.name + suffix).lower() for suffix in _SUFFIXES}
    found = sorted(file for file in path.parent.iterdir() if file.name.lower() in wanted and file.is_file())
    if not found:
        looked = f"looked for {printable(stem.name)} with .dat, .img, .raw or none"
        raise FileError(path, f"no data file beside it: {looked}")
    if len(found) > 1:
        names = ", ".join(printable(file.name) for file in found[:4])
        how = f"name one in the header: data file = {printable(found[0].name)}"
        raise FileError(path, f"several data files fit it ({names}); {how}")
    return found[0]


def _georeference(path: Path, header: dict[str, str]) -> Georeference | None:
    info = tuple(part.strip() for part in header.get("map info", "").split(",") if part.strip())
    wkt = header.get("coordinate system string", "")
    if not info:
        return Georeference(crs=wkt) if wkt else None
    transform = None
    if len(info) >= 7:
        x, y, easting, northing, width, height = (_float(path, "map info", part) for part in info[1:7])
        turn = math.radians(next((float(part[9:]) for part in info if part.lower().startswith("rotation=")), 0.0))
        cos, sin = (1.0, 0.0) if turn == 0 else (math.cos(turn), math.sin(turn))
        a, b, d, e = width * cos, height * sin, width * sin, -height * cos
        transform = (a, b, easting - a * (x - 1) - b * (y - 1), d, e, northing - d * (x - 1) - e * (y - 1))
    return Georeference(transform, wkt or _epsg(info), info)


def _epsg(info: tuple[str, ...]) -> str:
    """Return the coordinate system of a ``map info`` on WGS-84, where it says enough."""
    words = [part.lower() for part in info]
    if not any(word in ("wgs-84", "wgs84", "wgs 84") for word in words):
        return ""
    if words[0].startswith("geographic"):
        return "EPSG:4326"
    if words[0] == "utm" and len(info) > 8 and info[7].isdigit() and 1 <= int(info[7]) <= 60:
        return f"EPSG:{(_UTM_SOUTH if words[8].startswith('s') else _UTM_NORTH) + int(info[7])}"
    return ""


def _number(path: Path, header: dict[str, str], name: str, default: int | None = None) -> int:
    text = header.get(name, "" if default is None else str(default))
    if not text:
        raise FileError(path, f"the header does not say '{name}'")
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise FileError(path, f"'{name}' is '{printable(text)}', not a whole number")
    return int(text)


def _float(path: Path, name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise FileError(path, f"'{name}' holds '{printable(text)}', which is not a number") from None


def _floats(path: Path, header: dict[str, str], name: str, bands: int) -> Array | None:
    if name not in header:
        return None
    values = np.array([_float(path, name, part.strip()) for part in header[name].split(",") if part.strip()])
    if len(values) != bands:
        raise FileError(path, f"'{name}' has {len(values)} entries and the image {bands} bands")
    return values


# ------------------------------------------------------------------ GeoTIFF


def _read_geotiff(path: Path, request: Request) -> _Raw:
    """Read all bands of a file."""
    rasterio = imported(path, "rasterio", "GeoTIFF", "geo")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        # this driver alone: others (VRT, WMS) may lead to files that were never named, or to the net
        with rasterio.open(path, driver="GTiff") as file:
            dtype = np.result_type(*sorted(set(file.dtypes)))
            if dtype.kind not in "biuf":
                raise FileError(path, f"its values are {printable(dtype)}; an image of real numbers is needed")
            check_size(path, 2 * file.height * file.width * file.count * dtype.itemsize, request.max_bytes)
            values = np.moveaxis(file.read(out_dtype=dtype), 0, 2)
            place, number = None, None if file.crs is None else file.crs.to_epsg()
            if file.crs is not None or not file.transform.is_identity:
                crs = "" if file.crs is None else file.crs.to_wkt() if number is None else f"EPSG:{number}"
                place = Georeference(tuple(file.transform)[:6], crs)
            tags = [file.tags(i + 1).get("wavelength", "") for i in range(file.count)]
            ignored = file.nodata
    try:
        wavelengths = np.array([float(tag.split()[0]) for tag in tags])
    except (ValueError, IndexError):
        wavelengths = None
    return _Raw(values, None if ignored is not None and np.isnan(ignored) else ignored, wavelengths, "", place)


_READERS: dict[str, Callable[[Path, Request], _Raw]] = {
    ".hdr": _read_envi,
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".mat": _read_mat,
    ".tif": _read_geotiff,
    ".tiff": _read_geotiff,
}


# ------------------------------------------------------------------ maps


def write_envi_map(
    path: Path, labels: Labels, names: Sequence[str], colors: Array, georeference: Georeference | None
) -> None:
    """Write a label map as an ENVI classification: class 0 is "no cluster", class i + 1 is label i; header last."""
    dtype, code = (np.dtype("u1"), 1) if len(names) < 255 else (np.dtype("<u2"), 12)
    if len(names) >= 2**16 - 1:
        raise FileError(path, f"{counted(len(names), 'cluster')} are more than a classification file can hold")
    lookup = ", ".join(str(value) for value in [0, 0, 0, *np.asarray(colors, dtype=int).ravel().tolist()])
    lines = [
        "ENVI",
        "description = {clusters found by subspaces}",
        f"samples = {labels.shape[1]}",
        f"lines = {labels.shape[0]}",
        "bands = 1",
        "header offset = 0",
        "file type = ENVI Classification",
        f"data type = {code}",
        "interleave = bsq",
        "byte order = 0",
        f"classes = {len(names) + 1}",
        f"class lookup = {{{lookup}}}",
        f"class names = {{{', '.join(['none', *map(_plain, names)])}}}",
    ]
    if georeference is not None:
        info = georeference.map_info or map_info_of(georeference)
        lines += [f"map info = {{{', '.join(map(_plain, info))}}}"] if info else []
        if georeference.crs and not georeference.crs.upper().startswith("EPSG:"):
            lines.append(f"coordinate system string = {{{' '.join(georeference.crs.split())}}}")
    data = path.with_suffix(".dat")
    with write_atomically(data) as stream:
        stream.write(np.ascontiguousarray(labels + 1, dtype=dtype).data)
    try:
        write_text(path, "\n".join(lines) + "\n")
    except BaseException:  # numbers alone say nothing
        data.unlink()
        raise


def _plain(text: object) -> str:
    """Return a name for a header, without characters that end its list or its line."""
    return printable(re.sub(r"[{},\n]", " ", str(text)))


def map_info_of(georeference: Georeference) -> tuple[str, ...]:
    """Return ENVI's ``map info`` of an upright image; nothing for one that is turned."""
    if georeference.transform is None:
        return ()
    a, b, c, d, e, f = georeference.transform
    if b or d or e >= 0:
        return ()
    place = ("1", "1", f"{c:.12g}", f"{f:.12g}", f"{a:.12g}", f"{-e:.12g}")
    match = re.fullmatch(r"EPSG:(\d+)", georeference.crs, flags=re.IGNORECASE)
    number = int(match[1]) if match else 0
    for base, side in ((_UTM_NORTH, "North"), (_UTM_SOUTH, "South")):
        if 1 <= number - base <= 60:
            return ("UTM", *place, str(number - base), side, "WGS-84", "units=Meters")
    if number == 4326:
        return ("Geographic Lat/Lon", *place, "WGS-84", "units=Degrees")
    return ("Arbitrary", *place)


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
            raise FileError(path, f"{problem}; write an ENVI map (.hdr), which keeps it as it is") from None
        with file:
            file.write((labels + 1).astype(dtype), 1)
            file.update_tags(1, **{f"class_{i + 1}": printable(name) for i, name in enumerate(names)})
            if dtype == "uint8":
                shades = {i + 1: tuple(int(v) for v in color) for i, color in enumerate(np.asarray(colors).tolist())}
                file.write_colormap(1, {0: (0, 0, 0, 0), **shades})
        with write_atomically(path) as stream:
            stream.write(memory.getbuffer())
