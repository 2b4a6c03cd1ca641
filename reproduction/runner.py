"""Cells → results: what is in the cache is read, the rest is computed in parallel and kept as soon as it is done."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reproduction.entries import Cell, Result, cell_path, digest, read_result, write_result
from subspaces.io.writing import remove_leftovers


@dataclass
class Outcome:
    """Results by the digest of their cell; what failed, and how many cells were found, computed, left for later."""

    results: dict[str, Result] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    n_found: int = 0
    n_computed: int = 0
    n_left: int = 0

    def result(self, cell: Cell) -> Result | None:
        """The result of a cell, None if it failed."""
        return self.results.get(digest(cell))


Listener = Callable[[int, int, str], None]
"""Told of every cell that is done: how many are, of how many, and the readable name of the last."""


def run_cells(
    cells: Sequence[Cell],
    cache: Path,
    *,
    data_home: Path | None = None,
    jobs: int = 1,
    listener: Listener | None = None,
    known: Mapping[str, Result] | None = None,
    until: float | None = None,
) -> Outcome:
    """Results of all cells.

    Every worker has one BLAS thread, so `jobs` is the number of cores in use. An error in a cell is noted and the
    rest goes on; an interruption stops the workers and passes on. `known` are results by digest that need no cache;
    after `until` (of :func:`time.monotonic`) no further cell is begun.
    """
    outcome = Outcome()
    missing: dict[str, Cell] = {}
    for cell in cells:
        found = (known or {}).get(digest(cell)) or read_result(cache, cell)
        if found is None:
            missing[digest(cell)] = cell
        else:
            outcome.results[digest(cell)] = found
    outcome.n_found = len(outcome.results)
    if not missing:
        return outcome
    # also made where everything is computed here: the first write must not find out that the place is wrong
    cache.mkdir(parents=True, exist_ok=True)
    remove_leftovers(cache)
    places = (cache, data_home, until)
    finished = _computed_here(missing, *places) if jobs == 1 else _computed(missing, *places, jobs)
    for done, (key, result) in enumerate(finished, start=1):
        if isinstance(result, str):
            outcome.errors[key] = f"{cell_path(cache, missing[key]).stem}: {result}"
        else:
            outcome.results[key] = result
            outcome.n_computed += 1
        if listener is not None:
            listener(done, len(missing), cell_path(cache, missing[key]).stem[:-17])
    outcome.n_left = len(missing) - outcome.n_computed - len(outcome.errors)
    return outcome


Finished = Iterator[tuple[str, Result | str]]
"""Results, or errors as text, by the digest of their cell, as they come."""


def _is_late(until: float | None) -> bool:
    return until is not None and time.monotonic() >= until


def _computed_here(missing: dict[str, Cell], cache: Path, data_home: Path | None, until: float | None) -> Finished:
    with _one_thread():
        for key, cell in missing.items():
            if _is_late(until):
                return
            yield key, _compute_and_keep(cell, cache, data_home)


def _computed(
    missing: dict[str, Cell], cache: Path, data_home: Path | None, until: float | None, jobs: int
) -> Finished:
    # spawned, not forked: a fork of a process whose BLAS has threads may hang
    context = multiprocessing.get_context("spawn")
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(min(jobs, len(missing)), mp_context=context, initializer=_start_worker)
    try:
        futures: dict[Future[Any], str] = {
            pool.submit(_compute_and_keep, cell, cache, data_home): key for key, cell in missing.items()
        }
        waiting = set(futures)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            if _is_late(until):
                waiting = {future for future in waiting if not future.cancel()}
            for future in done:
                try:
                    yield futures[future], future.result()
                except BrokenProcessPool:
                    yield futures[future], "its worker was killed, perhaps for lack of memory; use fewer --jobs"
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        workers = set(multiprocessing.active_children()) - before
        for child in workers:
            child.terminate()
        for child in workers:
            child.join(5)
        remove_leftovers(cache)  # of a worker that was just writing
        raise
    pool.shutdown()


def _compute_and_keep(cell: Cell, cache: Path, data_home: Path | None) -> Result | str:
    """The result, already kept; or the error as text."""
    from reproduction.compute import compute

    found = read_result(cache, cell)  # another run may have been faster
    if found is not None:
        return found
    try:
        result = compute(cell, data_home)
    except Exception as error:  # whatever a method throws, the other cells go on
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    write_result(cache, cell, result)
    return result


def _start_worker() -> None:
    """One BLAS thread; the keyboard's interruption is the parent's business, and its death ends the worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_die_with, args=(parent,), daemon=True).start()
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    _one_thread()
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def _die_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _one_thread() -> Any:
    """Limit the libraries to one thread, until the end of a ``with`` or of the process."""
    import sklearn.cluster  # noqa: F401  (loads the libraries that are limited next)
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)
