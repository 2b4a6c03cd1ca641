"""Contents of each cluster: its most typical members as images, or its mean profile with a band."""

from __future__ import annotations

import base64
import io
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from subspaces.inspection.plots import parts, style
from subspaces.inspection.plots.layout import ranks_within, typicality
from subspaces.utils.types import Array, Data, Labels

_MAX_PROFILE = 400  # features of a profile that a small picture can show


class GalleryDisplay(style.Display):
    """One cell per cluster: typical members side by side (images), or the mean and the middle 80 % of every feature.

    Members come most typical first: by the cosine of their row of the spectral embedding with the cluster's mean row,
    or without an embedding by their distance from the cluster's mean.

    Attributes
    ----------
    members : the shown samples of each cluster
    images : of these, for each cluster (n_shown, height, width) or (n_shown, height, width, 3) in [0, 1], or None
    profiles : (k, 3, m), lower end, mean and upper end of each cluster's band, or None where there are images
    """

    def __init__(
        self,
        members: list[Labels],
        sizes: Labels,
        names: list[str],
        images: list[Array] | None = None,
        profiles: Array | None = None,
    ) -> None:
        self.members, self.sizes, self.names = members, sizes, names
        self.images, self.profiles = images, profiles
        self._cell = (2.6, 1.15)  # width and height of a cluster's cell in heights of an image; the number at the left
        if images is not None:
            height, width = images[0].shape[1:3]
            self._cell = (1.0 + max(map(len, images)) * (width + _gap(width)) / height, 1.1)
        self._n_columns = _n_columns(len(names), self._cell[0] / self._cell[1])
        self._n_rows = -(-len(names) // self._n_columns)
        width, height = self._n_columns * self._cell[0], self._n_rows * self._cell[1]
        scale = min(13 / width, 9 / height, 0.8)
        self._figsize = (max(4.0, scale * width), 0.8 + scale * height)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        image_shape: tuple[int, ...] | None = None,
        n_shown: int = 6,
        ax: Any = None,
    ) -> Self:
        """Draw from a fitted estimator, pipeline or search.

        Left out, X are the samples that the estimator kept. `image_shape` is (height, width) or (height, width, 3)
        where samples are images; `n_shown` of each cluster are drawn.
        """
        clusterer = parts.clusterer_of(estimator)
        points = parts.kept_points(clusterer) if X is None else X
        if points is None:
            problem = "does not keep the samples it was fitted on: give them as the argument X."
            raise ValueError(f"{type(estimator).__name__} {problem}")
        shape = image_shape if image_shape is not None else getattr(clusterer, "image_shape_", None)
        few = len(clusterer.labels_) <= parts.MANY_POINTS
        embedding = getattr(clusterer, "embedding_" if few else "_embedding", None)
        shown: dict[str, Any] = {"image_shape": shape, "n_shown": n_shown, "ax": ax}
        return cls.from_predictions(points, clusterer.labels_, embedding=embedding, **shown)

    @classmethod
    def from_predictions(
        cls,
        X: Any,
        labels: ArrayLike,
        *,
        embedding: Array | None = None,
        image_shape: tuple[int, ...] | None = None,
        n_shown: int = 6,
        ax: Any = None,
    ) -> Self:
        """Draw samples and labels of any origin; parameters as in :meth:`from_estimator`."""
        X = X if sparse.issparse(X) else np.asarray(X)
        codes, names = parts.checked_labels(labels, X.shape[0])
        members, sizes = most_typical(X, codes, embedding, n_shown), np.bincount(codes)
        if image_shape is None:
            return cls(members, sizes, names, profiles=profiles_of(X, codes)).plot(ax)
        return cls(members, sizes, names, images=_images(X, members, image_shape)).plot(ax)

    def _draw(self, ax: Any, **keywords: Any) -> None:
        width, height = self._cell
        points = 72 * ax.get_window_extent().height / ax.figure.dpi / (self._n_rows * height)  # per height of an image
        fontsize, right = float(np.clip(0.45 * points, 4, 9)), {"ha": "right", "va": "center"}
        for cluster, name in enumerate(self.names):
            x, y = cluster // self._n_rows * width, cluster % self._n_rows * height
            ax.text(x + 0.82, y + 0.32, name, fontsize=fontsize, fontweight="bold", **right)
            ax.text(x + 0.82, y + 0.74, f"{self.sizes[cluster]:,}", fontsize=0.8 * fontsize, alpha=0.75, **right)
            if self.profiles is not None:
                self._draw_profile(ax, self.profiles[cluster], x + 0.9, y + 0.08)
            elif self.images is not None:
                _draw_strip(ax, self.images[cluster], x + 0.9, y + 0.02)
        ax.set(xlim=(0, self._n_columns * width), ylim=(self._n_rows * height, 0), aspect="equal", xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        ax.set_title("Typical members" if self.images is not None else "Mean and middle 80 % of each feature")
        style.caption(ax, "number and size of each cluster" + (", most typical first" if self.images else ""))

    def _draw_profile(self, ax: Any, profile: Array, x: float, y: float) -> None:
        """Draw mean and band, all clusters on the same scale."""
        assert self.profiles is not None
        least, most, width, height = float(self.profiles.min()), float(self.profiles.max()), 1.6, 1.0
        low, mean, high = y + height * (most - profile) / ((most - least) or 1.0)
        at = x + width * (np.linspace(0, 1, len(mean)) if len(mean) > 1 else np.array([0.5]))
        ax.fill_between(at, low, high, color=style.main_color(ax), alpha=0.25, linewidth=0)
        ax.plot(at, mean, color=style.main_color(ax), linewidth=1, marker="." if len(mean) < 12 else "")


def _draw_strip(ax: Any, images: Array, x: float, y: float) -> None:
    """Draw images side by side from (x, y) on, in heights of an image; gaps let the page through."""
    height, width = images.shape[1:3]
    if images.shape[3:] == (3,):
        images = np.concatenate([images, np.ones((*images.shape[:3], 1))], axis=3)
    strip = np.ma.masked_invalid(side_by_side(images, _gap(width), np.nan if images.ndim == 3 else 0))
    ax.imshow(strip, extent=(x, x + strip.shape[1] / height, y + 1, y), cmap="gray", vmin=0, vmax=1)


def side_by_side(images: Array, gap: int, paper: float = 0) -> Array:
    """Return images of shape (n, height, width, ...) as one, with `gap` columns of `paper` between them."""
    padded = np.pad(images, [(0, 0), (0, 0), (0, gap), *[(0, 0)] * (images.ndim - 3)], constant_values=paper)
    return np.concatenate(list(padded), axis=1)[:, :-gap]


def _gap(width: int) -> int:
    """Return the number of pixels between two images of a strip."""
    return max(1, round(0.06 * width))


def _n_columns(k: int, cell_aspect: float) -> int:
    """Return the number of columns of cells that comes nearest to a page of 4 : 3."""
    return min(range(1, k + 1), key=lambda c: abs(np.log(c * cell_aspect / -(-k // c)) - np.log(4 / 3)))


def most_typical(X: Data, labels: Labels, embedding: Array | None = None, n_shown: int = 6) -> list[Labels]:
    """Return the `n_shown` most typical samples of each cluster, the most typical first."""
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
    return np.split(shown, np.searchsorted(labels[shown], np.arange(1, int(labels.max()) + 1)))


def _images(X: Data, members: list[Labels], shape: tuple[int, ...]) -> list[Array]:
    """Return the members' images in [0, 1], one range for all that are shown."""
    shape = tuple(int(side) for side in shape)
    n_features = int(np.prod(X.shape[1:]))
    if len(shape) not in (2, 3) or int(np.prod(shape)) != n_features or (len(shape) == 3 and shape[2] not in (1, 3, 4)):
        raise ValueError(
            f"image_shape must be (height, width) or (height, width, 3) with {n_features} values in all; got {shape}."
        )
    shape = shape[:2] if shape[2:] == (1,) else shape
    shown = [_rows(X, rows) for rows in members]
    values = np.concatenate(shown)
    low, high = float(values.min()), float(values.max())
    return [((rows - low) / ((high - low) or 1.0)).reshape(-1, *shape) for rows in shown]


def _rows(X: Data, which: Array) -> Array:
    """Return some samples as dense rows."""
    rows: Array = X[which].toarray() if sparse.issparse(X) else X[which]
    return rows.reshape(len(rows), int(np.prod(X.shape[1:])))


def profiles_of(X: Data, labels: Labels) -> Array:
    """Return lower end, mean and upper end of each feature in each cluster; many features are averaged in groups."""
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
    """Return values as grey or colour levels, `low` black and `high` white; what lies beyond is cut off.

    Examples
    --------
    >>> as_bytes(np.array([0.0, 0.5, 1.0, 2.0]), 0.0, 1.0)
    array([  0, 128, 255, 255], dtype=uint8)
    """
    scaled = (np.asarray(values, dtype=np.float64) - low) / max(high - low, 1e-300)
    return np.rint(255 * np.clip(scaled, 0, 1)).astype(np.uint8)


def data_uri(image: Any, kind: str = "png", **options: Any) -> str:
    """Return an image of Pillow, or its bytes, as a data URI; `options` go to Pillow."""
    if isinstance(image, np.ndarray):
        from PIL import Image

        image = Image.fromarray(image)
    stream = io.BytesIO()
    image.save(stream, format=kind, **options)
    return f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode()}"
