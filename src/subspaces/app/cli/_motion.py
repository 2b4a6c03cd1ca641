"""``subspaces cluster --motion``: trajectories of tracked points through a film, with gaps filled in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subspaces.app.cli._common import refuse
from subspaces.app.cli._inputs import Inputs, keywords
from subspaces.app.cli._options import AUTO
from subspaces.app.cli._task import Task

if TYPE_CHECKING:
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
"""Settings for trajectories where nothing is given, by the weight that a method has: ridge methods, and SSC as its
authors did. See docs/motion.md."""


def read_motion(inputs: Inputs, arguments: dict[str, Any]) -> tuple[Dataset, Any]:
    """Return the trajectories with gaps filled in, and as they were read."""
    for name in ("image_size", "color", "missing", "text", "keep"):
        if name in arguments:
            problem = "has no meaning for tracks: every column is a place, and what is missing is put in"
            raise refuse(name, problem)
    import numpy as np

    from subspaces.app.files.tracks import read_tracks
    from subspaces.datasets.completion import complete

    data = read_tracks(inputs.source, **arguments)
    n_gaps = int(np.isnan(data.X[:, ::2]).sum())
    if not n_gaps:
        return data, data.X
    found = complete(data.X, group=2)
    share = 100 * n_gaps / (data.X.size / 2)
    note = f"{share:.3g} % of the places were missing and put in by a matrix of rank {found.rank}"
    notes = (*data.notes, f"{note}; those held out were met to {found.error:.2g}")
    return replace(data, X=found.X, notes=notes), data.X


def motion_in_python(inputs: Inputs, arguments: dict[str, Any]) -> str:
    """Return lines of Python that read the same trajectories."""
    imports = "from subspaces.app.files.tracks import read_tracks\nfrom subspaces.datasets.completion import complete"
    call = f"read_tracks({str(inputs.main)!r}{keywords(arguments)})"
    return f"{imports}\n\nX = complete({call}.X, group=2).X"


def for_motion(task: Task, X: Any) -> Task:
    """Return the task with the parameters for trajectories that nobody gave, where the method has affine subspaces.

    The automatic choice is kept where it recognises trajectories itself. Where the number of motions is to be found,
    only `affine` is set: the rest is chosen from the trajectories.
    """
    from subspaces import registry
    from subspaces.selection.trajectories import MOST_TRACKS, are_tracks

    method = task.method
    if method == AUTO and len(X) <= MOST_TRACKS and are_tracks(X):
        return task
    method = "ktrr" if method == AUTO else method
    known = registry.load(method)().get_params()
    if "affine" not in known:
        return replace(task, method=method)
    setting: dict[str, Any] = {"affine": True}
    if task.n_clusters is not None and "graph" not in task.parameters:
        kept = {name: known[name] for name in ("n_nonzero", "assign_labels") if name in known}
        own = next((found for weight, found in SETTINGS.items() if weight in known), {})
        setting |= {**kept, "scaling": "none", **own}
    fixed = {name: value for name, value in setting.items() if name in known}
    return replace(task, method=method, parameters={**fixed, **task.parameters})


def draw_tracks(path: Path, tracks: Any, labels: Any) -> None:
    """Draw trajectories by cluster, with their gaps."""
    from subspaces.inspection.plots.images import tracks_png
    from subspaces.utils.atomic import write_atomically

    content = tracks_png(tracks, labels)
    with write_atomically(path) as stream:
        stream.write(content)
