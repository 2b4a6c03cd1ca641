"""An experiment → the cells it needs, each with the place its result has in the table or figure.

A folder (`HERE`, or another of the same make) has ``experiments/*.toml``, their rows in ``parameters.toml``, settings
chosen from grids in ``chosen.toml``, and the paper's numbers in ``paper/*.csv``.
"""

from __future__ import annotations

import importlib
import itertools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reproduction.cells import CODE, Cell
from subspaces import __version__, registry
from subspaces.utils.spelling import counted

HERE = Path(__file__).parent
GRID = "grid"
"""The experiment that chooses settings; it belongs to no table."""
SEARCH = "best"
"""The experiment that searches wide grids with the labels that score."""
CHOSEN = "chosen.toml"

ORDER = "fig1 fig2 table2 fig3 fig4 fig5 table3 table4 table5 table6 fig6 fig7 fig8 table7 fig9 table8 best rivals"
"""The experiments in the order of the paper's pages."""
DRAWN = {"per_class": "draw", "corruption": "noise_seed", "persons": "group"}
"""Descriptions of points that leave something open, and the name of what settles it."""

Rows = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Experiment:
    """One table or figure, as its file says."""

    name: str  # of its file
    title: str
    paper: str  # the number the paper gives it; empty for what it does not have
    style: str  # how it is drawn, see reproduction.figures; "table" is not
    metrics: list[str]  # columns, in order
    panels: list[dict[str, Any]]  # parts: name, data, rows (of parameters.toml), and what varies along them
    protocol: dict[str, Any]  # draws, cuts and, under rows, what differs for single rows
    full: dict[str, int] = field(default_factory=dict)  # the paper's runs and restarts; rows with less are marked
    tested: list[str] = field(default_factory=list)  # metrics in which the paper tests its method against the rivals
    minutes: float = 1.0  # of CPU time, measured
    note: str = ""
    printed: str = "paper"  # heads the column of numbers that are compared with

    @property
    def heading(self) -> str:
        """The title, after the paper's number if it has one."""
        return f"{self.paper}: {self.title}" if self.paper else self.title

    @property
    def picture(self) -> str:
        """The format of its figure: images stay images, the rest are vectors."""
        return "png" if self.style in ("matrices", "samples") else "svg"

    @property
    def origin(self) -> str:
        """The command and version that make it."""
        return f"Made by `python -m reproduction {self.name}`, subspaces {__version__}, code {CODE}."


@dataclass(frozen=True)
class Planned:
    """A cell and its place: panel, row and, along curves, x.

    `runs` are those of the paper's protocol, 0 where it has none or one says all; `short` is how few starts there are.
    `turn` is the place in line: the first draw or block of every row comes before the second of any. `key` is the row
    of parameters.toml, `setting` what the place adds to its parameters.
    """

    panel: str
    row: str
    x: float | None
    cell: Cell
    runs: int = 0
    short: str = ""
    turn: int = 0
    key: str = ""
    setting: dict[str, Any] = field(default_factory=dict)

    @property
    def method(self) -> str:
        """The method and its parameters as text."""
        parameters = ", ".join(f"{name}={value}" for name, value in self.cell["parameters"].items())
        return f"{self.cell['method']}({parameters})"


def experiment_names(home: Path = HERE) -> list[str]:
    """List all experiments, figures and tables in the order of the paper's pages."""
    order = ORDER.split()
    names = [path.stem for path in (home / "experiments").glob("*.toml")]
    return sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))


def load_experiment(name: str, home: Path = HERE) -> Experiment:
    """Read an experiment from its file."""
    document = tomllib.loads((home / "experiments" / f"{name}.toml").read_text(encoding="utf-8"))
    return Experiment(name, **document)


def load_parameters(home: Path = HERE, chosen: Path | None = None) -> dict[str, dict[str, Any]]:
    """Read the rows by name: method, label, common parameters, grid and the setting chosen for each data set.

    Choices are those of the file `chosen`, left out of the one beside the parameters.
    """
    rows, beside = tomllib.loads((home / "parameters.toml").read_text(encoding="utf-8")), chosen or home / CHOSEN
    for name, by_data in read_chosen(beside).items():
        if name in rows:
            found = {data: choice["setting"] for data, choice in by_data.items()}
            rows[name] = {**rows[name], "chosen": {**rows[name].get("chosen", {}), **found}}
    return rows


