"""The command reference, made from the commands themselves whenever the manual is built: nobody keeps it by hand.

``<!-- commands -->`` on a page becomes a section for each command: what it does, its arguments and options by panel.
"""

from __future__ import annotations

import re
from typing import Any

MARK = "<!-- commands -->"


def reference() -> str:
    """Markdown on every command of ``subspaces``, in the order of its help."""
    from typer.main import get_command

    from subspaces.app.cli.main import app

    group = get_command(app)
    return "\n\n".join(section(name, command) for name, command in group.commands.items())  # type: ignore[attr-defined]


def section(name: str, command: Any) -> str:
    """What one command does and takes."""
    shown = [param for param in command.params if not getattr(param, "hidden", False) and param.name != "help"]
    arguments = [param for param in shown if param.param_type_name == "argument"]
    panels: dict[str, list[Any]] = {}
    for param in shown:
        if param.param_type_name == "option":
            panels.setdefault(getattr(param, "rich_help_panel", None) or "Options", []).append(param)
    usage = " ".join(["subspaces", name, *(param.metavar or param.name.upper() for param in arguments), "[OPTIONS]"])
    lines = [f"## subspaces {name}", "", "```text", usage, "```", "", *_paragraphs(command.help or "")]
    for param in arguments:
        lines += [f"**`{param.metavar or param.name.upper()}`**: {_plain(param.help or '')}", ""]
    for panel, options in panels.items():
        lines += [f"### {panel} (`{name}`)", "", "| option | what it does |", "|---|---|"]
        lines += [f"| {_names(param)} | {_plain(param.help or '')} |" for param in options]
        lines.append("")
    return "\n".join(lines)


def _names(param: Any) -> str:
    """An option as it is typed, with a word for what it takes."""
    metavar = f" {param.metavar}" if param.metavar and not param.is_flag else ""
    return ", ".join(f"`{name}{metavar}`" for name in (*param.opts, *param.secondary_opts))


def _paragraphs(text: str) -> list[str]:
    """The description; examples become code."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        flat = " ".join(paragraph.split())
        if found := re.match(r"Examples?: (.*)", flat):
            lines += ["```sh", *(part.strip() for part in found[1].split(";")), "```", ""]
        else:
            lines += [_plain(flat), ""]
    return lines


def _plain(text: str) -> str:
    """Text of a help message that Markdown must not read as anything else."""
    return re.sub(r"([|*_<>\[\]`$])", r"\\\1", " ".join(text.split()))


def insert(app: Any, docname: str, source: list[str]) -> None:
    """Put the reference where a page marks it."""
    if MARK in source[0]:
        source[0] = source[0].replace(MARK, reference())


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", insert)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
