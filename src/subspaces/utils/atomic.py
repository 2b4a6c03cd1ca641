"""Files and folders that are there whole or not at all, and leftovers of killed processes."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import BinaryIO

import numpy as np
import psutil

from subspaces.utils.types import Array

_OWNER = re.compile(r"\.([0-9a-f]{4})-(\d+)-[0-9a-f]{6}\.tmp$")


@contextmanager
def write_atomically(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its place only when everything is written and on disk.

    The bytes go to a hidden file in the same folder, which replaces `path` at the end and is removed on any
    failure, an interruption from the keyboard included.
    """
    target = Path(path).resolve()  # through a symbolic link: its target is replaced, not the link
    temporary = target.with_name(temporary_name(target.name))
    try:
        # Inside: Ctrl-C during the call is raised after it, when the file is there. Not tempfile: its files are
        # private to their owner, and this one becomes the result.
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.errno is not None and error.filename in (None, str(temporary)):
            error.filename = str(target)  # a full disk says "No space left on device", and of which file it does not
        raise
    _sync_folder(target.parent)


def write_text(path: str | PathLike[str], text: str) -> None:
    """Write a text in UTF-8; it is there whole or not at all."""
    with write_atomically(path) as stream:
        stream.write(text.encode())


def temporary_name(name: str) -> str:
    """Return a hidden name for an unfinished file, with the process that is writing it."""
    return f".{name}.{_host()}-{os.getpid()}-{secrets.token_hex(3)}.tmp"


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """Give another name for a file or folder until it is complete; remove what is there under it at the end."""
    temporary = path.with_name(temporary_name(path.name))
    try:
        yield temporary
    finally:
        remove(temporary)


def remove_leftovers(folder: Path, *, own: bool = False) -> None:
    """Remove unfinished files of killed processes; nothing under such a name is ever read.

    Files of living processes stay, and so do those of other machines, whose processes cannot be asked. In a
    folder of our own every ``.*.tmp`` that names no process goes; elsewhere it is somebody else's.
    """
    with suppress(OSError):
        for path in list(folder.glob(".*.tmp")):
            if is_abandoned(path) or (own and not _OWNER.search(path.name)):
                remove(path)


def is_abandoned(path: Path) -> bool:
    """Return True for a hidden name given by a process of this machine that is no longer there."""
    owner = _OWNER.search(path.name)
    return owner is not None and owner[1] == _host() and not _is_alive(int(owner[2]))


def remove(path: Path) -> None:
    """Remove a file or a folder with all that is in it, as far as that is possible."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    """Return True if a process can still write; one that was killed and never waited for (a zombie) cannot."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:  # somebody else's
        return True


def _host() -> str:
    """Return four letters for the name of this machine: names of files must stay short."""
    return hashlib.blake2b(platform.node().encode(), digest_size=2).hexdigest()


def _sync_folder(folder: Path) -> None:
    """Put the new name itself on disk; not every system or file system can, and then nothing is lost."""
    with suppress(OSError, AttributeError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_array(stream: BinaryIO, array: Array) -> None:
    """Write an array as ``.npy``; of a full disk NumPy's own function says only how many items were written."""
    array = np.ascontiguousarray(array)
    np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
    stream.write(array.data)
