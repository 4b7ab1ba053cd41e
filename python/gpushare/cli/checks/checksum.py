"""Does memory come back as it was? Tried in a process of its own, which imports torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from gpushare.cli.checks.finding import Finding
from gpushare.cli.checks.machine import Machine, check_capacity
from gpushare.cli.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from gpushare._settings.config import Config

_TIMEOUT_SECONDS = 120.0
_MODULE = "gpushare.cli.checks.checksum_job"


def check_checksum(settings: Config) -> list[Finding]:
    """Runs the process and judges what it says, and what depends on which device it found."""
    # Without a coordinator: this is about torch, the allocator and the copies alone.
    environment = {key: value for key, value in os.environ.items() if key != "GPUSHARE_DISABLE"}
    environment |= {"GPUSHARE_SOCKET": "none", "GPUSHARE_CAPACITY": "", "GPUSHARE_LOG": "error"}
    try:
        finished = subprocess.run(
            [sys.executable, "-m", _MODULE],
            env=environment,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return [Finding("checksum", "fail", f"did not end within {_TIMEOUT_SECONDS:g} s")]
    if finished.returncode != 0:
        return [judge_failure(finished.returncode, finished.stderr)]
    result = json.loads(finished.stdout.splitlines()[-1])
    cuda_bytes = result["cuda"] and result["cuda"]["total_bytes"]
    return judge(result) + check_capacity(settings, cuda_bytes, Machine())


def judge_failure(code: int, error_text: str) -> Finding:
    """Says why the process failed: the last line it wrote has the reason."""
    lines = error_text.strip().splitlines()
    reason = lines[-1].removeprefix("gpushare.errors.GpushareError: ") if lines else "no output"
    return Finding("torch", "fail", f"exit code {code}: {reason}")


def judge(result: dict[str, Any]) -> list[Finding]:
    """Judges torch, the allocator and the copies."""
    findings = [
        Finding("torch", "ok", f"{result['torch']}, module built for {result['built_for_torch']}")
    ]
    cuda = result["cuda"]
    if cuda is not None:
        findings.append(judge_cuda(cuda))
    kind = "CPU" if cuda is None else "CUDA"
    if not result["is_live"]:
        findings.append(
            Finding(
                "allocator",
                "fail",
                "torch's tensors do not come from gpushare's allocator",
                f"Does something else set torch's {kind} allocator?",
            )
        )
        return findings
    findings.append(Finding("allocator", "ok", f"torch's {kind} tensors come from gpushare's"))
    size, seconds = result["spilled_bytes"], result["seconds"]
    if not (result["has_same_bytes"] and result["has_same_address"]) or not size:
        text = "memory came back changed" if size else "nothing was spilled"
        return [*findings, Finding("checksum", "fail", text, "Please report this as a bug")]
    rate = f"{format_bytes(round(2 * size / seconds))}/s" if seconds > 0 else "at once"
    text = f"{format_bytes(size)} out and back in {format_seconds(seconds)} ({rate}), same bytes"
    return [*findings, Finding("checksum", "ok", text)]


def judge_cuda(cuda: dict[str, Any]) -> Finding:
    """Judges the device and what is between it and torch; installing has refused the rest."""
    driver = f"{cuda['driver'] // 1000}.{cuda['driver'] % 1000 // 10}"
    text = f"{cuda['device']} ({cuda['name']}), driver of CUDA {driver}, torch {cuda['torch_cuda']}"
    if not cuda["is_intact"]:
        return Finding(
            "cuda",
            "fail",
            f"{text}; another tool has replaced torch's cudaMalloc after gpushare did",
            "Take it out: LD_PRELOAD, profilers and memory tools do that",
        )
    spilled = "can be reached" if cuda["can_reach_spilled"] else "is not mapped"
    return Finding(
        "cuda",
        "ok",
        f"{text}, cudaMalloc is gpushare's, expandable segments are off, spilled memory {spilled}",
    )
