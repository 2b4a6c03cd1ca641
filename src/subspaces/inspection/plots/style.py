"""Colours, axes and captions that all displays share.

* Up to eight clusters each has its own colour, from the palette of Okabe and Ito, which people with any colour vision
  can tell apart; the palette's black is left out, because it vanishes on a dark page, and a middle grey closes it.
* With more clusters no palette can name them. Then colours only tell *neighbours* apart, as on a map of countries
  (:func:`map_colors`), markers change with the colours, and the cluster's number, written on it, is its name.
* Foreground and background come from the axes (that is, from Matplotlib's ``rcParams`` or style sheet): the colour
  maps start at the axes' own background, so that "nothing" looks like paper on a light page and on a dark one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from typing import Any, Self

import numpy as np

from subspaces.utils.types import Array, Labels

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
"""Okabe and Ito (2008), strong ones first; grey instead of black."""

ACCENT = "#D55E00"
"""Vermillion, the mark of what to look at; seen on light and on dark."""

MARKERS = ("o", "s", "^", "D", "v", "p", "h", "<")  # all filled: thin ones vanish when they are small
LINES = ("-", "--", "-.", ":")
BESIDE = {"loc": "upper left", "bbox_to_anchor": (1.01, 1), "frameon": False, "fontsize": "small"}
"""Place of a legend at the right of the axes."""


class Display:
    """Base of all displays: draw into axes, and keep them.

    Attributes
    ----------
    ax_, figure_ : Matplotlib axes and figure of the last drawing
    """

    _figsize: tuple[float, float] = (6.4, 4.8)

    def plot(self, ax: Any = None, **keywords: Any) -> Self:
        """Draw into `ax`, or into new axes; `keywords` go to the function of Matplotlib that draws the data."""
        ax = pyplot().subplots(figsize=self._figsize, layout="constrained")[1] if ax is None else ax
        self._draw(ax, **keywords)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw(self, ax: Any, **keywords: Any) -> None:
        raise NotImplementedError


def pyplot() -> Any:
    """Return Matplotlib's pyplot, or say how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need Matplotlib: pip install 'subspaces[plot]'.") from None
    return plt


def png(draw: Callable[[Any], Any], figsize: tuple[float, float], dpi: int, **settings: Any) -> bytes:
    """Draw into a figure of its own, with these ``rcParams``, and return it as a PNG file."""
    pyplot()  # says how to get Matplotlib
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context({"text.parse_math": False, **settings}):  # the name of a file is never read as a formula
        figure = Figure(figsize=figsize, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        stream = BytesIO()
        figure.savefig(stream, format="png", dpi=dpi)
    return stream.getvalue()


def shown_once(figure: Any) -> Any:
    """Return the figure such that a notebook shows it once.

    Pyplot shows it at the end of a cell, and as the last line of the cell it would be shown again; whichever comes
    first, the other no longer finds it.
    """
    figure._ipython_display_ = partial(_take_from_pyplot, figure)
    return figure


def _take_from_pyplot(figure: Any) -> None:
    plt = pyplot()
    if "inline" in plt.get_backend().lower():
        plt.close(figure)
    raise NotImplementedError  # by which IPython knows that it shall display the figure in its own way


def foreground(ax: Any) -> Any:
    """Return the colour of text in these axes: the one that is seen on their background."""
    return ax.xaxis.label.get_color()


def main_color(ax: Any) -> str:
    """Return the blue of the palette that is seen on the background of these axes."""
    return OKABE_ITO[0] if luminance(ax.get_facecolor()) > 0.18 else OKABE_ITO[4]


def sequential(ax: Any) -> Any:
    """Return a colour map from a tint of the background through blue to the foreground, monotone in lightness.

    It starts a quarter of the way to blue, so that the weakest entry is seen; draw what is zero masked.
    """
    blue = main_color(ax)
    return _color_map({0.0: _tint(ax, blue), 0.5: blue, 1.0: foreground(ax)})


def diverging(ax: Any) -> Any:
    """Return a colour map for signed values: vermillion, a tint of the background around zero, blue."""
    blue = main_color(ax)
    return _color_map({0.0: ACCENT, 0.4999: _tint(ax, ACCENT), 0.5001: _tint(ax, blue), 1.0: blue})


def _color_map(colors: dict[float, Any]) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("subspaces", list(colors.items()))


def _tint(ax: Any, color: str) -> Any:
    """Return the colour a quarter of the way from the background to another."""
    from matplotlib.colors import to_rgb

    return 0.75 * np.array(to_rgb(ax.get_facecolor())) + 0.25 * np.array(to_rgb(color))


def luminance(color: Any) -> float:
    """Return the relative luminance (WCAG) in [0, 1]."""
    from matplotlib.colors import to_rgb

    channels = np.array(to_rgb(color))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def readable_on(color: Any) -> str:
    """Return black or white, whichever has more contrast on a patch of this colour."""
    return "black" if luminance(color) > 0.179 else "white"


def map_colors(centres: Array) -> Labels:
    """Return an index into the palette for each centre such that neighbours differ.

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
    """Return tick positions and names at least `least_gap` apart, from the first on, so that none covers another."""
    kept: list[tuple[float, str]] = []
    for position, name in zip(positions, names, strict=True):
        if not kept or position - kept[-1][0] >= least_gap:
            kept.append((float(position), name))
    return [position for position, _ in kept], [name for _, name in kept]


def caption(ax: Any, text: str) -> None:
    """Write a sentence under the axes: what is drawn and what is not."""
    below = ax.get_xlabel()
    ax.set_xlabel(f"{below}\n{text}" if below else text, fontsize="small")
