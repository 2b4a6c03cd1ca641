"""Weights that labelled data sets gave, written by ``benchmarks/confidence.py``."""

from __future__ import annotations

BY_GRAPH = (2.0, 1.0, 1.0, -3.0, -0.2, 0.0)
"""Of a label: walk, support, weight that stays in its cluster, mean return of the splits, log k; constant."""

BY_SEARCH = (1.0, 1.0, 1.0, -3.0, -0.2, 2.0, 1.0, 0.5, -1.0)
"""The same after a search, then consensus of the settings, agreement of the winner, its stability; constant."""
