"""Files for the tests of the readers: how they are written, refused, and what must never run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from subspaces.app.files import FileError, read_table


def named_points():
    """Twelve points with their classes and names."""
    rng = np.random.default_rng(7)
    return rng.normal(size=(12, 4)), np.repeat(["cat", "dog", "elk"], 4), [f"img{i}" for i in range(12)]


def refusal(path, **options):
    """The one line with which a file is refused."""
    with pytest.raises(FileError) as caught:
        read_table(path, **options)
    text = str(caught.value)
    assert text.isprintable()
    assert text.startswith(str(path))
    assert len(text) < 1000
    return text


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def save_mat73(path, arrays):
    """What MATLAB's save -v7.3 writes: HDF5 behind 512 bytes of text, axes in column-major order."""
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in arrays.items():
            file.create_dataset(name, data=np.asarray(value).T).attrs["MATLAB_class"] = np.bytes_("double")
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512))
    return path


class Bomb:
    """Leaves a trace if it is ever unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return Path.write_text, (self.trace, "executed")
