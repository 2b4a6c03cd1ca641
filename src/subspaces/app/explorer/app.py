"""Page of the explorer: widgets beside the graph, the map and the gallery, and the reactions to them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from subspaces.app.explorer.session import CHOICES, Edits, Session, Settings, View
from subspaces.kernels.scaling import SCALINGS
from subspaces.spectral.partition import PARTITIONS
from subspaces.utils.progress import count_text, progress_to

try:
    import panel as pn
except ImportError:
    raise ImportError("the explorer needs Panel: pip install 'subspaces[explore]'.") from None

from subspaces.app.explorer import pictures as pieces
from subspaces.app.explorer.figures import GraphFigure, MapFigure

STYLE, WIDGETS, PAGE = (
    (files("subspaces.app.explorer") / f"{name}.css").read_text(encoding="utf-8")
    for name in ("explorer", "widgets", "page")
)
FULL: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (3, 8), "stylesheets": [WIDGETS]}
"""Options of a widget that fills its column."""
REGS = tuple(float(f"{value:.2g}") for value in np.logspace(-4, 2, 25))
N_NONZEROS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 50)
LOOKS = ("System", "Light", "Dark")
_WAIT = 30  # milliseconds in which further moves of a slider are taken together


class Explorer:
    """One page: its widgets, what they show now, and what happens when one moves.

    `source` is the file and how it is read, for the command that repeats a view; `pictures` are those of the samples,
    where they are made already; `whole_page` colours everything around it as well.
    """

    def __init__(
        self,
        session: Session,
        title: str = "subspaces explorer",
        source: str | None = None,
        pictures: pieces.Pictures | None = None,
        whole_page: bool = False,
    ) -> None:
        self.session, self.source, self.title = session, source, title
        self.pictures = pictures or pieces.Pictures(session)
        self.graph = GraphFigure()
        classes = None if session.y is None else [str(label) for label in session.y]
        self.map = MapFigure(session.ids, classes, self.pictures.thumbs, session.first_lines)
        self.map.on_click(self._clicked)
        self._chosen: int | None = None
        self._scheduled = self._wants_fit = False
        self._quiet = False
        self._testing = threading.Lock()
        self._build_widgets(session.first_settings)
        self.naming = Naming(self._edit, self._with_lock)
        self.taking = Taking(self._labels, self._report)
        self._build_panes()
        self.view = self._build_page(title, whole_page)
        self._follow_the_system()
        self.base: View  # of the fit or a level of its tree
        self.current: View  # the same as edited
        self.update()

    # ---------------------------------------------------------------- the page

    def _build_widgets(self, first: Settings) -> None:
        def select(label: str, options: list[str], value: str) -> Any:
            return pn.widgets.Select(label=label, options=options, value=value, **FULL)

        def slider(label: str, options: Any, value: Any) -> Any:
            return pn.widgets.DiscreteSlider(label=label, options=options, value=value, **FULL)

        most = self.session.most_clusters
        regs = {f"{reg:g}": reg for reg in REGS}
        self.widgets: dict[str, Any] = {
            "kernel": select("Kernel", list(CHOICES), "rbf"),
            "scaling": select("Scaling of the data", ["none", *SCALINGS], "none"),
            "reg": slider("λ, relative to the kernel (reg)", regs, 1.0),
            "n_nonzero": slider("η, coefficients per point (n_nonzero)", list(N_NONZEROS), 5),
            "n_clusters": pn.widgets.IntSlider(label="Clusters (n_clusters)", start=1, end=most, value=2, **FULL),
            "assign_labels": select("Cut (assign_labels)", list(PARTITIONS), "kmeans"),
            "affine": pn.widgets.Checkbox(label="Subspaces may miss the origin (affine)", **FULL),
        }
        self._move_widgets(first)
        for widget in self.widgets.values():
            widget.param.watch(lambda event: self._soon(fit=True), "value")
        self.level = pn.widgets.IntSlider(label="Level of the tree (labels_at)", start=1, end=2, value=2, **FULL)
        self.level.param.watch(lambda event: self._soon(fit=False), "value")
        self.choose = pn.widgets.Button(label="Choose for me", color="primary", **FULL)
        self.choose.on_click(self._choose)
        self.look = pn.widgets.RadioButtonGroup(
            options=list(LOOKS), value=LOOKS[0], margin=(4, 8), stylesheets=[WIDGETS], width=180
        )
        self.look.param.watch(lambda event: self._with_lock(self._dress), "value")

    def _build_panes(self) -> None:
        def pane(**more: Any) -> Any:
            return pn.pane.HTML("", sizing_mode="stretch_width", margin=(3, 8), stylesheets=[STYLE], **more)

        self.quality, self.gallery, self.detail, self.code = pane(), pane(), pane(), pane()
        self.graph_caption, self.map_caption, self.level_note = pane(), pane(), pane()
        self.work = Work(pane(visible=False))
        self.detail.object = "<h2>A point</h2><p>Click a point of the map: the points that represent it come here.</p>"

    def _build_page(self, title: str, whole_page: bool) -> Any:
        def column(*parts: Any, basis: int, grow: int) -> Any:
            return pn.Column(*parts, styles={"flex": f"{grow} 1 {basis}px", "min-width": "0"}, margin=0)

        def heading(text: str, level: int = 2, **more: Any) -> Any:
            html = f"<h{level}>{escape(text)}</h{level}>"
            return pn.pane.HTML(
                html, stylesheets=[STYLE], margin=(6, 8, 0, 8), **{"sizing_mode": "stretch_width", **more}
            )

        def picture(caption: Any, drawn: Any) -> Any:
            return column(caption, pn.pane.Bokeh(drawn, sizing_mode="stretch_width"), basis=340, grow=2)

        def row(*parts: Any) -> Any:
            return pn.FlexBox(*parts, sizing_mode="stretch_width")

        top = row(heading(title, 1, styles={"flex": "1 1 200px"}), self.look)
        controls = column(*self.widgets.values(), self.choose, self.level, self.level_note, basis=250, grow=1)
        graph, embedding = picture(self.graph_caption, self.graph.figure), picture(self.map_caption, self.map.figure)
        names = self.naming
        editing = (heading("Name and merge"), names.clusters, names.name, row(names.rename, names.merge, names.undo))
        saving = (heading("Take it with you"), *self.taking.parts)
        beside = column(*editing, *saving, heading("Repeat it"), self.code, basis=250, grow=1)
        clusters = column(self.gallery, self.detail, basis=700, grow=4)
        self._classes = ["explorer", *["whole-page"] * whole_page]
        return pn.Column(
            top,
            self.work.pane,
            self.quality,
            row(controls, graph, embedding),
            row(clusters, beside),
            sizing_mode="stretch_width",
            styles={"min-width": "0"},
            stylesheets=[PAGE],
            css_classes=[*self._classes, "look-system"],
        )

    # ---------------------------------------------------------------- light and dark

    def _follow_the_system(self) -> None:
        """Hear from the browser whether the person likes it dark; a notebook does not say."""
        self._system = pn.state.browser_info if pn.state.curdoc is not None else None
        if self._system is not None:
            self._system.param.watch(lambda event: self._with_lock(self._dress), "dark_mode")
        self._dress()

    @property
    def is_dark(self) -> bool:
        """Whether the page is dark."""
        by_system = self._system is not None and bool(self._system.dark_mode)
        return {"System": by_system, "Light": False, "Dark": True}[self.look.value]

    def _dress(self) -> None:
        self.view.css_classes = [*self._classes, f"look-{self.look.value.lower()}"]
        for drawn in (self.graph, self.map):
            drawn.dress(self.is_dark)

    # ---------------------------------------------------------------- what happens

    @property
    def settings(self) -> Settings:
        """Settings of the widgets."""
        values = {name: widget.value for name, widget in self.widgets.items()}
        return Settings(**{**values, "scaling": None if values["scaling"] == "none" else values["scaling"]})

    def update(self) -> None:
        """Compute and show what the widgets ask for."""
        start = time.perf_counter()
        try:
            view = self.session.compute(self.settings)
        except (ValueError, MemoryError) as error:
            self._warn(str(error))
            return
        k = len(view.sizes)
        self._quiet = True  # the slider goes back to the clusters of the fit
        self.level.param.update(end=max(2, k, view.n_levels), value=k, disabled=view.n_levels < 2)
        self._quiet = False
        self._start_editing(view, start)

    def show_level(self) -> None:
        """Show the level of the tree that the slider says, without another fit; then test the split that made it."""
        start = time.perf_counter()
        view = self.session.at_level(self.base, self.level.value)
        self._start_editing(view, start)
        later = _later()
        if view.is_tested:
            return
        if later is None:
            self._note(view, self._tested(view))
        else:
            threading.Thread(target=lambda: later(partial(self._note, view, self._tested(view))), daemon=True).start()

    def _tested(self, view: View) -> View:
        """Return the view with p-values; one tree is tested at a time, and none that is no longer shown."""
        with self._testing:
            try:
                return self.session.tested(view) if view.model is self.base.model else view
            except Exception:  # the page does without them
                return view._replace(is_tested=True)

    def _note(self, view: View, tested: View) -> None:
        if view is self.base:
            self.base = tested
            self.current = self.current._replace(tree=tested.tree, is_tested=tested.is_tested)
            self.level_note.object = pieces.level_note(tested)

    def _show(self, view: View, start: float) -> None:
        self.current = view
        self.graph.update(view)
        self.map.update(view)
        self.graph_caption.object, self.map_caption.object = pieces.captions(view)
        self.gallery.object = pieces.gallery(self.session, view, self.pictures)
        command = self._command(view)
        lines = [self.session.python(view), *([command] if command else [])]
        self.code.object = "".join(f"<pre>{escape(text)}</pre>" for text in lines)
        if self._chosen is not None:
            self._clicked(self._chosen)
        self.level_note.object = pieces.level_note(view)
        self.quality.object = pieces.quality(self.session, view, time.perf_counter() - start)
        self.taking.forget()
        self.naming.offer([f"{pieces.title_of(view, k)}  ·  {size:,}" for k, size in enumerate(view.sizes.tolist())])

    def _command(self, view: View) -> str:
        """Return the command that gives these labels, where one does."""
        return "" if self.source is None else self.session.command(view, self.source)

    def _soon(self, fit: bool) -> None:
        """Take the moves of a few milliseconds together; without a server, compute at once."""
        if self._quiet:
            return
        self._wants_fit |= fit
        if _later() is None:
            self._run()
        elif not self._scheduled:
            self._scheduled = True
            pn.state.curdoc.add_timeout_callback(self._run, _WAIT)

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

    def _start_editing(self, view: View, start: float) -> None:
        """Show a new fit or level, without names and mergers of other clusters."""
        self.base = view
        self.naming.start(len(view.sizes))
        self._show(view, start)

    def _edit(self, edits: Edits) -> None:
        start = time.perf_counter()
        self._show(self.session.edited(self.base, edits), start)

    # ---------------------------------------------------------------- what takes a while

    def _choose(self, event: Any) -> None:
        """Let the library choose, on a thread of its own, so that the page stays alive meanwhile."""
        self.choose.disabled, self.choose.label = True, "Choosing ..."
        self._in_background(self.session.choose, self._take)

    def _take(self, found: Settings | str) -> None:
        """Move the widgets to chosen settings and show them once."""
        self.choose.disabled, self.choose.label = False, "Choose for me"
        if isinstance(found, str):
            self._warn(found)
            return
        self._quiet = True
        self._move_widgets(found)
        self._quiet = False
        self.update()

    def _move_widgets(self, found: Settings) -> None:
        for name, value in asdict(found).items():
            _set_value(self.widgets[name], "none" if value is None else value)

    def _report(self) -> None:
        """Make the report of what is shown; then it can be saved."""
        view = self.current
        title = self.title.removeprefix("subspaces: ")
        make = partial(self.session.report_file, view, title, self._command(view))
        self._in_background(make, partial(self._take_report, view))

    def _take_report(self, view: View, found: Any) -> None:
        failed = isinstance(found, str)
        if failed:
            self._warn(found)
        self.taking.take(found if view is self.current and not failed else None)

    def _warn(self, text: str) -> None:
        self.quality.object = f"<div class='warning'>{escape(text)}</div>"

    def _with_lock(self, function: Callable[[], None]) -> None:
        """Call a function that changes figures as the server wants it: with the lock of the page, which events lack."""
        later = _later()
        if later is None:
            function()
        else:
            later(function)

    def _in_background(self, make: Callable[[], Any], take: Callable[[Any], None]) -> None:
        self.work.do(make, take, _later())

    def _labels(self, suffix: str) -> Any:
        return self.session.labels_file(self.current, suffix)


def _later() -> Callable[..., Any] | None:
    """Return what runs a function on the page's own thread; None where there is no server."""
    document = pn.state.curdoc
    return None if document is None or document.session_context is None else document.add_next_tick_callback


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


