"""What makes vectors of things: pictures now, texts beside them. One small contract, and the way through the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from subspaces.app.features.cache import opened
from subspaces.utils.memory import require
from subspaces.utils.progress import phase
from subspaces.utils.types import Array

Progress = Callable[[int, int], None] | None
"""Told how many items are done, and of how many."""

Shape = Sequence[int] | None
"""Height and width (and 3 for colour) of pictures that come as flat rows."""

CHUNK = 256
"""Items whose vectors are computed before they go into the cache: what an interruption costs."""


@dataclass(frozen=True)
class Extractor:
    """Makes a vector of each item; a frozen dataclass that holds settings, never a network.

    A subclass gives :meth:`compute`, and :meth:`content` with an `identity` where results may be kept. What the data
    decides (a common size, a vocabulary) is settled by :meth:`fit`, which returns a copy: new items get the same.
    """

    kind: ClassVar[str] = "numbers"
    """What the numbers are, for a sentence: "1280 numbers of a network"."""

    @property
    def name(self) -> str:
        """What it is called: the text that :func:`subspaces.app.features.as_extractor` makes it from."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """Its name for people."""
        return self.name

    def check(self) -> None:
        """Raise ImportError, with what to install, where it cannot be computed on this machine."""

    @property
    def identity(self) -> str:
        """All that a vector depends on beside its item; results are kept under it. Empty: they are not kept."""
        return ""

    def items(self, X: Any, image_shape: Shape = None) -> Sequence[Any]:
        """What vectors are made of, one by one."""
        return list(X)

    def fit(self, items: Sequence[Any]) -> Self:
        """A copy with everything settled that the items decide."""
        return self

    def content(self, item: Any) -> bytes:
        """What the cache knows an item by."""
        raise NotImplementedError

    def compute(self, items: Sequence[Any], progress: Progress = None) -> Array:
        """The vectors of all items, shape (n, m)."""
        raise NotImplementedError

    def __call__(self, items: Sequence[Any], *, progress: Progress = None) -> Array:
        """The vectors of all items, shape (n, m), each computed once and taken from the cache where it is known."""
        with phase("Making vectors") as step:
            told = 0

            def tell(done: int, total: int) -> None:
                nonlocal told
                step(done - told, of=total)
                told = done
                if progress is not None:
                    progress(done, total)

            if not self.identity or not len(items):
                return self.compute(items, tell)
            return through_cache(self, items, tell)


def through_cache(extractor: Extractor, items: Sequence[Any], progress: Progress) -> Array:
    """Vectors from the cache, and for unknown items from the extractor; copies of an item are computed once."""
    keys = [hashlib.sha256(extractor.content(item)).digest() for item in items]
    with opened(extractor.identity) as cache:
        known = cache.get(keys)
        unknown = {key: item for key, item in zip(keys, items, strict=True) if key not in known}
        total = len(unknown)
        for start in range(0, total, CHUNK):
            some = list(unknown)[start : start + CHUNK]

            def tell(done: int, _: int, before: int = start) -> None:
                if progress is not None:
                    progress(before + done, total)

            vectors = extractor.compute([unknown[key] for key in some], tell)
            found = dict(zip(some, vectors, strict=True))
            cache.put(found)
            known |= found
    return _stacked(known, keys)


def _stacked(known: dict[bytes, Array], keys: list[bytes]) -> Array:
    lengths = {len(vector) for vector in known.values()}
    if len(lengths) != 1:
        raise ValueError(f"The vectors of the items have different lengths: {sorted(lengths)}.")
    (m,) = lengths
    require(4 * m * len(keys), f"the {m} numbers of each of {len(keys)} items", "Use fewer items.")
    vectors = np.empty((len(keys), m), dtype=np.float32)
    for row, key in enumerate(keys):
        vectors[row] = known[key]
    return vectors
