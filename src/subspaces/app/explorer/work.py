"""Work that takes a while, on a thread of its own, with a bar that says how far it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from html import escape
from typing import Any

from subspaces.utils.progress import count_text, progress_to


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
    """Phase and counts of work as HTML; empty within 0.2 s of the last one."""

    def __init__(self) -> None:
        self._name, self._told = "", 0.0

    def text(self, name: str, done: int, total: int | None) -> str:
        now = time.monotonic()
        if name == self._name and now - self._told < 0.2 and done != total:
            return ""
        self._name, self._told = name, now
        filled = f" value='{done}' max='{total}'" if total else ""
        return f"<div class='work'><b>{escape(name)}</b> <progress{filled}></progress> {count_text(done, total)}</div>"
