"""The screen of ``gpushare top`` as text: from one reply of a real coordinator, at three widths.

``REWRITE_SCREENS=1`` writes the expected screens anew; look at each before you commit it.
"""

from __future__ import annotations

import copy
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from gpushare.cli._targets.coordinators import merge_reports
from gpushare.cli.top.glyphs import ASCII, UNICODE, Part, bar, curve, glyphs_for
from gpushare.cli.top.history import History, JobId, Means, Rate
from gpushare.cli.top.line import Span, cut, fit, plain, width_of
from gpushare.cli.top.look import Look, Silent
from gpushare.cli.top.rows import Choice
from gpushare.cli.top.screen import Size, draw
from tests.python.conftest import ROOT

FOLDER = Path(__file__).parent / "top"
REPLY: dict[str, Any] = json.loads((FOLDER / "reply.json").read_text())
UID = 4_000_001
"""Nobody's on any machine, so that the screen has the number for a name."""


def reply(**changes: Any) -> dict[str, Any]:
    """The reply, with all jobs of one user."""
    report = copy.deepcopy(REPLY) | changes
    for row in [*report["devices"][0]["jobs"], *report["unmanaged"]]:
        row["uid"] = UID
    return report


def look_at(report: dict[str, Any], *, looks: int = 60, silent: tuple[Silent, ...] = ()) -> Look:
    """What top knows after a minute in which the jobs went on."""
    history = History()
    seen = copy.deepcopy(report)
    for second in range(looks):
        for device in seen["devices"]:
            for place, job in enumerate(device["jobs"]):
                job["iterations"] = report["devices"][0]["jobs"][0]["iterations"]
                job["iterations"] += second * (place + 1) + second * second // 20
        history.add(float(second), seen["devices"])
    return Look(report, list(silent), {}, history)


def text_of(look: Look, choice: Choice | None = None, width: int = 80, height: int = 0) -> str:
    """The screen as text."""
    drawn = draw(look, choice or Choice(), Size(width, height), UNICODE)
    return "\n".join(map(plain, drawn.lines))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 24), (200, 24)])
def test_the_screen_is_as_drawn(width: int, height: int) -> None:
    report = reply()
    choice = Choice(selected=JobId("cpu", report["devices"][0]["jobs"][1]["pid"]))
    screen = text_of(look_at(report), choice, width, height) + "\n"
    path = FOLDER / f"screen_{width}.txt"
    if os.environ.get("REWRITE_SCREENS"):
        path.write_text(screen)
    assert screen == path.read_text()


def test_the_document_shows_that_screen() -> None:
    section = (ROOT / "docs" / "commands.md").read_text().split("## `gpushare top`")[1]
    shown = section.split("```text\n")[1].split("```")[0].splitlines()
    lines = (FOLDER / "screen_80.txt").read_text().splitlines()
    assert shown == [line for line in lines if line][1:-1]  # less the first and the keys


@pytest.mark.parametrize("width", [20, 40, 60, 79, 80, 99, 120, 200, 400])
@pytest.mark.parametrize("height", [0, 6, 24, 60])
def test_no_line_is_wider_than_the_terminal_and_none_is_too_many(width: int, height: int) -> None:
    report = reply()
    report["devices"][0]["jobs"][0]["name"] = "日本語" * 40
    drawn = draw(look_at(report), Choice(), Size(width, height), UNICODE)
    assert not height or len(drawn.lines) <= height
    assert max(map(width_of, drawn.lines)) <= width


def _two_devices() -> dict[str, Any]:
    gpu = reply()
    gpu["devices"][0]["device"] = "cuda:GPU-12345678-1234-1234-1234-123456789abc"
    return merge_reports([reply(), gpu])


def test_a_narrow_terminal_has_fewer_columns_and_whole_figures() -> None:
    report = reply()
    report["devices"][0]["jobs"][0]["name"] = "sweep-of-learning-rates-0.001"
    for width in (40, 50, 57, 64, 72):
        screen = text_of(look_at(report, looks=1), width=width)
        cells = " ".join(screen.split("\n JOB")[1].splitlines()[1:4]).split()
        sizes = [f"{job['resident_bytes'] / 2**20:.1f}" for job in report["devices"][0]["jobs"]]
        assert [size for size in sizes if size != "0.0" and size not in cells] == [], screen
        assert "resident 96.0 MiB, free 0 B" in screen
        assert "(sweep-of~s-0.001)" in screen


