"""A job's part of the SMs under MPS: set where that has an effect, said where it has none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpushare import errors
from gpushare._torch import mps

SHARE = mps.SMS_VARIABLE


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(mps, "say_once", lines.append)
    return lines


@pytest.fixture
def served(tmp_path: Path) -> dict[str, str]:
    """The environment of a process that CUDA would start under MPS."""
    os.mkfifo(tmp_path / "control")
    (tmp_path / "nvidia-cuda-mps-control.pid").write_text(f"{os.getpid()}\n")
    return {"CUDA_MPS_PIPE_DIRECTORY": str(tmp_path)}


def test_the_part_is_what_cuda_will_read(served: dict[str, str], said: list[str]) -> None:
    mps.limit_sms(0.255, is_started=False, environment=served)
    assert served[SHARE] == "25.5"
    mps.limit_sms(0.255, is_started=True, environment=served)
    assert said == [], "it has started with it"


def test_without_a_part_the_environments_own_stays(served: dict[str, str], said: list[str]) -> None:
    served[SHARE] = "70"
    mps.limit_sms(0.0, is_started=True, environment=served)
    assert (served[SHARE], said) == ("70", [])


def test_says_that_it_comes_too_late(served: dict[str, str], said: list[str]) -> None:
    mps.limit_sms(0.5, is_started=True, environment=served)
    assert SHARE not in served
    assert len(said) == 1
    assert "GPUSHARE_SM_SHARE=0.5: no effect, since CUDA has started already" in said[0]


def test_says_where_mps_does_not_run(tmp_path: Path, said: list[str]) -> None:
    environment = {"CUDA_MPS_PIPE_DIRECTORY": str(tmp_path)}
    mps.limit_sms(0.5, is_started=False, environment=environment)
    assert environment[SHARE] == "50", "it may run outside this container"
    assert len(said) == 1
    assert f"(no control daemon at {tmp_path})" in said[0]


def test_what_is_said_is_said_once(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for _ in range(2):
        environment = {"CUDA_MPS_PIPE_DIRECTORY": str(tmp_path)}
        mps.limit_sms(0.5, is_started=False, environment=environment)
    assert mps.say_once is errors.say_once
    assert capfd.readouterr().err.count("GPUSHARE_SM_SHARE=0.5") == 1
