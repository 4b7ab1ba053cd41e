"""``gpushare dashboard``: a web page of this machine's devices and jobs, for its user alone.

Only `web.py` and `server.py` need starlette and uvicorn, once the page is served.
"""

from __future__ import annotations

from typing import Annotated

import typer

from gpushare._settings import config
from gpushare.cli._exporter.asking import Coordinators
from gpushare.cli._targets.coordinators import find_sockets
from gpushare.cli._targets.option import DeviceOption
from gpushare.cli.dashboard.server import serve
from gpushare.extras import check_installed


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="dashboard")(dashboard)


def dashboard(
    port: Annotated[
        int, typer.Option(help="The port to listen on; 0 for any.", min=0, max=65535)
    ] = 9826,
    device: DeviceOption = "",
) -> None:
    """Serve a web page of devices and jobs, for a browser on this machine, until Ctrl-C."""
    check_installed("the dashboard", "dashboard", "starlette", "uvicorn")
    settings = config.load()
    find_sockets(settings, device)  # says what is wrong with the device's name
    is_named = bool(device or settings.socket)
    serve(Coordinators(lambda: find_sockets(settings, device), is_named=is_named), port)
