"""Map of the samples, a figure of Bokeh whose data is replaced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool, TapTool
from bokeh.plotting import figure

from subspaces.app.explorer.cards import color_of
from subspaces.app.explorer.pictures import Pictures
from subspaces.app.explorer.session import Session, View
from subspaces.app.palette import PALETTE
from subspaces.inspection.plots.layout import plane
from subspaces.utils.types import Array, Labels

_MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "hex", "star", "plus")
_POINTS = {"fill_color": "color", "line_color": "color", "fill_alpha": 0.8, "line_width": 0.5}
_OTHERS = {"nonselection_fill_alpha": 0.55, "nonselection_line_alpha": 0.55}
_CHOSEN = {"selection_line_color": "#000000", "selection_line_width": 2.5, "selection_fill_alpha": 1}
_NAMES = {"text_align": "center", "text_baseline": "middle", "text_font_style": "bold", "text_font_size": "12px"}
_PLATES = {"background_fill_alpha": 0.75, "border_radius": 5, "padding": 2}
GROUND, INK, EDGE = ("#ffffff", "#1b1e23"), ("#222222", "#dfe3e8"), ("#cccccc", "#444a52")
"""Colours of the light and the dark look: behind, of text, of frames."""


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


class MapFigure:
    """Spectral embedding in two dimensions; hovering shows a sample, a click calls `clicked` with its number.

    Of more samples than `most`, some are drawn.
    """

    def __init__(self, session: Session, pictures: Pictures, most: int) -> None:
        n = session.data.n_samples
        self.rows: Labels = np.arange(n)
        if n > most:
            self.rows = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
        known: dict[str, Sequence[str]] = {"id": session.ids, "line": session.first_lines}
        if pictures.exist and pictures.address:
            known["thumb"] = [pictures.source(i) for i in range(n)]
        if session.data.y is not None and session.data.classes is not None:
            known["truth"] = [session.data.classes[code] for code in session.data.y]
        fixed: dict[str, Any] = {name: [values[i] for i in self.rows] for name, values in known.items() if values}
        n = len(self.rows)
        moving = {"x": np.zeros(n), "y": np.zeros(n), "color": [PALETTE[0]] * n}
        moving |= {"marker": ["circle"] * n, "cluster": [""] * n, "sure": [""] * n}
        self.points = ColumnDataSource({**fixed, **moving})
        self.names = ColumnDataSource({"x": [], "y": [], "name": []})
        self.figure = _figure("pan,wheel_zoom,box_zoom,reset,save", match_aspect=True)
        self.figure.axis.visible = False
        look = {"size": float(np.clip(150 / np.sqrt(n), 3, 9)), **_POINTS, **_OTHERS, **_CHOSEN}
        self.scatter = self.figure.scatter("x", "y", marker="marker", source=self.points, **look)
        self.text = self.figure.text("x", "y", text="name", source=self.names, **_NAMES, **_PLATES)
        self.figure.add_tools(
            HoverTool(renderers=[self.scatter], tooltips=_tooltip(fixed)), TapTool(renderers=[self.scatter])
        )
        self._placed: tuple[Any, Array, Array] | None = None  # the fit that samples are placed by

    def dress(self, dark: bool) -> None:
        """Take on the light or the dark look."""
        _dress(self.figure, dark)
        self.scatter.selection_glyph.line_color = INK[dark]
        self.text.glyph.update(text_color=INK[dark], background_fill_color=GROUND[dark])

    def on_click(self, clicked: Callable[[int], None]) -> None:
        """Call `clicked` with the number of the sample that was clicked."""

        def changed(attr: str, old: Any, new: list[int]) -> None:
            if new:
                clicked(int(self.rows[new[-1]]))

        self.points.selected.on_change("indices", changed)

    def update(self, view: View) -> None:
        """Move and colour the samples; they keep their places as long as the fit is the same."""
        if self._placed is None or self._placed[0] is not view.fit:
            self._placed = (view.fit, *plane(view.fit.embedding_, view.fit.labels_)[:2])
        places = self._placed[1][self.rows]
        labels = view.labels[self.rows].tolist()
        new: dict[str, Any] = {
            "x": places[:, 0],
            "y": places[:, 1],
            "color": [color_of(k) for k in labels],
            "marker": [_MARKERS[k // len(PALETTE) % len(_MARKERS)] for k in labels],
            "cluster": [view.name_of(k) for k in labels],
            "sure": [f"{share:.0f} %" for share in (100 * view.summary.confidence[self.rows]).tolist()],
        }
        self.points.patch({name: [(slice(0, len(labels)), values)] for name, values in new.items()})
        at = [exemplars[0] for exemplars in view.summary.exemplars]
        many = len(at) > 40
        self.text.glyph.update(text_font_size="9px" if many else "12px", background_fill_alpha=0.4 if many else 0.75)
        names = [view.name_of(k) for k in range(len(at))]
        self.names.data = {"x": self._placed[1][at, 0], "y": self._placed[1][at, 1], "name": names}


def _tooltip(columns: dict[str, Any]) -> str:
    """Return what hovering shows; Bokeh escapes the values."""
    parts = {
        "thumb": '<img src="@thumb" width="64" style="image-rendering:pixelated;display:block">',
        "id": "<b>@id</b>",
        "line": "<div style='max-width:300px;white-space:normal'>@line</div>",
        "cluster": "<div>group @cluster</div><div>@sure sure</div>",
        "truth": "<div>class @truth</div>",
    }
    shown = "".join(part for name, part in parts.items() if name == "cluster" or name in columns)
    return f"<div style='font-size:12px'>{shown}</div>"
