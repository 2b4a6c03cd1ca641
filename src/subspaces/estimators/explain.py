"""Why a point is where it is: the points that represent it, with their weights."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from subspaces.numerics.types import Array, Labels, Sparse


@dataclass(frozen=True, repr=False)
class Explanation:
    """The points that represent one point, strongest first; prints as a table.

    Attributes
    ----------
    point, label : the point and its cluster
    points : the points that represent it
    weights : their coefficients
    labels : their clusters
    shares : each weight's share of the whole column's magnitude, those not listed included
    own_share : share of the column's magnitude that lies in the point's own cluster
    n_representers : representers in all, those not listed included
    """

    point: int
    label: int
    points: Labels
    weights: Array
    labels: Labels
    shares: Array
    own_share: float
    n_representers: int

    def as_rows(self) -> list[dict[str, Any]]:
        """One dictionary for each representer."""
        columns = (self.points.tolist(), self.weights.tolist(), self.shares.tolist(), self.labels.tolist())
        names = ("point", "weight", "share", "label")
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
            lines.append(f"{'point':>8} {'weight':>10} {'share':>7} {'cluster':>8}")
        for row in self.as_rows():
            mark = "" if row["label"] == self.label else "  <- another cluster"
            share = f"{100 * row['share']:.1f} %"
            lines.append(f"{row['point']:>8} {row['weight']:>10.4f} {share:>7} {row['label']:>8}{mark}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td>{row['point']}</td><td>{row['weight']:.4f}</td><td>{100 * row['share']:.1f} %</td>"
            f"<td>{row['label']}</td></tr>"
            for row in self.as_rows()
        )
        head = "<tr><th>point</th><th>weight</th><th>share</th><th>cluster</th></tr>"
        return f"<p>{escape(self.headline)}</p><table>{head}{cells}</table>"


class ExplainMixin:
    """Adds :meth:`explain` to an estimator."""

    labels_: Labels
    landmarks_: Labels

    def explain(self, i: int, n: int = 10) -> Explanation:
        """List the points that represent point `i` and their weights, strongest first.

        Parameters
        ----------
        i : row number of the point in the data that was fitted
        n : how many to list at most

        Returns
        -------
        Explanation
            Column i of ``coefficients_``: what is left after truncation (with ``graph="symmetric"`` the scaled and
            symmetrised values, see :func:`subspaces.graphs.rules.build_graph`).

        Examples
        --------
        >>> import numpy as np
        >>> from subspaces import TRR
        >>> X = np.array([[1.0, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
        >>> TRR(2, n_nonzero=2, graph="column", reg=0.01).fit(X).explain(0)
        point 0 (cluster 0) is represented by 2 points; 100 % of the weight lies in its own cluster
           point     weight   share  cluster
               2     0.2299  60.0 %        0
               1     0.1533  40.0 %        0
        """
        check_is_fitted(self, "labels_")
        coefficients, labels, names = self._explained()
        place = _place_of(i, names, len(self.labels_))
        column = coefficients.tocsc()[:, [place]]
        rows, weights = column.nonzero()[0], column.data[column.data != 0]
        order = np.argsort(-np.abs(weights), kind="stable")
        rows, weights = rows[order], weights[order]
        magnitude = np.abs(weights, dtype=np.float64)
        shares = magnitude / (magnitude.sum() or 1.0)
        label = int(labels[place])
        return Explanation(
            point=int(i),
            label=label,
            points=(rows if names is None else names[rows])[:n].astype(np.intp),
            weights=weights[:n],
            labels=labels[rows[:n]],
            shares=shares[:n],
            own_share=float(shares[labels[rows] == label].sum()),
            n_representers=len(rows),
        )

    def _explained(self) -> tuple[Sparse, Labels, Labels | None]:
        """Coefficients, labels of their points, and the row numbers of those points in the data (None: all)."""
        for owner in (self, getattr(self, "clusterer_", None)):
            coefficients = getattr(owner, "coefficients_", None)
            if owner is not None and coefficients is not None:
                return coefficients, owner.labels_, None if owner is self else self.landmarks_
        raise ValueError(
            f"{type(self).__name__} represents no point by others, so explain has nothing to list. Methods that do: "
            "KTRR, TRR, LSR1, LSR2, SSC, LRR1 and their relatives; EKTRR, SSSC, SLSR and SLRR for their landmarks."
        )


def _place_of(i: int, names: Labels | None, n: int) -> int:
    """Column of point i."""
    if not isinstance(i, int | np.integer) or not 0 <= i < n:
        raise ValueError(f"i must be the row number of a fitted point, from 0 to {n - 1}; got {i!r}.")
    if names is None:
        return int(i)
    found = np.flatnonzero(names == i)
    if not len(found):
        raise ValueError(
            f"i={i} is not one of the {len(names)} landmarks: only those are represented by others, the rest is "
            "classified. Take i from landmarks_."
        )
    return int(found[0])
