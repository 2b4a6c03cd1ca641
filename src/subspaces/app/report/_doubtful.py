"""The section "Doubtful": labels that are more probably wrong than right, with what could be right instead."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from subspaces.app.report._content import Content
from subspaces.app.report._members import centre_and_spread, is_drawn_away, line, remark_of
from subspaces.app.report._pictures import Pictures
from subspaces.engine.confidence import UNSURE
from subspaces.utils.types import Labels

MOST = 48
"""Points shown; the table has the others."""

FEW = 6
"""Points shown where none is doubtful: the least sure."""

N_VALUES = 4
"""Numbers of a table's row that are shown."""


@dataclass(frozen=True)
class Doubt:
    """A point whose label is not sure: `second` is the cluster it could be in instead, None where there is none."""

    index: int
    name: str
    cluster: int
    second: int | None
    confidence: float
    remark: str
    image: str
    values: str


@dataclass(frozen=True)
class DoubtfulSection:
    """What the section says; the groups have a title each, the least sure point of each comes first."""

    sentence: str
    n_doubtful: int
    groups: list[tuple[str, list[Doubt]]] = field(default_factory=list)

    @property
    def n_hidden(self) -> int:
        """Doubtful points that are not shown."""
        return max(0, self.n_doubtful - sum(len(items) for _, items in self.groups))


def doubtful_section(content: Content, pictures: Pictures | None) -> DoubtfulSection | None:
    """The section of a run; None where there is one cluster, and so no other that could be right."""
    summary = content.summary
    if len(summary.clusters) < 2:
        return None
    order = np.argsort(summary.confidence, kind="stable")
    doubtful = int((summary.confidence < UNSURE).sum())
    shown = order[: min(doubtful, MOST)] if doubtful else order[:FEW]
    sentence = (
        f"Doubtful means that the cluster shown is more probably wrong than right (confidence below {UNSURE}). "
        "Look at these first: where many stand between the same two clusters, the two may be one group."
    )
    if not doubtful:
        sentence = (
            f"No cluster shown is more probably wrong than right (confidence below {UNSURE}). "
            f"These {content.noun} are the least sure."
        )
    away = int((is_drawn_away(content) & (summary.confidence >= UNSURE)).sum())
    if away:
        are = f"{content.counted(away)} {'is' if away == 1 else 'are'}"
        sentence += f" {are} not doubtful, but nearer to another cluster; the table flags them, too."
    return DoubtfulSection(sentence, doubtful, _groups(content, shown, pictures))


def _groups(content: Content, shown: Labels, pictures: Pictures | None) -> list[tuple[str, list[Doubt]]]:
    """Points between the same two clusters together, the largest group first; those alone with their pair come last."""
    summary = content.summary
    is_drawn = pictures is not None or content.texts is not None  # a text says itself what it is
    scale = None if is_drawn else centre_and_spread(content.X)
    pairs: dict[tuple[int, ...], list[Doubt]] = {}
    for i in shown.tolist():
        cluster, second = int(summary.labels[i]), int(summary.second_cluster[i])
        if scale is None:
            image, values = pictures.uri(i) if pictures is not None else "", ""
        else:
            row = content.row(i)
            image, values = line((row - scale[0]) / scale[1]), _values(content, row)
        doubt = Doubt(
            i,
            content.name_of(i),
            cluster,
            None if second < 0 else second,
            float(summary.confidence[i]),
            remark_of(content, i),
            image,
            values,
        )
        pairs.setdefault((cluster,) if second < 0 else tuple(sorted((cluster, second))), []).append(doubt)
    groups = [(_title(content, pair), items) for pair, items in pairs.items() if len(items) > 1]
    groups.sort(key=lambda group: -len(group[1]))
    alone = [items[0] for items in pairs.values() if len(items) == 1]
    if alone:
        groups.append(("One at a time" if groups else "", sorted(alone, key=lambda doubt: doubt.confidence)))
    return groups


def _title(content: Content, pair: tuple[int, ...]) -> str:
    names = [content.cluster_title(cluster) for cluster in pair]
    return (
        f"Between clusters {names[0]} and {names[1]}" if len(pair) > 1 else f"In cluster {names[0]}, tied to no other"
    )


def _values(content: Content, row: np.ndarray) -> str:
    """The first numbers of a row, with the names of their columns; those that are not zero, where most are."""
    places = np.arange(len(row)) if np.count_nonzero(row) > len(row) / 2 else np.flatnonzero(row)
    names = content.feature_names
    shown = [f"{row[j]:.4g}" if names is None else f"{names[j]} {row[j]:.4g}" for j in places[:N_VALUES]]
    return ", ".join(shown) + (", …" if len(places) > N_VALUES else "")
