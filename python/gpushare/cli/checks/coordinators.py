"""Which coordinators answer, and who uses the device without one?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpushare._coordinator.client import PROTOCOL_VERSION, CoordinatorClient
from gpushare._settings import config
from gpushare._settings.devices import CUDA
from gpushare.cli._targets.coordinators import find_sockets
from gpushare.cli.checks.finding import Finding
from gpushare.cli.units import format_bytes
from gpushare.errors import CoordinatorUnreachable


def check_coordinators(settings: config.Config) -> list[Finding]:
    """Looks at the sockets that jobs would try, and at those where another coordinator may be."""
    used = config.socket_paths(settings)
    if not used:
        return [
            Finding(
                "coordinator",
                "warn",
                'the settings say socket = "none", so every job runs unmanaged',
                "Unset GPUSHARE_SOCKET to share the device",
            )
        ]
    reports = ask_all([*used, *_other_paths(used)])
    findings = [_check_used(used, reports)]
    if len(reports) > 1:
        findings.append(
            Finding(
                "second coordinator",
                "warn",
                f"{len(reports)} coordinators share one device and know nothing of each other: "
                + ", ".join(reports),
                "Stop all but one: GPUSHARE_SOCKET=PATH gpushare coordinator stop",
            )
        )
    for path in used:
        if path in reports:
            findings += check_report(reports[path])
            break
    return findings + _check_cuda(settings)


def ask_all(paths: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Returns the report of each coordinator that answers, by its socket."""
    reports = {}
    for path in dict.fromkeys(paths):
        try:
            reports[path] = CoordinatorClient([path]).status()
        except CoordinatorUnreachable:
            continue
    return reports


def check_report(report: dict[str, Any]) -> list[Finding]:
    """Judges what a coordinator says about itself and its neighbours."""
    findings = []
    protocol = report["coordinator"]["protocol"]
    if protocol != PROTOCOL_VERSION:
        findings.append(
            Finding(
                "protocol",
                "fail" if protocol < PROTOCOL_VERSION - 1 else "warn",
                f"the coordinator speaks protocol {protocol}, this package {PROTOCOL_VERSION}",
                "gpushare coordinator stop; the next job starts one of this version",
            )
        )
    else:
        findings.append(Finding("protocol", "ok", f"{protocol} on both sides"))
    unmanaged = report["unmanaged"]
    if unmanaged:
        resident = format_bytes(sum(process["resident_bytes"] for process in unmanaged))
        pids = ", ".join(str(process["pid"]) for process in unmanaged)
        findings.append(
            Finding(
                "unmanaged",
                "warn",
                f"{len(unmanaged)} processes use torch here without turns: pid {pids}, {resident}",
                "Start them with gpushare run, or leave room for them: lower the capacity",
            )
        )
    return findings


def _check_cuda(settings: config.Config) -> list[Finding]:
    """One line for each CUDA device whose coordinator answers."""
    if settings.socket:
        return []
    findings = []
    for sockets in find_sockets(settings, CUDA):
        for path, report in ask_all(sockets.paths).items():
            about = report["coordinator"]
            text = f"{path} answers: pid {about['pid']}, {about['version']}"
            findings.append(Finding(f"coordinator of {sockets.device}", "ok", text))
    return findings


def _check_used(used: Sequence[str], reports: dict[str, dict[str, Any]]) -> Finding:
    for path in used:
        if path in reports:
            about = reports[path]["coordinator"]
            return Finding(
                "coordinator", "ok", f"{path} answers: pid {about['pid']}, {about['version']}"
            )
    # The client's own words say why each does not answer.
    try:
        CoordinatorClient(used).status()
    except CoordinatorUnreachable as error:
        level = "fail" if "permission denied" in str(error) else "ok"
        return Finding("coordinator", level, str(error))  # type: ignore[arg-type]
    return Finding("coordinator", "ok", f"one has just started at {used[-1]}")


def _other_paths(used: Sequence[str]) -> list[str]:
    """Where else a coordinator of this machine may listen."""
    usual = config.socket_paths(replace(config.Config(), socket=""))
    fallback = f"/tmp/gpushare-{os.geteuid()}/sock"
    return [path for path in [*usual, fallback] if path not in used]
