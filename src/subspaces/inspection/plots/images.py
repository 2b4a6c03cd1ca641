"""Displays of places: maps of labelled pixels, mean spectra of clusters, tracks of moving samples."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from subspaces.inspection.plots import parts, style
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array, Labels

MAX_NAMED = 60
"""Clusters up to which the legend names each one."""

_LEGEND_ROWS = 20
_GOLDEN = 0.61803398875  # steps of this part of a circle never come close to each other


def label_colors(n: int) -> Array:
    """Return a colour for each of n labels, rows of red, green, blue from 0 to 255: the palette, then hues far apart.

    Examples
    --------
    >>> label_colors(2)
    array([[  0, 114, 178],
           [230, 159,   0]])
    """
    colors = [tuple(int(color[i : i + 2], 16) for i in (1, 3, 5)) for color in style.OKABE_ITO[:n]]
    for i in range(n - len(colors)):
        hsv = (_GOLDEN * i) % 1, (0.75, 0.45)[i % 2], (0.6, 0.9)[i // 2 % 2]
        colors.append(tuple(round(255 * channel) for channel in colorsys.hsv_to_rgb(*hsv)))
    return np.array(colors, dtype=int).reshape(n, 3)


class LabelMapDisplay(style.Display):
    """Map of labels: each pixel in the colour of its cluster, a legend with the number of pixels of each."""

    def __init__(self, labels: Labels, names: Sequence[str]) -> None:
        self.labels, self.names = labels, list(names)
        self._figsize = map_size(labels.shape, len(self.names))

    @classmethod
    def from_predictions(cls, labels: ArrayLike, *, names: Sequence[str] | None = None, ax: Any = None) -> Self:
        """Draw a map of labels (rows, columns), `names` those of 0, 1, ...; negative is no label and left blank."""
        given = np.asarray(labels)
        if given.ndim != 2 or given.size == 0 or given.dtype.kind not in "iu" or given.max() < 0:
            found = f"{given.dtype} of shape {given.shape}"
            raise ValueError(f"labels must be whole numbers for rows and columns, one of them 0 or more; got {found}.")
        n = int(given.max()) + 1
        if names is not None and len(names) != n:
            raise ValueError(f"names must have one entry for each of the {n} labels; got {len(names)}.")
        return cls(given, [f"cluster {i}" for i in range(n)] if names is None else names).plot(ax)

    def _draw(self, ax: Any, **keywords: Any) -> None:
        from matplotlib.patches import Patch

        colors = label_colors(len(self.names)) / 255
        picture = np.zeros((*self.labels.shape, 4))  # what has no label is not painted
        inside = self.labels >= 0
        picture[inside, :3], picture[inside, 3] = colors[self.labels[inside]], 1
        self.im_ = ax.imshow(picture, interpolation="nearest")
        ax.set(xlabel="column", ylabel="row")
        counts = np.bincount(self.labels[inside], minlength=len(self.names))
        named = list(zip(colors, self.names, counts, strict=True))[:MAX_NAMED]
        handles = [Patch(color=color, label=f"{name} ({count:,})") for color, name, count in named]
        if len(self.names) > MAX_NAMED:
            handles.append(Patch(alpha=0, label=f"and {len(self.names) - MAX_NAMED} more"))
        n_columns = -(-len(handles) // _LEGEND_ROWS)
        ax.legend(handles=handles, title="cluster (pixels)", ncols=n_columns, borderaxespad=0, **style.BESIDE)


def map_size(shape: tuple[int, ...], n_labels: int) -> tuple[float, float]:
    """Return the size in inches of a figure for a map of this shape and its legend."""
    rows, columns = shape
    height = float(np.clip(6.4 * rows / columns, 3.2, 9.6))
    width = min(height * columns / rows, 12.0)
    return width + 2.2 * -(-min(n_labels, MAX_NAMED + 1) // _LEGEND_ROWS), height + 0.4


def map_png(labels: Labels, title: str) -> bytes:
    """Return the map with its legend as a PNG file."""

    def draw(figure: Any) -> None:
        LabelMapDisplay.from_predictions(labels, ax=figure.subplots()).ax_.set_title(title)

    return style.png(draw, map_size(labels.shape, int(labels.max()) + 1), dpi=150)


class SpectraDisplay(style.Display):
    """Mean spectrum of each cluster, and the band of one standard deviation around it.

    Parameters
    ----------
    mean, spread : arrays of shape (n_clusters, n_bands)
    wavelengths : array of shape (n_bands,), or None to count bands
    unit : of the wavelengths
    """

    _figsize = (7.2, 4.4)

    def __init__(self, mean: Array, spread: Array, wavelengths: Array | None = None, unit: str = "") -> None:
        self.mean, self.spread, self.wavelengths, self.unit = mean, spread, wavelengths, unit

    @classmethod
    def from_image(cls, found: Any, *, ax: Any = None) -> Self:
        """Draw the clusters that :func:`subspaces.cluster_image` found."""
        mean, spread = found.spectra()
        return cls(mean, spread, found.cube.wavelengths, found.cube.unit).plot(ax)

    def _draw(self, ax: Any, **keywords: Any) -> None:
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
        ax.legend(ncols=-(-len(self.mean) // _LEGEND_ROWS), **style.BESIDE)


class TracksDisplay(style.Display):
    """Tracks of moving samples, one colour for each cluster; frames in which a sample was not seen are gaps."""

    _figsize = (7.2, 5.8)

    def __init__(self, tracks: Array, labels: Labels, names: list[str]) -> None:
        self.tracks, self.labels, self.names = tracks, labels, names

    @classmethod
    def from_predictions(cls, X: ArrayLike, labels: ArrayLike, *, ax: Any = None, **keywords: Any) -> Self:
        """Draw tracks, one row each: x and y of the first frame, then of the second; NaN where not seen."""
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] < 2 or rows.shape[1] % 2:
            raise ValueError(f"X must have two columns for each frame, x and y; got the shape {rows.shape}.")
        codes, names = parts.checked_labels(labels, len(rows))
        return cls(rows.reshape(len(rows), -1, 2), codes, names).plot(ax, **keywords)

    def _draw(self, ax: Any, **keywords: Any) -> None:
        """Draw each track as a line that ends in a dot, y downwards as in a picture; many tracks have small dots."""
        from matplotlib.collections import LineCollection

        n, n_frames, _ = self.tracks.shape
        low, high = np.nanmin(self.tracks, axis=(0, 1)), np.nanmax(self.tracks, axis=(0, 1))
        margin = 0.04 * max(float((high - low).max()), np.finfo(np.float64).tiny)
        ax.set(xlim=(low[0] - margin, high[0] + margin), ylim=(high[1] + margin, low[1] - margin))
        ax.set(aspect="equal", xticks=[], yticks=[])
        seen = ~np.isnan(self.tracks[:, :, 0])
        last = n_frames - 1 - seen[:, ::-1].argmax(axis=1)
        dots, size = self.tracks[np.arange(n), last], float(np.clip(3000 / n, 3, 22))
        for cluster, name in enumerate(self.names):
            inside = self.labels == cluster
            own, color = self.tracks[inside], style.OKABE_ITO[cluster % len(style.OKABE_ITO)]
            ax.plot([], [], color=color, linewidth=2.5, label=f"{name}: {counted(len(own), 'track')}")
            look = {"colors": color, "linewidths": 0.8, "alpha": 0.65, **keywords}
            segments = np.stack([own[:, :-1], own[:, 1:]], axis=2).reshape(-1, 2, 2)
            ax.add_collection(LineCollection(segments[~np.isnan(segments).any(axis=(1, 2))], **look), autolim=False)
            marker = style.MARKERS[cluster % len(style.MARKERS)]
            ax.scatter(*dots[inside].T, s=size, color=color, marker=marker, linewidths=0, zorder=3)
        ax.legend(**style.BESIDE)
        style.caption(ax, f"{n} tracks through {n_frames} frames; a dot where one ends")


def tracks_png(X: ArrayLike, labels: ArrayLike) -> bytes:
    """Return the drawing of tracks as a PNG file."""
    draw = partial(TracksDisplay.from_predictions, X, labels)
    return style.png(lambda figure: draw(ax=figure.subplots()), TracksDisplay._figsize, dpi=150)
