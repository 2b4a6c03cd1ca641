"""Progress of long work: the one protocol of the package.

- A loop reports: ``with phase("Reading the images", len(files)) as step:``, and ``step()`` after each item.
- A fit reports its stages: ``with timer.stage("graph"):`` of a :class:`Timer` opens a phase and adds up the seconds.
- A program listens: ``with progress_to(listener):``; :func:`shown` is the listener for people, a bar or lines.

Without a listener a phase costs next to nothing.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import NamedTuple, Protocol, TypeAlias

Watcher: TypeAlias = Callable[[str, int, int | None], None]
"""Called with the name of a phase for people, the steps done, and the steps in all (None or 0 if unknown)."""

Listener: TypeAlias = Callable[[str], AbstractContextManager[None]]
"""Called with the name of a stage of a fit; returns a context in which it runs."""

EVERY = 10.0
"""Seconds after which a line is written again while a phase lasts."""


class Step(Protocol):
    """Counts steps of a phase, one if none is given; `of` gives a total that becomes known on the way."""

    def __call__(self, n: int = 1, of: int | None = None) -> None:
        """Count."""


class _Channel(NamedTuple):
    listener: Watcher
    name: str = "Working"
    is_counted: bool = False  # phases inside one that counts are not reported: its steps are what people see


_channel: ContextVar[_Channel | None] = ContextVar("_channel", default=None)


@contextmanager
def progress_to(listener: Watcher) -> Iterator[None]:
    """Report the phases of all work in this context to a listener, also from threads of :mod:`subspaces`.

    Examples
    --------
    >>> with progress_to(lambda name, done, total: print(f"{name}: {done} of {total}")):
    ...     with phase("Reading", 2) as step:
    ...         step()
    ...         step()
    Reading: 0 of 2
    Reading: 1 of 2
    Reading: 2 of 2
    """
    token = _channel.set(_Channel(listener))
    try:
        yield
    finally:
        _channel.reset(token)


@contextmanager
def phase(name: str, total: int | None = None) -> Iterator[Step]:
    """Report a phase of long work, by the name that people read; yields the function that counts its steps.

    A phase with a total (0 if it becomes known on the way) hides the phases inside it, so that a search does not show
    each of its fits. Several threads may count.
    """
    channel = _channel.get()
    if channel is None or channel.is_counted:
        yield _nobody
        return
    done, lock, listener = 0, threading.Lock(), channel.listener

    def step(n: int = 1, of: int | None = None) -> None:
        nonlocal done
        with lock:
            done += n
            listener(name, done, total if of is None else of)

    token = _channel.set(channel._replace(name=name, is_counted=total is not None))
    step(0)
    try:
        yield step
    finally:
        _channel.reset(token)


def counting(total: int) -> AbstractContextManager[Step]:
    """Count the steps of the current phase, unless it counts already."""
    channel = _channel.get()
    return phase("" if channel is None else channel.name, total)


def _nobody(n: int = 1, of: int | None = None) -> None:
    pass


PLAIN = {
    "kernel": "Comparing the points",
    "coefficients": "Representing each point by others",
    "graph": "Making the graph",
    "embedding": "Embedding the graph",
    "cut": "Cutting the graph",
    "landmarks": "Choosing landmarks",
    "codes": "Placing the points among landmarks",
    "assign_labels": "Grouping the points",
    "eigenvectors": "Comparing the landmarks",
    "sample": "Taking a sample",
    "cluster": "Clustering the sample",
    "train": "Training on the sample",
    "classify": "Labelling the other points",
    "extension": "Labelling the other points",
    "start": "Making a start",
    "passes": "Moving points between clusters",
}
"""Names of the stages of a fit for people."""


def unwatched(stage: str) -> AbstractContextManager[None]:
    """Run a stage that is reported to nobody."""
    return nullcontext()


@dataclass
class Timer:
    """Report the stages of a fit and add up the seconds of each."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Run a stage, which may come in several parts."""
        start = time.perf_counter()
        with phase(PLAIN.get(name, name.capitalize())):
            yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


@contextmanager
def shown(wanted: bool = True, *, lines: bool = False) -> Iterator[None]:
    """Show progress on standard error: a bar on a terminal, elsewhere `lines` or nothing; an outer listener stays."""
    on_terminal = sys.stderr.isatty() and find_spec("rich") is not None
    if not wanted or _channel.get() is not None or not (on_terminal or lines):
        yield
        return
    with _bar() if on_terminal else _lines() as listener, progress_to(listener):
        yield


@contextmanager
def _bar() -> Iterator[Watcher]:
    """Show phase, bar, counts, time taken and time left; gone at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[count]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", markup=False),
        TimeRemainingColumn(),
    )
    # what a program writes to standard output stays there
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task("Starting", total=None, count="", left="")
        now: tuple[str, int | None] = ("Starting", None)
        before = 0

        def listener(name: str, done: int, total: int | None) -> None:
            nonlocal now, before
            if (name, total) != now or done < before:
                bar.reset(task, description=name, total=total or None, left="left" if total else "", count="")
                now = name, total
            before = done
            bar.update(task, completed=done, count=count_text(done, total))

        yield listener


@contextmanager
def _lines() -> Iterator[Watcher]:
    """Write a line for each phase at its end, and every `EVERY` seconds while it lasts: for notebooks and logs."""
    now, start, told = "", 0.0, 0.0
    text = ""

    def write(seconds: float) -> None:
        print(f"{text} ({seconds:.1f} s)", file=sys.stderr, flush=True)

    def listener(name: str, done: int, total: int | None) -> None:
        nonlocal now, start, told, text
        at = time.monotonic()
        if name != now:
            if now:
                write(at - start)
            now, start, told = name, at, at
        counted = count_text(done, total)
        text = f"{name}: {counted}" if counted else name
        if at - told > EVERY:
            told = at
            write(at - start)

    try:
        yield listener
    finally:
        if now:
            write(time.monotonic() - start)


def count_text(done: int, total: int | None) -> str:
    """Return how much is done, in words.

    Examples
    --------
    >>> count_text(1200, 20000), count_text(1200, None), count_text(0, None)
    ('1,200 of 20,000', '1,200', '')
    """
    if not total:
        return f"{done:,}" if done else ""
    return f"{done:,} of {total:,}"
