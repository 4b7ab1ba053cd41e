"""Registers this process at its coordinator, or says once why it goes on unmanaged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gpushare import _install, _native
from gpushare._coordinator import gangs
from gpushare._coordinator.client import CoordinatorClient
from gpushare._coordinator.required import exit_if_uncaught
from gpushare._settings.arguments import wire_settings
from gpushare._settings.config import socket_paths
from gpushare._torch import model_device
from gpushare._torch.fingerprint import fingerprint
from gpushare.errors import CoordinatorUnreachable, GpushareError, say_once

if TYPE_CHECKING:
    import torch

_OPTIONS_BESIDE = (
    "name",
    "group",
    "elastic_threads",
    "fingerprint",
    "gang",
    "rank",
    "ranks",
    "arbiter",
)
"""Options of a registration that are no settings of the job at its coordinator."""
_LEVELS_THAT_WARN = ("", "debug", "info", "warn")


def register(options: dict[str, Any], wish: str, model: torch.nn.Module | None) -> int:
    """Returns the job's number, or 0 after saying why there is none.

    Args:
        options: Of ``arguments.job_options``.
        wish: The device that is asked for; "": that of the settings.
        model: Its fingerprint is the profile's, unless a profile is named.

    Raises:
        GpushareError: There is none, and GPUSHARE_REQUIRE=1.
    """
    try:
        _install.install(wish)
        model_device.refuse_elsewhere(model)
        if not socket_paths(_native.settings()):
            raise CoordinatorUnreachable("GPUSHARE_SOCKET=none: no coordinator is to be used")
        name = options.pop("profile")
        options["fingerprint"] = fingerprint(model, name, device=_native.device())
        options |= gangs.options(options["gang"], _native.device())
        number = _register(options)
        if options["deadline_seconds"]:
            _say_deadline_note(number)
        return number
    except GpushareError as error:
        return _go_unmanaged(error)


def join_gang(options: dict[str, Any]) -> int:
    """Registers anew as one of several ranks; returns as ``register``, and raises as that.

    Args:
        options: Of the registration before, which had no gang.
    """
    _native.load().unregister_job()
    try:
        return _register(options | gangs.options("", _native.device()))
    except GpushareError as error:
        return _go_unmanaged(error)


def _register(options: dict[str, Any]) -> int:
    native = _native.load()
    number: int = native.register_job(
        settings=json.dumps(wire_settings(options)),
        **{name: options[name] for name in _OPTIONS_BESIDE},
    )
    native.set_log_level(_native.settings().log_level or _install.DEFAULT_LOG_LEVEL)
    return number


def _say_deadline_note(number: int) -> None:
    """Says once that the device's policy keeps to no deadlines, where that is so."""
    client = CoordinatorClient(_native.sockets())
    try:
        devices = client.status()["devices"]
    except GpushareError:  # it has ended since, and the job finds another one
        return
    for device in devices:
        for row in device["jobs"]:
            if row["job"] == number and row.get("deadline_note"):
                say_once(row["deadline_note"])


def _go_unmanaged(error: GpushareError) -> int:
    """Says once why, where nobody else did and nobody asked for that; 0, as a job's number."""
    config = _native.settings()
    if config.require:
        exit_if_uncaught(error)
        raise error
    what_now = "Training goes on unmanaged. GPUSHARE_REQUIRE=1 makes this fatal"
    # The compiled module has said the reason when it looked for a coordinator, if it may.
    is_said = isinstance(error, CoordinatorUnreachable) and config.log_level in _LEVELS_THAT_WARN
    if socket_paths(config):
        say_once(what_now if is_said else f"{error}. {what_now}")
    return 0
