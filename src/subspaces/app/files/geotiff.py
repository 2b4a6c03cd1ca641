"""GeoTIFF by rasterio (extra ``geo``): cubes from files, label maps into files, with their place on Earth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.app.files.cube_raw import CubeRequest, Raw, check_cube_size
from subspaces.applications.cube import Georeference
from subspaces.utils.atomic import write_atomically
from subspaces.utils.files import FileError, printable
from subspaces.utils.types import Array, Labels


def rasterio_for(path: Path) -> Any:
    """The library, or an error that says how to get it."""
    try:
        import rasterio
    except ImportError:
        raise FileError(path, 'GeoTIFF needs rasterio: pip install "subspaces[geo]"') from None
    return rasterio


def read_geotiff(path: Path, request: CubeRequest) -> Raw:
    """All bands of a file."""
    rasterio = rasterio_for(path)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        # this driver alone: others (VRT, WMS) may lead to files that were never named, or to the net
        with rasterio.open(path, driver="GTiff") as file:
            types = sorted(set(file.dtypes))
            dtype = np.result_type(*types)
            if dtype.kind not in "biuf":
                raise FileError(path, f"its values are {printable(dtype)}; an image of real numbers is needed")
            shape = (file.height, file.width, file.count)
            check_cube_size(path, shape, 2 * dtype.itemsize, request.max_bytes)
            values = np.moveaxis(file.read(out_dtype=dtype), 0, 2)
            place = None
            if file.crs is not None or not file.transform.is_identity:
                place = Georeference(tuple(file.transform)[:6], _crs_text(file.crs))
            tags = [file.tags(i + 1).get("wavelength", "") for i in range(file.count)]
            ignored = file.nodata
    try:
        wavelengths = np.array([float(tag.split()[0]) for tag in tags])
    except (ValueError, IndexError):
        wavelengths = None
    is_nan = ignored is not None and np.isnan(ignored)
    return Raw(values, None if is_nan else ignored, wavelengths, "", place)


def _crs_text(crs: Any) -> str:
    if crs is None:
        return ""
    number = crs.to_epsg()
    return str(crs.to_wkt()) if number is None else f"EPSG:{number}"


def write_geotiff_map(
    path: Path,
    labels: Labels,
    names: Sequence[str],
    colors: Array,
    georeference: Georeference | None,
) -> None:
    """A label map as a GeoTIFF of one band: 0 is "no cluster" (and the file's nodata), i + 1 is label i."""
    rasterio = rasterio_for(path)
    import warnings

    from rasterio.io import MemoryFile

    dtype = "uint8" if len(names) < 255 else "uint16"
    place: dict[str, Any] = {}
    if georeference is not None and georeference.transform is not None:
        place["transform"] = rasterio.Affine(*georeference.transform)
    if georeference is not None and georeference.crs:
        place["crs"] = georeference.crs
    rows, columns = labels.shape
    shape = {"height": rows, "width": columns, "count": 1, "dtype": dtype, "nodata": 0, "compress": "deflate"}
    with warnings.catch_warnings(), MemoryFile() as memory:
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
