"""``gpushare pause``, ``resume`` and ``policy``, and the same in Python."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from gpushare._settings.settings import POLICIES
from tests.python.command_line import gpushare, needs_daemon, run_as_job
from tests.python.fake_coordinator import FakeCoordinator, make_job, make_report

if TYPE_CHECKING:
    from pathlib import Path


def _report(**job: Any) -> dict[str, Any]:
    report = make_report()
    report["devices"][0]["jobs"] = [make_job(4, "vit", **job)]
    return report


@pytest.mark.parametrize(
    ("verb", "state", "is_paused", "said"),
    [
        ("pause", "paused", True, "job 4 (vit): paused\n"),
        ("pause", "closing", True, "job 4 (vit): paused, from its next boundary on\n"),
        ("resume", "waiting", False, "job 4 (vit): resumed, waiting\n"),
    ],
)
def test_a_job_is_paused_and_resumed_by_its_name(
    tmp_path: Path, verb: str, state: str, is_paused: bool, said: str
) -> None:
    with FakeCoordinator(tmp_path / "sock", _report(state=state)) as fake:
        ended = gpushare(verb, "vit", socket=fake.path)
        assert fake.requests[-1] == {"v": 1, "type": "set", "job": 4, "is_paused": is_paused}
        as_json = gpushare(verb, "4", "--json", socket=fake.path)
    assert (ended.returncode, ended.stdout) == (0, said)
    assert json.loads(as_json.stdout) == {"schema_version": 1, **make_job(4, "vit", state=state)}


def _group_report() -> dict[str, Any]:
    mine = os.getuid()
    report = make_report()
    report["devices"][0]["jobs"] = [
        make_job(4, "a", group="sweep", uid=mine),
        make_job(5, "b", group="sweep", uid=mine + 1),
        make_job(6, "c", group="other", uid=mine),
        make_job(7, "d", group="sweep", uid=mine),
    ]
    return report


@pytest.mark.parametrize(
    ("arguments", "change"),
    [
        (["pause"], {"is_paused": True}),
        (["resume"], {"is_paused": False}),
        (["set", "--weight", "3"], {"weight": 3.0}),
    ],
)
def test_a_group_is_the_users_own_jobs_in_it(
    tmp_path: Path, arguments: list[str], change: dict[str, Any]
) -> None:
    verb, *options = arguments
    with FakeCoordinator(tmp_path / "sock", _group_report()) as fake:
        ended = gpushare(verb, "@sweep", *options, "--json", socket=fake.path)
        asked = [request for request in fake.requests if request["type"] == "set"]
        empty = gpushare(verb, "@nobody", *options, socket=fake.path)
    assert ended.returncode == 0, ended.stderr
    assert [json.loads(line)["job"] for line in ended.stdout.splitlines()] == [4, 7]
    assert asked == [{"v": 1, "type": "set", "job": number, **change} for number in (4, 7)]
    assert (empty.returncode, empty.stdout) == (4, "")
    assert "no job of yours is in the group nobody. See: " in empty.stderr


def test_a_group_whose_jobs_still_start_is_said(tmp_path: Path) -> None:
    report = _group_report()
    report["devices"][0]["jobs"] = [make_job(4, "", state="starting")]
    with FakeCoordinator(tmp_path / "sock", report) as fake:
        ended = gpushare("pause", "@sweep", socket=fake.path)
    assert ended.returncode == 4
    assert "group sweep; 1 job still starts and has no group yet. See: " in ended.stderr


def test_a_refused_job_of_a_group_does_not_hinder_the_others(tmp_path: Path) -> None:
    refusal = {"v": 1, "type": "refused", "reason": "there is no job 4"}
    with FakeCoordinator(tmp_path / "sock", _group_report(), refusal, _group_report()) as fake:
        ended = gpushare("pause", "@sweep", socket=fake.path)
    assert (ended.returncode, ended.stdout) == (4, "job 7 (d): paused\n")
    assert ended.stderr == "gpushare: job 4 is not changed: there is no job 4\n"


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_what_is_wrong_is_said(tmp_path: Path, verb: str) -> None:
    refusal = {
        "v": 1,
        "type": "refused",
        "reason": "user 64007 may not change job 4 (vit) of user 64008",
    }
    with FakeCoordinator(tmp_path / "sock", _report(), refusal) as fake:
        ended = gpushare(verb, "vit", socket=fake.path)
    assert (ended.returncode, ended.stderr) == (4, f"gpushare: {refusal['reason']}\n")
    with FakeCoordinator(tmp_path / "other", _report()) as fake:
        ended = gpushare(verb, "bert", socket=fake.path)
    assert ended.returncode == 4
    assert "no job is named bert" in ended.stderr
    ended = gpushare(verb, "vit", socket=f"{tmp_path}/none")
    assert ended.returncode == 3
    assert ended.stderr.startswith("gpushare: no coordinator answers. Tried: ")


def test_policies_are_shown_and_changed(tmp_path: Path) -> None:
    with FakeCoordinator(tmp_path / "sock", make_report()) as fake:
        shown = gpushare("policy", socket=fake.path)
        assert fake.requests[-1] == {"v": 1, "type": "status_request"}
        as_json = gpushare("policy", "--json", socket=fake.path)
        gpushare("policy", "rr", socket=fake.path)
        assert fake.requests[-1] == {"v": 1, "type": "set_policy", "policy": "rr"}
    assert shown.stdout == "cpu: fair (or: fifo, rr)\n"
    assert json.loads(as_json.stdout) == {
        "schema_version": 1,
        "devices": [{"device": "cpu", "policy": "fair", "policies": ["fifo", "rr", "fair"]}],
    }


def test_policy_without_a_coordinator_is_exit_3(tmp_path: Path) -> None:
    ended = gpushare("policy", "rr", socket=f"{tmp_path}/none")
    assert ended.returncode == 3
    assert ended.stderr.startswith("gpushare: no coordinator answers. Tried: ")


def test_without_a_coordinator_the_policies_can_be_seen(tmp_path: Path) -> None:
    ended = gpushare("policy", socket=f"{tmp_path}/none")
    assert ended.returncode == 3
    assert ended.stdout == f"the policies are: {', '.join(POLICIES)}\n"
    as_json = gpushare("policy", "--json", socket=f"{tmp_path}/none")
    assert as_json.returncode == 3
    assert json.loads(as_json.stdout) == {"schema_version": 1, "devices": []}


JOB = """
import gpushare, gpushare.errors, subprocess, sys, threading
def tell(*options):
    ended = subprocess.run(
        [sys.executable, "-m", "gpushare", *options], capture_output=True, text=True, check=False)
    print(ended.returncode, ended.stdout or ended.stderr, end="")
