"""Records → figures that look like the paper's, ours over the published values; one style for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.optimize import linear_sum_assignment

from reproduction.runner import Outcome
from reproduction.schedule import Experiment, Planned
from reproduction.statistics import Record
from reproduction.tables import distinct
from subspaces.metrics import contingency
from subspaces.plots.style import ACCENT, OKABE_ITO

STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "figure.titlesize": 11,
    "legend.fontsize": 8.5,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "path",
}
"""Of every figure; for Matplotlib's rc_context around drawing and saving."""

COLOURS = {"AC": ACCENT, "NMI": OKABE_ITO[0], "ARI": OKABE_ITO[2], "F": OKABE_ITO[3]}
SHAPES = {"AC": "o", "NMI": "s", "ARI": "^", "F": "D"}
MARKERS = ("s", "D", "^", "v", "<", ">", "p", "h", "*", "X", "P", "d", "H", "8")
RIVALS = tuple(colour for colour in (*OKABE_ITO, "#000000") if colour != ACCENT)
"""Colours of the rivals; no vermillion, that is KTRR's. No two rivals share the marker."""
BEST, SPREAD = "best optimum", "50 random starts"
AXES = {"reg": "λ", "n_nonzero": "η", "first": "number of subjects", "level": "level"}
NOISE = {"gaussian": "SNR (dB)", "salt_and_pepper": "corrupted pixels (%)"}


def draw(experiment: Experiment, records: Sequence[Record], planned: Sequence[Planned], outcome: Outcome) -> Figure:
    """The figure of an experiment; to be called, and saved, within ``rc_context(STYLE)``."""
    return STYLES[experiment.style](experiment, records, planned, outcome)


