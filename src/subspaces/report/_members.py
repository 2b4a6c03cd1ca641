"""The gallery of the report: every cluster with its typical points and, at a click, its members."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from subspaces.numerics.components import dense_rows, mean_and_deviation
from subspaces.numerics.types import Array, Labels
from subspaces.plots.gallery import as_bytes, data_uri
from subspaces.report._content import Content

SIDE = 64
"""Longest side of a thumbnail in pixels."""

GALLERY_BYTES = 3_000_000
"""Room for the gallery of images: with the rest, a page stays below 6 MB."""

MEMBER_BYTES = 220
"""Markup of one member, beside its picture and its name (which is there twice)."""

MAX_PROFILES = 1500
PROFILE_POINTS = 48
"""Profiles drawn in all, and points of each."""

N_TYPICAL = 5
SPREAD = 2.5
"""Standard deviations that fit into a profile's height."""


@dataclass(frozen=True)
class Member:
    """One point in the gallery; `image` is a thumbnail as text, or the path of a line where points are no images."""

    index: int
    name: str
    confidence: float
    flagged: bool
    image: str


@dataclass
class ClusterView:
    """One cluster in the gallery: its mean profile, and what sets it apart (for tables)."""

    row: dict[str, Any]
    members: list[Member] = field(default_factory=list)
    typical: list[Member] = field(default_factory=list)
    path: str = ""
    traits: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    @property
    def n_hidden(self) -> int:
        """Members that found no room on the page."""
        return int(self.row["size"]) - len(self.members)


def gallery(content: Content, share: float = 1.0) -> list[ClusterView]:
    """All clusters, the members of each from the surest to the least sure as far as the page has room.

    `share` is the part of the usual room that may be used.
    """
    summary, has_images = content.summary, content.image_shape is not None
    views = [ClusterView(row) for row in summary.as_rows()]
    orders = [_order(content, c) for c in range(len(views))]
    room = share * GALLERY_BYTES if has_images else int(share * MAX_PROFILES)
    draw = _thumbnails(content) if has_images else _words(content, views) or _profiles(content, views)
    # rank by rank over all clusters, so that room is shared fairly
    for rank, c in sorted((rank, c) for c, order in enumerate(orders) for rank in range(len(order))):
        i = int(orders[c][rank])
        flagged, image = bool(summary.fits_nowhere[i]), draw(i)
        member = Member(i, content.name_of(i), float(summary.confidence[i]), flagged, image)
        shown = 2 if rank < N_TYPICAL else 1  # on the card, and among the members
        room -= shown * len(image) + 2 * len(member.name) + MEMBER_BYTES if has_images else 1
        if room < 0:
            break
        views[c].members.append(member)
    for view in views:
        view.typical = view.members[:N_TYPICAL]
        view.members = sorted(view.members, key=lambda member: -member.confidence)
    return views


def _order(content: Content, c: int) -> Labels:
    """Members of a cluster: the typical ones, then by confidence."""
    summary = content.summary
    members = np.flatnonzero(summary.labels == summary.clusters[c])
    members = members[np.argsort(-summary.confidence[members], kind="stable")]
    typical = summary.exemplars[c][:N_TYPICAL]
    return np.concatenate([typical, members[~np.isin(members, typical)]])


def _thumbnails(content: Content) -> Callable[[int], str]:
    """What draws an image as a small file inside the page: WebP, whose header is a tenth of a JPEG's, else PNG."""
    from PIL import Image, features

    from subspaces.io.image_files import thumbnail

    assert content.image_shape is not None
    options: dict[str, Any] = {"kind": "webp", "quality": 70, "method": 4} if features.check("webp") else {}
    pixels = content.X if content.pixels is None else content.pixels
    sample = pixels[:: max(1, len(pixels) // 1000)]
    low, high = float(sample.min()), float(sample.max())

    def draw(i: int) -> str:
        if content.files is not None:
            with suppress(Exception):  # gone or changed since it was read: what was clustered is still here
                return data_uri(thumbnail(content.files[i], SIDE), **options)
        image = Image.fromarray(as_bytes(pixels[i], low, high).reshape(content.image_shape))
        image.thumbnail((SIDE, SIDE))
        return data_uri(image, **options)

    return draw


def _words(content: Content, views: list[ClusterView]) -> Callable[[int], str] | None:
    """Texts need no drawing: the clusters get the words that make them."""
    if content.texts is None:
        return None
    for view, row in zip(views, content.document.get("clusters", ()), strict=False):
        view.words = row.get("words", [])
    return lambda i: ""


def _profiles(content: Content, views: list[ClusterView]) -> Callable[[int], str]:
    """What draws a row of a table as a small line: features across, standard deviations from the mean of all up.

    The clusters get their mean profile and, where features have names, the three that set them apart most.
    """
    centre, spread = mean_and_deviation(content.X)
    spread = np.where(spread > 0, spread, 1.0)
    for view, label in zip(views, content.summary.clusters, strict=True):
        members = np.flatnonzero(content.summary.labels == label)
        mean = (np.asarray(content.X[members].mean(axis=0)).ravel() - centre) / spread
        view.path = line(mean)
        if content.feature_names is not None:
            strongest = np.argsort(-np.abs(mean), kind="stable")[:3]
            view.traits = [f"{content.feature_names[j]} {mean[j]:+.1f}" for j in strongest]
    return lambda i: line((dense_rows(content.X[[i]])[0] - centre) / spread)


def line(values: Array) -> str:
    """SVG path of a profile in a box of 100 × 40, the mean of all at half height."""
    n_points = min(len(values), PROFILE_POINTS)
    parts = np.array_split(np.clip(values, -SPREAD, SPREAD), n_points)
    heights = [20 - 18 * float(part.mean()) / SPREAD for part in parts]
    if n_points == 1:
        return f"M0 {heights[0]:.1f}H100"
    steps = np.linspace(0, 100, n_points)
    return "M" + "L".join(f"{x:.3g} {y:.1f}" for x, y in zip(steps, heights, strict=True))
