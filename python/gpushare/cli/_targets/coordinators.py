"""The coordinators that a user's jobs may find: each device has its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gpushare._coordinator.client import ANSWER_SECONDS, CoordinatorClient, RefusedError
from gpushare._coordinator.faults import describe_fault
from gpushare._settings import config
from gpushare._settings.devices import CPU, CUDA, device_of_socket, is_device_name, kind_of
from gpushare.errors import ConfigError, CoordinatorUnreachable

NO_SOCKETS = "no CUDA device is shared here. The first job on one starts its coordinator"
"""Why nobody answers where ``find_sockets`` finds nothing; the CPU always has sockets to try."""
_LISTS = ("devices", "unmanaged", "warnings", "decisions")
"""The lists of a report whose rows name their device."""


class DeviceSockets(NamedTuple):
    """Where the coordinator of one device may listen."""

    device: str
    """Its name; "cuda" for those of a coordinator of several, "" for all devices of a coordinator
    whose socket the settings name."""
    paths: list[str]
    """In the order in which jobs try them."""


class Answer(NamedTuple):
    """What one coordinator says."""

    sockets: DeviceSockets
    report: dict[str, Any]


def find_sockets(settings: config.Config, device: str = "") -> list[DeviceSockets]:
    """Returns the sockets of each device, whether or not anybody listens there.

    Args:
        settings: Of this process.
        device: Only this one: a name, or "cuda" for all of that kind; "" for all. Without it the
            CPU is first, and CUDA devices are those that have a socket. Whether the coordinator at
            a socket that the settings name has it, its answer says: see ``of_device``.

    Raises:
        ConfigError: It is no name that a command can know.
    """
    name = named_device(device, f"--device {device}") if device not in {"", CUDA} else ""
    if settings.socket:
        return [DeviceSockets(device, config.socket_paths(settings))]
    if name:
        return [DeviceSockets(name, _sockets_of(settings, name))]
    names = [] if device else [CPU]
    found = {
        device_of_socket(name) for folder in config.socket_folders() for name in _files_in(folder)
    }
    names += sorted(found - {""})
    return [DeviceSockets(name, config.own_socket_paths(settings, name)) for name in names]


def _sockets_of(settings: config.Config, device: str) -> list[str]:
    """Returns a device's sockets, without those of coordinators that have others and not this."""
    own = config.own_socket_paths(settings, device)
    shared = [path for path in config.socket_paths(settings, device) if path not in own]
    return [path for path in shared if _has_device(path, device)] + own


def _has_device(path: str, device: str) -> bool:
    """Tells whether the coordinator at a socket has it; one that does not say may have it."""
    try:
        report = CoordinatorClient([path]).status()
    except CoordinatorUnreachable:
        return True
    return any(row["device"] == device for row in report["devices"])


def find_whole(settings: config.Config, device: str) -> list[DeviceSockets]:
    """Returns the same as ``find_sockets``, for a change that holds for a whole coordinator.

    If a device is named, the coordinator is first asked which it has: nothing is sent to one that
    has another.

    Args:
        settings: Of this process.
        device: As for ``find_sockets``.

    Raises:
        ConfigError: It is no name that a command can know.
        CoordinatorUnreachable: A device is named, and nobody answers or has it.
        RefusedError: Its coordinator has other devices, too.
    """
    sockets = find_sockets(settings, device)
    has_whole = any(not config.is_of_one_device(path) for each in sockets for path in each.paths)
    if device and has_whole:
        whole = [each._replace(device="") for each in sockets]
        for answer in ask_each(whole):
            names = [row["device"] for row in answer.report["devices"]]
            if len(of_device(answer.report, device)["devices"]) < len(names):
                raise RefusedError(
                    f"{device} has a coordinator in common with other devices "
                    f"({', '.join(names)}), and this is done to all of them. Leave --device out"
                )
    return sockets


