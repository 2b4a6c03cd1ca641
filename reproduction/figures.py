"""Records → figures that look like the paper's, ours over the published values; one style for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reproduction.records import Record, Run, distinct
from subspaces.inspection.plots.style import ACCENT, OKABE_ITO
from subspaces.metrics import best_matching

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
"""Of every figure."""

COLOURS = {"AC": ACCENT, "NMI": OKABE_ITO[0], "ARI": OKABE_ITO[2], "F": OKABE_ITO[3]}
SHAPES = {"AC": "o", "NMI": "s", "ARI": "^", "F": "D"}
MARKERS = ("s", "D", "^", "v", "<", ">", "p", "h", "*", "X", "P", "d", "H", "8")
RIVALS = tuple(colour for colour in (*OKABE_ITO, "#000000") if colour != ACCENT)
"""Colours of the rivals; no vermillion, that is KTRR's. No two rivals share the marker."""
BEST, SPREAD = "best optimum", "50 random starts"
AXES = {"reg": "λ", "n_nonzero": "η", "first": "number of subjects", "level": "level"}
NOISE = {"gaussian": "SNR (dB)", "salt_and_pepper": "corrupted pixels (%)"}


def save(run: Run, file: BinaryIO) -> None:
    """Draw the figure of an experiment into a file; without a date and random names it is the same file again."""
    with rc_context({**STYLE, "svg.hashsalt": run.experiment.name}):
        figure, kind = draw(run), run.experiment.picture
        figure.savefig(file, format=kind, dpi=130, metadata={"Date": None} if kind == "svg" else None)


def draw(run: Run) -> Figure:
    """Draw the figure of an experiment, in Matplotlib's present style."""
    return STYLES[run.experiment.style](run)


