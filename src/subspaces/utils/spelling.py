"""Wording of messages: arguments as the caller writes them (in Python, or as options of the command line), counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

Value: TypeAlias = str | bool | Sequence[str] | None
Spelling: TypeAlias = Callable[[str, Value], str]


def in_python(name: str, value: Value = None) -> str:
    """Spell an argument, or with its value what to pass.

    Examples
    --------
    >>> in_python("label"), in_python("label", "c"), in_python("ignore", ["c"]), in_python("header", True)
    ('label', 'label="c"', 'ignore=["c"]', 'header=True')
    """
    if value is None:
        return name
    if isinstance(value, bool):
        return f"{name}={value}"
    if isinstance(value, str):
        return f'{name}="{value}"'
    items = ", ".join(f'"{item}"' for item in value)
    return f"{name}=[{items}]"


def counted(n: int, noun: str, many: str | None = None) -> str:
    """Return a number and what it counts, in the singular for one.

    Examples
    --------
    >>> counted(1, "cluster"), counted(0, "cluster"), counted(12345, "point"), counted(2, "is", "are")
    ('1 cluster', '0 clusters', '12345 points', '2 are')
    """
    return f"{n} {noun if n == 1 else many or noun + 's'}"


def first_line(text: str) -> str:
    """Return the first line of a text that is not empty, shortened to 120 characters.

    Examples
    --------
    >>> first_line("  A fit,   at last.")
    'A fit, at last.'
    """
    line = " ".join(next((line for line in text.splitlines() if line.strip()), "").split())
    return line if len(line) <= 120 else f"{line[:119]}…"


_spelling: ContextVar[Spelling] = ContextVar("_spelling", default=in_python)


def spelled(name: str, value: Value = None) -> str:
    """Spell an argument as whoever reads the message would write it."""
    return _spelling.get()(name, value)


@contextmanager
def arguments_spelled(spelling: Spelling) -> Iterator[None]:
    """Spell arguments in messages as the program that calls the library does."""
    token = _spelling.set(spelling)
    try:
        yield
    finally:
        _spelling.reset(token)
