"""The screens of the command line fit a terminal of any width, and no figure is cut."""

from __future__ import annotations

import re
from typing import Any

import pytest
from rich.cells import cell_len

from gpushare.cli._accounts.show import text_of
from gpushare.cli._screen.columns import Column, fit
from gpushare.cli._screen.line import Span, fields, flow, plain, wrap
from gpushare.cli._status.memory import memory_lines
from gpushare.cli._status.screen import status_lines
from gpushare.cli._status.table import shorten
from gpushare.cli.history import COLUMNS as HISTORY
from gpushare.cli.units import format_bytes
from gpushare.cli.why import why_lines
from tests.python.screen_shapes import SHAPES

WIDTHS = (80, 100, 120, 200)
SCREENS = {"status": status_lines, "memory": memory_lines}
FIGURE = re.compile(r"-?[0-9][0-9.]* (?:B|[KMG]iB)(?![a-z])")


def _report(shape: str, screen: str) -> dict[str, Any]:
    report = SHAPES[shape]()
    if screen == "memory":
        for device in report["devices"]:
            for lane in device["lanes"]:
                lane.setdefault("pool_bytes", 0)
    return report


def _extras(report: dict[str, Any]) -> set[str]:
    """Figures of columns that only wide terminals have."""
    return {
        format_bytes(job.get(key) or 0)
        for device in report["devices"]
        for job in device["jobs"]
        for key in ("persistent_bytes", "ephemeral_bytes")
    }


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("shape", SHAPES)
def test_each_line_fits_and_each_figure_is_whole(shape: str, screen: str) -> None:
    report = _report(shape, screen)
    layout = SCREENS[screen]
    whole = plain(layout(report, with_unmanaged=True))
    known = set(FIGURE.findall(whole)) | {"0 B"}
    for width in WIDTHS:
        for is_listed in (False, True):
            text = plain(layout(report, width, with_unmanaged=is_listed))
            assert max(map(cell_len, text.splitlines())) <= width, text
            assert "\x1b" not in text
            if is_listed:  # else strangers have a sum
                assert set(FIGURE.findall(text)) <= known | _extras(report)


@pytest.mark.parametrize("shape", SHAPES)
def test_who_runs_and_what_each_holds_stays_at_80(shape: str) -> None:
    report = _report(shape, "status")
    lines = plain(status_lines(report, 80)).splitlines()
    for device in report["devices"]:
        for job in device["jobs"]:
            (row,) = [
                line for line in lines if re.match(rf" *{job['job']}  .*{job['state']}", line)
            ]
            assert format_bytes(job["resident_bytes"]) in row
            assert re.search(rf"  {re.escape(format_bytes(job['spilled_bytes']))}($|  )", row)


def _columns(text: str) -> list[str]:
    (head,) = [line for line in text.splitlines() if "RESIDENT" in line and "JOB" in line]
    return re.split("  +", head.strip())


@pytest.mark.parametrize("shape", ["all at once", "20 jobs"])
@pytest.mark.parametrize("screen", SCREENS)
def test_wider_terminals_show_more(shape: str, screen: str) -> None:
    report = _report(shape, screen)
    texts = [plain(SCREENS[screen](report, width)) for width in (80, 120, 200)]
    counts = [len(_columns(text)) for text in texts]
    assert counts[0] < counts[1] < counts[2], texts
    assert "in a wider window also: " in texts[0]


def test_what_is_the_same_for_all_goes_first() -> None:
    jobs = _report("20 jobs", "status")
    columns = _columns(plain(status_lines(jobs, 80)))
    assert "PRIORITY" not in columns
    assert "USER" in columns
    for job in jobs["devices"][0]["jobs"]:
        job |= {"uid": 0, "priority": ["normal", "guaranteed"][job["job"] % 2]}
    columns = _columns(plain(status_lines(jobs, 80)))
    assert "PRIORITY" in columns
    assert "USER" not in columns


