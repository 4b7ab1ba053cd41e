"""Each panel of the board for Grafana shows what the coordinator says, by a real Prometheus.

Two jobs of 8 MiB take turns on a device of 12 MiB. Then one stays inside an iteration and the
other waits, so that most figures stand still. Some move on: what Prometheus has read lies between
two status reports, one from before that scrape and one from after it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes import job_environment
from tests.e2e.asking import row_of, status, wait_until
from tests.support.job_process import JobProcess
from tests.support.prometheus import Prometheus, prometheus

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="prometheus is missing: apt-get install prometheus"
)

WINDOW_SECONDS = 60
Labels = tuple[str, ...]
Values = dict[Labels, float]
Device = dict[str, Any]
Scene = tuple[dict[str, str], Prometheus, list[JobProcess]]


def _jobs(field: str) -> Callable[[Device], Values]:
    """A field of each job, by its name."""
    return lambda device: {(job["name"],): job[field] for job in device["jobs"]}


def _sum(device: Device, field: str) -> float:
    return sum(job[field] for job in device["jobs"])


def _states(device: Device) -> Values:
    states = [job["state"] for job in device["jobs"]]
    return {(state,): states.count(state) for state in states}


# What each query should give, by the values of the labels in its legend. `rate` is that of a
# counter, so the counter stands here.
EXPECTED: dict[str, Callable[[Device], Values]] = {
    "gpushare_up": lambda device: {("cpu",): 1},
    "gpushare_jobs": lambda device: {("cpu", *key): n for key, n in _states(device).items()},
    "gpushare_warnings": lambda device: {("cpu",): device["num_warnings"]},
    "gpushare_device_busy_ratio": lambda device: {("cpu",): device["busy"]},
    "gpushare_switches_total": lambda device: {("cpu",): device["switches"]},
    "gpushare_last_handover_seconds": lambda device: {("cpu",): device["last_handover_seconds"]},
    "gpushare_job_holds_lease": lambda device: {
        (job["name"],): job["job"] == device["lanes"][0]["holder"] for job in device["jobs"]
    },
    "gpushare_job_share_ratio": _jobs("share"),
    "gpushare_job_waiting_seconds": lambda device: {
        (job["name"],): job["waiting_seconds"] for job in device["jobs"] if job["waiting_seconds"]
    },
    "gpushare_job_wait_seconds_total": _jobs("waited_seconds"),
    "gpushare_job_iterations_total": _jobs("iterations"),
    "gpushare_device_memory_bytes": lambda device: {
        ("cpu", "resident"): _sum(device, "resident_bytes"),
        ("cpu", "spilled"): _sum(device, "spilled_bytes"),
        ("cpu", "shared"): device["lanes"][0]["pool_bytes"],
        ("cpu", "free"): max(device["free_bytes"], 0),
        ("cpu", "withheld"): device["withheld_bytes"],
    },
    "gpushare_device_memory_capacity_bytes": lambda device: {("cpu",): device["capacity_bytes"]},
    'gpushare_job_memory_bytes state="resident"': _jobs("resident_bytes"),
    'gpushare_job_memory_bytes state="spilled"': _jobs("spilled_bytes"),
    "gpushare_job_moved_bytes_total": lambda device: {
        ("cpu", "spilled"): _sum(device, "spilled_total_bytes"),
        ("cpu", "restored"): _sum(device, "restored_total_bytes"),
    },
    "gpushare_host_memory_bytes": lambda device: {
        ("cpu", "ram"): device["host_used_bytes"] - device["host_file_used_bytes"],
        ("cpu", "file"): device["host_file_used_bytes"],
    },
    "gpushare_host_memory_budget_bytes": lambda device: {
        ("cpu", "ram"): device["host_budget_bytes"] - device["host_file_budget_bytes"]
    },
    "gpushare_user_memory_bytes": lambda device: {
        (user["name"] or _own_name(),): user["memory_bytes"] for user in device["users"]
    },
    "gpushare_unmanaged_memory_bytes": lambda device: {(): device["unmanaged_bytes"]},
}


def _own_name() -> str:
    return subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()


def _key(query: str) -> str:
    """The metric of a query; with its state where that tells it from another query."""
    (name,) = re.findall(r"gpushare_\w+", query)
    state = re.search(r',(state="\w+")', query)
    return f"{name} {state[1]}" if state else name


def _targets() -> list[tuple[str, str]]:
    """Query and legend of each line of each panel."""
    text = (resources.files("gpushare.cli._exporter") / "grafana.json").read_text()
    return [
        (target["expr"], target["legendFormat"])
        for panel in json.loads(text)["panels"]
        for target in panel.get("targets", [])
    ]


def _device(env: dict[str, str]) -> Device:
    """The device as `gpushare status --json` says it, with what stands beside it."""
    words = [sys.executable, "-m", "gpushare", "status", "--json"]
    ended = subprocess.run(
        words, env=job_environment(env), capture_output=True, text=True, check=True
    )
    report = json.loads(ended.stdout)
    (device,) = report["devices"]
    unmanaged = sum(row["resident_bytes"] for row in report["unmanaged"])
    return {**device, "num_warnings": len(report["warnings"]), "unmanaged_bytes": unmanaged}


@contextmanager
def _exporter(env: dict[str, str]) -> Iterator[str]:
    words = [sys.executable, "-m", "gpushare", "exporter", "--port", "0"]
    with subprocess.Popen(
        words, env=job_environment(env), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split("/")[2]
        finally:
            process.kill()


def _tell(job: JobProcess, line: str) -> None:
    assert job.process.stdin is not None
    job.process.stdin.write(line + "\n")
    job.process.stdin.flush()


def _by_legend(series: list[dict[str, Any]], legend: str) -> dict[Labels, dict[str, Any]]:
    """Series by what the legend shows of them; without the job's number, which is not known."""
    names = [name for name in re.findall(r"{{(\w+)}}", legend) if name != "job_number"]
    found = {tuple(each["metric"][name] for name in names): each for each in series}
    assert len(found) == len(series), f"{legend}: the legend does not tell the series apart"
    return found


