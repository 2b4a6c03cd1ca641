"""Cells, the smallest pieces of work that are kept: each is computed once, in parallel, and kept as soon as it is done.

A cell is a plain mapping (data, method, parameters, cuts, versions). Its result is one line of a file, with the hash of
the cell and a checksum: a line that was cut short by a killed run is not believed, and the cell is computed again.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from subspaces.utils.atomic import write_text

CODE = 1
"""Raised whenever a change of the code changes results: cells of older code are then not found any more."""

Cell = dict[str, Any]
Result = dict[str, Any]
Listener = Callable[[int, int], object]
"""Called after every cell with the number of cells that are done and of all."""


def canonical(value: Any) -> str:
    """Return the one JSON text of a value, whatever the order of its keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical text."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def read_runs(path: Path) -> dict[str, Result]:
    """Read kept results by the digests of their cells, without lines that cannot be trusted."""
    found: dict[str, Result] = {}
    for line in path.read_bytes().splitlines() if path.exists() else []:
        try:
            document = json.loads(line)
            if document["checksum"] == digest(document["result"])[:16]:
                found[document["cell"]] = document["result"]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return found


def add_run(path: Path, key: str, result: Result) -> None:
    """Keep one more result; it begins a line of its own even after one that was cut short."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("ab") as file:
            file.write(f"\n{_line(key, result)}\n".encode())
    except OSError as error:
        error.filename = str(path)  # a full disk does not say of which file
        raise


def write_runs(path: Path, keys: Iterable[str], results: Mapping[str, Result]) -> None:
    """Write the file anew with these cells alone, in this order."""
    lines = [_line(key, results[key]) for key in dict.fromkeys(keys) if key in results]
    if lines:
        write_text(path, "\n".join(lines) + "\n")


def _line(key: str, result: Result) -> str:
    kept = {name: value for name, value in result.items() if value not in ([], None)}
    return canonical({"cell": key, "result": kept, "checksum": digest(kept)[:16]})


# ------------------------------------------------------------------ computing them


@dataclass
class Outcome:
    """Results and errors by the digest of their cell, and how many cells were found, computed, left for later."""

    results: dict[str, Result] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    n_found: int = 0
    n_computed: int = 0
    n_left: int = 0

    def result(self, cell: Cell) -> Result | None:
        """Return the result of a cell, None if there is none."""
        return self.results.get(digest(cell))


def run_cells(
    cells: Iterable[Cell],
    path: Path,
    *,
    data_home: Path | None = None,
    jobs: int = 1,
    listener: Listener | None = None,
    until: float | None = None,
    again: Collection[str] = (),
) -> Outcome:
    """Return the results of all cells, computed where the file has none; those of `again` also where it has one.

    Every worker has one BLAS thread, so `jobs` is the number of cores in use. An error in a cell is noted and the rest
    goes on; an interruption stops the workers and passes on. After `until` (of time.monotonic) no cell is begun.
    """
    by_key = {digest(cell): cell for cell in cells}
    late = until is not None and time.monotonic() >= until
    kept = read_runs(path)
    outcome = Outcome({key: kept[key] for key in by_key if key in kept})
    outcome.n_found = len(set(outcome.results) - set(again))
    missing = {key: cell for key, cell in by_key.items() if key not in kept or key in again}
    if missing and not late:
        path.parent.mkdir(parents=True, exist_ok=True)  # the first write must not find out that the place is wrong
        with closing((_in_this_process if jobs == 1 else _in_workers)(missing, data_home, until, jobs)) as finished:
            for done, (key, result) in enumerate(finished, start=1):
                if isinstance(result, str):
                    cell = missing[key]
                    outcome.errors[key] = f"{cell['method']} {cell['parameters']} on {cell['points']}: {result}"
                else:
                    outcome.results[key] = result
                    outcome.n_computed += 1
                    add_run(path, key, result)
                if listener is not None:
                    listener(done, len(missing))
        write_runs(path, by_key, {**read_runs(path), **outcome.results})
    outcome.n_left = len(missing) - outcome.n_computed - len(outcome.errors)
    return outcome


Finished = Generator[tuple[str, Result | str], None, None]
"""Results, or errors as text, by the digest of their cell, as they come."""


def _in_this_process(missing: Mapping[str, Cell], home: Path | None, until: float | None, _: int) -> Finished:
    with _one_thread():
        for key, cell in missing.items():
            if until is not None and time.monotonic() >= until:
                return
            yield key, _computed(cell, home)


def _in_workers(missing: Mapping[str, Cell], home: Path | None, until: float | None, jobs: int) -> Finished:
    # spawned, not forked: a fork of a process whose BLAS has threads may hang
    context, before = multiprocessing.get_context("spawn"), set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(min(jobs, len(missing)), mp_context=context, initializer=_start_worker)
    try:
        keys = {pool.submit(_computed, cell, home): key for key, cell in missing.items()}
        waiting = set(keys)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            if until is not None and time.monotonic() >= until:
                waiting = {future for future in waiting if not future.cancel()}
            for future in done:
                try:
                    yield keys[future], future.result()
                except BrokenProcessPool:
                    yield keys[future], "its worker was killed, perhaps for lack of memory; use fewer --jobs"
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        workers = set(multiprocessing.active_children()) - before
        for child in workers:
            child.terminate()
        for child in workers:
            child.join(5)
        raise
    pool.shutdown()


def _computed(cell: Cell, data_home: Path | None) -> Result | str:
    """Return the result, or the error as text."""
    from reproduction.compute import compute

    try:
        return compute(cell, data_home)
    except Exception as error:  # whatever a method throws, the other cells go on
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _start_worker() -> None:
    """Use one BLAS thread, leave Ctrl-C to the parent, end when the parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    _one_thread()
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _one_thread() -> Any:
    """Limit the libraries to one thread, until the end of a ``with`` or of the process."""
    import sklearn.cluster  # noqa: F401  (loads the libraries that are limited next)
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)
