"""What an experiment leaves behind: CSV, Markdown, LaTeX and figures, with the command and version that made them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from subspaces import __version__
from subspaces.io import write_atomically
from subspaces.reproduce.cells import CODE
from subspaces.reproduce.plan import QUICK, Experiment, Planned
from subspaces.reproduce.runner import Outcome
from subspaces.reproduce.statistics import Record, make_records, to_csv
from subspaces.reproduce.tables import latex, markdown


def write_outputs(
    experiment: Experiment, planned: Sequence[Planned], outcome: Outcome, folder: Path
) -> tuple[list[Record], list[Path]]:
    """Write everything; returns the records and the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    records = make_records(experiment, planned, outcome)
    texts = {
        ".csv": to_csv(records),
        ".md": f"# {experiment.paper}: {experiment.title}\n\n{origin(experiment)}\n\n{markdown(experiment, records)}",
        ".tex": f"% {origin(experiment)}\n{latex(experiment, records)}",
    }
    written = []
    for suffix, text in texts.items():
        written.append(folder / f"{experiment.name}{suffix}")
        with write_atomically(written[-1]) as stream:
            stream.write(text.encode())
    if experiment.style != "table" and find_spec("matplotlib") is not None:
        from matplotlib import rc_context

        from subspaces.reproduce.figures import draw

        figure = draw(experiment, records, planned, outcome)
        for suffix in (".png", ".svg"):
            written.append(folder / f"{experiment.name}{suffix}")
            # without a date and random names inside, the same figure is the same file
            metadata = {"Date": None} if suffix == ".svg" else None
            with write_atomically(written[-1]) as stream, rc_context({"svg.hashsalt": experiment.name}):
                figure.savefig(stream, format=suffix[1:], dpi=130, metadata=metadata)
    return records, written


def origin(experiment: Experiment) -> str:
    """The command and version that made a result."""
    name = experiment.name.removesuffix(QUICK)
    return (
        f"Made by `subspaces reproduce {name}{' --quick' if experiment.is_quick else ''}`, subspaces {__version__}, "
        f"code {CODE}."
    )
