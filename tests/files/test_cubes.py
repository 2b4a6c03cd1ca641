"""Images with many bands: ENVI, GeoTIFF, NumPy and MATLAB files, masks, refusals in one line; maps of clusters."""

from __future__ import annotations

import os

import numpy as np
import pytest
import scipy.io

from cube_data import UTM, cube_refusal, small_cube, write_envi
from io_data import Bomb
from subspaces.app.files import FileError, read_cube
from subspaces.app.files.cubes import write_geotiff_map
from subspaces.applications.cube import Georeference, as_cube

rasterio = pytest.importorskip("rasterio", reason='GDAL reads GeoTIFF and ENVI: pip install "subspaces[geo]"')


# ------------------------------------------------------------------ ENVI


@pytest.mark.parametrize(
    ("interleave", "byte_order", "name"),
    [("bsq", 0, "f4"), ("bil", 1, "u2"), ("bip", 1, "i4"), ("bip", 0, "u1"), ("bil", 0, "f8"), ("bsq", 1, "i2")],
)
def test_envi_in_every_order(tmp_path, interleave, byte_order, name):
    X = small_cube(name)
    cube = read_cube(write_envi(tmp_path / "x.hdr", X, interleave, byte_order, offset=7))
    np.testing.assert_array_equal(cube.values, X)
    assert cube.mask.all()
    assert cube.shape == (3, 4, 5)


def test_envi_header_as_programs_write_it(tmp_path):
    wavelengths = "{\n  400.5, 410,\n 420, 430,\n 440 }"
    info = {"wavelength": wavelengths, "wavelength_units": "Nanometers", "bbl": "{1, 0, 1, 1, 0}"}
    path = write_envi(tmp_path / "x.hdr", small_cube(), map_info=f"{{{UTM}}}", data_ignore_value=-1, **info)
    cube = read_cube(path)
    np.testing.assert_array_equal(cube.values, small_cube()[:, :, [0, 2, 3]])
    assert cube.wavelengths.tolist() == [400.5, 420, 430]
    assert cube.unit == "Nanometers"
    assert "2 of 5 bands are marked as bad" in cube.notes[0]
    assert cube.georeference.transform == (10, 0, 500000, 0, -20, 4600000)
    assert cube.georeference.crs == "EPSG:32633"
    assert "only 10 bytes of memory may be used" in cube_refusal(path, max_bytes=10)


def test_envi_data_file_names(tmp_path):
    path = write_envi(tmp_path / "x.img.hdr", small_cube())
    (tmp_path / "x.img.dat").rename(tmp_path / "x.img")
    np.testing.assert_array_equal(read_cube(path).values, small_cube())
    (tmp_path / "x.img.raw").write_bytes(b"1")
    assert "several data files fit it ('x.img', 'x.img.raw')" in cube_refusal(path)
    (tmp_path / "x.img").unlink()
    (tmp_path / "x.img.raw").unlink()
    assert "no data file beside it" in cube_refusal(path)


def test_envi_ignored_pixels(tmp_path):
    X = small_cube("i2")
    X[1, 2] = -99
    X[0, 0, 0] = -99  # one band of a pixel that has others
    cube = read_cube(write_envi(tmp_path / "x.hdr", X, data_ignore_value=-99))
    assert np.argwhere(~cube.mask).tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"data_type": 99}, "damaged"),
        ({"data_type": 6}, "complex64; an image of real numbers is needed"),
        ({"samples": None}, "damaged"),
        ({"interleave": "bqs"}, "interleave 'bqs' is none of bsq, bil and bip"),
        ({"lines": -3}, "damaged"),
        ({"lines": 999}, "it promises 79.9 kB, and x.dat holds 240 bytes"),
        ({"lines": 10**9}, "it promises"),
        ({"header_offset": 3}, "it promises 243 bytes"),
        ({"bands": 10**9}, "damaged"),
        ({"bands": 1}, "the image has one band; a spectrum needs two or more"),
    ],
)
def test_envi_refusals(tmp_path, fields, said):
    assert said in cube_refusal(write_envi(tmp_path / "x.hdr", small_cube(), **fields))


def test_other_files_are_no_headers(tmp_path):
    path = write_envi(tmp_path / "x.hdr", small_cube())
    for content in (b"\x00\xff" * 50, b"", b"ENVI\n" + b"a = {\n" * 2**18, os.urandom(2**20)):
        path.write_bytes(content)
        assert "damaged" in cube_refusal(path)


