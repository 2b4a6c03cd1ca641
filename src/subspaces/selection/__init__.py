"""Everything a user without labels cannot know, chosen from the data: see :func:`choose`."""

from __future__ import annotations

from subspaces.selection.candidates import AUTO
from subspaces.selection.count import ClusterCount
from subspaces.selection.result import RunnerUp, Selection, Trial
from subspaces.selection.search import choose

__all__ = ["AUTO", "ClusterCount", "RunnerUp", "Selection", "Trial", "choose"]
