"""``gpushare set`` and ``job.set``: what is asked, what is said, and for real."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gpushare._settings.settings import POLICIES
from tests.python.command_line import gpushare, needs_daemon, run_as_job
from tests.python.fake_coordinator import FakeCoordinator, make_job, make_report

if TYPE_CHECKING:
    from pathlib import Path


def test_only_what_is_said_is_changed(tmp_path: Path) -> None:
    report = make_report()
    report["devices"][0]["jobs"] = [make_job(4, "vit", priority="guaranteed", weight=2.0)]
    with FakeCoordinator(tmp_path / "sock", report) as fake:
        ended = gpushare("set", "vit", "--priority", "guaranteed", socket=fake.path)
        asked = fake.requests[-1]
    assert asked == {"v": 1, "type": "set", "job": 4, "priority": "guaranteed"}
    assert ended.stdout == (
        "job 4 (vit): priority guaranteed, weight 2, memory limit none, deadline none, "
        "share limit none\n"
    )


def test_all_of_it_goes_in_one_request(tmp_path: Path) -> None:
    report = make_report()
    row = make_job(4, "vit", memory_limit_bytes=3 << 29, deadline_seconds=0.05, share_limit=0.3)
    report["devices"][0]["jobs"] = [row]
    with FakeCoordinator(tmp_path / "sock", report) as fake:
        limits = ("--memory-limit", "1.5GiB", "--share-limit", "0.3")
        options = ("--weight", "0.5", *limits, "--elastic-limits", "--deadline", "50ms", "--json")
        ended = gpushare("set", "4", *options, socket=fake.path)
        asked = fake.requests[-1]
    assert asked == {
        "v": 1,
        "type": "set",
        "job": 4,
        "weight": 0.5,
        "memory_limit_bytes": 3 << 29,
        "deadline_ns": 50_000_000,
        "share_limit": 0.3,
        "is_elastic": True,
    }
    assert json.loads(ended.stdout) == {"schema_version": 1, **row}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "nothing to change: say --priority, --weight, --memory-limit, --deadline,"),
        ((), "--share-limit, --elastic-limits, --hard-limits or --policy"),
        (("--priority", "high"), "priority: 'high'; allowed: guaranteed"),
        (("--weight", "0"), "weight: 0.0; allowed"),
        (("--deadline", "soon"), "deadline: 'soon'; allowed"),
        (("--deadline", "50"), "deadline: '50'; say 50ms or 50s"),
        (("--memory-limit", "2"), "memory_limit: '2'; say 2GiB or 2MiB (2 bytes are 2B)"),
        (("vit", "--weight", "2"), "set takes one job or @GROUP, not vit too"),
        (("--policy", "soon"), "policy soon: allowed: fair, rr"),
        (("--share-limit", "2"), "share_limit: '2'; allowed"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(
    tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    with FakeCoordinator(tmp_path / "sock", make_report()) as fake:
        ended = gpushare("set", "gpt", *options, socket=fake.path)
        assert not fake.requests
    assert ended.returncode == 2
    assert said in ended.stderr


def test_a_policy_is_said_alone(tmp_path: Path) -> None:
    report = make_report()
    report["devices"][0]["jobs"] = [make_job(4, "vit", device="cpu")]
    with FakeCoordinator(tmp_path / "sock", report) as fake:
        both = gpushare("set", "vit", "--policy", "srtf", "--weight", "2", socket=fake.path)
        assert [each["type"] for each in fake.requests] == []
        ended = gpushare("set", "vit", "--policy", "srtf", socket=fake.path)
        asked = fake.requests[-1]
    assert both.returncode == 2
    assert "say it alone" in both.stderr
    assert asked == {"v": 1, "type": "set_policy", "policy": "srtf"}
    assert ended.stdout == "job 4 (vit): policy srtf, for all jobs of cpu\n"


def test_without_a_coordinator_is_exit_3(tmp_path: Path) -> None:
    ended = gpushare("set", "gpt", "--weight", "2", socket=f"{tmp_path}/none")
    assert ended.returncode == 3
    assert ended.stderr.startswith("gpushare: no coordinator answers. Tried: ")


JOB = """
import gpushare, gpushare.errors, subprocess, sys
job = gpushare.register(name="small", deadline="2s", share_limit=0.5, elastic_limits=True)
def tell(*options):
    ended = subprocess.run(
        [sys.executable, "-m", "gpushare", "set", "small", *options],
        capture_output=True, text=True, check=False)
    print(ended.stdout or ended.stderr, end="")
tell("--weight", "3")
job.set(priority="interactive", memory_limit="64MiB", deadline="50ms")
tell("--weight", "4", "--hard-limits")
try:
    job.set(weight=1e9, priority="normal")
except gpushare.errors.GpushareError as error:
    print(error)
tell("--memory-limit", "none", "--deadline", "none", "--share-limit", "none")
tell("--policy", "srtf")
tell("--policy", "soon")
"""


@needs_daemon
def test_a_running_job_is_changed() -> None:
    ended = run_as_job(JOB)
    assert ended.stdout.splitlines() == [
        "job 1 (small): priority normal, weight 3, memory limit none, deadline 2.0 s, "
        "share limit 0.5, limits elastic",
        "job 1 (small): priority interactive, weight 4, memory limit 64.0 MiB, deadline 50 ms, "
        "share limit 0.5",
        "weight 1e+09; allowed: 1e-06 to 1e+06",
        "job 1 (small): priority interactive, weight 4, memory limit none, deadline none, "
        "share limit none",
        "job 1 (small): policy srtf, for all jobs of cpu",
        f"gpushare: policy soon: allowed: {', '.join(POLICIES)}. See: gpushare set --help",
    ], ended.stderr
