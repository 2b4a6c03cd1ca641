"""What every reader of images with many bands is asked, and what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from subspaces.applications.cube import Georeference
from subspaces.utils.files import check_size
from subspaces.utils.types import Array


@dataclass(frozen=True)
class CubeRequest:
    """What is wanted from a file: arrays of a ``.npz`` or ``.mat`` file by name, and the most memory for them."""

    array: str | None = None
    label: str | None = None
    max_bytes: int = 2**63 - 1


@dataclass(frozen=True)
class Raw:
    """What a format has, before pixels are looked at: values that are missing are equal to `ignored`."""

    values: Array
    ignored: float | None = None
    wavelengths: Array | None = None
    unit: str = ""
    georeference: Georeference | None = None
    labels: Array | None = None
    notes: tuple[str, ...] = ()


def check_cube_size(path: Path, shape: Sequence[int], itemsize: int, max_bytes: int) -> None:
    """Refuse what does not fit before it is allocated; of Python's numbers: a hostile shape must not overflow."""
    n_bytes = itemsize
    for length in shape:
        n_bytes *= int(length)
    check_size(path, n_bytes, max_bytes)
