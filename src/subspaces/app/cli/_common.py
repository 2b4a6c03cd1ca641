"""Shared by all commands: errors in one line, exit codes, warnings, threads.

Exit codes: 0 done, 1 the computation failed, 2 the command or the input file is wrong, 130 interrupted (Ctrl-C),
143 terminated (``kill``), 129 the terminal was closed.
Nothing heavy is imported here: ``subspaces --help`` must answer at once.
"""

from __future__ import annotations

import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import typer
from typer.core import HAS_RICH, TyperCommand, TyperGroup

from subspaces.utils.process import stopped_by_signals
from subspaces.utils.spelling import arguments_spelled

FAILED, WRONG_INPUT, INTERRUPTED = 1, 2, 130
STOPPED = {INTERRUPTED: "interrupted", 143: "terminated", 129: "the terminal was closed"}  # 128 and the signal's number

BY_SET = ("header", "decimal", "image_size", "color", "mask", "link", "checkpoint")
"""Settings of the commands that have no option of their own: ``--set NAME=VALUE`` takes them."""

_typed: ContextVar[tuple[str, ...]] = ContextVar("_typed", default=("subspaces",))


def repeated_command() -> str:
    """Return the command as it was typed, quoted for a shell, and allowed to replace what it wrote the first time."""
    typed = _typed.get()
    return shlex.join(typed if "--force" in typed else (*typed, "--force"))


class Refusal(Exception):
    """Something a command cannot do here, in one line; not the fault of an option."""


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
        for stream in (sys.stdout, sys.stderr):  # a terminal without Unicode shows an escape instead of failing
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        with stopped_by_signals() as signals:
            try:
                with warnings.catch_warnings(), arguments_spelled(as_option):
                    warnings.showwarning = lambda message, *_, **__: complain(f"warning: {message}")
                    code = super().main(arguments, *rest, **{**options, "standalone_mode": False})
            except Exception as error:
                if "--debug" in arguments:
                    traceback.print_exc()
                # a library that is interrupted may report that as an error of its own
                code = INTERRUPTED if signals else _report(error)
        if code == INTERRUPTED:
            code = 128 + signals[0] if signals else INTERRUPTED
            complain(STOPPED[code])
        sys.exit(code if isinstance(code, int) else 0)


def as_option(name: str, value: Any = None) -> str:
    """Spell an argument of the library as an option of the command line."""
    if name in BY_SET:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return f"--set {name}" if value is None else f"--set {shlex.quote(f'{name}={text}')}"
    values = [] if value is None or isinstance(value, bool) else [value] if isinstance(value, str) else value
    option = "--seed" if name == "random_state" else "--" + name.replace("_", "-")
    return " ".join(f"{option} {shlex.quote(item)}" for item in values) or option


def refuse(option: str, problem: str) -> typer.BadParameter:
    """Return the error for a wrong use of an option, which is named as it is typed or by its argument."""
    named = option.startswith("-") or option.isupper()
    return typer.BadParameter(problem, param_hint=option if named else as_option(option))


def _report(error: Exception) -> int:
    """Print in one line what went wrong; return the exit code."""
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
    """Return the command that was typed with the options that an error asks for, ready to be typed."""
    remedy, typed = getattr(error, "remedy", None), _typed.get()
    if not remedy or typed[1] == "predict":  # where the model decides
        return ""
    return f"; try: {shlex.join(typed)} {' '.join(as_option(name, value) for name, value in remedy.items())}"


def one_line(text: object) -> str:
    """Return the text of unknown origin safe for a terminal: one line, control characters escaped."""
    joined = " ".join(str(text).split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in joined)


def tell(*texts: object) -> None:
    """Print each text as one line; plain, so brackets from a file are never read as markup."""
    for text in texts:
        typer.echo(one_line(text))


def complain(text: object) -> None:
    """Print one line to standard error."""
    typer.echo(one_line(text), err=True)


@contextmanager
def limited_threads(n_threads: int | None) -> Iterator[None]:
    """Keep BLAS, OpenMP and the libraries loaded later to `n_threads` threads; None leaves them alone."""
    if n_threads is None:
        yield
        return
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
    before = {name: os.environ[name] for name in names if name in os.environ}
    os.environ.update(dict.fromkeys(names, str(n_threads)))
    try:
        import sklearn  # noqa: F401  (loads the libraries that are limited next)
        from threadpoolctl import threadpool_limits

        with threadpool_limits(n_threads):
            yield
    finally:
        for name in names:
            del os.environ[name]
        os.environ.update(before)
