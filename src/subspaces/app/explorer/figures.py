"""Bokeh figures whose data is replaced: the graph and the map."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, FixedTicker, HoverTool, LinearColorMapper, Range1d, TapTool
from bokeh.plotting import figure

from subspaces.app.explorer.pictures import colors_of
from subspaces.app.explorer.session import View
from subspaces.inspection.plots.style import OKABE_ITO, map_colors, thinned
from subspaces.utils.types import Array, Labels

_MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "hex", "star", "plus")


_POINTS = {"fill_color": "color", "line_color": "color", "fill_alpha": 0.8, "line_width": 0.5}
_OTHERS = {"nonselection_fill_alpha": 0.55, "nonselection_line_alpha": 0.55}
_CHOSEN = {"selection_line_color": "#000000", "selection_line_width": 2.5, "selection_fill_alpha": 1}
_NAMES = {"text_align": "center", "text_baseline": "middle", "text_font_style": "bold", "text_font_size": "12px"}
_PLATES = {"background_fill_alpha": 0.75, "border_radius": 5, "padding": 2}
GROUND, INK, EDGE = ("#ffffff", "#1b1e23"), ("#222222", "#dfe3e8"), ("#cccccc", "#444a52")
"""Colours of the light and the dark look: behind, of text, of frames."""


def _palette(dark: bool) -> list[str]:
    """Return the ground for nothing, then a tint of blue through blue to the ink, monotone in lightness."""
    stops = np.array([[191, 220, 236], [0, 114, 178], [0, 0, 0]])
    stops = np.array([[30, 62, 84], [86, 180, 233], [255, 255, 255]]) if dark else stops
    at = np.linspace(0, 2, 255)
    colors = np.stack([np.interp(at, [0, 1, 2], channel) for channel in stops.T], axis=1).round().astype(int)
    return [GROUND[dark]] + [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in colors.tolist()]


def _figure(tools: str, **options: Any) -> Any:
    drawn = figure(height=430, sizing_mode="stretch_width", tools=tools, toolbar_location="above", **options)
    drawn.toolbar.logo = None
    drawn.grid.visible = False
    return drawn


def _dress(drawn: Any, dark: bool) -> None:
    """Colour a figure around its data."""
    drawn.update(background_fill_color=GROUND[dark], border_fill_color=GROUND[dark], outline_line_color=EDGE[dark])
    drawn.stylesheets = [f":host {{ --background-color: {GROUND[dark]}; }} canvas {{ background: {GROUND[dark]}; }}"]
    for axis in drawn.axis:
        axis.update(axis_label_text_color=INK[dark], major_label_text_color=INK[dark], axis_line_color=EDGE[dark])


class GraphFigure:
    """Affinity matrix ordered by cluster, in cells."""

    def __init__(self) -> None:
        self.image = ColumnDataSource({"image": [np.zeros((2, 2), dtype=np.uint8)], "n": [1]})
        self.frames = ColumnDataSource({"start": [], "end": []})
        self.figure = _figure("box_zoom,reset,save", match_aspect=False, x_range=Range1d(0, 1), y_range=Range1d(1, 0))
        self.shades = LinearColorMapper(palette=_palette(False), low=0, high=255)
        self.figure.image("image", x=0, y=0, dw="n", dh="n", source=self.image, color_mapper=self.shades)
        thin = {"fill_alpha": 0, "line_color": INK[0], "line_alpha": 0.35, "line_width": 0.7}
        self.squares = self.figure.quad(
            left="start", right="end", top="start", bottom="end", source=self.frames, **thin
        )
        for axis in (self.figure.xaxis[0], self.figure.yaxis[0]):
            axis.update(major_tick_line_color=None, minor_tick_line_color=None, axis_label="cluster")

    def dress(self, dark: bool) -> None:
        """Take on the light or the dark look."""
        _dress(self.figure, dark)
        self.shades.palette = _palette(dark)
        self.squares.glyph.line_color = INK[dark]

    def update(self, view: View) -> None:
        """Replace the data: a byte for each cell, on a root scale, never 0 where there is an entry."""
        n = len(view.labels)
        root = np.sqrt(view.cells / (view.cells.max() or 1.0))
        shades = np.where(view.cells > 0, 1 + np.round(254 * root), 0).astype(np.uint8)
        ends = np.cumsum(view.sizes)
        starts = ends - view.sizes
        self.image.data = {"image": [shades], "n": [n]}
        self.frames.data = {"start": starts.tolist(), "end": ends.tolist()}
        self.figure.x_range.update(start=0, end=n)
        self.figure.y_range.update(start=n, end=0)
        short = [name if len(name) <= 8 else f"{name[:7]}…" for name in map(view.name_of, range(len(ends)))]
        middles, names = thinned((starts + ends) / 2, short, 0.045 * n)
        for axis in (self.figure.xaxis[0], self.figure.yaxis[0]):
            axis.update(ticker=FixedTicker(ticks=middles), major_label_overrides=dict(zip(middles, names, strict=True)))


class MapFigure:
    """Spectral embedding in two dimensions; hovering shows a sample, a click calls `clicked` with its number."""

    def __init__(
        self, ids: Sequence[str], classes: Sequence[str] | None, thumbs: Sequence[str], lines: Sequence[str] = ()
    ) -> None:
        n = len(ids)
        known = {"id": ids, "truth": classes, "thumb": thumbs, "line": lines}
        fixed: dict[str, Any] = {name: list(values) for name, values in known.items() if values}
        moving = {"x": np.zeros(n), "y": np.zeros(n), "color": [OKABE_ITO[0]] * n}
        moving |= {"marker": ["circle"] * n, "label": np.zeros(n, dtype=int), "cluster": [""] * n, "sure": [""] * n}
        self.points = ColumnDataSource({**fixed, **moving})
        self.names = ColumnDataSource({"x": [], "y": [], "name": []})
        self.links = ColumnDataSource({"x0": [], "y0": [], "x1": [], "y1": [], "width": []})
        self.figure = _figure("pan,wheel_zoom,box_zoom,reset,save", match_aspect=True)
        self.figure.axis.visible = False
        self.figure.segment(
            "x0", "y0", "x1", "y1", line_width="width", source=self.links, line_color="#D55E00", line_alpha=0.8
        )
        look = {"size": float(np.clip(150 / np.sqrt(n), 3, 9)), **_POINTS, **_OTHERS, **_CHOSEN}
        self.scatter = self.figure.scatter("x", "y", marker="marker", source=self.points, **look)
        self.text = self.figure.text("x", "y", text="name", source=self.names, **_NAMES, **_PLATES)
        self.figure.add_tools(
            HoverTool(renderers=[self.scatter], tooltips=_tooltip(fixed)),
            TapTool(renderers=[self.scatter]),
        )

    def dress(self, dark: bool) -> None:
        """Take on the light or the dark look."""
        _dress(self.figure, dark)
        self.scatter.selection_glyph.line_color = INK[dark]
        self.text.glyph.update(text_color=INK[dark], background_fill_color=GROUND[dark])

    def on_click(self, clicked: Callable[[int], None]) -> None:
        """Call `clicked` with the number of the sample that was clicked."""

        def changed(attr: str, old: Any, new: list[int]) -> None:
            if new:
                clicked(int(new[-1]))

        self.points.selected.on_change("indices", changed)

    def update(self, view: View) -> None:
        """Move and colour the samples; names and pictures of the samples stay where they are, in the browser."""
        colors, palette = colors_of(view), map_colors(view.centres)
        new: dict[str, Any] = {
            "x": view.points[:, 0],
            "y": view.points[:, 1],
            "color": [colors[k] for k in view.labels.tolist()],
            "marker": [_MARKERS[palette[k] % len(_MARKERS)] for k in view.labels.tolist()],
            "label": view.labels,
            "cluster": [view.name_of(k) for k in view.labels.tolist()],
            "sure": [f"{share:.0f} %" for share in (100 * view.confidence).tolist()],
        }
        everything = slice(0, len(view.labels))
        self.points.patch({name: [(everything, values)] for name, values in new.items()})
        names = [view.name_of(k) for k in range(len(view.centres))]
        many = len(names) > 40
        self.text.glyph.update(text_font_size="9px" if many else "12px", background_fill_alpha=0.4 if many else 0.75)
        self.names.data = {"x": view.centres[:, 0], "y": view.centres[:, 1], "name": names}
        self.links.data = {"x0": [], "y0": [], "x1": [], "y1": [], "width": []}

    def link(self, view: View, point: int, others: Labels, weights: Array) -> None:
        """Draw lines from a sample to those that represent it, the wider the stronger."""
        x, y = view.points[point]
        strength = np.abs(weights) / (float(np.abs(weights).max(initial=0)) or 1.0)
        here = {"x0": np.full(len(others), x), "y0": np.full(len(others), y)}
        there = {"x1": view.points[others, 0], "y1": view.points[others, 1]}
        self.links.data = {**here, **there, "width": 0.5 + 3 * strength}


def _tooltip(columns: Container[str]) -> str:
    """Return what hovering shows; Bokeh escapes the values."""
    parts = {
        "thumb": '<img src="@thumb" width="64" style="image-rendering:pixelated;display:block">',
        "id": "<b>@id</b>",
        "line": "<div style='max-width:300px;white-space:normal'>@line</div>",
        "cluster": "<div>cluster @cluster</div><div>@sure sure</div>",
        "truth": "<div>class @truth</div>",
    }
    shown = "".join(part for name, part in parts.items() if name == "cluster" or name in columns)
    return f"<div style='font-size:12px'>{shown}</div>"
