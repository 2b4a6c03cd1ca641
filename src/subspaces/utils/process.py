"""State of the whole process that is changed for a while: threads of BLAS and OpenMP, filters of warnings, signals.

``threadpool_limits`` and ``warnings.catch_warnings`` put back what they found. Where two threads use them at once, the
one that came second found what the first had changed, and leaves it so for good if it goes last.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, cast

from threadpoolctl import OpenBLASController, ThreadpoolController

_BUSY = 1.25  # load per core: a little above that of one program which uses all cores
_INSIDE = ("subspaces", "sklearn", "contextlib", "concurrent", "threading")  # not the caller's own modules


class _SharedLimit:
    """A limit of the BLAS threads of the process; the last user that leaves restores what the first found."""

    def __init__(self, n_threads: int | None) -> None:
        self.n_threads, self.n_users, self.lock = n_threads, 0, threading.Lock()

    def __enter__(self) -> None:
        with self.lock:
            if self.n_users == 0:
                with _in_control():
                    self.limit = _limited("blas", self.n_threads)
            self.n_users += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.n_users -= 1
            if self.n_users == 0:
                with _in_control():
                    self.limit.restore_original_limits()


@contextmanager
def _in_control() -> Iterator[None]:
    """Let this thread change OpenBLAS: threadpoolctl 3.8 ignores all threads but one until that one releases it."""
    release = getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)
    release(force=True)
    yield
    release(force=True)


def _limited(user_api: str, n_threads: int | None) -> Any:
    """Limit these libraries alone: ``threadpool_limits`` would put back the numbers of all."""
    return ThreadpoolController().select(user_api=user_api).limit(limits=n_threads)


_one_blas_thread = _SharedLimit(1)

keep_threads = _SharedLimit(None)
"""Around all limits: sets nothing, but restores what those inside (scikit-learn's estimators have some) leave wrong
where several threads use them at once."""


@contextmanager
def one_thread(user_api: str) -> Iterator[None]:
    """Keep ``"blas"`` or ``"openmp"`` to one thread; the number of OpenMP is each thread's own."""
    with keep_threads, _one_blas_thread if user_api == "blas" else _limited(user_api, 1):
        yield


@contextmanager
def one_thread_if_busy() -> Iterator[None]:
    """Keep BLAS to one thread while the machine is busy: its threads wait for one another, some of them without a core.

    With two cores and ten programs a fit of 800 samples took 1.0 s on one thread and 5.6 s on two, of 3,000 7 and 31 s.
    """
    import psutil  # the command line asks nothing of it before it works

    with one_thread("blas") if psutil.getloadavg()[0] > _BUSY * (os.cpu_count() or 1) else nullcontext():
        yield


_silent: ContextVar[frozenset[Any]] = ContextVar("_silent", default=frozenset())


class _Here:
    """In the place of a filter's pattern: matches any text where it was made and, once forgotten there, nowhere.

    So a copy of the filters that another thread restores later does no harm.
    """

    def match(self, text: str) -> bool:
        return self in _silent.get()


@contextmanager
def quiet(category: type[Warning] = Warning) -> Iterator[None]:
    """Ignore warnings of a category in this thread and those it starts by ``map_blocks``, not in others."""
    here = _Here()
    entry = ("ignore", here, category, None, 0)
    filters = cast("list[Any]", warnings.filters)
    token = _silent.set(_silent.get() | {here})
    filters.insert(0, entry)
    try:
        yield
    finally:
        _silent.reset(token)
        for changed in (filters, cast("list[Any]", warnings.filters)):
            if entry in changed:
                changed.remove(entry)


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, naming the line of whoever called the package (or scikit-learn, where that called it)."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level - 1)


# ------------------------------------------------------------------ signals

STOP_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Ctrl-C, ``kill``, and a closed terminal."""

_installed: list[Any] = [signal.SIG_DFL, signal.default_int_handler]  # handlers that may be replaced: others are left


@contextmanager
def on_stop_signals(handle: Callable[[int], None]) -> Iterator[None]:
    """Call `handle` with the number of a signal that asks this process to end.

    Calls may be nested; ignored signals and handlers of the calling program stay. Only the main thread gets signals.
    """

    def handler(number: int, frame: Any) -> None:
        handle(number)

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {n: signal.signal(n, handler) for n in STOP_SIGNALS if signal.getsignal(n) in _installed}
    _installed.append(handler)
    try:
        yield
    finally:
        _installed.remove(handler)
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def stopped_by_signals() -> Iterator[list[int]]:
    """Raise KeyboardInterrupt on every signal that asks this process to end, so that all clean up alike.

    Yields the signals that came. For a second after one, others are ignored: whoever presses Ctrl-C twice, or is sent
    a signal by two programs, must not interrupt the cleaning. Where the exception came up in a place in which Python
    ignores exceptions (a callback of a weak reference, a finalizer), it is raised again a moment later.
    """
    came: list[int] = []
    quiet_until = 0.0

    def stop(number: int) -> None:
        nonlocal quiet_until
        if time.monotonic() < quiet_until:
            return
        came.append(number)
        quiet_until = time.monotonic() + 1
        raise KeyboardInterrupt

    def ignored(unraisable: Any) -> None:
        nonlocal quiet_until
        if came and issubclass(unraisable.exc_type, KeyboardInterrupt):
            quiet_until = 0.0
            again = threading.Timer(0.05, _interrupt_main, [came.pop()])
            again.daemon = True
            again.start()
        else:
            hook(unraisable)

    hook = sys.unraisablehook
    with on_stop_signals(stop):
        if threading.current_thread() is threading.main_thread():
            sys.unraisablehook = ignored
        try:
            yield came
        finally:
            sys.unraisablehook = hook


def _interrupt_main(number: int) -> None:
    """Send the main thread a signal, which also ends a wait of that thread where the system can do that."""
    if hasattr(signal, "pthread_kill") and (ident := threading.main_thread().ident) is not None:
        signal.pthread_kill(ident, number)
    else:
        interrupt_main(signal.Signals(number))
