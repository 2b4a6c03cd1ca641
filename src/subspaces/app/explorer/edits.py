"""What a person makes of clusters: names, and several clusters as one. Frozen, so that a step back is a step back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from subspaces.utils.types import Labels

MAX_NAME = 60
"""Letters of a name."""


@dataclass(frozen=True)
class Edits:
    """Clusters of a fit as a person wants them.

    Attributes
    ----------
    groups : the cluster shown that each cluster of the fit belongs to
    names : of the clusters shown; empty where none was given
    """

    groups: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def none(cls, n_clusters: int) -> Self:
        """All clusters as they are."""
        return cls(tuple(range(n_clusters)), ("",) * n_clusters)

    def renamed(self, cluster: int, name: str) -> Self:
        """With a name for a cluster that is shown; an empty one is its number again.

        Examples
        --------
        >>> Edits.none(2).renamed(1, "cats").names
        ('', 'cats')
        """
        short = " ".join(name.split())[:MAX_NAME]
        return replace(self, names=tuple(short if k == cluster else old for k, old in enumerate(self.names)))

    def merged(self, clusters: Iterable[int]) -> Self:
        """With some of the clusters that are shown as one: the first of them, with the first name that one has.

        Examples
        --------
        >>> Edits.none(4).renamed(3, "cats").merged([1, 3])
        Edits(groups=(0, 1, 2, 1), names=('', 'cats', ''))
        """
        chosen = sorted(set(clusters))
        if len(chosen) < 2:
            return self
        first, others = chosen[0], chosen[1:]
        kept = [k for k in range(len(self.names)) if k not in others]
        target = {k: kept.index(first if k in others else k) for k in range(len(self.names))}
        name = next((self.names[k] for k in chosen if self.names[k]), "")
        names = tuple(name if k == first else self.names[k] for k in kept)
        return replace(self, groups=tuple(target[group] for group in self.groups), names=names)

    def of(self, labels: Labels) -> Labels:
        """Labels of the fit as those that are shown."""
        return np.asarray(self.groups, dtype=np.intp)[labels]
