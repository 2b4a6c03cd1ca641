"""Work for the workers: lists of tasks in, results out as they arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dask.delayed import Delayed
from distributed import as_completed

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Workers:
    """The workers behind a client, and whom to tell how far they are.

    A task whose worker dies is run again by Dask, as often as its setting ``distributed.scheduler.allowed-failures``
    says (3 times), so every task must be one that may run twice.
    """

    client: Any
    progress: Progress | None = None

    def compute(self, tasks: list[Delayed]) -> list[Any]:
        """Results in the order of the tasks."""
        results = [None] * len(tasks)
        for place, result in self.as_they_come(tasks):
            results[place] = result
        return results

    def as_they_come(self, tasks: list[Delayed], announce: bool = False) -> Iterator[tuple[int, Any]]:
        """Number of the task and its result, as they arrive; the first error stops the others."""
        futures = self.client.compute(tasks)
        place = {future.key: number for number, future in enumerate(futures)}
        done = 0
        try:
            for future in as_completed(futures):
                yield place[future.key], future.result()
                future.release()
                done += 1
                if announce and self.progress is not None:
                    self.progress(done, len(tasks))
        finally:
            if done < len(tasks):
                self.client.cancel(futures)

    def keep(self, value: Any) -> Any:
        """Send an object once, for many tasks to read.

        As the result of a task, not by ``scatter``: what was scattered is lost with the workers that held it.
        """
        return self.client.submit(_itself, value, pure=False)


def _itself(value: Any) -> Any:
    return value
