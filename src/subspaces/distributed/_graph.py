"""The whole two-scale KTRR graph on workers: a file of points for all, a file of coefficients from each task.

A checkpoint holds ``data-<content>.npy`` (the points as given), ``canonical-<content>.npy`` (in the order of
:mod:`subspaces.numerics.ordering`), and for each combination of points and parameters a folder ``graph-<name>`` with the
cells, the global part, the points in cell order, and one ``rows-<start>-<stop>.npz`` per finished task. <name> is a hash of
everything the coefficients depend on, so a file under it is right or absent.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from dask.delayed import delayed

from subspaces import __version__
from subspaces.distributed import _files as files
from subspaces.distributed._input import Points
from subspaces.distributed._tasks import Workers, replaced
from subspaces.estimators.ktrr import KTRR
from subspaces.io._write import unfinished
from subspaces.kernels import KERNELS, Kernel
from subspaces.numerics.blocks import row_blocks
from subspaces.numerics.cells import Cells, build_cells, search
from subspaces.numerics.types import Array, Labels
from subspaces.representation import two_scale
from subspaces.representation.coefficients import Coefficients

ROWS_PER_TASK = 32 * two_scale._BATCH
"""Points of one task: a few seconds of work. Whole batches, because rounding depends on what is solved together."""

_SLAB = 2**16  # points written at a time; whole blocks of `score_parts` for the same reason
_FORMAT = 2  # to be raised when the files or what they depend on change


@dataclass(frozen=True)
class Prepared:
    """What a task reads: everything in cell order, mapped from files."""

    points: Array
    cells: Cells
    model: two_scale.GlobalPart
    features: Array
    squared_norms: Array
    n_candidates: int


def fit_graph(estimator: KTRR, points: Points, workers: Workers, folder: Path) -> None:
    """Run the estimator's own fit on the file of points, with the coefficients computed by the workers."""
    path = points.file or _write_points(points.array, workers, folder)
    data = files.digest(files.mapped(path))

    def representation(X: Array) -> Coefficients:
        if estimator.solver_ != "two_scale":
            return type(estimator)._representation(estimator, X)
        settings = {
            "format": _FORMAT,
            "version": __version__,
            "data": data,
            "scaling": estimator.scaling,
            "kernel": identity_of(estimator.kernel_),
            "bandwidth": estimator.kernel_.bandwidth,
            "reg": float(estimator.reg),
            "seed": estimator._seed,
            "n_landmarks": two_scale.N_LANDMARKS,
            "n_candidates": min(two_scale.N_CANDIDATES, len(X) - 1),
        }
        prepared_folder = prepare(X, estimator.kernel_, settings, folder)
        prepared = open_prepared(prepared_folder, estimator.kernel_)
        estimator._cells, estimator._global = prepared.cells, prepared.model
        return _coefficients(prepared, prepared_folder, workers)

    def in_order(X: Array, order: Labels) -> Array:
        target = folder / f"canonical-{data}.npy"
        if not target.exists():
            files.save_rows(target, X.shape, X.dtype, (X[order[a:b]] for a, b in row_blocks(len(X), 1, _SLAB)))
        return files.mapped(target)

    with replaced(estimator, _representation=representation, _in_order=in_order):
        estimator.fit(files.mapped(path))


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


def prepare(X: Array, kernel: Kernel, settings: dict[str, Any], folder: Path) -> Path:
    """Cells and global part of the points, written once into a folder that appears only when it is complete."""
    text = json.dumps(settings, indent=1, sort_keys=True)
    name = f"graph-{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    target = folder / name
    if target.is_dir():
        return target
    with unfinished(target) as temporary:
        temporary.mkdir()
        _write_prepared(X, kernel, settings, temporary)
        (temporary / "settings.json").write_text(text, encoding="utf-8")
        try:
            os.replace(temporary, target)
        except OSError:
            if not target.is_dir():  # else another run with the same points was faster
                raise
    return target


def _write_prepared(X: Array, kernel: Kernel, settings: dict[str, Any], folder: Path) -> None:
    """The files of :func:`prepare` but for the settings."""
    cells = build_cells(X, seed=settings["seed"])
    model = two_scale.fit_global_part(X, kernel, settings["reg"], settings["n_landmarks"], settings["seed"])
    for part in ("order", "bounds", "centroids", "probes"):
        files.save(folder / f"{part}.npy", getattr(cells, part))
    files.save_several(
        folder / "model.npz",
        penalty=np.array(model.penalty),
        landmarks=model.landmarks,
        whitening=model.whitening,
        spectrum=model.spectrum,
        effective_dimension=np.array(model.effective_dimension),
    )
    slabs = row_blocks(len(X), 1, _SLAB)
    files.save_rows(folder / "points.npy", X.shape, X.dtype, (X[cells.order[a:b]] for a, b in slabs))
    points = files.mapped(folder / "points.npy")
    norms, n_features = np.empty(len(X), dtype=X.dtype), min(two_scale._LEADING, len(model.spectrum))

    def features_of(start: int, stop: int) -> Array:
        features, norms[start:stop] = two_scale.score_parts(points[start:stop], model)
        return features

    files.save_rows(
        folder / "features.npy", (len(X), n_features), X.dtype, (features_of(start, stop) for start, stop in slabs)
    )
    files.save(folder / "squared_norms.npy", norms)


