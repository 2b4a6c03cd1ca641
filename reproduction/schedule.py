"""An experiment → the cells it needs, each with the place its result has in the table or figure."""

from __future__ import annotations

import difflib
import itertools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reproduction.entries import CODE, Cell
from subspaces import __version__
from subspaces.io import FileError
from subspaces.io.dataset import printable
from subspaces.spelling import counted

HERE = Path(__file__).parent
EXPERIMENTS = HERE / "experiments"
PARAMETERS = HERE / "parameters.toml"
GRID = "grid"
"""The experiment that chooses settings; it belongs to no table."""

CHOSEN = "chosen.toml"
"""Beside the parameters, or in the output: the settings that the grids chose, see reproduction.choice."""
QUICK = "-quick"
"""Ending of the names of what a quick run writes: it never takes the place of the real thing."""

OWN = "-own"
"""Ending, before that of a quick run, where a class or points of the user take part."""

DRAWN = {"per_class": "draw", "corruption": "noise_seed", "persons": "group"}
"""Descriptions of points that leave something open, and the name of what settles it."""

MAX_CELLS = 100_000
"""Cells of one experiment, and runs of one cell: the largest of the paper has some hundreds."""


@dataclass(frozen=True)
class Experiment:
    """One table or figure, as its file says."""

    name: str  # the file's; quick versions end in -quick
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
    best: str = "max"
    printed: str = "paper"  # heads the column of numbers that are compared with
    asked: str = ""  # its name on the command line, where the user added something
    options: str = ""  # and how

    @property
    def is_quick(self) -> bool:
        """Whether this is the small version."""
        return self.name.endswith(QUICK)


@dataclass(frozen=True)
class Origin:
    """Which row of parameters.toml a cell belongs to, and what the place adds to its parameters."""

    name: str
    setting: dict[str, Any]


@dataclass(frozen=True)
class Planned:
    """A cell and its place: panel, row and, along curves, x.

    `runs` are those of the paper's protocol, 0 where it has none or one says all; `short` is how few starts there are.
    `turn` is the place in line: the first draw or block of every row comes before the second of any.
    """

    panel: str
    row: str
    x: float | None
    cell: Cell
    runs: int = 0
    short: str = ""
    turn: int = 0
    origin: Origin | None = None


def load_experiment(name: str, folder: Path = EXPERIMENTS, *, quick: bool = False) -> Experiment:
    """An experiment from its file."""
    known = experiment_names(folder)
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ValueError(f"there is no experiment '{name}'{hint} (known: {', '.join(known)})")
    path = folder / f"{name}.toml"
    document = _read_toml(path)
    try:
        small = document.pop("quick", {})
        if quick:
            name += QUICK
            document = _shrunk(document, small)
        return Experiment(name=name, **document)
    except (TypeError, LookupError, AttributeError, ValueError) as error:
        raise FileError(path, f"not an experiment ({_reason(error)})") from error


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise FileError(path, f"not TOML in UTF-8 ({_reason(error)})") from error


def _reason(error: Exception) -> str:
    return printable(" ".join(f"{type(error).__name__}: {error}".split()), 120)


def experiment_names(folder: Path = EXPERIMENTS) -> list[str]:
    """All experiments, figures and tables in the order of the paper's pages."""
    order = ["fig1", "fig2", "table2", "fig3", "fig4", "fig5", "table3", "table4", "table5", "table6"]
    order += ["fig6", "fig7", "fig8", "table7", "fig9", "table8", "rivals", "digits"]
    names = [path.stem for path in folder.glob("*.toml")]
    return sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))


def load_parameters(path: Path = PARAMETERS, chosen: Path | None = None) -> dict[str, dict[str, Any]]:
    """The rows by name: method, label, common parameters, grid and the setting chosen for each data set.

    Choices are those of the file `chosen`, left out of the one beside the parameters.
    """
    rows, beside = _read_toml(path), chosen or path.with_name(CHOSEN)
    for name, by_data in (_read_toml(beside) if beside.exists() else {}).items():
        if name in rows:
            found = {data: choice["setting"] for data, choice in by_data.items()}
            rows[name] = {**rows[name], "chosen": {**rows[name].get("chosen", {}), **found}}
    return rows