class Naming:
    """Widgets to name and merge clusters, one step after the other; `show` is called with every new step.

    `later` calls a function as the page wants it.
    """

    def __init__(self, show: Callable[[Edits], None], later: Callable[[Callable[[], None]], None]) -> None:
        self._show = show
        self._steps = [Edits.none(0)]  # the last is shown
        half = {**FULL, "margin": (3, 4), "styles": {"flex": "1 1 90px"}}
        self.clusters = pn.widgets.MultiSelect(
            label="Choose one cluster to name it, several to merge", options={}, size=6, **FULL
        )
        self.name = pn.widgets.TextInput(label="Name of the cluster", placeholder="such as cats", **FULL)
        self.rename = pn.widgets.Button(label="Rename", **half)
        self.merge = pn.widgets.Button(label="Merge", **half)
        self.undo = pn.widgets.Button(label="Undo", **half)
        self.clusters.param.watch(lambda event: self._enable(), "value")
        self.name.param.watch(lambda event: later(self._rename), "enter_pressed")
        self.rename.on_click(lambda event: later(self._rename))
        self.merge.on_click(lambda event: later(self._merge))
        self.undo.on_click(lambda event: later(self._undo))

    def start(self, n_clusters: int) -> None:
        """Forget names and mergers: a new fit or level has other clusters."""
        self._steps = [Edits.none(n_clusters)]

    def offer(self, titles: Sequence[str]) -> None:
        """List the clusters that are shown; none of them is chosen."""
        self.clusters.param.update(options={title: k for k, title in enumerate(titles)}, value=[])
        self._enable()

    def _edit(self, edits: Edits) -> None:
        if edits != self._steps[-1]:
            self._steps.append(edits)
            self._show(edits)

    def _rename(self) -> None:
        if len(self.clusters.value) == 1:
            self._edit(self._steps[-1].renamed(self.clusters.value[0], self.name.value_input or self.name.value))
            self.name.value = ""

    def _merge(self) -> None:
        self._edit(self._steps[-1].merged(self.clusters.value))

    def _undo(self) -> None:
        if len(self._steps) > 1:
            self._steps.pop()
            self._show(self._steps[-1])

    def _enable(self) -> None:
        """Enable what can be done with the clusters that are chosen in the list."""
        n = len(self.clusters.value)
        self.rename.disabled, self.merge.disabled, self.undo.disabled = n != 1, n < 2, len(self._steps) < 2
        self.name.disabled = n != 1


