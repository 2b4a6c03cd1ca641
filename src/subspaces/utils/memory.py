"""Refuse what does not fit before allocating it, with the bytes and the remedy."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path

import psutil

_GROUPS_OF_PROCESS = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")

_limit: int | None = None


@contextmanager
def limited(n_bytes: int | None) -> Iterator[None]:
    """Let this process take `n_bytes` in all, including what it holds already; None: what the machine has."""
    global _limit
    before, _limit = _limit, n_bytes
    try:
        yield
    finally:
        _limit = before


def available_bytes() -> int:
    """Return the memory this process may still take: what is free, or less in a container or under a limit."""
    free = int(psutil.virtual_memory().available)
    if _limit is not None:
        free = max(0, min(free, _limit - int(psutil.Process().memory_info().rss)))
    with suppress(ImportError):  # Windows
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]  # ``ulimit -v``
        if most != resource.RLIM_INFINITY:
            free = min(free, most - int(psutil.Process().memory_info().vms))
    return max(0, min([free, *_left_in_groups()]))


def _left_in_groups() -> Iterator[int]:
    """Yield what each control group of this process has left, up to the root: all limits hold (Linux, containers).

    That is the limit minus the working set: files read but not used lately make room when needed.
    """
    try:
        lines = _GROUPS_OF_PROCESS.read_text().splitlines()
    except OSError:  # no Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        names = list(filter(None, path.split("/")))
        if ".." in names:  # a group outside of what this container sees
            names = []
        if controllers == "":
            roots = [_GROUPS, _GROUPS / "unified"]
            limit, used, cache = "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):  # version 1
            roots = [_GROUPS / "memory"]
            limit, used, cache = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        for root, depth in product(roots, range(len(names) + 1)):
            folder = root.joinpath(*names[:depth])
            try:
                most, taken = int((folder / limit).read_text()), int((folder / used).read_text())
            except (OSError, ValueError):  # not there, or no limit ("max")
                continue
            with suppress(OSError, ValueError, KeyError):
                taken -= int(dict(map(str.split, (folder / "memory.stat").read_text().splitlines()))[cache])
            yield most - max(0, taken)


def require(n_bytes: int, what: str, remedy: str) -> None:
    """Raise MemoryError with the bytes needed, the bytes free and what to do instead."""
    free = available_bytes()
    if n_bytes > free:
        give_back()
        free = available_bytes()
    if n_bytes > free:
        needed, free_now = (f"{size / 2**30:.3g} GiB" for size in (n_bytes, free))
        raise MemoryError(f"{what} needs {needed} of memory and {free_now} are free. {remedy}")


def give_back() -> None:
    """Return to the system what was freed: allocators keep it for later, and it would count as taken."""
    gc.collect()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library without it
            ctypes.CDLL(None).malloc_trim(0)
