"""Inputs of a command: one file or folder, several, a pattern, or a pipe; and how Python would read the same."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from subspaces.app.cli._common import refuse
from subspaces.utils.spelling import counted


@dataclass(frozen=True)
class Inputs:
    """Files that are read together; none is the pipe. `main` is the file, the folder of all images, or the first."""

    files: tuple[Path, ...]
    main: Path

    @classmethod
    def of(cls, names: Sequence[str]) -> Self:
        """Find the files that are meant; refuse addresses and a pipe among files."""
        from subspaces.app.files.several import PIPE, are_images, common_folder, expand

        if "-" in names:
            if len(names) > 1:
                raise refuse("FILE", "- (a table from a pipe) cannot be joined with files")
            if sys.stdin.isatty():
                problem = "- reads a table from a pipe, and there is none; try: other-program | subspaces cluster -"
                raise refuse("FILE", problem)
            return cls((), PIPE)
        files = tuple(expand(names))
        is_folder = len(files) > 1 and all(file.exists() for file in files) and are_images(files)
        return cls(files, common_folder(files) if is_folder else files[0])

    @property
    def tables(self) -> tuple[Path, ...]:
        """All files, if they are tables."""
        from subspaces.app.files.several import are_images

        return () if are_images(self.files) else self.files

    @property
    def source(self) -> Any:
        """The first argument of `read_table`."""
        return sys.stdin.buffer if not self.files else self.files[0] if len(self.files) == 1 else list(self.files)

    @property
    def title(self) -> str:
        """A name for messages."""
        more = len(self.tables) - 1
        return str(self.main) + (f" and {counted(more, 'more file')}" if more > 0 else "")

    def in_python(self, arguments: dict[str, Any]) -> str:
        """Return lines of Python that read the same samples."""
        names = [str(file) for file in self.files]
        what = "sys.stdin.buffer" if not names else repr(names[0] if len(names) == 1 else names)
        before = "" if names else "import sys\n\n"
        return f"{before}from subspaces.app.files import read_table\n\nX = read_table({what}{keywords(arguments)}).X"


def keywords(arguments: dict[str, Any]) -> str:
    """Return arguments as they follow the first one in a call."""
    return "".join(f", {name}={value!r}" for name, value in arguments.items())
