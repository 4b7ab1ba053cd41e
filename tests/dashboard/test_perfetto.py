"""A recorded trace in Perfetto: its parser reads all of it, and it adds up to `gpushare report`.

Perfetto drops what it cannot place, and counts that as an error. So each file is asked for errors,
and for all that was recorded.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.processes import private_coordinator
from tests.dashboard.perfetto_kit import Perfetto, perfetto, web_folder
from tests.e2e.asking import status, wait_until
from tests.python.conftest import clean_environment
from tests.support.job_process import JobProcess

if TYPE_CHECKING:
    from playwright.sync_api import Browser

JOBS = ("first", "second", "third")
LEAST_SWITCHES = 12
SLICES = "slice join thread_track on track_id = thread_track.id join thread using (utid)"
WAIT_IN_PROFILE = "gpushare: waiting for the device"
Report = dict[str, Any]


@dataclass
class Recorded:
    """What the commands have written and said."""

    trace: Path
    merged: Path
    profile: Path
    reports: list[Report]
    """Of each job, as `gpushare report` prints it."""


def _words(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "gpushare", *arguments]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Three jobs that take turns, recorded from before the first one until after the last."""
    web_folder()  # skips before the jobs are run
    folder = tmp_path_factory.mktemp("recorded")
    files = [folder / name for name in ("trace.json", "both.json", "profile.json")]
    trace, merged, profile = files
    settings = {"capacity": "12MiB", "policy": "rr", "min_quantum": "5ms", "lanes": "off"}
    with private_coordinator(**settings, linger="60s") as env:
        environment = clean_environment(socket=env["GPUSHARE_SOCKET"], config=os.devnull) | env

        def gpushare(*arguments: str) -> str:
            return subprocess.run(
                _words(*arguments), env=environment, stdout=subprocess.PIPE, text=True, check=True
            ).stdout

        gpushare("coordinator", "start")
        record = _words("trace", "record", "-o", str(trace), "--seconds", "600")
        with subprocess.Popen(record, env=environment) as recorder:
            wait_until(trace.exists)  # it is made when the first answer has come
            _run_jobs(env, profile)
            wait_until(lambda: not status(env)["devices"][0]["jobs"])
            recorder.send_signal(signal.SIGINT)
        assert recorder.returncode == 0
        gpushare("trace", "merge", str(trace), str(profile), "-o", str(merged))
        told = [json.loads(gpushare("report", name, "--format", "json")) for name in JOBS]
    return Recorded(trace, merged, profile, [rows[0] for rows in told])


def _run_jobs(env: dict[str, str], profile: Path) -> None:
    env = env | {"GPUSHARE_DISABLE": "0"}
    with ExitStack() as stack:
        jobs = []
        for name in JOBS:
            words = ["--name", name, "--mib", "8"]
            words += ["--profile", str(profile)] if name == JOBS[0] else []
            job = JobProcess(*words, env=env, module="tests.e2e.metrics_job")
            jobs.append(stack.enter_context(job))
        for job in jobs:
            job.wait_ready()
        for job in jobs:
            job.go()
        wait_until(lambda: status(env)["devices"][0]["switches"] > LEAST_SWITCHES)
        for job in jobs:
            job.go()
        for job in jobs:
            job.result()


def _check_sums(opened: Perfetto, reports: list[Report]) -> None:
    """No slice was dropped, and each job's leases and bytes are those of its report."""
    assert (
        opened.query("select name, value from stats where severity = 'error' and value > 0") == []
    )
    leases = opened.query(
        "select thread.name, tid, count(*), sum(slice.dur), "
        f"sum(extract_arg(arg_set_id, 'args.granted') is null) from {SLICES} "
        "where slice.name = 'lease' group by 1, 2 order by 1"
    )
    wanted = [(row["name"], row["job"], row["leases"]) for row in reports]
    assert [each[:3] for each in leases] == wanted
    assert min(row["leases"] for row in reports) > 1
    for (*_, nanoseconds, num_without_reason), row in zip(leases, reports, strict=True):
        assert num_without_reason == 0
        assert nanoseconds / 1e9 == pytest.approx(row["held_seconds"], abs=1e-6)
    curves = dict(
        opened.query(
            "select counter_track.name, max(value) from counter "
            "join counter_track on track_id = counter_track.id group by 1"
        )
    )
    for row in reports:
        of_job = f"{row['name']} ({row['job']}) total bytes"
        for moved in ("spilled", "restored", "dropped"):
            assert curves[f"{of_job} {moved}"] == row[f"{moved}_bytes"] > 0


def test_leases_and_bytes_in_perfetto_are_those_of_the_report(
    browser: Browser, recorded: Recorded, pictures: Path
) -> None:
    with perfetto(browser, recorded.trace) as opened:
        _check_sums(opened, recorded.reports)
        tracks = opened.query(
            "select process.name, thread.name, thread.is_main_thread from thread_track "
            "join thread using (utid) join process using (upid) order by tid"
        )
        in_order = [row["name"] for row in sorted(recorded.reports, key=lambda row: row["job"])]
        memory = tracks[len(JOBS) :]
        assert tracks[: len(JOBS)] == [("gpushare cpu", name, 0) for name in in_order]
        assert {*memory} == {("gpushare cpu", "memory asked for", 0)}
        opened.page.get_by_text("gpushare cpu").first.wait_for()
        opened.page.screenshot(path=pictures / "perfetto.png")


def test_a_trace_that_is_merged_with_a_profile_loses_nothing(
    browser: Browser, recorded: Recorded, pictures: Path
) -> None:
    profile = json.loads(recorded.profile.read_text())
    pid = recorded.reports[0]["pid"]
    slices = [e["name"] for e in profile["traceEvents"] if (e["ph"], e["pid"]) == ("X", pid)]
    assert WAIT_IN_PROFILE in slices
    with perfetto(browser, recorded.merged) as opened:
        _check_sums(opened, recorded.reports)
        found = opened.query(
            f"select slice.name, count(*) from {SLICES} join process using (upid) "
            f"where pid = {pid} group by 1"
        )
        assert Counter(slices) <= Counter(dict(found))
        # The longest wait that the coordinator saw of this job is a wait in the profile.
        ((begin, end),) = opened.query(
            f"select ts, ts + slice.dur from {SLICES} where slice.name = 'waits for a lease' "
            f"and tid = {recorded.reports[0]['job']} order by slice.dur desc limit 1"
        )
        ((num_waits,),) = opened.query(
            f"select count(*) from slice where name = '{WAIT_IN_PROFILE}' "
            f"and ts < {end} and ts + dur > {begin}"
        )
        assert num_waits > 0
        opened.page.get_by_text("gpushare cpu").first.wait_for()
        opened.page.screenshot(path=pictures / "perfetto-merged.png")
