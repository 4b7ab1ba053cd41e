"""`%load_ext gpushare`: real kernels that share a budget too small for both, cell by cell."""

from __future__ import annotations

import functools
import gc
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes import job_environment, read_status
from tests.gallery import outcome

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")
pytestmark = pytest.mark.skipif(
    os.environ.get("GALLERY") != "all", reason="kernels start slowly: make gallery runs it"
)

Coordinator = Callable[..., dict[str, str]]

EXAMPLE = nbformat.read(outcome.EXAMPLES / "notebook.ipynb", as_version=4)
LOAD, IMPORT, BUILD, TRAIN, SUM, SHOW = (
    cell.source for cell in EXAMPLE.cells if cell.cell_type == "code"
)
CELLS = [LOAD, IMPORT, BUILD, TRAIN, SUM, TRAIN, SUM]
"""SUM uses no module: the memory must be there because the cell has begun."""
SAY_WHEN_A_CELL_BEGINS = """
def say(info):
    if "it ran" in info.raw_cell: open({mark!r}, "w").close()
get_ipython().events.register("pre_run_cell", say)
"""
PEAK = "import gpushare; print(gpushare.current().stats().peak_backed_bytes)"


class Kernel:
    """A notebook's kernel; all is done in one thread, whose event loop its client stays with."""

    def __init__(self, env: dict[str, str]) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._client = nbclient.NotebookClient(
            nbformat.v4.new_notebook(), timeout=60, kernel_name="python3", allow_errors=True
        )
        self._running = self._client.setup_kernel(env=env)

    def start(self, source: str) -> Future[str]:
        """Starts a cell; its result is what it prints, or its error."""
        return self._thread.submit(self._run, source)

    def run(self, source: str) -> str:
        """Runs a cell."""
        return self.start(source).result()

    def _run(self, source: str) -> str:
        cell = nbformat.v4.new_code_cell(source)
        self._client.nb.cells.append(cell)
        self._client.execute_cell(cell, len(self._client.nb.cells) - 1)
        return "".join(
            each.get("text") or "\n".join(each.get("traceback", [])) for each in cell.outputs
        )

    def __enter__(self) -> Kernel:
        self._thread.submit(self._running.__enter__).result()
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.submit(self._running.__exit__, *error).result()
        self._thread.shutdown()
        del self._client, self._running
        with warnings.catch_warnings():
            # nbclient leaves its event loop and its sockets to the garbage collector.
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


def kernel(env: dict[str, str]) -> Kernel:
    """A kernel in this environment; where it has a coordinator, that is required."""
    return Kernel(job_environment({"GPUSHARE_REQUIRE": "1"} | env))


def _cells(seed: int) -> list[str]:
    return [cell.replace("manual_seed(0)", f"manual_seed({seed})") for cell in CELLS]


@functools.cache
def _stock(seed: int) -> list[str]:
    with kernel({"GPUSHARE_DISABLE": "1"}) as alone:
        return [alone.run(cell) for cell in _cells(seed)][1:]


def _rows(env: dict[str, str]) -> list[dict[str, Any]]:
    return [row for device in read_status(env).get("devices", []) for row in device["jobs"]]


def _row(env: dict[str, str], number: int) -> dict[str, Any]:
    return next(row for row in _rows(env) if row["job"] == number)


def _two_kernels(coordinator: Coordinator, stack: ExitStack) -> tuple[dict[str, str], list[Kernel]]:
    """Two kernels in 60 % of what both need."""
    env = coordinator(linger="60s")
    with kernel(env) as alone:
        for cell in _cells(0):
            alone.run(cell)
        peak = int(alone.run(PEAK))
    # Only what a cell's end gives may move in the time of a test.
    env = coordinator(capacity=str(round(1.2 * peak)), linger="60s", idle_spill="10min")
    return env, [stack.enter_context(kernel(env)) for _ in range(2)]


def test_a_cell_has_the_device_and_an_idle_kernel_makes_room(coordinator: Coordinator) -> None:
    stock = [_stock(seed) for seed in range(2)]
    with ExitStack() as stack:
        env, kernels = _two_kernels(coordinator, stack)
        found: list[list[str]] = [[], []]
        for cells in zip(_cells(0), _cells(1), strict=True):
            for own, each, cell in zip(found, kernels, cells, strict=True):
                own.append(each.run(cell))
            # Until torch is there the kernels are no jobs.
            assert [row["is_parked"] for row in _rows(env)] in ([], [True, True])
        assert [own[1:] for own in found] == stock
        assert _row(env, 1)["spilled_bytes"] > 0, "the idle kernel was to make room"
        assert [_row(env, each)["state"] for each in (1, 2)] == ["idle", "idle"]
        assert _row(env, 2)["priority"] == "interactive"
        spilled = _row(env, 1)["spilled_bytes"]
        said = kernels[0].run(SHOW) + kernels[0].run("%%bash\ntrue")
        assert re.search(r"job 1 \(notebook\), interactive: .* job 2 \(notebook\) idle", said, re.S)
        assert _row(env, 1)["spilled_bytes"] == spilled, "%gpushare brought the memory back"
        leases = _row(env, 1)["leases"]
        kernels[0].run("!true")  # a fork, which brings memory back
        assert _row(env, 1)["leases"] == leases
        # Two iterations a loop would be too few: each of its steps is one.
        assert _row(env, 1)["iterations"] >= 8


