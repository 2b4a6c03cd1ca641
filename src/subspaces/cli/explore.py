"""``subspaces explore``: a page in the browser whose sliders move the clusters."""

from __future__ import annotations

import shlex
from functools import partial
from typing import Annotated, Any

import typer

from subspaces.cli import _options as options
from subspaces.cli._common import Refusal, limited_threads, one_line
from subspaces.cli._features import Features
from subspaces.cli._inputs import Inputs

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


def explore(
    file: options.FilesArgument,
    label: options.LabelOption = None,
    id_: options.IdOption = None,
    ignore: options.IgnoreOption = None,
    array: options.ArrayOption = None,
    header: options.HeaderOption = None,
    decimal: options.DecimalOption = None,
    text: options.TextOption = None,
    features: options.FeaturesOption = None,
    max_points: PointsOption = 2000,
    seed: options.SeedOption = None,
    threads: options.ThreadsOption = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 0,
    browser: BrowserOption = True,
    debug: options.DebugOption = False,
) -> None:
    """Explore the points of FILE in the browser: move a slider, watch the clusters.

    Runs on this machine only and sends nothing anywhere. Ctrl-C ends it.

    Example: subspaces explore faces.npz --label y
    """
    from subspaces.io import read_table

    try:
        from subspaces.explorer.app import serve
    except ImportError as error:
        raise Refusal(str(error)) from None
    from subspaces.explorer import Session

    looked_at = Features.checked(features, {}, show=True)
    inputs = Inputs.of(file)
    reading: dict[str, Any] = {"label": label, "id": id_, "ignore": ignore or (), "array": array, "text": text}
    reading |= {"header": header, "decimal": decimal}
    asked = {**reading, "features": features}
    with limited_threads(threads):
        data = looked_at.of(read_table(inputs.source, **reading))
        classes = None if data.y is None or data.classes is None else [data.classes[code] for code in data.y]
        shown: dict[str, Any] = {"ids": data.ids, "image_shape": data.image_shape, "pixels": data.pixels}
        session = Session(data.X, classes, **shown, max_points=max_points, seed=seed or 0)
        for note in data.notes:
            typer.echo(f"note: {one_line(note)}")
        serve(
            session,
            title=f"subspaces: {one_line(inputs.main.name)}",
            source=one_line(shlex.join([*file, *_reading(asked)])),
            host=host,
            port=port,
            open_browser=browser,
            announce=lambda address: typer.echo(f"{address}\nexploring {one_line(inputs.title)}; Ctrl-C ends it"),
        )


def _reading(given: dict[str, Any]) -> list[str]:
    """The options again that said how the file is read."""
    words = [word for name, value in given.items() if isinstance(value, str) for word in (f"--{name}", value)]
    words += [word for name in given["ignore"] for word in ("--ignore", name)]
    return words + ([] if given["header"] is None else ["--header" if given["header"] else "--no-header"])
