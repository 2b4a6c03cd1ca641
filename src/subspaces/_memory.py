"""Refuse what does not fit before allocating it, with the numbers and the way out."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_CGROUP_USED = Path("/sys/fs/cgroup/memory.current")


_limit: int | None = None


@contextmanager
def limited(n_bytes: int | None) -> Iterator[None]:
    """Let this process take `n_bytes` in all, what it holds already included; None: what the machine has."""
    global _limit
    before, _limit = _limit, n_bytes
    try:
        yield
    finally:
        _limit = before


def available_bytes() -> int:
    """Memory this process may still take: what the machine has free, or less in a container or under a limit."""
    free = int(psutil.virtual_memory().available)
    if _limit is not None:
        free = max(0, min(free, _limit - int(psutil.Process().memory_info().rss)))
    try:
        limit = int(_CGROUP_LIMIT.read_text()) - int(_CGROUP_USED.read_text())
    except (OSError, ValueError):  # no container, or no limit ("max")
        return free
    return max(0, min(free, limit))


def require(n_bytes: int, what: str, remedy: str) -> None:
    """Raise MemoryError with the bytes needed, the bytes free and what to do instead."""
    free = available_bytes()
    if n_bytes > free:
        give_back()
        free = available_bytes()
    if n_bytes > free:
        raise MemoryError(f"{what} needs {_readable(n_bytes)} of memory and {_readable(free)} are free. {remedy}")


def give_back() -> None:
    """Return to the system what was freed: allocators keep it for later, and it would count as taken."""
    gc.collect()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library without it
            ctypes.CDLL(None).malloc_trim(0)


def _readable(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.3g} GiB"
