"""What type checkers read of ``import subspaces``: the imports in its ``__init__.py``, from the registry.

python tests/project/public_names.py     # writes them anew, after a method was added
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import subspaces
from subspaces import registry

FILE = Path(subspaces.__file__)
BLOCK = re.compile(r"^if TYPE_CHECKING:\n(?:    .*\n)+", flags=re.M)


def wanted() -> str:
    """The block of imports, in the order of ruff."""
    modules = {entry.class_name: entry.module for entry in registry.METHODS if entry.kind in registry.SHALLOW}
    modules |= subspaces._OTHERS

    def place(name: str) -> tuple[str, int, str]:
        return modules[name], 0 if name.isupper() else 1, name

    lines = [f"    from {modules[name]} import {name} as {name}\n" for name in sorted(modules, key=place)]
    return "if TYPE_CHECKING:\n" + "".join(lines)


def written(text: str) -> str:
    """The file with the imports that it should have."""
    return BLOCK.sub(lambda _: wanted(), text, count=1)


if __name__ == "__main__":
    FILE.write_text(written(FILE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{FILE}: {len(subspaces.__all__) - 1} names\n")
