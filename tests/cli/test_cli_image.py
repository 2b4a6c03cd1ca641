"""``subspaces cluster --image``: maps and reports of images with many bands, and what is refused in one line."""

from __future__ import annotations

import numpy as np
import pytest

from cli_data import fails, found, told
from cube_data import UTM, write_envi
from subspaces.app.cli import _image
from subspaces.datasets import make_cube
from subspaces.metrics import accuracy

rasterio = pytest.importorskip("rasterio", reason='GDAL reads ENVI: pip install "subspaces[geo]"')
FAST = ("--set", "n_superpixels=120")


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """An image with place and wavelengths, a mask, and an archive with classes."""
    folder = tmp_path_factory.mktemp("scene")
    values, labels, wavelengths = make_cube((36, 40), n_bands=50, n_materials=3, random_state=0)
    listed = "{" + ", ".join(f"{w:.1f}" for w in wavelengths) + "}"
    units = {"wavelength": listed, "wavelength_units": "Nanometers"}
    write_envi(folder / "scene.hdr", values, "bil", map_info=f"{{{UTM}}}", **units)
    np.savez(folder / "scene.npz", cube=values, truth=labels + 1)
    mask = np.ones((36, 40), dtype=np.uint8)
    mask[:, :5] = 0
    np.save(folder / "mask.npy", mask)
    return folder


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_map_of_an_envi_image(scene, tmp_path):
    shown = told("cluster", scene / "scene.hdr", "--image", "-k", 3, "--set", f"mask={scene / 'mask.npy'}")
    assert names(tmp_path) == ["scene_map.png", "scene_map.tif"]
    assert "1,260 pixels of 36 x 40, 50 bands" in shown
    assert "map written to scene_map.tif" in shown
    with rasterio.open("scene_map.tif") as file:
        assert file.crs.to_epsg() == 32633
        assert tuple(file.transform)[:6] == (10, 0, 500000, 0, -20, 4600000)
        stored = file.read(1)
    truth = np.load(scene / "scene.npz")["truth"]
    assert (stored[:, :5] == 0).all()
    assert accuracy(truth[:, 5:].ravel(), stored[:, 5:].ravel()) > 0.9


def test_map_of_an_archive_with_classes(scene, tmp_path):
    options = ("--image", "-k", 3, "--label", "truth", "--array", "cube", *FAST)
    document = found("cluster", scene / "scene.npz", *options, "-o", "map.npy")
    stored = np.load("map.npy")
    assert stored.shape == (36, 40)
    assert document["image"]["n_superpixels"] == len(document["cluster"]) < 200
    assert document["image"]["n_known"] == 36 * 40
    truth = np.load(scene / "scene.npz")["truth"]
    assert document["scores"]["accuracy"] == pytest.approx(accuracy(truth.ravel(), stored.ravel()))
    assert document["parameters"]["n_nonzero"] == 20
    shown = told("cluster", scene / "scene.npz", *options, "-o", "map.npy", "--force")
    assert "accuracy on the 1440 pixels with a known class: " in shown


def test_report_with_map_and_spectra(scene, tmp_path):
    options = ("--image", "-k", 3, "-o", "map.png", "--report", "r.html")
    told("cluster", scene / "scene.hdr", *options)
    assert names(tmp_path) == ["map.png", "r.html"]
    page = (tmp_path / "r.html").read_text()
    assert page.index("Map of the clusters") < page.index("Mean spectra") < page.index("Confidence of the labels")
    assert "Nanometers" in page
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def test_other_methods_and_parameters(scene):
    image = ("cluster", scene / "scene.hdr", "--image", "-k", 3, *FAST, "-o", "map.npy", "--force")
    for more in (("--method", "sc"), ("--method", "trr"), ("--set", "patch_size=3"), ("--set", "reg=0.5")):
        told(*image, *more)
    document = found(*image, "--set", "n_nonzero=7", "--set", "graph=column")
    assert document["parameters"]["n_nonzero"] == 7
    assert document["parameters"]["graph"] == "column"


def test_refusals_leave_nothing_behind(scene, tmp_path):
    image = ("cluster", scene / "scene.hdr", "--image", "-k", 3)
    said = {
        ("-o", "map.csv"): "map cannot be written to the suffix '.csv'; choose one of .tif",
        ("-o", "map.dat"): "map cannot be written to the suffix '.dat'",
        ("--id", "x"): "--id: has no meaning for an image of spectra",
        ("--set", "color=true"): "--set color: has no meaning",
        ("--missing", "drop"): "pixels with NaN are left out",
        ("--sort-into", "x"): "sorts the images of a folder, not the pixels of one",
        ("--scheduler", "local"): "--scheduler: has no meaning for an image of spectra",
        ("--set", "patch_size=4"): "patch_size must be odd",
        ("--set", "patches=4"): "'patches' is no parameter of the method ktrr",
        ("--label", "y"): "--label has a meaning only for .npz and .mat files",
        ("--set", f"mask={scene / 'scene.hdr'}"): "the mask has the shape (36, 40, 50) and the image 36 x 40 pixels",
        ("-k", "9999"): "9999 clusters of 1440 points; ask for fewer",
    }
    for options, text in said.items():
        assert text in fails(*image, *options), options
    assert "add --image" in fails("cluster", scene / "scene.hdr", "--set", "mask=m.npy")
    assert names(tmp_path) == []


def test_bad_images_and_maps_that_exist_are_refused_in_one_line(scene, tmp_path):
    values = np.load(scene / "scene.npz")["cube"]
    bad = write_envi(tmp_path / "bad.hdr", values, lines=999)
    assert "damaged, cut short" in fails("cluster", bad, "--image", "-k", 3)
    np.save(tmp_path / "flat.npy", values.reshape(-1, 50))
    assert "there is no spatial order" in fails("cluster", tmp_path / "flat.npy", "--image", "-k", 3)
    (tmp_path / "scene_map.png").write_text("mine")
    assert "the file exists" in fails("cluster", scene / "scene.hdr", "--image", "-k", 3)
    assert (tmp_path / "scene_map.png").read_text() == "mine"
    assert names(tmp_path) == ["bad.dat", "bad.hdr", "flat.npy", "scene_map.png"]


def test_what_is_not_installed_is_said_first(scene, monkeypatch):
    monkeypatch.setattr(_image, "find_spec", lambda name: None)
    image = ("cluster", scene / "scene.hdr", "--image", "-k", 3, *FAST, "-o", "map.tif")
    assert 'pip install "subspaces[geo]"' in fails(*image)