def test_two_kernels_that_train_at_once(coordinator: Coordinator) -> None:
    stock = [_stock(seed) for seed in range(2)]
    with ExitStack() as stack:
        _, kernels = _two_kernels(coordinator, stack)
        cells = list(enumerate(map(_cells, range(2))))
        runs = [[kernels[seed].start(cell) for cell in own] for seed, own in cells]
        assert [[run.result() for run in own][1:] for own in runs] == stock


def test_ctrl_c_while_a_cell_waits_keeps_it_from_running(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    mark = tmp_path / "begun"
    env = coordinator(linger="60s")
    command = [sys.executable, "-m", "gpushare"]
    with kernel(env) as one:
        for cell in _cells(0)[:4]:
            one.run(cell)
        one.run(SAY_WHEN_A_CELL_BEGINS.format(mark=str(mark)))
        pid = int(one.run("import os; print(os.getpid())"))
        subprocess.run([*command, "pause", "1"], env=job_environment(env), check=True)
        waiting = one.start("print('it ran')")
        while not mark.exists():
            assert not waiting.done()
            time.sleep(0.01)
        while not waiting.done():  # the first may come before the wait has begun
            time.sleep(0.3)
            os.kill(pid, signal.SIGINT)
        said = waiting.result()
        assert said == "gpushare: interrupted while it waited for the device; the cell has not run"
        subprocess.run([*command, "resume", "1"], env=job_environment(env), check=True)
        assert one.run("print('it ran')") == "it ran\n"


def test_a_cell_that_evaluates_has_boundaries(coordinator: Coordinator) -> None:
    evaluate = "with torch.no_grad():\n    for _ in range(6): _ = other(torch.ones(1, 64))"
    with kernel(coordinator()) as one:
        for cell in [*_cells(0)[:4], "other = nn.Linear(64, 64)", "import gpushare"]:
            one.run(cell)
        count = "print(gpushare.current().stats().iterations)"
        before = int(one.run(count))
        one.run(evaluate)  # a model that no optimizer has
        assert int(one.run(count)) >= before + 6


def test_it_takes_over_the_job_of_gpushare_run(coordinator: Coordinator) -> None:
    env = coordinator(idle_spill="10min")
    with kernel(env | {"GPUSHARE_RUN": "1"}) as one:
        for cell in ["import gpushare", IMPORT, BUILD, TRAIN]:
            one.run(cell)
        assert not _row(env, 1)["is_parked"]
        one.run(LOAD)
        said = one.run("print(gpushare.current().number)")
        assert said == "1\n"
        assert _row(env, 1)["is_parked"]
        before = _row(env, 1)["iterations"]
        one.run(TRAIN)
        assert _row(env, 1)["iterations"] >= before + 4


def test_it_says_that_an_older_model_cannot_move(coordinator: Coordinator) -> None:
    with kernel(coordinator()) as one:
        for cell in [IMPORT, BUILD, LOAD]:
            one.run(cell)
        assert "of this job's memory is older than" in one.run(TRAIN)


def test_a_cell_inside_a_cell_does_not_end_it(coordinator: Coordinator) -> None:
    inner = "get_ipython().run_cell('1 + 1')"
    with kernel(coordinator()) as one:
        for cell in [LOAD, IMPORT, BUILD]:
            one.run(cell)
        look = "from gpushare import _native; print(_native.load().is_in_iteration())"
        said = one.run(f"{inner}\n{look}")
        assert "True" in said
        one.run("import gpushare; gpushare.current().close()")
        one.run("gpushare.register(model, optimizer)")
        assert one.run("print(gpushare.current().name)") != "notebook\n"


def test_what_it_says(coordinator: Coordinator) -> None:
    with kernel(coordinator()) as one:
        one.run(LOAD)
        assert "no job yet. The first cell after `import torch`" in one.run(SHOW)
        one.run(IMPORT)
        assert "no job yet. The next cell with code" in one.run(SHOW)
        assert "parked" not in one.run("%gpushare park")
        one.run(BUILD)
        assert "gpushare: parked: " in one.run("%gpushare park")
        assert "say %gpushare, or %gpushare park" in one.run("%gpushare off")
        one.run("import gpushare\ngpushare.current().close()")
        assert "job was closed. gpushare.register()" in one.run(SHOW)
        one.run("%unload_ext gpushare")
        assert "not found" in one.run(SHOW)
    with kernel({"GPUSHARE_DISABLE": "1"}) as one:
        assert one.run(LOAD) == "gpushare: GPUSHARE_DISABLE=1: this kernel runs without gpushare\n"
