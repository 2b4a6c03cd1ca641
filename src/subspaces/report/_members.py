"""The gallery of the report: every cluster with its typical points and, at a click, its members."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from subspaces.numerics.types import Array, Labels
from subspaces.plots.thumbnails import as_bytes, data_uri
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


@dataclass
class Member:
    """One point in the gallery."""

    index: int
    name: str
    confidence: float
    flagged: bool
    image: str = ""
    path: str = ""


@dataclass
class ClusterView:
    """One cluster in the gallery."""

    row: dict[str, Any]
    members: list[Member] = field(default_factory=list)
    typical: list[Member] = field(default_factory=list)
    path: str = ""
    """Mean profile."""
    traits: list[str] = field(default_factory=list)
    """What sets it apart, for tables."""

    @property
    def n_hidden(self) -> int:
        """Members that found no room on the page."""
        return int(self.row["size"]) - len(self.members)


def gallery(content: Content, share: float = 1.0) -> list[ClusterView]:
    """All clusters, the members of each from the surest to the least sure as far as the page has room.

    `share` is the part of the usual room that may be used.
    """
    summary = content.summary
    views = [ClusterView(row) for row in summary.as_rows()]
    orders = [_order(content, c) for c in range(len(views))]
    pictured = (_Profiles if content.image_shape is None else _Thumbnails)(content, share)
    # rank by rank over all clusters, so that room is shared fairly
    ranks = sorted((rank, c) for c, order in enumerate(orders) for rank in range(len(order)))
    for rank, c in ranks:
        i = int(orders[c][rank])
        member = Member(i, content.name_of(i), float(summary.confidence[i]), bool(summary.fits_nowhere[i]))
        if not pictured.add(member, 2 if rank < N_TYPICAL else 1):
            break
        views[c].members.append(member)
    for view in views:
        view.typical = view.members[:N_TYPICAL]
        view.members = sorted(view.members, key=lambda member: -member.confidence)
    _describe(content, views)
    return views


def _order(content: Content, c: int) -> Labels:
    """Members of a cluster: the typical ones, then by confidence."""
    summary = content.summary
    members = np.flatnonzero(summary.labels == summary.clusters[c])
    members = members[np.argsort(-summary.confidence[members], kind="stable")]
    typical = summary.exemplars[c][:N_TYPICAL]
    return np.concatenate([typical, members[~np.isin(members, typical)]])


class _Thumbnails:
    """Images, as small files inside the page."""

    def __init__(self, content: Content, share: float) -> None:
        self.content, self.room = content, share * GALLERY_BYTES
        sample = content.X[:: max(1, len(content.X) // 1000)]
        self.low, self.high = float(sample.min()), float(sample.max())

    def add(self, member: Member, times: int) -> bool:
        """Give the member its picture, which is shown so many times; False when there is no more room."""
        member.image = self._encode(member.index)
        self.room -= times * len(member.image) + 2 * len(member.name) + MEMBER_BYTES
        return self.room >= 0

    def _encode(self, i: int) -> str:
        files = self.content.files
        if files is not None:
            from subspaces.io.image_files import thumbnail

            try:
                return _data_url(thumbnail(files[i], SIDE))
            except Exception:  # gone or changed since it was read: what was clustered is still here
                pass
        from PIL import Image

        assert self.content.image_shape is not None
        levels = as_bytes(self.content.X[i], self.low, self.high)
        image = Image.fromarray(levels.reshape(self.content.image_shape))
        image.thumbnail((SIDE, SIDE))
        return _data_url(image)


def _data_url(image: Any) -> str:
    """An image as text: WebP, whose header is a tenth of a JPEG's, or PNG where Pillow cannot write it."""
    from PIL import features

    return data_uri(image, "webp", quality=70, method=4) if features.check("webp") else data_uri(image)


class _Profiles:
    """Rows of a table, as small lines: features across, standard deviations from the mean of all up."""

    def __init__(self, content: Content, share: float) -> None:
        self.X, self.n_left = content.X, int(share * MAX_PROFILES)
        self.centre, self.spread = column_scale(content.X)

    def add(self, member: Member, times: int) -> bool:
        """Give the member its line; False when there is no more room."""
        member.path = line((self.X[member.index] - self.centre) / self.spread)
        self.n_left -= 1
        return self.n_left >= 0


def column_scale(X: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of every feature; 1 for a feature that is constant."""
    spread = np.asarray(X.std(axis=0), dtype=np.float64)
    return np.asarray(X.mean(axis=0), dtype=np.float64), np.where(spread > 0, spread, 1.0)


def line(values: Array) -> str:
    """SVG path of a profile in a box of 100 × 40, the mean of all at half height."""
    n_points = min(len(values), PROFILE_POINTS)
    parts = np.array_split(np.clip(values, -SPREAD, SPREAD), n_points)
    heights = [20 - 18 * float(part.mean()) / SPREAD for part in parts]
    if n_points == 1:
        return f"M0 {heights[0]:.1f}H100"
    steps = np.linspace(0, 100, n_points)
    return "M" + "L".join(f"{x:.3g} {y:.1f}" for x, y in zip(steps, heights, strict=True))


def _describe(content: Content, views: list[ClusterView]) -> None:
    """Mean profile of each cluster and, where features have names, the three that set it apart most."""
    if content.image_shape is not None:
        return
    centre, spread = column_scale(content.X)
    for view, label in zip(views, content.summary.clusters, strict=True):
        mean = (content.X[content.summary.labels == label].mean(axis=0) - centre) / spread
        view.path = line(mean)
        if content.feature_names is not None:
            strongest = np.argsort(-np.abs(mean), kind="stable")[:3]
            view.traits = [f"{content.feature_names[j]} {mean[j]:+.1f}" for j in strongest]
