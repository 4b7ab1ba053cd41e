"""Programs of two ranks on two hosts with an arbiter: two at once over one after the other.

The hosts are network namespaces of this machine, where that is allowed, and two coordinators on
loopback otherwise; a note says which. DDP with gloo, rows of at least 250 ms, three rounds. Another
figure is the part of a core that the arbiter takes while two programs start and run.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.bench_ranks import seconds_together
from benchmarks.processes import (
    JobProcess,
    cpu_seconds,
    gpushare_command,
    private_coordinator,
)
from benchmarks.report import Report
from tests.support.arbiters import ArbiterProcess
from tests.support.net_hosts import ARBITER_ADDRESS, NetHosts, why_not

PROGRAM = str(Path(__file__).with_name("ranks_program.py"))
STEPS = 600


class _Place:
    """Where the hosts and the arbiter are."""

    def __init__(self, net: NetHosts | None) -> None:
        self._net = net

    def arbiter(self, folder: Path) -> ArbiterProcess:
        if self._net is None:
            return ArbiterProcess(folder)
        return ArbiterProcess(folder, listen=ARBITER_ADDRESS, wrapper=self._net.beside_arbiter())

    def command(self, rank: int) -> list[str]:
        inside = [] if self._net is None else self._net.on_host(rank)
        return [*inside, *gpushare_command("run", "--"), sys.executable, PROGRAM]

    def environment(self, rank: int, port: int) -> dict[str, str]:
        found = {"MASTER_ADDR": "127.0.0.1"}
        if self._net is not None:
            found = self._net.program_environment(rank)
        return found | {"MASTER_PORT": str(port)}


def _seconds(
    place: _Place, hosts: list[dict[str, str]], port: int, steps: int, *, programs: int
) -> float:
    """Returns how long so many programs take at once."""
    with ExitStack() as stack:
        first = []
        for number in range(programs):
            ranks = [
                stack.enter_context(
                    JobProcess(
                        *["--steps", str(steps), "--wait"],
                        env=host
                        | place.environment(rank, port + number)
                        | {"RANK": str(rank), "WORLD_SIZE": "2", "GPUSHARE_REQUIRE": "1"}
                        | {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"},
                        command=place.command(rank),
                    )
                )
                for rank, host in enumerate(hosts)
            ]
            first.append(ranks[0])
        return seconds_together(first)


def run(*, quick: bool) -> Report:
    """Three rounds of one program alone and two at once."""
    report = Report(name="hosts")
    steps = STEPS // (3 if quick else 1)
    overs, cores = [], []
    with ExitStack() as stack:
        net = None if (reason := why_not()) else stack.enter_context(NetHosts())
        report.notes.append(f"on loopback: {reason}" if reason else "in network namespaces")
        place = _Place(net)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpushare-")))
        arbiter = stack.enter_context(place.arbiter(folder))
        hosts = [
            stack.enter_context(private_coordinator(capacity="1GiB", **arbiter.settings()))
            for _ in range(2)
        ]
        for number in range(1 if quick else 3):
            port = 29500 + 10 * number
            alone = [_seconds(place, hosts, port + each, steps, programs=1) for each in range(2)]
            begun, used = time.monotonic(), cpu_seconds(arbiter.process.pid)
            together = _seconds(place, hosts, port + 2, steps, programs=2)
            used = cpu_seconds(arbiter.process.pid) - used
            cores.append(used / (time.monotonic() - begun))
            overs.append(together / sum(alone))
    report.figures["two_programs_over_serial"] = report.add_samples(
        "two_programs_over_serial", overs
    )
    report.figures["arbiter_cores"] = report.add_samples("arbiter_cores", cores)
    return report
