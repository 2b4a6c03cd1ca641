"""The grid's results → the setting of each row for each data set, kept in ``chosen.toml`` with how it was found."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reproduction.schedule import DRAWN, Planned, names_of
from reproduction.statistics import Record
from subspaces.io.writing import write_text

Choices = dict[str, dict[str, dict[str, Any]]]
"""By row and data set: setting, tried (settings of the grid), on (draws, or the fixed points) and accuracy."""

_HEAD = """\
# Written by `python -m reproduction grid`: the best setting of each row's grid for each data set, and how it was found.
# tried = 0: an earlier choice by hand and labels, kept until the grid of that row on that data is whole.
"""


def choose(planned: Sequence[Planned], records: Sequence[Record]) -> Choices:
    """The best setting by mean accuracy of every row and data set whose grid is whole; of equal ones the first."""
    means = {(r.panel, r.row): r for r in records if r.metric == "AC"}
    grids: dict[tuple[str, str], dict[str, list[Planned]]] = {}
    for item in planned:
        assert item.origin is not None
        data = names_of(item.cell["points"])[0]
        grids.setdefault((item.origin.name, data), {}).setdefault(item.row, []).append(item)
    found: Choices = {}
    for (row, data), places in grids.items():
        of_row = {label: means[items[0].panel, label] for label, items in places.items()}
        whole = {record.n for record in of_row.values()}
        if len(whole) != 1 or 0 in whole:  # settings are compared on the same draws or not at all
            continue
        best = max(of_row, key=lambda label: of_row[label].mean or 0.0)
        first, n = places[best][0], whole.pop()
        draws = sorted({value for item in places[best] if (value := _draw(item)) is not None})[:n]
        on = f"draw{'s' * (len(draws) > 1)} {', '.join(map(str, draws))}" if draws else "the points reported"
        setting = {**(first.origin.setting if first.origin else {})}
        accuracy = round(of_row[best].mean or 0.0, 2)
        found.setdefault(row, {})[data] = {"tried": len(places), "on": on, "accuracy": accuracy, "setting": setting}
    return found


def _draw(item: Planned) -> int | None:
    """The draw of the points or of their noise."""
    points = item.cell["points"]
    return next((int(points[key]) for key in DRAWN.values() if key in points), None)


def read_chosen(path: Path) -> Choices:
    """The choices kept in a file; none if there is no file."""
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write_chosen(path: Path, earlier: Choices, planned: Sequence[Planned], records: Sequence[Record]) -> None:
    """Keep what was chosen; rows and data whose grid is not whole keep their setting, as an earlier choice."""
    kept = {
        row: {data: {"tried": 0, "setting": each["setting"]} for data, each in by_data.items()}
        for row, by_data in earlier.items()
    }
    for row, by_data in choose(planned, records).items():
        kept[row] = {**kept.get(row, {}), **by_data}
    write_text(path, "\n".join([_HEAD, *_toml(kept)]))


def _toml(choices: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Iterator[str]:
    for row, by_data in choices.items():
        for data, choice in by_data.items():
            yield f"[{row}.{data}]"
            yield from (f"{name} = {_value(value)}" for name, value in choice.items())
            yield ""


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{name} = {_value(each)}" for name, each in value.items()) + " }"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else repr(value)
