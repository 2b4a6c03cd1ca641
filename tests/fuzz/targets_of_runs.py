"""Fuzz targets of files that our own runs leave behind: somebody may have changed them, so they are untrusted, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fuzz.harness import ALLOWED, Watch, bounded, outcome, sound, watched
from fuzz.packing import exactly
from subspaces.app.files import FileError


def checkpoint(watch: Watch, data: bytes) -> None:
    """Arrays of a distributed run's checkpoint."""
    from subspaces.distributed import _files

    flags = data[0] if data else 0
    path = watch.put("x.npz" if flags & 1 else "x.npy", data[1:])
    with bounded(), watched(watch, len(data)):
        if flags & 1:
            several = _files.load_several(path)
            sound(several is None or all(isinstance(part, np.ndarray) for part in several.values()), "not arrays")
        elif flags & 2:
            array, _ = outcome(path, lambda: _files.mapped(path))
            sound(array is None or array.dtype.kind != "O", "objects")
        else:
            array = _files.load(path)
            sound(array is None or (isinstance(array, np.ndarray) and array.dtype.kind != "O"), "not an array")


def dask_npy(watch: Watch, data: bytes) -> None:
    """A ``.npy`` file that workers read piece by piece."""
    path = watch.put("x.npy", data[1:])
    _streamed(watch, path, len(data))


def zarr(watch: Watch, data: bytes) -> None:
    """A Zarr folder: its metadata and one chunk."""
    meta, chunk = exactly(2, data[1:])
    path = watch.fresh() / "x.zarr"
    new = data[:1] == b"\x01"
    (path / "c" / "0").mkdir(parents=True)
    (path / ("zarr.json" if new else ".zarray")).write_bytes(meta)
    (path / "c" / "0" / "0" if new else path / "0.0").write_bytes(chunk)
    _streamed(watch, path, len(data))


def _streamed(watch: Watch, path: Path, n_bytes: int) -> None:
    from subspaces.distributed._input import as_source
    from subspaces.distributed._tasks import ThisProcess

    def read() -> Any:
        points = as_source(str(path), ThisProcess())
        if points.shape[0] * points.shape[1] * points.dtype.itemsize > ALLOWED:  # a run would take it piece by piece
            return None
        try:
            return points.whole(ThisProcess())
        except Exception:  # a chunk that cannot be unpacked, on a worker: Dask reports which
            if path.suffix != ".zarr":
                raise
            return None

    with watched(watch, n_bytes):
        X, _ = outcome(path, read, (FileError,))
        sound(X is None or (X.ndim == 2 and X.dtype.kind == "f" and X.dtype.isnative), "not rows of floats")


def marker(watch: Watch, data: bytes) -> None:
    """The marker of a sorted folder."""
    from subspaces.app.files.image_files import MARKER
    from subspaces.app.files.sorting import check_target

    folder = watch.fresh()
    target = folder / "sorted"
    target.mkdir()
    (target / MARKER).write_bytes(data[1:])
    with watched(watch, len(data)):
        outcome(target, lambda: check_target(target, source=folder / "photos"))


def torch_checkpoint(watch: Watch, data: bytes) -> None:
    """The file of a deep method's training."""
    from subspaces.deep.training import Checkpoint

    kept = Checkpoint(watch.fresh(), "dsc_net", {"a": "1"})
    kept.path.write_bytes(data[1:])
    with watched(watch, len(data)):
        state, _ = outcome(kept.path, kept.load, (ValueError,))
        sound(state is None or isinstance(state, dict), "a state that is no dictionary")


TARGETS_OF_RUNS = (checkpoint, dask_npy, zarr, marker, torch_checkpoint)
