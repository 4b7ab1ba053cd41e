"""Runs the program of ``gpushare verify`` once and reads what it recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpushare.cli._options.environment import add_inject_folder, make_environment


class VerifyError(Exception):
    """The program gave nothing that could be compared."""


@dataclass(frozen=True)
class Record:
    """One run's hashes."""

    losses: list[str]
    """A hash a backward pass's root, in order."""
    parameters: list[dict[str, Any]]
    """Shape, dtype and hash of each parameter at exit, in the order of the optimizers' steps."""
    num_optimizer_steps: int
    """Steps of all optimizers."""
    seconds: float
    """From start to exit of the program."""
    spilled_bytes: int
    """Moved to the host tier and back; 0 without gpushare."""


def alone_environment(base: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a run on torch's own allocator, without gpushare."""
    environment = {key: value for key, value in base.items() if key != "GPUSHARE_RUN"}
    environment["GPUSHARE_DISABLE"] = "1"
    add_inject_folder(environment)
    return environment


def spilling_environment(base: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a run whose memory is spilled and restored at each boundary."""
    environment = make_environment({}, base)
    environment.pop("GPUSHARE_DISABLE", None)
    environment["GPUSHARE_FORCE_SPILL"] = "1"
    return environment


def run_recorded(command: list[str], environment: Mapping[str, str], path: Path) -> Record:
    """Runs a program and returns what it recorded.

    Args:
        command: The program and its arguments. Its standard output goes to our standard error.
        environment: As made by one of the functions above.
        path: Where the program writes its record; must not exist.

    Raises:
        VerifyError: The program failed, did not train, or trained in several processes.
    """
    finished = subprocess.run(
        command,
        env={**environment, "GPUSHARE_RECORD": str(path)},
        stdout=sys.stderr.fileno(),
        check=False,
    )
    if finished.returncode != 0:
        raise VerifyError(f"the program ended with exit code {finished.returncode}: {command}")
    records = sorted(path.parent.glob(f"{path.name}*"))
    if not records:
        raise VerifyError(
            "the program made no backward pass and no optimizer step that could be seen. Is it a "
            f"Python program that imports torch? {command}"
        )
    if len(records) > 1:
        raise VerifyError(
            f"{len(records)} processes of the program trained; verify compares programs of one"
        )
    return parse_record(json.loads(path.read_text()))


def parse_record(record: dict[str, Any]) -> Record:
    """Reads the JSON that ``gpushare._torch.recorder`` writes."""
    job = record["job"] or {}
    return Record(
        losses=record["losses"],
        parameters=record["parameters"],
        num_optimizer_steps=record["num_optimizer_steps"],
        seconds=record["seconds"],
        spilled_bytes=job.get("spilled_total_bytes", 0),
    )


def base_environment() -> dict[str, str]:
    """Returns this process's environment without an earlier verify's settings."""
    return {key: value for key, value in os.environ.items() if key != "GPUSHARE_RECORD"}
