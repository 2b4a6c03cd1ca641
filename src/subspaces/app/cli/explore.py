"""``subspaces explore``: a page in the browser whose sliders move the clusters."""

from __future__ import annotations

import shlex
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from subspaces.app.cli import _options as options
from subspaces.app.cli._common import Refusal, limited_threads, one_line
from subspaces.app.cli._features import PIXELS, Features
from subspaces.app.cli._inputs import Inputs
from subspaces.utils.progress import shown
from subspaces.utils.spelling import counted

if TYPE_CHECKING:
    from subspaces.app.explorer import Session
    from subspaces.app.files import Dataset
    from subspaces.selection.auto import Chosen

page = partial(options.option, "The page")
HostOption = Annotated[
    str,
    page(
        "--host",
        "ADDRESS",
        "Address to listen on; left out, 127.0.0.1, which only this machine reaches. There is no password: "
        "whoever reaches the address and knows its last part sees the data.",
    ),
]
PortOption = Annotated[int, page("--port", "NUMBER", "Port; left out, a free one.", min=0, max=65535)]
BrowserOption = Annotated[bool, page("--browser/--no-browser", None, "Open the page (the default), or only say where.")]
PointsOption = Annotated[
    int,
    options.data(
        "--max-points",
        "NUMBER",
        "Of more points a random sample is explored, so that the page keeps up; left out, 2000.",
        min=3,
    ),
]
ShapeOption = Annotated[
    str | None,
    options.data(
        "--image-shape",
        "SHAPE",
        "Height and width of images that are rows of a table or array: 32x32, in colour 32x32x3; left out, found from "
        "the values where they are square.",
    ),
]


def explore(
    file: options.FilesArgument,
    label: options.LabelOption = None,
    id_: options.IdOption = None,
    ignore: options.IgnoreOption = None,
    keep: options.KeepOption = None,
    array: options.ArrayOption = None,
    header: options.HeaderOption = None,
    decimal: options.DecimalOption = None,
    missing: options.MissingOption = "error",
    image_shape: ShapeOption = None,
    text: options.TextOption = None,
    features: options.FeaturesOption = None,
    max_points: PointsOption = 2000,
    seed: options.SeedOption = None,
    threads: options.ThreadsOption = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 0,
    browser: BrowserOption = True,
    quiet: options.QuietOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Explore the points of FILE in the browser: move a slider, watch the clusters, name and merge them.

    It starts with what subspaces cluster FILE finds, runs on this machine only and sends nothing. Ctrl-C ends it.

    Example: subspaces explore faces.npz --label y
    """
    shape = _shape(image_shape)
    from subspaces.app.files import read_table

    try:
        from subspaces.app.explorer.server import serve
    except ImportError as error:
        raise Refusal(str(error)) from None
    from subspaces.selection.auto import SubspaceClustering

    looked_at = Features.checked(features, {})
    inputs = Inputs.of(file)
    reading: dict[str, Any] = {"label": label, "id": id_, "array": array, "text": text, "missing": missing}
    reading |= {"ignore": ignore or (), "keep": keep or (), "header": header, "decimal": decimal}
    with limited_threads(threads):
        with shown(not quiet):
            read = read_table(inputs.source, **reading)
            front_door = SubspaceClustering(random_state=seed or 0)
            data, chosen = looked_at.better(read, looked_at.of(read), front_door.choose)
            about: dict[str, Any] = {"image_shape": shape or data.image_shape, "max_points": max_points}
            session = _session(data, chosen, **about, seed=seed or 0)
            started = session.first_settings
            session.compute(started)  # the page finds it done
        began = f", which begins with {counted(started.n_clusters, 'cluster')} as subspaces cluster finds them"
        for note in data.notes:
            typer.echo(f"note: {one_line(note)}")
        serve(
            session,
            title=f"subspaces: {one_line(inputs.main.name)}",
            source=one_line(shlex.join([*file, *_reading({**reading, "features": _seen(features, data)})])),
            host=host,
            port=port,
            open_browser=browser,
            announce=lambda address: typer.echo(
                f"{address}\nexploring {one_line(inputs.title)}{began}; Ctrl-C ends it"
            ),
        )


def _session(data: Dataset, chosen: Chosen | None, **options: Any) -> Session:
    """What is explored of a file, from what was chosen for it where that is known."""
    from subspaces.app.explorer import Session

    return Session(
        data.X,
        None if data.y is None or data.classes is None else [data.classes[code] for code in data.y],
        ids=data.ids,
        pixels=data.pixels,
        texts=data.texts,
        feature_names=data.feature_names,
        lines=data.places.get("line"),
        chosen=chosen,
        **options,
    )


def _shape(text: str | None) -> tuple[int, ...] | None:
    """Height and width, and 3 in colour."""
    if text is None:
        return None
    parts = text.lower().split("x")
    if not (len(parts) in (2, 3) and all(part.isdigit() and int(part) for part in parts) and parts[2:] in ([], ["3"])):
        problem = f"must be HEIGHTxWIDTH or HEIGHTxWIDTHx3, such as 32x32; got '{one_line(text)}'"
        raise typer.BadParameter(problem, param_hint="--image-shape")
    return tuple(int(part) for part in parts)


def _seen(features: str | None, data: Dataset) -> str | None:
    """What images are compared by, also where that was chosen."""
    if features is not None or not data.is_image_folder:
        return features
    return PIXELS if data.features is None else str(data.features.name)


def _reading(given: dict[str, Any]) -> list[str]:
    """The options again that said how the file is read."""
    texts = {name: value for name, value in given.items() if isinstance(value, str) and value != "error"}
    words = [word for name, value in texts.items() for word in (f"--{name}", value)]
    words += [word for option in ("ignore", "keep") for name in given[option] for word in (f"--{option}", name)]
    return words + ([] if given["header"] is None else ["--header" if given["header"] else "--no-header"])
