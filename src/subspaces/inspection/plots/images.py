"""Images of spectra: the map of clusters with its legend, and the mean spectrum of each cluster with its spread."""

from __future__ import annotations

import colorsys
import io
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from subspaces.inspection.plots import style
from subspaces.utils.types import Array, Labels

_LEGEND_ROWS = 20
_GOLDEN = 0.61803398875  # steps of this part of a circle never come close to each other
MAX_NAMED = 60
"""Clusters up to which the legend names each one."""


def label_colors(n: int) -> Array:
    """A colour for each of n labels, rows of red, green, blue from 0 to 255: the palette, then hues far apart.

    Examples
    --------
    >>> label_colors(2)
    array([[  0, 114, 178],
           [230, 159,   0]])
    """
    palette = [tuple(int(color[i : i + 2], 16) for i in (1, 3, 5)) for color in style.OKABE_ITO]
    more = [
        tuple(
            round(255 * v) for v in colorsys.hsv_to_rgb((_GOLDEN * i) % 1, (0.75, 0.45)[i % 2], (0.6, 0.9)[i // 2 % 2])
        )
        for i in range(max(0, n - len(palette)))
    ]
    return np.array((palette + more)[:n], dtype=int).reshape(n, 3)


class LabelMapDisplay:
    """A map of labels: each pixel in the colour of its cluster, a legend with the number of pixels of each.

    Parameters
    ----------
    labels : array of shape (rows, columns); negative where a pixel has none (left blank)
    names : of the labels 0, 1, ...

    Attributes
    ----------
    ax_, figure_, im_ : of Matplotlib
    """

    def __init__(self, labels: Labels, names: Sequence[str]) -> None:
        self.labels, self.names = labels, list(names)

    @classmethod
    def from_predictions(cls, labels: ArrayLike, *, names: Sequence[str] | None = None, ax: Any = None) -> Self:
        """Draw a map of labels."""
        given = np.asarray(labels)
        if given.ndim != 2 or given.size == 0 or given.dtype.kind not in "iu" or given.max() < 0:
            found = f"{given.dtype} of shape {given.shape}"
            raise ValueError(f"labels must be whole numbers for rows and columns, one of them 0 or more; got {found}.")
        n = int(given.max()) + 1
        if names is not None and len(names) != n:
            raise ValueError(f"names must have one entry for each of the {n} labels; got {len(names)}.")
        return cls(given, [f"cluster {i}" for i in range(n)] if names is None else names).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        rows, columns = self.labels.shape
        n_named = min(len(self.names), MAX_NAMED)
        ax = style.axes_of(ax, map_size(self.labels.shape, len(self.names)))
        colors = label_colors(len(self.names)) / 255
        picture = np.zeros((rows, columns, 4))  # what has no label is not painted
        inside = self.labels >= 0
        picture[inside, :3], picture[inside, 3] = colors[self.labels[inside]], 1
        self.im_ = ax.imshow(picture, interpolation="nearest")
        ax.set(xlabel="column", ylabel="row")
        counts = np.bincount(self.labels[inside], minlength=len(self.names))
        from matplotlib.patches import Patch

        handles = [Patch(color=colors[i], label=f"{self.names[i]} ({counts[i]:,})") for i in range(n_named)]
        if n_named < len(self.names):
            handles.append(Patch(alpha=0, label=f"and {len(self.names) - n_named} more"))
        legend = {"loc": "upper left", "bbox_to_anchor": (1.01, 1), "borderaxespad": 0, "frameon": False}
        n_columns = -(-len(handles) // _LEGEND_ROWS)
        ax.legend(handles=handles, title="cluster (pixels)", fontsize="small", ncols=n_columns, **legend)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def map_size(shape: tuple[int, ...], n_labels: int) -> tuple[float, float]:
    """Inches of a figure for a map of this shape and its legend."""
    rows, columns = shape
    height = float(np.clip(6.4 * rows / columns, 3.2, 9.6))
    width = min(height * columns / rows, 12.0)
    return width + 2.2 * -(-min(n_labels, MAX_NAMED + 1) // _LEGEND_ROWS), height + 0.4


class SpectraDisplay:
    """Mean spectrum of each cluster, and the band of one standard deviation around it.

    Parameters
    ----------
    mean, spread : arrays of shape (n_clusters, n_bands)
    wavelengths : array of shape (n_bands,), or None to count bands
    unit : of the wavelengths

    Attributes
    ----------
    ax_, figure_ : of Matplotlib
    """

    def __init__(self, mean: Array, spread: Array, wavelengths: Array | None = None, unit: str = "") -> None:
        self.mean, self.spread, self.wavelengths, self.unit = mean, spread, wavelengths, unit

    @classmethod
    def from_image(cls, found: Any, *, ax: Any = None) -> Self:
        """Draw the clusters that :func:`subspaces.cluster_image` found."""
        mean, spread = found.spectra()
        return cls(mean, spread, found.cube.wavelengths, found.cube.unit).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        ax = style.axes_of(ax, (7.2, 4.4))
        x = np.arange(self.mean.shape[1]) if self.wavelengths is None else self.wavelengths
        colors = label_colors(len(self.mean)) / 255
        for i, (mean, spread) in enumerate(zip(self.mean, self.spread, strict=True)):
            line = style.LINES[i // len(style.OKABE_ITO) % len(style.LINES)]
            name = f"cluster {i}" if i < MAX_NAMED else None
            ax.plot(x, mean, color=colors[i], linestyle=line, linewidth=1.4, label=name)
            ax.fill_between(x, mean - spread, mean + spread, color=colors[i], alpha=0.2, linewidth=0)
        unit = f" ({self.unit})" if self.unit else ""
        ax.set(xlabel="band" if self.wavelengths is None else f"wavelength{unit}", ylabel="mean ± standard deviation")
        ax.spines[["top", "right"]].set_visible(False)
        n_columns = -(-len(self.mean) // _LEGEND_ROWS)
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize="small", ncols=n_columns)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def map_png(labels: Labels, title: str) -> bytes:
    """The map with its legend as a PNG file."""
    style.pyplot()  # says how to get Matplotlib
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context({"text.parse_math": False}):  # the name of a file is never read as a formula
        figure = Figure(figsize=map_size(labels.shape, int(labels.max()) + 1), layout="constrained")
        FigureCanvasAgg(figure)
        LabelMapDisplay.from_predictions(labels, ax=figure.subplots()).ax_.set_title(title)
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=150)
    return stream.getvalue()
