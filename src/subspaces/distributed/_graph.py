"""The whole two-scale KTRR graph on workers: a file of points for all, a file of coefficients from each task.

A checkpoint holds ``data-<content>.npy`` (the points as given), ``canonical-<content>.npy`` (in the order of
:mod:`subspaces.numerics.ordering`), and for each combination of points and parameters a folder ``graph-<name>`` with
the cells, the global part, the points in cell order, and one ``rows-<start>-<stop>.npz`` per finished task. <name> is
a hash of everything the coefficients depend on, so a file under it is right or absent.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from dask.delayed import delayed

from subspaces import __version__
from subspaces.distributed import _files as files
from subspaces.distributed._input import Points
from subspaces.distributed._tasks import Workers
from subspaces.engine.plan import Plan
from subspaces.engine.run import Journey, run
from subspaces.estimators.ktrr import KTRR
from subspaces.io.writing import unfinished
from subspaces.kernels import KERNELS, Kernel
from subspaces.numerics.blocks import row_blocks
from subspaces.numerics.cells import Cells
from subspaces.numerics.types import Array, Data, Labels
from subspaces.numerics.workers import Store
from subspaces.representation.nystrom import GlobalPart
from subspaces.representation.two_scale import BATCH, SLAB, Prepared, rows_of_coefficients

ROWS_PER_TASK = 128 * BATCH
"""Points of one task: a few seconds of work. Whole batches, because rounding depends on what is solved together."""

_CELLS = ("order", "bounds", "centroids", "probes")
_MODEL = ("penalty", "landmarks", "whitening", "spectrum", "effective_dimension", "n_points", "mean")
_FORMAT = 5  # to be raised when the files or what they depend on change


def fit_graph(estimator: KTRR, points: Points, workers: Workers, folder: Path) -> None:
    """Fit the estimator to the file of points, with the coefficients computed by the workers."""
    path = points.file or _write_points(points.array, workers, folder)
    data = files.digest(files.mapped(path))

    def runner(plan: Plan, X: Data, **options: Any) -> Journey:
        return run(plan, X, workers=OnWorkers(workers, folder, data, plan.scaling), **options)

    estimator.fit_by(files.mapped(path), runner)


@dataclass(frozen=True)
class OnWorkers:
    """Where a run of the engine keeps its points, and who computes the rows of its coefficients.

    Attributes
    ----------
    workers : those of Dask
    folder : the checkpoint
    data, scaling : content of the points as given, and what is done to them
    """

    workers: Workers
    folder: Path
    data: str
    scaling: str | None

    def in_order(self, X: Data, order: Labels, pairwise: bool) -> Data:
        """The points in canonical order, in a file."""
        target = self.folder / f"canonical-{self.data}.npy"
        if not target.exists():
            slabs = row_blocks(len(X), 1, SLAB)
            files.save_rows(target, X.shape, X.dtype, (X[order[start:stop]] for start, stop in slabs))
        return files.mapped(target)

    def prepare(self, make: Callable[[Store], Any], settings: Mapping[str, Any]) -> Any:
        """What all tasks read, from its folder; that is written once and appears only when it is complete."""
        kernel: Kernel = settings["kernel"]
        known = {**settings, "kernel": identity_of(kernel), "bandwidth": kernel.bandwidth}
        known |= {"format": _FORMAT, "version": __version__, "data": self.data, "scaling": self.scaling}
        target = written(make, known, self.folder)
        return _opened(str(target), kernel)

    def rows(self, function: Callable[[Any, int, int], Any], prepared: OnFile, n: int) -> list[tuple[Array, Array]]:
        """All blocks of coefficients, those of earlier runs from their files."""
        assert function is rows_of_coefficients  # what compute_block runs
        folder = Path(prepared.folder)
        # from the list of names: a shared file system may remember for a while that a file is not there
        present = set(folder.iterdir())
        blocks, kernel = row_blocks(n, 1, ROWS_PER_TASK), prepared.model.kernel
        found = {b: read_block(folder, *b, prepared) for b in blocks if block_path(folder, *b) in present}
        missing = [block for block in blocks if found.get(block) is None]
        tasks = [delayed(compute_block, pure=False)(str(folder), kernel, start, stop) for start, stop in missing]
        for number, _ in self.workers.as_they_come(tasks, announce=True):
            block = missing[number]
            found[block] = read_block(folder, *block, prepared)
            if found[block] is None:
                raise OSError(f"{block_path(folder, *block)} was written by a worker and cannot be read here.")
        return [part for block in blocks if (part := found[block]) is not None]


@dataclass(frozen=True)
class OnFile(Prepared):
    """What tasks read, mapped from the files of a folder."""

    folder: str


def _write_points(array: Any, workers: Workers, folder: Path) -> Path:
    """Let the workers write all chunks into one ``.npy`` file, named by its content.

    Written anew by every run: only the content says whether these are the points of the run before.
    """
    row_bytes = array.shape[1] * array.dtype.itemsize
    starts = np.cumsum([0, *array.chunks[0]])
    blocks = array.to_delayed().ravel()
    with unfinished(folder / "data") as temporary:
        offset = np.lib.format.open_memmap(temporary, mode="w+", dtype=array.dtype, shape=array.shape).offset
        workers.compute(
            [
                delayed(_write_at)(block, str(temporary), int(offset + start * row_bytes))
                for block, start in zip(blocks, starts, strict=False)
            ]
        )
        target = folder / f"data-{files.digest(files.mapped(temporary))}.npy"
        os.replace(temporary, target)
    return target


def _write_at(block: Array, path: str, offset: int) -> None:
    # plain writes: two machines that write through memory maps may undo each other's at shared pages
    with open(path, "r+b") as stream:
        stream.seek(offset)
        stream.write(np.ascontiguousarray(block).data)
        stream.flush()
        os.fsync(stream.fileno())


def identity_of(kernel: Kernel) -> str:
    """What tells a settled kernel from others of its bandwidth: its name, or class and fields of a user's own."""
    if type(kernel) is KERNELS.get(kernel.name):
        return kernel.name
    return f"{type(kernel).__module__}.{type(kernel).__qualname__}{sorted(vars(kernel).items())!r}"


