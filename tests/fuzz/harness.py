"""What every fuzz target shares: a scratch folder, a watch over the process, and what counts as a finding.

A reader may return valid data or raise the project's own one-line error that names the file. Everything else is a
`Finding`: another exception, a warning, a file written or read elsewhere, a pickle or code that runs, memory beyond
what the reader was allowed, or more than two seconds of CPU time for a small file.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from subspaces.app.files import Dataset, FileError
from subspaces.utils.memory import limited

try:
    import resource
except ImportError:  # Windows: memory is not watched there
    resource = None  # type: ignore[assignment]

MAX_SECONDS = 2.0
MAX_GROWTH = 300 * 2**20
"""Bytes by which one small file may raise the largest memory ever held; readers are given `ALLOWED`."""
ALLOWED = 2**24
MAX_TEXT = 1500
"""Characters of an error behind the name of the file: one line that a person reads."""

_NEVER = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect")
_NEVER += ("ctypes.dlopen", "os.symlink", "os.link", "os.chmod", "webbrowser.open", "shutil.unpack_archive")
_HARMLESS = ("subspaces", "dask", "numpy", "zarr", "numcodecs", "fsspec")
"""Packages whose names Dask pickles and unpickles in its own graph of tasks; no bytes of a file are in it."""
_MOVES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree", "shutil.move")
_READABLE = tuple(
    {sys.prefix, sys.base_prefix, os.path.realpath(sys.prefix), "/proc", "/sys", "/usr", "/etc/localtime"}
)
_HERE = str(Path(__file__).resolve().parents[2])


class Finding(Exception):
    """Something a reader must never do."""


class Watch:
    """An audit hook: while active, files are opened in the scratch folder only and nothing is executed."""

    def __init__(self) -> None:
        folder = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self.scratch = Path(tempfile.mkdtemp(prefix=f"subspaces-fuzz-{os.getpid()}-", dir=folder))
        self.inside = self.scratch / "deep" / "inside"  # names with ../../ would still land in the scratch folder
        self.active = False
        self.name, self.n_runs = "", 0
        self.seen: list[str] = []
        self.inside.mkdir(parents=True)
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.active:
            return
        if event in _NEVER:
            self.seen.append(f"{event} {args!r:.120}")
        elif event == "open":
            self._opened(*args)
        elif event == "pickle.find_class" and not _is_task(*map(str, args)):
            self.seen.append(f"unpickled {args!r:.120}")
        elif event in _MOVES and not str(args[0]).startswith(str(self.scratch)):
            self.seen.append(f"{event} {args!r:.120}")
        elif event == "exec" and getattr(args[0], "co_filename", "").startswith("<") and _not_importing():
            self.seen.append(f"code ran: {args[0]!r:.120}")

    def _opened(self, path: Any, mode: Any, flags: int) -> None:
        if isinstance(path, int) or path is None:
            return
        name = os.path.abspath(os.fsdecode(path))
        if name.startswith(str(self.scratch)):
            return
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if (writes and name != os.devnull) or not name.startswith((*_READABLE, _HERE, os.devnull)):
            self.seen.append(f"opened {name} ({mode}, {flags:#x})")

    def fresh(self) -> Path:
        """The folder for the input, empty."""
        self.name = ""
        for entry in os.scandir(self.inside):
            shutil.rmtree(entry) if entry.is_dir(follow_symlinks=False) else os.unlink(entry)
        return self.inside

    def put(self, name: str, content: bytes) -> Path:
        """A single file in that folder; nothing is removed while its name stays the same."""
        if self.name != name:
            self.fresh()
        self.name = name
        path = self.inside / name
        with open(path, "wb") as stream:
            stream.write(content)
        return path

    def escaped(self) -> list[str]:
        """Names that appeared in the scratch folder beside the folder for the input; looked at now and then."""
        self.n_runs += 1
        if self.n_runs % 16:
            return []
        return [name for name in [*os.listdir(self.scratch), *os.listdir(self.inside.parent)] if name not in _OURS]

    def close(self) -> None:
        """Remove the scratch folder."""
        self.active = False
        shutil.rmtree(self.scratch, ignore_errors=True)


_OURS = ("deep", "inside")


def _is_task(module: str, name: str) -> bool:
    return module.split(".")[0] in _HARMLESS or (module == "builtins" and name.endswith("Error"))


def _not_importing() -> bool:
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return False
        frame = frame.f_back  # type: ignore[assignment]
    return True


@contextmanager
def watched(watch: Watch, n_bytes: int) -> Iterator[None]:
    """Run a reader; afterwards raise a `Finding` for whatever it did beside reading."""
    before, start = _peak(), time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        watch.seen.clear()
        watch.active = True
        try:
            yield
        finally:
            watch.active = False
    seconds, growth = time.process_time() - start, _peak() - before
    loud = [w for w in caught if not issubclass(w.category, DeprecationWarning | PendingDeprecationWarning)]
    if watch.seen:
        raise Finding(f"side effect: {watch.seen[0]}")
    if loud:
        raise Finding(f"warning: {loud[0].category.__name__}: {loud[0].message} ({loud[0].filename}:{loud[0].lineno})")
    if escaped := watch.escaped():
        raise Finding(f"files outside the folder, of this input or the 15 before it: {escaped}")
    if n_bytes < 2**16 and seconds > MAX_SECONDS:
        raise Finding(f"slow: {seconds:.1f} s for {n_bytes} bytes")
    if growth > MAX_GROWTH:
        raise Finding(f"memory: {growth / 2**20:.0f} MB for {n_bytes} bytes")


def bounded() -> AbstractContextManager[None]:
    """Where a reader cannot be told what it may take: a limit for the process."""
    return limited(int(psutil.Process().memory_info().rss) + 2 * ALLOWED)


def _peak() -> int:
    return 0 if resource is None else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def outcome(
    path: Path, read: Callable[[], Any], allowed: tuple[type[Exception], ...] = (FileError,)
) -> tuple[Any, Exception | None]:
    """The result of a reader, or its own error once that is seen to be clear."""
    try:
        return read(), None
    except allowed as error:
        check_error(path, error)
        return None, error.with_traceback(None)


def check_error(path: Path, error: BaseException) -> None:
    """One printable line that names the file, and no sign that memory ran out behind the reader's own guard."""
    text = str(error)
    if path.name not in text:
        raise Finding(f"error without the file: {type(error).__name__}: {text:.200}") from error
    if not text.isprintable():
        raise Finding(f"error with control characters: {text!r:.200}") from error
    if len(text) > MAX_TEXT + len(str(path)):
        raise Finding(f"error of {len(text)} characters: {text:.200}") from error
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError | RecursionError) and "is not a tuple" not in str(cause):
            raise Finding(f"the guard let through what failed with {cause!r:.200}") from error
        cause = cause.__cause__


