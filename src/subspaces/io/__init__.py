"""Read points from files, write labels to files; no file is ever unpickled or executed."""

from __future__ import annotations

from subspaces.io.cube import Cube, Georeference, as_cube
from subspaces.io.cube_reading import read_cube
from subspaces.io.dataset import Dataset, FileError
from subspaces.io.reading import READERS, read_table
from subspaces.io.writing import WRITERS, check_output, write_atomically, write_labels

__all__ = [
    "Cube",
    "Dataset",
    "FileError",
    "Georeference",
    "READERS",
    "WRITERS",
    "as_cube",
    "check_output",
    "read_cube",
    "read_table",
    "write_atomically",
    "write_labels",
]
