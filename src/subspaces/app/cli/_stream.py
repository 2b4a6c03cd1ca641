"""``subspaces cluster`` for files that are read piece by piece: by this process, or the workers of a Dask cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import typer

STREAMED = (".npy", ".parquet", ".zarr")
WORKER_BYTES, OWN_BYTES = 450 * 2**20, 64 * 2**20
"""What a worker needs at least, for its libraries and some pieces of the file; and this process beside workers."""
LEFT = (".npy", ".parquet")
"""Labels that are written piece by piece and never are in memory as a table."""


def wanted(file: Path, scheduler: str | None) -> bool:
    """Whether a file is too large to be read whole, or a scheduler was given."""
    from subspaces.utils.memory import available_bytes

    is_streamed = file.name.endswith(STREAMED) or _holds_tables(file)
    if scheduler is not None and not is_streamed:
        problem = f"needs a file of {', '.join(STREAMED)}, or a folder of .parquet or .csv files; got {file.name}"
        raise typer.BadParameter(problem, param_hint="--scheduler")
    if scheduler is not None or file.is_dir() or not is_streamed:
        return is_streamed
    limit, size = available_bytes(), file.stat().st_size
    # the points, a scaled copy, the work; where pieces have no room either, whatever can be read is
    return size > limit or (size > limit / 3 and limit > WORKER_BYTES + OWN_BYTES)


def _holds_tables(folder: Path) -> bool:
    """Whether a folder holds Parquet or CSV files and nothing else."""
    if not folder.is_dir():
        return False
    suffixes = {path.suffix for path in folder.rglob("*") if path.is_file() and not path.name.startswith((".", "_"))}
    return suffixes in ({".parquet"}, {".csv"})


def cluster_stream(
    estimator: Any,
    file: Path,
    scheduler: str | None,
    checkpoint: Path | None,
    threads: int | None,
    memory: int | None,
    show: bool,
    output: Path | None = None,
) -> dict[str, Any]:
    """Cluster a file piece by piece; return what ``describe`` has to know beside the estimator."""
    from time import perf_counter

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
        progress = stack.enter_context(_bar(show))
        fit_predict(estimator, str(file), client=client, checkpoint=checkpoint, progress=progress, output=left)
        who = {None: "this process", "local": "workers on this machine"}.get(scheduler, f"the workers of {scheduler}")
    if not hasattr(estimator, "labels_"):
        estimator.labels_ = _read(left)
    return {
        "source": str(file),
        "shape": (len(estimator.labels_), estimator.n_features_in_),
        "seconds": perf_counter() - start,
        "notes": [f"read piece by piece by {who}"],
    }


def _read(path: Path | None) -> Any:
    """Labels that were left in a Parquet file."""
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path, columns=["cluster"]).column("cluster").to_numpy()


def _workers(threads: int | None, memory: int | None) -> dict[str, Any]:
    """How many workers to start here and what they may take together, so that all processes stay within --memory."""
    if memory is None:
        return {"n_workers": threads}
    from subspaces.utils.memory import available_bytes, require

    free = available_bytes()
    remedy = "Allow more with --memory, or let a cluster do it with --scheduler."
    require(WORKER_BYTES + OWN_BYTES, "reading the file piece by piece, by one worker at least,", remedy)
    n_workers = min(threads or os.cpu_count() or 1, (free - OWN_BYTES) // WORKER_BYTES)
    return {"n_workers": n_workers, "memory": max(n_workers * WORKER_BYTES, free // 2)}


@contextmanager
def _bar(show: bool) -> Iterator[Any]:
    """Progress of the workers with the time left, if a person is watching."""
    if not (show and sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    with Progress(BarColumn(), TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