# ------------------------------------------------------------------ arrays


def test_arrays(tmp_path):
    X, y = small_cube(), np.array([[0, 5, 5, 7]] * 3)
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", cube=X, truth=y, scalar=3)
    scipy.io.savemat(tmp_path / "x.mat", {"cube": X, "truth": y})
    for suffix in ("npy", "npz", "mat"):
        np.testing.assert_array_equal(read_cube(tmp_path / f"x.{suffix}").values, X)
    for suffix in ("npz", "mat"):
        assert "holds 'truth', one value per pixel" in read_cube(tmp_path / f"x.{suffix}").notes[0]
        cube = read_cube(tmp_path / f"x.{suffix}", label="truth", array="cube")
        assert cube.labels.tolist() == [[-1, 0, 0, 1]] * 3
        assert cube.classes == ["5", "7"]
        assert "only 10 bytes" in cube_refusal(tmp_path / f"x.{suffix}", max_bytes=10)
    assert isinstance(read_cube(tmp_path / "x.npy", max_bytes=1).values, np.memmap)


def test_cube_without_spatial_order(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((12, 5)))
    said = "the array has the shape (12, 5): there is no spatial order"
    assert said in cube_refusal(tmp_path / "x.npy")
    np.savez(tmp_path / "x.npz", X=np.ones((12, 5)))
    assert said in cube_refusal(tmp_path / "x.npz")
    with pytest.raises(ValueError, match="cube must be an array of numbers with rows, columns and bands"):
        as_cube(np.ones((12, 5)))


def test_array_refusals(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.ones((0, 4, 5)))
    assert "there is nothing to cluster" in cube_refusal(path)
    np.save(path, np.array([[["a"]]]))
    assert "save an array of numbers" in cube_refusal(path)
    np.save(path, small_cube())
    path.write_bytes(path.read_bytes()[:-8])
    assert "cut short: the header announces 240 bytes, 232 are there" in cube_refusal(path)
    assert "array has a meaning only for .npz and .mat files" in cube_refusal(path, array="X")
    np.savez(tmp_path / "x.npz", a=small_cube(), b=small_cube())
    assert "name the array with the image" in cube_refusal(tmp_path / "x.npz")
    assert "is not in the file; it holds 'a' (3 x 4 x 5)" in cube_refusal(tmp_path / "x.npz", array="c")
    assert "label 'c' is not in the file" in cube_refusal(tmp_path / "x.npz", array="a", label="c")
    assert "and the image 3 x 4 pixels" in cube_refusal(tmp_path / "x.npz", array="a", label="b")


