"""ENVI: a header of text (``.hdr``) and a data file beside it, memory-mapped; label maps back as classifications."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from subspaces.app.files.cube_raw import CubeRequest, Raw, check_cube_size
from subspaces.applications.cube import Georeference
from subspaces.utils.atomic import write_atomically, write_text
from subspaces.utils.files import FileError, check_beside, printable, readable_bytes
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array, Labels

TYPES = {1: "u1", 2: "i2", 3: "i4", 4: "f4", 5: "f8", 12: "u2", 13: "u4", 14: "i8", 15: "u8"}
"""NumPy's name of each ENVI data type; 6 and 9 are complex."""

ORDERS = {"bsq": (2, 0, 1), "bil": (0, 2, 1), "bip": (0, 1, 2)}
"""Axes of the file among (rows, columns, bands), slowest first."""

SUFFIXES = ("", ".dat", ".img", ".raw", ".bsq", ".bil", ".bip", ".bin", ".cube")
"""What data files are called beside a header without its suffix."""

MAX_HEADER = 2**22
SIDE, SMOOTHER = 32, 0.7
"""Of the piece by which an interleave is doubted, and how much smoother another one must be."""
UTM_NORTH, UTM_SOUTH = 32600, 32700


def read_envi(path: Path, request: CubeRequest) -> Raw:
    """The cube that a header describes, left on disk."""
    header = read_header(path)
    rows, columns, bands = (_number(path, header, name) for name in ("lines", "samples", "bands"))
    offset = _number(path, header, "header offset", 0)
    code = _number(path, header, "data type")
    if code not in TYPES:
        what = "complex numbers" if code in (6, 9) else "none that is known"
        raise FileError(path, f"data type {code} is {what}; readable are {', '.join(map(str, TYPES))}")
    if min(rows, columns, bands) < 1:
        raise FileError(path, f"lines {rows}, samples {columns} and bands {bands} must all be 1 or more")
    order = header.get("interleave", "").strip().lower()
    if order not in ORDERS:
        raise FileError(path, f"interleave '{printable(order)}' is unknown; it must be bsq, bil or bip")
    byte_order = _number(path, header, "byte order", 0)
    if byte_order not in (0, 1):
        raise FileError(path, f"byte order {byte_order} is unknown; it must be 0 (little) or 1 (big)")
    dtype = np.dtype(("<", ">")[byte_order] + TYPES[code])
    data = check_beside(data_file(path, header))
    needed, present = offset + rows * columns * bands * dtype.itemsize, data.stat().st_size
    if present < needed:
        promised = f"the header promises {readable_bytes(needed)} ({rows} x {columns} pixels, {bands} bands)"
        raise FileError(path, f"{promised}, and {printable(data.name)} holds {readable_bytes(present)}")
    sizes = (rows, columns, bands)
    stored = np.asarray(np.memmap(data, dtype=dtype, mode="r", offset=offset, shape=rows * columns * bands))
    values = _arranged(stored, sizes, order)
    notes = _doubts(stored, sizes, order)
    if present > needed:
        notes = (*notes, f"{printable(data.name)} is longer than its header says; the rest is not read")
    ignored = header.get("data ignore value")
    wavelengths = _floats(path, header, "wavelength", bands)
    unit = printable(header.get("wavelength units", ""))
    good = _floats(path, header, "bbl", bands)
    if good is not None and (good == 0).any() and (good != 0).any():
        kept = np.flatnonzero(good != 0)
        check_cube_size(path, (rows, columns, len(kept)), dtype.itemsize, request.max_bytes)  # no longer on disk
        values, wavelengths = values[:, :, kept], None if wavelengths is None else wavelengths[kept]
        notes = (*notes, f"{bands - len(kept)} of {bands} bands are marked as bad in the header and were left out")
    return Raw(
        values,
        None if ignored is None else _float(path, "data ignore value", ignored),
        wavelengths,
        "" if unit.lower() == "unknown" else unit,
        _georeference(path, header),
        notes=notes,
    )


def _arranged(stored: Array, sizes: tuple[int, int, int], order: str) -> Array:
    """Values in the order of a file as rows, columns and bands."""
    axes = ORDERS[order]
    return stored.reshape([sizes[axis] for axis in axes]).transpose(np.argsort(axes))