def _figure(run: Run, width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(run.experiment.heading)
    return figure


def _in_percent(axes: Any, title: str, **names: Any) -> None:
    axes.set(title=title, ylim=(0, 102), **names)


PAPER = Line2D([], [], marker="x", markersize=9, label="the paper", color="black", linestyle="none")


def _scores() -> list[Line2D]:
    """Return the entries of a legend for the colours and markers of the scores."""
    return [Line2D([], [], color=COLOURS[metric], marker=shape, label=metric) for metric, shape in SHAPES.items()]


def _surface(run: Run) -> Figure:
    """Draw accuracy over λ and η as bars, ours and the paper's, and the sections with all four scores."""
    figure, cut = _figure(run, 11, 8.6), run.records[0].cut
    bars = [r for r in run.records if r.panel == "(a)" and r.metric == "AC" and r.cut == cut]
    for place, value, name in ((1, "mean", "this package"), (2, "paper", "the paper")):
        axes = figure.add_subplot(2, 2, place, projection="3d")
        _bars(axes, bars, value)
        axes.set_title(f"(a) AC, {name}")
    for place, panel, axis in ((3, "(b)", "λ"), (4, "(c)", "η")):
        axes = figure.add_subplot(2, 2, place)
        _sections(axes, [record for record in run.records if record.panel == panel])
        other = next(item.cell["parameters"] for item in run.planned if item.panel == panel)
        fixed = f"η = {other['n_nonzero']}" if axis == "λ" else f"λ = {other['reg']:g}"
        _in_percent(axes, f"{panel} {fixed}", xlabel=axis, ylabel="%")
    handles = [
        *_scores(),
        Line2D([], [], color="black", label=f"this package, {cut}"),
        Line2D([], [], marker="_", markersize=13, label="best optimum found", color="black", linestyle="none"),
        PAPER,
        Line2D([], [], color="grey", linewidth=8, alpha=0.3, label=f"range over runs of {SPREAD}"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


def _bars(axes: Any, records: Sequence[Record], value: str) -> None:
    penalties, sizes = sorted({r.x for r in records if r.x is not None}), distinct(records, "row")
    for record in records:
        if record.x is not None and (height := getattr(record, value)) is not None:
            i, j = penalties.index(record.x), sizes.index(record.row)
            axes.bar3d(j - 0.3, i - 0.3, 0, 0.6, 0.6, height, color=OKABE_ITO[j % 5], shade=True)
    axes.set_xticks(range(len(sizes)), [name.split()[-1] for name in sizes])
    axes.set_yticks(range(len(penalties)), [f"{x:g}" for x in penalties])
    axes.set(xlabel="η", ylabel="λ", zlabel="AC (%)", zlim=(0, 100))
    axes.view_init(elev=28, azim=-50)


def _sections(axes: Any, records: Sequence[Record]) -> None:
    """Draw every score along one parameter: lines ours, crosses the paper's, bands the spread over restarts."""
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
    axes.set_xticks(
        range(len(places)), [f"{x:.0e}".replace("e-0", "e-") if 0 < x < 0.01 else f"{x:g}" for x in places], fontsize=8
    )


def _curves(run: Run) -> Figure:
    """Draw one panel per row: all scores along the axis."""
    rows = distinct(run.records, "row")
    figure = _figure(run, 5.2 * len(rows), 4.4)
    for place, row in enumerate(rows, start=1):
        axes = figure.add_subplot(1, len(rows), place)
        _sections(axes, [record for record in run.records if record.row == row])
        _in_percent(axes, row, xlabel=AXES[run.experiment.panels[0]["vary"]], ylabel="%")
    figure.legend(handles=[*_scores(), PAPER], loc="outside lower center", ncols=5)
    return figure


def _noise(run: Run) -> Figure:
    """Draw a column for each data set: the paper's lines, ours with one start of k-means and with many."""
    rows, cuts, panels = distinct(run.records, "row"), distinct(run.records, "cut"), run.experiment.panels
    figure = _figure(run, 5.6 * len(panels), 4.0 * (len(cuts) + 1))
    grid = figure.subplots(len(cuts) + 1, len(panels), squeeze=False, sharey=True)
    for column, panel in enumerate(panels):
        records = [r for r in run.records if r.panel == panel["name"] and r.metric == "AC"]
        for axes, cut in zip(grid[:, column], [None, *cuts], strict=True):  # None: the paper's
            for j, row in enumerate(rows):
                of_row = [r for r in records if r.row == row and r.cut == (cut or cuts[0])]
                values = {r.x: r.mean if cut else r.paper for r in of_row}
                shown = {x: value for x, value in values.items() if value is not None}
                axes.plot(list(shown), list(shown.values()), **_line(row, j))
            title = f"{panel['name']}: {f'this package, {cut}' if cut else 'the paper'}"
            _in_percent(axes, title, xlabel=NOISE[panel["data"]["corruption"]], ylabel="AC (%)")
            axes.set_xticks(panel["values"])
    handles = [Line2D([], [], label=row, **_line(row, j)) for j, row in enumerate(rows)]
    figure.legend(handles=handles, loc="outside lower center", ncols=6)
    return figure


def _line(row: str, j: int) -> dict[str, Any]:
    """Return the style of a row: KTRR in vermillion and thick; every rival with a marker of its own."""
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


def _bar_chart(run: Run) -> Figure:
    """Draw groups of bars: ours filled with the spread over seeds, the paper's hatched."""
    rows = distinct(run.records, "row")
    figure = Figure(figsize=(1.6 + 1.25 * len(rows), 4.6), layout="constrained")
    axes = figure.add_subplot()
    for j, metric in enumerate(run.experiment.metrics):
        for k, (value, name) in enumerate((("mean", "this package"), ("paper", "the paper"))):
            found = [r for r in run.records if r.metric == metric and getattr(r, value) is not None]
            look = {"alpha": 0.35, "hatch": "//"} if k else {"yerr": [r.sd for r in found]}
            axes.bar(
                [rows.index(r.row) + 0.2 * (2 * j + k - 1.5) for r in found],
                [getattr(r, value) for r in found],
                0.2,
                **look,
                color=COLOURS[metric],
                edgecolor="0.3",
                linewidth=0.5,
                label=f"{metric}, {name}",
            )
    axes.set_xticks(range(len(rows)), rows, rotation=20, ha="right")
    _in_percent(axes, run.experiment.heading, ylabel="%")
    axes.set_ylim(0, 106)  # a deviation may reach beyond 100
    axes.grid(visible=False, axis="x")
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def _toy(run: Run) -> Figure:
    """Draw three curves: their truth, what makes them lines, and the labels found."""
    results = [(item.row, found) for item in run.planned if (found := run.outcome.result(item.cell)) is not None]
    if not results:
        return Figure(figsize=(8, 4), layout="constrained")
    figure = _figure(run, 4 * (len(results) + 2), 4)
    X, y = np.array(results[0][1]["X"]), np.array(results[0][1]["y"])
    shown = [("three curves", X, y), ("mapped: x² and y make them lines", np.c_[X[:, 0] ** 2, X[:, 1]], y)]
    for row, result in results:
        accuracy = next(iter(result["scores"].values()))["AC"][0]
        shown.append((f"{row}: AC {accuracy:.1f}", X, best_matching(y, np.array(result["labels"]))))
    for place, (title, points, labels) in enumerate(shown, start=1):
        axes = figure.add_subplot(1, len(shown), place)
        for label in np.unique(labels):
            of_label = points[labels == label]
            axes.plot(of_label[:, 0], of_label[:, 1], MARKERS[label % 3], color=OKABE_ITO[label], markersize=3.5)
        axes.set(title=title, xlabel="x²" if place == 2 else "x", ylabel="y")
    return figure


def _matrices(run: Run) -> Figure:
    """Draw coefficients before and similarities after the truncation, bright is large; dotted lines part the persons.

    Some of the images stand above their columns and to the right of their rows, as in the paper.
    """
    result = run.outcome.result(run.planned[0].cell)
    if result is None:
        return Figure(figsize=(10, 5), layout="constrained")
    figure = _figure(run, 10, 5)
    # the paper shows (b) nearly as dots: a bound well below the largest entry does that
    shown = (("(a) |C| before truncation", result["C"], 0.99), ("(b) W after it", result["W"], 0.5))
    for place, (title, values, bound) in enumerate(shown, start=1):
        axes, matrix = figure.add_subplot(1, 2, place), np.array(values)
        n = len(matrix)
        axes.imshow(matrix, cmap="gray", vmin=0, vmax=np.quantile(matrix[matrix > 0], bound))
        axes.axhline(n / 2 - 0.5, color="white", linestyle=":", linewidth=1.2)
        axes.axvline(n / 2 - 0.5, color="white", linestyle=":", linewidth=1.2)
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


def _images(run: Run) -> Figure:
    """Draw an image at every level of the noise, one row for each data set, with what was measured below."""
    rows = [[item for item in run.planned if item.panel == panel["name"]] for panel in run.experiment.panels]
    figure = _figure(run, 1.7 * max(map(len, rows)), 1.95 * len(rows) + 0.3)
    grid = figure.subplots(len(rows), max(map(len, rows)), squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for axes, item in (pair for line, items in zip(grid, rows, strict=True) for pair in zip(line, items, strict=False)):
        found = run.outcome.result(item.cell)
        if found is not None and found["image"][0]:
            axes.imshow(found["image"][0], cmap="gray", vmin=0, vmax=255)
            snr, changed = (next(iter(found["scores"].values()))[metric][0] for metric in run.experiment.metrics)
            unit = "dB" if item.cell["points"]["corruption"] == "gaussian" else "%"
            axes.set_title(f"{item.panel}, {item.x:g} {unit}\n{snr:.1f} dB, {changed:.0f} % changed", fontsize=7.5)
    return figure


STYLES = {"surface": _surface, "curves": _curves, "noise": _noise, "bars": _bar_chart}
STYLES |= {"toy": _toy, "matrices": _matrices, "samples": _images}
