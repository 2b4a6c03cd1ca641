"""How the pictures look: colours, numbers and captions, chosen once.

* Up to eight clusters each has its own colour, from the palette of Okabe and Ito, which people with any colour vision
  can tell apart; the palette's black is left out, because it vanishes on a dark page, and a middle grey closes it.
* With more clusters no palette can name them. Then colours only tell *neighbours* apart, as on a map of countries
  (:func:`map_colors`), markers change with the colours, and the cluster's number, written on it, is its name.
* Foreground and background come from the axes (that is, from Matplotlib's ``rcParams`` or style sheet): the colour
  maps start at the axes' own background, so that "nothing" looks like paper on a light page and on a dark one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from subspaces.utils.types import Array, Labels

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
"""Okabe and Ito (2008), strong ones first; grey instead of black."""

ACCENT = "#D55E00"
"""Vermillion, the mark of what to look at; seen on light and on dark."""

MARKERS = ("o", "s", "^", "D", "v", "p", "h", "<")  # all filled: thin ones vanish when they are small
LINES = ("-", "--", "-.", ":")


def pyplot() -> Any:
    """Matplotlib's pyplot, or an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need Matplotlib: pip install 'subspaces[plot]'.") from None
    return plt


def shown_once(figure: Any) -> Any:
    """The figure, which a notebook shows once: pyplot shows it at the end of a cell, and its last line would again.

    Whichever comes first, the other no longer finds it.
    """
    figure._ipython_display_ = partial(_take_from_pyplot, figure)
    return figure


def _take_from_pyplot(figure: Any) -> None:
    plt = pyplot()
    if "inline" in plt.get_backend().lower():
        plt.close(figure)
    raise NotImplementedError  # by which IPython knows that it shall display the figure in its own way


def axes_of(ax: Any, figsize: tuple[float, float]) -> Any:
    """The axes given, or new ones."""
    return pyplot().subplots(figsize=figsize, layout="constrained")[1] if ax is None else ax


def foreground(ax: Any) -> Any:
    """Colour of the text of these axes: the one that is seen on their background."""
    return ax.xaxis.label.get_color()


def main_color(ax: Any) -> str:
    """Blue that is seen on the background of these axes: the darker or the lighter one of the palette."""
    return OKABE_ITO[0] if luminance(ax.get_facecolor()) > 0.18 else OKABE_ITO[4]


def sequential(ax: Any) -> Any:
    """Colour map from a tint of the background through blue to the foreground: lightness changes in one direction.

    It starts a quarter of the way to blue, so that the weakest entry is seen; draw what is zero masked.
    """
    blue = main_color(ax)
    return _color_map({0.0: _tint(ax, blue), 0.5: blue, 1.0: foreground(ax)})


def diverging(ax: Any) -> Any:
    """Colour map for signed values: vermillion, a tint of the axes' background around zero, blue."""
    blue = main_color(ax)
    return _color_map({0.0: ACCENT, 0.4999: _tint(ax, ACCENT), 0.5001: _tint(ax, blue), 1.0: blue})


def _color_map(colors: dict[float, Any]) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("subspaces", list(colors.items()))


def _tint(ax: Any, color: str) -> Any:
    """A quarter of the way from the background to a colour."""
    from matplotlib.colors import to_rgb

    return 0.75 * np.array(to_rgb(ax.get_facecolor())) + 0.25 * np.array(to_rgb(color))


def luminance(color: Any) -> float:
    """Relative luminance (WCAG) in [0, 1]; of ``#rrggbb`` also without Matplotlib."""
    if isinstance(color, str) and len(color) == 7 and color.startswith("#"):
        channels = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    else:
        from matplotlib.colors import to_rgb

        channels = np.array(to_rgb(color))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def readable_on(color: Any) -> str:
    """Black or white, whichever has more contrast on a filled patch of this colour."""
    return "black" if luminance(color) > 0.179 else "white"


def map_colors(centres: Array) -> Labels:
    """A colour for each centre such that neighbours differ: index into the palette.

    Up to eight centres each gets its own. Beyond, greedily from the left: of the eight colours the one whose nearest
    centre so far is farthest away.
    """
    n, n_colors = len(centres), len(OKABE_ITO)
    if n <= n_colors:
        return np.arange(n, dtype=np.intp)
    chosen = np.full(n, -1, dtype=np.intp)
    for i in np.lexsort((centres[:, 1], centres[:, 0])):
        squared = np.square(centres - centres[i]).sum(axis=1)
        nearest = [squared[chosen == color].min(initial=np.inf) for color in range(n_colors)]
        chosen[i] = int(np.argmax(nearest))
    return chosen


def thinned(positions: Array, names: Sequence[str], least_gap: float) -> tuple[list[float], list[str]]:
    """Tick positions and names at least `least_gap` apart, from the first on, so that none covers another."""
    kept: list[float] = []
    shown: list[str] = []
    for position, name in zip(positions, names, strict=True):
        if not kept or position - kept[-1] >= least_gap:
            kept.append(float(position))
            shown.append(name)
    return kept, shown


def caption(ax: Any, text: str) -> None:
    """A sentence under the axes: what is drawn and what is not."""
    below = ax.get_xlabel()
    ax.set_xlabel(f"{below}\n{text}" if below else text, fontsize="small")