def plan(experiment: Experiment, parameters: Mapping[str, Mapping[str, Any]]) -> list[Planned]:
    """Every cell of an experiment, in the order in which it is shown."""
    try:
        cells = (planned for panel in experiment.panels for planned in _panel(experiment, panel, parameters))
        found = list(itertools.islice(cells, MAX_CELLS + 1))
    except (TypeError, LookupError, AttributeError, ValueError, OverflowError) as error:
        problem = f"the experiment '{experiment.name}' or its rows are not as expected: {_reason(error)}"
        raise ValueError(problem) from error
    if len(found) > MAX_CELLS:
        raise ValueError(f"the experiment '{experiment.name}' has more than {MAX_CELLS} cells; ask for fewer")
    return found


def data_needed(experiment: Experiment) -> list[str]:
    """Names of the data sets, in order; a file of the user is no data set."""
    return list(dict.fromkeys(panel["data"]["name"] for panel in experiment.panels if "file" not in panel["data"]))


def protocol_of(experiment: Experiment, panel: Mapping[str, Any], row: str) -> dict[str, Any]:
    """Draws and cuts of a row: the experiment's, unless the panel or the row has its own."""
    common = {name: value for name, value in experiment.protocol.items() if name != "rows"}
    own = experiment.protocol.get("rows", {}).get(row, {})
    return {**common, **panel.get("protocol", {}), **own}


