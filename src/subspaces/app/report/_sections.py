"""Sections of the report that show samples: the gallery, the doubtful ones, the map and the tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from subspaces.app.groups import unlike
from subspaces.app.palette import colors_of
from subspaces.app.pictures import SampleImages
from subspaces.app.report._content import Content, attempted
from subspaces.engine.confidence import UNSURE
from subspaces.inspection.plots.gallery import data_uri
from subspaces.inspection.plots.layout import cluster_map, cluster_means
from subspaces.inspection.plots.tree import TreeDisplay, layers_sentence
from subspaces.selection.result import TOO_FEW
from subspaces.spectral.hierarchy import ClusterTree
from subspaces.utils.components import dense_rows, mean_and_deviation
from subspaces.utils.types import Array, Labels

LARGE = 20_000
"""Samples above which nothing is drawn that needs eigenvectors the fit did not compute."""

GALLERY_BYTES = 3_000_000
"""Room for the gallery of images: with the rest, a page stays below 6 MB."""

MEMBER_BYTES = 145
"""Markup of one member, beside its image and its name."""

MAX_PROFILES = 1500
"""Profiles drawn in all."""

N_TYPICAL, N_DIFFERENT = 5, 4
_COMPARED = 200
"""Members among which the most different are looked for."""
MOST_DOUBTFUL, LEAST_SURE = 48, 6
"""Samples in the section of doubtful ones (the table has the others), and where none is doubtful."""

SMALL = 96
"""Longest side in pixels of an image beside a text; it is shown at half of that, or at all of it."""

SIDES = (256, 192, 128, 96, 64)
"""Longest sides that an image among the members may have: the largest for which all find room."""


# ---------------------------------------------------------------- samples as images and profiles


class Images(SampleImages):
    """Every sample of a run as a data URI; made when it is asked for, and once."""

    def __init__(self, content: Content) -> None:
        assert content.image_shape is not None
        super().__init__(content.X if content.pixels is None else content.pixels, content.image_shape, content.files)
        self._made: dict[tuple[int, int], str] = {}

    def uri(self, i: int, side: int = SMALL) -> str:
        """Return sample `i` as a data URI."""
        if (i, side) not in self._made:
            # the header of a WebP is a tenth of that of a JPEG
            self._made[i, side] = data_uri(self.image(i, side), kind="webp", quality=70, method=4)
        return self._made[i, side]

    def fitting_side(self, room: float) -> int:
        """Return the largest side at which all images fit into so many bytes, estimated from 16; else the smallest."""
        n = len(self.pixels)
        some = np.unique(np.linspace(0, n - 1, min(n, 16)).astype(int)).tolist()
        fits = (side for side in SIDES if n * sum(len(self.uri(i, side)) for i in some) / len(some) <= room)
        return next(fits, SIDES[-1])


def centre_and_spread(X: Any) -> tuple[Array, Array]:
    """Return mean and standard deviation of every feature, the latter 1 where nothing varies."""
    centre, spread = mean_and_deviation(X)
    return centre, np.where(spread > 0, spread, 1.0)


def profile(values: Array, most: float = 2.5, n_parts: int = 48) -> str:
    """Return the SVG path of standardised features in a box of 100 × 40, zero at half height, ±`most` at its ends."""
    parts = np.array_split(np.clip(values, -most, most), min(len(values), n_parts))
    heights = [20 - 18 * float(part.mean()) / most for part in parts]
    if len(heights) == 1:
        return f"M0 {heights[0]:.1f}H100"
    steps = np.linspace(0, 100, len(heights))
    return "M" + "L".join(f"{x:.3g} {y:.1f}" for x, y in zip(steps, heights, strict=True))


@dataclass(frozen=True)
class Item:
    """A sample on the page; `image` is a data URI, or the path of a profile where samples are no images.

    `second` is the cluster it could be in instead, None where there is none.
    """

    index: int
    name: str
    cluster: int
    second: int | None
    confidence: float
    remark: str
    image: str
    values: str = ""

    @classmethod
    def of(cls, content: Content, i: int, image: str, values: str = "") -> Item:
        """Return sample `i` of a run."""
        summary = content.summary
        second = int(summary.second_cluster[i])
        known = int(summary.labels[i]), None if second < 0 else second, float(summary.confidence[i])
        return cls(i, content.name_of(i), *known, content.remark_on(i), image, values)


# ---------------------------------------------------------------- clusters


@dataclass
class ClusterView:
    """One cluster in the gallery; for tables with its mean profile and the features that set it apart.

    `different` are members as unlike each other as there are: what else is in the cluster.
    """

    row: dict[str, Any]
    members: list[Item] = field(default_factory=list)
    typical: list[Item] = field(default_factory=list)
    different: list[Item] = field(default_factory=list)
    path: str = ""
    telling: str = ""
    words: list[str] = field(default_factory=list)

    @property
    def n_hidden(self) -> int:
        """Members that found no room on the page."""
        return int(self.row["size"]) - len(self.members)


def gallery(content: Content, images: Images | None = None, share: float = 1.0) -> list[ClusterView]:
    """Return all clusters, the members of each from the surest to the least sure as far as the page has room.

    `share` is the part of the usual room that may be used.
    """
    views = [ClusterView(row) for row in content.summary.as_rows()]
    first = [_shown_first(content, c, images is not None) for c in range(len(views))]
    orders = [_order(content, c, np.concatenate(first[c])) for c in range(len(views))]
    room = int(share * MAX_PROFILES) if images is None else share * GALLERY_BYTES
    small = large = _profiles(content, views)
    if images is not None:
        side = images.fitting_side(room / 2)
        small, large = images.uri, lambda i: images.uri(i, side)
    # rank by rank over all clusters, so that room is shared fairly
    for rank, c in sorted((rank, c) for c, order in enumerate(orders) for rank in range(len(order))):
        i = int(orders[c][rank])
        item = Item.of(content, i, large(i))
        if images is None:
            room -= 1
        else:
            card = len(small(i)) if i in np.concatenate(first[c]) else 0
            room -= len(item.image) + card + len(item.name) + len(item.remark) + MEMBER_BYTES
        if room < 0:
            break
        views[c].members.append(item)
        for own, on_card in zip((views[c].typical, views[c].different), first[c], strict=True):
            if i in on_card:
                own.append(Item.of(content, i, small(i)))
    for view in views:
        view.members.sort(key=lambda item: -item.confidence)
    return views


def _order(content: Content, c: int, first: Labels) -> Labels:
    """Return the members of a cluster: those shown first, then by confidence."""
    summary = content.summary
    members = np.flatnonzero(summary.labels == summary.clusters[c])
    members = members[np.argsort(-summary.confidence[members], kind="stable")]
    return np.concatenate([first, members[~np.isin(members, first)]])


def _shown_first(content: Content, c: int, are_images: bool) -> tuple[Labels, Labels]:
    """Return the typical members of a cluster and, of images, members as unlike them and each other as there are.

    A cluster of two kinds shows both; what fits nowhere does not count.
    """
    summary = content.summary
    typical = np.asarray(summary.exemplars[c][:N_TYPICAL], dtype=np.intp)
    members = np.flatnonzero((summary.labels == summary.clusters[c]) & ~summary.fits_nowhere)
    members = np.setdiff1d(members, typical)
    if not are_images or not len(members) or not len(typical):
        return typical, np.zeros(0, dtype=np.intp)
    members = members[np.unique(np.linspace(0, len(members) - 1, _COMPARED).astype(int))]
    own = np.concatenate([typical, members])
    return typical, own[unlike(content.X[own], np.arange(len(typical)), N_DIFFERENT)]


def _profiles(content: Content, views: list[ClusterView]) -> Callable[[int], str]:
    """Return a function that draws a sample as a small line: features across, standard deviations from the mean up.

    The clusters get their mean profile and, where features have names, those that set them apart most. Texts and
    images are not drawn; clusters of texts get the words that make them.
    """
    if content.texts is not None:
        for view, row in zip(views, content.document.get("clusters", ()), strict=False):
            view.words = row.get("words", [])
    if content.texts is not None or content.image_shape is not None:
        return lambda i: ""
    centre, spread = centre_and_spread(content.X)
    for c, (view, label) in enumerate(zip(views, content.summary.clusters, strict=True)):
        own = content.X[np.flatnonzero(content.summary.labels == label)]
        mean = (np.asarray(own.mean(axis=0)).ravel() - centre) / spread
        view.path = profile(mean)
        view.telling = "" if content.groups is None else content.groups.telling(c)
    return lambda i: profile((content.row(i) - centre) / spread)


# ---------------------------------------------------------------- doubtful samples


@dataclass(frozen=True)
class DoubtfulSection:
    """Labels more probably wrong than right: a title and items for each group, the least sure item first."""

    sentence: str
    n_doubtful: int
    groups: list[tuple[str, list[Item]]]

    @property
    def n_hidden(self) -> int:
        """Doubtful samples that are not shown."""
        return max(0, self.n_doubtful - sum(len(items) for _, items in self.groups))


def doubtful_section(content: Content, images: Images | None) -> DoubtfulSection | None:
    """Return the section, or None where there is one cluster, and so no other that could be right."""
    summary = content.summary
    if len(summary.clusters) < 2:
        return None
    order = np.argsort(summary.confidence, kind="stable")
    doubtful = int((summary.confidence < UNSURE).sum())
    sentence = (
        f"Doubtful means that the cluster shown is more probably wrong than right (confidence below {UNSURE}). "
        "Look at these first: where many stand between the same two clusters, the two may be one group."
        if doubtful
        else f"No cluster shown is more probably wrong than right (confidence below {UNSURE}). "
        f"These {content.noun} are the least sure."
    )
    away = int((content.is_drawn_away & (summary.confidence >= UNSURE)).sum())
    if away:
        are = f"{content.counted(away)} {'is' if away == 1 else 'are'}"
        sentence += f" {are} not doubtful, but nearer to another cluster; the table flags them, too."
    shown = order[: min(doubtful, MOST_DOUBTFUL) or LEAST_SURE].tolist()
    return DoubtfulSection(sentence, doubtful, _groups(content, _items(content, shown, images)))


def _items(content: Content, shown: Sequence[int], images: Images | None) -> list[Item]:
    if images is not None or content.texts is not None:  # a text says itself what it is
        return [Item.of(content, i, "" if images is None else images.uri(i)) for i in shown]
    centre, spread = centre_and_spread(content.X)
    rows = {i: content.row(i) for i in shown}
    return [Item.of(content, i, profile((row - centre) / spread), _values(content, row)) for i, row in rows.items()]


def _groups(content: Content, items: list[Item]) -> list[tuple[str, list[Item]]]:
    """Put items between the same two clusters together, the largest group first; those alone with their pair last."""
    pairs: dict[tuple[int, ...], list[Item]] = {}
    for item in items:
        pair = (item.cluster,) if item.second is None else tuple(sorted((item.cluster, item.second)))
        pairs.setdefault(pair, []).append(item)
    groups = []
    for pair, own in pairs.items():
        names = [content.cluster_title(cluster) for cluster in pair]
        title = f"Between clusters {' and '.join(names)}" if pair[1:] else f"In cluster {names[0]}, tied to no other"
        groups.append((title, own))
    several = sorted((group for group in groups if len(group[1]) > 1), key=lambda group: -len(group[1]))
    alone = sorted((own[0] for _, own in groups if len(own) == 1), key=lambda item: item.confidence)
    return several + ([("One at a time" if several else "", alone)] if alone else [])


def _values(content: Content, row: Array, n_shown: int = 4) -> str:
    """Return the first values of a row, with the names of their features; those that are not zero, where most are."""
    places = np.arange(len(row)) if np.count_nonzero(row) > len(row) / 2 else np.flatnonzero(row)
    names = content.feature_names
    shown = [f"{row[j]:.4g}" if names is None else f"{names[j]} {row[j]:.4g}" for j in places[:n_shown]]
    return ", ".join(shown) + (", …" if len(places) > n_shown else "")


# ---------------------------------------------------------------- map


@dataclass(frozen=True)
class MapView:
    """Coordinates of samples and clusters, integers from 0 to 9999; places in `PALETTE` of the colours of clusters."""

    points: Labels
    centres: Labels
    colors: list[int]
    text: str


def map_view(content: Content) -> MapView | None:
    """Return the map, which the page's script draws; None where it cannot be computed."""
    found = attempted("the map", lambda: _coordinates(content))
    if found is None:
        return None
    points, centres, text = found
    low, high = points.min(axis=0), points.max(axis=0)
    scale = 9999 / float(max((high - low).max(), 1e-12))  # finer than any screen, and short
    whole, middle = (np.rint((places - low) * scale).astype(np.intp) for places in (points, centres))
    return MapView(whole, middle, colors_of(centres).tolist(), text)


