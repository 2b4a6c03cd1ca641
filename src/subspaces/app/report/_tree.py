"""The section "From coarse to fine": the picture of the tree, the levels that stand out, the coarsest splits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np

from subspaces.app.report._content import Content
from subspaces.app.report._figures import LARGE, Picture, drawn
from subspaces.inspection.plots.tree import TreeDisplay, layers_sentence, p_text
from subspaces.selection.result import TOO_FEW
from subspaces.spectral.hierarchy import LEVEL, ClusterTree
from subspaces.utils.types import Array

MOST_SPLITS = 12
"""Rows of the table."""

_TITLE = "The tree of clusters"
_TEXT = (
    "Read it from the top: each split makes one cluster more. Numbers below name clusters, at the left they count them."
)
_MEANINGS = {
    "cut": "Cut: the share of the edges of the lighter part that cross to the other. Little is clear.",
    "p-value": "P-value: how easily chance alone makes such a split of one piece, corrected for the number of splits. "
    f"Up to {LEVEL:g} a split counts as real; – was not tested.",
    "stability": "Stability: how well random parts of the graph find the split again, from 0 to 1.",
}


@dataclass(frozen=True)
class TreeSection:
    """What the section says; the table's `rows` are cells as text, under `names`."""

    sentence: str
    alt: str
    caption: str
    names: list[str]
    rows: list[tuple[str, ...]]
    meanings: list[str]
    pictures: list[Picture] = field(default_factory=list)


def tree_section(content: Content) -> TreeSection | None:
    """The section of a run; None where there is no tree, or only its root."""
    tree = tree_of(content) if len(content.summary.labels) >= TOO_FEW else None
    if tree is None or tree.n_leaves < 2:
        return None
    sentence, table = layers_sentence(tree.layers, tree.n_clusters), split_table(tree)
    alt = f"Dendrogram of {len(tree.leaves):,} {content.noun} from 1 to {TreeDisplay(tree).levels} clusters. {sentence}"
    plot = (_TITLE, _TEXT, (6.4, 5.0), lambda figure: TreeDisplay.from_tree(tree, ax=figure.subplots()))
    meanings = [text for name, text in _MEANINGS.items() if name in table[0]]
    return TreeSection(sentence, alt, _caption(tree, len(table) - 1), [*table[0]], table[1:], meanings, drawn([plot]))


def tree_of(content: Content) -> ClusterTree | None:
    """The tree of all points, where the method has one; of very many points only where it is there already."""
    made: ClusterTree | None = getattr(content.estimator, "_tree", None)
    if made is not None or len(content.summary.labels) > LARGE:
        return made
    try:
        found: ClusterTree | None = getattr(content.estimator, "tree_", None)
    except (ValueError, np.linalg.LinAlgError, MemoryError) as error:  # the page is worth more than it
        warnings.warn(f"the tree was left out of the report: {error}", UserWarning, stacklevel=4)
        return None
    return found


def split_table(tree: ClusterTree) -> list[tuple[str, ...]]:
    """The coarsest splits, down to the first that the labels do not make; the first row names the columns.

    What is known of none of them has no column.
    """
    levels = range(1, min(tree.n_clusters, MOST_SPLITS, tree.n_leaves - 1) + 1)
    sizes = [tree.sizes[tree.merges[tree.split(k)]] for k in levels]
    columns = {
        "clusters": [f"{k} → {k + 1}" for k in levels],
        "sizes": [f"{max(pair):,} + {min(pair):,}" for pair in sizes],
        "cut": [f"{100 * tree.cut[tree.split(k)]:.1f} %" for k in levels],
    }
    for name, values, text in (("p-value", tree.p_value, p_text), ("stability", tree.stability, "{:.2f}".format)):
        known = [_entry(values, tree.split(k)) for k in levels]
        if any(value is not None for value in known):
            columns[name] = ["–" if value is None else text(value) for value in known]
    return [tuple(columns), *zip(*columns.values(), strict=True)]


def _entry(values: Array, i: int) -> float | None:
    return float(values[i]) if i < len(values) and np.isfinite(values[i]) else None


def _caption(tree: ClusterTree, n_rows: int) -> str:
    """What the rows are, and which of them the labels make."""
    made = tree.n_clusters - 1
    if n_rows <= made:
        return f"The {n_rows} coarsest of {made} splits." if n_rows < made else "Every split that the labels make."
    return (
        "The splits that the labels make and, in the last row, the next one, which they do not."
        if made
        else ("The first split, which the labels do not make.")
    )