def test_room_that_no_job_uses_makes_the_sum_the_capacity() -> None:
    report = reply()
    (device,) = report["devices"]
    resident = sum(job["resident_bytes"] for job in device["jobs"])
    device["capacity_bytes"] = resident + (24 << 20)
    device["free_bytes"] = 4 << 20
    once = text_of(Look(report, [], {}, History()), width=80)
    assert "resident 96.0 MiB, unused room 20.0 MiB, free 4.0 MiB" in once
    narrow = text_of(Look(report, [], {}, History()), width=60)
    assert "resident 96.0 MiB, free 4.0 MiB" in narrow


def test_one_screen_says_how_full_the_memory_is() -> None:
    look = Look(reply(), [], {}, History())  # as with --once: nothing was seen before
    assert re.search(r"memory +100%", text_of(look))


def test_several_devices_have_numbers_and_a_low_terminal_a_line_each() -> None:
    look = look_at(_two_devices())
    whole = text_of(look).splitlines()
    assert whole[1].startswith("0 CPU ")
    assert whole[4].startswith("1 CUDA GPU-12345678 ")
    heads = next(line for line in whole if "DEV" in line)
    assert heads.startswith("DEV  JOB")
    assert [line.split()[0] for line in whole[8:14]] == ["0", "0", "0", "1", "1", "1"]
    low = text_of(look, height=11).splitlines()
    assert low[1].startswith("0 CPU ")
    assert low[2].startswith("1 CUDA GPU-12345678 ")
    assert "runs" in low[1]
    assert "\ndevice 1, job 2 (notebook): waits for" in text_of(look)
    assert low[3] == heads


def _names(look: Look, **choice: Any) -> list[str]:
    drawn = draw(look, Choice(**choice), Size(80, 0), UNICODE)
    return [row.fields["name"] for row in drawn.all_rows if row.is_job]


def test_rows_are_sorted_turned_around_and_filtered() -> None:
    report = reply()
    jobs = report["devices"][0]["jobs"]
    for job, (name, size, group) in zip(
        jobs, (("b", 30, ""), ("c", 10, "Sweep"), ("a", 20, "")), strict=True
    ):
        job |= {"name": name, "resident_bytes": size, "group": group}
    jobs[2]["uid"] = os.getuid()
    look = look_at(report)
    assert _names(look) == ["b", "c", "a"]
    assert _names(look, is_reversed=True) == ["a", "c", "b"]
    assert _names(look, sort="resident") == ["c", "a", "b"]
    assert _names(look, sort="resident", is_reversed=True) == ["b", "a", "c"]
    # By what is on the screen, the rate of now: the third is the quickest.
    assert _names(look, sort="rate") == ["b", "c", "a"]
    assert _names(look, text="sweep") == ["c"]
    assert _names(look, is_mine=True) == ["a"]
    assert _names(look, text="none of them") == []
    empty = text_of(look, Choice(text="none of them"))
    assert 'filter "none of them"  0 shown' in empty
    assert "no job is like that" in empty


def test_names_steer_nothing() -> None:
    report = reply()
    report["devices"][0]["jobs"][0] |= {"name": "\x1b[2J[red]x", "explain": "waits \x1b]0;t"}
    report["devices"][0]["policy"] = "fa\x1bir"
    report["warnings"] = [{"device": "cpu", "text": "[b]no\x07"}]
    choice = Choice(text="\x1b[")
    screen = text_of(look_at(report), choice, 200) + text_of(look_at(report), None, 200)
    assert not set("\x1b\x07") & set(screen)
    assert "?[2J[red]x" in screen
    assert "warning: [b]no?" in screen


def test_who_runs_until_when_and_who_is_next() -> None:
    report = reply()
    device = report["devices"][0]
    device["jobs"] = [{**device["jobs"][0], "job": n, "name": f"j{n}"} for n in range(1, 8)]
    lane = device["lanes"][0]
    device["lanes"] = [lane | {"holder": 1, "next": 2, "quantum_left_seconds": 1.25}]
    assert "  1 (j1) runs, 1.2 s left; 2 (j2) is next" in text_of(look_at(report))
    device["lanes"] = [lane | {"holder": 1, "next": 2, "quantum_left_seconds": 0.0}]
    assert "  1 (j1) runs to its boundary; 2 (j2) is next" in text_of(look_at(report))
    device["lanes"] = [lane | {"holder": 0, "next": 0}]
    assert "  nobody has the lease" in text_of(look_at(report))
    device["lanes"] = [lane | {"holder": n, "next": 0} for n in range(1, 7)]
    assert "4 (j4) runs; 2 more run" in text_of(look_at(report), width=200)


