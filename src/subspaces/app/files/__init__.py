"""Read samples from files, write labels to files; no file is ever unpickled or executed."""

from __future__ import annotations

from subspaces.app.files.cubes import read_cube
from subspaces.app.files.dataset import Dataset
from subspaces.app.files.label_files import read_labels
from subspaces.app.files.models import load_model, save_model
from subspaces.app.files.reading import READERS, read_table
from subspaces.app.files.writing import WRITERS, check_output, write_labels
from subspaces.utils.files import FileError

__all__ = [
    "Dataset",
    "FileError",
    "READERS",
    "WRITERS",
    "check_output",
    "load_model",
    "read_cube",
    "read_labels",
    "read_table",
    "save_model",
    "write_labels",
]
