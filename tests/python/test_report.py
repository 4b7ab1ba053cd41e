from __future__ import annotations

import dataclasses

import pytest

from gpushare import errors
from gpushare.report import format_time, render, since
from gpushare.stats import JobStats

FIELDS = {
    field.name: {"bool": True, "str": "", "int": 0, "float": 0.0}[str(field.type)]
    for field in dataclasses.fields(JobStats)
}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (48, "48 s"), (599, "599 s"), (4320, "72 min")],
)
def test_times_are_as_short_as_they_can_be(seconds, text):
    assert format_time(seconds) == text


def test_the_report_is_two_lines_with_the_jobs_own_figures():
    stats = JobStats(
        **FIELDS
        | {
            "busy_seconds": 40.0,
            "waited_seconds": 31.0,
            "moving_seconds": 0.8,
            "iterations": 100,
            "leases": 12,
            "spilled_total_bytes": 3 << 30,
            "restored_total_bytes": 2 << 30,
            "dropped_total_bytes": 5 << 20,
            "peak_backed_bytes": 12 << 20,
            "live_bytes": 3 << 20,
        }
    )
    assert render("gpt", stats, 72.0).splitlines() == [
        "gpushare: gpt: 72 s (alone about 40 s): running 40 s, waiting 31 s, "
        "switching 0.8 s; 100 iterations, leases: 12",
        "gpushare: moved 3.0 GiB out and 2.0 GiB back, dropped 5.0 MiB; peak 12.0 MiB = "
        "3.0 MiB persistent + 9.0 MiB ephemeral",
    ]
    moved = dataclasses.replace(stats, moving_seconds=3.6)
    assert "switching 3.6 s (5.0 %)" in render("gpt", moved, 72.0)
    # What was live at the last boundary counts, where the model is gone by the end.
    assert render("gpt", stats, 72.0, persistent_bytes=4 << 20).endswith(
        "peak 12.0 MiB = 4.0 MiB persistent + 8.0 MiB ephemeral\n"
    )


def test_a_second_registration_reports_its_own_part():
    before = JobStats(**FIELDS | {"busy_seconds": 40.0, "iterations": 100, "live_bytes": 5})
    now = JobStats(
        **FIELDS
        | {"busy_seconds": 41.5, "iterations": 103, "live_bytes": 7, "peak_backed_bytes": 9}
    )
    stats = since(before, now)
    assert (stats.busy_seconds, stats.iterations) == (1.5, 3)
    assert (stats.live_bytes, stats.peak_backed_bytes) == (7, 9)


def test_a_line_is_said_once(capsys):
    for _ in range(2):
        errors.say_once("only this time")
    assert capsys.readouterr().err == "gpushare: only this time\n"


def test_every_figure_says_what_it_is():
    import ast
    import inspect

    from gpushare import stats
    from gpushare._settings import config

    for module, name in ((stats, "JobStats"), (config, "Config")):
        tree = ast.parse(inspect.getsource(module))
        body = next(
            node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name
        )
        fields = [index for index, node in enumerate(body) if isinstance(node, ast.AnnAssign)]
        assert fields
        for index in fields:
            assert isinstance(body[index + 1], ast.Expr), ast.unparse(body[index])


TWICE = """
import torch, gpushare
for number in (3, 2):
    job = gpushare.register(torch.nn.Linear(8, 8), name="again")
    for _ in range(number):
        with job.iteration():
            pass
    job.close()
"""


@pytest.mark.usefixtures("module_is_built")
def test_each_registration_is_reported_by_itself(run_forked, coordinator):
    said = run_forked(TWICE, **coordinator | {"report": "1"}).stderr.splitlines()
    ends = [line.split("; ")[-1] for line in said if " iterations, leases: " in line]
    assert [end.split(",")[0] for end in ends] == ["3 iterations", "2 iterations"]
