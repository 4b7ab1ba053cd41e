"""Installs and removes the service: accounts, files, units, in an order that can be repeated."""

from __future__ import annotations

import grp
import pwd
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpushare._accounts.folders import SYSTEM_FOLDER as ACCOUNTS_FOLDER
from gpushare._settings import config
from gpushare._settings.config_files import SYSTEM_FILE, read_table
from gpushare._settings.devices import CPU
from gpushare.admin.files import RECORD_PATH, Record, Tree
from gpushare.admin.program import check_program, check_python
from gpushare.admin.settings_file import settings_text
from gpushare.admin.unit import (
    GPUS_PATH,
    SERVICE_USER,
    UNIT_PATH,
    gpus_text,
    instance,
    unit_text,
)
from gpushare.errors import GpushareError

if TYPE_CHECKING:
    from gpushare.admin.hands import Hands


class NotInstalledError(GpushareError):
    """There is nothing to remove."""


class CapacityError(GpushareError):
    """A coordinator could not start: it cannot find out how much memory a GPU has."""


class SocketGroupError(GpushareError):
    """A coordinator could not start: the unit does not let it give its socket to a group."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What is to be installed."""

    program: str
    """The absolute path of ``gpushared``."""
    group: str
    """Whose members may use the coordinators."""
    devices: tuple[str, ...]
    """A coordinator each; "cuda" is one for ``gpus``."""
    gpus: tuple[str, ...]
    """The devices of the coordinator of several."""
    capacities: dict[str, str]
    """The device memory to share, by kind of device, where it is said."""


def check(wish: Wish, tree: Tree) -> list[str]:
    """Looks before anything is written whether the service will be able to start.

    Returns:
        What the administrator should know.

    Raises:
        ProgramError: The program is out of the service's reach.
        CapacityError: A GPU's memory is said nowhere.
        NoTextError: The settings file that is there is not UTF-8.
        ConfigError: It cannot be read.
        SocketGroupError: It keeps the service from starting.
    """
    group_id = _group_id(wish.group)
    notes = check_program(wish.program, group_id) + check_python(sys.executable, group_id)
    record = tree.read_record() or Record()
    has_gpu = any(device != CPU for device in wish.devices)
    if tree.read(SYSTEM_FILE) is None or tree.is_own(SYSTEM_FILE, record):
        if has_gpu and "cuda" not in _capacities(wish, tree, record):
            raise CapacityError("how much memory the GPUs have is not known here: say --capacity")
        return notes
    place = str(tree.at(SYSTEM_FILE))
    settings = config.load({"GPUSHARE_CONFIG": place})
    if has_gpu and settings.cuda_capacity_bytes == 0:
        raise CapacityError(
            f"{place} was changed by hand and is kept: say there how much memory the GPUs have, "
            "with capacity under [device.cuda]"
        )
    coordinator = read_table(place, must_exist=True).get("coordinator")
    if isinstance(coordinator, dict) and "socket_group" in coordinator:
        raise SocketGroupError(
            f"{place}: the service cannot start with socket_group under [coordinator]; its socket "
            f"belongs to {wish.group} without it"
        )
    return notes


def install(wish: Wish, tree: Tree, hands: Hands, *, has_systemd: bool) -> None:
    """Installs the service, or changes the one that is there to what is wished now.

    Args:
        wish: What is to be there.
        tree: Where.
        hands: That do it.
        has_systemd: Whether units can be started.
    """
    record = tree.read_record() or Record()
    former = [device for device in record.devices if device not in wish.devices]
    settings = settings_text(_capacities(wish, tree, record))
    try:
        _add_accounts(wish.group, hands, record)
        unit = unit_text(program=wish.program, group=wish.group)
        is_changed = hands.write(UNIT_PATH, unit, record)
        is_changed |= hands.write(SYSTEM_FILE, settings, record)
        if wish.gpus:
            is_changed |= hands.write(GPUS_PATH, gpus_text(wish.gpus), record)
        elif GPUS_PATH in record.files:
            hands.remove(GPUS_PATH, record)
        record.devices = [*wish.devices, *former]
    finally:  # what is there by now can be removed, even if a step failed
        hands.save(record)
    units = [instance(device) for device in wish.devices]
    if not has_systemd:
        print(f"systemd does not run here, so nothing was started: {', '.join(units)}")
        return
    hands.run("systemctl", "daemon-reload")
    for device in former:
        hands.run("systemctl", "disable", "--now", instance(device))
        record.devices.remove(device)
        hands.save(record)
    hands.run("systemctl", "enable", *units)
    # A start leaves one alone that runs already.
    hands.run("systemctl", "restart" if is_changed else "start", *units)


