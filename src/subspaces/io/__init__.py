"""Read points from files, write labels to files; no file is ever unpickled or executed."""

from __future__ import annotations

from subspaces.io.dataset import Dataset, FileError
from subspaces.io.reading import READERS, read_table
from subspaces.io.writing import WRITERS, check_output, write_atomically, write_labels

__all__ = [
    "Dataset",
    "FileError",
    "READERS",
    "WRITERS",
    "check_output",
    "read_table",
    "write_atomically",
    "write_labels",
]
