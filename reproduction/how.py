"""How the rows of a table were made: settings, draws and starts; and what the best setting by labels would give."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean, median
from typing import Any

from reproduction import plan as planning
from reproduction.cells import canonical, digest, read_runs
from reproduction.compute import parameters
from reproduction.plan import Experiment, Planned, Rows, load_method, names_of
from reproduction.records import Record
from reproduction.run import Settings
from subspaces import registry
from subspaces.kernels import as_kernel

LETTERS = {"reg": "λ", "error_weight": "weight", "n_nonzero": "η", "bandwidth": "σ", "n_neighbors": "neighbours"}
SHOWN = (
    *("kernel", "bandwidth", "reg", "error_weight", "n_nonzero", "n_neighbors", "rank", "subspace_dim", "graph"),
    *("scaling", "affine", "outliers", "connect", "assign_labels"),
)
"""Parameters that are told of every method that has them, whether set or left at their default."""
AS_USUAL = {"affine": False, "outliers": False, "connect": True, "assign_labels": "kmeans"}
"""What need not be said."""


def values(item: Planned) -> dict[str, Any]:
    """Return all parameters of a row, defaults included; a bandwidth only where the kernel has one."""
    given = parameters(item.cell)
    found = {**load_method(item.cell["method"])().get_params(deep=False), **given}
    if "kernel" in found and not as_kernel(found["kernel"]).has_bandwidth:
        del found["bandwidth"]
    return {name: found[name] for name in dict.fromkeys((*SHOWN, *given)) if name in found}


def setting(item: Planned) -> str:
    """Write the whole setting of a row; what varies along its curve left out."""
    if item.cell["method"] not in registry.names():
        return "nothing but the number of clusters" if item.cell["method"] == "automatic" else ""
    found = values(item)
    return told(
        {name: found[name] for name in found if name not in item.setting and found[name] != AS_USUAL.get(name, ...)}
    )


def told(values: Mapping[str, Any]) -> str:
    """Write parameters with the paper's letters."""
    return ", ".join(f"{LETTERS.get(name, name)} {_plain(value)}" for name, value in values.items())


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_plain(each)}" for name, each in value.items())
    return "none" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def protocol(items: Sequence[Planned]) -> str:
    """Write draws × runs × starts of one place in a table, for its first cut."""
    draws = len({canonical(item.cell["points"]) for item in items})
    cut = items[0].cell["cuts"][0]
    runs = sum(len(item.cell["cuts"][0]["seeds"]) for item in items) // draws
    starts = cut["restarts"] if items[0].cell["kind"] == "cut" else "its own"
    return f"{draws} × {runs} × {starts}" + " random" * (cut["init"] == "random")


def choice(item: Planned, choices: Mapping[str, Any]) -> str:
    """Write how the setting of a row was chosen; nothing where no grid chose any."""
    found = choices.get(item.key, {})
    chosen = next((found[name] for name in names_of(item.cell["points"]) if name in found), None)
    return "" if chosen is None else f"the best of {chosen['tried']} by labels on {chosen['on']}"


def made(experiment: Experiment, rows: Rows, settings: Settings) -> Iterator[str]:
    """Yield a line for each panel: how each of its rows was made. Panels that are made alike share one."""
    lines, choices = dict[str, list[str]](), planning.read_chosen(settings.chosen)
    for panel in [] if experiment.name == planning.GRID else experiment.panels:
        places: dict[tuple[str, float | None], list[Planned]] = {}
        for item in planning.plan(experiment, rows):
            if item.panel == panel["name"]:
                places.setdefault((rows[item.key]["label"], item.x), []).append(item)
        # of the rows of a surface or a grid the first
        ones = {key: [item for item in items if item.row == items[0].row] for key, items in places.items()}
        texts = _grouped({key: setting(items[0]) for key, items in ones.items()})
        protocols = _grouped({key: protocol(items) for key, items in ones.items()})
        chosen = _grouped({key: choice(items[0], choices) for key, items in ones.items()})
        common = max(protocols, key=lambda text: len(protocols[text]))
        times = [common, *(f"{', '.join(labels)} {text}" for text, labels in protocols.items() if text != common)]
        parts = [] if panel.get("grid") else ["; ".join(f"{', '.join(texts[text])}: {text}" for text in texts if text)]
        parts += [f"Draws × runs × starts of k-means: {'; '.join(times)}"]
        if not panel.get("grid") and panel.get("vary") in (None, "level"):
            parts += [f"Chosen as {text}: {', '.join(labels)}" for text, labels in chosen.items() if text]
        lines.setdefault(". ".join(filter(None, parts)), []).append(panel["name"])
    for line, panels in lines.items():
        yield f"How, {', '.join(panels)}. {line}."


