"""The page of the explorer, widgets beside the graph, the map and the gallery; and a server on this machine only."""

from __future__ import annotations

import io
import secrets
import socket
import threading
import time
import webbrowser
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from subspaces.explorer.session import EXPLORED_KERNELS, Session, Settings, View
from subspaces.partition import PARTITIONS
from subspaces.scaling import SCALINGS

try:
    import panel as pn
except ImportError:
    raise ImportError("the explorer needs Panel: pip install 'subspaces[explore]'.") from None

from subspaces.explorer import pictures as pieces
from subspaces.explorer.figures import GraphFigure, MapFigure

REGS = tuple(float(f"{value:.2g}") for value in np.logspace(-4, 2, 25))
N_NONZEROS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 50)
LOOPBACK = "127.0.0.1"
_WAIT = 30  # milliseconds in which further moves of a slider are taken together

STYLE = (files("subspaces.explorer") / "explorer.css").read_text(encoding="utf-8")


class Explorer:
    """One page: its widgets, what they show now, and what happens when one moves.

    `source` is the file and how it is read, for the command that repeats a view; `pictures` are those of the points,
    where they are made already.
    """

    def __init__(
        self,
        session: Session,
        title: str = "subspaces explorer",
        source: str | None = None,
        pictures: pieces.Pictures | None = None,
    ) -> None:
        self.session, self.source = session, source
        self.pictures = pictures or pieces.Pictures(session)
        self.graph = GraphFigure()
        classes = None if session.y is None else [str(label) for label in session.y]
        self.map = MapFigure(session.ids, classes, self.pictures.thumbs)
        self.map.on_click(self._clicked)
        self._chosen: int | None = None
        self._scheduled = self._wants_fit = False
        self._quiet = False
        self._testing = threading.Lock()
        self._build_widgets(session.first_settings)
        self._build_panes()
        self.view = self._build_page(title)
        self.current: View
        self.update()

    # ---------------------------------------------------------------- the page

    def _build_widgets(self, first: Settings) -> None:
        wide: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (3, 8)}

        def select(label: str, options: list[str], value: str) -> Any:
            return pn.widgets.Select(label=label, options=options, value=value, **wide)

        def slider(label: str, options: Any, value: float) -> Any:
            return pn.widgets.DiscreteSlider(label=label, options=options, value=value, **wide)

        most = self.session.most_clusters
        self.widgets: dict[str, Any] = {
            "kernel": select("Kernel", list(EXPLORED_KERNELS), first.kernel),
            "scaling": select("Scaling of the data", ["none", *SCALINGS], "none"),
            "reg": slider("λ, relative to the kernel (reg)", {f"{reg:g}": reg for reg in REGS}, first.reg),
            "n_nonzero": slider("η, coefficients per point (n_nonzero)", list(N_NONZEROS), first.n_nonzero),
            "n_clusters": pn.widgets.IntSlider(
                label="Clusters (n_clusters)", start=2, end=most, value=first.n_clusters, **wide
            ),
            "partition": select("Cut (partition)", list(PARTITIONS), first.partition),
        }
        for widget in self.widgets.values():
            widget.param.watch(self._moved, "value")
        self.level = pn.widgets.IntSlider(label="Level of the tree (labels_at)", start=1, end=2, value=2, **wide)
        self.level.param.watch(self._level_moved, "value")
        self.choose = pn.widgets.Button(label="Choose for me", color="primary", **wide)
        self.choose.on_click(self._choose)
        self.download = pn.widgets.FileDownload(
            callback=lambda: self._table(), filename="labels.csv", label="Save the labels (CSV)", **wide
        )

    def _build_panes(self) -> None:
        def pane(**more: Any) -> Any:
            return pn.pane.HTML("", sizing_mode="stretch_width", margin=(3, 8), stylesheets=[STYLE], **more)

        self.quality, self.gallery, self.detail, self.code = pane(), pane(), pane(), pane()
        self.graph_caption, self.map_caption, self.level_note = pane(), pane(), pane()
        self.detail.object = "<h2>A point</h2><p>Click a point of the map: the points that represent it come here.</p>"

    def _build_page(self, title: str) -> Any:
        def column(*parts: Any, basis: int, grow: int) -> Any:
            return pn.Column(*parts, styles={"flex": f"{grow} 1 {basis}px", "min-width": "0"}, margin=0)

        def heading(text: str, level: int = 2) -> Any:
            html = f"<h{level}>{escape(text)}</h{level}>"
            return pn.pane.HTML(html, stylesheets=[STYLE], margin=(6, 8, 0, 8), sizing_mode="stretch_width")

        def picture(caption: Any, drawn: Any) -> Any:
            return column(caption, pn.pane.Bokeh(drawn, sizing_mode="stretch_width"), basis=340, grow=2)

        controls = column(*self.widgets.values(), self.choose, self.level, self.level_note, basis=250, grow=1)
        graph, embedding = picture(self.graph_caption, self.graph.figure), picture(self.map_caption, self.map.figure)
        beside = column(self.detail, heading("Repeat it"), self.code, self.download, basis=250, grow=1)
        clusters = column(self.gallery, basis=700, grow=4)
        rows = [
            pn.FlexBox(*row, sizing_mode="stretch_width") for row in ((controls, graph, embedding), (beside, clusters))
        ]
        return pn.Column(heading(title, 1), self.quality, *rows, sizing_mode="stretch_width", styles={"min-width": "0"})

    # ---------------------------------------------------------------- what happens

    @property
    def settings(self) -> Settings:
        """What the widgets say."""
        values = {name: widget.value for name, widget in self.widgets.items()}
        return Settings(**{**values, "scaling": None if values["scaling"] == "none" else values["scaling"]})

    def update(self) -> None:
        """Compute and show what the widgets ask for."""
        start = time.perf_counter()
        try:
            view = self.session.compute(self.settings)
        except (ValueError, MemoryError) as error:
            self.quality.object = f"<div class='warning'>{escape(str(error))}</div>"
            return
        self._quiet = True  # the slider goes back to the clusters of the fit
        try:
            k = len(view.sizes)
            self.level.param.update(end=max(2, k, view.n_levels), value=k, disabled=view.n_levels < 2)
        finally:
            self._quiet = False
        self._show(view, start)

    def show_level(self) -> None:
        """Show the level of the tree that the slider says, without another fit; then test the split that made it."""
        start = time.perf_counter()
        view = self.session.at_level(self.current, self.level.value)
        self._show(view, start)
        document = pn.state.curdoc
        if view.is_tested:
            return
        if document is None or document.session_context is None:
            self._note(view, self._tested(view))
        else:
            later = document.add_next_tick_callback
            threading.Thread(target=lambda: later(partial(self._note, view, self._tested(view))), daemon=True).start()

    def _tested(self, view: View) -> View:
        """The view with p-values: one tree is tested at a time, and none that is no longer shown."""
        with self._testing:
            try:
                return self.session.tested(view) if view.model is self.current.model else view
            except Exception:  # the page does without them
                return view._replace(is_tested=True)

    def _note(self, view: View, tested: View) -> None:
        if view is self.current:
            self.current = tested
            self.level_note.object = pieces.level_note(tested)

    def _show(self, view: View, start: float) -> None:
        self.current = view
        self.graph.update(view)
        self.map.update(view)
        self.graph_caption.object, self.map_caption.object = pieces.captions(view)
        self.gallery.object = pieces.gallery(self.session, view, self.pictures)
        lines = [self.session.python(view)]
        if self.source is not None and view.level is None:
            lines.append(view.settings.command(self.source, self.session.seed))
        self.code.object = "".join(f"<pre>{escape(text)}</pre>" for text in lines)
        if self._chosen is not None:
            self._clicked(self._chosen)
        self.level_note.object = pieces.level_note(view)
        self.quality.object = pieces.quality(self.session, view, time.perf_counter() - start)

    def _moved(self, event: Any) -> None:
        self._soon(fit=True)

    def _level_moved(self, event: Any) -> None:
        self._soon(fit=False)

    def _soon(self, fit: bool) -> None:
        """Take the moves of a few milliseconds together; without a server, compute at once."""
        if self._quiet:
            return
        self._wants_fit |= fit
        document = pn.state.curdoc
        if document is None or document.session_context is None:
            self._run()
        elif not self._scheduled:
            self._scheduled = True
            document.add_timeout_callback(self._run, _WAIT)

    def _run(self) -> None:
        fit, self._scheduled, self._wants_fit = self._wants_fit, False, False
        if fit:
            self.update()
        else:
            self.show_level()

    def _clicked(self, point: int) -> None:
        self._chosen = point
        found = self.session.explain(self.current, point)
        self.detail.object = "<h2>A point</h2>" + pieces.representers(self.session, self.current, found, self.pictures)
        self.map.link(self.current, point, found.points, found.coefficients)

    def _choose(self, event: Any) -> None:
        """Let the library choose, on a thread of its own, so that the page stays alive meanwhile."""
        self.choose.disabled, self.choose.label = True, "Choosing ..."

        def choice() -> Settings | str:
            try:
                return self.session.choose()
            except Exception as error:
                return str(error)

        document = pn.state.curdoc
        if document is None or document.session_context is None:
            self._take(choice())
        else:
            later = document.add_next_tick_callback
            threading.Thread(target=lambda: later(partial(self._take, choice())), daemon=True).start()

    def _take(self, found: Settings | str) -> None:
        """Move the widgets to chosen settings and show them once."""
        self.choose.disabled, self.choose.label = False, "Choose for me"
        if isinstance(found, str):
            self.quality.object = f"<div class='warning'>{escape(found)}</div>"
            return
        self._quiet = True
        try:
            for name, value in asdict(found).items():
                _set_value(self.widgets[name], "none" if value is None else value)
        finally:
            self._quiet = False
        self.update()

    def _table(self) -> Any:
        return io.BytesIO(self.session.labels_table(self.current).encode())