def _doubts(stored: Array, sizes: tuple[int, int, int], order: str) -> tuple[str, ...]:
    """A note where another interleave would make a far smoother image: a wrong one has the right size."""
    rough = {other: _roughness(_arranged(stored, sizes, other)) for other in ORDERS}
    likely = min(rough, key=lambda other: rough[other])
    if rough[likely] >= SMOOTHER * rough[order]:
        return ()
    doubt = f"read as {likely}, neighbouring pixels and bands would be far more alike"
    return (f"the header says interleave {order}; {doubt}: is it right?",)


def _roughness(values: Array) -> float:
    """How much neighbours differ along the three axes, in a piece in the middle."""
    middle = tuple(slice(max(0, n // 2 - SIDE // 2), n // 2 + SIDE // 2 + 1) for n in values.shape)
    piece = values[middle].astype(np.float64)
    piece = np.where(np.isfinite(piece), piece, 0)
    return sum(float(np.abs(np.diff(piece, axis=axis)).mean()) for axis in range(3) if piece.shape[axis] > 1)


def read_header(path: Path) -> dict[str, str]:
    """Fields of a header: names in small letters, values as text, those in braces without them."""
    if path.stat().st_size > MAX_HEADER:
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


def data_file(path: Path, header: dict[str, str]) -> Path:
    """The file that a header describes: the one it names, or one of its name with another suffix or none."""
    named = header.get("data file", "")
    if named and Path(named).name == named and (path.parent / named).is_file():  # never outside of the folder
        return path.parent / named
    stem = path.with_suffix("")  # image.dat.hdr describes image.dat
    wanted = {(stem.name + suffix).lower() for suffix in SUFFIXES}
    found = sorted(file for file in path.parent.iterdir() if file.name.lower() in wanted and file.is_file())
    if not found:
        raise FileError(
            path, f"no data file beside it: looked for {printable(stem.name)} with .dat, .img, .raw or none"
        )
    if len(found) > 1:
        names = ", ".join(printable(file.name) for file in found[:4])
        raise FileError(
            path, f"several data files fit it ({names}); name one in the header: data file = {found[0].name}"
        )
    return found[0]


def write_envi_map(
    path: Path,
    labels: Labels,
    names: Sequence[str],
    colors: Array,
    georeference: Georeference | None,
) -> None:
    """A label map as an ENVI classification: class 0 is "no cluster", class i + 1 is label i; header last."""
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


def map_info_of(georeference: Georeference) -> tuple[str, ...]:
    """ENVI's ``map info`` of an upright image; nothing for one that is turned."""
    if georeference.transform is None:
        return ()
    a, b, c, d, e, f = georeference.transform
    if b or d or e >= 0:
        return ()
    place = ("1", "1", f"{c:.12g}", f"{f:.12g}", f"{a:.12g}", f"{-e:.12g}")
    match = re.fullmatch(r"EPSG:(\d+)", georeference.crs, flags=re.IGNORECASE)
    number = int(match[1]) if match else 0
    for base, side in ((UTM_NORTH, "North"), (UTM_SOUTH, "South")):
        if 1 <= number - base <= 60:
            return ("UTM", *place, str(number - base), side, "WGS-84", "units=Meters")
    if number == 4326:
        return ("Geographic Lat/Lon", *place, "WGS-84", "units=Degrees")
    return ("Arbitrary", *place)


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
    """Coordinate system of a ``map info`` on WGS-84, where it says enough."""
    words = [part.lower() for part in info]
    if not any(word in ("wgs-84", "wgs84", "wgs 84") for word in words):
        return ""
    if words[0].startswith("geographic"):
        return "EPSG:4326"
    if words[0] == "utm" and len(info) > 8 and info[7].isdigit() and 1 <= int(info[7]) <= 60:
        return f"EPSG:{(UTM_SOUTH if words[8].startswith('s') else UTM_NORTH) + int(info[7])}"
    return ""


def _number(path: Path, header: dict[str, str], name: str, default: int | None = None) -> int:
    text = header.get(name)
    if text is None:
        if default is None:
            raise FileError(path, f"the header does not say '{name}'")
        return default
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


def _plain(text: object) -> str:
    """A name for a header: nothing that ends its list or its line."""
    return printable(re.sub(r"[{},\n]", " ", str(text)))
