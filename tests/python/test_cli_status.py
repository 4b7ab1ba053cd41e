"""``gpushare status``: the screen, the options, the exit codes, and how fast it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpushare.cli._screen.line import plain
from gpushare.cli._status.options import StatusOptions, parse_plain
from gpushare.cli._status.screen import status_lines
from gpushare.cli._status.stamps import with_stamps
from tests.python.conftest import clean_environment
from tests.python.fake_coordinator import FakeCoordinator, make_job, make_report

SCREEN = """\
CPU 2.0 GiB   free 512.0 MiB   leased 97%   host 300.0 MiB/4.0 GiB   switch 84 ms   policy fair
JOB  USER     NAME  STATE    PRIORITY  GOT  IT/S  (ALONE)  RESIDENT    SPILLED
  3  4000001  gpt   running  normal    34%   2.9    (8.7)   1.2 GiB        0 B
  5  4000001  vit   waiting  normal    33%   2.9    (8.7)       0 B  300.0 MiB
5 waits for 3 (gpt)'s boundary, asked for it 0.1 s ago, at most 0.9 s
1 unmanaged process holds 2.1 GiB; gpushare status --unmanaged lists them"""


def render_report(report: dict[str, Any]) -> str:
    return plain(status_lines(report))


def test_screen_as_drawn() -> None:
    assert render_report(make_report()) == SCREEN


def test_what_jobs_share_is_counted_once_and_shown_with_each() -> None:
    report = make_report()
    report["devices"][0]["lanes"][0]["pool_bytes"] = 600 << 20
    report["devices"][0]["jobs"][0]["lane_bytes"] = 512 << 20
    lines = render_report(report).splitlines()
    assert lines[0].startswith("CPU 2.0 GiB   free 512.0 MiB   shared 600.0 MiB   leased 97%")
    assert lines[1].endswith("RESIDENT      SHARED    SPILLED")
    assert lines[2].endswith("   1.2 GiB  +512.0 MiB        0 B")


def test_of_several_devices_each_job_says_on_which_it_is() -> None:
    (device,) = make_report()["devices"]
    first, second = device["jobs"]
    devices = [
        {**device, "device": "cpu:0", "jobs": [first]},
        {**device, "device": "cpu:1", "jobs": [second]},
    ]
    lines = render_report(make_report(devices=devices)).splitlines()
    head = next(line for line in lines if line.lstrip().startswith("JOB"))
    at = head.index("DEVICE")
    assert [line[at:].split("  ")[0] for line in lines if "gpt" in line or "vit" in line][:2] == [
        "CPU 0",
        "CPU 1",
    ]
    assert "DEVICE" not in render_report(make_report())


def test_ranks_of_a_gang_have_one_row() -> None:
    (device,) = make_report()["devices"]
    first, second = device["jobs"]
    rank = {"gang": "ranks-1", "ranks": 2, "name": "gpt", "resident_bytes": 1 << 30}
    devices = [
        {**device, "device": "cpu:0", "jobs": [first | rank | {"iterations": 7}]},
        {**device, "device": "cpu:1", "jobs": [second | rank | {"iterations": 8}]},
    ]
    lines = render_report(make_report(devices=devices)).splitlines()
    (row,) = [line for line in lines if "gpt" in line]
    assert "  3  CPU 0, 1  " in row
    assert "gpt (2 ranks)  running" in row
    assert "2.0 GiB" in row
    assert not [line for line in lines if line.startswith("5 ")]  # it runs, whatever one waits for


def test_a_gang_that_waits_says_so_once() -> None:
    (device,) = make_report()["devices"]
    ranks = [
        job | {"gang": "g", "ranks": 2, "state": "waiting", "explain": text}
        for job, text in zip(
            device["jobs"],
            ["job 5 stands in line for the 2 jobs of gang g", "waits for 9's boundary"],
            strict=True,
        )
    ]
    other = {**ranks[0], "job": 6, "uid": 1}  # of another user, who calls a gang by that name too
    lines = render_report(make_report(devices=[{**device, "jobs": [*ranks, other]}])).splitlines()
    assert [line for line in lines if "waits for" in line] == ["3 waits for 9's boundary"]
    assert [line for line in lines if "stands in line" in line] == [
        "6: job 5 stands in line for the 2 jobs of gang g"
    ]


def test_says_how_many_of_several_lanes_are_held() -> None:
    report = make_report()
    lanes = report["devices"][0]["lanes"]
    lanes.append({"lane": 1, "device": "cpu", "holder": 0, "next": 0, "switch_loss": 0.0})
    assert "free 512.0 MiB   1 of 2 lanes held   leased" in render_report(report)
    lanes[1]["holder"] = 5
    assert "free 512.0 MiB   2 of 2 lanes held   leased" in render_report(report)


def test_limits_are_said() -> None:
    report = make_report()
    device = report["devices"][0]
    device["jobs"][1] |= {"share_limit": 0.25, "memory_limit_bytes": 3 << 29}
    free = {"uid": 4000001, "name": "", "share_limit": 0.0, "memory_limit_bytes": 0}
    bound = {"uid": 4000002, "name": "ann\x1b", "share_limit": 0.5, "memory_limit_bytes": 1 << 30}
    held = {"memory_bytes": 1 << 29, "is_at_share_limit": True}
    device["users"] = [free | held, bound | held | {"is_elastic": True}]
    lines = render_report(report).splitlines()
    assert lines[4:-2] == [
        "ann? is limited to 50% of the time (used up) and 1.0 GiB (holds 512.0 MiB), "
        "where others want more",
        "5 (vit) is limited to 25% of the time and 1.5 GiB",
    ]
    device["jobs"][1]["is_elastic"] = True
    said = "5 (vit) is limited to 25% of the time and 1.5 GiB, where others want more"
    assert render_report(report).splitlines()[-3] == said


def test_more_granted_than_there_is_leaves_nothing_free() -> None:
    report = make_report()
    report["devices"][0]["free_bytes"] = -(98 << 20)
    assert "CPU 2.0 GiB   free 0 B   leased" in render_report(report)


def test_nobody_at_home() -> None:
    report = make_report(unmanaged=[])
    report["devices"][0]["jobs"] = []
    report["devices"][0]["switches"] = 0
    assert render_report(report).splitlines() == [
        "CPU 2.0 GiB   free 512.0 MiB   leased 97%   host 300.0 MiB/4.0 GiB   policy fair",
        "no jobs",
    ]


def test_job_that_has_not_run_has_no_rates() -> None:
    report = make_report(unmanaged=[])
    report["devices"][0]["jobs"] = [make_job(1, "new", iterations=0)]
    row = render_report(report).splitlines()[2]
    assert row.split() == ["1", "4000001", "new", "idle", "normal", *"---", "0", "B", "0", "B"]


def test_names_cannot_steer_the_terminal() -> None:
    report = make_report()
    report["devices"][0]["jobs"][0]["name"] = "\x1b[2Jgone" + "x" * 100
    report["devices"][0]["jobs"][1]["explain"] = "waits for \x1b]0;title"
    screen = render_report(report)
    assert "\x1b" not in screen
    assert "  ?[2Jgone" + "x" * 100 + "  " in screen, "whole, where it may be a script that reads"


def test_what_does_not_fit_is_said() -> None:
    assert "and 40 jobs more" in render_report(make_report(jobs_left_out=40))


def test_warnings_are_said() -> None:
    report = make_report(warnings=[{"device": "cpu", "text": "job 3 has\x1b held its lease"}])
    assert render_report(report).splitlines()[-2] == "warning: job 3 has? held its lease"


def test_unmanaged_processes_are_listed_on_request() -> None:
    report = make_report()
    report["unmanaged"][0]["command"] = "python\x1b x.py"
    assert plain(status_lines(report, with_unmanaged=True)).splitlines()[-2:] == [
        "UNMANAGED  USER       HOLDS  COMMAND",
        "     4242  4000000  2.1 GiB  python? x.py",
    ]


def test_a_group_is_shown_as_commands_take_it() -> None:
    report = make_report()
    report["devices"][0]["jobs"][1]["group"] = "sweep"
    lines = render_report(report).splitlines()
    assert [line.split()[-1] for line in lines[1:4]] == ["GROUP", "-", "@sweep"]


@pytest.mark.parametrize(("count", "said"), [(1, "1 process of"), (3, "3 processes of")])
def test_processes_that_cannot_be_looked_at_are_said(count: int, said: str) -> None:
    screen = render_report(make_report(unmanaged_unreadable=count))
    assert screen.splitlines()[-1] == f"{said} other users cannot be looked at"


def test_users_in_the_coordinators_words_get_their_names() -> None:
    report = make_report()
    text = "is paused by user 0, for 4 s now; of user 4000001 and user 99999999999"
    report["devices"][0]["jobs"][1]["explain"] = text
    assert f"5 {text.replace('user 0', 'user root')}" in render_report(report)


def test_loss_is_said_where_the_ceiling_wins() -> None:
    report = make_report()
    report["devices"][0]["lanes"][0]["switch_loss"] = 0.073
    assert "\nswitching costs 7.3% of the time, 2.0% is allowed" in render_report(report)


def test_recovery_is_said() -> None:
    report = make_report()
    report["coordinator"]["is_recovering"] = True
    assert "has just restarted" in render_report(report).splitlines()[0]


def test_text_that_is_no_sentence_gets_a_colon() -> None:
    report = make_report()
    report["devices"][0]["jobs"][1]["explain"] = "2 before it in line: settling"
    assert render_report(report).splitlines()[-2] == "5: 2 before it in line: settling"


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], StatusOptions()),
        (["--json"], StatusOptions(as_json=True)),
        (["--memory"], StatusOptions(is_memory=True)),
        (["--unmanaged"], StatusOptions(with_unmanaged=True)),
        (["--device", "cpu"], StatusOptions(device="cpu")),
        (["--device"], None),
        (["--watch", "2", "--json"], StatusOptions(as_json=True, watch_seconds=2)),
        (["--help"], None),
        (["--watch"], None),
        (["--watch", "soon"], None),
        (["--watch", "0"], None),
        (["--watch", "inf"], None),
        (["extra"], None),
    ],
)
def test_plain_options(arguments: list[str], options: StatusOptions | None) -> None:
    assert parse_plain(arguments) == options


def _is_report(text: str) -> bool:
    """Whether this is the fake coordinator's report, as JSON with what the command adds to it."""
    said = json.loads(text)
    made = with_stamps(make_report())
    wanted = made | {"coordinators": [made["coordinator"]], "time": said["time"]}
    return bool(said == wanted)


