"""``gpushare demo --quick``, the real thing; and what is left when it is interrupted: nothing."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.python.conftest import ROOT, clean_environment

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.usefixtures("module_is_built")]


@contextlib.contextmanager
def _demo(folder: Path, program: str = "gpushare") -> Iterator[subprocess.Popen[str]]:
    """The demo, which ends, with its jobs, at the latest with the test."""
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(ROOT)])}
    with subprocess.Popen(
        [sys.executable, "-m", program, "demo", "--quick", "--json"],
        # One thread for MKL too: what one of its scenes asks for, the others then have as well.
        env=clean_environment() | paths | {"TMPDIR": str(folder), "MKL_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def _processes_that_mention(text: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if text.encode() in path.read_bytes():
                found.append((path.parent / "cmdline").read_text())
        except OSError:
            continue
    return found


def _assert_nothing_is_left(folder: Path) -> None:
    # torch keeps a cache of its own in the same place.
    assert list(folder.glob("gpushare*")) == []
    assert _processes_that_mention(str(folder)) == []


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A socket's path has a bound; pytest's own folders may be too deep for it."""
    with tempfile.TemporaryDirectory(prefix="gsd-") as folder:
        yield Path(folder)


def test_quick_demo_proves_its_claims_and_leaves_nothing(short_folder: Path) -> None:
    # Its jobs compute for seconds; importing torch in each of the 26 takes a minute.
    with _demo(short_folder, "tests.python.forked_demo") as process:
        out, err = process.communicate(timeout=280)
    assert out, err
    report = json.loads(out)
    failed = [proof for proof in report["proofs"] if not proof["holds"]]
    assert (process.returncode, failed) == (0, []), err
    results = {scene["title"]: scene["result"] for scene in report["scenes"]}
    assert results["one after the other"] == "reference"
    assert results["a fixed share each"] == "out of memory"
    assert results["gpushare"] == results["gpushare, 4th job killed"] == "identical"
    shared = next(scene for scene in report["scenes"] if scene["title"] == "gpushare")
    assert shared["spilled_bytes"] > 0
    assert shared["peak_bytes"] <= report["budget_bytes"] < report["sum_of_peaks_bytes"]
    _assert_nothing_is_left(short_folder)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_demo_leaves_nothing(short_folder: Path, number: signal.Signals) -> None:
    with _demo(short_folder) as process:
        deadline = time.monotonic() + 60
        while len(_processes_that_mention(str(short_folder))) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(process.pid, number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "demo interrupted" in err
    assert "Traceback" not in err
    _assert_nothing_is_left(short_folder)
