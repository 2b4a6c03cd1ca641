"""Cells, the smallest pieces of work that are kept: each is computed once, in parallel, and kept as soon as it is done.

A cell is a plain mapping (data, method, parameters, cuts, versions); its result is one JSON file whose name ends in a
hash of the cell. Files appear whole or not at all and carry a checksum, so a killed run loses only the cells in flight,
and two runs may share a folder.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from subspaces.io.writing import remove_leftovers, write_text

CODE = 1
"""Raised whenever a change of the code changes results: cells of older code are then not found any more."""

LARGE = ("C", "W", "X", "y", "labels", "image")
"""Parts of results that are for pictures: made again in seconds, and partly the data itself."""

Cell = dict[str, Any]
Result = dict[str, Any]
Listener = Callable[[int, int], None]
"""Called after every cell with the number of cells that are done and of all."""


def canonical(value: Any) -> str:
    """Return the one JSON text of a value, whatever the order of its keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical text."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def cell_path(cache: Path, cell: Cell) -> Path:
    """Return the file of a cell's result: a part for people to read, then the hash of all inputs."""
    data = cell["points"]
    words = [data["name"], *(str(data[name]) for name in ("first", "draw", "corruption", "level") if name in data)]
    words += [cell["method"], *(f"{name}-{value}" for name, value in sorted(cell["parameters"].items()))]
    readable = re.sub(r"[^a-z0-9.]+", "-", "-".join(words).lower())[:70].strip("-")
    return cache / f"{readable}-{digest(cell)[:16]}.json"


def read_result(cache: Path, cell: Cell) -> Result | None:
    """Read a kept result; None where there is none that can be trusted."""
    try:
        document = json.loads(cell_path(cache, cell).read_bytes())
        if document["cell"] == cell and document["checksum"] == digest(document["result"]):
            return dict(document["result"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass  # missing, cut short or not ours: computed again
    return None


def write_result(cache: Path, cell: Cell, result: Result) -> None:
    """Keep a result."""
    cache.mkdir(parents=True, exist_ok=True)
    document = {"cell": cell, "result": result, "checksum": digest(result)}
    write_text(cell_path(cache, cell), json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))


def read_runs(path: Path, *, whole: bool = True) -> dict[str, Result]:
    """Read results kept beside a table, by the digests of their cells, without lines that cannot be trusted.

    With `whole`, also without those that lack what their picture needs.
    """
    found: dict[str, Result] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            document = json.loads(line)
            trusted = document["checksum"] == digest(document["result"])[:16]
            if trusted and not (whole and document.get("drawn")):
                found[document["cell"]] = document["result"]
        except (ValueError, KeyError, TypeError):
            continue
    return found


def write_runs(path: Path, cells: Iterable[Cell], results: Mapping[str, Result]) -> None:
    """Keep the results of an experiment in one file, a line for each cell: what its table is made from."""
    lines = []
    for key in dict.fromkeys(map(digest, cells)):
        found = {name: value for name, value in results.get(key, {}).items() if value not in ([], None)}
        result = {name: value for name, value in found.items() if name not in LARGE}
        if result:
            drawn = {"drawn": True} if len(result) < len(found) else {}
            lines.append(canonical({"cell": key, "result": result, "checksum": digest(result)[:16], **drawn}))
    if lines:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, "\n".join(lines) + "\n")


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
    cells: Sequence[Cell],
    cache: Path,
    *,
    data_home: Path | None = None,
    jobs: int = 1,
    listener: Listener | None = None,
    known: Mapping[str, Result] | None = None,
    until: float | None = None,
) -> Outcome:
    """Return the results of all cells, computed where neither `known` (by digest) nor the cache has them.

    Every worker has one BLAS thread, so `jobs` is the number of cores in use. An error in a cell is noted and the rest
    goes on; an interruption stops the workers and passes on. After `until` (of time.monotonic) no cell is begun.
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
    cache.mkdir(parents=True, exist_ok=True)  # the first write must not find out that the place is wrong
    remove_leftovers(cache)
    finished = (_in_this_process if jobs == 1 else _in_workers)(missing, cache, data_home, until, jobs)
    for done, (key, result) in enumerate(finished, start=1):
        if isinstance(result, str):
            outcome.errors[key] = f"{cell_path(cache, missing[key]).stem}: {result}"
        else:
            outcome.results[key] = result
            outcome.n_computed += 1
        if listener is not None:
            listener(done, len(missing))
    outcome.n_left = len(missing) - outcome.n_computed - len(outcome.errors)
    return outcome


Finished = Iterator[tuple[str, Result | str]]
"""Results, or errors as text, by the digest of their cell, as they come."""


def _in_this_process(
    missing: Mapping[str, Cell], cache: Path, home: Path | None, until: float | None, _: int
) -> Finished:
    with _one_thread():
        for key, cell in missing.items():
            if until is not None and time.monotonic() >= until:
                return
            yield key, _compute_and_keep(cell, cache, home)


def _in_workers(
    missing: Mapping[str, Cell], cache: Path, home: Path | None, until: float | None, jobs: int
) -> Finished:
    # spawned, not forked: a fork of a process whose BLAS has threads may hang
    context, before = multiprocessing.get_context("spawn"), set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(min(jobs, len(missing)), mp_context=context, initializer=_start_worker)
    try:
        keys = {pool.submit(_compute_and_keep, cell, cache, home): key for key, cell in missing.items()}
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
        remove_leftovers(cache)  # of a worker that was just writing
        raise
    pool.shutdown()


def _compute_and_keep(cell: Cell, cache: Path, data_home: Path | None) -> Result | str:
    """Return the result, already kept, or the error as text."""
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
