"""Run lists of tasks in this process or on the workers of a Dask cluster, and give results as they arrive."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from subspaces.utils import memory
from subspaces.utils.progress import Step, phase

_LIBRARIES = 150 * 2**20  # bytes of a worker without any samples, measured


@dataclass(frozen=True)
class ThisProcess:
    """Run tasks in the calling process, one after the other."""

    def run(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], announce: bool = False
    ) -> Iterator[tuple[int, Any]]:
        """Give the number of each task and its result, in order; the first error stops the others."""
        with _counted(len(arguments), announce) as step:
            for number, given in enumerate(arguments):
                yield number, function(*given)
                step()

    def keep(self, value: Any) -> Any:
        """Return what many tasks are to read: the object itself."""
        return value

    def blind(self, folder: Path) -> list[str]:
        """Return the workers that do not see a folder: none."""
        return []

    def require(self, n_bytes: int, what: str, remedy: str) -> None:
        """Refuse what this process has no memory for."""
        memory.require(n_bytes, what, remedy)


@dataclass(frozen=True)
class DaskWorkers:
    """The workers behind a client.

    A task whose worker dies is run again by Dask, as often as its setting ``distributed.scheduler.allowed-failures``
    says (3 times).
    """

    client: Any

    def run(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], announce: bool = False
    ) -> Iterator[tuple[int, Any]]:
        """Give the number of each task and its result, as they arrive; the first error stops the others."""
        from dask.delayed import delayed
        from distributed import as_completed

        task = delayed(function, pure=False)
        futures = self.client.compute([task(*given) for given in arguments])
        place = {future.key: number for number, future in enumerate(futures)}
        done = 0
        try:
            with _counted(len(arguments), announce) as step:
                for future in as_completed(futures):
                    yield place[future.key], future.result()
                    future.release()
                    done += 1
                    step()
        finally:
            if done < len(arguments):
                self.client.cancel(futures)

    def keep(self, value: Any) -> Any:
        """Send what many tasks are to read, as a result: by ``scatter`` it is lost with the workers that held it."""
        return self.client.submit(_itself, value, pure=False)

    def blind(self, folder: Path) -> list[str]:
        """Return addresses of workers on machines that do not have it."""
        return [address for address, found in self.client.run(os.path.isdir, str(folder)).items() if not found]

    def require(self, n_bytes: int, what: str, remedy: str) -> None:
        """Refuse more than Dask allows each worker, which it would kill above, again and again."""
        known = self.client.scheduler_info()["workers"].values()
        least = min((worker["memory_limit"] for worker in known if worker.get("memory_limit")), default=None)
        if least is not None and n_bytes + _LIBRARIES > least:
            needed, given = (f"{size / 2**30:.3g} GiB" for size in (n_bytes + _LIBRARIES, least))
            raise MemoryError(f"{what} needs {needed} of memory on a worker and one has {given}. {remedy}")


def _counted(total: int, announce: bool) -> AbstractContextManager[Step]:
    """Count the tasks of the stage that takes longest."""
    return phase("Clustering piece by piece", total) if announce else nullcontext(lambda n=1, of=None: None)


Workers = ThisProcess | DaskWorkers
"""Who runs tasks: functions of arguments that may run twice."""


def results(workers: Workers, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return results in the order of the tasks."""
    found: list[Any] = [None] * len(arguments)
    for place, result in workers.run(function, arguments):
        found[place] = result
    return found


@lru_cache(maxsize=1)
def keep_freed_memory() -> None:
    """Let this process use memory again that it freed, once.

    Dask starts workers so that they give every freed array back at once (MALLOC_TRIM_THRESHOLD_): half of the CPU time
    of our tasks, which make and free many of some megabytes, then goes into getting it again. Of Linux's glibc only.
    """
    with suppress(AttributeError, OSError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(_TRIM_THRESHOLD, 2**28)
        library.mallopt(_MMAP_THRESHOLD, 2**25)


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # numbers of malloc.h


def _itself(value: Any) -> Any:
    return value
