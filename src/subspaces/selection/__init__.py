"""Everything a user without labels cannot know, chosen from the data: see :func:`choose`."""

from __future__ import annotations

from subspaces.selection.candidates import AUTO, EFFORTS, NEIGHBORS
from subspaces.selection.result import ClusterCount, RunnerUp, Selection, Trial
from subspaces.selection.search import choose

__all__ = ["AUTO", "EFFORTS", "NEIGHBORS", "ClusterCount", "RunnerUp", "Selection", "Trial", "choose"]
