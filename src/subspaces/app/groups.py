"""What sets groups apart: their sizes, and mean and spread of every column in the units of the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from subspaces.utils.types import Array, Labels

if TYPE_CHECKING:
    import pandas as pd

    from subspaces.app.files import Dataset

STANDS_OUT = 0.5
"""Difference to the rest, in standard deviations, from which a column is called high or low."""
N_TELLING, MOST_COLUMNS = 3, 500
"""Columns that are named for a group; and those of a table of groups, the most telling ones of more."""


@dataclass(frozen=True)
class Groups:
    """A table with a row for each group; `difference` is that of its mean to the mean of the rest, standardised.

    Attributes
    ----------
    names : of the groups, numbers where nobody named them
    sizes : of the groups
    columns : names of the columns
    mean, sd, difference : arrays of shape (n_groups, n_columns); the standard deviation has n − 1 below
    whole : array of shape (2, n_columns), mean and standard deviation of all samples
    """

    names: list[Any]
    sizes: Labels
    columns: list[str]
    mean: Array
    sd: Array
    difference: Array
    whole: Array

    @classmethod
    def of(cls, labels: Labels, frame: pd.DataFrame, names: Mapping[int, Any] | None = None) -> Self:
        """Describe groups by the columns of a table that are numbers; gaps are left out, column by column.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> frame = pd.DataFrame({"size": [1.0, 2.0, 9.0, 8.0], "kind": list("abab")})
        >>> Groups.of(np.array([0, 0, 1, 1]), frame).telling(1)
        'size high (8.5)'
        """
        frame = frame.select_dtypes(["number", "bool"])
        values = frame.to_numpy(dtype=np.float64, na_value=np.nan)
        clusters, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        member = np.equal.outer(np.arange(len(clusters)), codes).astype(np.float64)
        there = np.isfinite(values)
        n_all = there.sum(axis=0)
        with np.errstate(all="ignore"):
            middle = np.where(there, values, 0).sum(axis=0) / n_all  # first, so that squares keep their digits
            away = np.where(there, values - middle, 0)
            n, first, second = member @ there, member @ away, member @ away**2
            own, rest = _moments(n, first, second), _moments(n_all - n, -first, second.sum(axis=0) - second)
            whole = _moments(n_all, 0 * middle, second.sum(axis=0))
            spread = np.sqrt((own[1] + rest[1]) / 2)  # as Cohen's d for groups of unequal spread
            spread = np.where(spread > 1e-9 * np.sqrt(whole[1]), spread, np.sqrt(whole[1]))  # constant in both
            difference = np.nan_to_num((own[0] - rest[0]) / spread, posinf=0, neginf=0)
        given = names or {}
        titles = [f"{c}: {given[c]}" if given.get(c) else c for c in clusters.tolist()]
        mean, sd, every = middle + own[0], np.sqrt(own[1]), np.array([middle, np.sqrt(whole[1])])
        return cls(titles, sizes, [str(name) for name in frame.columns], mean, sd, difference, every)

    def strongest(self, group: int, most: int = N_TELLING, least: float = STANDS_OUT) -> list[int]:
        """Return the positions of the most telling columns of a group, the most telling first."""
        size = np.abs(self.difference[group])
        order = np.argsort(-size, kind="stable")[:most]
        return [int(j) for j in order if size[j] >= least]

    def telling(self, group: int) -> str:
        """Return in words how a group differs from the rest: its three most telling columns, with its means."""
        found = [(self.columns[j], self.difference[group, j] > 0, self.mean[group, j]) for j in self.strongest(group)]
        return ", ".join(f"{name} {'high' if high else 'low'} ({short(mean)})" for name, high, mean in found)

    def shown(self, most: int = MOST_COLUMNS) -> list[int]:
        """Return the positions of the most telling columns of all groups, at most so many, in the order of the file."""
        largest = np.abs(self.difference).max(axis=0, initial=0)
        return sorted(np.argsort(-largest, kind="stable")[:most].tolist())

    def table(self) -> list[list[Any]]:
        """Return rows for a file, the names of the columns first: one for each group, and one for all."""
        k, shown = len(self.names), self.shown()
        header = [f"{self.columns[j]} {what}" for j in shown for what in ("mean", "sd")]
        rows: list[list[Any]] = [["group", "n", "stands out", *header]]
        mean, sd = np.vstack([self.mean, self.whole[:1]]), np.vstack([self.sd, self.whole[1:]])
        firsts = zip([*self.names, "all"], [*self.sizes.tolist(), int(self.sizes.sum())], strict=True)
        for c, (name, size) in enumerate(firsts):
            numbers = [float(f"{values[c, j]:.6g}") for j in shown for values in (mean, sd)]
            known = [number if np.isfinite(number) else None for number in numbers]
            rows.append([name, size, self.telling(c) if c < k else "", *known])
        return rows

    def compared(self, most: int) -> list[tuple[str, list[tuple[str, bool]]]]:
        """Return for a page each column's name and cells with whether they are telling; the last is of all."""
        telling = [set(self.strongest(group)) for group in range(len(self.names))]
        found = []
        for j in self.shown(most):
            decimals = _decimals(self.whole[1, j])
            cells = [(_cell(self.mean[c, j], self.sd[c, j], decimals), j in own) for c, own in enumerate(telling)]
            found.append((self.columns[j], [*cells, (_cell(self.whole[0, j], self.whole[1, j], decimals), False)]))
        return found