def uninstall(tree: Tree, hands: Hands, *, has_systemd: bool, remove_group: bool) -> None:
    """Removes what an installation made; files that were changed since are kept.

    A removal that failed can be repeated: the record is written anew after each step.

    Raises:
        NotInstalledError: Nothing was installed.
    """
    record = tree.read_record()
    if record is None:
        raise NotInstalledError(f"nothing is installed: there is no {tree.at(RECORD_PATH)}")
    if has_systemd:
        _remove_units(tree, hands, record)
    for path in list(record.files):
        hands.remove(path, record)
        hands.save(record)
    if has_systemd:
        hands.run("systemctl", "daemon-reload")
    else:
        print(f"left      {config.SYSTEM_FOLDER}, which is gone after the next boot")
    if tree.has(ACCOUNTS_FOLDER):
        print(f"left      {ACCOUNTS_FOLDER}, the accounts of finished jobs")
    for user in list(record.users):
        if _has_user(user):
            hands.run("userdel", user)
        else:
            print(f"is gone   user {user}")
        record.users.remove(user)
        hands.save(record)
    for group in list(record.groups):
        if _group_id(group) is None:
            print(f"is gone   group {group}")
        elif remove_group:
            hands.run("groupdel", group)
        else:
            print(f"left      group {group}; to remove it: groupdel {group}")
        record.groups.remove(group)
        hands.save(record)
    hands.finish_uninstall(RECORD_PATH, record)


def members(group: str) -> list[str]:
    """Returns the names of a group's members, without those whose own group it is."""
    return grp.getgrnam(group).gr_mem if _group_id(group) is not None else []


def _remove_units(tree: Tree, hands: Hands, record: Record) -> None:
    units = [instance(device) for device in record.devices]
    if units and tree.has(UNIT_PATH):
        hands.run("systemctl", "disable", "--now", *units)
        hands.run("systemctl", "clean", "--what=runtime", units[0])
    elif units:  # one that runs is known by its name alone; a pattern may match none
        hands.run("systemctl", "stop", instance("*"))
    record.devices.clear()
    hands.save(record)


def _capacities(wish: Wish, tree: Tree, record: Record) -> dict[str, str]:
    """Returns the capacities of the present settings file, overridden by those of the wish."""
    former: dict[str, str] = {}
    if tree.is_own(SYSTEM_FILE, record):
        devices = read_table(str(tree.at(SYSTEM_FILE)), must_exist=True).get("device", {})
        former = {kind: table["capacity"] for kind, table in devices.items()}
    return former | wish.capacities


def _add_accounts(group: str, hands: Hands, record: Record) -> None:
    # Files for another machine: nothing is known of the accounts there.
    needs_group = not hands.is_for_here or _group_id(group) is None
    if needs_group and hands.run("groupadd", "--system", group):
        record.groups = [*dict.fromkeys([*record.groups, group])]
    needs_user = not hands.is_for_here or not _has_user(SERVICE_USER)
    options = ["--system", "--no-user-group", "--gid", group, "--no-create-home"]
    options += ["--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin"]
    if needs_user and hands.run("useradd", *options, SERVICE_USER):
        record.users = [SERVICE_USER]


def _group_id(name: str) -> int | None:
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return None


def _has_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
