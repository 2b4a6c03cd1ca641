"""Complete docstrings: what a class inherits is described where it is defined, and ``help`` shows all of it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING
from typing import Any

_SECTION = r"(?ms)^{}\n-+\n(.*?)(?=\n*^\w[\w ]*\n-+\n|\Z)"


def complete_docstring(cls: type) -> None:
    """Add the parameters and fitted attributes of the base classes that the class does not describe itself."""
    if cls.__doc__ is None:  # python -OO
        return
    text = inspect.cleandoc(cls.__doc__)
    parameters = _merged(cls, text, "Parameters", _parameters(cls))
    inherited = [name for base in cls.__mro__ for name, _ in _entries(base.__doc__, "Attributes")]
    properties = [name for name in dir(cls) if name.endswith("_") and not name.startswith("_")]
    attributes = _merged(cls, text, "Attributes", list(dict.fromkeys(inherited + properties)))
    for title in ("Parameters", "Attributes"):
        text = re.sub(_SECTION.format(title) + r"\n*", "", text)
    parts = re.split(r"(?m)^(?=\w[\w ]*\n-+\n)", text, maxsplit=1)
    rest = parts[1] if len(parts) > 1 else ""
    sections = f"Parameters\n----------\n{parameters}\n\nAttributes\n----------\n{attributes}\n\n"
    cls.__doc__ = f"{parts[0].rstrip()}\n\n{sections}{rest}".rstrip() + "\n"


def _parameters(cls: type) -> list[str]:
    """Return names of the parameters: fields of the class and its bases, except those that a subclass fixes for all."""
    kinds: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        kinds |= {name: str(kind) for name, kind in vars(base).get("__annotations__", {}).items()}
    return [name for name, kind in kinds.items() if name[0] != "_" and "ClassVar" not in kind and hasattr(cls, name)]


def _merged(cls: type, text: str, section: str, names: list[str]) -> str:
    """Entries of a section: the class's own, then those of its bases, then first lines of properties."""
    own = list(_entries(text, section))
    written = {name for name, _ in own}
    found = list(dict.fromkeys(entry for _, entry in own))
    for name in names:
        if name not in written:
            described = (dict(_entries(base.__doc__, section)).get(name) for base in cls.__mro__[1:])
            entry = next((entry for entry in described if entry), None) or _of_property(getattr(cls, name, None))
            if entry is not None:
                found.append(_alone(name, entry, getattr(cls, name, MISSING) if section == "Parameters" else MISSING))
    return "\n".join(found)


def _entries(doc: str | None, section: str) -> Iterator[tuple[str, str]]:
    """Yield each name that a section describes, with its entry."""
    match = re.search(_SECTION.format(section), inspect.cleandoc(doc or ""))
    for entry in re.findall(r"(?m)^\S.*(?:\n[ \t]+\S.*)*", match[1] if match else ""):
        for name in entry.split("\n")[0].split(" : ")[0].split(", "):
            yield name, entry


def _alone(name: str, entry: str, default: Any) -> str:
    """Return an entry for one of its names, with the default of the class that inherits it."""
    head, newline, body = entry.partition("\n")
    kind = head.partition(" : ")[2]
    default = getattr(default, "default", default)
    if default is not MISSING:
        shown = f'"{default}"' if isinstance(default, str) else default
        kind = re.sub(r",? ?default=.*", "", kind) + f", default={shown}"
    kind = kind.lstrip(", ")
    return f"{name} : {kind}{newline}{body}" if kind else f"{name}{newline}{body}"


def _of_property(member: Any) -> str | None:
    """Return the type and the first line of a property's docstring as an entry."""
    if not isinstance(member, property) or member.__doc__ is None:
        return None
    kind = str(member.fget.__annotations__["return"]).replace("Array", "array")
    return f"x : {kind}\n    {member.__doc__.strip().splitlines()[0]}"