def _figure(experiment: Experiment, width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(f"{experiment.paper}: {experiment.title}")
    return figure


def _in_percent(axes: Any, title: str, **names: Any) -> None:
    axes.set(title=title, ylim=(0, 102), **names)


def _scores() -> list[Line2D]:
    """Entries of a legend for the colours and markers of the scores."""
    return [Line2D([], [], color=COLOURS[metric], marker=shape, label=metric) for metric, shape in SHAPES.items()]


def _surface(experiment: Experiment, records: Sequence[Record], planned: Sequence[Planned], outcome: Outcome) -> Figure:
    """Accuracy over λ and η as bars, ours and the paper's, and the sections with all four scores."""
    figure = _figure(experiment, 11, 8.6)
    bars = [r for r in records if r.panel == "(a)" and r.metric == "AC" and r.cut == records[0].cut]
    for place, value, name in ((1, "mean", "this package"), (2, "paper", "the paper")):
        axes = figure.add_subplot(2, 2, place, projection="3d")
        _bars(axes, bars, value)
        axes.set_title(f"(a) AC, {name}")
    for place, panel, axis in ((3, "(b)", "λ"), (4, "(c)", "η")):
        axes = figure.add_subplot(2, 2, place)
        _sections(axes, [record for record in records if record.panel == panel])
        other = next(item.cell["parameters"] for item in planned if item.panel == panel)
        fixed = f"η = {other['n_nonzero']}" if axis == "λ" else f"λ = {other['reg']:g}"
        _in_percent(axes, f"{panel} {fixed}", xlabel=axis, ylabel="%")
    black: dict[str, Any] = {"color": "black", "linestyle": "none"}
    handles = [
        *_scores(),
        Line2D([], [], color="black", label=f"this package, {records[0].cut}"),
        Line2D([], [], marker="_", markersize=13, label="best optimum found", **black),
        Line2D([], [], marker="x", markersize=9, label="the paper", **black),
        Line2D([], [], color="grey", linewidth=8, alpha=0.3, label=f"range over runs of {SPREAD}"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


def _bars(axes: Any, records: Sequence[Record], value: str) -> None:
    penalties = sorted({record.x for record in records if record.x is not None})
    sizes = distinct(records, "row")
    for record in records:
        height = getattr(record, value)
        if record.x is None or height is None:
            continue
        i, j = penalties.index(record.x), sizes.index(record.row)
        axes.bar3d(j - 0.3, i - 0.3, 0, 0.6, 0.6, height, color=OKABE_ITO[j % 5], shade=True)
    axes.set_xticks(range(len(sizes)), [name.split()[-1] for name in sizes])
    axes.set_yticks(range(len(penalties)), [f"{x:g}" for x in penalties])
    axes.set(xlabel="η", ylabel="λ", zlabel="AC (%)", zlim=(0, 100))
    axes.view_init(elev=28, azim=-50)


def _sections(axes: Any, records: Sequence[Record]) -> None:
    """Every score along one parameter: lines ours, crosses the paper's, bands the spread over restarts."""
    places: list[Any] = sorted({record.x for record in records if record.x is not None})

    def points(found: list[Record], value: str) -> tuple[list[int], list[Any]]:
        shown = [r for r in found if getattr(r, value) is not None]
        return [places.index(r.x) for r in shown], [getattr(r, value) for r in shown]

    for metric, colour in COLOURS.items():
        of_metric = [r for r in records if r.metric == metric and r.x is not None and r.mean is not None]
        first, best, spread = ([r for r in of_metric if r.cut == cut] for cut in (records[0].cut, BEST, SPREAD))
        axes.plot(*points(first, "mean"), f"{SHAPES[metric]}-", color=colour, markersize=4)
        axes.plot(*points(first, "paper"), "x", color=colour, markersize=9)
        axes.plot(*points(best, "mean"), "_", color=colour, markersize=13, mew=1.5)
        if spread:
            x, low = points(spread, "low")
            axes.fill_between(x, low, points(spread, "high")[1], color=colour, alpha=0.15, lw=0)
    axes.set_xticks(range(len(places)), [f"{x:g}".replace("e-0", "e-") for x in places], fontsize=8)


def _curves(experiment: Experiment, records: Sequence[Record], planned: Sequence[Planned], outcome: Outcome) -> Figure:
    """One panel per row: all scores along the axis."""
    rows = distinct(records, "row")
    figure = _figure(experiment, 5.2 * len(rows), 4.4)
    for place, row in enumerate(rows, start=1):
        axes = figure.add_subplot(1, len(rows), place)
        _sections(axes, [record for record in records if record.row == row])
        _in_percent(axes, row, xlabel=AXES[experiment.panels[0]["vary"]], ylabel="%")
    paper = Line2D([], [], color="black", linestyle="none", marker="x", markersize=9, label="the paper")
    figure.legend(handles=[*_scores(), paper], loc="outside lower center", ncols=5)
    return figure


def _noise(experiment: Experiment, records: Sequence[Record], planned: Sequence[Planned], outcome: Outcome) -> Figure:
    """A column for each data set: the paper's lines, ours with one start of k-means, ours with the best of many."""
    names = distinct(records, "panel")
    rows = distinct(records, "row")
    cuts = distinct(records, "cut")
    figure = _figure(experiment, 5.6 * len(names), 4.0 * (len(cuts) + 1))
    grid = figure.subplots(len(cuts) + 1, len(names), squeeze=False, sharey=True)
    for column, panel in enumerate(names):
        for line, cut in enumerate(["the paper", *cuts]):
            axes = grid[line, column]
            for j, row in enumerate(rows):
                of_row = [r for r in records if r.panel == panel and r.row == row and r.metric == "AC"]
                of_row = [r for r in of_row if r.cut == (cuts[0] if line == 0 else cut)]
                values = {r.x: r.paper if line == 0 else r.mean for r in of_row}
                shown = {x: value for x, value in values.items() if value is not None}
                axes.plot(list(shown), list(shown.values()), **_line(row, j))
            title = "the paper" if line == 0 else f"this package, {cut}"
            along = NOISE[experiment.panels[0]["data"]["corruption"]]
            _in_percent(axes, f"{panel}: {title}", xlabel=along, ylabel="AC (%)")
            axes.set_xticks(experiment.panels[column]["values"])
    handles = [Line2D([], [], label=row, **_line(row, j)) for j, row in enumerate(rows)]
    figure.legend(handles=handles, loc="outside lower center", ncols=6)
    return figure


def _line(row: str, j: int) -> dict[str, Any]:
    """KTRR in vermillion and thick; its relatives thick and dashed; every rival with a marker of its own."""
    place = max(j - 1, 0)
    style = {"marker": MARKERS[place % len(MARKERS)], "markersize": 5, "linewidth": 1.1}
    style |= {"color": RIVALS[place % len(RIVALS)], "linestyle": "-" if place < len(RIVALS) else "-."}
    if row in ("constant label", "k-means"):
        style |= {"color": "0.6", "linestyle": ":", "marker": "" if row == "constant label" else "."}
    if row.startswith("KTRR"):
        style |= {"color": ACCENT, "linewidth": 2.4, "marker": "o", "linestyle": "-"}
    if row.startswith("KTRR,"):
        robust = row == "KTRR, robust kernel"
        style |= {"linestyle": "--", "color": "black" if robust else OKABE_ITO[1], "marker": "^" if robust else "v"}
    return style


def _bar_chart(
    experiment: Experiment, records: Sequence[Record], planned: Sequence[Planned], outcome: Outcome
) -> Figure:
    """Groups of bars: ours filled with the spread over seeds, the paper's hatched."""
    rows = distinct(records, "row")
    figure = Figure(figsize=(1.6 + 1.25 * len(rows), 4.6), layout="constrained")
    axes = figure.add_subplot()
    for j, metric in enumerate(experiment.metrics):
        for k, value in enumerate(("mean", "paper")):
            found = [(rows.index(r.row), r) for r in records if r.metric == metric and getattr(r, value) is not None]
            axes.bar(
                [i + 0.2 * (2 * j + k - 1.5) for i, _ in found],
                [getattr(r, value) for _, r in found],
                0.2,
                yerr=[r.sd for _, r in found] if value == "mean" else None,
                color=COLOURS[metric],
                alpha=1 if value == "mean" else 0.35,
                hatch=None if value == "mean" else "//",
                edgecolor="0.3",
                linewidth=0.5,
                label=f"{metric}, {'this package' if value == 'mean' else 'the paper'}",
            )
    axes.set_xticks(range(len(rows)), rows, rotation=20, ha="right")
    _in_percent(axes, f"{experiment.paper}: {experiment.title}", ylabel="%")
    axes.set_ylim(0, 106)  # a deviation may reach beyond 100
    axes.grid(visible=False, axis="x")
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def _toy(experiment: Experiment, records: Sequence[Record], planned: Sequence[Planned], outcome: Outcome) -> Figure:
    """Three curves: their truth, what makes them lines, and the labels found."""
    results = [(item.row, found) for item in planned if (found := outcome.result(item.cell)) is not None]
    if not results:
        return Figure(figsize=(8, 4), layout="constrained")
    figure = _figure(experiment, 4 * (len(results) + 2), 4)
    X, y = np.array(results[0][1]["X"]), np.array(results[0][1]["y"])
    shown: list[tuple[str, Any, Any]] = [
        ("three curves", X, y),
        ("mapped: x² and y make them lines", np.c_[X[:, 0] ** 2, X[:, 1]], y),
    ]
    for row, result in results:
        accuracy = next(iter(result["scores"].values()))["AC"][0]
        shown.append((f"{row}: AC {accuracy:.1f}", X, _renamed(y, np.array(result["labels"]))))
    for place, (title, points, labels) in enumerate(shown, start=1):
        axes = figure.add_subplot(1, len(shown), place)
        for label in np.unique(labels):
            of_label = points[labels == label]
            axes.plot(of_label[:, 0], of_label[:, 1], MARKERS[label % 3], color=OKABE_ITO[label], markersize=3.5)
        axes.set(title=title, xlabel="x²" if place == 2 else "x", ylabel="y")
    return figure


def _renamed(y: Any, labels: Any) -> Any:
    """Labels named after the classes they match best, so that the colours agree."""
    rows, columns = linear_sum_assignment(-contingency(y, labels).counts)
    return np.array([dict(zip(columns, rows, strict=True))[label] for label in labels])


def _matrices(
    experiment: Experiment, records: Sequence[Record], planned: Sequence[Planned], outcome: Outcome
) -> Figure:
    """Coefficients before and similarities after the truncation, bright is large; dotted lines part the persons.

    Some of the images stand above their columns and to the right of their rows, as in the paper.
    """
    result = outcome.result(planned[0].cell)
    if result is None:
        return Figure(figsize=(10, 5), layout="constrained")
    figure = _figure(experiment, 10, 5)
    shown = {"(a) |C| before truncation": np.array(result["C"]), "(b) W after it": np.array(result["W"])}
    for place, (title, matrix) in enumerate(shown.items(), start=1):
        axes = figure.add_subplot(1, 2, place)
        n, middle = len(matrix), len(matrix) / 2 - 0.5
        # the paper shows (b) nearly as dots: a bound well below the largest entry does that
        axes.imshow(matrix, cmap="gray", vmin=0, vmax=np.quantile(matrix[matrix > 0], 0.99 if place == 1 else 0.5))
        axes.axhline(middle, color="white", linestyle=":", linewidth=1.2)
        axes.axvline(middle, color="white", linestyle=":", linewidth=1.2)
        faces = [face for face in result.get("image", []) if face]
        side = n / max(len(faces), 1)
        for j, face in enumerate(faces):
            start, end = j * side - 0.5, (j + 1) * side - 0.5
            for extent in ((start, end, -1.5, -1.5 - side), (n + 0.5, n + 0.5 + side, end, start)):
                axes.imshow(face, cmap="gray", vmin=0, vmax=255, extent=extent)
        edge = side + 1.5 if faces else 0
        axes.set(title=title, xlim=(-0.5, n - 0.5 + edge), ylim=(n - 0.5, -0.5 - edge))
        axes.set_axis_off()
    return figure


def _images(experiment: Experiment, records: Sequence[Record], planned: Sequence[Planned], outcome: Outcome) -> Figure:
    """An image at every level of the noise, one row for each data set, with what was measured below."""
    panels = list(dict.fromkeys(item.panel for item in planned))
    columns = max(len([item for item in planned if item.panel == panel]) for panel in panels)
    figure = _figure(experiment, 1.7 * columns, 1.95 * len(panels) + 0.3)
    grid = figure.subplots(len(panels), columns, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for line, panel in enumerate(panels):
        for axes, item in zip(grid[line], [item for item in planned if item.panel == panel], strict=False):
            found = outcome.result(item.cell)
            if found is None or not found["image"][0]:
                continue
            axes.imshow(found["image"][0], cmap="gray", vmin=0, vmax=255)
            snr, changed = (next(iter(found["scores"].values()))[metric][0] for metric in experiment.metrics)
            unit = "dB" if item.cell["points"]["corruption"] == "gaussian" else "%"
            axes.set_title(f"{panel}, {item.x:g} {unit}\n{snr:.1f} dB, {changed:.0f} % changed", fontsize=7.5)
    return figure


STYLES: dict[str, Callable[..., Figure]] = {
    "surface": _surface,
    "curves": _curves,
    "noise": _noise,
    "bars": _bar_chart,
    "toy": _toy,
    "matrices": _matrices,
    "samples": _images,
}
