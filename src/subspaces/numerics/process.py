"""What belongs to the whole process and is changed for a while: threads of BLAS and OpenMP, filters of warnings.

``threadpool_limits`` and ``warnings.catch_warnings`` put back what they found. Where two threads use them at once, the
one that came second found what the first had changed, and leaves it so for good if it goes last.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, cast

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_limit = ExitStack()
_n_users = 0
_INSIDE = ("subspaces", "sklearn", "contextlib", "concurrent", "threading")  # not the caller's own modules


@contextmanager
def one_thread(user_api: str) -> Iterator[None]:
    """Keep ``"blas"`` or ``"openmp"`` to one thread; the last that leaves restores what the first found."""
    global _n_users
    if user_api == "openmp":  # this number is each thread's own
        with _limited(user_api):
            yield
        return
    with _lock:
        if _n_users == 0:
            _limit.enter_context(_limited(user_api))
        _n_users += 1
    try:
        yield
    finally:
        with _lock:
            _n_users -= 1
            if _n_users == 0:
                _limit.close()


def _limited(user_api: str) -> Any:
    """Of these libraries alone: ``threadpool_limits`` would put back the numbers of all."""
    return ThreadpoolController().select(user_api=user_api).limit(limits=1)


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