def written(make: Callable[[Store], Prepared], settings: Mapping[str, Any], folder: Path) -> Path:
    """The folder of what :func:`open_prepared` reads, made where it is not there yet."""
    text = json.dumps(dict(settings), indent=1, sort_keys=True)
    target = folder / f"graph-{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    if target.is_dir():
        return target
    with unfinished(target) as temporary:
        temporary.mkdir()

        def store(name: str, shape: tuple[int, ...], dtype: Any, blocks: Iterable[Array]) -> Array:
            files.save_rows(temporary / f"{name}.npy", shape, np.dtype(dtype), blocks)
            return files.mapped(temporary / f"{name}.npy")

        _save(make(store), temporary)
        (temporary / "settings.json").write_text(text, encoding="utf-8")
        try:
            os.replace(temporary, target)
        except OSError:
            if not target.is_dir():  # else another run with the same points was faster
                raise
    return target


def _save(prepared: Prepared, folder: Path) -> None:
    """The files beside the large ones, which were stored while they were made."""
    for part in _CELLS:
        files.save(folder / f"{part}.npy", getattr(prepared.cells, part))
    files.save_several(folder / "model.npz", **{part: np.array(getattr(prepared.model, part)) for part in _MODEL})
    files.save(folder / "squared_norms.npy", prepared.squared_norms)


def open_prepared(folder: Path, kernel: Kernel) -> OnFile:
    """Map what :func:`written` wrote, of the same kernel."""
    saved = files.load_several(folder / "model.npz")
    if saved is None:
        raise ValueError(f"the checkpoint {str(folder)!r} is damaged: remove this folder and run again.")
    parts: list[Any] = [saved[part] if saved[part].ndim else float(saved[part]) for part in _MODEL]
    model = GlobalPart(kernel, *parts)
    arrays = [files.mapped(folder / f"{name}.npy") for name in (*_CELLS, "points", "features", "squared_norms")]
    *cells, points, features, squared_norms = arrays
    settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    n_candidates = int(settings["n_candidates"])
    return OnFile(points, Cells(*cells), model, features, squared_norms, n_candidates, folder=str(folder))


def block_path(folder: Path, start: int, stop: int) -> Path:
    """File of the coefficients of the points ``start:stop``, in cell order."""
    return folder / f"rows-{start}-{stop}.npz"


def read_block(folder: Path, start: int, stop: int, prepared: Prepared) -> tuple[Array, Array] | None:
    """Candidates and coefficients that a task wrote; None where they cannot be read."""
    block = files.load_several(block_path(folder, start, stop)) or {}
    shape = (stop - start, prepared.n_candidates)
    if {name: part.shape for name, part in block.items()} != {"candidates": shape, "values": shape}:
        return None
    return block["candidates"].astype(np.int32, copy=False), block["values"].astype(prepared.points.dtype, copy=False)


def compute_block(folder: str, kernel: Kernel, start: int, stop: int) -> None:
    """One task, on a worker: compute the coefficients of some points and save them."""
    candidates, values = rows_of_coefficients(_opened(folder, kernel), start, stop)
    files.save_several(block_path(Path(folder), start, stop), candidates=candidates, values=values)


@lru_cache(maxsize=1)
def _opened(folder: str, kernel: Kernel) -> OnFile:
    """Opened once per process: the folder's name stands for its content."""
    return open_prepared(Path(folder), kernel)