def read_chosen(path: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Read choices by row and data set: setting, tried (settings of the grid), on (draws) and accuracy."""
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


# ------------------------------------------------------------------ cells


def plan(experiment: Experiment, rows: Rows) -> list[Planned]:
    """List every cell of an experiment, in the order in which it is shown."""
    places = [(panel, name) for panel in experiment.panels for name in panel["rows"]]
    return [item for panel, name in places for item in _row(experiment, panel, name, rows)]


def _row(experiment: Experiment, panel: Mapping[str, Any], name: str, rows: Rows) -> Iterator[Planned]:
    row, common = rows[name], experiment.protocol
    protocol = {**common, **panel.get("protocol", {}), **common.get("rows", {}).get(name, {})}
    runs, short = 0, ""
    if experiment.full and not row.get("deterministic"):
        runs, starts = experiment.full["runs"], protocol["cuts"][0].get("restarts", 1)
        if row.get("restarted", True) and starts < experiment.full["restarts"]:
            short = counted(starts, "start")
    for label, x, points, setting in _places(panel, row):
        # what was chosen before has no part in a grid: its blocks need not name the same parameters
        settled = row.get("common", {}) if panel.get("grid") else chosen(row, points)
        cell: Cell = {
            "kind": panel.get("kind", row.get("kind", "cut")),
            "method": row["method"],
            "parameters": {**settled, **panel.get("set", {}), **setting},
            "version": __version__,
            "code": CODE,
        }
        seeded = next((key for part, key in DRAWN.items() if part in points), None)
        n_draws, first = (protocol.get("draws", 1), protocol.get("first_draw", 0)) if seeded else (1, 0)
        for draw in range(first, first + n_draws):
            where = {**points, seeded: draw} if seeded else points
            for block, cuts in enumerate(_cuts(protocol, draw)):
                full_cell, turn = {**cell, "points": where, "cuts": cuts}, draw - first + block
                yield Planned(panel["name"], label, x, full_cell, runs, short, turn, name, setting)


def _places(
    panel: Mapping[str, Any], row: Mapping[str, Any]
) -> Iterator[tuple[str, float | None, dict[str, Any], dict[str, Any]]]:
    """Yield label, x, samples and parameters of every place of a row: one, or those of a curve, a surface or a grid."""
    points, vary = dict(panel["data"]), panel.get("vary")
    if panel.get("grid"):
        for setting in grid(row):
            text = ", ".join(f"{name} {value}" for name, value in setting.items())
            yield f"{row['label']}: {text}", None, points, setting
        return
    ((parameter, values),) = panel.get("series", {"": [None]}).items()
    for value in values:
        label = row["label"] if value is None else f"{parameter} {value}"
        fixed = {} if value is None else {parameter: value}
        for x in panel["values"] if vary else [None]:
            if vary in ("first", "level"):
                yield label, x, {**points, vary: x}, fixed
            else:
                yield label, x, points, {**fixed, vary: x} if vary else fixed


def _cuts(protocol: Mapping[str, Any], draw: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the cuts of each cell of a random subset or a draw of the noise.

    It is one cell, or one for each `block` of runs, so that more runs can be added later: every run by itself
    (`apart`) for methods that take minutes.
    """
    most = max((cut["runs"] for cut in protocol["cuts"]), default=1)
    size = 1 if protocol.get("apart") else protocol.get("block", most)
    for start in range(0, most, size):
        cuts = []
        for cut in protocol["cuts"]:
            seeds = range(draw * cut["runs"], (draw + 1) * cut["runs"])[start : start + size]
            how = {"name": cut["name"], "restarts": cut.get("restarts", 1), "init": cut.get("init", "k-means++")}
            cuts += [{**how, "seeds": list(seeds)}] if seeds else []
        yield cuts


def chosen(row: Mapping[str, Any], points: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a row on a data set: the setting of the most special name of it that has one."""
    settings = row.get("chosen", {})
    return {**row.get("common", {}), **next((settings[key] for key in names_of(points) if key in settings), {})}


def names_of(points: Mapping[str, Any]) -> list[str]:
    """List what settings may be kept under for such samples, the most special name first: with noise, a part, all."""
    part = f"{points['name']}-{points['first']}" if "first" in points else points["name"]
    noisy = [f"{part}-{points['corruption']}"] if "corruption" in points else []
    return list(dict.fromkeys([*noisy, part, points["name"]]))


def grid(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every setting of a row's grid."""
    for block in row.get("grid", [{}]):
        for values in itertools.product(*block.values()):
            yield dict(zip(block, values, strict=True))


def load_method(name: str) -> Any:
    """Return the class of a method: of the registry, or of one's own from ``module:Class``."""
    module, colon, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute) if colon else registry.load(name)