def open_prepared(folder: Path, kernel: Kernel) -> Prepared:
    """Map what :func:`prepare` wrote, of the same kernel."""
    saved = files.load_several(folder / "model.npz")
    if saved is None:
        raise ValueError(f"the checkpoint {str(folder)!r} is damaged: remove this folder and run again.")
    model = two_scale.GlobalPart(
        kernel,
        float(saved["penalty"]),
        saved["landmarks"],
        saved["whitening"],
        saved["spectrum"],
        float(saved["effective_dimension"]),
    )
    arrays = {
        name: files.mapped(folder / f"{name}.npy")
        for name in ("order", "bounds", "centroids", "probes", "points", "features", "squared_norms")
    }
    cells = Cells(arrays["order"], arrays["bounds"], arrays["centroids"], arrays["probes"])
    settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    return Prepared(
        arrays["points"], cells, model, arrays["features"], arrays["squared_norms"], int(settings["n_candidates"])
    )


def _coefficients(prepared: Prepared, folder: Path, workers: Workers) -> Coefficients:
    """All blocks of coefficients, those of earlier runs from their files, put together."""
    n, k = len(prepared.points), prepared.n_candidates
    candidates, values = np.empty((n, k), dtype=np.int32), np.empty((n, k), dtype=prepared.points.dtype)

    def read(start: int, stop: int) -> bool:
        block = files.load_several(block_path(folder, start, stop)) or {}
        if {name: part.shape for name, part in block.items()} != dict.fromkeys(
            ("candidates", "values"), (stop - start, k)
        ):
            return False
        candidates[start:stop], values[start:stop] = block["candidates"], block["values"]
        return True

    # from the list of names: a shared file system may remember for a while that a file it was asked for is not there
    present = set(folder.iterdir())
    blocks, kernel = row_blocks(n, 1, ROWS_PER_TASK), prepared.model.kernel
    missing = [block for block in blocks if block_path(folder, *block) not in present or not read(*block)]
    tasks = [delayed(compute_block, pure=False)(str(folder), kernel, start, stop) for start, stop in missing]
    for number, _ in workers.as_they_come(tasks, announce=True):
        if not read(*missing[number]):
            raise OSError(f"{block_path(folder, *missing[number])} was written by a worker and cannot be read here.")
    order = prepared.cells.order
    return two_scale.sparse_coefficients(order[candidates], values, order, prepared.model.penalty)


def block_path(folder: Path, start: int, stop: int) -> Path:
    """File of the coefficients of the points ``start:stop``, in cell order."""
    return folder / f"rows-{start}-{stop}.npz"


def compute_block(folder: str, kernel: Kernel, start: int, stop: int) -> None:
    """One task, on a worker: compute the coefficients of some points and save them."""
    candidates, values = block_of_coefficients(_opened(folder, kernel), start, stop)
    files.save_several(block_path(Path(folder), start, stop), candidates=candidates, values=values)


@lru_cache(maxsize=1)
def _opened(folder: str, kernel: Kernel) -> Prepared:
    """Opened once per worker: the folder's name stands for its content."""
    return open_prepared(Path(folder), kernel)


def block_of_coefficients(prepared: Prepared, start: int, stop: int) -> tuple[Array, Array]:
    """Candidates and coefficients of the points ``start:stop``: the rows that :func:`~two_scale.two_scale` has there.

    `start` must be a multiple of the batch that two_scale solves together, so that even the rounding is the same.
    """
    points, model = prepared.points, prepared.model
    candidates = _search(prepared, start, stop)
    values = [
        two_scale.local_coefficients(points, np.arange(start + a, start + b), candidates[a:b], model)
        for a, b in row_blocks(stop - start, 1, two_scale._BATCH)
    ]
    return candidates, np.concatenate(values)


def _search(prepared: Prepared, start: int, stop: int) -> Labels:
    """Candidates of the points ``start:stop``, by a search in all cells that hold any of them."""
    cells = prepared.cells
    first = int(np.searchsorted(cells.bounds, start, side="right")) - 1
    last = int(np.searchsorted(cells.bounds, stop, side="left"))
    offset = int(cells.bounds[first])
    own = Cells(
        cells.order[offset : cells.bounds[last]],
        cells.bounds[first : last + 1] - offset,
        cells.centroids[first:last],
        cells.probes[first:last],
    )
    score = two_scale.pair_score(prepared.points, prepared.model, (prepared.features, prepared.squared_norms))

    def shifted(rows: slice, around: Array) -> Array:
        return score(slice(rows.start + offset, rows.stop + offset), around)

    found = search(own, prepared.n_candidates, shifted, database=cells)
    return found[start - offset : stop - offset]
