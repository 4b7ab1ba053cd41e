"""register() and Job, with gpushare installed, mostly without a coordinator."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("module_is_built")

BEGIN = """
import gpushare, torch
from gpushare import _C
torch.set_num_threads(1)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
"""


def test_without_a_coordinator_a_job_goes_on_unmanaged_and_says_so_once(run_forked, tmp_path):
    (tmp_path / "file").touch()
    ended = run_forked(
        BEGIN
        + """
jobs = [gpushare.register(model), gpushare.register(model, optimizer)]
assert jobs[0].is_closed and not jobs[1].is_managed
assert not model._forward_pre_hooks
step()
assert jobs[1].stats().unmanaged_reason
assert jobs[1].active_seconds == 0.0
""",
        socket=str(tmp_path / "file" / "sock"),
    )
    lines = ended.stderr.splitlines()
    assert len(lines) == 2
    assert "file/sock" in lines[0]
    assert lines[1] == ("gpushare: Training goes on unmanaged. GPUSHARE_REQUIRE=1 makes this fatal")


def test_with_a_silent_log_the_reason_is_still_said(run_forked, tmp_path):
    (tmp_path / "file").touch()
    ended = run_forked(
        BEGIN + "gpushare.register(model)", socket=str(tmp_path / "file" / "sock"), log="off"
    )
    (line,) = ended.stderr.splitlines()
    assert "file/sock" in line
    assert line.endswith("Training goes on unmanaged. GPUSHARE_REQUIRE=1 makes this fatal")


def test_required_it_is_an_error(run_forked):
    ended = run_forked(BEGIN + "gpushare.register(model)", require="1", fails=True)
    assert ended.returncode == 3
    assert ended.stderr == (
        "gpushare: GPUSHARE_SOCKET=none: no coordinator is to be used. "
        "GPUSHARE_REQUIRE=1 makes this fatal\n"
    )


def test_where_none_is_to_be_used_nothing_is_said(run_forked):
    assert run_forked(BEGIN + "gpushare.register(model)").stderr == ""


def test_bad_arguments_are_value_errors_before_anything_happens(run_forked):
    run_forked(
        BEGIN
        + """
for given in ({"priority": "high"}, {"weight": -1}, {"memory_limit": "x"}, {"iterations": 0}):
    try:
        gpushare.register(model, **given)
    except ValueError as error:
        assert next(iter(given)) in str(error)
    else:
        raise AssertionError(given)
assert gpushare.current() is None
"""
    )


def test_forced_spills_work_without_a_coordinator(run_forked):
    run_forked(
        BEGIN
        + """
job = gpushare.register(model, optimizer)
before = model.weight.detach().clone()
for _ in range(3):
    step()
stats = job.stats()
assert stats.spilled_total_bytes > 0 and stats.spilled_bytes == 0
assert stats.memory["spilled_total"] == stats.spilled_total_bytes
assert stats.memory["live"] == stats.live_bytes > 0 and "busy_seconds" not in stats.memory
assert not torch.equal(model.weight, before)
with job.iteration():
    step()
try:
    with job.iteration():
        with job.iteration():
            pass
except RuntimeError as error:
    assert "inside another" in str(error)
else:
    raise AssertionError
job.close()
assert not model._forward_pre_hooks
""",
        force_spill="1",
    )


def test_a_closed_job_says_so(run_forked):
    run_forked(
        BEGIN
        + """
job = gpushare.register(model, name="x")
job.close()
job.close()
for call in (job.step, job.iteration):
    try:
        call()
    except gpushare.errors.GpushareError as error:
        assert "job 'x' is closed" in str(error)
    else:
        raise AssertionError
