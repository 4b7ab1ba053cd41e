"""Runs a trace under several policies, and compares what came out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

SCHEMA_VERSION = 1
COMPARED = ("average", "median", "p95", "worst")


def native() -> ModuleType:
    """Returns the compiled module, without making this process a job.

    Raises:
        GpushareError: It cannot be loaded.
    """
    from gpushare import _native

    # torch comes with it, and its allocator would be ours; read when torch is loaded. Not for the
    # processes that this one starts.
    is_ours = "GPUSHARE_DISABLE" not in os.environ
    os.environ.setdefault("GPUSHARE_DISABLE", "1")
    try:
        return _native.load()
    finally:
        if is_ours:
            del os.environ["GPUSHARE_DISABLE"]


def run(
    trace: str,
    policies: Sequence[str],
    machine: Mapping[str, str],
    *,
    jobs: bool = False,
    leases: bool = False,
) -> list[dict[str, Any]]:
    """Simulates a trace once under each policy.

    Args:
        trace: Its text.
        policies: Names of policies.
        machine: The fields of a scenario's device line but for the policy, by name.
        jobs: Reports have a row of each job.
        leases: And one of each lease.

    Returns:
        The reports, in the order of the policies.

    Raises:
        ValueError: A policy, a field or a line is none; the text says which.
        GpushareError: A simulation does not end.
        KeyboardInterrupt: Ctrl-C.
    """
    module = native()
    reports = []
    for policy in policies:
        # Blanks part the fields, and no value needs one: "16 GiB" is 16GiB.
        fields = " ".join(f"{name}={''.join(value.split())}" for name, value in machine.items())
        text = module.simulate_trace(f"policy={policy} {fields}", trace, jobs=jobs, leases=leases)
        reports.append(json.loads(text))
    return reports


def ratios(reports: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float | None]]:
    """Returns the first report's completion times over those of each: above 1 is better."""
    first = reports[0]["completion_seconds"]
    return {
        report["policy"]: {
            name: _ratio(first, report["completion_seconds"], name) for name in COMPARED
        }
        for report in reports
    }


def bound_over(report: Mapping[str, Any]) -> float | None:
    """Returns the least average completion that is possible over the report's: 1 at most."""
    completion = report["completion_seconds"]
    if completion is None or not completion["average"]:
        return None
    return float(report["bound_seconds"] / completion["average"])


def _ratio(first: Mapping[str, float] | None, other: Mapping[str, float] | None, name: str) -> Any:
    if first is None or other is None or not other[name]:
        return None
    return first[name] / other[name]