job = gpushare.register(name="small")
tell("policy", "rr")
with job.iteration():
    job.pause()
tell("pause", "small")
def resume():
    tell("resume", "small")
    job.resume()
threading.Thread(target=resume).start()
with job.iteration():
    print("goes on")
gpushare.set_policy("fair")
tell("policy")
tell("policy", "best")
for name in ("best", "x" * 300):
    try:
        gpushare.set_policy(name)
    except gpushare.errors.GpushareError as error:
        print(str(error)[:40])
job.close()
try:
    job.pause()
except gpushare.errors.GpushareError as error:
    print(error)
"""


@needs_daemon
def test_a_running_job_is_paused_and_the_policy_changed() -> None:
    ended = run_as_job(JOB)
    lines = ended.stdout.splitlines()
    assert lines[:2] == ["0 cpu: rr", "0 job 1 (small): paused"], ended.stderr
    # Two threads say these.
    assert {line.split(",")[0] for line in lines[2:4]} == {"0 job 1 (small): resumed", "goes on"}
    assert lines[4].startswith("0 cpu: fair (or: fifo, rr")
    assert lines[5].startswith("2 gpushare: policy best: allowed: fair, rr, fifo, srtf")
    assert lines[6:] == [
        "no policy is called 'best': use one of f",
        "set_policy: field policy has 300 B, must",
        "job 'small' is closed; gpushare.register() makes a new one",
    ]
