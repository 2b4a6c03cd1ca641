"""What every command shares: errors in one line, exit codes, warnings, progress, threads.

Exit codes: 0 all is well, 1 the computation failed, 2 the command or the input file is wrong, 130 interrupted (Ctrl-C),
143 terminated (``kill``), 129 the terminal was closed.
Nothing heavy is imported here: ``subspaces --help`` must answer at once.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import threading
import time
import traceback
import warnings
from _thread import interrupt_main
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import typer
from typer.core import HAS_RICH, TyperCommand, TyperGroup

from subspaces.utils.spelling import arguments_spelled

FAILED, WRONG_INPUT, INTERRUPTED = 1, 2, 130
STOPPED = {INTERRUPTED: "interrupted", 143: "terminated", 129: "the terminal was closed"}
"""Exit codes of commands that a signal ended, 128 and its number, as shells count."""


_typed: ContextVar[tuple[str, ...]] = ContextVar("_typed", default=("subspaces",))


def repeated_command() -> str:
    """The command as it was typed, quoted for a shell, and allowed to replace what it wrote the first time."""
    typed = _typed.get()
    return shlex.join(typed if "--force" in typed else (*typed, "--force"))


def program() -> str:
    """What to type to run this program again: its name, or its path where the shell would not find the name."""
    typed = sys.argv[0]
    return typed if Path(typed).stem == "subspaces" and shutil.which("subspaces") is None else "subspaces"


class Refusal(Exception):
    """What a command cannot do here, in one line; the fault of no option."""


class PlainCommand(TyperCommand):
    """A command whose help is shown as it is written: rich takes "[images]" for a style and drops it."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        if HAS_RICH:
            from rich.markup import escape

            parts: list[Any] = [self, *self.params]
            for part in parts:
                part.help = part.help and escape(part.help)
        super().format_help(ctx, formatter)


class Commands(TyperGroup):
    """The group of all commands; every way a command can end passes through `main`."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        """Run a command and leave with its exit code; errors become one line, never a traceback."""
        arguments = list(sys.argv[1:] if args is None else args) or ["--help"]
        _typed.set(("subspaces", *arguments))
        _accept_any_text()
        with stopped_by_signals() as signals:
            try:
                with one_line_warnings(), arguments_spelled(as_option):
                    code = super().main(arguments, *rest, **{**options, "standalone_mode": False})
            except Exception as error:
                if "--debug" in arguments or os.environ.get("SUBSPACES_DEBUG", "0") not in ("", "0"):
                    traceback.print_exc()
                # a library that is interrupted may report that as an error of its own
                code = INTERRUPTED if signals else _report(error)
        if code == INTERRUPTED:
            code = 128 + signals[0] if signals else INTERRUPTED
            complain(STOPPED[code])
        sys.exit(code if isinstance(code, int) else 0)


@contextmanager
def stopped_by_signals() -> Iterator[list[int]]:
    """Let Ctrl-C, ``kill`` and a closed terminal end a command alike: as KeyboardInterrupt, which cleans up on its way.

    Yields the signals that came. For a second after one, others are not heard: whoever presses Ctrl-C twice, or is sent
    a signal by two programs, must not interrupt the cleaning. Where the exception came up in a place in which Python
    ignores exceptions (a callback of a weak reference, a finalizer), it is raised again a moment later.
    """
    came: list[int] = []
    quiet_until = 0.0

    def stop(number: int, frame: Any) -> None:
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
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in {code - 128 for code in STOPPED} & signal.valid_signals():
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):  # else someone has plans
                before[number] = signal.signal(number, stop)
        sys.unraisablehook = ignored
    try:
        yield came
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt_main(number: int) -> None:
    """Send the main thread a signal, which ends a wait of its as well where the system can do that."""
    if hasattr(signal, "pthread_kill") and (ident := threading.main_thread().ident) is not None:
        signal.pthread_kill(ident, number)
    else:
        interrupt_main(signal.Signals(number))


def as_option(name: str, value: Any = None) -> str:
    """Spell an argument of the library as the option of the command line."""
    values = [] if value is None or isinstance(value, bool) else [value] if isinstance(value, str) else value
    option = "--" + name.replace("_", "-")
    return " ".join(f"{option} {shlex.quote(item)}" for item in values) or option


def _report(error: Exception) -> int:
    """Say in one line what went wrong; return the exit code."""
    if isinstance(error, typer.Abort):
        return INTERRUPTED
    if hasattr(error, "format_message"):  # a usage error; typer's class for it moved between versions
        context = getattr(error, "ctx", None)
        help_of = f" (see: {context.command_path} --help)" if context else ""
        text = error.format_message().replace(": Value error, ", ": ")  # words of a library below typer
        complain(f"error: {text}{help_of}")
        return WRONG_INPUT
    from subspaces.app.files import FileError

    if isinstance(error, FileError | Refusal):
        complain(f"error: {error}{_try(error)}")
        return WRONG_INPUT
    if isinstance(error, MemoryError):
        complain(f"error: not enough memory; {str(error) or 'use fewer points'}")
    elif isinstance(error, OSError) and error.filename is not None:
        complain(f"error: {error.filename}: {error.strerror}")
    elif isinstance(error, ImportError):
        complain(f"error: {error}; is the installation complete?")
    else:
        complain(f"error: {str(error) or type(error).__name__} (--debug shows where)")
    return FAILED


def _try(error: Exception) -> str:
    """The command that was typed with what an error asks for, ready to be typed."""
    remedy = getattr(error, "remedy", None)
    if not remedy or _typed.get()[1:2] not in (("cluster",), ("explore",)):  # which have these options
        return ""
    words = [word for name, value in remedy.items() for word in shlex.split(as_option(name, value))]
    return f"; try: {shlex.join([program(), *_typed.get()[1:], *words])}"


def one_line(text: object) -> str:
    """Text of unknown origin, safe for a terminal: one line, control characters escaped."""
    joined = " ".join(str(text).split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in joined)


def complain(text: object) -> None:
    """Print one line to standard error; plain text, so brackets from a file are never read as markup."""
    typer.echo(one_line(text), err=True)


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Show warnings as one line each, without the place in the source that raised them."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: complain(f"warning: {message}")
        yield


def _accept_any_text() -> None:
    """Let terminals without Unicode show an escape instead of failing on a name."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def limited_threads(n_threads: int | None) -> Iterator[None]:
    """Keep BLAS, OpenMP and the libraries loaded later to `n_threads` threads; None leaves them alone."""
    if n_threads is None:
        yield
        return
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, str(n_threads)))
    try:
        import sklearn  # noqa: F401  (loads the libraries that are limited next)
        from threadpoolctl import threadpool_limits

        with threadpool_limits(n_threads):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