def _check_rate(
    asked: Prometheus, query: str, legend: str, at: float, now: Callable[[Labels], list[float]]
) -> None:
    """Prometheus' rate is that of the samples, and the last sample is what the status says.

    Prometheus extends the samples' growth to the window's ends at most, so the rate is between the
    growth over the whole window and that over the samples' time.
    """
    inner = re.sub(r"rate\((.*?\])\)", r"\1", query)
    counter = re.search(r"gpushare_\w+{.*?}", inner)
    assert counter is not None
    samples = asked.query(f"{counter[0]}[{WINDOW_SECONDS}s]", at)
    rates = _by_legend(asked.query(query, at), legend)
    names = [name for name in re.findall(r"{{(\w+)}}", legend) if name != "job_number"]
    assert {tuple(each["metric"][name] for name in names) for each in samples} == set(rates)
    for labels, rate in rates.items():
        mine = [
            [(float(when), float(value)) for when, value in each["values"]]
            for each in samples
            if tuple(each["metric"][name] for name in names) == labels
        ]
        grown = [values[-1][1] - values[0][1] for values in mine]
        times = [values[-1][0] - values[0][0] for values in mine]
        least = sum(grown) / WINDOW_SECONDS
        most = sum(growth / taken for growth, taken in zip(grown, times, strict=True))
        assert least * 0.999 <= float(rate["value"][1]) <= most * 1.001, (query, labels)
        low, high = sorted(now(labels))
        assert low <= sum(values[-1][1] for values in mine) <= high, (query, labels)


@pytest.fixture
def scene(coordinator: Callable[..., dict[str, str]], tmp_path: Path) -> Iterator[Scene]:
    """One job is inside an iteration, the other one waits; both have trained in turns."""
    env = coordinator(capacity="12MiB", policy="rr", min_quantum="0", lanes="off", linger="60s")
    with ExitStack() as stack:
        server = stack.enter_context(prometheus(stack.enter_context(_exporter(env)), tmp_path))
        jobs = [
            stack.enter_context(
                JobProcess(
                    *("--name", name, "--mib", "8"),
                    env=env,
                    module="tests.e2e.metrics_job",
                )
            )
            for name in ("first", "second")
        ]
        for job in jobs:
            job.wait_ready()
        server.scraped_after(0)  # so that the rates begin before the training
        for job in jobs:
            job.go()
        wait_until(lambda: all(job["restored_total_bytes"] for job in _jobs_of(env)))
        _tell(jobs[0], "hold")
        assert jobs[0].say() == {"holds": True}
        wait_until(lambda: row_of(env, jobs[1])["state"] == "waiting")
        # It is asked for its lease by then, and stays so.
        wait_until(lambda: row_of(env, jobs[0])["state"] == "closing")
        # Memory that the holder did not need may still be on its way.
        wait_until(lambda: _is_still(env))
        yield env, server, jobs


def _jobs_of(env: dict[str, str]) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = status(env)["devices"][0]["jobs"]
    return jobs


def _is_still(env: dict[str, str]) -> bool:
    """Whether no memory moves for a moment."""
    fields = ("resident_bytes", "spilled_bytes", "spilled_total_bytes", "room_bytes")
    looks = []
    for _ in range(2):
        looks.append([[job[field] for field in fields] for job in _jobs_of(env)])
        time.sleep(0.2)
    return looks[0] == looks[1]


def test_each_panel_shows_what_the_coordinator_says(scene: Scene) -> None:
    env, server, jobs = scene
    before = _device(env)
    at = server.scraped_after(time.time())
    after = _device(env)
    targets = _targets()
    assert {_key(query) for query, _ in targets} == set(EXPECTED)
    # The scene is none in which all is 0.
    assert before["switches"] > 0
    assert _sum(before, "spilled_bytes") > 0
    assert _sum(before, "restored_total_bytes") > 0
    for query, legend in targets:
        expected = EXPECTED[_key(query)]
        bounds = [expected(before), expected(after)]
        asked = query.replace("$device", ".*").replace("$__rate_interval", f"{WINDOW_SECONDS}s")
        if "rate(" in asked:
            _check_rate(
                server, asked, legend, at, lambda labels, b=bounds: [each[labels] for each in b]
            )
            continue
        found = _by_legend(server.query(asked, at), legend)
        assert set(found) == set(bounds[0]) == set(bounds[1]), query
        for labels, series in found.items():
            low, high = sorted(each[labels] for each in bounds)
            assert low <= float(series["value"][1]) <= high, (query, labels)
    # Prometheus gives its own name of the scrape to the label `job`, and none to ours.
    (up,) = server.query("gpushare_up", at)
    assert up["metric"]["job"] == "gpushare"
    assert "exported_job" not in up["metric"]
    _end(jobs)
    wait_until(lambda: _jobs_of(env) == [])
    at = server.scraped_after(time.time())
    assert server.query("gpushare_job_holds_lease", at) == []
    assert [each["value"][1] for each in server.query("gpushare_up", at)] == ["1"]


def _end(jobs: list[JobProcess]) -> None:
    _tell(jobs[0], "go on")
    _tell(jobs[1], "end")
    for job in jobs:
        assert job.result() == {"done": True}
