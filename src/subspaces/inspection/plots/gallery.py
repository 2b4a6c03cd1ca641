"""What is in each cluster: its most typical members as images, or its mean profile with a band."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from subspaces.inspection.plots import parts, style
from subspaces.inspection.plots.layout import ranks_within, typicality
from subspaces.utils.types import Array, Data, Labels

_MAX_PROFILE = 400  # features of a profile that a small picture can show
_FRAME = "#d55e00"  # vermillion of Okabe and Ito, told apart with any colour vision


class GalleryDisplay:
    """One cell per cluster: typical members side by side (images), or the mean and the middle 80 % of every feature.

    Members come most typical first: by the cosine of their row of the spectral embedding with the cluster's mean row,
    or without an embedding by their distance from the cluster's mean.

    Parameters
    ----------
    members : the shown points of each cluster, most typical first
    sizes : points in each cluster
    names : name of each cluster
    images : array of shape (n_shown, height, width) or (n_shown, height, width, 3) in [0, 1]; members index it by rank
        of appearance, or None
    profiles : array of shape (k, 3, m): lower end, mean and upper end of the band; None for images
    framed : for each cluster whether each of its shown images gets a frame, or None

    Attributes
    ----------
    ax_, figure_ : of Matplotlib
    """

    def __init__(
        self,
        members: list[Labels],
        sizes: Labels,
        names: list[str],
        images: list[Array] | None = None,
        profiles: Array | None = None,
        framed: list[Array] | None = None,
    ) -> None:
        self.members, self.sizes, self.names = members, sizes, names
        self.images, self.profiles, self.framed = images, profiles, framed

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        image_shape: tuple[int, ...] | None = None,
        exemplars: Sequence[ArrayLike] | None = None,
        n_shown: int = 6,
        ax: Any = None,
    ) -> Self:
        """Draw from a fitted estimator, pipeline or search.

        Parameters
        ----------
        estimator : fitted
        X : the points; left out, those the estimator kept
        image_shape : (height, width) or (height, width, 3), where the points are images
        exemplars : indices of each cluster's members to show, in the order of the labels; left out, the most typical
        n_shown : images of each cluster
        ax : axes to draw into
        """
        clusterer = parts.clusterer_of(estimator)
        shape = image_shape if image_shape is not None else getattr(clusterer, "image_shape_", None)
        few = len(clusterer.labels_) <= parts.MANY_POINTS
        embedding = getattr(clusterer, "embedding_" if few else "_embedding", None)
        shown: dict[str, Any] = {"image_shape": shape, "exemplars": exemplars, "n_shown": n_shown, "ax": ax}
        points = parts.points_of(estimator, X)
        return cls.from_predictions(points, clusterer.labels_, embedding=embedding, **shown)

    @classmethod
    def from_predictions(
        cls,
        X: Any,
        labels: ArrayLike,
        *,
        embedding: Array | None = None,
        image_shape: tuple[int, ...] | None = None,
        exemplars: Sequence[ArrayLike] | None = None,
        n_shown: int = 6,
        framed: ArrayLike | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw points and labels of any origin; parameters as in :meth:`from_estimator`.

        `framed` says of each point whether its image gets a frame: the wrong ones, say.
        """
        X = X if sparse.issparse(X) else np.asarray(X)
        codes, names = parts.checked_labels(labels, X.shape[0])
        if exemplars is None:
            members = most_typical(X, codes, embedding, n_shown)
        elif len(exemplars) == len(names):
            members = [np.asarray(rows, dtype=np.intp) for rows in exemplars]
        else:
            wanted = f"one entry for each of the {len(names)} clusters"
            raise ValueError(f"exemplars must have {wanted}; got {len(exemplars)}.")
        sizes = np.bincount(codes)
        if image_shape is None:
            return cls(members, sizes, names, profiles=profiles_of(X, codes)).plot(ax)
        marks = None if framed is None else [np.asarray(framed, dtype=bool)[rows] for rows in members]
        return cls(members, sizes, names, images=_images(X, members, image_shape), framed=marks).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        k = len(self.names)
        width, height = self._cell_size()
        n_columns = _n_columns(k, width / height)
        n_rows = -(-k // n_columns)
        scale = min(13 / (n_columns * width), 9 / (n_rows * height), 0.8)
        ax = style.axes_of(ax, (max(4.0, scale * n_columns * width), 0.8 + scale * n_rows * height))
        points = 72 * ax.get_window_extent().height / ax.figure.dpi / (n_rows * height)  # for the height of an image
        for cluster in range(k):
            row, column = cluster % n_rows, cluster // n_rows
            self._draw_cell(ax, cluster, column * width, row * height, float(np.clip(0.45 * points, 4, 9)))
        ax.set(xlim=(0, n_columns * width), ylim=(n_rows * height, 0), aspect="equal", xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        ax.set_title("Typical members" if self.images is not None else "Mean and middle 80 % of each feature")
        style.caption(ax, "number and size of each cluster" + (", most typical first" if self.images else ""))
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _cell_size(self) -> tuple[float, float]:
        """Width and height of a cluster's cell, in heights of an image; room for the number on the left."""
        if self.images is None:
            return 2.6, 1.15
        first = next(images for images in self.images if len(images))
        most = max(map(len, self.images))
        height, width = first.shape[1:3]
        return 1.0 + most * (width + _gap(width)) / height, 1.1

    def _draw_cell(self, ax: Any, cluster: int, x: float, y: float, fontsize: float) -> None:
        right = {"ha": "right", "va": "center"}
        ax.text(x + 0.82, y + 0.32, self.names[cluster], fontsize=fontsize, fontweight="bold", **right)
        ax.text(x + 0.82, y + 0.74, f"{self.sizes[cluster]:,}", fontsize=0.8 * fontsize, alpha=0.75, **right)
        if self.images is None:
            self._draw_profile(ax, cluster, x + 0.9, y + 0.08, 1.6, 1.0)
        elif len(self.images[cluster]):
            strip = _strip(self.images[cluster])
            extent = (x + 0.9, x + 0.9 + strip.shape[1] / strip.shape[0], y + 1.02, y + 0.02)
            ax.imshow(strip, extent=extent, cmap="gray", vmin=0, vmax=1)
            self._draw_frames(ax, cluster, x + 0.9, y + 0.02)

    def _draw_frames(self, ax: Any, cluster: int, x: float, y: float) -> None:
        """Frames around the images of a strip that begins at (x, y), in heights of an image."""
        if self.framed is None or self.images is None:
            return
        from matplotlib.patches import Rectangle

        height, width = self.images[cluster].shape[1:3]
        for i in np.flatnonzero(self.framed[cluster]):
            corner = (x + i * (width + _gap(width)) / height, y)
            ax.add_patch(Rectangle(corner, width / height, 1, fill=False, edgecolor=_FRAME, linewidth=2))

    def _draw_profile(self, ax: Any, cluster: int, x: float, y: float, width: float, height: float) -> None:
        """Mean and band, all clusters on the same scale."""
        assert self.profiles is not None
        least, most = float(self.profiles.min()), float(self.profiles.max())
        low, mean, high = y + height * (most - self.profiles[cluster]) / ((most - least) or 1.0)
        at = x + width * (np.linspace(0, 1, len(mean)) if len(mean) > 1 else np.array([0.5]))
        ax.fill_between(at, low, high, color=style.main_color(ax), alpha=0.25, linewidth=0)
        ax.plot(at, mean, color=style.main_color(ax), linewidth=1, marker="." if len(mean) < 12 else "")
        if least < 0 < most:
            zero = y + height * most / (most - least)
            ax.plot([x, x + width], [zero, zero], color=style.foreground(ax), alpha=0.25, linewidth=0.5)


def _strip(images: Array) -> Array:
    """Images side by side, with gaps through which the page is seen: masked, or transparent where there is colour."""
    height, width = images.shape[1:3]
    gap = _gap(width)
    if images.ndim == 3:
        row = np.full((height, len(images) * (width + gap) - gap), np.nan)
    else:
        row = np.zeros((height, len(images) * (width + gap) - gap, 4))
    for i, image in enumerate(images):
        place = slice(i * (width + gap), i * (width + gap) + width)
        if image.ndim == 2:
            row[:, place] = image
        else:
            row[:, place, : image.shape[2]] = image
            row[:, place, 3] = 1 if image.shape[2] == 3 else image[..., 3]
    return np.ma.masked_invalid(row)


def _gap(width: int) -> int:
    """Pixels between two images of a strip."""
    return max(1, round(0.06 * width))


def _n_columns(k: int, cell_aspect: float) -> int:
    """Columns of cells that come nearest to a page of 4 : 3."""
    return min(range(1, k + 1), key=lambda c: abs(np.log(c * cell_aspect / -(-k // c)) - np.log(4 / 3)))


def most_typical(X: Data, labels: Labels, embedding: Array | None = None, n_shown: int = 6) -> list[Labels]:
    """The `n_shown` most typical points of each cluster, the first most."""
    if embedding is not None and len(embedding) == len(labels):
        score = typicality(embedding, labels)
    else:
        score = np.empty(len(labels))
        for cluster in range(int(labels.max()) + 1):
            rows = _rows(X, labels == cluster)
            score[labels == cluster] = -np.square(rows - rows.mean(axis=0)).sum(axis=1)
    rank = ranks_within(labels, score)
    shown = np.flatnonzero(rank < n_shown)
    shown = shown[np.lexsort((rank[shown], labels[shown]))]
    bounds = np.searchsorted(labels[shown], np.arange(1, int(labels.max()) + 1))
    return np.split(shown, bounds)


def _images(X: Data, members: list[Labels], shape: tuple[int, ...]) -> list[Array]:
    """The members' images in [0, 1], one range for all that are shown."""
    shape = tuple(int(side) for side in shape)
    n_features = int(np.prod(X.shape[1:]))
    if len(shape) not in (2, 3) or int(np.prod(shape)) != n_features or (len(shape) == 3 and shape[2] not in (1, 3, 4)):
        raise ValueError(
            f"image_shape must be (height, width) or (height, width, 3) with {n_features} values in all; got {shape}."
        )
    shape = shape[:2] if shape[2:] == (1,) else shape
    shown = [_rows(X, rows) for rows in members]
    some = [rows for rows in shown if rows.size]
    low, high = min(float(rows.min()) for rows in some), max(float(rows.max()) for rows in some)
    return [((rows - low) / ((high - low) or 1.0)).reshape(-1, *shape) for rows in shown]


def _rows(X: Data, which: Array) -> Array:
    """Some points as rows of numbers."""
    rows: Array = X[which].toarray() if sparse.issparse(X) else X[which]
    return rows.reshape(len(rows), int(np.prod(X.shape[1:])))


def profiles_of(X: Data, labels: Labels) -> Array:
    """Lower end, mean and upper end of each feature in each cluster; many features are averaged in groups."""
    k, m = int(labels.max()) + 1, int(np.prod(X.shape[1:]))
    size = min(m, _MAX_PROFILE)
    group = np.arange(m) * size // m
    out = np.empty((k, 3, size))
    for cluster in range(k):
        rows = _rows(X, labels == cluster)
        if size < m:
            rows = np.add.reduceat(rows, np.searchsorted(group, np.arange(size)), axis=1) / np.bincount(group)
        out[cluster, 0], out[cluster, 2] = np.quantile(rows, (0.1, 0.9), axis=0)
        out[cluster, 1] = rows.mean(axis=0)
    return out


def as_bytes(values: Array, low: float, high: float) -> Array:
    """Values as grey or colour levels, `low` black and `high` white; what lies beyond is cut off.

    Examples
    --------
    >>> as_bytes(np.array([0.0, 0.5, 1.0, 2.0]), 0.0, 1.0)
    array([  0, 128, 255, 255], dtype=uint8)
    """
    scaled = (np.asarray(values, dtype=np.float64) - low) / max(high - low, 1e-300)
    return np.rint(255 * np.clip(scaled, 0, 1)).astype(np.uint8)


def data_uri(image: Any, kind: str = "png", **options: Any) -> str:
    """An image of Pillow, or its bytes, as text that stands in a page; `options` go to Pillow."""
    if isinstance(image, np.ndarray):
        from PIL import Image

        image = Image.fromarray(image)
    stream = io.BytesIO()
    image.save(stream, format=kind, **options)
    return f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode()}"
