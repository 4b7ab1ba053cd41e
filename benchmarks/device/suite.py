"""Runs the device suite on the machine with the GPU, for `scripts/device_suite run OUT`.

The suite configures, builds and installs into build/device. It runs the C++ tests of the CUDA
driver's memory, the GPU tests and the device benchmarks; the tests or the benchmarks can be left
out. It writes OUT/results.json, results.md and log.txt. A part that fails, hangs or crashes stops
only the parts that need what it makes (runner.py). Everything ends in time for
DEVICE_SUITE_SECONDS.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.device import build, machine, outcomes, pytest_parts, run
from benchmarks.device.outcomes import Part
from benchmarks.device.runner import Runner

SECONDS = 570.0
KINDS = ("tests", "benchmarks")
NOT_BUILT = "what it needs was not built"
HOST_TIER_GIB = 48
TOUCHED_GIB = 40
BENCHMARK_SECONDS = {"two_jobs": 210.0}
OTHER_BENCHMARK_SECONDS = 120.0
NEED_NO_BUILD = ("vmm",)
"""These benchmarks use the driver alone, so they can run even where nothing can be built."""


class Suite:
    """Decides which parts are run, in which order and with which settings."""

    def __init__(self, runner: Runner, work: Path) -> None:
        """Makes `work`, the folder into which parts put what they find."""
        self._runner = runner
        self._work = work
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        self._settings: dict[str, str] = {}
        """Environment variables for later parts, which follow from what earlier parts found."""

    def run(self, kinds: Sequence[str]) -> bool:
        """Builds, then runs the parts of these kinds; returns whether everything is good."""
        missing = "" if self._build() else NOT_BUILT
        self._describe()
        self._grow_memory()
        self._probe_host_chunks()
        if "tests" in kinds:
            self._cpp_tests()
            self._gpu_tests(missing)
        if "benchmarks" in kinds:
            self._benchmarks(missing)
        return self._runner.is_good

    def _build(self) -> bool:
        """Configures, builds and installs; returns whether all of it succeeded."""
        install = ["cmake", "--install", str(build.BUILD), "--prefix", str(build.PACKAGE)]
        steps = [
            ("configure", build.configure_command(), 90),
            ("build", build.build_command(*build.module_targets()), 240),
            ("install", install, 30),
        ]
        missing = ""
        for name, command, seconds in steps:
            if not self._runner.run(name, command, seconds, missing=missing).is_good:
                missing = NOT_BUILT
        if not missing:
            build.copy_package()
        return not missing

    def _describe(self) -> None:
        path = self._work / "machine.json"

        def read(part: Part) -> None:
            self._runner.machine = outcomes.read_facts(path, part) or {"device": "unknown"}

        command = [sys.executable, "-m", "benchmarks.device.machine", str(path)]
        if self._runner.run("machine", command, 100, read=read).is_good:
            self._settings["DEVICE_SUITE_DEVICE"] = "1"

    def _grow_memory(self) -> None:
        """Makes the host tier large enough for the benchmarks, where the machine has the memory."""
        if machine.is_fake() or "GPUSHARE_HOST_BUDGET" in os.environ:
            return
        path = self._work / "memory.json"
        found: dict[str, int] = {}

        def read(part: Part) -> None:
            found.update(outcomes.read_facts(path, part))

        command = [
            sys.executable,
            "-m",
            "benchmarks.device.host_memory",
            str(TOUCHED_GIB),
            str(path),
        ]
        self._runner.run("memory", command, 60, read=read)
        touched = found.get("touched_gib", 0)
        if touched >= TOUCHED_GIB:
            self._settings["GPUSHARE_HOST_BUDGET"] = f"{HOST_TIER_GIB}GiB"
            return
        self._runner.note(
            f"{touched} GiB of memory could be written to, of {TOUCHED_GIB}: the host tier has the "
            "coordinator's default size, half of the machine's memory"
        )

    def _probe_host_chunks(self) -> None:
        """Tries chunks of the host tier; later parts do without, with a note, where they fail."""
        path = self._work / "chunks.json"
        found: dict[str, object] = {}

        def read(part: Part) -> None:
            found.update(outcomes.read_facts(path, part))

        command = [sys.executable, "-m", "benchmarks.device.host_chunks", str(path)]
        part = self._runner.run("host chunks", command, 60, read=read)
        if found.get("can_reach") is True and part.is_good:
            return
        self._settings["GPUSHARE_REACHABLE"] = "off"
        why = found.get("why") or part.outcome
        self._runner.note(
            f"Spilled memory is not kept reachable here ({why}): all parts ran with "
            "GPUSHARE_REACHABLE=off"
        )

    def _cpp_tests(self) -> None:
        """Runs each C++ test in a process of its own, so that an abort ends only that test."""
        if not build.has_cpp_tests():
            reason = "skipped: no googletest in the pack"
            self._runner.add(Part(name="C++ tests", command=[], exit_status=0, reason=reason))
            return
        configured = self._runner.parts[0].is_good
        command = build.build_command(build.CPP_TESTS)
        made = self._runner.run(
            "build C++ tests", command, 200, missing="" if configured else NOT_BUILT
        )
        program = str(build.cpp_program())
        self._pytest(
            "C++ tests",
            pytest_parts.cpp_arguments(),
            100,
            "" if made.is_good else NOT_BUILT,
            {"DEVICE_SUITE_CPP_TESTS": program},
        )

    def _gpu_tests(self, missing: str) -> None:
        reachable = self._settings.get("GPUSHARE_REACHABLE", "auto")
        runs = [(name, reachable) for name in pytest_parts.FILES]
        if reachable != "off":
            runs[-1:-1] = [(name, "on") for name in pytest_parts.ALSO_REACHABLE]
        for name, reachable in runs:
            self._pytest(
                f"{pytest_parts.path_of(name)}, reachable={reachable}",
                [pytest_parts.path_of(name)],
                pytest_parts.FILES[name],
                missing,
                {"GPUSHARE_REACHABLE": reachable},
                may_all_skip=name in pytest_parts.MAY_ALL_SKIP,
            )

    def _pytest(
        self,
        name: str,
        arguments: list[str],
        seconds: float,
        missing: str,
        env: dict[str, str],
        *,
        may_all_skip: bool = False,
    ) -> None:
        """Runs a part of tests. On the fake device any part may skip all of its tests."""
        may_all_skip = may_all_skip or machine.is_fake()
        path = pytest_parts.outcomes_file(self._work, name)
        self._runner.run(
            name,
            pytest_parts.command(*arguments),
            seconds,
            missing=missing,
            env={**self._settings, pytest_parts.OUTCOMES_VARIABLE: str(path), **env},
            read=functools.partial(outcomes.read_outcomes, path, may_all_skip=may_all_skip),
        )

    def _benchmarks(self, missing: str) -> None:
        for name in run.NAMES:
            path = self._work / f"{name}.json"
            self._runner.run(
                f"benchmark {name}",
                [sys.executable, "-m", "benchmarks.device.run", name, "--json", str(path)],
                BENCHMARK_SECONDS.get(name, OTHER_BENCHMARK_SECONDS),
                missing="" if name in NEED_NO_BUILD else missing,
                env=self._settings,
                read=functools.partial(outcomes.read_reports, path),
            )


def main() -> None:
    """Runs the suite; the exit status is 1 unless all is good."""
    kinds = sys.argv[2:] or KINDS
    if unknown := set(kinds) - set(KINDS):
        raise SystemExit(f"error: {', '.join(sorted(unknown))}: there are {' and '.join(KINDS)}")
    out = Path(sys.argv[1]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    os.environ.update(build.environment())
    seconds = float(os.environ.get("DEVICE_SUITE_SECONDS", SECONDS))
    command = f"scripts/device_suite run {' '.join(sys.argv[1:])}"
    # A rehearsal may be on a machine of any speed.
    slowness = 5.0 if machine.is_fake() else 1.0
    with Runner(out, command, seconds, slowness) as runner:
        is_good = Suite(runner, build.BUILD / "results").run(kinds)
    print((out / "results.md").read_text())
    raise SystemExit(0 if is_good else 1)


if __name__ == "__main__":
    main()