class Taking:
    """Widgets to save files: labels, made when they are asked for, and a report, which has to be made first.

    `labels` makes the file of a suffix; `make_report` is called when a report is wanted, and calls :meth:`take`.
    """

    def __init__(self, labels: Callable[[str], Any], make_report: Callable[[], None]) -> None:
        self.page: Any = None  # the report that was made last
        titles = {".csv": "Save the labels (CSV)", ".xlsx": "Save the labels (Excel)"}
        self.downloads = [
            pn.widgets.FileDownload(callback=partial(labels, suffix), filename=f"labels{suffix}", label=label, **FULL)
            for suffix, label in titles.items()
        ]
        self.report = pn.widgets.Button(label="Make a report", **FULL)
        self.report_file = pn.widgets.FileDownload(
            callback=lambda: self.page, filename="report.html", label="Save the report (HTML)", visible=False, **FULL
        )
        self._make_report = make_report
        self.report.on_click(self._ask)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The widgets in the order of the page."""
        return (*self.downloads, self.report, self.report_file)

    def forget(self) -> None:
        """Hide the report: it is not of what is shown now."""
        self.report_file.visible = False

    def take(self, page: Any) -> None:
        """Offer the report; None: it could not be made, or is of what is no longer shown."""
        self.report.disabled, self.report.label = False, "Make a report"
        if page is not None:
            self.page, self.report_file.visible = page, True

    def _ask(self, event: Any) -> None:
        self.report.disabled, self.report.label = True, "Making the report ..."
        self._make_report()


class Work:
    """Work on a thread of its own, with a bar in a `pane` of HTML that is seen only while something is going on."""

    def __init__(self, pane: Any) -> None:
        self.pane = pane

    def do(self, make: Callable[[], Any], take: Callable[[Any], None], later: Callable[..., Any] | None) -> None:
        """Call `make`, then `take` with what it gave, or with the text of its error.

        `later` runs a function on the page's own thread; None: there is no page, and everything is done at once.
        """
        bar = _Bar()

        def show(text: str) -> None:
            self.pane.param.update(object=text, visible=bool(text))

        def listen(name: str, done: int, total: int | None) -> None:
            if text := bar.text(name, done, total):
                show(text) if later is None else later(partial(show, text))

        def found() -> Any:
            try:
                with progress_to(listen):
                    return make()
            except Exception as error:
                return str(error) or type(error).__name__

        def finish(result: Any) -> None:
            show("")
            take(result)

        show(bar.text("Starting", 0, None))
        if later is None:
            finish(found())
        else:
            threading.Thread(target=lambda: later(partial(finish, found())), daemon=True).start()


class _Bar:
    """Phase, counts and time left of work as HTML; empty within 0.2 s of the last one."""

    def __init__(self) -> None:
        self._name, self._start, self._told = "", 0.0, 0.0

    def text(self, name: str, done: int, total: int | None) -> str:
        now = time.monotonic()
        if name == self._name and now - self._told < 0.2 and done != total:
            return ""
        if name != self._name:
            self._name, self._start = name, now
        self._told = now
        counted, left = count_text(done, total), ""
        if total and 0 < done < total and now - self._start > 1:
            left = f", about {(now - self._start) * (total - done) / done:.0f} s left"
        filled = f" value='{done}' max='{total}'" if total else ""
        return f"<div class='work'><b>{escape(name)}</b> <progress{filled}></progress> {counted}{left}</div>"