def _set_value(widget: Any, value: Any) -> None:
    """Set a widget; a number its slider does not have is added to it, a larger count stretches it."""
    options = getattr(widget, "options", None)
    if isinstance(options, dict) and value not in options.values():
        widget.options = dict(sorted({**options, f"{value:g}": value}.items(), key=lambda item: item[1]))
    elif isinstance(options, list) and value not in options:
        widget.options = sorted([*options, value])
    elif hasattr(widget, "end"):
        widget.end = max(widget.end, value)
    widget.value = value


def serve(
    session: Session,
    *,
    title: str = "subspaces explorer",
    source: str | None = None,
    host: str = LOOPBACK,
    port: int = 0,
    open_browser: bool = True,
    announce: Callable[[str], None] | None = None,
) -> None:
    """Serve the explorer until interrupted.

    `source` is the file and how it is read, for the command that repeats a view. The default `host` is reached from
    this machine only; `port` 0 takes a free one. `announce` is called with the page's address, which holds a secret:
    without it nobody else on the machine finds it.
    """
    pictures = pieces.Pictures(session)  # all visitors share them, and the session's memory
    port = port or _free_port(host)
    secret = secrets.token_urlsafe(12)
    reached = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(host, host)
    shown = f"[{reached}]" if ":" in reached else reached
    address = f"http://{shown}:{port}/{secret}"
    server = pn.io.server.get_server(
        {secret: lambda: Explorer(session, title, source, pictures).view},
        port=port,
        address=host,
        # another site open in the same browser must not talk to this server
        websocket_origin=[f"{name}:{port}" for name in {reached, host, "localhost"} if ":" not in name],
        title={secret: title},
        start=False,
        show=False,
        use_index=False,
        redirect_root=False,
        index=None,
    )
    server._tornado.websocket_origins.add(f"{shown}:{port}")  # Bokeh's own list knows no address of version 6
    if announce is not None:
        announce(address)
    if open_browser:
        server.io_loop.add_callback(webbrowser.open, address)
    server.start()
    try:
        server.io_loop.start()
    except KeyboardInterrupt:
        pass
    finally:
        server.stop()


def _free_port(host: str) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
