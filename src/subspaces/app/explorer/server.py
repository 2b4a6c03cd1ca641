"""Serve the page on this machine until Ctrl-C, under an address that holds a secret."""

from __future__ import annotations

import os
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from typing import Any

from subspaces.app.explorer.app import Explorer  # isort: skip  (says what to install where Panel is missing)
from tornado.ioloop import IOLoop
from tornado.web import HTTPError, RequestHandler

from subspaces.app.explorer.pictures import LARGE, SMALL, Pictures
from subspaces.app.explorer.session import Session
from subspaces.utils.process import on_stop_signals

LOOPBACK = "127.0.0.1"
PATIENCE = 5.0
"""Seconds that a computation may go on after a signal to stop."""


def serve(
    session: Session,
    *,
    title: str = "subspaces explorer",
    source: str = "",
    port: int = 0,
    open_browser: bool = True,
    announce: Callable[[str], None] | None = None,
    **more: Any,
) -> None:
    """Serve the explorer until interrupted.

    `source` is the file and how it is read, for the command that repeats a view. Only this machine reaches the server;
    `port` 0 takes a free one. `announce` is called with the page's address, which holds a secret: without it nobody
    else on the machine finds it. `more` goes to :class:`Explorer`.
    """
    pictures = Pictures(session)  # all visitors share them, and the session
    port = port or _free_port()
    secret = secrets.token_urlsafe(12)
    names = [f"{name}:{port}" for name in (LOOPBACK, "localhost")]
    address = f"http://{names[0]}/{secret}"
    pictures.address = f"/{secret}"
    import panel as pn  # late: without it the page says what to install

    server = pn.io.server.get_server(
        {secret: lambda: Explorer(session, title, source, pictures, whole_page=True, **more).view},
        port=port,
        address=LOOPBACK,
        # another site open in the same browser must not talk to this server
        websocket_origin=names,
        title={secret: title},
        start=False,
        show=False,
        use_index=False,
        redirect_root=False,
        index=None,
        extra_patterns=[(rf"/{secret}/([0-9]{{1,9}})-([0-9]{{1,4}})", _Picture, {"pictures": pictures})],
    )
    _answer_only(server._tornado, names)
    if announce is not None:
        announce(address)
    if open_browser:
        server.io_loop.add_callback(webbrowser.open, address)
    server.start()

    def stop(number: int) -> None:
        # no exception: it could come up where Python ignores exceptions (a callback of a weak reference), and the
        # server would go on; a loop that stays busy is not waited for, as only answers to a browser are written here
        server.io_loop.add_callback(server.io_loop.stop)
        impatient = threading.Timer(PATIENCE, os._exit, [0])
        impatient.daemon = True
        impatient.start()

    try:
        with on_stop_signals(stop):
            server.io_loop.start()
    except KeyboardInterrupt:
        pass
    finally:
        server.stop()


class _Picture(RequestHandler):
    """A sample as a picture, read when the browser comes to it."""

    def initialize(self, pictures: Pictures) -> None:
        self.pictures = pictures

    async def get(self, i: str, side: str) -> None:
        if not self.pictures.exist or int(i) >= self.pictures.data.n_samples or int(side) not in (SMALL, LARGE):
            raise HTTPError(404)
        self.set_header("Content-Type", "image/webp")
        self.set_header("Cache-Control", "private, max-age=86400")
        self.set_header("Cross-Origin-Resource-Policy", "same-origin")
        self.finish(await IOLoop.current().run_in_executor(None, self.pictures.bytes_of, int(i), int(side)))


def _answer_only(app: Any, names: list[str]) -> None:
    """Refuse requests under other names than these: a page elsewhere may give this machine a name of its own."""
    find = app.default_router.find_handler

    def find_allowed(request: Any, **options: Any) -> Any:
        return find(request, **options) if request.host.lower() in names else None  # 404, as for a page not there

    app.default_router.find_handler = find_allowed


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
