"""``gpushare policy``: whom coordinators serve next, shown or changed while jobs run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpushare._settings import config
from gpushare._settings.settings import POLICIES
from gpushare.cli._options.settings import check_policy
from gpushare.cli._targets.completion import complete_policies
from gpushare.cli._targets.coordinators import ask_each, find_sockets, find_whole
from gpushare.cli._targets.option import DeviceOption
from gpushare.errors import CoordinatorUnreachable

if TYPE_CHECKING:
    from gpushare._coordinator.client import CoordinatorClient


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="policy")(policy)


def policy(
    name: Annotated[
        str,
        typer.Argument(
            help="The policy to use from now on; without it, show it.",
            autocompletion=complete_policies,
        ),
    ] = "",
    device: DeviceOption = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Show the policy of each device's coordinator and which there are, or change it."""
    if name:
        check_policy(name)

    def ask(client: CoordinatorClient) -> dict[str, Any]:
        return client.set_policy(name) if name else client.status()

    try:
        find = find_whole if name else find_sockets
        answers = ask_each(find(config.load(), device), ask)
    except CoordinatorUnreachable:
        if as_json:
            print(json.dumps({"schema_version": 1, "devices": []}))
        elif not name:
            print(f"the policies are: {', '.join(POLICIES)}")
        raise
    rows = [_row(each) for answer in answers for each in answer.report["devices"]]
    if as_json:
        print(json.dumps({"schema_version": 1, "devices": rows}))
        return
    for row in rows:
        others = ", ".join(each for each in row["policies"] if each != row["policy"])
        print(
            f"{row['device']}: {row['policy']}{f' (or: {others})' if others and not name else ''}"
        )


def _row(device: dict[str, Any]) -> dict[str, Any]:
    # A coordinator of an earlier version does not say which there are.
    return {
        "device": device["device"],
        "policy": device["policy"],
        "policies": device.get("policies", [device["policy"]]),
    }
