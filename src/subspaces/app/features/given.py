"""Vectors that others made: by a function of the user, or before, in a file beside the pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from subspaces.app.features.extractor import Extractor, Progress, Shape
from subspaces.app.files.reading import read_table
from subspaces.utils.files import FileError
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array


@dataclass(frozen=True)
class Function(Extractor):
    """A function of the user, called with X as it was given; it returns an array of shape (n, m)."""

    kind: ClassVar[str] = "numbers of a function"
    function: Callable[[Any], Any]

    @property
    def name(self) -> str:
        """The function's own name."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def items(self, X: Any, image_shape: Shape = None) -> Sequence[Any]:
        """Whatever the function takes."""
        found: Sequence[Any] = X
        return found

    def compute(self, items: Sequence[Any], progress: Progress = None) -> Array:
        """What the function returns."""
        vectors = np.asarray(self.function(items))
        n = n_items(items)
        if vectors.ndim != 2 or len(vectors) != n:
            raise ValueError(f"features must return an array of shape ({n}, m); {self.name} gave {vectors.shape}.")
        return vectors


@dataclass(frozen=True)
class FromFile(Extractor):
    """Vectors of a ``.npy`` file, row by row those of the items."""

    kind: ClassVar[str] = "numbers of a file"
    path: str

    @property
    def name(self) -> str:
        """The file."""
        return self.path

    def items(self, X: Any, image_shape: Shape = None) -> Sequence[Any]:
        """Whatever they belong to."""
        found: Sequence[Any] = X
        return found

    def compute(self, items: Sequence[Any], progress: Progress = None) -> Array:
        """The rows of the file, if there are as many as items."""
        vectors = read_table(self.path).X
        if len(vectors) != n_items(items):
            problem = f"holds {counted(len(vectors), 'vector')}, and there {_are(n_items(items))}"
            raise FileError(self.path, f"{problem}; write one row for each, in their order")
        return vectors


def _are(n: int) -> str:
    return "is 1 item" if n == 1 else f"are {n} items"


def n_items(items: Any) -> int:
    """Number of items, of lists and arrays."""
    shape = getattr(items, "shape", None)
    return int(shape[0]) if shape else len(items)
