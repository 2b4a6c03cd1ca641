"""The page on a server of this machine: reached by an address that holds a secret, until Ctrl-C."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from collections.abc import Callable

from subspaces.explorer.app import Explorer
from subspaces.explorer.pictures import Pictures
from subspaces.explorer.session import Session

LOOPBACK = "127.0.0.1"


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
    pictures = Pictures(session)  # all visitors share them, and the session's memory
    port = port or _free_port(host)
    secret = secrets.token_urlsafe(12)
    reached = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(host, host)
    shown = f"[{reached}]" if ":" in reached else reached
    address = f"http://{shown}:{port}/{secret}"
    import panel as pn  # late: without it the page says what to install

    server = pn.io.server.get_server(
        {secret: lambda: Explorer(session, title, source, pictures, whole_page=True).view},
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
