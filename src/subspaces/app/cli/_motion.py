"""``subspaces cluster --motion``: tracks of points through a film, gaps put in, a picture of who moves with whom."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import typer

from subspaces.app.cli._options import AUTO

if TYPE_CHECKING:
    from subspaces.app.cli._inputs import Inputs
    from subspaces.app.files import Dataset

SETTINGS: dict[str, dict[str, Any]] = {
    "reg": {
        "kernel": "linear",
        "reg": 0.002,
        "graph": "dscnet",
        "graph_params": {"subspace_dim": 3, "share": 1.0, "power": 6},
    },
    "error_weight": {"error_weight": 800.0, "solver": "admm", "tol": 2e-4, "graph_params": {"share": 0.7}},
}
"""What is taken for tracks where nothing is given, by the weight that a method has: ridge methods, and SSC as its
authors did. See docs/motion.md."""
_NO_MEANING = ("image_size", "color", "missing", "text", "keep")
"""Options of reading that tracks have no use for, beside their defaults."""


@dataclass
class Motion:
    """Whether the rows of a file are tracks, and where their picture goes; once read, the tracks with their gaps."""

    wanted: bool = False
    overlay: Path | None = None
    tracks: Any = None

    @classmethod
    def checked(cls, wanted: bool, overlay: Path | None, source: Path, force: bool, streamed: bool) -> Self:
        """Refuse what could not be read or written."""
        if wanted and streamed:
            problem = "has no meaning for a file that workers read piece by piece"
            raise typer.BadParameter(problem, param_hint="--motion")
        if overlay is not None and not wanted:
            raise typer.BadParameter("draws tracks; add --motion", param_hint="--overlay")
        if overlay is not None:
            from subspaces.app.files import FileError, check_output

            check_output(overlay, force=force, source=source, suffixes=(".png", ".gif"), what="overlay")
            if find_spec("matplotlib") is None:
                raise FileError(overlay, 'an overlay needs Matplotlib: pip install "subspaces[app]"')
        return cls(wanted, overlay)

    def read(self, file: Any, reading: dict[str, Any]) -> Dataset:
        """The points of a file; of tracks, with the frames put in where a point was not seen."""
        if not self.wanted:
            from subspaces.app.files import read_table

            return read_table(file, **reading)
        for name in _NO_MEANING:
            if reading[name] not in (None, False, (), "error"):
                problem = "has no meaning for tracks: every column is a place, and what is missing is put in"
                raise typer.BadParameter(problem, param_hint="--" + name.replace("_", "-"))
        import numpy as np

        from subspaces.app.files.tracks import read_tracks
        from subspaces.datasets.completion import complete

        data = read_tracks(file, **{name: value for name, value in reading.items() if name not in _NO_MEANING})
        self.tracks = data.X
        n_gaps = int(np.isnan(data.X[:, ::2]).sum())
        if not n_gaps:
            return data
        found = complete(data.X, group=2)
        share = 100 * n_gaps / (data.X.size / 2)
        note = f"{share:.3g} % of the places were missing and put in by a matrix of rank {found.rank}"
        return replace(data, X=found.X, notes=(*data.notes, f"{note}; those held out were met to {found.error:.2g}"))

    def method(self, name: str, X: Any) -> str:
        """The method meant: the front door where the numbers show it that they are tracks, else one that is told."""
        if not self.wanted or name != AUTO:
            return name
        from subspaces.selection.trajectories import MOST_TRACKS, are_tracks

        return name if len(X) <= MOST_TRACKS and are_tracks(X) else "ktrr"

    def in_python(self, inputs: Inputs, reading: dict[str, Any]) -> str:
        """Lines of Python that read the same points."""
        if not self.wanted:
            return inputs.in_python(reading)
        kept = {name: value for name, value in reading.items() if name not in _NO_MEANING and value not in (None, ())}
        arguments = "".join(f", {name}={value!r}" for name, value in kept.items())
        imports = (
            "from subspaces.app.files.tracks import read_tracks\nfrom subspaces.datasets.completion import complete"
        )
        return f"{imports}\n\nX = complete(read_tracks({str(inputs.main)!r}{arguments}).X, group=2).X"

    def settings(self, method: str, n_clusters: Any, given: dict[str, Any], assigned: dict[str, Any]) -> dict[str, Any]:
        """The parameters given, and for tracks, where the method knows affine subspaces, those that nobody gave.

        Where the number of motions is to be found, only that subspaces are affine: the rest is chosen from the tracks.
        """
        from subspaces import registry

        if not self.wanted or method not in registry.names(*registry.SHALLOW):
            return given
        known = registry.load(method)().get_params()
        if "affine" not in known:
            return given
        setting: dict[str, Any] = {"affine": True}
        if isinstance(n_clusters, int) and "graph" not in assigned:
            kept = {name: known[name] for name in ("n_nonzero", "assign_labels") if name in known}
            own = next((found for weight, found in SETTINGS.items() if weight in known), {})
            setting |= {**kept, "scaling": "none", **own}
        return {name: value for name, value in setting.items() if name in known and name not in assigned} | given

    def write(self, labels: Any) -> list[str]:
        """Draw the tracks by cluster, gaps where they were; one line for people."""
        if self.overlay is None:
            return []
        from subspaces.inspection.plots import TracksDisplay
        from subspaces.utils.atomic import write_atomically

        display = TracksDisplay.of(self.tracks, labels)
        content = display.film() if self.overlay.suffix.lower() == ".gif" else display.picture()
        with write_atomically(self.overlay) as stream:
            stream.write(content)
        return [f"tracks drawn in {self.overlay}"]
