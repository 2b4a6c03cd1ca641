"""How far long work is: one channel to which loops report, and two ways to show it, a bar or lines.

A loop says ``with phase("Reading the images", len(files)) as step:`` and calls ``step()`` after each. Nobody listens
unless :func:`progress_to` or :func:`shown` says so, and otherwise it costs next to nothing.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeAlias

Listener: TypeAlias = Callable[[str, int, int | None], None]
"""Called with the plain name of a phase, how much of it is done, and of how much (None where nobody knows)."""

EVERY = 10.0
"""Seconds after which a line is written again while a phase lasts."""


class _Channel(NamedTuple):
    listener: Listener
    name: str = "Working"
    is_counted: bool = False  # whoever is inside a phase that counts is not heard: its steps are what people see


_channel: ContextVar[_Channel | None] = ContextVar("_channel", default=None)


@contextmanager
def progress_to(listener: Listener) -> Iterator[None]:
    """Tell a listener of the phases of all work that is done meanwhile, here and on threads of :mod:`subspaces`.

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
def phase(name: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """A phase of long work, by the name that people read; gives a function to call with the steps done, one if none.

    Where the total becomes known only on the way, that function takes it as ``of``. Phases inside one with a total are
    not told, so that a search does not show each of its fits. Of several threads any may count.
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


def counting(total: int) -> Any:
    """The steps of the phase that is going on, unless it counts already."""
    channel = _channel.get()
    return phase("" if channel is None else channel.name, total)


def is_watched() -> bool:
    """Whether anybody listens."""
    return _channel.get() is not None


def _nobody(n: int = 1, of: int | None = None) -> None:
    pass


@contextmanager
def shown(wanted: bool = True, *, lines: bool = False) -> Iterator[None]:
    """Show on standard error how far the work is: a bar on a terminal; elsewhere `lines`, or nothing.

    Where somebody listens already, that is left to them.
    """
    on_terminal = sys.stderr.isatty()
    if not wanted or is_watched() or not (on_terminal or lines):
        yield
        return
    with _bar() if on_terminal else _lines() as listener, progress_to(listener):
        yield


@contextmanager
def _bar() -> Iterator[Listener]:
    """The phase, a bar, counts, the time it took and the time left; gone at the end."""
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
                left = "" if total is None else "left"
                bar.reset(task, description=name, total=total, left=left, count="")
                now = name, total
            before = done
            bar.update(task, completed=done, count=count_text(done, total))

        yield listener


@contextmanager
def _lines() -> Iterator[Listener]:
    """A line for each phase when it is over, and now and then while it lasts: for notebooks and logs."""
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
    """How much is done, in words.

    Examples
    --------
    >>> count_text(1200, 20000), count_text(1200, None), count_text(0, None)
    ('1,200 of 20,000', '1,200', '')
    """
    if total is None:
        return f"{done:,}" if done else ""
    return f"{done:,} of {total:,}"