def chosen(row: Mapping[str, Any], points: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a row on a data set: the setting for the most special description of it that has one."""
    settings = row.get("chosen", {})
    for key in names_of(points):
        if key in settings:
            return {**row.get("common", {}), **settings[key]}
    return dict(row.get("common", {}))


def names_of(points: Mapping[str, Any]) -> list[str]:
    """What settings may be kept under for such points, the most special name first: with noise, a part, all."""
    part = f"{points['name']}-{points['first']}" if "first" in points else points["name"]
    noisy = [f"{part}-{points['corruption']}"] if "corruption" in points else []
    return list(dict.fromkeys([*noisy, part, points["name"]]))


def grid(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every setting of a row's grid."""
    for block in row.get("grid", [{}]):
        for values in itertools.product(*block.values()):
            yield dict(zip(block, values, strict=True))


def _panel(
    experiment: Experiment, panel: Mapping[str, Any], parameters: Mapping[str, Mapping[str, Any]]
) -> Iterator[Planned]:
    for name in panel["rows"]:
        row, protocol = parameters[name], protocol_of(experiment, panel, name)
        for label, x, points, overrides in _places(panel, row):
            # what was chosen before has no part in a grid: its blocks need not name the same parameters
            settled = row.get("common", {}) if panel.get("grid") else chosen(row, points)
            cell: Cell = {
                "kind": panel.get("kind", row.get("kind", "cut")),
                "points": points,
                "method": row["method"],
                "parameters": {**settled, **panel.get("set", {}), **overrides},
                "cuts": [],
                "version": __version__,
                "code": CODE,
            }
            if "source" in row:
                cell["source"] = row["source"]
            seeded = next((key for part, key in DRAWN.items() if part in points), None)
            n_draws, first = (protocol.get("draws", 1), protocol.get("first_draw", 0)) if seeded else (1, 0)
            runs, short = _owed(experiment, row, protocol)
            for draw in range(first, first + n_draws):
                where = {**points, seeded: draw} if seeded else points
                for block, cuts in enumerate(_cuts(protocol, draw)):
                    full_cell = {**cell, "points": where, "cuts": cuts}
                    turn, origin = draw - first + block, Origin(name, overrides)
                    yield Planned(panel["name"], label, x, full_cell, runs, short, turn, origin)


def _places(
    panel: Mapping[str, Any], row: Mapping[str, Any]
) -> Iterator[tuple[str, float | None, dict[str, Any], dict[str, Any]]]:
    """Label, x, points and parameters of every place of a row: one, or those along a curve, a surface or a grid."""
    points = dict(panel["data"])
    if panel.get("grid"):
        for setting in grid(row):
            text = ", ".join(f"{name} {value}" for name, value in setting.items())
            yield f"{row['label']}: {text}", None, points, setting
        return
    ((parameter, values),) = panel.get("series", {"": [None]}).items()
    for value in values:
        label = row["label"] if value is None else f"{parameter} {value}"
        fixed = {} if value is None else {parameter: value}
        if "vary" not in panel:
            yield label, None, points, fixed
        for x in panel.get("values", []) if "vary" in panel else []:
            if panel["vary"] in ("first", "level"):
                yield label, x, {**points, panel["vary"]: x}, fixed
            else:
                yield label, x, points, {**fixed, panel["vary"]: x}


def _cuts(protocol: Mapping[str, Any], draw: int) -> list[list[dict[str, Any]]]:
    """The cuts of each cell of a random subset or a draw of the noise.

    It is one cell, or one for each `block` of runs, so that more runs can be added later: every run by itself
    (`apart`) for methods that take minutes.
    """
    if sum(cut["runs"] for cut in protocol["cuts"]) > MAX_CELLS:
        raise ValueError(f"more than {MAX_CELLS} runs of one cell")
    most = max((cut["runs"] for cut in protocol["cuts"]), default=1)
    size = 1 if protocol.get("apart") else protocol.get("block", most) or 1
    blocks = []
    for start in range(0, most, size):
        cuts = []
        for cut in protocol["cuts"]:
            seeds = range(draw * cut["runs"], (draw + 1) * cut["runs"])[start : start + size]
            how = {"name": cut["name"], "restarts": cut.get("restarts", 1), "init": cut.get("init", "k-means++")}
            cuts += [{**how, "seeds": list(seeds)}] if seeds else []
        blocks.append(cuts)
    return blocks


def _owed(experiment: Experiment, row: Mapping[str, Any], protocol: Mapping[str, Any]) -> tuple[int, str]:
    """The paper's number of runs for a row, and what its starts of k-means lack; 0 and nothing where all is said."""
    if not experiment.full or row.get("deterministic"):
        return 0, ""
    n_starts, wanted = protocol["cuts"][0].get("restarts", 1), experiment.full["restarts"]
    short = row.get("restarted", True) and n_starts < wanted
    return experiment.full["runs"], counted(n_starts, "start") if short else ""


def _shrunk(document: dict[str, Any], small: Mapping[str, Any]) -> dict[str, Any]:
    """The quick version: fewer rows, values, draws, runs and restarts; the file says how many."""

    def shrink(protocol: Mapping[str, Any]) -> dict[str, Any]:
        runs, restarts = small.get("runs", 2), small.get("restarts", 20)
        cuts = [
            {**cut, "runs": min(cut["runs"], runs), "restarts": min(cut.get("restarts", 1), restarts)}
            for cut in protocol["cuts"]
        ]
        return {**protocol, "draws": small.get("draws", 1), "rows": {}, "cuts": cuts}

    panels, every = [dict(panel) for panel in document["panels"]], small.get("every", 3)
    for panel in panels:
        if "protocol" in panel:
            panel["protocol"] = shrink(panel["protocol"])
        if "rows" in small:
            panel["rows"] = [name for name in panel["rows"] if name in small["rows"]]
        if "values" in panel:
            panel["values"] = panel["values"][::every]
        if "series" in panel:
            panel["series"] = {key: values[::every] for key, values in panel["series"].items()}
    minutes = small.get("minutes", 0.2)
    return {**document, "protocol": shrink(document["protocol"]), "panels": panels, "minutes": minutes}
