"""CPU time of `gpushare dashboard` beside 20 live jobs, without a page and with one and three open.

`*_percent`: of one core. A page is a connection that reads all events, as a browser does; what the
browser itself needs to draw is not counted. The jobs take turns with small iterations.
"""

from __future__ import annotations

import http.client
import subprocess
import threading
import time
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from benchmarks.processes import (
    JobProcess,
    cpu_seconds,
    gpushare_command,
    job_environment,
    private_coordinator,
)
from benchmarks.report import Report

if TYPE_CHECKING:
    from collections.abc import Iterator

NUM_JOBS = 20
PRODUCTS = 50
"""Of an iteration."""
GAP_SECONDS = 0.1
NUM_PAGES = (0, 1, 3)


@contextmanager
def _page(url: str) -> Iterator[list[int]]:
    """Reads all events; the list gets the bytes of each."""
    parts = urlsplit(url)
    sizes: list[int] = []
    token = parts.fragment.removeprefix("token=")
    with closing(http.client.HTTPConnection(parts.netloc)) as connection:
        connection.request("GET", "/api/events", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"the dashboard answered {answer.status}")
        stop = threading.Event()

        def read() -> None:
            while not stop.is_set() and (line := answer.readline()):
                if line.startswith(b"data: "):
                    sizes.append(len(line))

        reader = threading.Thread(target=read)
        reader.start()
        yield sizes
        stop.set()  # seen after the next event
        reader.join()


def run(*, quick: bool) -> Report:
    """20 jobs; 20 s for each number of pages."""
    report = Report(name="dashboard")
    seconds = 3 if quick else 20
    with ExitStack() as stack:
        env = stack.enter_context(private_coordinator()) | {"OMP_NUM_THREADS": "1"}
        flags = ("--products", str(PRODUCTS), "--gap", str(GAP_SECONDS))
        for number in range(4 if quick else NUM_JOBS):
            name = f"job-{number}"
            job = JobProcess("--name", name, *flags, env=env, module="benchmarks.paced_job")
            stack.enter_context(job).wait_ready().go()
        board = stack.enter_context(
            subprocess.Popen(
                gpushare_command("dashboard", "--port", "0"),
                stdout=subprocess.PIPE,
                text=True,
                env=job_environment(env),
            )
        )
        stack.callback(board.terminate)
        assert board.stdout is not None
        url = board.stdout.readline().split()[-1]
        for pages in NUM_PAGES:
            with ExitStack() as opened:
                sizes = [opened.enter_context(_page(url)) for _ in range(pages)]
                time.sleep(2)  # the first reading of a page has the whole window
                seen = [len(each) for each in sizes]
                begun, used = time.monotonic(), cpu_seconds(board.pid)
                time.sleep(seconds)
                used = cpu_seconds(board.pid) - used
                took = time.monotonic() - begun
                for before, each in zip(seen, sizes, strict=True):
                    if len(each) - before < took / 2:
                        raise RuntimeError(f"a page got {len(each) - before} events in {took} s")
            name = f"pages_{pages}_percent"
            report.figures[name] = report.add_samples(name, [100 * used / took])
            if pages == 1:
                report.figures["event_bytes"] = report.add_samples("event_bytes", sizes[0][2:])
    report.notes.append("target: under 5 % of a core with 20 jobs and one page")
    return report
