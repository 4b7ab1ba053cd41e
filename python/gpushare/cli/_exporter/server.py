"""Serves the metrics over HTTP until the process ends. Needs prometheus_client."""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING, Any

from gpushare.errors import ConfigError, GpushareError

if TYPE_CHECKING:
    from gpushare.cli._exporter.asking import Coordinators

QUIET_SECONDS = 10
"""How long a connection may say nothing. A scraper sends its whole request at once."""


def serve(coordinators: Coordinators, address: str, port: int) -> None:
    """Serves until Ctrl-C.

    Args:
        coordinators: Whom to ask at each scrape.
        address: Where to listen: a number or a name of this machine.
        port: The same; 0 for a free one. The first line on stdout says which it is.

    Raises:
        ConfigError: There is no such address.
        GpushareError: It is taken, or this user may not listen there.
    """
    from prometheus_client import CollectorRegistry, start_http_server

    from gpushare.cli._exporter.collector import CoordinatorCollector

    registry = CollectorRegistry()
    registry.register(CoordinatorCollector(coordinators, _say))
    try:
        server, thread = start_http_server(port, address, registry)
    except (socket.gaierror, UnicodeError) as error:  # a name that none can be is a UnicodeError
        why = getattr(error, "strerror", None) or "no address of a machine"
        raise ConfigError(
            f"--address {address}: {why}. Name an address of this machine, such as 127.0.0.1"
        ) from error
    except OSError as error:
        raise GpushareError(
            f"cannot listen at {address}, port {port}: {error.strerror}. "
            "Choose another place with --address and --port"
        ) from error
    _expect_bad_clients(server)
    shown = f"[{address}]" if ":" in address else address
    print(f"metrics at http://{shown}:{server.server_port}/metrics", flush=True)
    try:
        thread.join()
    except KeyboardInterrupt:
        return


def _expect_bad_clients(server: Any) -> None:
    """Ends connections that say nothing, and writes nothing about those that break off.

    Whoever reaches the port could otherwise keep a thread each, and fill the log with stacks.
    """
    from prometheus_client.exposition import choose_encoder

    class Handler(server.RequestHandlerClass):  # type: ignore[misc]
        timeout = QUIET_SECONDS

        def get_environ(self) -> dict[str, Any]:
            environ: dict[str, Any] = super().get_environ()
            try:
                choose_encoder(environ.get("HTTP_ACCEPT", ""))
            except (TypeError, ValueError):  # it names a version that is none
                del environ["HTTP_ACCEPT"]  # as if the client had not said what it accepts
            return environ

    say_error = server.handle_error

    def handle_error(request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            say_error(request, client_address)

    server.RequestHandlerClass = Handler
    server.handle_error = handle_error


def _say(line: str) -> None:
    print(f"gpushare: {line}", file=sys.stderr, flush=True)
