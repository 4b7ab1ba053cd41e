"""docs/status_json.md names each key of ``gpushare status --json``; ids and times are right."""

from __future__ import annotations

import json
import re
import time
from datetime import datetime, timezone
from typing import Any

from gpushare.cli._status.stamps import host_job_id, utc_text, with_stamps
from tests.python.command_line import needs_daemon, run_as_job
from tests.python.conftest import ROOT
from tests.python.fake_coordinator import make_report

DOCUMENT = (ROOT / "docs" / "status_json.md").read_text()

JOB = """
import gpushare, json, subprocess, sys, time
job = gpushare.register(name="small")
def iterate():
    with job.iteration():
        pass
def tell(*words):
    command = [sys.executable, "-m", "gpushare", *words]
    return subprocess.run(command, capture_output=True, text=True).stdout
iterate()
print(tell("status", "--json"), end="")
tell("coordinator", "stop", "--force")
while True:
    iterate()
    report = json.loads(tell("status", "--json"))
    if any(device["jobs"] for device in report["devices"]):
        break
    time.sleep(0.1)
print(json.dumps(report))
"""


def _documented(title: str) -> set[str]:
    """Keys in the table below a title."""
    section = DOCUMENT.split(f"\n## {title}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return {key for cell in cells for key in re.findall(r"`(\w+)`", cell)}


def _titles(report: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The objects of a report, each below the title of its table."""
    devices = report["devices"]
    return {
        "The object": [report],
        "A coordinator": [report["coordinator"], *report["coordinators"]],
        "A device": devices,
        "What the jobs need together": [device["admission"] for device in devices],
        "A lane": [lane for device in devices for lane in device["lanes"]],
        "A job": [job for device in devices for job in device["jobs"]],
        "A user": [user for device in devices for user in device["users"]],
        "A process that is no job": report["unmanaged"],
        "A warning": report["warnings"],
        "A decision": report["decisions"],
    }


@needs_daemon
def test_the_document_names_each_key_and_the_id_survives_a_restart() -> None:
    began = time.time()
    ended = run_as_job(JOB)
    assert ended.returncode == 0, ended.stderr
    first, second = map(json.loads, ended.stdout.splitlines())
    # Not each machine has strangers or warnings; these are the keys in the coordinator's code.
    first["unmanaged"] = [{**dict.fromkeys(("pid", "device", "uid", "resident_bytes", "command"))}]
    first["warnings"] = [{"device": "cpu", "text": ""}]
    for title, objects in _titles(first).items():
        keys = {key for each in objects for key in each}
        assert objects, title
        assert keys == _documented(title) - {"jobs_left_out"}, title
    (job,), (again,) = first["devices"][0]["jobs"], second["devices"][0]["jobs"]
    assert first["coordinator"]["epoch"] != second["coordinator"]["epoch"]
    assert re.fullmatch("[0-9a-f]{12}", job["id"])
    assert (job["id"], job["pid"]) == (again["id"], again["pid"])
    for text in (first["time"], first["coordinator"]["started"], first["decisions"][0]["time"]):
        said = datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
        assert began - 60 < said < time.time() + 1, text


def test_a_time_is_utc_with_milliseconds() -> None:
    moment = datetime(2026, 11, 20, 12, 0, 0, 250_000, timezone.utc)
    assert utc_text(moment.timestamp()) == "2026-11-20T12:00:00.250Z"


def test_an_id_is_the_one_of_the_accounts() -> None:
    # FNV-1a of "1 2 boot", less its last 16 bits.
    number = 0xCBF29CE484222325
    for letter in b"1 2 boot":
        number = ((number ^ letter) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    assert host_job_id(1, 2, "boot") == f"{number:016x}"[:12]


def test_where_processes_have_other_numbers_no_id_is_made_up() -> None:
    report = with_stamps(make_report())  # its coordinator's number is another program's here
    jobs = report["devices"][0]["jobs"]
    assert [(job["id"], job["started"]) for job in jobs] == [(None, None)] * 2
