"""A job larger than its limit goes on in the host tier, where that is asked for, and comes back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from gpushare._coordinator.client import CoordinatorClient
from tests.e2e.asking import status
from tests.support.job_process import JobProcess

Coordinator = Callable[..., dict[str, str]]

MIB = 1 << 20
PATIENCE_SECONDS = 60.0


def _job(env: dict[str, str]) -> JobProcess:
    flags = ["--mib", "96", "--iterations", "3"]
    return JobProcess(*flags, env=env, module="tests.e2e.host_tier_job")


def _row(env: dict[str, str]) -> dict[str, Any]:
    return status(env)["devices"][0]["jobs"][0]


def _wait_until_nothing_overflows(env: dict[str, str]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while (row := _row(env))["overflow_bytes"] > 0:
        assert time.monotonic() < end, row
        time.sleep(0.05)


def test_without_it_the_text_names_it(coordinator: Coordinator) -> None:
    env = coordinator(capacity="256MiB") | {"GPUSHARE_MEMORY_LIMIT": "64MiB"}
    with _job(env) as job:
        error = job.wait_ready().go().say()["error"]
    assert error.startswith("OutOfMemoryError: ")
    assert "GPUSHARE_OVERFLOW=1" in error


def test_a_job_beyond_its_limit_goes_on_and_comes_back(coordinator: Coordinator) -> None:
    env = coordinator(capacity="256MiB")
    limits = {"GPUSHARE_MEMORY_LIMIT": "64MiB", "GPUSHARE_OVERFLOW": "1"}
    with _job(env | limits) as job:
        assert job.wait_ready().go().say() == {"iteration": 0}
        job.go()
        assert job.say() == {"iteration": 1}
        stats = _row(env)
        assert stats["resident_bytes"] <= 64 * MIB
        CoordinatorClient([env["GPUSHARE_SOCKET"]]).set_job(stats["job"], {"memory_limit_bytes": 0})
        _wait_until_nothing_overflows(env)
        assert _row(env)["resident_bytes"] >= 96 * MIB
        assert job.go().say() == {"iteration": 2}
        outcome = job.go().say()
    assert (outcome["error"], outcome["is_intact"]) == ("", True)
