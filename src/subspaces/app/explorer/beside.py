"""What stands beside the clusters: widgets to name and merge them, and to take labels and a report away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import panel as pn

from subspaces.app.explorer.edits import Edits
from subspaces.app.explorer.saving import can_write_reports, can_write_workbooks
from subspaces.app.explorer.sheets import wide

Show = Callable[[Edits], None]
Later = Callable[[Callable[[], None]], None]
"""Calls a function as the page wants it."""


class Naming:
    """Names and mergers of clusters, one step after the other; `show` is called with every new one."""

    def __init__(self, show: Show, later: Later) -> None:
        self._show = show
        self._steps = [Edits.none(0)]  # the last is shown
        half = {**wide(), "margin": (3, 4), "styles": {"flex": "1 1 90px"}}
        self.clusters = pn.widgets.MultiSelect(
            label="Choose one cluster to name it, several to merge", options={}, size=6, **wide()
        )
        self.name = pn.widgets.TextInput(label="Name of the cluster", placeholder="such as cats", **wide())
        self.rename = pn.widgets.Button(label="Rename", **half)
        self.merge = pn.widgets.Button(label="Merge", **half)
        self.undo = pn.widgets.Button(label="Undo", **half)
        self.clusters.param.watch(lambda event: self._enable(), "value")
        self.name.param.watch(lambda event: later(self._rename), "enter_pressed")
        self.rename.on_click(lambda event: later(self._rename))
        self.merge.on_click(lambda event: later(self._merge))
        self.undo.on_click(lambda event: later(self._undo))

    def start(self, n_clusters: int) -> None:
        """A new fit or level: names and mergers were of other clusters."""
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
        """What can be done with the clusters that are chosen in the list."""
        n = len(self.clusters.value)
        self.rename.disabled, self.merge.disabled, self.undo.disabled = n != 1, n < 2, len(self._steps) < 2
        self.name.disabled = n != 1


class Taking:
    """Files to take away: labels, made when they are asked for, and a report, which has to be made first.

    `labels` makes the file of a suffix; `make_report` is called when a report is wanted, and calls :meth:`take`.
    """

    def __init__(self, labels: Callable[[str], Any], make_report: Callable[[], None]) -> None:
        self.page: Any = None  # the report that was made last
        titles = {".csv": "Save the labels (CSV)"}
        titles |= {".xlsx": "Save the labels (Excel)"} if can_write_workbooks() else {}
        self.downloads = [
            pn.widgets.FileDownload(callback=partial(labels, suffix), filename=f"labels{suffix}", label=label, **wide())
            for suffix, label in titles.items()
        ]
        self.report = pn.widgets.Button(label="Make a report", disabled=not can_write_reports(), **wide())
        self.report_file = pn.widgets.FileDownload(
            callback=lambda: self.page, filename="report.html", label="Save the report (HTML)", visible=False, **wide()
        )
        self._make_report = make_report
        self.report.on_click(self._ask)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The widgets in the order of the page."""
        return (*self.downloads, self.report, self.report_file)

    def forget(self) -> None:
        """Something else is shown: the report is not of it."""
        self.report_file.visible = False

    def take(self, page: Any) -> None:
        """A report was made, or (None) could not be, or is of what is no longer shown."""
        self.report.disabled, self.report.label = False, "Make a report"
        if page is not None:
            self.page, self.report_file.visible = page, True

    def _ask(self, event: Any) -> None:
        self.report.disabled, self.report.label = True, "Making the report ..."
        self._make_report()
