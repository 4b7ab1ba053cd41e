"""``gpushare doctor``: one line a thing that can be wrong, with what to do."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Annotated

import typer

from gpushare._settings import config
from gpushare._settings.config_files import files
from gpushare._settings.config_notes import config_notes, user_notes
from gpushare.cli.checks.checksum import check_checksum
from gpushare.cli.checks.coordinators import check_coordinators
from gpushare.cli.checks.finding import Finding
from gpushare.cli.checks.machine import Machine, check_machine
from gpushare.cli.checks.mps import check_mps
from gpushare.cli.checks.package import check_package
from gpushare.cli.exit_code import ExitCode
from gpushare.errors import ConfigError


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="doctor")(doctor)


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check package, torch, coordinator and machine. Exit 1 if something keeps it from working."""
    findings = []
    for finding in examine():
        findings.append(finding)
        if not as_json:
            print(finding.render(), flush=True)
    if as_json:
        report = {"schema_version": 1, "findings": [asdict(finding) for finding in findings]}
        print(json.dumps(report))
    if any(finding.level == "fail" for finding in findings):
        raise typer.Exit(ExitCode.ERROR)


def examine() -> Iterator[Finding]:
    """Runs all checks, the quick ones first."""
    yield from check_package()
    try:
        settings = config.load()
    except ConfigError as error:
        yield Finding("settings", "fail", str(error))
        return
    notes = [*config_notes(os.environ), *user_notes(os.environ)]
    if not notes:
        read = [path for path, _ in files(os.environ) if os.path.exists(path)]  # noqa: PTH110
        yield Finding("settings", "ok", f"read from {', '.join(read)}" if read else "no file")
    for note in notes:
        yield Finding("settings", "warn", note)
    checks: list[Callable[[], list[Finding]]] = [
        lambda: check_coordinators(settings),
        lambda: check_machine(settings, Machine()),
        lambda: check_mps(os.environ),
        lambda: check_checksum(settings),
    ]
    for check in checks:
        yield from check()