def of_runs(experiment: Experiment, rows: Rows, settings: Settings) -> Iterator[str]:
    """Yield for each panel what the automatic row chose and in how many runs, and how long networks were trained."""
    kept, deep = read_runs(settings.runs(experiment)), registry.names("deep")
    chosen, seconds = dict[str, Counter[str]](), dict[str, dict[str, list[float]]]()
    for item in planning.plan(experiment, rows):
        found, method = kept.get(digest(item.cell), {}), item.cell["method"]
        if method == "automatic":
            chosen.setdefault(item.panel, Counter()).update(
                told(ast.literal_eval(text)) for text in found.get("chosen", [])
            )
        if found and method in deep:
            seconds.setdefault(item.panel, {}).setdefault(item.row, []).append(found["cpu_seconds"])
    for panel, counts in chosen.items():
        text = "; ".join(f"{setting} ({n})" for setting, n in counts.most_common())
        yield f"Chosen by KTRR, automatic, {panel}, in so many runs: {text}."
    for panel, of_row in seconds.items():
        text = ", ".join(f"{row} {mean(each):.0f}" for row, each in of_row.items())
        yield f"CPU seconds of one fit, {panel}, one thread without a GPU: {text}."


def _grouped(texts: Mapping[tuple[str, float | None], str]) -> dict[str, list[str]]:
    """Return the rows of each text, in order."""
    found: dict[str, list[str]] = {}
    for (label, _), text in texts.items():
        if label not in found.setdefault(text, []):
            found[text].append(label)
    return found


def by_labels(
    experiment: Experiment, rows: Rows, grid: Experiment, found: Sequence[Record]
) -> dict[tuple[str, str], tuple[str, str]]:
    """Return best and median accuracy of the grid of every row that has one, by panel and label."""
    accuracies = {(r.panel, r.row): r.mean for r in found if r.metric == "AC" and r.mean is not None}
    grids: dict[tuple[str, str], dict[str, float]] = {}
    for item in planning.plan(grid, rows):
        if (value := accuracies.get((item.panel, item.row))) is not None:
            grids.setdefault((item.key, names_of(item.cell["points"])[0]), {})[item.row] = value
    places = [(panel, name) for panel in experiment.panels for name in panel["rows"]]
    tried = {(panel["name"], rows[name]["label"]): grids.get((name, panel["data"]["name"])) for panel, name in places}
    return {key: (f"{max(of.values()):.1f}", f"{median(of.values()):.1f}") for key, of in tried.items() if of}


def searched(
    experiment: Experiment, rows: Rows, records: Sequence[Record]
) -> Iterator[tuple[Record, list[tuple[dict[str, Any], float]]]]:
    """Yield the best of every panel of a search that is whole, and all its settings with their accuracies."""
    settings = {(item.panel, item.row): item.setting for item in planning.plan(experiment, rows)}
    for panel in [panel["name"] for panel in experiment.panels if panel.get("grid")]:
        of_panel = [r for r in records if (r.panel, r.metric) == (panel, "AC")]
        tried = [r for r in of_panel if r.cut == of_panel[0].cut]
        if len({r.n for r in tried}) == 1 and of_panel[0].n:  # settings are compared on the same draws or not at all
            found = [(settings[panel, r.row], r.mean or 0.0) for r in tried]
            yield max(tried, key=lambda r: r.mean or 0.0), found
