"""What `gpushare top` costs the core that it runs on, with 50 jobs and a look a second.

The command runs on a terminal of its own (a pty), beside a coordinator that answers at once with a
report of 50 jobs in which most figures of most jobs change from look to look. CPU time of its
process and threads is read from /proc, after the first looks; ratios are of one core.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import socket
import struct
import subprocess
import tempfile
import termios
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.processes import cpu_seconds, gpushare_command, job_environment
from benchmarks.report import Report

REPLY = Path(__file__).parent.parent / "tests" / "python" / "top" / "reply.json"
"""Of a real coordinator with three jobs."""
NUM_JOBS = 50
SIZES = ((80, 24), (120, 40), (200, 60))
WARM_UP_SECONDS = 4.0
RUN_SECONDS = 15.0


class _Coordinator:
    """Answers each question with a report in which time has passed."""

    def __init__(self, path: str) -> None:
        self._report = json.loads(REPLY.read_text())
        (device,) = self._report["devices"]
        rows = device["jobs"]
        device["jobs"] = [
            {**rows[number % len(rows)], "job": number + 1, "pid": 100_000 + number}
            for number in range(NUM_JOBS)
        ]
        self.num_answers = 0
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(path)
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                if connection.recv(65536):
                    self._pass_time()
                    report = json.dumps(self._report)
                    message = {"v": 1, "type": "status_report", "report": report}
                    connection.send(json.dumps(message).encode())
                    self.num_answers += 1

    def _pass_time(self) -> None:
        number = self.num_answers
        device: dict[str, Any] = self._report["devices"][0]
        device["busy"] = 0.9 + number % 10 / 100
        for place, job in enumerate(device["jobs"]):
            job["iterations"] += (number + place) % 5
            job["share"] = (number + place) % 97 / 100
            job["resident_bytes"] = ((number * 7 + place) % 40) << 20
            job["spilled_bytes"] = ((number * 5 + place) % 40) << 20
            job["iterations_per_second_alone"] = 5 + (number + place) % 13 / 10
            job["state"] = ("running", "waiting", "idle")[(number + place) % 3]


def _read_for(terminal: int, seconds: float) -> int:
    """Takes what the command writes, as a terminal does; how many bytes."""
    count = 0
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            count += len(os.read(terminal, 65536))
    return count


def _measure(size: tuple[int, int], seconds: float) -> dict[str, float]:
    """CPU seconds a second, and bytes written a look, of one `gpushare top` of that size."""
    with tempfile.TemporaryDirectory(prefix="gpushare-") as folder:
        path = f"{folder}/sock"
        coordinator = _Coordinator(path)
        env = job_environment({"GPUSHARE_SOCKET": path, "TERM": "xterm-256color"})
        width, height = size
        terminal, its_end = pty.openpty()
        fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        process = subprocess.Popen(
            gpushare_command("top"), env=env, stdin=its_end, stdout=its_end, stderr=its_end,
            start_new_session=True,
        )  # fmt: skip
        os.close(its_end)
        try:
            _read_for(terminal, WARM_UP_SECONDS)
            begin, cpu, looks = time.monotonic(), cpu_seconds(process.pid), coordinator.num_answers
            written = _read_for(terminal, seconds)
            looks = coordinator.num_answers - looks
            if looks < seconds * 0.5:
                raise RuntimeError(f"{looks} looks in {seconds:g} s")
            spent = (cpu_seconds(process.pid) - cpu) / (time.monotonic() - begin)
            return {"core": spent, "bytes": written / looks}
        finally:
            process.kill()
            process.wait()
            os.close(terminal)


def run(*, quick: bool) -> Report:
    """Three runs of 15 s for each size of the terminal, in turn."""
    report = Report(name="top")
    found: dict[tuple[int, int], list[dict[str, float]]] = {size: [] for size in SIZES}
    for _ in range(1 if quick else 3):
        for size in SIZES[:1] if quick else SIZES:
            found[size].append(_measure(size, 3.0 if quick else RUN_SECONDS))
    for (width, height), each in found.items():
        if each:
            name = f"{width}x{height}"
            cores = [one["core"] for one in each]
            report.figures[f"core_ratio_{name}"] = report.add_samples(f"core_ratio_{name}", cores)
            report.add_samples(f"look_bytes_{name}", [one["bytes"] for one in each])
    report.notes.append(
        f"{NUM_JOBS} jobs, one look a second; the coordinator is a stand-in that repeats a real "
        "one's report with other figures each time. The goal is at most 0.02 of a core"
    )
    return report
