"""What the demo makes of its measurements: timeline, kernel's books, budget, verdicts, table."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from rich.cells import cell_len

from gpushare.cli._screen.line import plain
from gpushare.demo.budget import CHUNK_BYTES, choose_budget
from gpushare.demo.kernel_memory import (
    is_stopped,
    resident_bytes,
    resident_bytes_in,
    sum_resident,
)
from gpushare.demo.kill_scene import held_term
from gpushare.demo.probe import Probe
from gpushare.demo.proof import prove
from gpushare.demo.report import DemoReport
from gpushare.demo.scene import JobResult, SceneResult
from gpushare.demo.scene_runner import job_environment
from gpushare.demo.table import introduction, report_lines
from gpushare.demo.timeline import median_iteration_ns, read_timeline
from gpushare.demo.workload import FULL, QUICK, find_workload
from tests.python.fake_coordinator import make_report

MIB = 1 << 20


def test_turns_are_counted_and_hand_overs_measured() -> None:
    timeline = read_timeline({"a": [(0, 10), (11, 20), (50, 60)], "b": [(25, 45)]})
    assert timeline.num_switches == 2
    assert timeline.median_handover_ns == 5
    assert timeline.num_overlaps == 0


def test_iterations_of_two_jobs_at_once_are_seen() -> None:
    timeline = read_timeline({"a": [(0, 10)], "b": [(9, 20)]})
    assert (timeline.num_overlaps, timeline.num_switches) == (1, 1)
    assert timeline.median_handover_ns is None


def test_long_iteration_that_others_fit_into_is_an_overlap() -> None:
    timeline = read_timeline({"a": [(0, 100)], "b": [(10, 20), (30, 40)], "c": [(50, 60)]})
    assert timeline.num_overlaps == 3


def test_first_iteration_does_not_count_but_where_it_is_the_only_one() -> None:
    assert median_iteration_ns([(0, 100), (100, 110), (110, 130)]) == 15
    assert median_iteration_ns([(0, 100)]) == 100


SMAPS = b"""\
7f0000000000-7f0000200000 rw-p 00000000 00:00 0
Size:               2048 kB
KernelPageSize:        4 kB
Rss:                1024 kB
Pss:                1024 kB
VmFlags: rd wr mr mw me ac sd hg
7f0000200000-7f0000400000 ---p 00000000 00:00 0
Size:               2048 kB
Rss:                   0 kB
7f0000400000-7f0000600000 rw-p 00000000 08:01 42                 /lib/libc.so (deleted)
Size:               2048 kB
Rss:                 512 kB
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0          [vsyscall]
Rss:                   4 kB
"""


def test_kernels_books_are_added_up_in_a_range() -> None:
    assert sum_resident(SMAPS, 0x7F0000000000, 6 * MIB) == 1536 * 1024
    assert sum_resident(SMAPS, 0x7F0000000000, 4 * MIB) == 1024 * 1024
    assert sum_resident(SMAPS, 0x7F0000400000, 2 * MIB) == 512 * 1024


def test_of_shared_memory_a_process_has_its_part() -> None:
    shared = SMAPS.replace(b"rw-p", b"rw-s", 1).replace(b"Pss:                1024", b"Pss: 256")
    assert sum_resident(shared, 0x7F0000000000, 6 * MIB) == 1536 * 1024
    assert sum_resident(shared, 0x7F0000000000, 6 * MIB, shared="part") == 768 * 1024
    assert sum_resident(shared, 0x7F0000000000, 6 * MIB, shared="none") == 512 * 1024
    assert sum_resident(SMAPS, 0x7F0000000000, 6 * MIB, shared="part") == 1536 * 1024


def test_kernels_books_of_this_process() -> None:
    everything = resident_bytes_in(os.getpid(), 0, 1 << 64)
    assert 0 < everything <= 2 * resident_bytes(os.getpid())
    gone = 2**22 + 1
    assert (resident_bytes(gone), resident_bytes_in(gone, 0, 1 << 64)) == (0, 0)


def test_stopped_process_is_seen_as_such() -> None:
    code = "import time; print('up', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert not is_stopped(process.pid)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        assert is_stopped(process.pid)
        process.kill()
    assert is_stopped(process.pid)


PROBE = Probe(
    iteration_ns={"a": 100e6, "b": 200e6},
    peak_bytes={"a": 100 * MIB, "b": 60 * MIB, "c": 70 * MIB},
    live_bytes={"a": 20 * MIB, "b": 12 * MIB, "c": 30 * MIB},
)


def test_budget_holds_one_job_but_not_all_that_lives() -> None:
    budget = choose_budget(PROBE)
    assert budget % CHUNK_BYTES == 0
    assert (100 + 30) * MIB < budget < (100 + 30 + 12) * MIB


def test_drift_is_symmetric() -> None:
    slower = replace(PROBE, iteration_ns={"a": 120e6, "b": 210e6})
    assert PROBE.drift_to(slower) == pytest.approx(0.1)
    assert slower.drift_to(PROBE) == pytest.approx(0.1)


def test_quick_jobs_are_the_full_ones_in_small() -> None:
    assert [w.name for w in QUICK] == [w.name for w in FULL]
    assert find_workload("lstm", is_quick=True) is QUICK[2]
    assert find_workload("victim", is_quick=False).size == FULL[0].size
    with pytest.raises(ValueError, match="no workload 'gpt'"):
        find_workload("gpt", is_quick=False)


def test_lease_is_held_only_by_its_running_holder() -> None:
    report = make_report()
    assert held_term(report, 1003) == 9
    assert held_term(report, 1005) is None
    report["devices"][0]["jobs"][0]["state"] = "closing"
    assert held_term(report, 1003) is None


def _job(name: str, **changes: Any) -> JobResult:
    stats = {
        "leases": 3,
        "dropped_total_bytes": 50 * MIB,
        "spilled_total_bytes": 4 * MIB,
        "restored_total_bytes": 4 * MIB,
    }
    base = JobResult(name, ["1", "2"], "p" + name, [(0, 100), (100, 300)], stats)
    return replace(base, **changes)


def _scene(title: str, **changes: Any) -> SceneResult:
    jobs = [_job("a"), _job("b", spans_ns=[(300, 500), (500, 700)])]
    timeline = read_timeline({job.name: job.spans_ns for job in jobs})
    base = SceneResult(title, jobs, 10.0, 80 * MIB, 20, timeline=timeline)
    return replace(base, **changes)


REFERENCE = _scene("one after the other", jobs=[_job("a", stats={}), _job("b", stats={})])
SHARED = _scene("gpushare", seconds=10.5)
KILLED = _scene("gpushare, 4th job killed", seconds=None, notes=["killed in its lease"])


def _holds(shared: SceneResult = SHARED, killed: SceneResult = KILLED) -> list[bool]:
    return [proof.holds for proof in prove(REFERENCE, [shared, killed], 100 * MIB)]


def test_proofs_hold_for_a_good_run() -> None:
    assert all(_holds())


@pytest.mark.parametrize(
    "bad",
    [
        _scene("gpushare", jobs=[_job("a"), _job("b", parameters_hash="other")]),
        _scene("gpushare", jobs=[_job("a"), _job("b", losses=["1", "3"])]),
        _scene("gpushare", jobs=[_job("a"), _job("b", losses=None)]),
        _scene("gpushare", jobs=[_job("a", stats={}), _job("b", stats={})]),
        _scene("gpushare", peak_bytes=101 * MIB),
        _scene("gpushare", peak_bytes=0),
        _scene("gpushare", timeline=read_timeline({"a": [(0, 10)], "b": [(9, 20)]})),
    ],
)
def test_each_fault_fails_a_proof(bad: SceneResult) -> None:
    assert not all(_holds(shared=bad))
    assert not all(_holds(killed=bad))


def test_verdicts() -> None:
    assert REFERENCE.verdict(REFERENCE) == "reference"
    assert SHARED.verdict(REFERENCE) == "identical"
    other = _scene("x", jobs=[_job("a"), _job("b", losses=["1", "3"])])
    assert other.verdict(REFERENCE) == "different bits"
    full = _scene("x", jobs=[_job("a", losses=None, out_of_memory="no room")], is_stopped=True)
    assert full.verdict(REFERENCE) == "out of memory"
    late = _scene("x", jobs=[_job("a", losses=None)], is_stopped=True, seconds=None)
    assert late.verdict(REFERENCE) == "stopped at 2 x"


def _report(after: Probe = PROBE, shared: SceneResult = SHARED) -> DemoReport:
    late = _scene("side by side", jobs=[_job("a", losses=None)], is_stopped=True, seconds=None)
    quicker = _scene("side by side, 1 thread each", jobs=REFERENCE.jobs, seconds=9.0)
    return DemoReport(
        reference=REFERENCE,
        scenes=[REFERENCE, late, quicker, shared, KILLED],
        proofs=prove(REFERENCE, [shared, KILLED], 100 * MIB),
        before=PROBE,
        after=after,
        budget_bytes=100 * MIB,
        seconds=99.0,
    )


def _printed(report: DemoReport) -> str:
    return plain(report_lines(report, None))


def test_table_shows_also_what_beats_us() -> None:
    text = _printed(_report())
    rows = {line.split("  ")[0]: line.split() for line in text.splitlines()}
    assert rows["one after the other"][-4:] == ["10.0", "1.00", "80", "reference"]
    assert "> 2.00" in " ".join(rows["side by side"])
    assert rows["gpushare"][1:8] == ["10.5", "1.05", "80", "identical", "1", "0.0", "100"]
    faster = "'one after the other', 'side by side, 1 thread each'"
    assert f"faster than gpushare on this CPU: {faster}" in text
    assert "killed in its lease" in text
    assert text.count("holds ") == 6
    assert "void" not in text.lower()


def test_it_fits_80_columns_and_says_first_what_happened() -> None:
    text = plain(report_lines(_report(), 80))
    assert max(map(cell_len, text.splitlines())) <= 80
    assert not any(line.endswith(" ") for line in text.splitlines())
    assert max(map(cell_len, plain(introduction(80, is_quick=True)).splitlines())) <= 80
    first = " ".join(text.split("\n\n")[0].split())
    assert first.endswith(
        "With gpushare all of them finish, with the same losses and parameters as alone, in 1.05 "
        "times the time of one after the other."
    )
    assert "spilled" in text.split("\n\n")[1]
    assert "hand-over" not in text.split("\n\n")[1].splitlines()[0]
    worse = _scene("gpushare", jobs=[_job("a"), _job("b", losses=["1", "3"])])
    assert "With gpushare: different bits." in _printed(_report(shared=worse))


def test_drift_voids_timings_but_no_proof() -> None:
    report = _report(after=replace(PROBE, iteration_ns={"a": 150e6, "b": 200e6}))
    assert not report.are_timings_valid
    assert report.is_proven
    text = _printed(report)
    assert "TIMINGS VOID" in text
    assert "10.5?" in text


def test_failed_proof_is_shown_and_decides() -> None:
    report = _report(shared=_scene("gpushare", peak_bytes=101 * MIB))
    assert not report.is_proven
    assert "FAILS gpushare: device memory never exceeded the budget" in _printed(report)


def test_json_has_the_figures_of_the_table() -> None:
    report = _report().to_json()
    assert report["schema_version"] == 1
    by_title = {scene["title"]: scene for scene in report["scenes"]}
    shared = by_title["gpushare"]
    assert shared["over_serial"] == 1.05
    assert shared["spilled_bytes"] == 8 * MIB
    assert shared["slice_iteration_over_alone"] == pytest.approx((200 / 100e6 + 200 / 200e6) / 2)
    assert by_title["one after the other"]["spilled_bytes"] is None
    assert by_title["gpushare, 4th job killed"]["slice_iteration_over_alone"] is None


def test_its_jobs_share_the_cpu_whatever_the_machine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSHARE_DEVICE", "cuda")
    environment = job_environment({"GPUSHARE_SOCKET": "none"})
    assert environment["GPUSHARE_DEVICE"] == "cpu"
    assert environment["GPUSHARE_SOCKET"] == "none"