def test_nothing_is_unpickled(tmp_path):
    trace = tmp_path / "trace"
    np.save(tmp_path / "x.npy", np.array([Bomb(trace)], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "x.npz", X=np.array([Bomb(trace)], dtype=object))
    for name in ("x.npy", "x.npz"):
        cube_refusal(tmp_path / name)
    assert not trace.exists()


# ------------------------------------------------------------------ pixels without values


def test_nan_pixels_are_left_out(tmp_path):
    X = small_cube()
    X[1, 2, 3] = np.nan
    np.save(tmp_path / "x.npy", X)
    assert np.argwhere(~read_cube(tmp_path / "x.npy").mask).tolist() == [[1, 2]]


def test_nan_bands_are_refused(tmp_path):
    X = small_cube()
    X[:, :, [1, 3]] = np.nan
    X[0, 0] = np.nan
    path = tmp_path / "x.npy"
    np.save(path, X)
    assert "bands 1, 3 (counted from 0) are NaN in every pixel; leave such bands out" in cube_refusal(path)
    with pytest.raises(ValueError, match="bands 1, 3"):
        as_cube(X)
    np.save(path, np.full((3, 4, 5), np.nan))
    assert "no pixel is left" in cube_refusal(path)


def test_infinite_values_are_refused(tmp_path):
    X = small_cube()
    X[2, 1, 4] = np.inf
    np.save(tmp_path / "x.npy", X)
    assert "row 2, column 1, band 4 is infinite" in cube_refusal(tmp_path / "x.npy")


@pytest.mark.parametrize("kind", ["npy", "npz", "mat", "hdr", "array"])
def test_masks(tmp_path, kind):
    X, mask = small_cube(), np.zeros((3, 4), dtype=np.uint8)
    mask[1, 1:3] = 1
    np.save(tmp_path / "x.npy", X)
    given = mask if kind == "array" else tmp_path / f"m.{kind}"
    match kind:
        case "npy":
            np.save(given, mask)
        case "npz":
            np.savez(given, mask=mask)
        case "mat":
            scipy.io.savemat(given, {"mask": mask})
        case "hdr":
            write_envi(given, mask[:, :, None])
    np.testing.assert_array_equal(read_cube(tmp_path / "x.npy", mask=given).mask, mask == 1)


def test_mask_refusals(tmp_path):
    path, mask = tmp_path / "x.npy", tmp_path / "m.npy"
    np.save(path, small_cube())
    np.save(mask, np.ones((4, 3)))
    assert "the mask has the shape (4, 3) and the image 3 x 4 pixels" in cube_refusal(path, mask=mask)
    np.save(mask, np.zeros((3, 4)))
    assert "no pixel is left" in cube_refusal(path, mask=mask)
    with pytest.raises(ValueError, match=r"mask must have the shape \(3, 4\)"):
        as_cube(small_cube(), np.ones((4, 3)))
    with pytest.raises(ValueError, match="no pixel is left"):
        as_cube(small_cube(), np.zeros((3, 4)))


# ------------------------------------------------------------------ GeoTIFF


def write_tif(path, X, **profile):
    rows, columns, bands = X.shape
    shape = {"height": rows, "width": columns, "count": bands, "dtype": X.dtype}
    with rasterio.open(path, "w", driver="GTiff", **shape, **profile) as file:
        file.write(np.moveaxis(X, 2, 0))
    return path


def test_geotiff(tmp_path):
    place = rasterio.Affine(10, 0, 500000, 0, -20, 4600000)
    X = small_cube("i2")
    X[1, 1] = -1
    cube = read_cube(write_tif(tmp_path / "x.tif", X, crs="EPSG:32633", transform=place, nodata=-1))
    np.testing.assert_array_equal(cube.values, X)
    assert np.argwhere(~cube.mask).tolist() == [[1, 1]]
    assert cube.georeference.transform == (10, 0, 500000, 0, -20, 4600000)
    assert cube.georeference.crs == "EPSG:32633"
    assert "only 10 bytes" in cube_refusal(tmp_path / "x.tif", max_bytes=10)


@pytest.mark.filterwarnings("ignore:Dataset has no geotransform")  # rasterio's own word for it
def test_geotiff_damaged(tmp_path):
    path = write_tif(tmp_path / "x.tif", small_cube())
    assert read_cube(path).georeference is None
    path.write_bytes(path.read_bytes()[:300])
    assert "damaged, cut short or not what its suffix says" in cube_refusal(path)
    path.write_bytes(b"no image")
    assert str(path) in cube_refusal(path)


# ------------------------------------------------------------------ maps of clusters

LABELS = np.array([[0, 1, -1], [2, 2, 0]])
NAMES, COLORS = ["a", "b{,}", "c"], np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
PLACE = (10.0, 0.0, 500000.0, 0.0, -20.0, 4600000.0)


@pytest.mark.filterwarnings("ignore:Dataset has no geotransform")  # rasterio's own word for it
@pytest.mark.parametrize("place", [None, Georeference(PLACE, "EPSG:32633"), Georeference((1, 0.5, 3, 0.5, -1, 4), "")])
def test_geotiff_map_keeps_the_place(tmp_path, place):
    write_geotiff_map(tmp_path / "map.tif", LABELS, NAMES, COLORS, place)
    with rasterio.open(tmp_path / "map.tif") as file:
        np.testing.assert_array_equal(file.read(1), LABELS + 1)
        assert file.nodata == 0
        assert file.colormap(1)[3] == (7, 8, 9, 255)
        if place is not None:
            np.testing.assert_allclose(tuple(file.transform)[:6], place.transform)
        assert (None if file.crs is None else file.crs.to_epsg()) == (32633 if place and place.crs else None)


def test_geotiff_map_of_an_unknown_coordinate_system(tmp_path):
    with pytest.raises(FileError, match="is not one that GDAL knows; write the map as"):
        write_geotiff_map(tmp_path / "map.tif", LABELS, NAMES, COLORS, Georeference(PLACE, "nonsense"))
    assert list(tmp_path.iterdir()) == []
