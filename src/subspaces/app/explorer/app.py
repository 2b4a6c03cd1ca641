"""Page of the explorer: the verdict, a slider for the number, questions, the groups; all methods under *Advanced*."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from subspaces.app.explorer.session import CHOICES, Session, Settings, View
from subspaces.kernels.scaling import SCALINGS
from subspaces.selection.hints import Question
from subspaces.spectral.partition import PARTITIONS
from subspaces.utils.spelling import counted

try:
    import panel as pn
except ImportError:
    raise ImportError("the explorer needs Panel: pip install 'subspaces[explore]'.") from None

from subspaces.app.explorer import cards
from subspaces.app.explorer.figures import MapFigure
from subspaces.app.explorer.pictures import Pictures
from subspaces.app.explorer.work import Work

STYLE, WIDGETS, PAGE, KEYS = (
    (files("subspaces.app.explorer") / name).read_text(encoding="utf-8")
    for name in ("explorer.css", "widgets.css", "page.css", "keys.js")
)
FULL: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (3, 8), "stylesheets": [WIDGETS]}
"""Options of a widget that fills its column."""
REGS = tuple(float(f"{value:.2g}") for value in np.logspace(-4, 2, 25))
N_NONZEROS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 50)
LOOKS = ("System", "Light", "Dark")
ANSWERS = {"Same (1)": True, "Different (2)": False, "Don't know (3)": None}
_WAIT = 30  # milliseconds in which further moves of the slider are taken together


def pane(html: str = "", **more: Any) -> Any:
    """Return a piece of HTML that fills its column."""
    return pn.pane.HTML(html, **{"sizing_mode": "stretch_width", "margin": (3, 8), "stylesheets": [STYLE], **more})


def button(label: str, act: Callable[[], None], basis: int = 90, **more: Any) -> Any:
    """Return a button that does something with the lock of the page."""
    look = {**FULL, "styles": {"flex": f"1 1 {basis}px", "max-width": "260px"}, **more}
    made = pn.widgets.Button(label=label, **look)
    made.on_click(lambda event: locked(act))
    return made


def row(*parts: Any) -> Any:
    """Return parts side by side, below each other where the page is narrow."""
    return pn.FlexBox(*parts, sizing_mode="stretch_width")


def column(*parts: Any, basis: int, grow: int) -> Any:
    """Return parts below each other, in a column that is `basis` wide or more."""
    return pn.Column(*parts, styles={"flex": f"{grow} 1 {basis}px", "min-width": "0"}, margin=0)


class Explorer:
    """One page on a session: its widgets, what they show, and what happens when one is used.

    `source` is the file and how it is read, for the command that repeats a view; `max_points` are drawn on the map;
    `whole_page` colours everything around it as well; `asking` begins with the questions.
    """

    def __init__(
        self,
        session: Session,
        title: str = "subspaces explorer",
        source: str = "",
        pictures: Pictures | None = None,
        whole_page: bool = False,
        max_points: int = 2000,
        asking: bool = False,
    ) -> None:
        self.session, self.source = session, source
        self.pictures = pictures or Pictures(session)
        self._shown: View | None = None
        self._asked: Question | None = None
        self._quiet = self._scheduled = False
        self._classes = ["explorer", *["whole-page"] * whole_page]
        self.map = MapFigure(session, self.pictures, max_points)
        self.map.on_click(self._clicked)
        self.verdict, self.gallery, self.detail, self.code, self.error = (pane() for _ in range(5))
        self.work = Work(pane(visible=False))
        self.view = pn.Column(
            self._top(title),
            self.work.pane,
            self.error,
            self.verdict,
            self._numbers(),
            self._questions(),
            self.gallery,
            row(column(*self._editing(), basis=300, grow=2), column(*self._taking(), basis=250, grow=1)),
            *self._advanced(),
            sizing_mode="stretch_width",
            styles={"min-width": "0"},
            stylesheets=[PAGE],
        )
        self._system = pn.state.browser_info if pn.state.curdoc is not None else None
        if self._system is not None:  # the browser says whether the person likes it dark; a notebook does not
            self._system.param.watch(lambda event: locked(self._dress), "dark_mode")
        self._dress()
        self.show()
        if asking:
            self._ask()

    # ---------------------------------------------------------------- the parts of the page

    def _top(self, title: str) -> Any:
        self.look = pn.widgets.RadioButtonGroup(options=list(LOOKS), value=LOOKS[0], **{**FULL, "sizing_mode": "fixed"})
        self.look.param.update(width=180, height=34)
        self.look.param.watch(lambda event: locked(self._dress), "value")
        return row(pane(f"<h1>{escape(title)}</h1>", styles={"flex": "1 1 200px"}), self.look)

    def _numbers(self) -> Any:
        wide = {**FULL, "styles": {"flex": "4 1 260px"}}
        self.number = pn.widgets.IntSlider(label="Number of groups: coarser or finer", start=1, end=2, value=1, **wide)
        self.number.param.watch(lambda event: self._soon(), "value")
        self.undo = button("Undo", self._undo)
        return row(self.number, self.undo)

    def _questions(self) -> Any:
        """Return the card of questions; before the first, a button that asks for it."""
        self.ask = button("Ask me: are these two of one group?", self._ask, 260)
        self.question, self.asked = pane(), pane(css_classes=["note"])
        self.replies = {
            label: button(label, partial(self._reply, same), css_classes=[f"answer-{number}"])
            for number, (label, same) in enumerate(ANSWERS.items(), start=1)
        }
        self.enough = button("Enough", self._enough)
        self.card = pn.Column(
            pane("<h2>Are these two of one group?</h2>"),
            row(*self.replies.values(), self.enough),  # above, so that they stay where they are
            self.asked,
            self.question,
            pane(f"<script>{KEYS}</script>", height=0, margin=0),
            visible=False,
            sizing_mode="stretch_width",
            margin=(6, 0),
        )
        return pn.Column(row(self.ask), self.card, sizing_mode="stretch_width")

    def _editing(self) -> tuple[Any, ...]:
        self.groups = pn.widgets.MultiSelect(label="One to name or split, several to merge", options={}, size=8, **FULL)
        self.groups.param.watch(lambda event: self._enable(), "value")
        self.name = pn.widgets.TextInput(label="Name of the group", placeholder="such as cats", **FULL)
        self.name.param.watch(lambda event: locked(self._rename), "enter_pressed")
        self.rename, self.split = button("Name", self._rename), button("Split", self._split)
        self.merge = button("Merge", lambda: self._do(partial(self.session.merge, self.groups.value)))
        buttons = row(self.rename, self.merge, self.split)
        return pane("<h2>Name, merge and split</h2>"), self.groups, self.name, buttons

    def _taking(self) -> tuple[Any, ...]:
        def download(label: str, file: str, make: Callable[[], Any]) -> Any:
            return pn.widgets.FileDownload(callback=make, filename=file, label=label, **FULL)

        titles = {".csv": "Save the labels (CSV)", ".xlsx": "Save the labels (Excel)"}
        labels = self.session.labels_file
        made = [download(label, f"labels{end}", partial(labels, end)) for end, label in titles.items()]
        self.save_answers = download("Save the answers (CSV)", "answers.csv", self.session.answers_as_file)
        self.report = pn.widgets.Button(label="Make a report", **FULL)
        self.report.on_click(lambda event: self._make_report())
        self.page: Any = None  # the report that was made last
        self.save_report = download("Save the report (HTML)", "report.html", lambda: self.page)
        self.save_report.visible = False
        return pane("<h2>Take it with you</h2>"), *made, self.save_answers, self.report, self.save_report

    def _advanced(self) -> tuple[Any, ...]:
        """Return the method, map, graph and code, not seen (and not computed) until they are asked for."""

        def select(label: str, options: list[str]) -> Any:
            return pn.widgets.Select(label=label, options=options, value=options[0], **FULL)

        def slider(label: str, options: Any) -> Any:
            return pn.widgets.DiscreteSlider(label=label, options=options, **FULL)

        self.widgets: dict[str, Any] = {
            "kernel": select("Kernel", list(CHOICES)),
            "scaling": select("Scaling of the data", ["none", *SCALINGS]),
            "reg": slider("λ, relative to the kernel (reg)", {f"{reg:g}": reg for reg in REGS}),
            "n_nonzero": slider("η, coefficients per sample (n_nonzero)", list(N_NONZEROS)),
            "assign_labels": select("Cut (assign_labels)", list(PARTITIONS)),
            "affine": pn.widgets.Checkbox(label="Subspaces may miss the origin (affine)", **FULL),
        }
        self.fit = button("Cluster with these", self._fit, 200)
        self.open = button("▸ Advanced: method, map and code", self._open, 260)
        drawn = pn.pane.Bokeh(self.map.figure, sizing_mode="stretch_width")
        drawn = column(pane("<h2>Map; click a sample</h2>"), drawn, self.detail, basis=340, grow=2)
        settings = column(*self.widgets.values(), row(self.fit), basis=250, grow=1)
        parts = row(settings, drawn, column(self.code, basis=300, grow=2))
        self.advanced = pn.Column(parts, visible=False, sizing_mode="stretch_width")
        return row(self.open), self.advanced

    def _dress(self) -> None:
        """Take on the light or the dark look."""
        by_system = self._system is not None and bool(self._system.dark_mode)
        self.is_dark = {"System": by_system, "Light": False, "Dark": True}[self.look.value]
        self.view.css_classes = [*self._classes, f"look-{self.look.value.lower()}"]
        self.map.dress(self.is_dark)

    # ---------------------------------------------------------------- what is shown

    def show(self) -> None:
        """Show the view of the session."""
        self._shown = view = self.session.view
        self.error.object = ""
        self.verdict.object = cards.verdict(self.session)
        self.gallery.object = cards.gallery(self.session, self.pictures)
        self._quiet = True  # the slider goes where the groups are
        k = len(view.sizes)
        self.number.param.update(end=max(view.n_levels, k), value=k)
        self._quiet = False
        titles = {cards.title_of(view, c): c for c in range(k)}
        self.groups.param.update(options=titles, value=[], size=min(8, k + 1))
        self._enable()
        self.save_report.visible = False
        self.save_answers.visible = bool(self.session.answers)
        self.undo.disabled = len(self.session.steps) < 2
        if self.advanced.visible:
            self._show_advanced()

    def _show_advanced(self) -> None:
        session, view = self.session, self.session.view
        for name, value in asdict(Settings.of(view.fit)).items():
            _set_value(self.widgets[name], "none" if value is None else value)
        self.map.update(view)
        self.detail.object = ""
        command = session.command(self.source) if self.source else ""
        lines = "".join(f"<pre>{escape(text)}</pre>" for text in (session.python(), command) if text)
        self.code.object = f"<h2>Repeat it</h2>{'<p>Without what was changed by hand:</p>' * view.by_hand}{lines}"

    def _do(self, step: Callable[[], None]) -> None:
        """Take a step of the session and show it; not on what another window has changed meanwhile."""
        if self._shown is not self.session.view:
            self.show()
            self._warn("Another window has changed the groups; they are shown now.")
            return
        try:
            step()
        except (ValueError, MemoryError, OSError) as error:
            self._warn(str(error))
        else:
            self.show()

    def _warn(self, text: str) -> None:
        self.error.object = f"<div class='warning'>{escape(text)}</div>"

    # ---------------------------------------------------------------- what happens

    def _soon(self) -> None:
        """Take the moves of a few milliseconds together; without a server, move at once."""
        if self._quiet or self._scheduled:
            return
        if later() is None:
            self._move()
        else:
            self._scheduled = True
            pn.state.curdoc.add_timeout_callback(self._move, _WAIT)

    def _move(self) -> None:
        self._scheduled = False
        self._do(partial(self.session.at_level, self.number.value))

    def _undo(self) -> None:
        self._do(self.session.undo)
        if self.card.visible:
            self._next()

    def _enable(self) -> None:
        """Enable what can be done with the groups that are chosen in the list."""
        n = len(self.groups.value)
        self.rename.disabled = self.split.disabled = self.name.disabled = n != 1
        self.merge.disabled = n < 2

    def _rename(self) -> None:
        if len(self.groups.value) == 1:
            name, self.name.value = self.name.value_input or self.name.value, ""
            self._do(partial(self.session.rename, self.groups.value[0], name))

    def _split(self) -> None:
        if len(self.groups.value) == 1:
            self._do(partial(self.session.split, self.groups.value[0]))

    def _open(self) -> None:
        self.advanced.visible = not self.advanced.visible
        self.open.label = f"{'▾' if self.advanced.visible else '▸'}{self.open.label[1:]}"
        if self.advanced.visible:
            self._show_advanced()

    def _clicked(self, i: int) -> None:
        self.detail.object = "<h2>A sample</h2>" + cards.sample(self.session, self.pictures, self.session.explain(i))

    # ---------------------------------------------------------------- questions

    def _ask(self) -> None:
        self.ask.disabled, self.ask.label = True, "Looking for the question that helps most ..."
        self.work.do(self.session.question, self._take_question, later())

    def _take_question(self, found: Any) -> None:
        self.ask.disabled, self.ask.label = False, "Ask me: are these two of one group?"
        if isinstance(found, str):
            self._warn(found)
            return
        self.ask.visible, self.card.visible, self._asked = False, True, found
        for each in self.replies.values():
            each.disabled = found is None
        n = len(self.session.answers)
        kept = f"; they are kept in {self.session.answers_file.name}" if self.session.answers_file is not None else ""
        self.asked.object = escape(f"{counted(n, 'answer')} so far{kept}. Keys 1, 2 and 3 answer as well.")
        self.question.object = "<p>No question would change the groups any more.</p>"
        if found is not None:
            self.question.object = cards.question(self.session, self.pictures, *found)

    def _next(self) -> None:
        try:
            self._take_question(self.session.question())
        except (ValueError, MemoryError) as error:
            self._take_question(str(error))

    def _reply(self, same: bool | None) -> None:
        if self._asked is not None:
            i, j, _ = self._asked
            self._do(partial(self.session.answer, [(i, j, same)]))
            self._next()

    def _enough(self) -> None:
        self.ask.visible, self.card.visible, self._asked = True, False, None

    # ---------------------------------------------------------------- what takes a while

    def _fit(self) -> None:
        values = {name: widget.value for name, widget in self.widgets.items()}
        settings = Settings(**{**values, "scaling": None if values["scaling"] == "none" else values["scaling"]})
        self.fit.disabled = True
        self.work.do(partial(self.session.fit, settings), self._take_fit, later())

    def _take_fit(self, found: Any) -> None:
        self.fit.disabled = False
        if isinstance(found, str):
            self._warn(found)
        else:
            self._do(partial(self.session.take, found))

    def _make_report(self) -> None:
        self.report.disabled = True
        view = self.session.view
        self.work.do(partial(self.session.report_file, self.source), partial(self._take_report, view), later())

    def _take_report(self, view: View, found: Any) -> None:
        self.report.disabled = False
        if isinstance(found, str):
            self._warn(found)
        elif view is self.session.view:
            self.page, self.save_report.visible = found, True


def later() -> Callable[..., Any] | None:
    """Return what runs a function on the page's own thread; None where there is no server."""
    document = pn.state.curdoc
    return None if document is None or document.session_context is None else document.add_next_tick_callback


def locked(function: Callable[[], None]) -> None:
    """Call a function that changes figures as the server wants it: with the lock of the page, which events lack."""
    run = later()
    if run is None:
        function()
    else:
        run(function)


def _set_value(widget: Any, value: Any) -> None:
    """Set a widget; a number its slider does not have is added to it."""
    options = getattr(widget, "options", None)
    if isinstance(options, dict) and value not in options.values():
        widget.options = dict(sorted({**options, f"{value:g}": value}.items(), key=lambda item: item[1]))
    elif isinstance(options, list) and value not in options:
        widget.options = sorted([*options, value])
    widget.value = value
