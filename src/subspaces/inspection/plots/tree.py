"""Dendrogram of the clusters from coarse to fine, read from the top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.cluster.hierarchy import dendrogram

from subspaces.inspection.plots import parts, style
from subspaces.spectral.hierarchy import LEVEL, ClusterTree, level
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array, Labels

_LEAST_CUT = 1e-3  # as in subspaces.spectral.hierarchy: a smaller one is as good as none


class TreeDisplay(style.Display):
    """Dendrogram of the clusters, coarse at the top: who belongs together, how clearly, and which splits are real.

    From one level to the next finer one the way down is the longer the more of the edges the finer split cuts than any
    above it, on a logarithmic scale: a long way is a number of clusters that stands out. Pieces at the ends have the
    colour of their cluster. A filled dot is a split that a null model does not explain, a hollow one may be chance;
    splits that were not tested have none.

    `levels` is the finest level that is drawn; left out, a little below that of the labels.

    Attributes
    ----------
    linkage_ : the levels as SciPy's dendrograms take them; its leaves are the pieces of the finest one
    clusters_ : cluster of each of these pieces
    heights_ : height of the split of the level with 1, 2, ... clusters
    """

    def __init__(self, tree: ClusterTree, levels: int | None = None, of_whom: str = "") -> None:
        self.tree, self.of_whom = tree, of_whom
        k, m = tree.n_clusters, tree.n_leaves
        self.levels = min(m, k + max(2, k // 10)) if levels is None else levels
        if not 1 <= self.levels <= m:
            raise ValueError(f"levels={levels} must be from 1 to {m}, the leaves of this tree.")
        ends, of_end = np.unique(level(tree.merges, self.levels), return_inverse=True)
        self.clusters_: Labels = np.full(self.levels, k)
        np.minimum.at(self.clusters_, of_end[tree.leaves], tree.labels_at(k))
        self.heights_ = _heights(tree, self.levels)
        number = dict(zip(ends.tolist(), range(self.levels), strict=True))
        rows: list[list[float]] = []
        first, n_ends = self.clusters_.tolist(), [1] * self.levels
        for i in range(m - self.levels, m - 1):
            pair = sorted((number[child] for child in tree.merges[i].tolist()), key=lambda node: first[node])
            number[m + i] = self.levels + len(rows)
            first.append(first[pair[0]])
            n_ends.append(n_ends[pair[0]] + n_ends[pair[1]])
            rows.append([*pair, self.heights_[m - 2 - i], n_ends[-1]])
        self.linkage_: Array = np.array(rows, dtype=np.float64).reshape(-1, 4)
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
        ink, order, dots = style.foreground(ax), [0], []
        if len(self.linkage_):
            look = {"no_labels": True, "color_threshold": 0, "above_threshold_color": ink, **keywords}
            drawn = dendrogram(self.linkage_, ax=ax, **look)
            order = drawn["leaves"]
            splits = zip(drawn["icoord"], drawn["dcoord"], strict=True)
            dots = self._draw_dots(ax, {y[1]: (x[1] + x[2]) / 2 for x, y in splits})
        places = 10.0 * np.arange(self.levels) + 5
        palette = style.map_colors(np.column_stack([np.arange(self.tree.n_clusters), np.zeros(self.tree.n_clusters)]))
        colors = [style.OKABE_ITO[palette[self.clusters_[leaf]]] for leaf in order]
        ax.scatter(places, np.zeros(self.levels), c=colors, marker="s", s=30, zorder=3, clip_on=False)
        named = [str(self.clusters_[leaf]) for leaf in order]
        firsts = [i for i, name in enumerate(named) if i == 0 or name != named[i - 1]]
        ax.set_xticks(*style.thinned(places[firsts], [named[i] for i in firsts], self.levels / 4))
        shown = [k for k in self.tree.layers if k < self.levels]
        middles = [(self.heights_[k - 1] + ([*self.heights_, 0.0])[k]) / 2 for k in reversed(shown)]
        ax.set_yticks(
            *style.thinned(np.array(middles), [str(k) for k in reversed(shown)], 0.05 * float(self.heights_[0]))
        )
        ax.tick_params(length=0, labelsize="small")
        ax.spines[:].set_visible(False)
        ax.set(xlabel="cluster", ylabel="clusters", ylim=(0, 1.15 * self.heights_[0]))  # room for the legend
        ax.set_title(f"{counted(self.tree.n_clusters, 'cluster')}, from coarse to fine")
        if dots:
            ax.legend(handles=dots, fontsize="small", frameon=False, loc="upper right")
        whose = f"; tree of {self.of_whom}" if self.of_whom else ""
        style.caption(ax, f"the longer a level, the more it stands out{'' if dots else '; no split was tested'}{whose}")

    def _draw_dots(self, ax: Any, place: dict[float, float]) -> list[Any]:
        """Draw a dot on every split that was tested; return the entries of the legend."""
        used = {}
        for k in range(1, self.levels):
            p = _p_value(self.tree, k)
            if np.isfinite(p):
                name = f"real split (p ≤ {LEVEL:g})" if p <= LEVEL else f"may be chance (p > {LEVEL:g})"
                ink, y = style.foreground(ax), self.heights_[k - 1]
                face = ink if p <= LEVEL else ax.get_facecolor()
                (used[name],) = ax.plot(place[y], y, "o", color=ink, markerfacecolor=face, label=name, zorder=4)
        return [used[name] for name in sorted(used, reverse=True)]


def _p_value(tree: ClusterTree, n_clusters: int) -> float:
    """Return the p-value of the split that makes one cluster more of so many; NaN where it was not tested."""
    i = tree.split(n_clusters)
    return float(tree.p_value[i]) if i < len(tree.p_value) else float("nan")


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


def _heights(tree: ClusterTree, levels: int) -> Array:
    """Return the heights of the splits of levels 1, 2, ... above the ends.

    Minus the logarithm of the largest cut so far; a small step keeps apart splits that cut no more than one above.
    """
    cuts = [max(float(tree.cut[tree.split(k)]), _LEAST_CUT) for k in range(1, min(levels + 1, tree.n_leaves))]
    ways = np.diff(np.log(np.maximum.accumulate(cuts))) if cuts else np.zeros(0)
    depth = np.zeros(levels + 1)
    depth[1 : len(ways) + 1], depth[len(ways) + 1 :] = np.cumsum(ways), ways.sum()  # no split to compare with below
    depth += 0.8 * (float(ways.sum()) or 1.0) / levels * np.arange(levels + 1)
    return np.asarray((depth[-1] - depth)[: max(levels - 1, 1)])