def _status(*arguments: str, socket: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpushare", "status", *arguments],
        env=clean_environment(socket=socket),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_command_prints_the_screen(tmp_path: Path) -> None:
    with FakeCoordinator(tmp_path / "sock", make_report()) as fake:
        ended = _status(socket=fake.path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, SCREEN + "\n", "")


def test_command_prints_json(tmp_path: Path) -> None:
    with FakeCoordinator(tmp_path / "sock", make_report()) as fake:
        ended = _status("--json", socket=fake.path)
    assert _is_report(ended.stdout)


def test_no_coordinator_is_exit_3(tmp_path: Path) -> None:
    ended = _status(socket=str(tmp_path / "none"))
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr.startswith("gpushare: no coordinator answers. Tried: ")


def test_no_coordinator_is_an_empty_report_to_a_program(tmp_path: Path) -> None:
    ended = _status("--json", socket=str(tmp_path / "none"))
    assert ended.returncode == 3
    assert ended.stderr.startswith("gpushare: no coordinator answers. Tried: ")
    report = json.loads(ended.stdout)
    assert (report["schema_version"], report["coordinator"]) == (1, None)
    assert report["devices"] == report["unmanaged"] == report["coordinators"] == []


def test_watch_ends_when_the_coordinator_does(tmp_path: Path) -> None:
    with FakeCoordinator(tmp_path / "sock", make_report(), make_report(), None) as fake:
        ended = _status("--json", "--watch", "0.1", socket=fake.path)
    assert ended.returncode == 3
    assert [_is_report(line) for line in ended.stdout.splitlines()] == [True, True]


def test_wrong_option_is_exit_2(tmp_path: Path) -> None:
    ended = _status("--jsno", socket=str(tmp_path / "none"))
    assert ended.returncode == 2
    assert "--jsno" in ended.stderr


def test_imports_neither_torch_nor_typer_nor_rich(tmp_path: Path) -> None:
    code = (
        "import atexit, sys; sys.argv = ['gpushare', 'status']\n"
        "from gpushare.cli.main import main\n"
        "slow = {'torch', 'typer', 'rich', 'asyncio'}\n"
        "atexit.register(lambda: print(sorted(slow & set(sys.modules))))\n"
        "main()"
    )
    with FakeCoordinator(tmp_path / "sock", make_report()) as fake:
        ended = subprocess.run(
            [sys.executable, "-c", code],
            env=clean_environment(socket=fake.path),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    assert ended.stdout.splitlines()[-1] == "[]"
