"""``subspaces cluster --image``: a cube of spectra from a file; a map of its clusters, with its place on Earth."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from subspaces.app.cli._common import refuse, repeated_command
from subspaces.app.cli._inputs import keywords
from subspaces.app.cli._task import Run, Task, check_room, fit
from subspaces.utils.spelling import counted

if TYPE_CHECKING:
    from subspaces.app.report import Content
    from subspaces.applications.hyperspectral import ImageClusters

SETTINGS = ("n_components", "patch_size", "n_superpixels")
"""Parameters of ``--set`` that are those of :func:`subspaces.cluster_image`, not of the method."""

MAPS = (".tif", ".tiff", ".png", ".npy")


def map_files(labels: Path | None, source: Path) -> list[Path]:
    """Return the files of a map: the one named (else after the image, in this folder), and a picture beside it."""
    has_place = source.suffix.lower() in (".hdr", ".tif", ".tiff")
    target = labels or Path(f"{source.stem}_map{'.tif' if has_place else '.png'}")
    return [target, target.with_suffix(".png")] if target.suffix.lower() in (".tif", ".tiff") else [target]


def check_map(labels: Path | None, source: Path, force: bool) -> None:
    """Refuse a map that could not be written."""
    from subspaces.app.files import FileError, check_output

    for file in map_files(labels, source):
        check_output(file, force=force, source=source, suffixes=MAPS, what="map")
        if file.suffix.lower() in (".tif", ".tiff") and find_spec("rasterio") is None:
            raise FileError(file, 'GeoTIFF needs rasterio: pip install "subspaces[geo]" (or write .png or .npy)')


def write_map(labels: Path | None, run: Run) -> list[str]:
    """Write the map and its picture; return one line each for people."""
    assert run.image is not None
    from subspaces.app.files.cubes import write_geotiff_map
    from subspaces.inspection.plots.images import label_colors, map_png
    from subspaces.utils.atomic import write_array, write_atomically

    found, source, written = run.image.labels, Path(run.document["source"]), []
    names = [f"cluster {i}" for i in range(int(found.max()) + 1)]
    place = (names, label_colors(len(names)), run.image.cube.georeference)
    for file in map_files(labels, source):
        match file.suffix.lower():
            case ".png":
                with write_atomically(file) as stream:
                    stream.write(map_png(found, source.name))
            case ".npy":
                with write_atomically(file) as stream:
                    write_array(stream, found.astype("int64"))
            case _:
                write_geotiff_map(file, found, *place)
        written.append(f"map written to {file}")
    if "scores" in run.document:
        known = counted(run.document["image"]["n_known"], "pixel with a known class", "pixels with a known class")
        written.insert(0, f"accuracy on the {known}: {100 * run.document['scores']['accuracy']:.1f} %")
    return written


def run_image(task: Task) -> Run:
    """Read a cube, cluster its pixels and describe the result."""
    from subspaces.app.files import read_cube

    given = task.reading.given
    if "missing" in given:
        raise refuse("--missing", "has no meaning for an image: pixels with NaN are left out")
    for name in given.keys() - {"array", "label"}:
        raise refuse(name, "has no meaning for an image of spectra")
    file, named = task.inputs.main, given if task.mask is None else {"mask": str(task.mask), **given}
    cube = read_cube(file, **named)
    # late: a wrong file name should not wait seconds for its answer
    from subspaces.applications.hyperspectral import ImageClusters, image_features, label_map
    from subspaces.engine.confidence import summarize

    own = {name: task.parameters[name] for name in SETTINGS if name in task.parameters}
    start = perf_counter()
    try:
        X, segments = image_features(cube, **own)
    except ValueError as error:
        raise refuse("--set", str(error)) from error
    check_room(len(X))
    estimator = replace(task, parameters=_fixed(task)).estimator(len(X))
    fit(estimator, X)
    seconds = perf_counter() - start
    found = ImageClusters(label_map(estimator.labels_, cube.mask, segments), estimator, X, segments, cube)
    summary = summarize(estimator, X)
    lines = (
        "from subspaces.app.files import read_cube\n"
        "from subspaces.applications.hyperspectral import image_features\n\n"
        f"X = image_features(read_cube({str(file)!r}{keywords(named)}){keywords(own)})[0]"
    )
    return Run(_document(found, task.method, seconds, summary), estimator, None, summary, lines, found)


def _fixed(task: Task) -> dict[str, Any]:
    """Return the parameters given; methods that would search for the others get the setting known for images."""
    given = {name: value for name, value in task.parameters.items() if name not in SETTINGS}
    if task.method not in ("ktrr", "trr"):
        return given
    from subspaces import registry
    from subspaces.applications.hyperspectral import N_NONZERO

    defaults = registry.load(task.method)().get_params()
    del defaults["n_clusters"]
    return {**defaults, "n_nonzero": N_NONZERO, **given}


def _document(found: ImageClusters, method: str, seconds: float, summary: Any) -> dict[str, Any]:
    from subspaces.app.description import describe, plain

    cube, segments = found.cube, found.segments
    rows, columns, bands = cube.shape
    n_pixels = int(cube.mask.sum())
    what = f"{n_pixels:,} pixels of {rows} x {columns}, {counted(bands, 'band')}"
    note = what if segments is None else f"{what}, as {counted(len(found.X), 'superpixel')}"
    document = describe(
        found.model,
        source=str(cube.source),
        shape=(len(found.X), bands),
        method=method,
        seconds=seconds,
        notes=(*cube.notes, note),
        summary=summary,
        names=_names(found),
    )
    image = {"rows": rows, "columns": columns, "bands": bands, "n_pixels": n_pixels}
    document["image"] = {**image, "n_superpixels": None if segments is None else len(found.X)}
    if cube.labels is not None:
        from subspaces.metrics import clustering_scores

        known = (cube.labels >= 0) & cube.mask
        document["image"]["n_known"] = int(known.sum())
        if known.any():
            document["scores"] = plain(clustering_scores(cube.labels[known], found.labels[known]))
    return document


def _names(found: ImageClusters) -> list[str]:
    """Return names of the samples: row and column, or the number of the superpixel."""
    if found.segments is not None:
        return [f"superpixel {i}" for i in range(len(found.X))]
    import numpy as np

    return [f"{row}, {column}" for row, column in np.argwhere(found.cube.mask).tolist()]


def image_content(run: Run) -> Content:
    """Return what a report shows: spectra in place of features, the map and the mean spectra before other pictures."""
    assert run.image is not None
    assert run.summary is not None
    from subspaces.app.report import Content
    from subspaces.applications.hyperspectral import label_spectra
    from subspaces.inspection.plots.images import LabelMapDisplay, SpectraDisplay, map_size

    found, cube = run.image, run.image.cube
    labels, segments = found.labels, found.segments
    if segments is None:
        spectra = cube.values[cube.mask].astype("float32")
    else:
        spectra = label_spectra(cube.values, segments)[0].astype("float32")
    draw_map, draw_spectra = LabelMapDisplay.from_predictions, SpectraDisplay.from_image
    size = map_size(labels.shape, int(labels.max()) + 1)
    of_map = "Each pixel in the colour of its cluster; pixels that were left out are blank."
    of_spectra = "Mean spectrum of each cluster, with a band of one standard deviation of its pixels."
    return Content(
        run.estimator,
        spectra,
        run.summary,
        run.document,
        ids=_names(found),
        feature_names=None if cube.wavelengths is None else [f"{w:g} {cube.unit}".strip() for w in cube.wavelengths],
        command=repeated_command(),
        reading=run.reading,
        drawings=(
            ("Map of the clusters", of_map, size, lambda figure: draw_map(labels, ax=figure.subplots())),
            ("Mean spectra", of_spectra, (7.2, 4.4), lambda figure: draw_spectra(found, ax=figure.subplots())),
        ),
    )