def of_device(report: dict[str, Any], device: str) -> dict[str, Any]:
    """Returns what a coordinator says of one device.

    Args:
        report: What it says of all its devices.
        device: A device's name; "cpu" or "cuda" for all devices of that kind, "" for all.

    Raises:
        CoordinatorUnreachable: The coordinator does not have that device.
    """
    names = [row["device"] for row in report.get("devices", [])]
    kept = {name for name in names if name == device or device == kind_of(name)}
    if not device or len(kept) == len(names):
        return report
    if not kept:
        raise CoordinatorUnreachable(
            f"no coordinator has the device {device}. The one that answers has {', '.join(names)}"
        )
    return report | {
        key: [row for row in report[key] if row.get("device", device) in kept]
        for key in _LISTS
        if key in report
    }


def lacking_text(error: Exception) -> str:
    """Returns why a report is of no use, for the error that reading it has raised."""
    return (
        f"the report lacks what is expected of it: {describe_fault(error)}. Its coordinator may be "
        "of another version. Start it anew: gpushare coordinator stop --force"
    )


def named_device(device: str, shown: str) -> str:
    """Returns a device's name as it is.

    Args:
        device: The name.
        shown: The same as it was said, for the error.

    Raises:
        ConfigError: It is a word like "cuda:1", which differs between processes.
    """
    if is_device_name(device):
        return device
    raise ConfigError(
        f"{shown}: a command does not know which device that is. Say cpu, cpu:NUMBER, or "
        "cuda:UUID as nvidia-smi -L or gpushare status shows it"
    )


def ask_each(
    sockets: Sequence[DeviceSockets],
    ask: Callable[[CoordinatorClient], dict[str, Any]] = CoordinatorClient.status,
    timeout_seconds: float = ANSWER_SECONDS,
) -> list[Answer]:
    """Returns what the coordinators say that answer, one of each device.

    Args:
        sockets: Where to look.
        ask: The question; the answer is a report.
        timeout_seconds: The longest wait for each answer.

    Raises:
        CoordinatorUnreachable: None answers, or one took the question and did not answer.
    """
    if not sockets:
        raise CoordinatorUnreachable(NO_SOCKETS)
    answers = []
    for each in sockets:
        client = CoordinatorClient(each.paths, timeout_seconds)
        try:
            answers.append(Answer(each, of_device(ask(client), each.device)))
        except CoordinatorUnreachable:
            if _is_anybody_there(client):
                raise
    if not answers:
        # The client's words say what was tried.
        paths = [path for each in sockets for path in each.paths]
        ask(CoordinatorClient(paths, timeout_seconds))
    return answers


def without_doubles(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """Returns the reports without unmanaged processes that are jobs elsewhere, or in two of them.

    Each coordinator knows only its own jobs.
    """
    seen = {
        job["pid"]
        for answer in answers
        for device in answer.report["devices"]
        for job in device["jobs"]
    }
    reports = []
    for answer in answers:
        unmanaged = [row for row in answer.report["unmanaged"] if row["pid"] not in seen]
        seen |= {row["pid"] for row in unmanaged}
        reports.append({**answer.report, "unmanaged": unmanaged})
    return reports


def merge_reports(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns one report of all devices, in the form of one coordinator's.

    ``coordinator`` is the first one's; ``coordinators`` has all.
    """
    merged = {**reports[0], "coordinators": [report["coordinator"] for report in reports]}
    if len(reports) == 1:
        return merged
    for key in ("devices", "unmanaged", "warnings", "decisions"):
        merged[key] = [row for report in reports for row in report.get(key, [])]
    for key in ("unmanaged_unreadable", "jobs_left_out"):
        numbers = [report[key] for report in reports if key in report]
        if numbers:
            merged[key] = max(numbers) if key == "unmanaged_unreadable" else sum(numbers)
    return merged


def _files_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - pathlib costs start-up time
    except OSError:
        return []


def _is_anybody_there(client: CoordinatorClient) -> bool:
    try:
        connection, _ = client.connect()
    except CoordinatorUnreachable:
        return False
    connection.close()
    return True
