"""Images with many bands: ENVI, GeoTIFF, NumPy and MATLAB files, masks, refusals in one line; maps of clusters."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.io

from cube_data import UTM, cube_refusal, small_cube, write_envi
from io_data import Bomb
from subspaces.app.files import FileError, read_cube
from subspaces.app.files import cubes as envi_files
from subspaces.app.files.cubes import TYPES, map_info_of, read_header, write_envi_map, write_geotiff_map
from subspaces.applications.cube import Georeference, as_cube


@pytest.fixture
def rasterio():
    return pytest.importorskip("rasterio", reason='GDAL reads GeoTIFF and ENVI: pip install "subspaces[geo]"')


# ------------------------------------------------------------------ ENVI


@pytest.mark.parametrize(
    ("interleave", "byte_order", "name"),
    [("bsq", 0, "f4"), ("bil", 1, "u2"), ("bip", 1, "i4"), *(("bil", 0, name) for name in sorted(TYPES.values()))],
)
def test_envi_in_every_order_and_type(tmp_path, interleave, byte_order, name):
    X = small_cube(name)
    cube = read_cube(write_envi(tmp_path / "x.hdr", X, interleave, byte_order, offset=7))
    np.testing.assert_array_equal(cube.values, X)
    assert cube.mask.all()
    assert cube.shape == (3, 4, 5)


def test_envi_stays_on_disk(tmp_path):
    cube = read_cube(write_envi(tmp_path / "x.hdr", small_cube()), max_bytes=1)
    assert isinstance(cube.values.base.base, np.memmap)


def test_envi_header_as_programs_write_it(tmp_path):
    wavelengths = "{\n  400.5, 410,\n 420, 430,\n 440 }"
    path = write_envi(tmp_path / "x.hdr", small_cube(), wavelength=wavelengths, wavelength_units="Nanometers")
    text = path.read_text()
    path.write_text(text.replace("ENVI\n", "ENVI\n; samples = 99\ndescription = {\n  a = b, lines = 7 }\n", 1))
    cube = read_cube(path)
    assert cube.wavelengths.tolist() == [400.5, 410, 420, 430, 440]
    assert cube.unit == "Nanometers"
    assert read_header(path)["description"] == "a = b, lines = 7"


def test_envi_data_file_names(tmp_path):
    path = write_envi(tmp_path / "x.img.hdr", small_cube())
    (tmp_path / "x.img.dat").rename(tmp_path / "x.img")
    np.testing.assert_array_equal(read_cube(path).values, small_cube())
    (tmp_path / "x.img").rename(tmp_path / "other.bin")
    assert "no data file beside it" in cube_refusal(path)
    path.write_text(path.read_text() + "data file = other.bin\n")
    np.testing.assert_array_equal(read_cube(path).values, small_cube())


def test_envi_never_leads_out_of_its_folder(tmp_path):
    (tmp_path / "in").mkdir()
    path = write_envi(tmp_path / "in" / "x.hdr", small_cube(), data_file="../secret.bin")
    (tmp_path / "in" / "x.dat").rename(tmp_path / "secret.bin")
    assert "no data file beside it" in cube_refusal(path)


def test_envi_two_data_files_are_ambiguous(tmp_path):
    path = write_envi(tmp_path / "x.hdr", small_cube())
    (tmp_path / "x.raw").write_bytes(b"1")
    assert "several data files fit it (x.dat, x.raw)" in cube_refusal(path)


def test_envi_bad_bands_are_left_out(tmp_path):
    path = write_envi(tmp_path / "x.hdr", small_cube(), bbl="{1, 0, 1, 1, 0}", wavelength="{1, 2, 3, 4, 5}")
    cube = read_cube(path)
    np.testing.assert_array_equal(cube.values, small_cube()[:, :, [0, 2, 3]])
    assert cube.wavelengths.tolist() == [1, 3, 4]
    assert "2 of 5 bands are marked as bad" in cube.notes[0]
    assert "only 10 bytes of memory may be used" in cube_refusal(path, max_bytes=10)


def test_envi_ignored_pixels(tmp_path):
    X = small_cube("i2")
    X[1, 2] = -99
    X[0, 0, 0] = -99  # one band of a pixel that has others
    cube = read_cube(write_envi(tmp_path / "x.hdr", X, data_ignore_value=-99))
    assert np.argwhere(~cube.mask).tolist() == [[1, 2]]


def test_envi_georeference(tmp_path):
    georeference = read_cube(write_envi(tmp_path / "x.hdr", small_cube(), map_info=f"{{{UTM}}}")).georeference
    assert georeference.transform == (10, 0, 500000, 0, -20, 4600000)
    assert georeference.crs == "EPSG:32633"
    assert georeference.map_info == tuple(UTM.split(", "))


@pytest.mark.parametrize("rotation", ["", ", rotation=30"])
def test_envi_georeference_as_gdal_reads_it(tmp_path, rotation, rasterio):
    square = UTM.replace("10, 20", "10, 10") + rotation
    cube = read_cube(write_envi(tmp_path / "x.hdr", small_cube(), map_info=f"{{{square}}}"))
    with rasterio.open(tmp_path / "x.dat") as file:
        np.testing.assert_array_equal(np.moveaxis(file.read(), 0, 2), cube.values)
        np.testing.assert_allclose(cube.georeference.transform, tuple(file.transform)[:6], atol=1e-9)
        assert file.crs.to_epsg() == 32633


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"data_type": 99}, "data type 99 is none that is known; readable are 1, 2, 3"),
        ({"data_type": 6}, "data type 6 is complex numbers"),
        ({"data_type": "float"}, "'data type' is 'float', not a whole number"),
        ({"interleave": "bqs"}, "interleave 'bqs' is unknown; it must be bsq, bil or bip"),
        ({"interleave": None}, "interleave '' is unknown"),
        ({"byte_order": 2}, "byte order 2 is unknown"),
        ({"samples": None}, "the header does not say 'samples'"),
        ({"lines": -3}, "'lines' is '-3', not a whole number"),
        ({"bands": 0}, "lines 3, samples 4 and bands 0 must all be 1 or more"),
        ({"lines": 999}, "the header promises 79.9 kB (999 x 4 pixels, 5 bands), and x.dat holds 240 bytes"),
        ({"lines": 10**14}, "the header promises"),
        ({"header_offset": 3}, "the header promises 243 bytes"),
        ({"bands": 1}, "the image has one band; a spectrum needs two or more"),
        ({"wavelength": "{1, 2}"}, "'wavelength' has 2 entries and the image 5 bands"),
        ({"wavelength": "{1, 2, 3, four, 5}"}, "'wavelength' holds 'four', which is not a number"),
        ({"wavelength": "{1, 2"}, "the brace of 'wavelength' is never closed"),
        ({"map_info": "{UTM, a, b, c, d, e, f}"}, "'map info' holds 'a', which is not a number"),
    ],
)
def test_envi_refusals(tmp_path, fields, said):
    assert said in cube_refusal(write_envi(tmp_path / "x.hdr", small_cube(), **fields))


def test_other_files_are_no_headers(tmp_path):
    (tmp_path / "x.hdr").write_bytes(b"\x00\xff" * 50)
    assert "its first line is not 'ENVI'" in cube_refusal(tmp_path / "x.hdr")


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


def write_tif(rasterio, path, X, **profile):
    rows, columns, bands = X.shape
    shape = {"height": rows, "width": columns, "count": bands, "dtype": X.dtype}
    with rasterio.open(path, "w", driver="GTiff", **shape, **profile) as file:
        file.write(np.moveaxis(X, 2, 0))
    return path


def test_geotiff(tmp_path, rasterio):
    place = rasterio.Affine(10, 0, 500000, 0, -20, 4600000)
    X = small_cube("i2")
    X[1, 1] = -1
    cube = read_cube(write_tif(rasterio, tmp_path / "x.tif", X, crs="EPSG:32633", transform=place, nodata=-1))
    np.testing.assert_array_equal(cube.values, X)
    assert np.argwhere(~cube.mask).tolist() == [[1, 1]]
    assert cube.georeference.transform == (10, 0, 500000, 0, -20, 4600000)
    assert cube.georeference.crs == "EPSG:32633"
    assert "only 10 bytes" in cube_refusal(tmp_path / "x.tif", max_bytes=10)


@pytest.mark.filterwarnings("ignore:Dataset has no geotransform")  # rasterio's own word for it
def test_geotiff_damaged(tmp_path, rasterio):
    path = write_tif(rasterio, tmp_path / "x.tif", small_cube())
    assert read_cube(path).georeference is None
    path.write_bytes(path.read_bytes()[:300])
    assert "damaged, cut short or not what its suffix says" in cube_refusal(path)
    path.write_bytes(b"no image")
    assert str(path) in cube_refusal(path)


def test_hostile_headers_take_no_longer_than_their_length(tmp_path):
    path = write_envi(tmp_path / "x.hdr", small_cube())
    text = path.read_text()
    for odd in (" " * 2**21, "a = {\n" * 2**18, "=" * 2**21, "\t" * 2**20 + "= 3\n"):
        path.write_text(text + odd)
        try:
            read_header(path)
        except ValueError as error:
            assert "is never closed" in str(error)  # noqa: PT017
    path.write_text(text + " " * 2**23)
    assert "is no ENVI header" in cube_refusal(path)


# ------------------------------------------------------------------ maps of clusters

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


def test_envi_map_as_gdal_reads_it(tmp_path, rasterio):
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
def test_geotiff_map_keeps_the_place(tmp_path, place, rasterio):
    write_geotiff_map(tmp_path / "map.tif", LABELS, NAMES, COLORS, place)
    with rasterio.open(tmp_path / "map.tif") as file:
        np.testing.assert_array_equal(file.read(1), LABELS + 1)
        assert file.nodata == 0
        assert file.colormap(1)[3] == (7, 8, 9, 255)
        if place is not None:
            np.testing.assert_allclose(tuple(file.transform)[:6], place.transform)
        assert (None if file.crs is None else file.crs.to_epsg()) == (32633 if place and place.crs else None)


def test_geotiff_map_of_an_unknown_coordinate_system(tmp_path, rasterio):
    with pytest.raises(FileError, match="is not one that GDAL knows; write an ENVI map"):
        write_geotiff_map(tmp_path / "map.tif", LABELS, NAMES, COLORS, Georeference(PLACE, "nonsense"))
    assert list(tmp_path.iterdir()) == []
