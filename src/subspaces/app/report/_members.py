"""The gallery of the report: every cluster with its typical points and, at a click, its members."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from subspaces.app.report._content import Content
from subspaces.app.report._pictures import Pictures
from subspaces.utils.components import mean_and_deviation
from subspaces.utils.types import Array, Labels

GALLERY_BYTES = 3_000_000
"""Room for the gallery of images: with the rest, a page stays below 6 MB."""

MEMBER_BYTES = 145
"""Markup of one member, beside its picture and its name."""

MAX_PROFILES = 1500
PROFILE_POINTS = 48
"""Profiles drawn in all, and points of each."""

N_TYPICAL = 5
SPREAD = 2.5
"""Standard deviations that fit into a profile's height."""


@dataclass(frozen=True)
class Member:
    """One point in the gallery; `image` is a picture as text, or the path of a line where points are no images."""

    index: int
    name: str
    confidence: float
    flagged: bool
    image: str
    remark: str = ""


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


def remark_of(content: Content, i: int) -> str:
    """What a person should know of a label beside its confidence."""
    summary = content.summary
    remarks = ["another cluster suits better"] if is_drawn_away(content)[i] else []
    return "; ".join([*remarks, *(["fits nowhere"] if summary.fits_nowhere[i] else [])])


def is_drawn_away(content: Content) -> Array:
    """Which points are nearer to another cluster than to their own: those with a negative margin."""
    return np.asarray((content.summary.margin < 0) & (content.summary.second_cluster >= 0))


def gallery(content: Content, pictures: Pictures | None = None, share: float = 1.0) -> list[ClusterView]:
    """All clusters, the members of each from the surest to the least sure as far as the page has room.

    `share` is the part of the usual room that may be used.
    """
    summary, has_images = content.summary, pictures is not None
    views = [ClusterView(row) for row in summary.as_rows()]
    orders = [_order(content, c) for c in range(len(views))]
    room = share * GALLERY_BYTES if has_images else int(share * MAX_PROFILES)
    draw = _words(content, views) or _profiles(content, views)
    small, large = draw, draw
    if pictures is not None:
        small, side = pictures.uri, pictures.fitting_side(share * GALLERY_BYTES / 2)
        large = lambda i: pictures.uri(i, side)  # noqa: E731
    # rank by rank over all clusters, so that room is shared fairly
    for rank, c in sorted((rank, c) for c, order in enumerate(orders) for rank in range(len(order))):
        i = int(orders[c][rank])
        member = _member(content, i, large(i))
        card = len(small(i)) if has_images and rank < N_TYPICAL else 0
        room -= len(member.image) + card + len(member.name) + len(member.remark) + MEMBER_BYTES if has_images else 1
        if room < 0:
            break
        views[c].members.append(member)
        if rank < N_TYPICAL:
            views[c].typical.append(_member(content, i, small(i)))
    for view in views:
        view.members = sorted(view.members, key=lambda member: -member.confidence)
    return views


def _member(content: Content, i: int, image: str) -> Member:
    summary = content.summary
    flagged = bool(summary.fits_nowhere[i] or is_drawn_away(content)[i])
    return Member(i, content.name_of(i), float(summary.confidence[i]), flagged, image, remark_of(content, i))


def _order(content: Content, c: int) -> Labels:
    """Members of a cluster: the typical ones, then by confidence."""
    summary = content.summary
    members = np.flatnonzero(summary.labels == summary.clusters[c])
    members = members[np.argsort(-summary.confidence[members], kind="stable")]
    typical = summary.exemplars[c][:N_TYPICAL]
    return np.concatenate([typical, members[~np.isin(members, typical)]])


def centre_and_spread(X: Any) -> tuple[Array, Array]:
    """Mean and standard deviation of every feature, the latter 1 where nothing varies."""
    centre, spread = mean_and_deviation(X)
    return centre, np.where(spread > 0, spread, 1.0)


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
    if content.image_shape is not None:
        return lambda i: ""
    centre, spread = centre_and_spread(content.X)
    for view, label in zip(views, content.summary.clusters, strict=True):
        own = content.X[np.flatnonzero(content.summary.labels == label)]
        mean = (np.asarray(own.mean(axis=0)).ravel() - centre) / spread
        view.path = line(mean)
        if content.feature_names is not None and len(views) > 1:
            strongest = np.argsort(-np.abs(mean), kind="stable")[:3]
            view.traits = [f"{content.feature_names[j]} {mean[j]:+.1f}" for j in strongest]
    return lambda i: line((content.row(i) - centre) / spread)


def line(values: Array) -> str:
    """SVG path of a profile in a box of 100 × 40, the mean of all at half height."""
    n_samples = min(len(values), PROFILE_POINTS)
    parts = np.array_split(np.clip(values, -SPREAD, SPREAD), n_samples)
    heights = [20 - 18 * float(part.mean()) / SPREAD for part in parts]
    if n_samples == 1:
        return f"M0 {heights[0]:.1f}H100"
    steps = np.linspace(0, 100, n_samples)
    return "M" + "L".join(f"{x:.3g} {y:.1f}" for x, y in zip(steps, heights, strict=True))
