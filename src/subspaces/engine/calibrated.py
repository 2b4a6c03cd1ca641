"""Weights that labelled data sets gave, written by ``benchmarks/confidence.py``."""

from __future__ import annotations

BY_GRAPH = (1.393, 0.6428, 0.1666, -3.791, 0.1801, -0.02331)
"""Of a label: walk, support, weight that stays in its cluster, mean return of the splits, log k; constant."""

BY_SEARCH = (1.158, 0.544, -1.632, -2.121, 0.2307, 1.377, 0.642, 1.482, -1.456)
"""The same after a search, then consensus of the settings, agreement of the winner, its stability; constant."""