def test_names_are_cut_by_places() -> None:
    assert [shorten("日本語", most) for most in (6, 5, 4, 3, 2)] == [
        "日本語",
        "日~語",
        "日~",
        "日~",
        "~",
    ]
    marked = "e\u0301" * 4
    assert [shorten(marked, most) for most in (3, 2)] == [
        f"{marked[:2]}~{marked[:2]}",
        f"{marked[:2]}~",
    ]
    assert cell_len(shorten("\N{ROCKET}" * 30)) <= 24
    columns = [Column("NAME", least=4), Column("B", is_number=True)]
    table = fit(columns, [["日本語の名前", "1.0 GiB"], ["ab", "12.0 GiB"]], 18)
    assert plain(table.lines).splitlines() == [
        "NAME             B",
        "日本~前    1.0 GiB",
        "ab        12.0 GiB",
    ]


def test_figures_stay_whole_where_names_are_short() -> None:
    columns = [Column("NAME", least=4), Column("A", drop=1, is_number=True), Column("B")]
    table = fit(columns, [["a-long-name", "1234.5 GiB", "12.0 GiB"], ["b", "0 B", "1 B"]], 15)
    assert plain(table.lines).splitlines() == ["NAME   B", "a-~me  12.0 GiB", "b      1 B"]
    assert table.left_out == ["A"]


def test_a_figure_stays_beside_its_unit() -> None:
    text = "holds 300.0 MiB (日本) of 12 GiB since 4 s"
    for width in range(11, 50):
        broken = plain(wrap(text, width)).splitlines()
        assert max(map(cell_len, broken)) <= width
        assert " ".join(map(str.strip, broken)) == text
        assert all(not re.match(r" *(MiB|GiB|s)\b", line) for line in broken), broken
    parts = [Span("free 300.0 MiB"), Span("policy fair")]
    assert plain(flow(parts, 20)) == "free 300.0 MiB\n  policy fair"


def test_a_character_wider_than_the_line_ends_nothing() -> None:
    assert plain(wrap("日本 ab", 1, indent="")).splitlines() == ["日", "本", "a", "b"]
    assert plain(wrap("日本", 3)).splitlines() == ["日", "  本"]


def test_why_and_fields_fit() -> None:
    answer = {
        "job": 5, "name": "日本" * 40, "state": "waiting", "explain": "waits for 3 (gpt) " * 9,
        "reason": "set: weight 1 -> 2", "now": ["it has 3.0 GiB " * 12], "order": [], "changes": [],
    }  # fmt: skip
    for width in (40, *WIDTHS):
        text = plain(why_lines(answer, width))
        text += "\n" + plain(fields([("command", "python train.py " * 30), ("日", "x")], width))
        assert max(map(cell_len, text.splitlines())) <= width
    assert plain(fields([("a", "b c"), ("long", "d")], None)) == "a     b c\nlong  d"


def test_history_fits() -> None:
    row = {
        "id": "0123456789ab", "user": "somebody-with-a-name", "name": "日本語" * 20,
        "group": "g" * 50,
        "end": "2026-11-20T12:00:00.5+00:00", "signal": "SIGKILL", "exit_code": None, "how": "died",
        "wall_seconds": 1e7, "held_seconds": 86399.0, "waited_seconds": 0.5, "iterations": 10**9,
        "iterations_per_second": 2.94, "iterations_per_second_alone": 1e5, "peak_bytes": 1 << 45,
        "spilled_bytes": 1 << 50,
    }  # fmt: skip
    rows = [[cell(each) for _, cell in HISTORY] for each in (row, row | {"name": "b", "user": "c"})]
    counts = []
    for width in WIDTHS:
        lines = plain(fit([column for column, _ in HISTORY], rows, width).lines).splitlines()
        assert max(map(cell_len, lines)) <= width
        assert all("115 d 17 h" in line for line in lines[1:])
        counts.append(len(re.split("  +", lines[0].strip())))
    assert counts[0] < counts[2] <= counts[3]
    assert text_of("name")({"name": "a\x1b"}) == "a?"
