"""``subspaces cluster`` for files that are read piece by piece: by this process, or the workers of a Dask cluster."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Any

from subspaces.app.cli._common import refuse
from subspaces.app.cli._task import Run, Task
from subspaces.app.description import describe

STREAMED = (".npy", ".parquet")
WORKER_BYTES, OWN_BYTES = 450 * 2**20, 64 * 2**20
"""Bytes that a worker needs at least, for its libraries and some pieces of the file; and this process beside them."""
LEFT = (".npy", ".parquet")
"""Labels that are written piece by piece and never are in memory as a table."""


def wanted(file: Path, scheduler: str | None) -> bool:
    """Return True if a file is too large to be read whole, or a scheduler was given."""
    from subspaces.utils.memory import available_bytes

    is_streamed = file.name.endswith(STREAMED) or _holds_tables(file)
    if scheduler is not None and not is_streamed:
        problem = f"needs a file of {', '.join(STREAMED)}, or a folder of .parquet or .csv files; got {file.name}"
        raise refuse("--scheduler", problem)
    if scheduler is not None or not is_streamed:
        return is_streamed
    files = [path for path in file.rglob("*") if path.is_file()] if file.is_dir() else [file]
    limit, size = available_bytes(), sum(path.stat().st_size for path in files)
    # the samples, a scaled copy, the work; where pieces have no room either, whatever can be read is
    return size > limit or (size > limit / 3 and limit > WORKER_BYTES + OWN_BYTES)


def _holds_tables(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    suffixes = {path.suffix for path in folder.rglob("*") if path.is_file() and not path.name.startswith((".", "_"))}
    return suffixes in ({".parquet"}, {".csv"})


def run_stream(
    task: Task,
    output: Path | None,
    scheduler: str | None,
    checkpoint: Path | None,
    threads: int | None,
    memory: int | None,
) -> Run:
    """Cluster a file piece by piece; nothing is known of its samples but their labels."""
    estimator, file = task.estimator(None), task.inputs.main
    from subspaces.app.files import FileError
    from subspaces.distributed import connect, fit_predict
    from subspaces.utils.memory import limited

    if output is not None and file.resolve() in output.resolve().parents:
        raise FileError(output, f"would be read as a part of {file} the next time; choose another folder")
    start = perf_counter()
    left = output if output is not None and output.suffix in LEFT else None
    with ExitStack() as stack:
        client: Any = "here"
        if scheduler is not None:
            address = None if scheduler == "local" else scheduler
            local = {} if address else _workers(threads, memory)
            client = stack.enter_context(connect(address, **local))
            stack.enter_context(limited(None if memory is None else memory - local.get("memory", 0)))
        fit_predict(estimator, str(file), client=client, checkpoint=checkpoint, output=left)
        who = {None: "this process", "local": "workers on this machine"}.get(scheduler, f"the workers of {scheduler}")
    if not hasattr(estimator, "labels_"):  # they were left in a Parquet file
        import pyarrow.parquet

        estimator.labels_ = pyarrow.parquet.read_table(left, columns=["cluster"]).column("cluster").to_numpy()
    shape, seconds = (len(estimator.labels_), estimator.n_features_in_), perf_counter() - start
    notes = [f"read piece by piece by {who}"]
    document = describe(estimator, source=str(file), shape=shape, method=task.method, seconds=seconds, notes=notes)
    return Run(document, estimator)


def _workers(threads: int | None, memory: int | None) -> dict[str, Any]:
    """Return how many workers to start here and what they may take together, so that all stay within --memory."""
    if memory is None:
        return {"n_workers": threads}
    from subspaces.utils.memory import available_bytes, require

    free = available_bytes()
    remedy = "Allow more with --memory, or let a cluster do it with --scheduler."
    require(WORKER_BYTES + OWN_BYTES, "reading the file piece by piece, by one worker at least,", remedy)
    n_workers = min(threads or os.cpu_count() or 1, (free - OWN_BYTES) // WORKER_BYTES)
    return {"n_workers": n_workers, "memory": max(n_workers * WORKER_BYTES, free // 2)}