def test_a_silent_coordinator_is_said_and_hides_no_other() -> None:
    silent = Silent("cuda:GPU-1", "the coordinator at /x\x1b took the question")
    screen = text_of(look_at(reply(), silent=(silent,)), width=120)
    assert "CUDA GPU-1: the coordinator at /x? took the question" in screen
    nothing = Look({"devices": [], "unmanaged": [], "warnings": []}, [silent], {}, History())
    screen = text_of(nothing)
    assert "This screen goes on to look for one." in screen
    assert "no jobs are known, since no coordinator answers" in screen


def test_a_recovering_coordinator_is_said() -> None:
    report = reply()
    report["coordinator"]["is_recovering"] = True
    assert "the coordinator has just restarted" in text_of(look_at(report))


def test_many_warnings_leave_room_for_what_jobs_wait_for() -> None:
    report = reply(warnings=[{"device": "cpu", "text": f"it is {n}"} for n in range(9)])
    live, once = text_of(look_at(report), height=24), text_of(look_at(report))
    assert "\n9 warnings, see gpushare status; the first: it is 0\n" in live
    assert "job 2 (notebook): waits for" in live
    assert once.count("warning: it is") == 9


def test_all_states_are_counted() -> None:
    report = reply()
    for job, state in zip(report["devices"][0]["jobs"], ("idle", "later", "waiting"), strict=True):
        job["state"] = state
    first = text_of(look_at(report)).splitlines()[0]
    assert first == "gpushare top   3 jobs: 1 waiting, 1 idle, 1 later"


def test_the_selected_row_is_in_sight() -> None:
    report = reply()
    (first, *_) = report["devices"][0]["jobs"]
    report["devices"][0]["jobs"] = [
        first | {"job": n, "pid": 1000 + n, "name": f"n{n:03}", "explain": ""} for n in range(300)
    ]
    look = look_at(report, looks=2)
    for number in (0, 7, 150, 299):
        screen = text_of(look, Choice(selected=JobId("cpu", 1000 + number)), 80, 24)
        assert f"n{number:03}" in screen
        assert len(screen.splitlines()) == 24


def test_a_rate_is_of_now_and_counts_slow_iterations() -> None:
    quick, slow = Rate(), Rate()
    for second in range(60):
        quick.add(float(second), min(second, 40) * 5)
        slow.add(float(second), second // 20)
    assert quick.recent(0.2) == 0.0  # paused for 19 s
    assert slow.recent(20.0) == pytest.approx(2 / 59, rel=0.01)
    quick.add(60.0, 3)  # registered anew
    assert quick.recent(0.2) is None
    quick.add(61.0, 5)
    assert quick.recent(0.2) == 2.0


def test_a_job_is_remembered_over_a_restart_and_forgotten_when_gone() -> None:
    report = reply()
    devices = report["devices"]
    history = History()
    history.add(0.0, devices)
    history.add(30.0, [devices[0] | {"jobs": []}])
    assert len(history.rates) == 3
    history.add(61.0, [devices[0] | {"jobs": []}])
    assert history.rates == {}


def test_means_have_gaps_where_nothing_was_seen() -> None:
    means = Means()
    for at, value in ((0.0, 1.0), (4.0, 3.0), (5.0, 7.0), (21.0, 9.0)):
        means.add(at, value)
    assert means.values() == [2.0, 7.0, None, None, 9.0]


def test_bars_and_curves() -> None:
    parts = [Part(1, "#"), Part(0, "="), Part(0.001, "+")]
    assert plain(bar(parts, 4, 8, Part(0, "."))) == "##+....."
    assert plain(bar(parts, 0, 4, Part(0, "."))) == "#+.."
    assert curve([0, 1, None, 4], 0.0, 6, UNICODE) == "  ▁▃ █"
    assert curve([1.5], 1.0, 2, ASCII) == " #"
    assert (glyphs_for("utf-8"), glyphs_for("ascii"), glyphs_for(None)) == (UNICODE, ASCII, ASCII)


def test_text_is_cut_by_places() -> None:
    assert fit("日本語", 5) == "日~語"
    assert fit("日本語", 4) == "日~ "
    assert fit("ab", 4, is_right=True) == "  ab"
    assert fit("sweep-lr-0.001-seed-3", 12) == "sweep-~eed-3"
    assert fit("ab", 0) == ""
    assert cut((Span("日本"), Span("日本語")), 7) == (Span("日本"), Span("日~"))
    assert cut((Span("日本"), Span("日本語")), 8) == (Span("日本"), Span("日~ "))
    assert cut((Span("ab"), Span("c")), 2) == (Span("ab"), Span(""))
