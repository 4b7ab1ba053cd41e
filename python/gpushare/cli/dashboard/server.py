"""Serves the dashboard on loopback until the process ends. Needs starlette and uvicorn."""

from __future__ import annotations

import os
import secrets
import socket
from typing import TYPE_CHECKING

from gpushare.errors import GpushareError

if TYPE_CHECKING:
    from types import FrameType

    from gpushare.cli._exporter.asking import Coordinators

ADDRESS = "127.0.0.1"
MOST_REQUESTS = 200
"""At the same time; more are told to come later."""
END_SECONDS = 3
"""For answers that are under way at Ctrl-C."""


def serve(coordinators: Coordinators, port: int) -> None:
    """Serves until Ctrl-C; the first line on stdout has the address with the token.

    Args:
        coordinators: Whom to ask each second.
        port: Where to listen; 0 for a free one.

    Raises:
        GpushareError: The port is taken, or this user may not listen there.
    """
    import uvicorn

    from gpushare.cli.dashboard.feed import Feed
    from gpushare.cli.dashboard.web import make_app

    feed = Feed(coordinators)

    class Server(uvicorn.Server):
        """Ends the streams of events first, which have no end of their own."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            feed.is_ending = True
            super().handle_exit(sig, frame)

    token = secrets.token_urlsafe(32)
    with _listen(port) as listener:
        config = uvicorn.Config(
            make_app(feed, token),
            log_config=None,
            # Its warnings are about requests, so whoever reaches the port could write them.
            log_level="error",
            access_log=False,
            server_header=False,
            ws="none",
            limit_concurrency=MOST_REQUESTS,
            timeout_graceful_shutdown=END_SECONDS,
        )
        # A browser does not send what follows "#", so no log and no other site sees the token.
        print(
            f"dashboard at http://{ADDRESS}:{listener.getsockname()[1]}/#token={token}", flush=True
        )
        try:
            server = Server(config)
            feed.on_error = lambda: setattr(server, "should_exit", True)
            server.run(sockets=[listener])
        except KeyboardInterrupt:
            return
    if feed.error is not None:
        raise feed.error


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((ADDRESS, port), backlog=128)
    except OSError as error:
        raise GpushareError(
            f"cannot listen at {ADDRESS}, port {port}: {os.strerror(error.errno or 0)}. "
            "Choose another port with --port, or any free one with --port 0"
        ) from error
