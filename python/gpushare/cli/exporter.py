"""``gpushare exporter``: the coordinators' figures as metrics for Prometheus."""

from __future__ import annotations

from importlib import resources
from typing import Annotated

import typer

from gpushare._settings import config
from gpushare.cli._exporter.asking import Coordinators
from gpushare.cli._exporter.server import serve
from gpushare.cli._targets.coordinators import find_sockets
from gpushare.cli._targets.option import DeviceOption
from gpushare.extras import check_installed


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="exporter")(exporter)


def exporter(
    port: Annotated[
        int, typer.Option(help="The port to listen on; 0 for any.", min=0, max=65535)
    ] = 9825,
    address: Annotated[
        str, typer.Option(help="The address to listen on, of this machine.")
    ] = "127.0.0.1",
    device: DeviceOption = "",
    dashboard: Annotated[
        bool, typer.Option("--dashboard", help="Print a board for Grafana instead.")
    ] = False,
) -> None:
    """Serve metrics for Prometheus, until Ctrl-C. Each scrape asks each coordinator once."""
    if dashboard:
        board = resources.files("gpushare.cli._exporter") / "grafana.json"
        print(board.read_text(encoding="utf-8"), end="")
        return
    check_installed("the exporter", "exporter", "prometheus_client")
    settings = config.load()
    find_sockets(settings, device)  # says what is wrong with the device's name
    is_named = bool(device or settings.socket)
    coordinators = Coordinators(lambda: find_sockets(settings, device), is_named=is_named)
    serve(coordinators, address, port)