def groups_of(data: Dataset, labels: Labels, names: Mapping[int, Any] | None = None) -> Groups | None:
    """Describe the groups of what was read from a file by its columns, gaps as they were; None where it has none."""
    import pandas as pd

    if data.feature_names is None or data.texts is not None or data.image_shape is not None or data.X.ndim != 2:
        return None
    frame = data.original
    if frame is None:
        if not isinstance(data.X, np.ndarray):
            return None
        frame = pd.DataFrame(data.X, columns=data.feature_names)
    else:
        frame = frame.loc[:, frame.columns.isin(data.feature_names)]
        frame = frame if data.rows is None else frame.iloc[data.rows]
    titles = [f"{name} ({data.units[name]})" if name in data.units else name for name in frame.columns]
    return Groups.of(labels, frame.set_axis(titles, axis=1), names)


def unlike(rows: Any, shown: Labels, n: int) -> Labels:
    """Return up to n rows as unlike the shown ones and each other as there are: each the farthest from all before it.

    Examples
    --------
    >>> unlike(np.array([[0.0], [1.0], [9.0], [5.0]]), np.array([0]), 2)
    array([2, 3])
    """
    from sklearn.metrics import pairwise_distances_argmin_min
    from sklearn.metrics.pairwise import euclidean_distances

    least = pairwise_distances_argmin_min(rows, rows[shown])[1]
    found: list[int] = []
    while len(found) < n and least.max() > 0:
        found.append(int(least.argmax()))
        least = np.minimum(least, euclidean_distances(rows, rows[found[-1:]]).ravel())
        least[[*shown, *found]] = 0
    return np.array(found, dtype=np.intp)


def table_of(data: Dataset, groups: Groups | None) -> dict[str, Any]:
    """Return what :func:`subspaces.app.files.write_labels` writes beside labels: a person's columns, and the groups."""
    return {**data.table, "original": data.original, "sheets": {} if groups is None else {"groups": groups.table()}}


def _moments(n: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """Return mean and variance from the number of values, their sum and that of their squares."""
    return first / n, np.maximum(second - first**2 / n, 0) / (n - 1)


def _decimals(sd: float) -> int | None:
    """Return the decimals that give a standard deviation two digits; None where it says nothing."""
    return max(0, 1 - int(np.floor(np.log10(sd)))) if 1e-6 < sd < 1e9 else None


def _cell(mean: float, sd: float, decimals: int | None) -> str:
    """Return mean ± standard deviation with so many decimals, the same in all groups."""
    if decimals is None or not np.isfinite([mean, sd]).all():
        return short(mean) if np.isfinite(mean) else "–"
    return f"{mean:,.{decimals}f} ± {sd:,.{decimals}f}"


def short(value: float) -> str:
    """Return a number with three digits, or as a whole number where it has more.

    Examples
    --------
    >>> short(1115.7), short(0.68269), short(-12.0), short(1.5e-7)
    ('1,116', '0.683', '-12', '1.5e-07')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"
