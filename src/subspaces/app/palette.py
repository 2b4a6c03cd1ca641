"""Colours of clusters on pages: twenty that differ, then those of a map, on which only neighbours differ."""

from __future__ import annotations

import numpy as np

from subspaces.inspection.plots.style import OKABE_ITO, map_colors
from subspaces.utils.types import Array, Labels

PALETTE = (
    *OKABE_ITO,
    *("#965AFF", "#A52D69", "#786900", "#4B2DE1", "#00E196", "#D22DC3"),
    *("#FF96FF", "#5A4B78", "#87B45A", "#00691E", "#781EB4", "#96E10F"),
)
"""Those of Okabe and Ito, then each as far from all before it as there are (OKLab, also as seen without green), where
it is seen on white and on a dark page."""


def colors_of(centres: Array) -> Labels:
    """Return the place in `PALETTE` of the colour of each cluster; beyond twenty the number on it is its name."""
    return np.arange(len(centres)) if len(centres) <= len(PALETTE) else map_colors(centres)
