"""``gpushare admin install|uninstall``: the coordinators as a service for a group of users."""

from __future__ import annotations

import os
import re
import sys
from typing import Annotated

import typer

from gpushare._settings import config
from gpushare._settings.devices import CPU, CUDA, is_device_name
from gpushare._settings.settings import SETTINGS
from gpushare.admin import service
from gpushare.admin.files import Tree
from gpushare.admin.gpus import GpuError, find_gpus
from gpushare.admin.hands import Hands, systemd_runs
from gpushare.admin.program import default_program
from gpushare.admin.unit import SERVICE_USER
from gpushare.cli.exit_code import ExitCode

_GROUP_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_DRY = typer.Option("--dry-run", help="Only print each file and each command.")
_ROOT = typer.Option(help="Write below this folder, and change nothing else: for packages.")


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand and its own subcommands."""
    group = typer.Typer(
        help="Install the coordinators as a service for a group of users, or remove it.",
        no_args_is_help=True,
    )
    group.command(name="install")(install)
    group.command(name="uninstall")(uninstall)
    app.add_typer(group, name="admin")


def install(  # noqa: PLR0917 - a parameter is an option; typer calls it by names
    group: Annotated[str, typer.Option(help="The group whose members may use the coordinators.")],
    device: Annotated[
        list[str] | None,
        typer.Option(
            help="cpu, cuda (all GPUs together) or cuda:UUID; may be repeated. By default "
            "all GPUs, or the CPU."
        ),
    ] = None,
    capacity: Annotated[
        str,
        typer.Option(
            help="Device memory that jobs share. For GPUs the default is the smallest one's memory."
        ),
    ] = "",
    daemon: Annotated[
        str, typer.Option(help="The gpushared to run; by default this package's.")
    ] = "",
    dry_run: Annotated[bool, _DRY] = False,
    root: Annotated[str, _ROOT] = "",
) -> None:
    """Install the coordinator of all GPUs, or of the CPU, as a service that a group may use."""
    if _GROUP_NAME.fullmatch(group) is None:
        raise typer.BadParameter(f"{group!r} is no name of a group")
    if group == SERVICE_USER:
        raise typer.BadParameter(
            f"the service's user is called {group}, and a group of that name would be removed with "
            "it: say another"
        )
    capacities = _check_capacity(device or [], capacity)
    tree = _tree(root)
    if not dry_run and not root:
        _require_root("install")
    wish = _wish(group, device or [], capacities, daemon)
    for note in service.check(wish, tree):
        print(note, file=sys.stderr)
    hands = Hands(tree, is_dry=dry_run, is_for_here=not root)
    # Where systemd does not run, its commands are printed and not called.
    has_systemd = dry_run or bool(root) or systemd_runs()
    service.install(wish, tree, hands, has_systemd=has_systemd)
    if dry_run or root:
        return
    names = ", ".join(service.members(group)) or "nobody yet"
    print(f"members of {group}: {names}. To add one: usermod -aG {group} NAME")


def uninstall(
    remove_group: Annotated[
        bool, typer.Option("--remove-group", help="The group, too, if it was made for this.")
    ] = False,
    dry_run: Annotated[bool, _DRY] = False,
    root: Annotated[str, _ROOT] = "",
) -> None:
    """Remove the service, and each file that nobody has changed since."""
    tree = _tree(root)
    if not dry_run and not root:
        _require_root("uninstall")
    hands = Hands(tree, is_dry=dry_run, is_for_here=not root)
    has_systemd = dry_run or bool(root) or systemd_runs()
    service.uninstall(tree, hands, has_systemd=has_systemd, remove_group=remove_group)


def _wish(group: str, devices: list[str], capacities: dict[str, str], daemon: str) -> service.Wish:
    names: tuple[str, ...] = ()
    if not devices or CUDA in devices:
        gpus = find_gpus()
        if CUDA in devices and not gpus:
            raise GpuError("--device cuda: nvidia-smi finds no GPU. Say --device cuda:UUID")
        if CUDA in devices or len(gpus) > 1:
            names = tuple(gpu.device for gpu in gpus)
        devices = devices or ([CUDA] if names else [gpu.device for gpu in gpus] or [CPU])
        if gpus and CUDA not in capacities:
            capacities = {CUDA: f"{min(gpu.memory_mib for gpu in gpus)}MiB"}
    return service.Wish(
        program=daemon or default_program(config.daemon_path()),
        group=group,
        devices=tuple(dict.fromkeys(devices)),
        gpus=names,
        capacities=capacities,
    )


def _check_capacity(devices: list[str], capacity: str) -> dict[str, str]:
    for device in devices:
        if device != CUDA and not is_device_name(device):
            raise typer.BadParameter(
                f"--device {device!r}: neither cpu, cuda, nor cuda:UUID as nvidia-smi -L says"
            )
    if not capacity:
        return {}
    kinds = {device.partition(":")[0] for device in devices}
    if len(kinds) != 1:
        raise typer.BadParameter("--capacity is of one kind of device: say --device, too")
    kind = kinds.pop()
    setting = next(each for each in SETTINGS if each.key == f"device.{kind}.capacity")
    try:
        setting.parse(capacity)
    except (ValueError, TypeError, OverflowError) as error:
        raise typer.BadParameter(f"--capacity {capacity!r}: {setting.refusal(error)}") from error
    return {kind: capacity}


def _tree(root: str) -> Tree:
    if root and not os.path.isdir(root):  # noqa: PTH112
        raise typer.BadParameter(f"--root {root}: no such folder")
    return Tree(os.path.abspath(root) if root else "")  # noqa: PTH100


def _require_root(command: str) -> None:
    if os.geteuid() == 0:
        return
    print(
        f"gpushare: only root may do that. To see what it would do: gpushare admin {command} "
        "--dry-run",
        file=sys.stderr,
    )
    raise typer.Exit(ExitCode.ERROR)