def _coordinates(content: Content) -> tuple[Array, Array, str]:
    estimator, X, codes, n = content.estimator, content.X, content.codes, len(content.summary.labels)
    kept = hasattr(type(estimator), "embedding_") and (n <= LARGE or getattr(estimator, "_embedding", None) is not None)
    embedding = getattr(estimator, "embedding_", None) if kept else None
    if embedding is not None and len(embedding) == n and len(content.summary.clusters) > 1:
        text = (
            "Each cluster has a disc of its own with its most typical points in the middle; points between two discs "
            "are drawn to both. Clusters that are alike are neighbours as far as a plane allows."
        )
        return *cluster_map(np.asarray(embedding, dtype=np.float64), codes), text
    from sklearn.decomposition import PCA

    centre, spread = mean_and_deviation(X)
    if X.shape[1] < 2 or n < 3 or not np.any(spread):
        points = np.hstack([dense_rows(X[:, [0]]).astype(np.float64), np.zeros((n, 1))])
    elif sparse.issparse(X):
        points = PCA(2, svd_solver="arpack", random_state=0).fit_transform(X)
    else:
        scale = 1.0 if content.image_shape is not None else np.where(spread > 0, spread, 1.0)
        points = PCA(2, svd_solver="randomized", random_state=0).fit_transform((X - centre) / scale)
    text = "The plane in which the points vary most (principal components of the values)."
    return points, cluster_means(points, codes), text


# ---------------------------------------------------------------- tree


@dataclass(frozen=True)
class TreeSection:
    """Tree of clusters, which numbers stand out in it, and the same for who does not see the picture."""

    tree: ClusterTree
    sentence: str
    alt: str


def tree_section(content: Content) -> TreeSection | None:
    """Return the section, or None where there is no tree, or only its root."""
    tree = tree_of(content) if len(content.summary.labels) >= TOO_FEW else None
    if tree is None or tree.n_leaves < 2:
        return None
    sentence = layers_sentence(tree.layers, tree.n_clusters)
    alt = f"Dendrogram of {len(tree.leaves):,} {content.noun} from 1 to {TreeDisplay(tree).levels} clusters. {sentence}"
    return TreeSection(tree, sentence, alt)


def tree_of(content: Content) -> ClusterTree | None:
    """Return the tree of all samples, where the method has one; of very many samples only where it is there already."""
    made: ClusterTree | None = getattr(content.estimator, "_tree", None)
    if made is not None or len(content.summary.labels) > LARGE:
        return made
    return attempted("the tree", lambda: getattr(content.estimator, "tree_", None))
