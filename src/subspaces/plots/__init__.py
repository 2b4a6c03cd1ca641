"""Display objects in scikit-learn's manner: compute once, keep the data, draw with ``plot(ax=)``. Needs Matplotlib."""

from __future__ import annotations

from subspaces.plots.selection import NumberOfClustersDisplay, SelectionDisplay

__all__ = ["NumberOfClustersDisplay", "SelectionDisplay"]
