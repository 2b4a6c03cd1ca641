"""Maps of clusters as files: ENVI and GeoTIFF, with the place on Earth that the image had."""

from __future__ import annotations

import numpy as np
import pytest

from cube_data import UTM, small_cube, write_envi
from subspaces.app.files import FileError, read_cube
from subspaces.app.files import cubes as envi_files
from subspaces.app.files.cubes import map_info_of, read_header, write_envi_map, write_geotiff_map
from subspaces.applications.cube import Georeference

LABELS = np.array([[0, 1, -1], [2, 2, 0]])
NAMES, COLORS = ["a", "b{,}", "c"], np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
PLACE = (10.0, 0.0, 500000.0, 0.0, -20.0, 4600000.0)


def test_envi_map_keeps_the_place(tmp_path):
    cube = read_cube(write_envi(tmp_path / "x.hdr", small_cube(), map_info=f"{{{UTM}}}"))
    write_envi_map(tmp_path / "map.hdr", LABELS, NAMES, COLORS, cube.georeference)
    header = read_header(tmp_path / "map.hdr")
    assert header["file type"] == "ENVI Classification"
    assert header["map info"] == UTM
    assert header["classes"] == "4"
    assert header["class names"] == "none, a, b, c".replace("b,", "b   ,")
    assert header["class lookup"] == "0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
    stored = np.fromfile(tmp_path / "map.dat", dtype=np.uint8).reshape(2, 3)
    np.testing.assert_array_equal(stored, LABELS + 1)


def test_envi_map_as_gdal_reads_it(tmp_path):
    rasterio = pytest.importorskip("rasterio", reason='GDAL reads ENVI too: pip install "subspaces[geo]"')
    write_envi_map(tmp_path / "map.hdr", LABELS, NAMES, COLORS, Georeference(PLACE, "EPSG:32733"))
    with rasterio.open(tmp_path / "map.dat") as file:
        np.testing.assert_array_equal(file.read(1), LABELS + 1)
        assert tuple(file.transform)[:6] == PLACE
        assert file.crs.to_epsg() == 32733
        assert file.colormap(1)[1][:3] == (1, 2, 3)


def test_envi_map_of_many_clusters_and_without_a_place(tmp_path):
    labels = np.arange(300).reshape(20, 15)
    write_envi_map(tmp_path / "map.hdr", labels, [str(i) for i in range(300)], np.zeros((300, 3)), None)
    stored = np.fromfile(tmp_path / "map.dat", dtype="<u2").reshape(20, 15)
    np.testing.assert_array_equal(stored, labels + 1)
    assert "map info" not in read_header(tmp_path / "map.hdr")


def test_envi_map_is_there_whole_or_not_at_all(tmp_path, monkeypatch):
    def full(path, text):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(envi_files, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        write_envi_map(tmp_path / "map.hdr", LABELS, NAMES, COLORS, None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("crs", "first", "last"),
    [
        ("EPSG:32633", "UTM", "units=Meters"),
        ("EPSG:4326", "Geographic Lat/Lon", "units=Degrees"),
        ('PROJCS["my own"]', "Arbitrary", "20"),
    ],
)
def test_map_info_of_other_formats(crs, first, last):
    info = map_info_of(Georeference(PLACE, crs))
    assert info[:7] == (first, "1", "1", "500000", "4600000", "10", "20")
    assert info[-1] == last


@pytest.mark.filterwarnings("ignore:Dataset has no geotransform")  # rasterio's own word for it
@pytest.mark.parametrize("place", [None, Georeference(PLACE, "EPSG:32633"), Georeference((1, 0.5, 3, 0.5, -1, 4), "")])
def test_geotiff_map_keeps_the_place(tmp_path, place):
    rasterio = pytest.importorskip("rasterio", reason='GeoTIFF needs rasterio: pip install "subspaces[geo]"')
    write_geotiff_map(tmp_path / "map.tif", LABELS, NAMES, COLORS, place)
    with rasterio.open(tmp_path / "map.tif") as file:
        np.testing.assert_array_equal(file.read(1), LABELS + 1)
        assert file.nodata == 0
        assert file.colormap(1)[3] == (7, 8, 9, 255)
        if place is not None:
            np.testing.assert_allclose(tuple(file.transform)[:6], place.transform)
        assert (None if file.crs is None else file.crs.to_epsg()) == (32633 if place and place.crs else None)


def test_geotiff_map_of_an_unknown_coordinate_system(tmp_path):
    pytest.importorskip("rasterio", reason='GeoTIFF needs rasterio: pip install "subspaces[geo]"')
    with pytest.raises(FileError, match="is not one that GDAL knows; write an ENVI map"):
        write_geotiff_map(tmp_path / "map.tif", LABELS, NAMES, COLORS, Georeference(PLACE, "nonsense"))
    assert list(tmp_path.iterdir()) == []
