"""``gpushare status --memory``: the screen, and that both ways to it show the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpushare.cli._screen.line import plain
from gpushare.cli._status.memory import memory_lines
from gpushare.cli._status.options import StatusOptions
from gpushare.cli._status.show import show_status
from tests.python.fake_coordinator import FakeCoordinator, make_job, make_report

if TYPE_CHECKING:
    import pytest

MIB = 1 << 20
SCREEN = """\
CPU 2.0 GiB   free 512.0 MiB   shared 40.0 MiB   host 300.0 MiB/4.0 GiB
jobs need 900.0 MiB persistent and 200.0 MiB ephemeral memory, at most 150.0 MiB of one job: \
it fits with one job's ephemeral memory at a time; not known yet of 1
asked of jobs so far 900.0 MiB: 300.0 MiB of it by spilling as planned, 310.0 MiB spilled and \
590.0 MiB dropped in fact
JOB  USER     NAME  STATE         ROOM   RESIDENT    SPILLED       LIVE  OUTSIDE  \
  SHARED  DONATED  OVERFLOW      NEEDS  PERSISTENT  EPHEMERAL    DROPPED  SPILLED SO FAR  RESTORED
  3  4000001  gpt   running  700.0 MiB  650.0 MiB  300.0 MiB  900.0 MiB  2.0 MiB  \
40.0 MiB  6.0 MiB   7.0 MiB  950.0 MiB   900.0 MiB          ?  590.0 MiB       310.0 MiB  10.0 MiB
1 unmanaged process holds 2.1 GiB; gpushare status --unmanaged lists them
2.5 s ago, job 3, released: 300.0 MiB of 300.0 MiB"""


def render_memory(report: dict[str, Any]) -> str:
    return plain(memory_lines(report))


def _report() -> dict[str, Any]:
    report = make_report()
    device = report["devices"][0]
    device |= {
        "asked_total_bytes": 900 * MIB,
        "planned_spill_total_bytes": 300 * MIB,
        "dropped_total_bytes": 590 * MIB,
        "spilled_total_bytes": 310 * MIB,
    }
    sizes = {
        "room": 700,
        "resident": 650,
        "spilled": 300,
        "live": 900,
        "outside": 2,
        "lane": 40,
        "donated": 6,
        "overflow": 7,
        "need": 950,
        "persistent": 900,
        "dropped_total": 590,
        "spilled_total": 310,
        "restored_total": 10,
    }
    device["lanes"][0]["pool_bytes"] = 40 * MIB
    in_bytes = {f"{name}_bytes": size * MIB for name, size in sizes.items()}
    device["admission"] = {
        "fit": "one_ephemeral",
        "persistent_bytes": 900 * MIB,
        "ephemeral_bytes": 200 * MIB,
        "largest_ephemeral_bytes": 150 * MIB,
        "jobs_unknown": 1,
    }
    device["jobs"] = [make_job(3, "gpt", state="running", **in_bytes)]
    report["decisions"] = [
        {"seconds_ago": 9.0, "device": "cpu", "lane": 0, "job": 3, "what": "ask", "reason": "x"},
        {
            "seconds_ago": 2.5,
            "device": "cpu",
            "lane": 0,
            "job": 3,
            "what": "released",
            "reason": "300.0 MiB of 300.0 MiB",
        },
    ]
    return report


def test_needs_that_are_not_known_are_no_zeros() -> None:
    report = _report()
    nothing = dict.fromkeys(("persistent_bytes", "ephemeral_bytes", "largest_ephemeral_bytes"), 0)
    report["devices"][0]["admission"] |= nothing | {"jobs_unknown": 1, "fit": "all"}
    lines = render_memory(report).splitlines()
    assert lines[1] == "what the jobs need is not known yet"
    assert not any("fits at once" in line for line in lines)


def test_screen_as_drawn() -> None:
    assert render_memory(_report()) == SCREEN


def test_a_host_tier_of_two_parts_is_shown_in_parts() -> None:
    report = _report()
    report["devices"][0] |= {
        "host_file_used_bytes": 100 * MIB,
        "host_file_budget_bytes": 3072 * MIB,
    }
    first = render_memory(report).splitlines()[0]
    assert first.endswith("host ram 200.0 MiB/1.0 GiB file 100.0 MiB/3.0 GiB")


def test_a_transfer_budget_and_who_is_held_back_by_it() -> None:
    report = _report()
    device = report["devices"][0]
    device["transfer_budget_bytes_per_second"] = 100 * MIB
    device["jobs"][0] |= {"transfer_bytes_per_second": 50 * MIB, "is_held_back": False}
    lines = render_memory(report).splitlines()
    assert lines[0].endswith("   transfers 100.0 MiB/s")
    assert not any("nobody waits for" in line for line in lines)
    device["jobs"][0]["is_held_back"] = True
    assert (
        "job 3 has bytes to copy that nobody waits for: "
        "at most 50.0 MiB a second while another computes" in render_memory(report).splitlines()
    )


def test_nothing_asked_and_nobody_there() -> None:
    report = _report()
    report["devices"][0] |= {"asked_total_bytes": 0, "jobs": []}
    report |= {"unmanaged": [], "decisions": []}
    assert render_memory(report).splitlines()[1:] == ["no jobs"]


def test_names_and_reasons_cannot_steer_the_terminal() -> None:
    report = _report()
    report["devices"][0]["jobs"][0]["name"] = "\x1b[2J"
    report["decisions"][1]["reason"] = "\x1b]0;title"
    assert "\x1b" not in render_memory(report)


def test_option_chooses_the_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeCoordinator(tmp_path / "sock", _report()) as coordinator:
        monkeypatch.setenv("GPUSHARE_SOCKET", coordinator.path)
        show_status(StatusOptions(is_memory=True))
    assert capsys.readouterr().out == SCREEN + "\n"
