"""``subspaces explore``: a page in the browser whose sliders move the clusters."""

from __future__ import annotations

import re
import shlex
from functools import partial
from typing import Annotated

from subspaces.app.cli import _options as options
from subspaces.app.cli._common import Refusal, as_option, limited_threads, one_line, refuse, tell
from subspaces.app.cli._features import PIXELS, Features
from subspaces.app.cli._inputs import Inputs
from subspaces.app.cli._options import Reading
from subspaces.utils.progress import shown
from subspaces.utils.spelling import counted

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
    page(
        "--max-points",
        "NUMBER",
        "Of more points a random sample is explored, so that the page keeps up; left out, 2000.",
        min=3,
    ),
]
ShapeOption = Annotated[
    str | None,
    page(
        "--image-shape",
        "SHAPE",
        "Height and width of images that are rows of a table or array: 32x32, in colour 32x32x3; left out, found from "
        "the values where they are square.",
    ),
]


@options.reads_files
def explore(
    file: options.FilesArgument,
    reading: Reading,
    image_shape: ShapeOption = None,
    max_points: PointsOption = 2000,
    seed: options.SeedOption = None,
    threads: options.ThreadsOption = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 0,
    browser: BrowserOption = True,
    quiet: options.QuietOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Explore the samples of FILE in the browser: move a slider, watch the clusters, name and merge them.

    It starts with what subspaces cluster FILE finds, runs on this machine only and sends nothing. Ctrl-C ends it.

    Example: subspaces explore faces.npz --label y
    """
    shape = _shape(image_shape)
    reading.no_settings()
    from subspaces.app.files import read_table

    try:
        from subspaces.app.explorer import Session
        from subspaces.app.explorer.server import serve
    except ImportError as error:
        raise Refusal(str(error)) from None
    from subspaces import SubspaceClustering

    features, inputs, given = Features.checked(reading), Inputs.of(file), dict(reading.given)
    with limited_threads(threads):
        with shown(not quiet):
            read = read_table(inputs.source, **given)
            data, chosen = features.better(read, features.of(read), SubspaceClustering(random_state=seed or 0).choose)
            session = Session(
                data.X,
                None
                if data.y is None or data.classes is None
                else [data.classes[code] if code >= 0 else "" for code in data.y],
                ids=data.ids,
                pixels=data.pixels,
                texts=data.texts,
                feature_names=data.feature_names,
                lines=data.places.get("line"),
                chosen=chosen,
                image_shape=shape or data.image_shape,
                max_points=max_points,
                seed=seed or 0,
            )
            started = session.first_settings
            session.compute(started)  # the page finds it done
        tell(*(f"note: {note}" for note in data.notes))
        began = f"begins with {counted(started.n_clusters, 'cluster')} as subspaces cluster finds them; Ctrl-C ends it"
        said = f"exploring {inputs.title}, which {began}"
        if features.spec is None and data.is_image_folder:  # chosen here, so the command that repeats it names it
            given["features"] = PIXELS if data.features is None else str(data.features.name)
        elif reading.features is not None:
            given["features"] = reading.features
        serve(
            session,
            title=f"subspaces: {one_line(inputs.main.name)}",
            source=one_line(" ".join([shlex.join(file), *(as_option(*each) for each in given.items())])),
            host=host,
            port=port,
            open_browser=browser,
            announce=lambda address: tell(address, said),
        )


def _shape(text: str | None) -> tuple[int, ...] | None:
    """Return height and width, and 3 in colour."""
    if text is None:
        return None
    if not re.fullmatch(r"0*[1-9][0-9]*x0*[1-9][0-9]*(x3)?", text.lower()):
        raise refuse("--image-shape", f"must be HEIGHTxWIDTH or HEIGHTxWIDTHx3, such as 32x32; got '{one_line(text)}'")
    return tuple(int(part) for part in text.lower().split("x"))
