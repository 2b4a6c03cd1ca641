"""Why a sample is where it is: the samples that represent it, with their coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from subspaces.utils.types import Array, Labels, Sparse


@dataclass(frozen=True, repr=False)
class Explanation:
    """The samples that represent one sample, strongest first; prints as a table.

    Attributes
    ----------
    point, label : the sample and its cluster
    points : the samples that represent it
    coefficients : theirs, with sign
    labels : their clusters
    shares : of each in the whole column's magnitude, those not listed included
    own_share : share of the column's magnitude that lies in the sample's own cluster
    n_representers : representers in all, those not listed included
    """

    point: int
    label: int
    points: Labels
    coefficients: Array
    labels: Labels
    shares: Array
    own_share: float
    n_representers: int

    def as_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary for each representer."""
        columns = (self.points.tolist(), self.coefficients.tolist(), self.shares.tolist(), self.labels.tolist())
        names = ("point", "coefficient", "share", "label")
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    @property
    def headline(self) -> str:
        """One sentence."""
        if not self.n_representers:
            return f"point {self.point} (cluster {self.label}) is represented by no other point"
        shown = f", the {len(self.points)} strongest shown" if len(self.points) < self.n_representers else ""
        return (
            f"point {self.point} (cluster {self.label}) is represented by {self.n_representers} points{shown}; "
            f"{100 * self.own_share:.0f} % of the weight lies in its own cluster"
        )

    def __str__(self) -> str:
        lines = [self.headline]
        if len(self.points):
            lines.append(f"{'point':>8} {'coefficient':>11} {'share':>7} {'cluster':>8}")
        for row in self.as_rows():
            mark = "" if row["label"] == self.label else "  <- another cluster"
            share = f"{100 * row['share']:.1f} %"
            lines.append(f"{row['point']:>8} {row['coefficient']:>11.4f} {share:>7} {row['label']:>8}{mark}")
        return "\n".join(lines)

    __repr__ = __str__


def explained(i: int, n: int, coefficients: Sparse, labels: Labels) -> Explanation:
    """Return the `n` samples that represent sample `i`, its row number in the data, strongest first."""
    if not isinstance(i, int | np.integer) or not 0 <= i < len(labels):
        raise ValueError(f"i must be the row number of a fitted point, from 0 to {len(labels) - 1}; got {i!r}.")
    column = coefficients.tocsc()[:, [i]]
    rows, values = column.nonzero()[0], column.data[column.data != 0]
    order = np.argsort(-np.abs(values), kind="stable")
    rows, values = rows[order], values[order]
    magnitude = np.abs(values, dtype=np.float64)
    shares = magnitude / (magnitude.sum() or 1.0)
    label = int(labels[i])
    return Explanation(
        point=int(i),
        label=label,
        points=rows[:n].astype(np.intp),
        coefficients=values[:n],
        labels=labels[rows[:n]],
        shares=shares[:n],
        own_share=float(shares[labels[rows] == label].sum()),
        n_representers=len(rows),
    )
