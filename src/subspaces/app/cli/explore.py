"""``subspaces explore``: the groups in the browser, to look at, to correct, and with questions."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from subspaces.app.cli import _options as options
from subspaces.app.cli._common import Refusal, as_option, limited_threads, one_line, refuse, tell
from subspaces.app.cli._features import PIXELS, Features
from subspaces.app.cli._inputs import Inputs
from subspaces.app.cli._options import AUTO, Reading
from subspaces.app.cli._task import Task
from subspaces.app.cli.cluster import ClustersOption, _run
from subspaces.utils.progress import shown

if TYPE_CHECKING:
    from subspaces.app.explorer import Session

page = partial(options.option, "The page")
PortOption = Annotated[int, page("--port", "NUMBER", "Port; left out, a free one.", min=0, max=65535)]
BrowserOption = Annotated[bool, page("--browser/--no-browser", None, "Open the page (the default), or only say where.")]
ShapeOption = Annotated[
    str | None,
    page(
        "--image-shape",
        "SHAPE",
        "Height and width of images that are rows of a table or array: 32x32, in colour 32x32x3; left out, found from "
        "the values where they are square.",
    ),
]
AnswersOption = Annotated[
    Path | None,
    options.output(
        "--answers",
        "FILE",
        "Answers to questions (.csv): read at the start if it is there, written after every answer, so that the same "
        "command goes on where it was left.",
    ),
]


@options.reads_files
def explore(
    file: options.FilesArgument,
    reading: Reading,
    n_clusters: ClustersOption = None,
    image_shape: ShapeOption = None,
    answers: AnswersOption = None,
    seed: options.SeedOption = None,
    threads: options.ThreadsOption = None,
    port: PortOption = 0,
    browser: BrowserOption = True,
    quiet: options.QuietOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Explore the groups of FILE in the browser: look at them, answer questions, name, merge and split them.

    It starts with what subspaces cluster FILE finds, runs on this machine only and sends nothing. Ctrl-C ends it.

    Example: subspaces explore faces.npz --label y
    """
    shape = _shape(image_shape)
    _server()  # what is missing is said before hours of work
    with limited_threads(threads):
        session, source = started(file, reading, n_clusters, seed, answers, quiet, shape)
        open_page(session, source, port=port, open_browser=browser)


def started(
    file: Sequence[str],
    reading: Reading,
    n_clusters: str | None,
    seed: int | None,
    answers: Path | None,
    quiet: bool,
    shape: tuple[int, ...] | None = None,
) -> tuple[Session, str]:
    """Cluster as ``subspaces cluster`` does, and follow the answers there are.

    Returns
    -------
    The session, and the file with the options it is read with, for commands that repeat it.
    """
    reading.no_settings()
    k, given = options.number_of_clusters(n_clusters), dict(reading.given)
    features, inputs = Features.checked(reading), Inputs.of(list(file))
    from subspaces.app.files import FileError, check_output

    if answers is not None:
        check_output(answers, force=True, source=inputs.main, suffixes=(".csv",), what="answers")
    from subspaces.app.explorer.answers import read_answers
    from subspaces.app.explorer.pictures import image_shape_of
    from subspaces.app.explorer.session import Session

    with shown(not quiet):
        run = _run(Task(inputs, reading, features, AUTO, k, {"random_state": seed or 0}), None)
        data: Any = run.data
        if data.image_shape is None and data.texts is None:
            if shape is not None and prod(shape) != data.X.shape[1]:
                found = f"{'x'.join(map(str, shape))} is not the size of rows of {data.X.shape[1]} values"
                raise FileError(inputs.title, f"--image-shape: {found}; correct it or leave it out")
            data = replace(data, image_shape=shape or image_shape_of(data.X))
        title = one_line(inputs.main.name)
        session = Session(run.estimator, data, title=title, reading=run.reading, answers=answers)
        if answers is not None and (told := read_answers(answers, data)):
            session.answer(told)
    tell(*(f"note: {note}" for note in data.notes))
    if features.spec is None and data.is_image_folder:  # chosen here, so the command that repeats it names it
        given["features"] = PIXELS if data.features is None else str(data.features.name)
    elif reading.features is not None:
        given["features"] = reading.features
    return session, one_line(" ".join([shlex.join(file), *(as_option(*each) for each in given.items())]))


def open_page(session: Session, source: str, **more: Any) -> None:
    """Serve the page until Ctrl-C; `more` goes to the server."""
    said = f"exploring {session.title}: {session.view.verdict} Ctrl-C ends it"
    _server()(
        session,
        title=f"subspaces: {session.title}",
        source=source,
        announce=lambda address: tell(address, said),
        **more,
    )


def _server() -> Any:
    """Return what serves the page, or say what to install."""
    try:
        from subspaces.app.explorer.server import serve
    except ImportError as error:
        raise Refusal(str(error)) from None
    return serve


def _shape(text: str | None) -> tuple[int, ...] | None:
    """Return height and width, and 3 in colour."""
    if text is None:
        return None
    if not re.fullmatch(r"0*[1-9][0-9]*x0*[1-9][0-9]*(x3)?", text.lower()):
        raise refuse("--image-shape", f"must be HEIGHTxWIDTH or HEIGHTxWIDTHx3, such as 32x32; got '{one_line(text)}'")
    return tuple(int(part) for part in text.lower().split("x"))