def check_dataset(data: Dataset) -> None:
    """Shapes, types and texts of what `read_table` returned."""
    X = data.X
    sound(isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf", f"X is {type(X)} {X.dtype} {X.shape}")
    sound(min(X.shape) > 0, f"X has the shape {X.shape}")
    sound(X.dtype.kind != "f" or bool(np.isfinite(X).all()), "X is not finite")
    n = len(X)
    for name in ("y", "ids", "rows"):
        value = getattr(data, name)
        sound(value is None or len(value) == n, f"{name} has not {n} entries")
    if data.y is not None:
        sound(data.y.dtype == np.intp and data.classes is not None, "labels without classes")
        sound(data.y.min() >= 0 and data.y.max() < len(data.classes or ()), "labels out of range")
    sound(data.feature_names is None or len(data.feature_names) == X.shape[1], "names do not fit")
    check_texts([*data.notes, *(f"{name} {why}" for name, why in data.skipped)], "notes")
    for words in (data.classes, data.feature_names):
        sound(words is None or all(isinstance(word, str) for word in words), "names that are no text")


def check_texts(texts: Sequence[str], what: str) -> None:
    """Texts for a terminal: printable, and not endless."""
    for text in texts:
        sound(text.isprintable() and len(text) < MAX_TEXT, f"{what}: {text!r:.200}")


def sound(condition: bool, problem: str) -> None:
    """Raise a finding unless the condition holds."""
    if not condition:
        raise Finding(f"invalid result: {problem}")


class Descriptors:
    """Open files of the process, looked at now and then."""

    def __init__(self, every: int = 500) -> None:
        self.every, self.n_calls, self.start = every, 0, self._count()

    @staticmethod
    def _count() -> int:
        return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

    def check(self) -> None:
        """Raise a finding if files stay open."""
        self.n_calls += 1
        if self.n_calls % self.every == 0:
            gc.collect()
            if self._count() > self.start + 20:
                self.start = self._count()
                raise Finding("files stay open")
