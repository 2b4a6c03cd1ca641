"""Tracks of moving points, coloured by the motion they were given to: one picture, or a film."""

from __future__ import annotations

from io import BytesIO
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from subspaces.inspection.plots import parts, style
from subspaces.utils.types import Array, Labels

_DOTS = 3000
"""Sum of dots' areas, in points, over their number: many tracks have small ones."""
_TAIL = 6
_DPI = 100


class TracksDisplay:
    """Tracks through a film, one colour for each cluster; frames in which a point was not seen are gaps.

    Parameters
    ----------
    tracks : array of shape (n, n_frames, 2), NaN where a point was not seen
    labels : codes 0 ... k − 1
    names : name of each cluster

    Attributes
    ----------
    ax_, figure_ : of Matplotlib
    """

    def __init__(self, tracks: Array, labels: Labels, names: list[str]) -> None:
        self.tracks, self.labels, self.names = tracks, labels, names

    @classmethod
    def from_predictions(cls, X: ArrayLike, labels: ArrayLike, *, ax: Any = None, **keywords: Any) -> Self:
        """Draw tracks, one row each: x and y of the first frame, then of the second; NaN where not seen."""
        return cls.of(X, labels).plot(ax, **keywords)

    @classmethod
    def of(cls, X: ArrayLike, labels: ArrayLike) -> Self:
        """The display without a drawing, for :meth:`film`."""
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] < 2 or rows.shape[1] % 2:
            raise ValueError(f"X must have two columns for each frame, x and y; got the shape {rows.shape}.")
        codes, names = parts.checked_labels(labels, len(rows))
        return cls(rows.reshape(len(rows), -1, 2), codes, names)

    def plot(self, ax: Any = None, **keywords: Any) -> Self:
        """Draw all frames: each track a line that ends in a dot; `keywords` go to Matplotlib's ``LineCollection``."""
        ax = self._prepared(ax)
        self._draw(ax, self.tracks, _last_seen(self.tracks), keywords)
        style.caption(ax, f"{len(self.tracks)} tracks through {self.tracks.shape[1]} frames; a dot where one ends")
        return self

    def film(self, *, seconds: float = 0.1) -> bytes:
        """The film as an animated GIF: in each frame the points and their last few places."""
        plt = style.pyplot()
        from PIL import Image

        figure, ax = plt.subplots(figsize=(6.4, 5.2), dpi=_DPI, layout="constrained")
        pictures = []
        try:
            self._prepared(ax)
            for frame in range(self.tracks.shape[1]):
                for artist in [*ax.collections]:
                    artist.remove()
                self._draw(ax, self.tracks[:, max(0, frame - _TAIL) : frame + 1], self.tracks[:, frame], {})
                ax.set_title(f"frame {frame + 1} of {self.tracks.shape[1]}", fontsize="medium")
                figure.canvas.draw()
                pixels = np.asarray(figure.canvas.buffer_rgba())[:, :, :3]
                pictures.append(Image.fromarray(pixels).quantize(64, dither=Image.Dither.NONE))
        finally:
            plt.close(figure)
        stream = BytesIO()
        duration = round(1000 * seconds)
        pictures[0].save(stream, "GIF", save_all=True, append_images=pictures[1:], duration=duration, loop=0)
        return stream.getvalue()

    def picture(self) -> bytes:
        """The drawing of :meth:`plot` as a PNG."""
        plt = style.pyplot()
        figure, ax = plt.subplots(figsize=(7.2, 5.8), layout="constrained")
        stream = BytesIO()
        try:
            self.plot(ax)
            figure.savefig(stream, format="png", dpi=1.5 * _DPI)
        finally:
            plt.close(figure)
        return stream.getvalue()

    def _prepared(self, ax: Any) -> Any:
        """Axes of a picture: y downwards, one scale, room for every frame, and a line in the legend per cluster."""
        ax = style.axes_of(ax, (7.2, 5.8))
        low, high = np.nanmin(self.tracks, axis=(0, 1)), np.nanmax(self.tracks, axis=(0, 1))
        margin = 0.04 * max(float((high - low).max()), np.finfo(np.float64).tiny)
        ax.set(xlim=(low[0] - margin, high[0] + margin), ylim=(high[1] + margin, low[1] - margin))
        ax.set(aspect="equal", xticks=[], yticks=[])
        for cluster, name in enumerate(self.names):
            n = int((self.labels == cluster).sum())
            ax.plot([], [], color=self._color(cluster), linewidth=2.5, label=f"{name}: {n} track{'s' * (n != 1)}")
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def _draw(self, ax: Any, tracks: Array, dots: Array, keywords: dict[str, Any]) -> None:
        """Pieces of the tracks as lines, and a dot for each."""
        from matplotlib.collections import LineCollection

        size = float(np.clip(_DOTS / len(self.tracks), 3, 22))
        for cluster in range(len(self.names)):
            own, color = tracks[self.labels == cluster], self._color(cluster)
            look = {"colors": color, "linewidths": 0.8, "alpha": 0.65, **keywords}
            segments = np.stack([own[:, :-1], own[:, 1:]], axis=2).reshape(-1, 2, 2)
            ax.add_collection(LineCollection(segments[~np.isnan(segments).any(axis=(1, 2))], **look), autolim=False)
            marker = style.MARKERS[cluster % len(style.MARKERS)]
            ax.scatter(*dots[self.labels == cluster].T, s=size, color=color, marker=marker, linewidths=0, zorder=3)

    def _color(self, cluster: int) -> str:
        return style.OKABE_ITO[cluster % len(style.OKABE_ITO)]


def _last_seen(tracks: Array) -> Array:
    """Where each track ends, shape (n, 2); NaN where it is never seen."""
    seen = ~np.isnan(tracks[:, :, 0])
    last = seen.shape[1] - 1 - seen[:, ::-1].argmax(axis=1)
    return np.asarray(tracks[np.arange(len(tracks)), last])
