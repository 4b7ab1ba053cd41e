"""A profile of torch.profiler beside a trace of the coordinator."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.e2e.asking import wait_until
from tests.support.job_process import JobProcess

if TYPE_CHECKING:
    from tests.e2e.conftest import Coordinator

WAIT = "gpushare: waiting for the device"
PROFILED = """
import sys
import gpushare, torch
from torch.profiler import profile
model = torch.nn.Linear(4, 4)
job = gpushare.register(model, torch.optim.SGD(model.parameters(), 0.1))
print("{}", flush=True)
sys.stdin.readline()

def steps(num):
    for _ in range(num):
        model(torch.ones(1, 4)).sum().backward()
        job.step()

with profile() as first:
    steps(1)
with profile() as second:
    steps(20)
first.export_chrome_trace(sys.argv[1])
waits = [any(event.name == sys.argv[2] for event in seen.events()) for seen in (first, second)]
print('{"done": true, "waits": %s}' % str(waits).lower(), flush=True)
sys.stdin.readline()
"""


def test_a_profile_shows_the_wait_and_lies_in_the_lease_of_the_trace(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    env = coordinator()
    profile, trace, both = (tmp_path / name for name in ("profile.json", "trace.json", "both.json"))
    words = [sys.executable, "-m", "gpushare", "trace"]
    script = [sys.executable, "-c", PROFILED, str(profile), WAIT]
    with JobProcess(command=script, env=env) as job:
        job.say()
        record = [*words, "record", "-o", str(trace), "--seconds", "60"]
        with subprocess.Popen(record, env=env, stdout=subprocess.DEVNULL) as recorder:
            wait_until(trace.exists)  # it has looked once
            said = job.go().say()
            recorder.send_signal(signal.SIGINT)
        job.go()
    assert said["waits"] == [True, False], "only the first iteration waited for a lease"
    merge = [*words, "merge", str(trace), str(profile), "-o", str(both)]
    subprocess.run(merge, env=env, check=True, stdout=subprocess.DEVNULL)
    events = json.loads(both.read_text())["traceEvents"]
    (wait,) = (event for event in events if event.get("name") == WAIT and event["ph"] == "X")
    lease = next(event for event in events if event.get("name") == "lease")
    granted = wait["ts"] + wait["dur"]
    assert wait["ts"] - 5e3 < lease["ts"] < granted + 5e3, "one clock, to 5 ms"
    assert granted < lease["ts"] + lease["dur"]