"""
    )


def test_the_name_is_the_scripts(run_forked):
    run_forked(BEGIN + "assert gpushare.register(model).name == 'script'")


@pytest.mark.parametrize(
    ("argv0", "name"),
    [
        ("train.py", "train"),
        ("/a/b/run.exp.py", "run.exp"),
        ("/x/package/__main__.py", "package"),
        ("-c", "python"),
        ("", "python"),
    ],
)
def test_a_default_name_for(argv0, name, monkeypatch):
    import sys

    from gpushare._settings.arguments import default_name

    monkeypatch.setattr(sys, "argv", [argv0])
    assert default_name() == name


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"lane_scrup": True}, "got an unexpected keyword argument 'lane_scrup'"),
        ({"capacity_bytes": "1 GiB"}, "got a value of the wrong type for 'capacity_bytes'"),
        ({"version": None}, "got a value of the wrong type for 'version'"),
        ({"command": ...}, "is missing the keyword argument 'command'"),
    ],
)
def test_a_wrong_keyword_of_the_module_installs_nothing(run_forked, change, says):
    """``...`` stands for a keyword that is left out."""
    keywords = {
        "socket_paths": [],
        "daemon_path": "",
        "daemon_args": [],
        "command": "test",
        "version": "0",
        "program": "",
        "log_level": "error",
        "connect_timeout_seconds": 1.0,
        "idle_rule_seconds": 1.0,
        "idle_spill_seconds": 1.0,
        "capacity_bytes": 0,
    } | change
    keywords = {name: value for name, value in keywords.items() if value is not ...}
    said = run_forked(
        f"""
        import torch, gpushare
        from gpushare import _C
        try:
            _C.install(**{keywords!r})
        except TypeError as error:
            print(error)
        assert not _C.is_installed()
        """,
        disable="1",
    )
    assert said.stdout.strip() == f"install() {says}"


def test_calls_before_installation_are_errors_of_ours(run_forked):
    run_forked(
        """
        import torch, gpushare
        from gpushare import _C, stats
        assert not _C.is_installed()
        for call in (_C.job_stats, _C.memory_stats, _C.unregister_job):
            try:
                call()
            except gpushare.errors.GpushareError as error:
                assert "not installed" in str(error)
            else:
                raise AssertionError
        assert stats.memory_stats() == {} and stats.memory_allocated() == 0
        assert stats.memory_snapshot() == [] and stats.empty_cache() == 0
        stats.reset_peak_memory_stats()
        """,
        disable="1",
    )


def test_the_module_checks_its_arguments(run_forked):
    run_forked(
        """
        import gpushare, torch
        from gpushare import _C
        for call in (lambda: _C.end_iteration("someday", False), lambda: _C.close_lease(""),
                     lambda: _C.explain(-1.0), lambda: _C.explain(float("nan"))):
            try:
                call()
            except ValueError:
                pass
            else:
                raise AssertionError
        """
    )


def test_a_managed_job_counts_its_iterations_and_reports(run_forked, coordinator):
    ended = run_forked(
        BEGIN
        + """
job = gpushare.register(model, optimizer, name="counted", memory_limit="64MiB", iterations=5)
assert job.is_managed and job.number >= 1 and gpushare.current() is job
for _ in range(5):
    step()
with torch.no_grad():
    model(torch.ones(1, 4))
stats = job.stats()
assert (stats.iterations, stats.optimizer_steps) == (6, 5), stats
assert stats.lease_state == "kOpenGap" and stats.leases == 1
assert 0 < job.active_seconds
try:
    model(torch.ones(1, 5))
except RuntimeError:
    pass
assert job.stats().lease_state == "kIdle"
with job.iteration():
    assert job.stats().lease_state == "kOpenBusy"
assert job.stats().iterations == 7
assert isinstance(_C.explain(1.0), str)
""",
        **coordinator | {"report": "1"},
    )
    first, second = ended.stderr.splitlines()
    assert first.startswith("gpushare: counted: ")
    assert "7 iterations" in first
    assert second.startswith("gpushare: moved ")


def test_an_optimizer_with_a_scheduler_from_before_the_import_is_seen(run_forked, coordinator):
    run_forked(
        """
import torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
import gpushare
job = gpushare.register(model, optimizer)
for _ in range(4):
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    scheduler.step()
assert (job.stats().iterations, job.stats().optimizer_steps) == (4, 4), job.stats()
""",
        **coordinator,
    )


def test_a_second_registration_replaces_the_first(run_forked, coordinator):
    run_forked(
        BEGIN
        + """
first = gpushare.register(model, optimizer)
step()
second = gpushare.register(model, optimizer)
assert first.is_closed and gpushare.current() is second
before = second.stats().iterations
step()
assert second.stats().iterations == before + 1
assert second.stats().is_registered
""",
        **coordinator,
    )


def test_a_forked_child_is_no_job(run_forked, coordinator):
    run_forked(
        BEGIN
        + """
import os
job = gpushare.register(model, optimizer)
step()
pid = os.fork()
if pid == 0:
    assert gpushare.current() is None and job.is_closed
    step()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
step()
assert job.stats().iterations == 2 and job.stats().is_managed
""",
        **coordinator,
    )


def test_an_uncaught_exception_leaves_the_iteration(run_forked, coordinator):
    ended = run_forked(
        BEGIN
        + """
import atexit
job = gpushare.register(model, optimizer)
def look():
    print(_C.is_in_iteration(), _C.job_stats()["lease_state"])
atexit.register(look)
model(torch.ones(2, 4))
raise KeyError("lost")
""",
        fails=True,
        **coordinator,
    )
    assert ended.stdout == "False kIdle\n"
    assert "KeyError: 'lost'" in ended.stderr


def test_a_deadline_without_effect_is_said_in_one_line(run_forked, coordinator):
    script = BEGIN + "gpushare.register(model, deadline='50ms').close()"
    (line,) = run_forked(script, policy="rr", **coordinator).stderr.splitlines()
    assert "its deadline of 50 ms has no effect under the policy rr" in line
