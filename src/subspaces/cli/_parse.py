"""Options that are more than one word or number: what was typed, as values; what makes no sense is a usage error."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any

import typer

AUTO = "auto"  # as in subspaces.selection, which would import NumPy
MAX_SIDE = 2048
LEAST_MEMORY = 250_000_000
"""What the libraries of a command take alone, rounded up."""


def parse_bytes(text: str) -> int:
    """A size such as 2GB, 500MB or 1.5GiB in bytes; raises ValueError."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]?)(i?)b?\s*", text, flags=re.IGNORECASE)
    if match is None or float(match[1]) <= 0:
        raise ValueError(f"'{text}' is not a size like 500MB, 2GB or 1.5GiB")
    return int(float(match[1]) * (1024 if match[3] else 1000) ** "_kmgt".index(match[2].lower() or "_"))


def size_in_bytes(text: str | None) -> int | None:
    """A size of memory such as 2GB."""
    try:
        size = None if text is None else parse_bytes(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--memory") from None
    if size is not None and size < LEAST_MEMORY:
        problem = f"{text} is less than what its libraries take alone; allow {LEAST_MEMORY // 10**6}MB or more"
        raise typer.BadParameter(problem, param_hint="--memory")
    return size


def number_or_name(text: str | None) -> float | str | None:
    """A bandwidth: a rule or a number."""
    if text is None or text in ("mean", "rms", "median"):
        return text
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not mean, rms, median or a number", param_hint="--bandwidth") from None


def number(text: str | None, option: str, kind: type[int] | type[float]) -> float | str | None:
    """A number or "auto"."""
    if text is None or text == AUTO:
        return text
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise typer.BadParameter(f"'{text}' is not {what} or auto", param_hint=option) from None


def image_size(text: str | None) -> tuple[int, int] | None:
    """Height and width from 32 or 40x30."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*([0-9]{1,5})\s*(?:[xX×,]\s*([0-9]{1,5})\s*)?", text)
    sides = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not all(1 <= side <= MAX_SIDE for side in sides):
        problem = f"'{text}' is not a size like 32 or 40x30 (height x width), 1 to {MAX_SIDE} each"
        raise typer.BadParameter(problem, param_hint="--image-size")
    return sides


def assignments(texts: Iterable[str]) -> dict[str, Any]:
    """Parameters from NAME=VALUE: numbers, true, false, none, lists as Python writes them, else text."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise typer.BadParameter(f"'{text}' is not of the form NAME=VALUE", param_hint="--set")
        if name == "n_clusters":
            raise typer.BadParameter("the number of clusters is given with -k", param_hint="--set")
        if name in found:
            raise typer.BadParameter(f"{name} is given twice", param_hint="--set")
        words = {"true": True, "false": False, "none": None}
        try:
            found[name] = words[value.lower()] if value.lower() in words else ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            found[name] = value
    return found
