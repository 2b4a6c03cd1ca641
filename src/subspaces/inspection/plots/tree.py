"""Dendrogram of the clusters from coarse to fine, read from the top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from subspaces.inspection.plots import parts, style
from subspaces.spectral.hierarchy import LEVEL, ClusterTree
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array

MANY = 12
"""Levels above which p-values are not written beside their dots."""

_LEAST_CUT = 1e-3  # as in subspaces.spectral.hierarchy: a smaller one is as good as none
_WIDEST = 5.0  # of a branch that holds all samples


class TreeDisplay(style.Display):
    """Dendrogram of the clusters, coarse at the top: who belongs together, how clearly, and which splits are real.

    From one level to the next finer one the way down is the longer the more of the edges the finer split cuts than any
    above it, on a logarithmic scale: a long way is a number of clusters that stands out. Branches are as wide as they
    have samples; below the level of the labels each has the colour of its cluster. A filled dot is a split that a null
    model does not explain, a hollow one may be chance; splits that were not tested have none.

    `levels` is the finest level that is drawn; left out, a little below that of the labels.

    Attributes
    ----------
    pieces_ : numbers of the pieces that are drawn, as in the tree
    places_ : position of each of them from left to right
    heights_ : height of the split of the level with 1, 2, ... clusters, and of the ends of the branches
    colors_ : colour of each cluster
    """

    def __init__(self, tree: ClusterTree, levels: int | None = None, of_whom: str = "") -> None:
        self.tree, self.of_whom = tree, of_whom
        k = tree.n_clusters
        self.levels = min(tree.n_leaves, k + max(2, k // 10)) if levels is None else levels
        if not 1 <= self.levels <= tree.n_leaves:
            raise ValueError(f"levels={levels} must be from 1 to {tree.n_leaves}, the leaves of this tree.")
        self.places_ = _places(tree, self.levels)
        self.pieces_ = list(self.places_)
        self.heights_ = _heights(tree, self.levels)
        self._span = float(self.heights_[0] - self.heights_[-1])
        self._cluster_of = _clusters(tree)
        split = {tree.n_leaves + tree.split(level) for level in range(1, self.levels)}
        ends = [[self.places_[p] for p in set(self.places_) - split if self._cluster_of.get(p) == c] for c in range(k)]
        self._centres = [float(np.mean(places)) if places else np.nan for places in ends]
        palette = style.map_colors(np.column_stack([np.nan_to_num(self._centres), np.zeros(k)]))
        self.colors_ = [style.OKABE_ITO[color] for color in palette]
        self._figsize = (float(np.clip(0.14 * self.levels, 7.0, 14.0)), 4.6)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, levels: int | None = None, ax: Any = None, **keywords: Any
    ) -> Self:
        """Draw from a fitted estimator, pipeline or search; X is not needed."""
        tree, _, of_whom = parts.part_of(estimator, "tree_")
        return cls(tree, levels, of_whom).plot(ax, **keywords)

    @classmethod
    def from_tree(cls, tree: ClusterTree, *, levels: int | None = None, ax: Any = None, **keywords: Any) -> Self:
        """Draw any tree (:func:`subspaces.spectral.hierarchy.cluster_tree`)."""
        return cls(tree, levels).plot(ax, **keywords)

    def _draw(self, ax: Any, **keywords: Any) -> None:
        self._draw_branches(ax, keywords)
        dots = self._draw_dots(ax)
        marks = self._draw_layers(ax) + dots
        columns = 4 if ax.figure.get_figwidth() >= 7 else 2
        room = 0.12 + 0.08 * -(-len(marks) // columns)  # above the root, for the legend
        ax.set_ylim(self.heights_[-1] - 0.02 * self._span, self.heights_[0] + room * self._span)
        ax.set_xlim(-0.8, max(self.places_.values()) + 0.8)
        ax.set_title(f"{counted(self.tree.n_clusters, 'cluster')}, from coarse to fine")
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
        ax.set_ylabel("clusters")
        self._name_clusters(ax)
        if marks:
            place = {"loc": "upper center", "ncols": columns, "borderaxespad": 0.1}
            ax.legend(handles=marks, fontsize="small", frameon=False, **place)
        whose = f"; tree of {self.of_whom}" if self.of_whom else ""
        tested = "" if dots else "; no split was tested"
        style.caption(
            ax, f"the longer a level, the more it stands out; the wider a branch, the more points{tested}{whose}"
        )

    def _draw_branches(self, ax: Any, keywords: dict[str, Any]) -> None:
        """Draw each split as a bar with two branches that hang from it."""
        from matplotlib.collections import LineCollection

        m, ink = self.tree.n_leaves, style.foreground(ax)
        height_of = {m + self.tree.split(k): self.heights_[k - 1] for k in range(1, self.levels)}
        root = 2 * m - 2
        lines = [[(self.places_[root], self.heights_[0] + 0.04 * self._span), (self.places_[root], self.heights_[0])]]
        whose = [root]
        for piece, y in height_of.items():
            for child in self.tree.merges[piece - m].tolist():
                x, below = self.places_[child], height_of.get(child, self.heights_[-1])
                lines.append([(self.places_[piece], y), (x, y), (x, below)])
                whose.append(child)
        if not height_of:  # one piece: one branch
            lines[0][1] = (self.places_[root], self.heights_[-1])
        share = self.tree.sizes[whose] / self.tree.sizes[-1]
        clusters = [self._cluster_of.get(piece) for piece in whose]
        colors = [ink if cluster is None else self.colors_[cluster] for cluster in clusters]
        look = {"linewidths": 0.7 + (_WIDEST - 0.7) * np.sqrt(share), "capstyle": "round", "joinstyle": "round"}
        ax.add_collection(LineCollection(lines, colors=colors, **{**look, **keywords}))

    def _draw_dots(self, ax: Any) -> list[Any]:
        """Draw a dot on every split that was tested; return the entries of the legend."""
        from matplotlib.lines import Line2D
        from matplotlib.patheffects import withStroke

        ink, paper = style.foreground(ax), ax.get_facecolor()
        size, used = (7.0 if self.levels <= 40 else 4.5), {}
        for k in range(1, self.levels):
            p = _p_value(self.tree, k)
            if not np.isfinite(p):
                continue
            look = {"marker": "o", "markersize": size, "markeredgecolor": ink, "linestyle": ""}
            look["markerfacecolor"] = ink if p <= LEVEL else paper
            x, y = self.places_[self.tree.n_leaves + self.tree.split(k)], self.heights_[k - 1]
            ax.plot([x], [y], zorder=4, **look)
            if self.levels <= MANY:
                below = {"xytext": (0, -6), "textcoords": "offset points", "ha": "center", "va": "top"}
                rim = [withStroke(linewidth=2.5, foreground=paper)]
                ax.annotate(f"p {p_text(p)}", (x, y), zorder=5, fontsize="x-small", path_effects=rim, **below)
            name = f"real split (p ≤ {LEVEL:g})" if p <= LEVEL else f"may be chance (p > {LEVEL:g})"
            used[name] = Line2D([], [], **look, label=name)
        return [used[name] for name in sorted(used, reverse=True)]

    def _draw_layers(self, ax: Any) -> list[Any]:
        """Draw a faint line through each level that stands out and that of the labels, with numbers at the left."""
        shown = [k for k in self.tree.layers if k <= self.levels]
        ends = np.r_[self.heights_[0] + 0.08 * self._span, self.heights_]
        middles = [(ends[k - 1] + ends[k]) / 2 for k in shown]
        marks = {}
        for k, y in zip(shown, middles, strict=True):
            own = k == self.tree.n_clusters
            look = {"alpha": 0.6 if own else 0.4, "linewidth": 0.9, "linestyle": "-" if own else "--", "zorder": 0}
            marks[own] = ax.axhline(y, color=style.foreground(ax), **look)
            marks[own].set_label("the labels" if own else "stands out")
        ticks, names = style.thinned(-np.array(middles), [str(k) for k in shown], 0.05 * self._span)
        ax.set_yticks([-tick for tick in ticks], names)
        return list(marks.values())

    def _name_clusters(self, ax: Any) -> None:
        """Write the numbers of the clusters under their branches; of many, those that fit."""
        named = sorted((x, str(c)) for c, x in enumerate(self._centres) if np.isfinite(x))
        inches = ax.figure.get_figwidth() * ax.get_position().width
        each = 0.08 * (max(self.places_.values()) + 1.6) / inches  # two digits of the smaller size
        ticks, names = style.thinned(np.array([x for x, _ in named]), [name for _, name in named], each)
        ax.set_xticks(ticks, names, fontsize="small" if len(names) <= 30 else 6)
        ax.set_xlabel("cluster" if names else "")


def _p_value(tree: ClusterTree, n_clusters: int) -> float:
    """Return the p-value of the split that makes one cluster more of so many; NaN where it was not tested."""
    i = tree.split(n_clusters)
    return float(tree.p_value[i]) if i < len(tree.p_value) else float("nan")


def p_text(p: float) -> str:
    """Return a p-value as text.

    Examples
    --------
    >>> p_text(0.2349), p_text(0.0123), p_text(1e-9)
    ('0.23', '0.012', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def layers_sentence(layers: Sequence[int], n_clusters: int) -> str:
    """Return a sentence on how many clusters the labels have, and which other numbers stand out.

    Examples
    --------
    >>> layers_sentence([2, 10, 12], 10), layers_sentence([1], 1)
    ('10 clusters are shown; 2 and 12 stand out.', '1 cluster is shown; no other number stands out.')
    """
    shown = counted(n_clusters, "cluster is", "clusters are")
    *first, last = [str(k) for k in layers if k != n_clusters] or ["no other number"]
    others = f"{', '.join(first)} and {last} stand" if first else f"{last} stands"
    return f"{shown} shown; {others} out."


def _places(tree: ClusterTree, levels: int) -> dict[int, float]:
    """Return the position of every drawn piece: ends side by side, every split in the middle of its two pieces.

    Of two pieces the one with the cluster of the smaller number stands at the left.
    """
    m = tree.n_leaves
    last = m + tree.split(levels)  # of the pieces that a drawn level holds; those above it are split
    labels = np.full(2 * m - 1, len(tree.leaves))
    np.minimum.at(labels, tree.leaves, tree.labels_at(tree.n_clusters))
    for i, pair in enumerate(tree.merges):
        labels[m + i] = labels[pair].min()
    places: dict[int, float] = {}
    waiting = [2 * m - 2]
    while waiting:
        piece = waiting.pop()
        if piece <= last or piece < m:
            places[piece] = float(len(places))
        else:
            waiting += sorted(tree.merges[piece - m].tolist(), key=lambda child: (-labels[child], -child))
    for piece in range(max(last + 1, m), 2 * m - 1):
        places[piece] = float(np.mean([places[child] for child in tree.merges[piece - m]]))
    return places


def _heights(tree: ClusterTree, levels: int) -> Array:
    """Return the heights of the splits of levels 1, 2, ..., and at the end that of the ends.

    Minus the logarithm of the largest cut so far; a small step keeps apart splits that cut no more than one above.
    """
    if levels == 1:
        return np.array([0.0, -1.0])
    cuts = [max(float(tree.cut[tree.split(k)]), _LEAST_CUT) for k in range(1, min(levels + 1, tree.n_leaves))]
    ways = np.diff(np.log(np.maximum.accumulate(cuts)))
    step = 0.8 * (float(ways.sum()) or 1.0) / levels
    heights = np.arange(levels) * step
    heights[1 : len(ways) + 1] += np.cumsum(ways)
    heights[len(ways) + 1 :] += ways.sum()  # below the leaves there is no split to compare with
    return -heights


def _clusters(tree: ClusterTree) -> dict[int, int]:
    """Return the cluster of every piece that is not larger than one."""
    m = tree.n_leaves
    of_leaf = np.zeros(m, dtype=np.intp)
    of_leaf[tree.leaves] = tree.labels_at(tree.n_clusters)
    found = dict(enumerate(of_leaf.tolist()))
    for i in range(m - tree.n_clusters):
        found[m + i] = found[int(tree.merges[i, 0])]
    return found
