"""Weights that labelled data sets gave, written by ``benchmarks/confidence.py``."""

from __future__ import annotations

BY_GRAPH = (1.37, 0.6665, 0.05476, -3.796, 0.1716, 0.0695)
"""Of a label: walk, support, weight that stays in its cluster, mean return of the splits, log k; constant."""

BY_SEARCH = (0.9932, 0.6592, -2.379, -1.815, 0.1621, 1.638, 0.6516, 1.803, -1.086)
"""The same after a search, then consensus of the settings, agreement of the winner, its stability; constant."""
