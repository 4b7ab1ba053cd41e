"""Gangs of two ranks on two CPU devices of one coordinator: two at once, and what a switch takes.

`two_gangs_over_serial`: two DDP programs at once over one after the other, with rows of 2 s.
`switch_round_trips`: the median time from the last step of one gang, on all devices, to the first
step of the next, over the same between two single jobs of one device, where it is one round trip
(job, coordinator, next job). `switch_p99_ms`: of the former.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.bench_ranks import seconds_together
from benchmarks.processes import JobProcess, gpushare_command, private_coordinator
from benchmarks.report import Report

FOLDER = Path(__file__).parent
DEVICES = "cpu:0=1GiB,cpu:1=1GiB"
NUM_RANKS = 2
DDP_STEPS = 600

Leases = list[tuple[float, float]]


def _start(
    stack: ExitStack, env: dict[str, str], store: Path, program: str, *flags: str
) -> list[JobProcess]:
    """The ranks of a program, each on a device of its own."""
    runs = gpushare_command("run", "--") if program == "ranks_program.py" else [sys.executable]
    python = [sys.executable] if program == "ranks_program.py" else []
    return [
        stack.enter_context(
            JobProcess(
                *flags,
                env=env
                | {
                    "RANK": str(rank),
                    "WORLD_SIZE": str(NUM_RANKS),
                    "GPUSHARE_DEVICE": f"cpu:{rank}",
                },
                command=[*runs, *python, str(FOLDER / program), "--init", f"file://{store}"],
            )
        )
        for rank in range(NUM_RANKS)
    ]


def _ddp_seconds(env: dict[str, str], steps: int, *, programs: int) -> float:
    """Of so many at once."""
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        flags = ["--steps", str(steps), "--wait"]
        first = [
            _start(stack, env, Path(folder) / str(number), "ranks_program.py", *flags)[0]
            for number in range(programs)
        ]
        return seconds_together(first)


def switches(programs: list[list[Leases]]) -> list[float]:
    """Seconds from one program's last step to the other's first, counted when all ranks have it.

    Args:
        programs: Two, of each rank of them its leases.
    """
    found = []
    for own, others in (programs, reversed(programs)):
        ends = sorted(end for ranks in others for _, end in ranks)
        last = 0.0
        for began, ended in own[0]:
            # The other ranks' leases of the same row begin nearest to this one.
            begins = [
                min((lease[0] for lease in rank), key=lambda at: abs(at - began)) for rank in own
            ]
            before = max((end for end in ends if end < min(begins)), default=0.0)
            if before > last:
                found.append(max(begins) - before)
            last = ended
    return found


def _switch_seconds(steps: int, *, ranks: int) -> list[float]:
    """Of two programs of so many ranks that have nothing to move."""
    with (
        private_coordinator(devices=DEVICES, require="1", min_quantum="20ms", report="0") as env,
        ExitStack() as stack,
        tempfile.TemporaryDirectory() as folder,
    ):
        flags = ["--steps", str(steps)]
        if ranks > 1:
            started = [
                _start(stack, env, Path(folder) / str(number), "gang_program.py", *flags)
                for number in range(2)
            ]
        else:
            command = [sys.executable, str(FOLDER / "gang_program.py")]
            started = [
                [
                    stack.enter_context(
                        JobProcess(*flags, env=env | {"GPUSHARE_DEVICE": "cpu:0"}, command=command)
                    )
                ]
                for _ in range(2)
            ]
        for process in [each for program in started for each in program]:
            process.wait_ready()
        for process in [each for program in started for each in program]:
            process.go()
        said = [[process.result()["leases"] for process in program] for program in started]
    return switches(said)


def run(*, quick: bool) -> Report:
    """3 rounds of DDP, then the switches."""
    report = Report(name="gang")
    steps = DDP_STEPS // (8 if quick else 1)
    over_serial = []
    for _ in range(1 if quick else 3):
        with private_coordinator(devices=DEVICES, require="1", min_quantum="2s", report="0") as env:
            alone = _ddp_seconds(env, steps, programs=1)
            together = _ddp_seconds(env, steps, programs=2)
        over_serial.append(together / (2 * alone))
    report.figures["two_gangs_over_serial"] = report.add_samples("over_serial", over_serial)
    count = 2000 if quick else 6000
    single = report.add_samples("single_switch", _switch_seconds(count, ranks=1))
    gang = _switch_seconds(count, ranks=NUM_RANKS)
    report.figures["switch_round_trips"] = report.add_samples("gang_switch", gang) / single
    p99 = statistics.quantiles(gang, n=100)[98] if len(gang) > 1 else gang[0]
    report.figures["switch_p99_ms"] = p99 * 1000
    report.notes.append("a switch moves no memory here; on two cores two ranks compute at a time")
    return report
