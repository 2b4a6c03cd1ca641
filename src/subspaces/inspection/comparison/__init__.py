"""One's own method beside others: several runs on several data sets, with tests, as a table for a paper."""

from __future__ import annotations

from subspaces.inspection.comparison.compared import Comparison
from subspaces.inspection.comparison.trials import compare

__all__ = ["Comparison", "compare"]
