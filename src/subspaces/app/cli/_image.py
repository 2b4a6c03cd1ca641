"""``subspaces cluster --image``: a cube of spectra from a file; a map of its clusters, with its place on Earth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer

from subspaces.app.cli._common import repeated_command
from subspaces.app.cli._outputs import Outputs, Run
from subspaces.utils.spelling import counted

if TYPE_CHECKING:
    from subspaces.applications.hyperspectral import ImageClusters

SETTINGS = ("n_components", "patch_size", "n_neighbors", "n_superpixels")
"""Parameters of ``--set`` that are those of :func:`subspaces.cluster_image`, not of the method."""

MAPS = (".hdr", ".tif", ".tiff", ".png", ".npy")
POINT_BYTES = 1000  # as of other points


@dataclass(frozen=True)
class ImageRun(Run):
    """A finished run on an image."""

    image: ImageClusters | None = None


@dataclass(frozen=True)
class ImageOutputs(Outputs):
    """Where the map of an image goes; without a name, beside other files of this folder, in the format of the image."""

    def check(self, source: Path) -> None:
        """Refuse what could not be written, before the image is read."""
        from subspaces.app.files import FileError, check_output

        if self.folder is not None or self.link:
            raise typer.BadParameter("sorts the images of a folder, not the pixels of one", param_hint="--sort-into")
        for file in _files(self.target(source)):
            check_output(file, force=self.force, source=source, suffixes=(*MAPS, ".dat"), what="map")
            if file.suffix.lower() == ".png" and find_spec("matplotlib") is None:
                raise FileError(file, 'a picture of the map needs Matplotlib: pip install "subspaces[app]"')
            if file.suffix.lower() in (".tif", ".tiff") and find_spec("rasterio") is None:
                raise FileError(file, 'GeoTIFF needs rasterio: pip install "subspaces[geo]" (or write .hdr)')
        replace(self, labels=None).check_pages(source)

    def target(self, source: Path) -> Path:
        """The map: the file that was named, else one in this folder named after the image."""
        if self.labels is not None:
            return self.labels
        suffix = source.suffix.lower()
        return Path(f"{source.stem}_map{suffix if suffix in MAPS[:3] else '.png'}")

    def write(self, run: Run) -> list[str]:
        """Write the map and its picture; one line each for people."""
        assert isinstance(run, ImageRun)
        assert run.image is not None
        from subspaces.app.files.cubes import write_envi_map, write_geotiff_map
        from subspaces.inspection.plots.images import label_colors, map_png
        from subspaces.utils.atomic import write_array, write_atomically

        cube, labels, source = run.image.cube, run.image.labels, Path(run.document["source"])
        target = self.target(source)
        names = [f"cluster {i}" for i in range(int(labels.max()) + 1)]
        place = (names, label_colors(len(names)), cube.georeference)
        written = []
        for file in _files(target):
            suffix = file.suffix.lower()
            if suffix == ".png":
                with write_atomically(file) as stream:
                    stream.write(map_png(labels, source.name))
            elif suffix == ".npy":
                with write_atomically(file) as stream:
                    write_array(stream, labels.astype("int64"))
            elif suffix == ".hdr":
                write_envi_map(file, labels, *place)
            elif suffix != ".dat":  # which its header brings
                write_geotiff_map(file, labels, *place)
            written += [f"map written to {file}"] if suffix != ".dat" else []
        scores = run.document.get("scores")
        if scores is not None:
            known = counted(run.document["image"]["n_known"], "pixel with a known class", "pixels with a known class")
            written.insert(0, f"accuracy on the {known}: {100 * scores['accuracy']:.1f} %")
        return written + self._pages(run)

    def _pages(self, run: ImageRun) -> list[str]:
        if self.report is None and self.tables is None:
            return []
        from subspaces.app.report import write_report, write_tables

        content, written = _content(run), []
        if self.report is not None:
            write_report(self.report, content)
            written.append(f"report written to {self.report}; open it in a browser")
        if self.tables is not None:
            write_tables(self.tables, content)
            written.append(f"tables written to {self.tables}")
        return written


def outputs_of(image: bool, mask: Path | None, scheduler: str | None, **files: Any) -> Outputs:
    """Where the results of a run go; refuses options that do not fit."""
    if mask is not None and not image:
        raise typer.BadParameter("leaves out pixels of an image of spectra; add --image", param_hint="--mask")
    if image:
        _refuse({"scheduler": scheduler})
    return ImageOutputs(**files) if image else Outputs(**files)


def run_image(
    file: Path,
    mask: Path | None,
    reading: dict[str, Any],
    method: str,
    settings: tuple[dict[str, Any], dict[str, Any]],
    make: Callable[[int, dict[str, Any], dict[str, Any]], Any],
    show: bool,
) -> ImageRun:
    """Read a cube, cluster its pixels and describe what was found.

    `make` gives the estimator for a number of points, parameters given and those assigned by ``--set``.
    """
    from subspaces.app.files import read_cube

    _refuse(
        {name: reading[name] for name in ("text", "id", "ignore", "keep", "header", "decimal", "image_size", "color")}
    )
    if reading["missing"] != "error":
        raise typer.BadParameter("has no meaning for an image: pixels with NaN are left out", param_hint="--missing")
    cube = read_cube(file, mask=mask, array=reading["array"], label=reading["label"])
    # late: a wrong file name should not wait seconds for its answer
    from sklearn.utils._param_validation import InvalidParameterError

    from subspaces.applications.hyperspectral import ImageClusters, image_features, label_map
    from subspaces.engine.confidence import summarize
    from subspaces.utils.memory import require

    given, assigned = settings
    own = {name: assigned[name] for name in SETTINGS if name in assigned}
    rest = {name: value for name, value in assigned.items() if name not in SETTINGS}
    start = perf_counter()
    try:
        X, segments = image_features(cube, **own)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--set") from error
    require(POINT_BYTES * len(X), f"the confidence and the table of {len(X)} points", "Allow more with --memory.")
    estimator = make(len(X), _fixed(method, given, rest), rest)
    try:
        estimator.fit(X)
    except InvalidParameterError as error:
        raise typer.BadParameter(str(error)) from error
    seconds = perf_counter() - start
    found = ImageClusters(label_map(estimator.labels_, cube.mask, segments), estimator, X, segments, cube)
    summary = summarize(estimator, X)
    lines = _in_python(file, mask, reading, own)
    return ImageRun(_document(found, method, seconds, summary), estimator, None, summary, lines, found)


def _in_python(file: Path, mask: Path | None, reading: dict[str, Any], own: dict[str, Any]) -> str:
    """Lines of Python that make the same points of the image."""
    named = {"mask": None if mask is None else str(mask), "array": reading["array"], "label": reading["label"]}
    given = "".join(f", {name}={value!r}" for name, value in named.items() if value is not None)
    settings = "".join(f", {name}={value!r}" for name, value in own.items())
    imports = (
        "from subspaces.applications.hyperspectral import image_features\nfrom subspaces.app.files import read_cube"
    )
    return f"{imports}\n\nX = image_features(read_cube({str(file)!r}{given}){settings})[0]"


def _refuse(given: dict[str, Any]) -> None:
    for name, value in given.items():
        if value:
            problem = "has no meaning for an image of spectra"
            raise typer.BadParameter(problem, param_hint="--" + name.replace("_", "-"))


def _fixed(method: str, given: dict[str, Any], assigned: dict[str, Any]) -> dict[str, Any]:
    """Parameters given, and for methods that would search for the others the setting that is known for images."""
    if method not in ("ktrr", "trr"):
        return given
    from subspaces import registry
    from subspaces.applications.hyperspectral import N_NONZERO

    defaults = {**registry.load(method)().get_params(), "n_nonzero": N_NONZERO}
    del defaults["n_clusters"]
    return {name: value for name, value in defaults.items() if name not in assigned} | given


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
    """What the points are called: their place, or the number of the superpixel."""
    if found.segments is not None:
        return [f"superpixel {i}" for i in range(len(found.X))]
    import numpy as np

    return [f"{row}, {column}" for row, column in np.argwhere(found.cube.mask).tolist()]


def _content(run: ImageRun) -> Any:
    """What a report shows: spectra in place of features, the map and the mean spectra before other pictures."""
    assert run.image is not None
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
    return Content(
        run.estimator,
        spectra,
        run.summary,  # type: ignore[arg-type]
        run.document,
        ids=_names(found),
        feature_names=None if cube.wavelengths is None else [f"{w:g} {cube.unit}".strip() for w in cube.wavelengths],
        command=repeated_command(),
        reading=run.reading,
        drawings=(
            ("Map of the clusters", _MAP, size, lambda figure: draw_map(labels, ax=figure.subplots())),
            ("Mean spectra", _SPECTRA, (7.2, 4.4), lambda figure: draw_spectra(found, ax=figure.subplots())),
        ),
    )


_MAP = "Each pixel in the colour of its cluster; pixels that were left out are blank."
_SPECTRA = "Mean spectrum of each cluster, with a band of one standard deviation of its pixels."


def _files(target: Path) -> list[Path]:
    """What is written for a map: it, of ENVI its data file, and a picture of it."""
    suffix = target.suffix.lower()
    more = [target.with_suffix(".dat")] if suffix == ".hdr" else []
    # without Matplotlib there is still the map
    picture = [target.with_suffix(".png")] if suffix in (".hdr", ".tif", ".tiff") and find_spec("matplotlib") else []
    return [target, *more, *picture]
